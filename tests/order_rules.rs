//! The programs of `gpu/order_rules.cu` on the simulated GPU: CUDA's less used rules of order, each
//! as a race and its mended twin.
//!
//! A harness of its own, so that each program is a test. What the simulator can not do stands in
//! `NOT_SIMULATED`; a program there that gets the right verdict fails.
//!
//! Needs CUDA's compiler (`scripts/toolkit`). `STREAMSAN_NO_TOOLKIT=1` says that there is none, and
//! skips all.

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use tests::{build, product, run};

/// What the simulator can not do: it says so, or leaves out what the rule is about.
const NOT_SIMULATED: [&str; 3] = ["programmatic_edge", "memory_operation_node", "green_context"];

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

fn cases(program: &Path) -> Vec<(String, bool)> {
    let listed = sim(program, "--list", &[]);
    let cases: Vec<(String, bool)> = listed
        .out
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, verdict)| (name.to_owned(), verdict == "race"))
        .collect();
    assert!(cases.len() > 40, "the list of programs: {}\n{}", listed.out, listed.err);
    cases
}

fn main() {
    let arguments = Arguments::from_args();
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        println!("skipped: STREAMSAN_NO_TOOLKIT=1");
        return;
    }
    let source = product::root().join("tests/gpu/programs/order_rules.cu");
    let program = build::cuda_program(&source, "shared", &[]).unwrap_or_else(|e| panic!("{e}"));
    let trials = cases(&program)
        .into_iter()
        .map(|(case, races)| {
            let program = program.clone();
            let cannot = NOT_SIMULATED.iter().any(|name| case.starts_with(name));
            Trial::test(case.clone(), move || match (check(&program, &case, races), cannot) {
                (Err(why), false) => Err(Failed::from(why)),
                (Ok(()), true) if races => Err(Failed::from("this works now: take it off the list NOT_SIMULATED")),
                _ => Ok(()),
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
