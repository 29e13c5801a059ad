//! The grid's barrier by `cudaCGSynchronize`, on the simulated GPU: results, and verdicts of the
//! launch as a whole. As PTX and as machine code.

use std::path::PathBuf;

use tests::{build, run};

/// The program; nothing without CUDA's compiler.
fn compiled() -> Option<PathBuf> {
    build::cuda_program_if_possible("sim/grid_calls.cu", "static", &["-rdc=true", "-w"])
}

fn simulated(program: &PathBuf, simulator: &str, case: &str, way: &str) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim", "--no-stacks"]);
    command.args(["--exact", "--"]).arg(program).args([case, way]);
    run::end(command.env("STREAMSAN_SIM", simulator).env_remove("LD_LIBRARY_PATH"))
}

/// All rounds see what all blocks wrote before; the copy races with the launch, or waits.
fn rounds(simulator: &str) {
    let Some(program) = compiled() else { return };
    for case in ["all", "some", "apart", "asked"] {
        for (way, code) in [("race", 66), ("clean", 0)] {
            let ended = simulated(&program, simulator, case, way);
            let what = format!("{case} {way}, {simulator}: {}\n{}", ended.out, ended.err);
            assert_eq!((ended.code(), &*ended.out), (Some(code), "handle 1, status 0, right\n"), "{what}");
        }
    }
}

#[test]
fn blocks_wait_for_each_other_in_ptx() {
    rounds("code=ptx");
}

#[test]
fn blocks_wait_for_each_other_in_machine_code() {
    rounds("code=sass");
}

#[test]
fn blocks_wait_for_each_other_on_several_threads() {
    rounds("code=ptx:workers=3");
    rounds("code=sass:workers=3");
}

#[test]
fn a_launch_that_is_not_cooperative_has_no_such_barrier() {
    let Some(program) = compiled() else { return };
    for simulator in ["code=ptx", "code=sass"] {
        let ended = simulated(&program, simulator, "plain", "clean");
        assert_eq!(ended.out, "handle 0, status 999, right\n", "{}", ended.err);
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
    }
}
