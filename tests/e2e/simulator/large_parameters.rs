//! Kernels with more than 31 KiB of parameters (CUDA 12.1 and later): what they compute, and that a
//! race through their last parameters is found.

use tests::{build, run};

const CODES: [&[&str]; 3] = [
    &["-arch=compute_80", "-code=sm_80"],
    &["-arch=compute_90", "-code=sm_90"],
    &["-arch=compute_80", "-code=compute_80"],
];

#[test]
fn parameters_in_the_upper_half_of_the_bank_are_read() {
    for code in CODES {
        let Some(program) = build::cuda_program_if_possible("sim/large_parameters.cu", "static", code) else { return };
        for (word, exit, found) in [("clean", 0, "0 findings"), ("racy", 66, "1 finding (1 certain")] {
            // What the simulated GPU has measured would find the race without the analysis.
            let mut command = run::streamsan(["run", "--sim", "--sim-predict", "--"]);
            let ended = run::end(command.arg(&program).arg(word).env_remove("LD_LIBRARY_PATH"));
            assert_eq!((ended.code(), ended.out.as_str()), (Some(exit), "done\n"), "{code:?} {word}: {}", ended.err);
            assert!(ended.err.contains(found), "{code:?} {word}: {}", ended.err);
        }
    }
}
