//! `--exact` and `--confirm` on the simulated GPU: programs whose addresses are data. Each case is
//! there with bytes in common and without, and runs as PTX and as machine code.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::{build, run};

/// The program of `tests/programs/exact`; nothing without CUDA's compiler.
fn compiled(name: &str) -> Option<PathBuf> {
    build::cuda_program_if_possible(&format!("exact/{name}"), "static", &[])
}

/// Runs a program on the simulated GPU; its end and the report.
fn simulated(options: &[&str], simulator: &str, program: &Path, words: &[&str]) -> (run::Ended, Value) {
    let name = format!("measured-{}-{simulator}-{}", options.concat(), words.concat());
    let json = build::scratch(&name.replace(['=', ':', '/'], "-")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--no-stacks"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(program).args(words);
    let ended = run::end(command.env("STREAMSAN_SIM", simulator).env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read(&json).unwrap_or_else(|e| panic!("{}: {e}\n{}", json.display(), ended.err));
    (ended, serde_json::from_slice(&text).expect("JSON"))
}

/// Whether the race is found as measured, and its twin is silent; every launch is measured.
fn twins(program: &str, cases: &[&str], simulator: &str) {
    let Some(program) = compiled(program) else { return };
    for case in cases {
        for (way, code) in [("race", 66), ("clean", 0)] {
            let (ended, report) = simulated(&["--exact"], simulator, &program, &[case, way]);
            let what = format!("{case} {way}, {simulator}: {}\n{}", ended.out, ended.err);
            assert_eq!(ended.code(), Some(code), "{what}");
            let launches = &report["coverage"]["launches"];
            assert_eq!(launches["measured"], launches["total"], "{what}");
            let findings = report["findings"].as_array().expect("findings");
            let of = |f: &Value| (f["confidence"].clone(), f["established"].clone());
            assert!(findings.iter().all(|f| of(f) == (json!("certain"), json!("exact"))), "{what}");
            assert_eq!(findings.len(), usize::from(way == "race"), "{what}");
        }
    }
}

const INDIRECT: [&str; 6] = ["gather", "scatter", "histogram", "list", "table", "nested"];

#[test]
fn addresses_that_are_data_are_measured_in_ptx() {
    twins("indirect.cu", &INDIRECT, "code=ptx");
}

#[test]
fn addresses_that_are_data_are_measured_in_machine_code() {
    twins("indirect.cu", &INDIRECT, "code=sass");
}

#[test]
fn bytes_are_told_in_every_schedule() {
    for schedule in ["in-order", "late-first", "random:seed=7"] {
        twins("indirect.cu", &["scatter", "list"], &format!("schedule={schedule}"));
        twins("graph.cu", &["branches", "child"], &format!("schedule={schedule}"));
    }
}

#[test]
fn nodes_of_graphs_are_measured_one_by_one() {
    twins("graph.cu", &["branches", "stream", "update", "child"], "code=sass");
}

/// Without a trial nobody would see such findings. So none is withdrawn.
#[test]
fn loaded_indices_are_put_on_trial() {
    trial("confirm_gather.cu");
}

#[test]
fn the_rim_of_a_bound_is_put_on_trial() {
    trial("confirm_rim.cu");
}

fn trial(name: &str) {
    let Some(program) = compiled(name) else { return };
    for (way, code) in [("race", 66), ("clean", 0)] {
        let (ended, report) = simulated(&["--confirm"], "code=auto", &program, &[way]);
        assert_eq!(ended.code(), Some(code), "{way}: {}", ended.err);
        assert_eq!(report["summary"]["withdrawn"], 0, "{way}: {}", ended.err);
        let established: Vec<&Value> =
            report["findings"].as_array().expect("findings").iter().map(|f| &f["established"]).collect();
        assert_eq!(established, vec!["exact"; usize::from(code != 0)], "{way}: {}", ended.err);
    }
}

#[test]
fn a_pattern_measures_the_kernels_that_it_names() {
    let Some(program) = compiled("indirect.cu") else { return };
    let (ended, report) = simulated(&["--exact=no_such_kernel"], "code=auto", &program, &["scatter", "clean"]);
    assert_eq!(report["coverage"]["launches"]["measured"], 0, "{}", ended.err);
    let (ended, report) = simulated(&["--exact=scatter"], "code=auto", &program, &["scatter", "clean"]);
    assert_eq!((ended.code(), &report["coverage"]["launches"]["measured"]), (Some(0), &2.into()), "{}", ended.err);
}

#[test]
fn a_recorded_run_is_judged_alike() {
    let Some(program) = compiled("indirect.cu") else { return };
    let trace = build::scratch("measured-recorded").join("t.trace");
    let trace = trace.to_string_lossy();
    for (way, code) in [("race", 66), ("clean", 0)] {
        let (ended, _) = simulated(&["--exact", "-o", &trace], "code=auto", &program, &["list", way]);
        assert_eq!(ended.code(), Some(code), "{way}: {}", ended.err);
        let again = run::end(run::streamsan(["check"]).arg(&*trace));
        assert_eq!(again.code(), Some(code), "{way}: {}", again.err);
    }
}

/// Pieces are kept to the byte where structures repeat them: 200,000 of a launch.
#[test]
fn fields_of_many_structures_are_told_apart() {
    let Some(program) = compiled("fields.cu") else { return };
    for shape in [["20", "0", "8"], ["36", "4", "24"], ["1000", "0", "12"]] {
        for (way, code) in [("race", 66), ("clean", 0)] {
            let words = [&shape[..], &[way]].concat();
            let (ended, report) = simulated(&["--exact=set"], "code=sass", &program, &words);
            let what = format!("{words:?}: {}\n{}", ended.out, ended.err);
            assert_eq!(ended.code(), Some(code), "{what}");
            let findings = report["findings"].as_array().expect("findings");
            assert!(findings.iter().all(|f| f["confidence"] == "certain"), "{what}");
        }
    }
}
