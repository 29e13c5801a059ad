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
    let extra = [&["-w", "-lineinfo"][..], code].concat();
    let Some(program) = build::cuda_program_if_possible("sim/programmatic.cu", "shared", &extra) else { return };
    let (all, named) = found(&program, name, args);
    let is_machine_code = code != PTX;
    let is_racy = |kernel: &&str| match kernel.split_once('_').expect("a prefix").0 {
        "racy" => true,
        // A race that the source does not have, and one that machine code does not have: see the
        // program.
        "moved" => is_machine_code,
        "lanes" => !is_machine_code,
        _ => false,
    };
    let racy: BTreeSet<&str> = all.iter().map(String::as_str).filter(is_racy).collect();
    let reported: BTreeSet<&str> = named.iter().map(|(kernel, _)| kernel.as_str()).collect();
    // A kernel in the middle of a chain that never waits may overlap the first one, too, but they
    // share no bytes.
    assert_eq!(reported, racy, "{name}");
    assert!(all.len() > 60 && racy.len() > 28, "{name}: {all:?}");
    for (kernel, says) in &named {
        let never = ["never_waits", "compiled_out", "trigger", "behind_neither", "record_between"];
        let public = ["new_kernel", "old_code", "published", "released", "registered", "by_default"];
        let waits = says.contains("before they have waited, or never wait");
        let is_never = never.iter().chain(&public).any(|of| kernel.ends_with(of)) && !kernel.contains("early");
        assert_eq!(waits, !is_never, "{name}: {kernel}: {says}");
        // The source has the access below the wait, which is for some turns or threads only.
        let below = ["second_turn", "epilogue", "one_branch", "other_half"];
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
    let extra = [&["-w", "-lineinfo"][..], code].concat();
    let Some(program) = build::cuda_program_if_possible("sim/programmatic.cu", "shared", &extra) else { return };
    let right = left(&program, how, &format!("schedule=in-order{form}"));
    assert!(right.len() > 60, "{name}: {right:?}");
    let is_lanes = |kernel: &str| form.is_empty() && kernel.starts_with("lanes_");
    let is_visible = |kernel: &str| kernel.starts_with("racy_") || is_lanes(kernel);
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

/// The kernels of a form that `tests/programs/sim/handed_waits.cu` names by numbers, with the
/// numbers and how sure the finding is.
fn rated(name: &str, code: &[&str]) -> Option<BTreeMap<(String, Vec<u32>), String>> {
    let extra = [&["-w", "-lineinfo"][..], code].concat();
    let program = build::cuda_program_if_possible("sim/handed_waits.cu", "shared", &extra)?;
    let json = build::scratch(&format!("handed-waits-{name}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--json"]);
    command.arg(&json).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH").env_remove("STREAMSAN_SIM");
    let ended = run::end(&mut command);
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let mut rated = BTreeMap::new();
    for finding in report["findings"].as_array().expect("findings") {
        let kernel = finding["access"]["kernel"].as_str().expect("a kernel").trim_start_matches("void ");
        let kernel = kernel.replace("(int)", "").replace("(bool)", "").replace("true", "1").replace("false", "0");
        let (function, numbers) = kernel.split_once('<').expect("numbers");
        let numbers = numbers.split('>').next().unwrap().split(", ").map(|n| n.parse().expect("a number")).collect();
        rated.insert((function.to_owned(), numbers), finding["confidence"].as_str().expect("one").to_owned());
    }
    Some(rated)
}

const WHERES: [&str; 8] = ["lane", "warp", "elected", "loop", "parameter", "data", "early return", "thread"];
const HOWS: [&str; 7] = ["nothing", "syncwarp", "barrier", "named", "cluster", "mbarrier", "flag"];

/// How sure a finding must be of a kernel in which threads read behind what hands the wait of
/// others on to them; `None`: there must be none. `mended`: it does so behind that wait.
fn of_handed(wait: &str, how: &str, mended: bool, is_machine_code: bool) -> Option<&'static str> {
    let one_in_each_warp = ["lane", "elected", "loop", "parameter", "early return"].contains(&wait);
    // Machine code joins the lanes of a warp by itself. (Of a cluster one block waits.)
    if is_machine_code && how != "cluster" && one_in_each_warp {
        return None;
    }
    let is_handed = match how {
        "nothing" => false,
        "syncwarp" => one_in_each_warp || wait == "data",
        _ => true,
    };
    match (wait, how) {
        // The other blocks of a cluster never wait, and which block is which is followed.
        (_, "cluster") if !mended && wait != "loop" => Some("certain"),
        // What threads poll is not followed, and neither is a branch within a branch.
        (_, "flag") => Some("likely"),
        ("data", "syncwarp") => Some("likely"),
        ("elected" | "data", "cluster") => Some("likely"),
        ("parameter", "cluster") if !is_machine_code => Some("likely"),
        _ if is_handed && mended => None,
        // In a later turn, an object is told of behind the wait of the first one.
        ("loop", "mbarrier") => None,
        // Data decide whether there is a wait, or the code which turn it is in front of.
        ("data", _) | (_, "cluster") => Some("likely"),
        ("loop", "syncwarp" | "barrier" | "named") => Some("likely"),
        _ => Some("certain"),
    }
}

fn hands(name: &str, code: &[&str]) {
    let Some(rated) = rated(name, code) else { return };
    let (mut silent, mut racy) = (0, 0);
    for (w, wait) in (0..).zip(WHERES) {
        for (h, how) in (0..).zip(HOWS) {
            for mended in [false, true] {
                let found = rated.get(&("form".to_owned(), vec![w, h, u32::from(mended)])).map(String::as_str);
                let wanted = of_handed(wait, how, mended, code != PTX);
                assert_eq!(found, wanted, "{name}: {wait}, {how}, mended: {mended}");
                silent += u32::from(mended && found.is_none());
                racy += u32::from(!mended && found.is_some());
            }
        }
    }
    assert!(silent >= 30 && racy >= 20, "{name}: {silent} {racy}");
    // The launch decides whether the kernel in front triggers: by a parameter (on, off), in one
    // block, in all but one, in one thread of each, by data, by the shape (on, off).
    let whens = [Some("certain"), None, Some("likely"), Some("likely"), Some("certain"), Some("likely")];
    for (n, wanted) in (0..).zip(whens.into_iter().chain([Some("certain"), None])) {
        let found = |kernel: &str| rated.get(&(kernel.to_owned(), vec![n])).map(String::as_str);
        assert_eq!(found("never_waits"), wanted, "{name}: {n}");
        assert_eq!(found("waits"), None, "{name}: {n}");
    }
    // Blocks that store end without a trigger. Where another one triggers, only a wait orders them
    // (PTX ISA, griddepcontrol, the note); where none does, the dependent begins behind all of it.
    for (n, wanted) in [(0, None), (1, Some("likely"))] {
        let found = |kernel: &str| rated.get(&(kernel.to_owned(), vec![n])).map(String::as_str);
        assert_eq!(found("reads_of_others"), wanted, "{name}: {n}");
        assert_eq!(found("waits_for_others"), None, "{name}: {n}");
    }
}

#[test]
fn what_hands_a_wait_on_in_ptx() {
    hands("ptx", &PTX);
}

#[test]
fn what_hands_a_wait_on_in_machine_code() {
    hands("sass", &MACHINE);
}

/// Each wait and trigger of a program is said to gain nothing, or is needed: its kernels say which.
#[test]
fn waits_and_triggers_that_gain_nothing_are_listed() {
    for (name, code) in [("ptx", &PTX[..]), ("sass", &MACHINE[..])] {
        let extra = [&["-w", "-lineinfo"][..], code].concat();
        let Some(program) = build::cuda_program_if_possible("sim/superfluous_waits.cu", "shared", &extra) else {
            return;
        };
        ["stream", "capture", "built", "completion"].iter().for_each(|mode| listed(&program, name, mode));
    }
}

fn listed(program: &Path, name: &str, mode: &str) {
    let case = format!("{name} {mode}");
    let folder = build::scratch(&format!("superfluous-waits-{name}-{mode}"));
    let (trace, listed) = (folder.join("t"), folder.join("excess.json"));
    let mut recorded = run::streamsan(["run", "--sim", "-o"]);
    let ended = run::end(recorded.arg(&trace).arg("--").arg(program).arg(mode).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.code(), Some(0), "{case}: {}", ended.err);
    let ended = run::end(run::streamsan(["excess", "--json"]).arg(&listed).arg(&trace));
    assert_eq!(ended.code(), Some(0), "{case}: {}", ended.err);
    let text = std::fs::read_to_string(&listed).expect("a file");
    let listed: Value = serde_json::from_str(&text).expect("JSON");
    let source = std::fs::read_to_string(build::programs().join("sim/superfluous_waits.cu")).expect("a program");
    let mut wanted = BTreeSet::new();
    for (number, line) in (1..).zip(source.lines()) {
        let Some((before, what)) = line.split_once("// superfluous: ") else { continue };
        let kernel = before.split("void ").nth(1).and_then(|rest| rest.split('(').next()).expect("a kernel");
        let at = format!("superfluous_waits.cu:{number}");
        let (by_trigger, by_start) = what.split_once(", ").expect("two kinds of edges");
        let what = if mode == "completion" { by_start } else { by_trigger };
        wanted.extend((what != "-").then(|| (kernel.to_owned(), what.to_owned(), at)));
    }
    let process = &listed["processes"][0];
    let all = process["dependents"].as_array().expect("a list");
    let found = all.iter().map(|of| {
        let word = |of: &Value| of.as_str().expect("a word").to_owned();
        let kernel = word(&of["kernel"]).split('(').next().unwrap_or_default().to_owned();
        (kernel, word(&of["what"]), word(&of["at"][0]))
    });
    let found: BTreeSet<_> = found.collect();
    assert_eq!(found, wanted, "{case}: {}", process["notes"]);
}
