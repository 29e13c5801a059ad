//! Pipelines of Hopper in many forms (compute capability 9.0, PTX and machine code) with
//! `--inside`, by an author who had CUDA's manuals only: each kernel as it should be is silent, and
//! each change that makes it racy is found, but for those that machine code does not show.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::build;
use tests::run::{self, Ended};

/// A kernel, and how many changes there are of it.
const KERNELS: [(&str, u32); 21] = [
    ("three", 4),
    ("outs", 4),
    ("multi", 4),
    ("reduces", 4),
    ("reuse", 4),
    ("pingpong", 4),
    ("handed", 5),
    ("dsm", 5),
    ("copies", 3),
    ("tile_flag", 4),
    ("wraps", 3),
    ("inval", 2),
    ("peek", 1),
    ("spec", 5),
    ("convert", 4),
    ("stasync", 5),
    ("split", 4),
    ("named", 3),
    ("peer_add", 4),
    ("warpmeet", 4),
    ("splitk", 3),
];

/// Changes that leave a kernel right.
const RIGHT: [(&str, u32); 7] = [
    ("pingpong", 3),
    ("tile_flag", 4),
    ("convert", 4),
    ("stasync", 1),
    ("stasync", 3),
    ("warpmeet", 1),
    ("warpmeet", 2),
];

/// Changes by which a kernel never ends.
const NEVER_END: [(&str, u32); 2] = [("handed", 5), ("stasync", 2)];

/// Changes that machine code does not show: a fence of all memory stands for `fence.proxy.async`,
/// or that of another lane of the warp; relaxed arrivals and waits of a narrow scope look like
/// others.
const NOT_IN_MACHINE_CODE: [(&str, u32); 6] =
    [("handed", 3), ("handed", 4), ("tile_flag", 3), ("split", 1), ("splitk", 1), ("splitk", 2)];

fn compiled() -> Option<PathBuf> {
    let args = ["-w", "-lineinfo", "-arch=compute_90a", "-code=compute_90a,sm_90a"];
    build::cuda_program_if_possible("sim/pipeline_forms.cu", "static", &args)
}

/// Launches a form of each kernel from one on: how it ended, and the findings.
fn inside(program: &Path, code: &str, form: u32, from: &str) -> (Ended, Vec<Value>) {
    let json = build::scratch(&format!("pipeline-forms-{code}-{form}-{from}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--inside", "--pedantic", "--json"]);
    command.arg(&json).arg("--").arg(program).args([&form.to_string(), from]).env_remove("LD_LIBRARY_PATH");
    let ended = run::end(command.env("STREAMSAN_SIM", format!("arch=90:code={code}")));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    (ended, report["findings"].as_array().expect("findings").clone())
}

fn is_found(findings: &[Value], (kernel, change): (&str, u32)) -> bool {
    let name = format!("void {kernel}<{change}>(");
    let is_of = |f: &&Value| f["access"]["kernel"].as_str().is_some_and(|kernel| kernel.starts_with(&name));
    findings.iter().filter(is_of).any(|f| ["certain", "likely"].iter().any(|grade| f["in_kernel"]["grade"] == *grade))
}

#[test]
fn each_kernel_as_it_should_be_is_silent() {
    let Some(program) = compiled() else { return };
    for code in ["ptx", "sass"] {
        let (ended, _) = inside(&program, code, 0, KERNELS[0].0);
        assert_eq!(ended.code(), Some(0), "{code}: {}", ended.err);
        assert_eq!(ended.out.matches(": cudaSuccess").count(), KERNELS.len(), "{code}: {}", ended.out);
        assert!(ended.err.contains("SUMMARY: 0 findings (0 certain, 0 likely, 0 possible)"), "{code}: {}", ended.err);
        assert!(ended.err.contains("21 launches checked inside"), "{code}: {}", ended.err);
    }
}

fn each_change_is_found(code: &str) {
    let Some(program) = compiled() else { return };
    let mut wrong = Vec::new();
    for change in 1..=5 {
        let mut left: Vec<&str> = KERNELS.iter().filter(|k| k.1 >= change).map(|k| k.0).collect();
        // A launch that fails ends the process; the next one goes on behind it.
        while let Some(from) = left.first() {
            let (ended, findings) = inside(&program, code, change, from);
            let done = ended.out.lines().count();
            assert!(done > 0 && done <= left.len(), "{code} {change}: {} {}", ended.out, ended.err);
            for kernel in left.drain(..done) {
                let form = (kernel, change);
                let is_as_expected = if NEVER_END.contains(&form) {
                    ended.err.contains("streamsan-sim: deadlock: the barrier object")
                } else {
                    let is_silent = RIGHT.contains(&form) || code == "sass" && NOT_IN_MACHINE_CODE.contains(&form);
                    is_found(&findings, form) != is_silent
                };
                if !is_as_expected {
                    wrong.push(format!("{form:?}: {:?} {}", ended.code(), ended.err));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{code}: {}", wrong.join("\n"));
}

#[test]
fn each_change_is_found_in_ptx() {
    each_change_is_found("ptx");
}

#[test]
fn each_change_is_found_in_machine_code() {
    each_change_is_found("sass");
}
