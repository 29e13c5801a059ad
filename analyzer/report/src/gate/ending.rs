//! The exit code that a run ends with.
//!
//! Owns the rule. Does not own the numbers, which are in [`settings::exit_code`].

use crate::model::Report;
use crate::program::Checked;
use detect::coverage::Coverage;
use settings::exit_code::{CLEAN, INTERNAL, NO_CUDA, PROGRAM_FAILED};

/// What a run ends with. `program`: the exit code of the program, or 0 where none was run.
///
/// A refusal of the simulated GPU comes first. A refused kernel fails in stream order, so the calls
/// behind it fail or not as threads run, and a race among them is found in one run and not in the
/// next: only this order gives each run of a program the same code. Findings come next, because a
/// program that fails after a race may fail because of it; then the ways in which a run can have
/// checked nothing.
pub fn exit_code(report: &Report, program: i32, error_exitcode: i32, require_cuda: bool) -> i32 {
    if !report.coverage.not_simulated.is_empty() {
        // Whatever the program answered, it answered because of us.
        INTERNAL
    } else if error_exitcode != 0 && report.failing() > 0 {
        error_exitcode
    } else if program != 0 {
        program
    } else if is_incomplete(&report.coverage) {
        INTERNAL
    } else if require_cuda && !report.coverage.any_work() {
        NO_CUDA
    } else {
        CLEAN
    }
}

/// Whether the report says less than it seems to: ops are missing or were not judged, or a
/// prediction was wrong, so that others may be.
fn is_incomplete(c: &Coverage) -> bool {
    let lists = [&c.unchecked, &c.disabled, &c.unjudged, &c.mispredicted];
    !c.lost.is_empty() || lists.into_iter().any(|lines| !lines.is_empty())
}

/// What a hunt ends with. A program that was not checked, or not to its end, is never passed over
/// in silence: neither is one that failed, for it may have done so before its work.
pub fn hunt_exit_code(report: &Report, error_exitcode: i32, require_cuda: bool) -> i32 {
    let any = |outcomes: &[Checked]| report.programs.iter().any(|p| outcomes.contains(&p.ended));
    if error_exitcode != 0 && report.failing() > 0 {
        error_exitcode
    } else if any(&[Checked::NotChecked, Checked::NotRun, Checked::TimedOut]) {
        INTERNAL
    } else if any(&[Checked::Failed]) {
        PROGRAM_FAILED
    } else if !report.coverage.any_work() || (require_cuda && any(&[Checked::NoCuda])) {
        NO_CUDA
    } else {
        CLEAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::exit_code::FINDINGS;

    #[test]
    fn a_run_that_checked_nothing_never_looks_clean() {
        let mut report = Report::default();
        assert_eq!(exit_code(&report, 0, FINDINGS, false), CLEAN);
        assert_eq!(exit_code(&report, 0, FINDINGS, true), NO_CUDA);
        assert_eq!(exit_code(&report, 3, FINDINGS, true), 3);
        report.coverage.not_simulated.push("a static runtime".into());
        assert_eq!(
            (exit_code(&report, 0, FINDINGS, true), exit_code(&report, 3, FINDINGS, false)),
            (INTERNAL, INTERNAL)
        );
        report.coverage.not_simulated.clear();
        report.coverage.disabled.push("out of memory".into());
        assert_eq!(exit_code(&report, 0, FINDINGS, false), INTERNAL);
        report.coverage.disabled.clear();
        report.coverage.lost.insert("RangePush".into(), 1);
        assert_eq!((exit_code(&report, 0, FINDINGS, false), exit_code(&report, 3, FINDINGS, false)), (INTERNAL, 3));
        report.coverage.mispredicted.push("kernel k: ...".into());
        assert_eq!(exit_code(&report, 0, FINDINGS, false), INTERNAL);
    }
}
