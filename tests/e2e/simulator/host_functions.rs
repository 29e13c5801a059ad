//! Host functions that throw: the program ends as under a driver, which knows nothing of C++, and
//! what was found before is reported.

use std::path::PathBuf;

use tests::{build, run};

fn program() -> Option<PathBuf> {
    build::cuda_program_if_possible("sim/throws.cu", "static", &[])
}

const WAYS: [&str; 3] = ["function", "callback", "node"];
const SIGABRT: i32 = 6;

#[test]
fn an_exception_that_leaves_a_host_function_terminates_the_program() {
    let Some(program) = program() else { return };
    for (way, schedule) in WAYS.into_iter().zip(["eager", "late-first", "in-order"]) {
        let mut command = run::streamsan(["run", "--sim", "--sim-schedule", schedule, "--"]);
        let ended = run::end(command.arg(&program).arg(way).env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.signal(), Some(SIGABRT), "{way}: {:?} {}", ended.status, ended.err);
        assert!(ended.err.contains("terminating: an exception\n"), "{way}: {}", ended.err);
        assert!(ended.err.contains("what():  no room in the queue"), "{way}: {}", ended.err);
        assert!(!ended.err.contains("Rust"), "{way}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{way}: {}", ended.err);
    }
}

#[test]
fn what_was_found_before_the_exception_is_reported() {
    let Some(program) = program() else { return };
    for way in WAYS {
        let mut command = run::streamsan(["run", "--sim", "--"]);
        let ended = run::end(command.arg(&program).args([way, "race"]).env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.signal(), Some(SIGABRT), "{way}: {}", ended.err);
        assert!(ended.err.contains("DATA RACE: write-after-write (certain)"), "{way}: {}", ended.err);
        assert!(ended.err.contains("terminating: an exception\n"), "{way}: {}", ended.err);
    }
}

#[test]
fn an_exception_that_the_host_function_catches_is_its_own() {
    let Some(program) = program() else { return };
    for way in WAYS {
        let mut command = run::streamsan(["run", "--sim", "--"]);
        let ended = run::end(command.arg(&program).args([way, "caught"]).env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.code(), Some(0), "{way}: {}", ended.err);
        assert_eq!(ended.out, "caught: no room in the queue\ndone\n", "{way}: {}", ended.err);
    }
}
