//! Events in the middle of graphs: what waits for one comes after the nodes in front of it, and
//! after no others; what comes before one comes before the nodes behind it, and before no others.

use serde_json::Value;
use tests::{build, run};

#[test]
fn an_event_inside_a_graph_orders_the_nodes_on_its_side() {
    let program = build::cuda_program_if_possible("sim/graph_events.cu", "static", &["-w"]);
    let Some(program) = program else { return };
    let json = build::scratch("graph-events").join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--json"]);
    let ended = run::end(command.arg(&json).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let (mut cases, mut races) = (0, 0);
    for line in ended.out.lines().filter(|line| *line != "done") {
        let (size, rest) = line.split_once(' ').expect("a size");
        let size: u64 = size.parse().unwrap_or_else(|_| panic!("{line}"));
        let found: Vec<_> = findings.iter().filter(|f| f["allocation"]["size"] == size).collect();
        assert_eq!(!found.is_empty(), rest.starts_with("race "), "{line}: {found:#?}");
        assert!(found.iter().all(|f| f["confidence"] == "certain"), "{line}: {found:#?}");
        cases += 1;
        races += usize::from(rest.starts_with("race "));
    }
    assert_eq!(cases, 640, "{}{}", ended.out, ended.err);
    assert!((200..400).contains(&races), "{races} races");
}
