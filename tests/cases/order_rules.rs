//! The programs of `gpu/order_rules.cu` on the simulated GPU: CUDA's less used rules of order, each
//! as a race and its mended twin.
//!
//! What the simulator can not do stands in `NOT_SIMULATED`; a program there that gets the right
//! verdict fails.

use std::path::Path;

use libtest_mimic::Trial;
use serde_json::Value;
use tests::{build, product, run};

use crate::trial;

/// What the simulator can not do: it says so, or leaves out what the rule is about.
const NOT_SIMULATED: [&str; 1] = ["memory_operation_node"];

fn sim(program: &Path, case: &str, options: &[&str]) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "66"]);
    run::end(command.args(options).arg("--").arg(program).arg(case).env_remove("LD_LIBRARY_PATH"))
}

/// Runs one program. The error says what is not as it should be.
fn check(program: &Path, case: &str, races: bool) -> Result<(), String> {
    let json = build::scratch(&format!("order-{case}")).join("report.json");
    let ended = sim(program, case, &["--json", &json.to_string_lossy()]);
    let said = || format!("\n{}\n{}", ended.out, ended.err);
    let wanted = if races { 66 } else { 0 };
    if ended.code() != Some(wanted) {
        return Err(format!("ends with {} instead of {wanted}{}", ended.status, said()));
    }
    let text = std::fs::read_to_string(&json).map_err(|e| format!("no JSON: {e}{}", said()))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| format!("JSON: {e}"))?;
    // What another process does between two events is not followed, and said.
    let stated = |name: &String| name == "cuIpcOpenEventHandle";
    if report["coverage"]["not_modelled"].as_object().is_none_or(|names| !names.keys().all(stated)) {
        return Err(format!("calls are not modelled{}", said()));
    }
    // Whoever is a node of a graph says where it was captured or added, and where the graph was
    // launched.
    for finding in report["findings"].as_array().into_iter().flatten() {
        for side in ["previous", "access"] {
            let side = &finding[side];
            let has = |stack: &str| side[stack].as_array().is_some_and(|frames| !frames.is_empty());
            let is_complete = has("stack") && has("launched");
            if !side["node"].is_null() && !is_complete {
                return Err(format!("a node without its stacks{}", said()));
            }
        }
    }
    Ok(())
}

/// The cases that the program lists, each with whether it races. The list is kept beside the
/// program: a test may be a process of its own.
fn cases(program: &Path) -> Vec<(String, bool)> {
    let listed = build::once(&program.with_extension("cases"), |file| {
        let listed = sim(program, "--list", &[]);
        assert!(listed.out.lines().count() > 40, "the list of programs: {}\n{}", listed.out, listed.err);
        std::fs::write(file, listed.out).map_err(|error| error.to_string())
    });
    let file = listed.unwrap_or_else(|error| panic!("{error}"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, verdict)| (name.to_owned(), verdict == "race")).collect()
}

/// A test of each case.
pub fn trials() -> Vec<Trial> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|value| value == "1") {
        return Vec::new();
    }
    let source = product::root().join("tests/gpu/programs/order_rules.cu");
    // Programmatic edges mean nothing below 9.0.
    // The program leaves template arguments out.
    let program = build::cuda_program(&source, "shared", &["-std=c++17", "-arch=sm_90"])
        .unwrap_or_else(|error| panic!("{error}"));
    let trials = cases(&program).into_iter().map(|(case, races)| {
        let program = program.clone();
        let cannot = NOT_SIMULATED.iter().any(|name| case.starts_with(name));
        trial("order_rules", &case.clone(), move || match (check(&program, &case, races), cannot) {
            (Err(why), false) => Err(why),
            (Ok(()), true) if races => Err("this works now: take it off the list NOT_SIMULATED".to_owned()),
            _ => Ok(()),
        })
    });
    trials.collect()
}
