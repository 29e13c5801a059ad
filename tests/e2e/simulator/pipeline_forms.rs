//! Pipelines of Hopper in many forms (compute capability 9.0, PTX and machine code) with `--inside`,
//! by an author who had CUDA's manuals only: each kernel as it should be is silent, and each change
//! that makes it racy is found, but for those that machine code does not show.

use std::path::{Path, PathBuf};

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
    let args = ["-w", "-std=c++17", "-lineinfo", "-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]"];
    build::cuda_program_if_possible("sim/pipeline_forms.cu", "static", &args)
}

fn inside(program: &Path, code: &str, words: &[String]) -> Ended {
    let mut command = run::streamsan(["run", "--sim", "--inside", "--pedantic", "--"]);
    command.arg(program).args(words).env_remove("LD_LIBRARY_PATH");
    run::end(command.env("STREAMSAN_SIM", format!("arch=90:code={code}")))
}

fn is_found(ended: &Ended) -> bool {
    ["(certain)", "(likely)"].iter().any(|grade| ended.err.contains(grade))
}

#[test]
fn each_kernel_as_it_should_be_is_silent() {
    let Some(program) = compiled() else { return };
    for code in ["ptx", "sass"] {
        let ended = inside(&program, code, &[]);
        assert_eq!(ended.code(), Some(0), "{code}: {}", ended.err);
        assert_eq!(ended.out.matches(": cudaSuccess").count(), KERNELS.len(), "{code}: {}", ended.out);
        assert!(ended.err.contains("SUMMARY: 0 findings (0 certain, 0 likely, 0 possible)"), "{code}: {}", ended.err);
        assert!(ended.err.contains("21 launches checked inside"), "{code}: {}", ended.err);
    }
}

fn each_change_is_found(code: &str) {
    let Some(program) = compiled() else { return };
    let changes = KERNELS.into_iter().flat_map(|(kernel, changes)| (1..=changes).map(move |change| (kernel, change)));
    let mut wrong = Vec::new();
    for change in changes {
        let ended = inside(&program, code, &[change.0.to_string(), change.1.to_string()]);
        let is_as_expected = if NEVER_END.contains(&change) {
            ended.err.contains("streamsan-sim: deadlock: the barrier object")
        } else {
            let is_silent = RIGHT.contains(&change) || code == "sass" && NOT_IN_MACHINE_CODE.contains(&change);
            is_found(&ended) != is_silent
        };
        if !is_as_expected {
            wrong.push(format!("{change:?}: {:?} {}", ended.code(), ended.err));
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
