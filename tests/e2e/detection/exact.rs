//! Exact mode from end to end, against a fake of NVIDIA's Sanitizer API that knows what the fake
//! driver's kernels touch: tables, the way of ranges to the analyzer, and, with `--confirm`, the
//! way back.

use std::path::{Path, PathBuf};

use tests::run::{Ended, end, streamsan};
use tests::{build, fake};

pub fn sanitizer() -> PathBuf {
    let source = build::programs().join("fake/sanitizer.c");
    let args: Vec<String> = ["-O1", "-shared", "-fPIC", "-w", "-o", "{out}"].map(String::from).into();
    let args = [args, vec![source.display().to_string(), "-ldl".into()]].concat();
    build::cached("libsanitizer-public.so", Path::new("gcc"), &args, &[&source])
        .unwrap_or_else(|e| panic!("the fake API does not compile: {e}"))
}

/// Runs `touching` with these words, and options before them; answers its end and the JSON report.
fn touching(name: &str, options: &[&str], words: &[&str]) -> (Ended, serde_json::Value) {
    let program = build::c_program("touching.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let folder = build::scratch(&format!("exact-{name}"));
    let (report, patch) = (folder.join("report.json"), folder.join("exact.fatbin"));
    std::fs::write(&patch, "what the fake loads nobody looks at").expect("a file");
    let mut command = streamsan(["--sanitizer-library"]);
    command.arg(sanitizer()).arg("--exact-patch").arg(&patch).arg("--json").arg(&report).args(options);
    let ended = end(command.arg("--").arg(program).args(words));
    assert_eq!(ended.out, "done\n", "{}", ended.err);
    assert!(!ended.err.contains("without a word"), "{}", ended.err);
    let json = std::fs::read(&report).unwrap_or_else(|e| panic!("{}: {e}\n{}", report.display(), ended.err));
    (ended, serde_json::from_slice(&json).expect("JSON"))
}

fn patched(ended: &Ended) -> usize {
    ended.err.matches("fake sanitizer: patched\n").count()
}

#[test]
fn exact_ranges_decide() {
    for (from, code) in [("99", 66), ("100", 0)] {
        let (ended, json) = touching("exact", &["--exact=second", "--fail-on=possible"], &[from, "10", "3"]);
        // The pattern names one kernel of two: whether the other writes is not known, so what is
        // found is possible.
        assert_eq!(ended.code(), Some(66), "{}", ended.err);
        assert_eq!(json["findings"][0]["confidence"], "possible");
        let (ended, json) = touching("exact", &["--exact"], &[from, "10", "3"]);
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        let launches = &json["coverage"]["launches"];
        assert_eq!((&launches["measured"], &launches["total"]), (&9.into(), &9.into()), "{json:#}");
        if code != 0 {
            let f = &json["findings"][0];
            assert_eq!((&f["confidence"], &f["established"]), (&"certain".into(), &"exact".into()));
            assert_eq!((&f["bytes"]["from"], &f["bytes"]["to"]), (&99.into(), &100.into()));
            assert!(ended.err.contains("confidence=certain established=exact"), "{}", ended.err);
        }
    }
}

#[test]
fn what_the_code_decides_is_not_measured_again() {
    for (from, code) in [("96", 66), ("100", 0)] {
        for (mode, all) in [("--exact", false), ("--exact=all", true)] {
            let (ended, json) = touching("settled", &[mode], &[from, "4", "40", "code"]);
            assert_eq!(ended.code(), Some(code), "{mode}: {}", ended.err);
            let measured = json["coverage"]["launches"]["measured"].as_u64().expect("a number");
            // The other two kernels, of which there is no code, are measured every time.
            assert!(if all { measured == 120 } else { (80..120).contains(&measured) }, "{mode}: {measured} measured");
            assert!(
                json["findings"].as_array().expect("findings").iter().all(|f| f["confidence"] == "certain"),
                "{mode}"
            );
        }
    }
}

#[test]
fn nodes_of_graphs_are_measured_one_by_one() {
    for (from, code) in [("99", 66), ("100", 0)] {
        // Of three nodes two are of one kernel, in the same memory: as one they would meet nothing
        // less than all.
        let (ended, json) = touching("graph", &["--exact"], &[from, "10", "3", "graph"]);
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        let launches = &json["coverage"]["launches"];
        assert_eq!((&launches["measured"], &launches["total"]), (&12.into(), &12.into()), "{json:#}\n{}", ended.err);
        if code != 0 {
            let f = &json["findings"][0];
            assert_eq!((&f["confidence"], &f["established"]), (&"certain".into(), &"exact".into()));
            assert_eq!((&f["bytes"]["from"], &f["bytes"]["to"]), (&99.into(), &100.into()));
        }
        // One node of the three is not asked for, and keeps its prediction: nothing is known of its
        // kernel.
        let (ended, json) = touching("graph-pattern", &["--exact=second"], &[from, "10", "3", "graph"]);
        assert_eq!(json["coverage"]["launches"]["total"], 12, "{}", ended.err);
    }
}

#[test]
fn without_a_doubt_nothing_is_patched() {
    // One turn, which the second kernel spends elsewhere.
    let options = ["--confirm", "--no-stacks", "--no-require-cuda"];
    let (ended, json) = touching("confirm-none", &options, &["2048", "10", "0"]);
    assert_eq!((ended.code(), patched(&ended)), (Some(0), 0), "{}", ended.err);
    assert_eq!(json["coverage"]["launches"]["total"], 0);
}

#[test]
fn what_the_trial_refutes_is_withdrawn() {
    let (ended, json) = touching("confirm-clean", &["--confirm"], &["100", "10"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(json["findings"], serde_json::json!([]));
    assert_eq!(json["summary"]["withdrawn"], 1, "{}", ended.err);
    assert!(ended.err.contains("NOTE: 1 finding withdrawn: exact ranges do not meet"), "{}", ended.err);
    // Two modules of three; the first turns were not measured, nor was the third kernel ever.
    assert_eq!(patched(&ended), 2, "{}", ended.err);
    let measured = json["coverage"]["launches"]["measured"].as_u64().expect("a number");
    assert!((2..80).contains(&measured), "{measured} measured");
}

#[test]
fn what_the_trial_proves_becomes_certain() {
    let (ended, json) = touching("confirm-race", &["--confirm"], &["99", "10"]);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert_eq!((&json["summary"]["certain"], &json["summary"]["findings"]), (&1.into(), &1.into()), "{}", ended.err);
    let f = &json["findings"][0];
    assert_eq!((&f["established"], &f["bytes"]["from"]), (&"exact".into(), &99.into()));
    assert_eq!(json["summary"]["withdrawn"], 0);
}

#[test]
fn a_recorded_trial_is_judged_alike() {
    let trace = build::scratch("exact-trial").join("t.trace");
    let trace = trace.to_string_lossy();
    for (from, code) in [("99", 66), ("100", 0)] {
        let (ended, _) = touching("confirm-trace", &["--confirm", "-o", &trace], &[from, "10"]);
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        let again = end(streamsan(["check", "--confirm"]).arg(&*trace));
        assert_eq!(again.code(), Some(code), "{}", again.err);
        assert_eq!(again.err.contains("withdrawn"), code == 0, "{}", again.err);
    }
}

#[test]
fn code_that_can_not_be_patched_leaves_the_finding_as_it_is() {
    let program = build::c_program("touching.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let folder = build::scratch("exact-refused");
    std::fs::write(folder.join("exact.fatbin"), "x").expect("a file");
    // On demand two modules are tried, from the start all three.
    for (mode, tried) in [("--confirm", 2), ("--exact", 3)] {
        let mut command = streamsan([mode, "--sanitizer-library"]);
        command.arg(sanitizer()).arg("--exact-patch").arg(folder.join("exact.fatbin"));
        command.env("FAKE_SANITIZER_REFUSES", "1").arg("--").arg(&program);
        let ended = end(command.args(["100", "10", "20"]));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{mode}: {}", ended.err);
        let guess = "NOTE: 1 finding only if kernels of which nothing is known write";
        assert!(ended.err.contains(guess), "{mode}: {}", ended.err);
        assert!(ended.err.contains(&format!("code that could not be patched: {tried}")), "{mode}: {}", ended.err);
        assert!(!ended.err.contains("measured"), "{mode}: {}", ended.err);
    }
}

#[test]
fn code_of_executable_graphs_is_not_patched_on_demand() {
    let program = build::c_program("touching.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let folder = build::scratch("exact-held");
    std::fs::write(folder.join("exact.fatbin"), "x").expect("a file");
    for graph in ["held", "unknown"] {
        let mut command = streamsan(["--confirm", "--sanitizer-library"]);
        command.arg(sanitizer()).arg("--exact-patch").arg(folder.join("exact.fatbin"));
        let ended = end(command.env("FAKE_SANITIZER_GRAPH", graph).arg("--").arg(&program).args(["100", "10", "20"]));
        assert_eq!((ended.code(), ended.out.as_str(), patched(&ended)), (Some(0), "done\n", 0), "{}", ended.err);
        assert!(ended.err.contains("kernels in doubt that are part of executable graphs: 2"), "{}", ended.err);
    }
}

#[test]
fn nodes_of_graphs_stand_trial_too() {
    // The second kernel is patched while it is launched by itself; the graph is made afterwards.
    for (from, code) in [("99", 66), ("100", 0)] {
        let (ended, json) = touching("confirm-late-graph", &["--confirm"], &[from, "10", "60", "late"]);
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        let findings = json["findings"].as_array().expect("findings");
        assert!(findings.iter().all(|f| f["confidence"] == "certain" && f["established"] == "exact"), "{}", ended.err);
        assert_eq!(findings.len(), usize::from(code != 0) * 2, "by itself and as a node: {}", ended.err);
        assert_eq!(json["summary"]["withdrawn"], u32::from(code == 0), "{}", ended.err);
    }
}
