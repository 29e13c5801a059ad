//! Atomic accesses of the memory model: methods of libcu++ by size and scope, each against an
//! access of another kernel. The program says which pairs are races.

use std::collections::BTreeSet;

use serde_json::Value;
use tests::{build, run};

/// The template arguments of a kernel but the last, which says whose it is.
fn arguments(kernel: &Value) -> String {
    let text = kernel.as_str().unwrap_or_default();
    let inside = text.split_once("touch<").and_then(|(_, rest)| rest.split_once('>')).map_or("", |found| found.0);
    inside.rsplit_once(", ").map_or("", |found| found.0).replace("(int)", "")
}

/// Every racy pair is found, and no other.
fn judge(code: &str, options: &[&str]) {
    let program = build::cuda_program_if_possible("sim/atomics.cu", "static", &["-w"]);
    let Some(program) = program else { return };
    let json = build::scratch(&format!("atomics-{code}{}", options.concat())).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--no-stacks", "--quiet"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(program);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings").iter();
    let found: BTreeSet<String> = findings
        .map(|f| format!("{} | {}", arguments(&f["previous"]["kernel"]), arguments(&f["access"]["kernel"])))
        .collect();
    let pairs: Vec<(&str, &str)> = ended.out.lines().filter_map(|line| line.split_once(' ')).collect();
    assert!(pairs.len() > 150, "{code}: {}", ended.out);
    for (verdict, pair) in pairs {
        let key = pair.rsplit_once(" | ").map_or("", |found| found.0);
        assert_eq!(found.contains(key), verdict == "race", "{code} {options:?}: {verdict}: {pair}");
    }
}

#[test]
fn methods_of_libcudacxx_are_atomic_by_scope_in_ptx() {
    judge("ptx", &[]);
}

#[test]
fn methods_of_libcudacxx_are_atomic_by_scope_in_machine_code() {
    judge("sass", &[]);
}

#[test]
fn measured_accesses_are_as_atomic_as_predicted_ones() {
    judge("ptx", &["--exact"]);
    judge("sass", &["--exact"]);
}
