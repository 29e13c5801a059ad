//! Why a run whose report was judged ends as it does.
//!
//! Owns the way from a report to the reasons. Does not own their order and numbers, which are in
//! [`settings::exit_code`].

use crate::model::Report;
use crate::program::Checked;
use detect::coverage::Coverage;
use settings::exit_code::{Ending, Reason};

/// What the report of a run says of its end.
pub fn of_run(report: &Report, error_exitcode: i32, require_cuda: bool) -> Ending {
    let coverage = &report.coverage;
    findings(report, error_exitcode)
        .and(!coverage.not_simulated.is_empty(), Reason::NotSimulated)
        .and(is_incomplete(coverage), Reason::Incomplete)
        .and(require_cuda && !coverage.any_work(), Reason::NoCuda)
}

/// Whether findings fail it, and with which number; 0: they do not.
fn findings(report: &Report, error_exitcode: i32) -> Ending {
    Ending::default().and(error_exitcode != 0 && report.failing() > 0, Reason::Findings(error_exitcode))
}

/// Whether the report says less than it seems to: ops are missing or were not judged, or a
/// prediction was wrong, so that others may be.
fn is_incomplete(c: &Coverage) -> bool {
    let lists = [&c.unchecked, &c.disabled, &c.unjudged, &c.mispredicted];
    !c.lost.is_empty() || lists.into_iter().any(|lines| !lines.is_empty())
}

/// What the report of a hunt says of its end. A program that was not checked, or not to its end, is
/// never passed over in silence: neither is one that failed, for it may have done so before its
/// work.
pub fn of_hunt(report: &Report, error_exitcode: i32, require_cuda: bool) -> Ending {
    let any = |outcomes: &[Checked]| report.programs.iter().any(|p| outcomes.contains(&p.ended));
    let no_cuda = !report.coverage.any_work() || (require_cuda && any(&[Checked::NoCuda]));
    findings(report, error_exitcode)
        .and(any(&[Checked::NotChecked, Checked::NotRun, Checked::TimedOut]), Reason::ProgramNotChecked)
        .and(any(&[Checked::Failed]), Reason::ProgramFailed)
        .and(no_cuda, Reason::NoCuda)
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::exit_code::{CLEAN, FINDINGS, INTERNAL, NO_CUDA};

    fn exit_code(report: &Report, program: i32, error_exitcode: i32, require_cuda: bool) -> i32 {
        Ending::of_program(program).joined(of_run(report, error_exitcode, require_cuda)).code()
    }

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
