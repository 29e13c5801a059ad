//! What the gate has left out and set aside, as reports print it.
//!
//! Owns the counts, and what it says of one finding. [`crate::gate`] applies filters, suppressions
//! and baselines.

use serde::{Deserialize, Serialize};

/// The gate's decision on a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum GateStatus {
    /// A new finding.
    #[default]
    New,
    /// The baseline has it.
    Known,
    /// A suppression covers it: its index in the judgement's list.
    Suppressed(usize),
}

/// A filter, and how many findings it has left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppliedFilter {
    /// As it was given: `--ignore-kernel 'fill'`.
    pub(crate) text: String,
    /// Findings left out.
    pub(crate) left_out: u64,
}

/// A line of a suppression file, and how many findings it has set aside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppliedSuppression {
    /// As written: `race:libfoo.so`.
    pub text: String,
    /// `FILE:LINE`.
    pub place: String,
    /// Findings set aside.
    pub(crate) findings: u64,
    /// Occurrences of those.
    pub(crate) hits: u64,
}

/// The gate's decisions on a report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judgement {
    /// The filters, with counts.
    pub(crate) filters: Vec<AppliedFilter>,
    /// The suppressions, with counts.
    pub suppressions: Vec<AppliedSuppression>,
    /// Findings of the baseline that did not occur; `None` without a baseline.
    pub(crate) absent: Option<u64>,
}
