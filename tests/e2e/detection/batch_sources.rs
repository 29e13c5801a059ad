//! Sources of batched copies that the host changes before the copy is over: pageable memory too, by
//! the order in which the program lets the source be accessed, and by policy.

use std::collections::BTreeSet;

use serde_json::Value;
use tests::{build, run};

/// The cases with a finding, as the program names them, and what it prints of all.
fn found(policy: &str) -> Option<(BTreeSet<String>, String)> {
    let program = build::cuda_program_if_possible("sim/batch_sources.cu", "static", &["-w"])?;
    let json = build::scratch(&format!("batch-sources-{policy}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--host-accesses", "--policy", policy, "--json"]);
    let ended = run::end(command.arg(&json).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let mut cases = BTreeSet::new();
    for finding in report["findings"].as_array().expect("findings") {
        assert_eq!((&finding["hazard"], &finding["host"]), (&"write-after-read".into(), &true.into()), "{finding}");
        let frames = finding["previous"]["stack"].as_array().expect("a stack");
        let name = frames.iter().find_map(|f| f["function"].as_str()?.split("test<").nth(1)?.split('>').next());
        cases.insert(name.unwrap_or_else(|| panic!("{finding}")).replace(", ", ","));
    }
    Some((cases, ended.out))
}

fn judge(policy: &str, when: &[&str]) {
    let Some((found, out)) = found(policy) else { return };
    let mut cases = 0;
    for line in out.lines().filter(|line| *line != "done") {
        let (case, verdict) = line.split_once(' ').expect("a verdict");
        assert_eq!(found.contains(case), when.contains(&verdict), "{policy}: memory, order, deed, function {line}");
        cases += 1;
    }
    assert_eq!(cases, 240, "{out}");
}

#[test]
fn a_source_in_stream_order_is_the_copys_until_it_is_over_by_the_documents() {
    judge("documented", &["always", "documented"]);
}

#[test]
fn drivers_read_a_pageable_source_in_the_call() {
    judge("observed", &["always"]);
}
