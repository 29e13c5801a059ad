//! Reads of `__constant__` variables, in each way that compilers make them, and pointers that lie
//! in variables: as PTX and as machine code, optimised and not. Each kernel of one program races
//! with a copy to what it reads, and its twin does not.

use std::collections::BTreeMap;

use serde_json::Value;
use tests::{build, run};

/// The kernels that read variables, and those that go through pointers in variables.
const KERNELS: [&str; 28] = [
    "first",
    "second",
    "second_all",
    "third",
    "backwards",
    "before",
    "both",
    "guarded",
    "counted",
    "wide",
    "vector",
    "narrow",
    "member",
    "choice",
    "choice_of_two",
    "callee",
    "callee_choice",
    "stepped",
    "through",
    "through_second",
    "through_rows",
    "through_member",
    "through_callee",
    "through_loop",
    "read_through",
    "through_device",
    "through_device_rows",
    "through_device_member",
];

/// The findings of a run, by kernel: how sure each is.
fn findings(options: &[&str], way: &str) -> Option<BTreeMap<String, Vec<String>>> {
    let program = build::cuda_program_if_possible("sim/constants.cu", "static", options)?;
    let json = build::scratch(&format!("constants-{way}{}", options.concat())).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--no-stacks", "--error-exitcode", "0", "--json"]);
    let ended = run::end(command.arg(&json).arg("--").arg(program).arg(way).env_remove("LD_LIBRARY_PATH"));
    assert_eq!((ended.code(), ended.out.trim()), (Some(0), "done"), "{options:?} {way}: {}", ended.err);
    let report: Value = serde_json::from_slice(&std::fs::read(&json).expect("a report")).expect("JSON");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in report["findings"].as_array().expect("findings") {
        let named = |side: &&str| finding[*side]["kernel"].as_str().filter(|kernel| !kernel.is_empty());
        let kernel = ["previous", "access"].iter().find_map(named).unwrap_or("?");
        let name = kernel.split('(').next().unwrap_or_default().to_owned();
        found.entry(name).or_default().push(finding["confidence"].as_str().unwrap_or_default().to_owned());
    }
    Some(found)
}

fn twins(options: &[&str]) {
    let Some(found) = findings(options, "racy") else { return };
    let missed: Vec<&str> = KERNELS.into_iter().filter(|name| !found.contains_key(*name)).collect();
    let unsure: Vec<_> = found.iter().filter(|(_, all)| all[..] != ["certain"]).collect();
    assert!(missed.is_empty() && unsure.is_empty(), "{options:?}: missed {missed:?}, other than certain: {unsure:?}");
    assert_eq!(found.len(), KERNELS.len(), "{options:?}: {found:?}");
    let alarms = findings(options, "clean").expect("it is compiled");
    assert!(alarms.is_empty(), "{options:?}: false alarms: {alarms:?}");
}

#[test]
fn optimised() {
    twins(&[]);
    twins(&["-arch=compute_80", "-code=compute_80"]);
    twins(&["-arch=compute_90", "-code=sm_90"]);
}

#[test]
fn debug() {
    twins(&["-G", "-arch=compute_80", "-code=compute_80"]);
    twins(&["-G", "-arch=compute_80", "-code=sm_80"]);
    twins(&["-G", "-arch=compute_90", "-code=sm_90"]);
}

#[test]
fn assembled_without_optimisation() {
    twins(&["-Xptxas", "-O0", "-arch=compute_80", "-code=sm_80"]);
}
