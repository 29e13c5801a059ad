//! Exit codes of the `streamsan` command. Others script against these: never change the meaning of
//! one.
//!
//! Owns the numbers and which of them a run ends with.

use crate::report::model::Report;

/// Nothing was found, for the commands that run no program (`check`, `explain`, `dump`). With `run`
/// and `record` a clean run ends with the program's own exit code.
pub const CLEAN: i32 = 0;

/// Findings (with `diff`: new ones), unless `--error-exitcode` names another number; with 0 the program's own exit code is
/// kept.
pub const FINDINGS: i32 = 66;

/// The command line, `STREAMSAN_OPTIONS` or the configuration file was wrong, or a file or kernel
/// that they name is not there; nothing was run.
pub const USAGE: i32 = 2;

/// With `--require-cuda`: the program made no use of CUDA that could be checked.
pub const NO_CUDA: i32 = 4;

/// The tool itself failed (or switched itself off half way), so that a clean report would mean
/// nothing.
pub const INTERNAL: i32 = 70;

/// The program could not be started: it is there, but cannot be executed (as shells answer).
pub const CANNOT_EXECUTE: i32 = 126;

/// The program could not be started: it was not found (as shells answer).
pub const NOT_FOUND: i32 = 127;

/// What a run ends with. `program`: the exit code of the program, or 0 where none was run. Findings
/// come first, because a program that fails after a race may fail because of it; then the ways in
/// which a run can have checked nothing.
pub fn of(report: &Report, program: i32, error_exitcode: i32, require_cuda: bool) -> i32 {
    if error_exitcode != 0 && report.failures().next().is_some() {
        error_exitcode
    } else if !report.coverage.not_simulated.is_empty() {
        // Whatever the program answered, it answered because of us.
        INTERNAL
    } else if program != 0 {
        program
    } else if !report.coverage.disabled.is_empty() {
        INTERNAL
    } else if require_cuda && !report.coverage.any_work() {
        NO_CUDA
    } else {
        CLEAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_checked_nothing_never_looks_clean() {
        let mut report = Report::default();
        assert_eq!(of(&report, 0, FINDINGS, false), CLEAN);
        assert_eq!(of(&report, 0, FINDINGS, true), NO_CUDA);
        assert_eq!(of(&report, 3, FINDINGS, true), 3);
        report.coverage.not_simulated.push("a static runtime".into());
        assert_eq!((of(&report, 0, FINDINGS, true), of(&report, 3, FINDINGS, false)), (INTERNAL, INTERNAL));
        report.coverage.not_simulated.clear();
        report.coverage.disabled.push("out of memory".into());
        assert_eq!(of(&report, 0, FINDINGS, false), INTERNAL);
    }
}
