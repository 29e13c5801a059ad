//! Host functions of graphs, with `--host-accesses`: what they touch is ordered as their nodes are.

use serde_json::Value;
use tests::{build, run};

#[test]
fn a_host_function_of_a_graph_is_ordered_as_its_node() {
    let program = build::cuda_program_if_possible("sim/graph_functions.cu", "static", &["-w", "-std=c++17"]);
    let Some(program) = program else { return };
    let json = build::scratch("graph-functions").join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--host-accesses", "--json"]);
    let ended = run::end(command.arg(&json).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let mut cases = 0;
    for line in ended.out.lines().filter(|line| *line != "done") {
        let (size, rest) = line.split_once(' ').expect("a size");
        let size: u64 = size.parse().unwrap_or_else(|_| panic!("{line}"));
        let found: Vec<_> = findings.iter().filter(|f| f["allocation"]["size"] == size).collect();
        assert_eq!(!found.is_empty(), rest.starts_with("race "), "{line}: {found:#?}");
        assert!(found.iter().all(|f| f["host"] == true && f["confidence"] == "certain"), "{line}: {found:#?}");
        cases += 1;
    }
    assert_eq!(cases, 288, "{}{}", ended.out, ended.err);
    assert!(!ended.err.contains("not seen"), "{}", ended.err);
}
