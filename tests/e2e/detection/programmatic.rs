//! Kernels that may begin before the kernel in front of them has ended (programmatic dependent
//! launch): which of their accesses race with it, by the place of the wait in their code. The forms
//! are those of public reports, with their mended twins and with others that must stay silent.

use std::collections::{BTreeMap, BTreeSet};
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
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    (ended.out.lines().map(name).collect(), named)
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
        // The source has the access below the wait, which is for some turns or threads only.
        let below = ["second_turn", "epilogue", "one_branch", "other_half", "lane_for_warp"];
        let is_below = below.iter().any(|of| kernel.ends_with(of));
        assert_eq!(says.contains("is below the wait at"), is_below, "{name}: {kernel}: {says}");
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

/// What each pair of kernels leaves in memory: a hash.
fn left(program: &Path, how: &str, options: &str) -> BTreeMap<String, String> {
    let mut command = run::streamsan(["run", "--sim", "--off", "--"]);
    command.arg(program).args(how.split(' ')).env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", options);
    let ended = run::end(&mut command);
    assert_eq!(ended.code(), Some(0), "{options}: {}", ended.err);
    let line = |line: &str| line.split_once(' ').map(|(name, hash)| (name.to_owned(), hash.to_owned()));
    ended.out.lines().filter_map(line).collect()
}

/// On the simulated GPU a dependent kernel begins when all blocks have triggered or ended, in the
/// schedules that hold work: what it does too early shows in its results, and nothing else does.
fn shows(name: &str, how: &str, code: &[&str], form: &str) {
    let extra = [&["-w", "-std=c++17", "-lineinfo"][..], code].concat();
    let Some(program) = build::cuda_program_if_possible("sim/programmatic.cu", "shared", &extra) else { return };
    let right = left(&program, how, &format!("schedule=in-order{form}"));
    assert!(right.len() > 45, "{name}: {right:?}");
    // In machine code the lanes of a warp meet behind the branch in which some of them wait.
    let is_met = |kernel: &str| !form.is_empty() && kernel == "racy_one_branch";
    let is_visible = |kernel: &str| kernel.starts_with("racy_") && !is_met(kernel);
    let late = left(&program, how, &format!("schedule=late-first{form}"));
    for (kernel, hash) in &right {
        assert_eq!(late[kernel] != *hash, is_visible(kernel), "{name}: {kernel} in late-first");
    }
    let mut shown = BTreeSet::new();
    for seed in 1..=3 {
        let random = left(&program, how, &format!("schedule=random:seed={seed}{form}"));
        for (kernel, hash) in right.iter().filter(|(kernel, hash)| random[*kernel] != **hash) {
            assert!(is_visible(kernel), "{name}: {kernel} in seed {seed}: {hash}");
            shown.insert(kernel.clone());
        }
    }
    let all = right.keys().filter(|kernel| is_visible(kernel)).count();
    assert!(2 * shown.len() > all, "{name}: {} of {all}: {shown:?}", shown.len());
    let eager = left(&program, how, &format!("schedule=eager{form}"));
    assert_eq!(eager, right, "{name}: kernels do not overlap here");
}

#[test]
fn results_show_what_kernels_do_too_early() {
    shows("PTX", "stream", &PTX, "");
}

#[test]
fn results_show_what_machine_code_does_too_early() {
    // (Texture fetches of machine code are refused.)
    shows("machine code", "stream -texture", &MACHINE, ":code=sass");
}

#[test]
fn results_show_what_nodes_do_too_early() {
    shows("graphs", "capture", &PTX, "");
}

/// Kernels that overlap and are right stay right: chains, clusters, grids that do not fit, threads
/// that spin for others, a fault before the wait.
#[test]
fn kernels_that_wait_are_right_whatever_overlaps() {
    for (name, code) in [("PTX", &PTX[..]), ("machine code", &MACHINE[..])] {
        let Some(program) = build::cuda_program_if_possible("sim/dependents.cu", "shared", code) else { return };
        let form = if name == "PTX" { "" } else { ":code=sass" };
        for schedule in ["in-order", "eager", "late-first", "random:seed=1", "random:seed=2"] {
            let mut command = run::streamsan(["run", "--sim", "--off", "--"]);
            let options = format!("schedule={schedule}{form}");
            let ended = run::end(command.arg(&program).env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", &options));
            assert_eq!(
                (ended.code(), ended.out.as_str()),
                (Some(0), "9 of 9 right\n"),
                "{name}, {options}: {}",
                ended.err
            );
        }
    }
}
