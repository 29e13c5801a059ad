//! Races between two processes on memory that goes from one to the other as a file descriptor or as
//! a fabric handle, on the simulated GPU: `descriptors.c`.

use serde_json::Value;
use tests::run::{Ended, end, streamsan};
use tests::{build, fake};

/// Runs it on the simulated GPU: how it ended, and its report.
fn run(order: &str, how: &str) -> (Ended, Value) {
    let program = build::c_program("descriptors.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let folder = build::scratch(&format!("descriptors-{order}-{how}"));
    let (json, trace) = (folder.join("report.json"), folder.join("run.trace"));
    let mut command = streamsan(["--sim", "--json"]);
    let ended = end(command.arg(&json).arg("-o").arg(&trace).arg("--").arg(&program).args([order, how]));
    // The trace says the same as the run.
    let later = end(streamsan(["check"]).arg(&trace));
    let summary = |text: &str| text.lines().find(|line| line.contains("SUMMARY:")).map(str::to_owned);
    assert_eq!(summary(&ended.err), summary(&later.err), "{order} {how}: {}\nlater: {}", ended.err, later.err);
    let report = std::fs::read_to_string(&json).unwrap_or_else(|_| panic!("{order} {how}: {}", ended.err));
    (ended, serde_json::from_str(&report).expect("JSON"))
}

#[test]
fn memory_behind_a_descriptor_is_one_memory_in_both_processes() {
    for how in ["fd", "twice", "released", "fabric", "pool"] {
        let allocates = if how == "pool" { "cuMemAllocFromPoolAsync" } else { "cuMemMap" };
        for order in ["nothing", "early"] {
            let (ended, report) = run(order, how);
            assert_eq!(ended.code(), Some(66), "{order} {how}: {}", ended.err);
            assert!(ended.err.contains("0 calls not modelled"), "{how}: {}", ended.err);
            let findings = report["findings"].as_array().expect("a list");
            assert_eq!(findings.len(), 1, "{order} {how}: {}", ended.err);
            let finding = &findings[0];
            assert_eq!((&finding["hazard"], &finding["confidence"]), (&"read-after-write".into(), &"certain".into()));
            assert_eq!(
                (&finding["previous"]["call"], &finding["access"]["call"], &finding["allocation"]["call"]),
                (&"cuMemsetD8Async".into(), &"cuMemcpyDtoDAsync".into(), &allocates.into())
            );
            assert_ne!(finding["previous"]["pid"], finding["access"]["pid"], "{finding}");
        }
        for order in ["event", "host"] {
            let (ended, _) = run(order, how);
            assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "1\n"), "{order} {how}: {}", ended.err);
            assert!(ended.err.contains("SUMMARY: 0 findings"), "{order} {how}: {}", ended.err);
            assert!(!ended.err.contains("not observed"), "{order} {how}: {}", ended.err);
        }
    }
}

/// All descriptors stand for one file: what tells two memories apart is not the file.
#[test]
fn another_memory_of_the_same_file_is_not_taken_for_it() {
    let (ended, _) = run("nothing", "other");
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "0\n"), "{}", ended.err);
    assert!(ended.err.contains("SUMMARY: 0 findings") && ended.err.contains("0 calls not modelled"), "{}", ended.err);
}

#[test]
fn what_is_not_matched_is_counted_by_name() {
    let (ended, _) = run("nothing", "anew");
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("1 call not modelled (cuMemImportFromShareableHandle"), "{}", ended.err);
}

#[test]
fn a_process_that_imports_its_own_memory_has_it_twice() {
    let (ended, report) = run("nothing", "self");
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1), "{}", ended.err);
    let (ended, _) = run("event", "self");
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "alone\n"), "{}", ended.err);
}
