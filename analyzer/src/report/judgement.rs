//! What the gate has set aside, as reports print it.
//!
//! Owns the counts. Filters, suppressions and baselines are applied by [`crate::gate`].

/// A filter, and what it has left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppliedFilter {
    /// As it was given: `--ignore-kernel 'fill'`.
    pub text: String,
    /// Findings left out.
    pub left_out: u64,
}

/// A line of a suppression file, and what it has set aside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppliedSuppression {
    /// As written: `race:libfoo.so`.
    pub text: String,
    /// `FILE:LINE`.
    pub place: String,
    /// Findings set aside.
    pub findings: u64,
    /// Occurrences of those.
    pub hits: u64,
}

/// What the gate has done to a report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judgement {
    /// The filters, with counts.
    pub filters: Vec<AppliedFilter>,
    /// The suppressions, with counts.
    pub suppressions: Vec<AppliedSuppression>,
    /// Findings of the baseline that did not come up; `None` without a baseline.
    pub absent: Option<u64>,
}
