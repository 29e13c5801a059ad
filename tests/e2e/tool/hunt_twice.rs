//! The second run of `streamsan hunt`, in which findings that rest on uncertain bytes are measured:
//! what it settles, and that nothing is settled by a run that failed or did not come so far.
//!
//! On the simulated GPU `hunted_rows.cu`, whose addresses are data; against a fake of NVIDIA's
//! Sanitizer API `touching.c`, of whose kernels nothing is known.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tests::run::{Ended, end, streamsan};
use tests::{build, fake};

use crate::detection::exact::sanitizer;

/// A folder with that program as `rows`; nothing without CUDA's compiler.
fn folder(name: &str, ways: &[&str]) -> Option<PathBuf> {
    let ways: Vec<String> = ways.iter().map(|way| format!("-D{way}")).collect();
    let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
    let program = build::cuda_program_if_possible("exact/hunted_rows.cu", "static", &ways)?;
    let folder = build::scratch(&format!("hunt-twice-{name}"));
    std::fs::copy(program, folder.join("rows")).expect("copied");
    Some(folder)
}

/// `streamsan hunt OPTIONS FOLDER`: its end and the JSON report.
fn hunt(options: &[&str], folder: &Path) -> (Ended, Value) {
    let (json, out) = (folder.with_extension("json"), folder.with_extension("out"));
    let mut command = streamsan(["hunt"]);
    command.args(options).arg("--json").arg(&json).arg("--output").arg(&out).arg(folder);
    let ended = end(command.env_remove("STREAMSAN_SIM"));
    let text = std::fs::read(&json).unwrap_or_else(|e| panic!("{}: {e}\n{}", json.display(), ended.err));
    (ended, serde_json::from_slice(&text).expect("JSON"))
}

/// The same on the simulated GPU, with a count of its runs from the start.
fn simulated(options: &[&str], folder: &Path) -> (Ended, Value, usize) {
    let _ = std::fs::remove_file(folder.join("runs"));
    // The simulated GPU would measure them in the first run.
    let mut words = vec!["--sim-predict"];
    words.extend(options);
    let (ended, report) = hunt(&words, folder);
    let runs = std::fs::read_to_string(folder.join("runs")).expect("it ran").lines().count();
    (ended, report, runs)
}

fn certainties(report: &Value) -> Vec<(&Value, &Value)> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().map(|f| (&f["confidence"], &f["established"])).collect()
}

#[test]
fn rows_that_coincide_become_certain() {
    let Some(folder) = folder("race", &["RACE"]) else { return };
    let (ended, report, runs) = simulated(&[], &folder);
    assert_eq!((ended.code(), runs), (Some(66), 2), "{}", ended.err);
    assert_eq!(certainties(&report), [(&json!("certain"), &json!("exact"))], "{}", ended.err);
    let second = &report["programs"][0]["second_run"];
    assert_eq!((&second["confirmed"], &second["withdrawn"], &second["not_settled"]), (&json!(1), &json!(0), &json!(0)));
    assert_eq!((&second["measured"], &second["launches"]), (&json!(2), &json!(2)), "{second}");
    assert!(ended.err.contains("  second run: 1 confirmed\n"), "in the table: {}", ended.err);
    // The finding is of a process that the report has, and of the program.
    let f = &report["findings"][0];
    let process = f["processes"][0].as_u64().expect("a number") as usize;
    assert_eq!((&report["processes"][process]["pid"], &f["programs"]), (&f["pid"], &json!(["rows"])));
    let kept = Path::new(second["output"].as_str().expect("a folder"));
    assert!(std::fs::read_to_string(kept.join("report.txt")).expect("kept").contains("DATA RACE"));
    // The finding keeps the name that the first run gave it: baselines know it.
    let (_, first, _) = simulated(&["--no-confirm", "--pedantic"], &folder);
    assert_eq!(first["findings"][0]["fingerprint"], f["fingerprint"]);
}

#[test]
fn rows_that_do_not_are_withdrawn_and_told() {
    let Some(folder) = folder("clean", &["APART"]) else { return };
    let (junit, sarif) = (folder.with_extension("xml"), folder.with_extension("sarif"));
    let files = ["--pedantic", "--junit", junit.to_str().expect("text"), "--sarif", sarif.to_str().expect("text")];
    let (ended, report, runs) = simulated(&files, &folder);
    assert_eq!((ended.code(), runs), (Some(0), 2), "{}", ended.err);
    let program = &report["programs"][0];
    assert_eq!((&program["outcome"], &program["findings"]), (&json!("clean"), &json!(0)), "{}", ended.err);
    assert_eq!(program["second_run"]["withdrawn"], 1);
    assert_eq!(report["summary"]["withdrawn"], 1);
    let told = &report["withdrawn"][0];
    assert_eq!((&told["confidence"], &told["programs"]), (&json!("possible"), &json!(["rows"])), "{told:#}");
    assert!(report["tried"].is_null(), "the wait was tried on what is no finding: {}", report["tried"]);
    for part in ["  second run: 1 not touched together\n", "NOTE: 1 finding withdrawn: exact ranges do not meet\n"] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    for file in [junit, sarif] {
        let text = std::fs::read_to_string(&file).expect("written");
        assert!(text.contains("second run: 1 not touched together"), "{}: {text}", file.display());
    }
    // Without the second run the finding is as uncertain as it was, and fails the hunt.
    let base = folder.with_extension("base");
    let base = base.to_str().expect("text");
    let (ended, report, runs) = simulated(&["--pedantic", "--no-confirm", "--write-baseline", base], &folder);
    assert_eq!((ended.code(), runs), (Some(66), 1), "{}", ended.err);
    assert_eq!(certainties(&report), [(&json!("possible"), &json!("code"))], "{}", ended.err);
    assert!(report["programs"][0]["second_run"].is_null() && !ended.err.contains("second run"), "{}", ended.err);
    // What the baseline knows is not measured; nor is anything again where all is measured.
    let (ended, _, runs) = simulated(&["--pedantic", "--baseline", base], &folder);
    assert_eq!((ended.code(), runs), (Some(0), 1), "{}", ended.err);
    let (ended, _, runs) = simulated(&["--pedantic", "--exact"], &folder);
    assert_eq!((ended.code(), runs), (Some(0), 1), "{}", ended.err);
}

/// Nobody has seen the pair before the second run: it is neither found nor withdrawn.
#[test]
fn rows_that_are_set_aside_are_measured_and_nothing_is_told() {
    let Some(folder) = folder("aside", &["APART"]) else { return };
    let (ended, report, runs) = simulated(&[], &folder);
    assert_eq!((ended.code(), runs), (Some(0), 2), "{}", ended.err);
    assert_eq!((&report["summary"]["findings"], &report["summary"]["withdrawn"]), (&json!(0), &json!(0)));
    let second = &report["programs"][0]["second_run"];
    assert_eq!((&second["confirmed"], &second["withdrawn"], &second["not_settled"]), (&json!(0), &json!(0), &json!(0)));
    assert!(!ended.err.contains("not settled"), "{}", ended.err);
}

#[test]
fn a_second_run_that_fails_settles_nothing() {
    let Some(folder) = folder("fails", &["FAILS"]) else { return };
    let (ended, report, runs) = simulated(&["--pedantic"], &folder);
    assert_eq!((ended.code(), runs), (Some(66), 2), "{}", ended.err);
    assert_eq!(certainties(&report), [(&json!("possible"), &json!("code"))], "{}", ended.err);
    let second = &report["programs"][0]["second_run"];
    assert_eq!((&second["not_settled"], &second["withdrawn"]), (&json!(1), &json!(0)), "{second}");
    let note = "NOTE: rows: findings in doubt not settled by the second run: it ended otherwise: failed: exit code 3: it \
                was here before\n";
    assert!(ended.err.contains(note) && ended.err.contains("  second run: 1 not settled\n"), "{}", ended.err);
    assert_eq!(report["programs"][0]["outcome"], "findings");
}

#[test]
fn what_the_second_run_does_not_come_to_stays() {
    let Some(folder) = folder("turns", &["TURNS"]) else { return };
    let (ended, report, runs) = simulated(&["--pedantic"], &folder);
    assert_eq!((ended.code(), runs), (Some(66), 2), "{}", ended.err);
    assert_eq!(certainties(&report), [(&json!("possible"), &json!("code"))], "{}", ended.err);
    let note = "not settled by the second run: the two did not come unordered again\n";
    assert!(ended.err.contains(note), "{}", ended.err);
}

#[test]
fn of_a_second_run_without_end_what_it_confirmed_counts_and_nothing_is_withdrawn() {
    for (way, confidence, told) in [("RACE", "certain", "1 confirmed"), ("APART", "possible", "1 not settled")] {
        let Some(folder) = folder(&format!("hangs-{way}"), &[way, "HANGS"]) else { return };
        let (ended, report, runs) = simulated(&["--pedantic", "--timeout=10"], &folder);
        assert_eq!((ended.code(), runs), (Some(66), 2), "{way}: {}", ended.err);
        assert_eq!(report["findings"][0]["confidence"], confidence, "{way}: {}", ended.err);
        assert!(ended.err.contains(&format!("  second run: {told}\n")), "{way}: {}", ended.err);
        let note = "not settled by the second run: timed out: 10 s were not enough\n";
        assert_eq!(ended.err.contains(note), way == "APART", "{way}: {}", ended.err);
    }
}

#[test]
fn a_race_with_another_partner_is_named_as_the_reason() {
    let Some(folder) = folder("partner", &["PARTNER"]) else { return };
    let (ended, report, _) = simulated(&[], &folder);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let of = [(&json!("certain"), &json!("call")), (&json!("likely"), &json!("code"))];
    assert_eq!(certainties(&report), of, "{}", ended.err);
    let note = "not settled by the second run: the later operation races with another one, which refutes nothing\n";
    assert!(ended.err.contains(note), "{}", ended.err);
}

/// A hunt of `touching` with these words, which a script lists as CTest would.
fn touching(name: &str, words: &[&str], patch: bool) -> (Ended, Value) {
    let program = build::c_program("touching.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let folder = build::scratch(&format!("hunt-twice-{name}"));
    let tools = folder.with_extension("tools");
    std::fs::create_dir_all(&tools).expect("a folder");
    std::fs::write(folder.join("CTestTestfile.cmake"), "").expect("written");
    let command: Vec<String> =
        std::iter::once(program.display().to_string()).chain(words.iter().map(|w| (*w).into())).collect();
    let list = json!({ "kind": "ctestInfo", "tests": [{ "name": "touching", "command": command, "properties": [] }] });
    let ctest = tools.join("ctest");
    std::fs::write(&ctest, format!("#!/bin/sh\ncat <<'END'\n{list}\nEND\n")).expect("written");
    std::fs::set_permissions(&ctest, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let (fatbin, json) = (tools.join("exact.fatbin"), folder.with_extension("json"));
    if patch {
        std::fs::write(&fatbin, "what the fake loads nobody looks at").expect("a file");
    }
    let mut command: Command = streamsan(["hunt", "--pedantic", "--fail-on=possible"]);
    command.arg("--sanitizer-library").arg(sanitizer()).arg("--exact-patch").arg(&fatbin).arg("--json").arg(&json);
    let path = std::env::var("PATH").unwrap_or_default();
    let ended = end(command.arg(&folder).env("PATH", format!("{}:{path}", tools.display())));
    let text = std::fs::read(&json).unwrap_or_else(|e| panic!("{}: {e}\n{}", json.display(), ended.err));
    (ended, serde_json::from_slice(&text).expect("JSON"))
}

#[test]
fn a_gpu_measures_where_it_can() {
    for (from, code, told) in [("100", 0, "not touched together"), ("99", 66, "confirmed")] {
        let (ended, report) = touching("gpu", &[from, "10"], true);
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        assert!(ended.err.contains(told) && !ended.err.contains("not settled"), "{}", ended.err);
        assert!(certainties(&report).iter().all(|f| *f == (&json!("certain"), &json!("exact"))), "{}", ended.err);
    }
    // Without the patch the findings stay, and the reason is told.
    let (ended, report) = touching("gpu-bare", &["100", "10"], false);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let second = &report["programs"][0]["second_run"];
    assert_eq!((&second["made"], &second["withdrawn"]), (&json!(false), &json!(0)), "{second}");
    assert!(ended.err.contains("not measured in a second run: --confirm needs "), "{}", ended.err);
}
