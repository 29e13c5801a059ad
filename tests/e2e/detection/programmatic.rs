//! Kernels that may begin before the kernel in front of them has ended (programmatic dependent
//! launch): which of their accesses race with it, by the place of the wait in their code. The forms
//! are those of public reports, with their mended twins and with others that must stay silent.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tests::{build, run};

/// The second kernels of the program's pairs, and those that findings name, with what they say.
fn found(program: &Path, name: &str, args: &[&str]) -> (BTreeSet<String>, BTreeSet<(String, String)>) {
    let json = build::scratch(&format!("programmatic-{name}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--json"]);
    command.arg(&json).args(args.iter().filter(|arg| arg.starts_with("--"))).arg("--").arg(program);
    command.args(args.iter().filter(|arg| !arg.starts_with("--")));
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env_remove("STREAMSAN_SIM"));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let kernel = |side: &Value| side["kernel"].as_str().unwrap_or_default().split('(').next().unwrap().to_owned();
    let mut named = BTreeSet::new();
    for finding in report["findings"].as_array().expect("findings") {
        named.insert((kernel(&finding["access"]), finding["synchronisation"].to_string()));
        assert!(!finding["access"]["kernel"].is_null(), "{finding}");
    }
    (ended.out.lines().map(str::to_owned).collect(), named)
}

fn judge(name: &str, code: &[&str], args: &[&str]) {
    let extra = [&["-w", "-std=c++17", "-lineinfo"][..], code].concat();
    let Some(program) = build::cuda_program_if_possible("sim/programmatic.cu", "shared", &extra) else { return };
    let (all, named) = found(&program, name, args);
    let is_machine_code = code != PTX;
    let is_racy = |kernel: &&str| match kernel.split_once('_').expect("a prefix").0 {
        "racy" => true,
        // The first is a race that the source does not have, the second a false alarm: see the
        // program.
        "moved" | "warp" => is_machine_code,
        _ => false,
    };
    let racy: BTreeSet<&str> = all.iter().map(String::as_str).filter(is_racy).collect();
    let reported: BTreeSet<&str> = named.iter().map(|(kernel, _)| kernel.as_str()).collect();
    // A kernel in the middle of a chain that never waits may overlap the first one, too, but they
    // share no bytes.
    assert_eq!(reported, racy, "{name}");
    assert!(all.len() > 45 && racy.len() > 20, "{name}: {all:?}");
    for (kernel, says) in &named {
        let never = ["never_waits", "compiled_out", "trigger", "behind_neither", "record_between"];
        let waits = says.contains("before they have waited, or never wait");
        let is_never = never.iter().any(|of| kernel.ends_with(of)) && !kernel.contains("early");
        assert_eq!(waits, !is_never, "{name}: {kernel}: {says}");
    }
}

const MACHINE: [&str; 1] = ["-arch=sm_90"];
const PTX: [&str; 2] = ["-arch=compute_90", "-code=compute_90"];

#[test]
fn accesses_before_the_wait_race_in_machine_code() {
    judge("sass", &MACHINE, &["stream"]);
}

#[test]
fn accesses_before_the_wait_race_in_ptx() {
    judge("ptx", &PTX, &["stream"]);
}

#[test]
fn accesses_before_the_wait_race_in_captured_graphs() {
    judge("graph", &MACHINE, &["capture"]);
}

#[test]
fn accesses_before_the_wait_race_where_bytes_are_measured() {
    judge("exact", &MACHINE, &["--exact", "stream"]);
}
