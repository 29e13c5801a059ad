//! Atomic accesses of two kernels to one word: of two devices, a store whose scope is its device is
//! a race, alone and beside words of another scope, within a process and between two.

use serde_json::Value;
use tests::{build, run};

/// What two kernels of two devices do to a word, and what reports call the bytes of their races.
const RACY: [(&str, &str, &[&str]); 10] = [
    ("red_gpu", "red_gpu", &[WORD]),
    ("red_gpu", "red_sys", &[WORD]),
    ("red_sys", "red_gpu", &[WORD]),
    ("atom_gpu", "atom_sys", &[WORD]),
    ("default_", "default_", &[WORD]),
    ("swap_sys", "swap_gpu", &[WORD]),
    ("store_gpu", "red_sys", &[WORD]),
    ("load_sys", "store_gpu", &[WORD]),
    ("gpu_beside_sys", "gpu_beside_sys", &[WORD]),
    ("sys_beside_gpu", "sys_beside_gpu", &[BESIDE]),
];
const WORD: &str = "0..4";
const BESIDE: &str = "128..132";

/// No races.
const SILENT: [(&str, &str); 7] = [
    ("red_sys", "red_sys"),
    ("atom_sys", "red_sys"),
    ("swap_sys", "atom_sys"),
    ("store_sys", "red_sys"),
    ("load_sys", "store_sys"),
    ("sys_beside_gpu", "red_sys"),
    // A fence of the system goes with it, so it may be the message that the program means.
    ("fenced_gpu", "red_sys"),
];

/// The bytes and the confidence of each finding.
fn findings(code: &str, words: [&str; 5]) -> Option<(Vec<(String, String)>, String)> {
    let program = build::cuda_program_if_possible("sim/update_scopes.cu", "static", &["-w"])?;
    let json = build::scratch(&format!("update-scopes-{code}-{}", words.join("-"))).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--pedantic", "--error-exitcode", "0"]);
    command.arg("--json").arg(&json).arg("--").arg(&program).args(words);
    let sim = format!("arch=90:devices=2:code={code}");
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", sim));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{words:?} {code}: {}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    let bytes = |finding: &Value| {
        let bytes = &finding["access"]["bytes"];
        (format!("{}..{}", bytes["from"], bytes["to"]), finding["confidence"].as_str().unwrap_or_default().to_owned())
    };
    Some((findings.iter().map(bytes).collect(), ended.err))
}

/// The bytes of each finding, all of which must be certain.
fn found(code: &str, words: [&str; 5]) -> Option<(Vec<String>, String)> {
    let (found, said) = findings(code, words)?;
    // A kernel with a fence of the system that loads atomically, or is told what an update found,
    // may wait for the other process, and what is behind it is possible: machine code puts fences
    // in front of some accesses.
    let is_told = |form: &str| ["atom", "swap", "default", "load"].iter().any(|part| form.contains(part));
    let has_fence = words[1].contains("sys") || words[2].contains("sys");
    let may_wait = words[0] == "shared" && has_fence && (is_told(words[1]) || is_told(words[2]));
    let is_right = |confidence: &str| confidence == "certain" || may_wait && confidence == "possible";
    assert!(found.iter().all(|(_, confidence)| is_right(confidence)), "{words:?} {code}: {said}");
    Some((found.into_iter().map(|(bytes, _)| bytes).collect(), said))
}

fn judge(code: &str, kind: &str) {
    let expect = |words: [&str; 5], wanted: &[&str]| {
        let Some((found, said)) = found(code, words) else { return };
        assert_eq!(found, wanted, "{words:?} {code}: {said}");
        let told = said.contains("Both are atomic, but the scope of a store is its own device");
        assert_eq!(told, !wanted.is_empty(), "{words:?} {code}: {said}");
    };
    for (first, second, bytes) in RACY {
        expect([kind, first, second, "other", "apart"], bytes);
        expect([kind, first, second, "other", "waits"], &[]);
        // One scope contains both.
        expect([kind, first, second, "same", "apart"], &[]);
    }
    for (first, second) in SILENT {
        expect([kind, first, second, "other", "apart"], &[]);
    }
}

#[test]
fn the_scope_of_an_update_must_contain_the_other_device_in_ptx() {
    judge("ptx", "managed");
}

#[test]
fn the_scope_of_an_update_must_contain_the_other_device_in_machine_code() {
    judge("sass", "peer");
}

/// What the first kernel does is kept, though nothing tells then that there will be another device.
#[test]
fn a_device_that_comes_later_counts() {
    for (form, wanted) in [("red_gpu", &[WORD][..]), ("red_sys", &[])] {
        let Some((found, said)) = found("sass", ["late", form, "red_sys", "other", "apart"]) else { return };
        assert_eq!(found, wanted, "{form}: {said}");
    }
}

/// A flag hands data over to another device only if its scope contains that.
#[test]
fn a_flag_of_a_device_hands_nothing_over_to_another_one() {
    for code in ["ptx", "sass"] {
        for (form, place, confidence) in
            [("gives_gpu", "other", "certain"), ("gives_sys", "other", "possible"), ("gives_gpu", "same", "possible")]
        {
            let words = ["late", form, "takes", place, "apart"];
            let Some((found, said)) = findings(code, words) else { return };
            assert!(!found.is_empty(), "{words:?} {code}: {said}");
            assert!(found.iter().all(|(_, is)| is == confidence), "{words:?} {code}: {said}");
        }
    }
}

#[test]
fn the_scope_of_an_update_must_contain_the_other_process_s_device() {
    judge("sass", "shared");
}
