//! One trial of waits: the same records, with these waits in the order.
//!
//! Owns what such a pass has found. Everything that the first pass has read and evaluated is used
//! again, so that a trial costs no more than the comparison of accesses.

use rustc_hash::FxHashSet;

use crate::Analysis;
use crate::counterfactual::edits::waits::Replan;
use crate::counterfactual::trial::Trial;
use crate::counterfactual::trial::records::Records;
use detect::findings::{FindingState, RawFinding};
use detect::state::op_site::OpSite;

/// What a pass has found.
pub(crate) struct Rerun {
    /// The findings under the changed order.
    pub(crate) findings: Vec<RawFinding>,
    /// Pairs of sites of findings that do not stand, each with whether a free was too early.
    pub(crate) fallen: FxHashSet<(OpSite, OpSite, bool)>,
    /// The changes, with what became of them and what was noted.
    pub(crate) plan: Replan,
}

/// Checks the records of the process that `first` has analysed again, with these changes. `None`:
/// not all records can be had, or the changes are too much work.
pub(crate) fn rerun(first: &mut Analysis, records: &mut dyn Records, plan: Replan) -> Option<Rerun> {
    let mut trial = Trial::with_waits(first, plan);
    let read = records.each(&mut |bytes| trial.feed_encoded(bytes));
    let (findings, plan) = trial.end();
    let (mut stand, mut fallen) = (Vec::new(), FxHashSet::default());
    for (raw, state) in findings.judged() {
        let race = &raw.race;
        if state == FindingState::Stands {
            stand.push(raw.clone());
        } else {
            fallen.insert((OpSite::of_node(&race.previous), OpSite::of_node(&race.access), race.freed_early));
        }
    }
    (read && !plan.is_given_up()).then_some(Rerun { findings: stand, fallen, plan })
}
