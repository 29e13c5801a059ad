//! What the simulated GPU measures without being asked. The programs generate their cases, racy or
//! clean: indices in every form that no formula describes, with elements of every size; structs
//! whose fields are written in an order that is data; parts of arrays, by surfaces, textures and
//! copies. Each case has a buffer of another size, by which its finding is recognised.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::{build, run};

fn compiled(name: &str) -> Option<PathBuf> {
    build::cuda_program_if_possible(&format!("exact/{name}.cu"), "static", &[])
}

/// Runs a program on the simulated GPU; its end and the report.
fn simulated(options: &[&str], simulator: &str, program: &Path, words: &[&str]) -> (run::Ended, Value) {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let folder = format!("unasked-{name}-{simulator}-{}{}", options.concat(), words.concat());
    let json = build::scratch(&folder.replace(['=', ':', '/'], "-")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--no-stacks", "--error-exitcode", "66"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(program).args(words);
    let ended = run::end(command.env("STREAMSAN_SIM", simulator).env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read(&json).unwrap_or_else(|e| panic!("{}: {e}\n{}", json.display(), ended.err));
    (ended, serde_json::from_slice(&text).expect("JSON"))
}

/// Each case of the racy run has one finding, a certain one; the clean run has none.
fn each_case(program: &str, simulator: &str, more: &[&str]) {
    let Some(program) = compiled(program) else { return };
    for (way, code) in [("race", 66), ("clean", 0)] {
        let words = [&[way], more].concat();
        let (ended, report) = simulated(&[], simulator, &program, &words);
        assert_eq!(ended.code(), Some(code), "{way}: {}\n{}", ended.out, ended.err);
        assert_eq!(report["coverage"]["launches"]["unmeasured"], 0, "{way}: {}", ended.err);
        let cases: BTreeSet<u64> = ended.out.lines().map(|line| line.parse().expect("a size")).collect();
        let findings = report["findings"].as_array().expect("findings");
        let found: Vec<u64> = findings.iter().map(|f| f["allocation"]["size"].as_u64().expect("a size")).collect();
        assert!(findings.iter().all(|f| f["confidence"] == "certain"), "{way}: {}", ended.err);
        assert_eq!(
            found.len(),
            found.iter().collect::<BTreeSet<_>>().len(),
            "{way}: one finding a case: {}",
            ended.err
        );
        let want = if way == "race" { cases } else { BTreeSet::new() };
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), want, "{way}: {}", ended.err);
    }
}

#[test]
fn indices_that_no_formula_describes_in_ptx() {
    each_case("unasked", "code=ptx", &[]);
}

#[test]
fn indices_that_no_formula_describes_in_machine_code() {
    each_case("unasked", "code=sass", &[]);
}

#[test]
fn fields_of_structs_in_an_order_that_is_data() {
    each_case("unasked_fields", "code=auto", &["1000"]);
}

#[test]
fn fields_of_a_hundred_thousand_structs() {
    each_case("unasked_fields", "code=auto", &["100000"]);
}

#[test]
fn parts_of_arrays_in_ptx() {
    each_case("unasked_arrays", "code=ptx", &[]);
}

#[test]
fn parts_of_arrays_in_machine_code() {
    each_case("unasked_arrays", "code=sass", &[]);
}

#[test]
fn a_recorded_run_has_been_measured_too() {
    let Some(program) = compiled("unasked_fields") else { return };
    let trace = build::scratch("unasked-recorded").join("t.trace");
    for (way, code) in [("race", 66), ("clean", 0)] {
        let mut record = run::streamsan(["record", "--sim", "-o"]);
        let ended = run::end(record.arg(&trace).arg("--").arg(&program).arg(way).env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.code(), Some(0), "{way}: {}", ended.err);
        let checked = run::end(run::streamsan(["check"]).arg(&trace));
        assert_eq!(checked.code(), Some(code), "{way}: {}", checked.err);
        assert!(!checked.err.contains("unmeasured"), "{way}: {}", checked.err);
    }
}

#[test]
fn predictions_stay_an_option() {
    let Some(program) = compiled("unasked_fields") else { return };
    let (ended, report) = simulated(&["--sim-predict"], "code=auto", &program, &["clean"]);
    let launches = &report["coverage"]["launches"];
    assert_eq!((&launches["measured"], &launches["unmeasured"]), (&0.into(), &0.into()), "{}", ended.err);
    let (ended, report) = simulated(&[], "code=auto", &program, &["clean"]);
    assert_eq!(report["coverage"]["launches"]["measured"], report["coverage"]["launches"]["total"], "{}", ended.err);
}
