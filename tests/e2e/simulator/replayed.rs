//! Launches of recorded traces, run by themselves: the ground truth for kernels whose host code
//! needs NVIDIA's driver.

use std::path::{Path, PathBuf};

use tests::replay::{self, Replayable};
use tests::{build, oracle, product, run};

/// `tests/programs/exact/indirect.cu`; nothing without CUDA's compiler.
fn compiled() -> Option<PathBuf> {
    build::cuda_program_if_possible("exact/indirect.cu", "static", &[])
}

/// Records a case of that program.
fn recorded(folder: &Path, program: &Path, case: &str) -> PathBuf {
    let trace = folder.join("recorded.trace");
    let mut command = run::streamsan(["record", "--sim", "-o"]);
    let ended = run::end(command.arg(&trace).arg("--").arg(program).args([case, "clean"]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    trace
}

/// Runs what is in one folder: why launches failed, and the verdicts by kernel.
fn play(ready: &Replayable) -> (Vec<String>, Vec<oracle::JudgedKernel>) {
    let [(arch, folder, _)] = &ready.folders[..] else { panic!("{ready:?}") };
    let mut command = run::streamsan(Replayable::arguments(folder));
    let ended = run::end(command.env("STREAMSAN_SIM", format!("arch={arch}")));
    let kernels = oracle::read(&folder.join("compared.json")).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    (replay::failures(&ended.out), kernels)
}

#[test]
fn launches_run_again_over_fresh_memory() {
    let folder = build::scratch("replay-gather");
    let Some(program) = compiled() else { return };
    let trace = recorded(&folder, &program, "gather");
    let ready = replay::prepare(&trace, &[], &folder).expect("a trace");
    assert_eq!((ready.launches, &ready.left_out), (2, &Default::default()));
    let (failures, mut kernels) = play(&ready);
    assert_eq!(failures, [""; 0]);
    kernels.sort_by_key(|kernel| kernel.name.clone());
    let [fill, gather] = &kernels[..] else { panic!("{kernels:?}") };
    assert!(fill.name.contains("fill") && gather.name.contains("gather"), "{kernels:?}");
    assert_eq!(fill.counts, [("tight".to_owned(), 1)].into());
    // Which elements it reads is data.
    assert_eq!(gather.counts, [("by-data".to_owned(), 1)].into());
    assert!(kernels.iter().all(|kernel| kernel.wrong.is_empty()), "{kernels:?}");
}

#[test]
fn a_launch_that_fails_does_not_stop_the_others() {
    // Pointers in memory are null there.
    let folder = build::scratch("replay-nested");
    let Some(program) = compiled() else { return };
    let trace = recorded(&folder, &program, "nested");
    let ready = replay::prepare(&trace, &[], &folder).expect("a trace");
    let (failures, _) = play(&ready);
    assert_eq!(failures, ["an access outside of its memory"; 2]);
}

#[test]
fn a_kernel_recorded_on_a_gpu_runs_here() {
    let trace = product::root().join("tests/recorded/triton_step.trace");
    let ready = replay::prepare(&trace, &[], &build::scratch("replay-triton")).expect("a trace");
    // The same launch three times.
    assert_eq!((ready.launches, ready.folders[0].0, ready.folders[0].2), (3, 90, 1));
    let (failures, kernels) = play(&ready);
    assert_eq!(failures, [""; 0]);
    assert_eq!(kernels[0].counts, [("tight".to_owned(), 1)].into(), "{kernels:?}");
}

#[test]
fn code_is_found_where_it_was_put_and_other_builds_are_not_taken() {
    let folder = build::scratch("replay-moved");
    let Some(program) = compiled() else { return };
    // The trace names the program by a path that is then gone.
    let there = folder.join("there");
    std::fs::create_dir_all(&there).expect("a folder");
    let moved = there.join("moved");
    std::fs::copy(&program, &moved).expect("a copy");
    let trace = recorded(&folder, &moved, "gather");
    std::fs::remove_file(&moved).expect("it was there");
    let without = replay::prepare(&trace, &[], &folder.join("1")).expect("a trace");
    assert_eq!((without.launches, without.left_out), (0, [("moved is not here".to_owned(), 2)].into()));
    let here = folder.join("here/lib");
    std::fs::create_dir_all(&here).expect("a folder");
    std::fs::copy(&program, here.join("moved")).expect("a copy");
    let code = [folder.join("here")];
    let found = replay::prepare(&trace, &code, &folder.join("2")).expect("a trace");
    assert_eq!((found.launches, found.left_out), (2, Default::default()));
    std::fs::copy(product::streamsan(), here.join("moved")).expect("a copy");
    let other = replay::prepare(&trace, &code, &folder.join("3")).expect("a trace");
    assert_eq!((other.launches, other.left_out), (0, [("moved is another build here".to_owned(), 2)].into()));
    let error = replay::prepare(&trace, &[folder.join("missing")], &folder).expect_err("no such folder");
    assert!(error.ends_with("missing: no such folder"), "{error}");
}
