//! Causes from end to end: the trial of the mending waits, and waits that the user writes down.
//! Runs against the fake driver, and for captured graphs on the simulated GPU.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::run::{end, streamsan};
use tests::{build, fake};

fn racy() -> PathBuf {
    build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).expect("written")).expect("JSON")
}

#[test]
fn a_live_run_tries_what_it_offers() {
    let folder = build::scratch("causes-live");
    let file = folder.join("report.json");
    let ended = end(streamsan(["run", "--json"]).arg(&file).arg("--").arg(racy()));
    assert!(ended.err.contains("streamsan: TRIED: adding this wait removes the finding"), "{}", ended.err);
    let report = json(&file);
    assert_eq!(report["summary"]["causes"], 1);
    assert_eq!((&report["tried"]["remain"], &report["tried"]["waits"]), (&0.into(), &1.into()));
    let cause = &report["causes"][0];
    assert_eq!((&cause["kind"], &cause["tried"]), (&"missing-wait".into(), &true.into()));
    assert_eq!(report["findings"][0]["cause"], cause["fingerprint"]);
    // A suppression of the cause covers all its findings.
    let list = folder.join("suppressions");
    let fingerprint = cause["fingerprint"].as_str().expect("a fingerprint");
    for (text, code) in [(format!("cause:{fingerprint}\n"), 0), ("cause:0123\n".to_string(), 66)] {
        std::fs::write(&list, text).expect("written");
        let ended = end(streamsan(["run", "--suppressions"]).arg(&list).arg("--").arg(racy()));
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
    }
}

/// Formats for other programs name the cause of each finding, and a baseline may accept it whole.
#[test]
fn a_cause_is_carried_by_every_format_and_accepted_by_a_baseline() {
    let folder = build::scratch("causes-carried");
    let (trace, report) = (folder.join("racy.trace"), folder.join("report.json"));
    let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(racy()));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let files = ["sarif", "junit", "html"].map(|format| (format!("--{format}"), folder.join(format)));
    let mut check = streamsan(["check", "--json"]);
    check.arg(&report);
    for (option, file) in &files {
        check.arg(option).arg(file);
    }
    assert_eq!(end(check.arg(&trace)).code(), Some(66));
    let cause = json(&report)["causes"][0]["fingerprint"].as_str().expect("a fingerprint").to_owned();
    for (option, file) in &files {
        let text = std::fs::read_to_string(file).expect("written");
        assert!(text.contains(&cause), "{option} has no {cause}");
    }
    let baseline = folder.join("baseline.json");
    for (known, code) in [(&*cause, 0), ("0123456789abcdef", 66)] {
        std::fs::write(&baseline, format!("{{\"findings\": [{{\"cause\": \"{known}\"}}]}}")).expect("written");
        let ended = end(streamsan(["check", "--baseline"]).arg(&baseline).arg(&trace));
        assert_eq!(ended.code(), Some(code), "{known}: {}", ended.err);
    }
}

#[test]
fn a_trace_is_checked_with_the_waits_of_a_file() {
    let folder = build::scratch("causes-with");
    let (trace, waits) = (folder.join("racy.trace"), folder.join("waits"));
    let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(racy()));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    for (text, code, says) in [
        ("# mended\nracy.c:14 -> racy.c:19\n", 0, "WITH: racy.c:14 -> racy.c:19"),
        ("racy.c:19 -> racy.c:14\n", 66, "the second place always came before the first"),
        ("racy.c:1 -> racy.c:2\n", 66, "nothing was submitted at either place"),
        ("racy.c:14\n", 2, "is no wait; write 'FILE:LINE -> FILE:LINE'"),
    ] {
        std::fs::write(&waits, text).expect("written");
        let ended = end(streamsan(["check", "--with"]).arg(&waits).arg(&trace));
        assert_eq!(ended.code(), Some(code), "{text}: {}", ended.err);
        assert!(ended.err.contains(says), "{text}: {}", ended.err);
    }
    let ended = end(streamsan(["check", "--with", "/nowhere/waits"]).arg(&trace));
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
}

/// In a captured graph the mend is a wait between the captured streams, by their names.
#[test]
fn captured_streams_are_named_and_a_wait_between_them_mends_the_graph() {
    let source = build::programs().join("report/captured_streams.cu");
    let program = build::cuda_program(&source, "shared", &[]).expect("compiled");
    let folder = build::scratch("causes-captured");
    let (trace, waits) = (folder.join("captured.trace"), folder.join("w"));
    let ended = end(streamsan(["record", "--sim", "-o"]).arg(&trace).arg("--").arg(&program));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = end(streamsan(["check"]).arg(&trace));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    for line in [
        "cudaEventRecord(event, stream_2);         // after the previous access, captured_streams.cu:38, inside the capture",
        "cudaStreamWaitEvent(stream_1, event, 0);  // before this access, captured_streams.cu:43, inside the capture",
        "streamsan: TRIED: making this change removes the finding without deadlock",
    ] {
        assert!(ended.err.contains(line), "{line}: {}", ended.err);
    }
    for (text, code, says) in [
        ("captured_streams.cu:38 -> captured_streams.cu:43", 0, "(w:1): 1 wait added"),
        ("captured_streams.cu:38 -> captured_streams.cu:48", 66, "only one of the two places is captured"),
    ] {
        std::fs::write(&waits, text).expect("written");
        let ended = end(streamsan(["check", "--with", "w"]).arg(&trace).current_dir(&folder));
        assert_eq!(ended.code(), Some(code), "{text}: {}", ended.err);
        assert!(ended.err.contains(says), "{text}: {}", ended.err);
    }
    let ended = end(streamsan(["run", "--sim", "--"]).arg(&program).arg("mended"));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
}
