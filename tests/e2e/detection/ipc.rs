//! Races between two processes of a run on memory that they share, against the fake driver: live,
//! and from one trace or two.

use tests::run::{end, streamsan};
use tests::{build, fake};

#[test]
fn two_processes_are_ordered_by_events_and_hosts_only() {
    let program = build::c_program("ipc.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    for (how, races) in [("nothing", true), ("early", true), ("event", false), ("host", false)] {
        let folder = build::scratch(&format!("across-{how}"));
        let (json, trace) = (folder.join("report.json"), folder.join("run.trace"));
        let found = |err: &str| err.contains("SUMMARY: 1 finding (1 certain, 0 likely), 1 occurrence, 2 processes");
        let ended = end(streamsan(["--json"]).arg(&json).arg("-o").arg(&trace).arg("--").arg(&program).arg(how));
        assert_eq!(
            (ended.code(), ended.out.as_str()),
            (Some(if races { 66 } else { 0 }), "done\n"),
            "{how}: {}",
            ended.err
        );
        assert!(ended.err.contains("0 calls not modelled"), "{}", ended.err);
        let later = end(streamsan(["check"]).arg(&trace));
        if !races {
            assert!(
                ended.err.contains("SUMMARY: 0 findings") && later.err.contains("SUMMARY: 0 findings"),
                "{how}: {}",
                ended.err
            );
            continue;
        }
        assert!(found(&ended.err) && found(&later.err), "{how}: {}\nlater: {}", ended.err, later.err);
        let report: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
        let finding = &report["findings"][0];
        assert_eq!(
            (&finding["hazard"], &finding["access"]["call"]),
            (&"read-after-write".into(), &"cuMemcpyDtoDAsync".into())
        );
        assert_eq!(
            (&finding["previous"]["call"], &finding["allocation"]["call"]),
            (&"cuMemsetD8Async".into(), &"cuMemAlloc".into())
        );
        let (earlier, access) = (&finding["previous"]["pid"], &finding["access"]["pid"]);
        assert!(earlier.is_u64() && access.is_u64() && earlier != access, "{finding}");
        assert!(
            ended.err.contains(&format!("of process {earlier}")) && ended.err.contains("share this memory"),
            "{}",
            ended.err
        );
    }
}
