//! Causes: the synchronisation whose absence explains findings, and the smallest set of waits that
//! orders everything, tried on the run itself.
//!
//! Owns the way from findings to waits: which kind of wait a finding asks for ([`asked`]), which
//! few waits order many findings ([`cover`], by [`places`]), the trials that prove or refute a set
//! ([`search`] by [`rerun`], shortened by [`proof`]), events of the program that serve as well
//! ([`reuse`]), which wait stands for which finding ([`attribution`]), kernels that run past their
//! memory, which no wait can mend ([`overrun`]), and the words ([`advice`]). Does not change the
//! order itself: that is an edit ([`super::edits`]). Does not print.
//!
//! # What a cause is
//!
//! A *wait* is a pair of places: what is submitted at the second waits for what was submitted at
//! the first. A finding is ordered by every wait whose record comes after its earlier op and whose
//! wait comes before its later op, so many findings can share one. From the places of all findings
//! the few waits are chosen that order most, until all are ordered; that set is put into the
//! recorded order, and the run is analysed again. What still races is covered by further waits.
//! Then each wait is left out: if nothing races without it, it goes. Where a race lies around one
//! wait alone, the race proves that wait needed without a trial. So the set is smallest in
//! this sense: none of its waits can be left out. A smaller set of other waits may exist.
//!
//! A cause is one of these waits with the findings that it orders.
//!
//! # What a trial proves
//!
//! That the findings are gone in *this* run, with these bytes and this order of submission. An
//! added wait never waits for a later record: it takes the records that were made before it. So it
//! can not add a cycle, unless the record is itself behind a wait for a value that has not been
//! written yet; then the trial counts it as blocked, and the set is not offered as checked.

mod advice;
mod asked;
mod attribution;
mod cover;
mod overrun;
mod places;
mod proof;
mod rerun;
mod reuse;
mod search;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::Analysis;
use crate::counterfactual::edits::waits::AddedWait;
use crate::counterfactual::trial::records::Records;
use detect::confidence::Confidence;
use detect::findings::RawFinding;
use detect::race::Race;
use report::cause::{GivenWait, RootCause, SetCheck};
use report::fingerprint::Identity;
use report::model::Outcome;

/// How much may be fed again, in ops: a live program waits for its report.
#[derive(Clone, Copy, Debug)]
pub struct Effort(pub u64);

impl Effort {
    /// Of a live run: a few seconds.
    pub const LIVE: Self = Self(8_000_000);
    /// Of a recorded one.
    pub const RECORDED: Self = Self(200_000_000);
}

/// Bytes of records that a live run keeps of a process, to check it again.
pub const KEPT_LIVE: usize = 64 << 20;

/// Ops of one trial, or what takes as long, that take so long that the process may be ended
/// meanwhile: some hundredths of a second.
const LONG: u64 = 20_000;

/// The findings whose causes are sought.
pub struct Sought {
    worthy: Vec<(RawFinding, Identity)>,
    /// Waits that the user has added.
    given: Vec<AddedWait>,
    /// What one trial costs.
    cost: u64,
}

impl Sought {
    /// Whether the findings should be written down before.
    pub fn takes_long(&self) -> bool {
        !self.worthy.is_empty() && self.cost >= LONG
    }
}

/// Ends an analysis: its outcome with the causes of its findings.
pub fn finish(analysis: &mut Analysis, records: Option<&mut dyn Records>, effort: Effort) -> Outcome {
    let (outcome, sought) = findings(analysis);
    seek(analysis, outcome, sought, records, effort)
}

/// The outcome as it is to be reported if the causes never come.
pub fn unsought(outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    let skipped = "the analysis ended before".to_string();
    outcome.mended = Some(SetCheck { skipped, ..SetCheck::default() });
    outcome
}

/// Ends an analysis: its outcome without the causes of its findings, and what they are sought for.
pub fn findings(analysis: &mut Analysis) -> (Outcome, Sought) {
    let mut outcome = analysis.finish();
    // What the user has added stays in every trial.
    let given = analysis.take_replan().map_or_else(Vec::new, |plan| {
        let texts = plan.written.iter().zip(&plan.applied);
        outcome.with = texts.map(|(wait, applied)| GivenWait::of(&wait.text, &wait.place, applied)).collect();
        plan.waits
    });
    let reported = std::mem::take(&mut analysis.reported);
    let pedantic = analysis.is_pedantic();
    let told: FxHashSet<Identity> =
        outcome.findings.iter().filter(|f| !f.latent && (pedantic || !f.internal)).map(|f| f.identity).collect();
    let worthy: Vec<(RawFinding, Identity)> = reported
        .into_iter()
        .filter(|(raw, identity)| !raw.race.latent && is_worthy(raw, pedantic) && told.contains(identity))
        .collect();
    let cost = analysis.ops() + search::RACE * worthy.len() as u64;
    (outcome, Sought { worthy, given, cost })
}

/// Seeks the causes of an outcome's findings.
pub fn seek(
    analysis: &mut Analysis,
    mut outcome: Outcome,
    Sought { worthy, given, .. }: Sought,
    records: Option<&mut dyn Records>,
    effort: Effort,
) -> Outcome {
    if worthy.is_empty() {
        return outcome;
    }
    let pedantic = analysis.is_pedantic();
    let raws: Vec<RawFinding> = worthy.iter().map(|(raw, _)| raw.clone()).collect();
    let found = match records {
        Some(records) => search::search(analysis, records, &raws, given, (pedantic, effort)),
        None if analysis.has_gaps() => Err("segments are missing".to_string()),
        None => Err("the operations of the run were more than are kept".to_string()),
    };
    let found = match found {
        Ok(found) => found,
        Err(why) => {
            outcome.mended = Some(SetCheck { skipped: why, ..SetCheck::default() });
            return outcome;
        }
    };
    let mut causes: Vec<RootCause> = advice::causes(analysis, &raws, &found);
    let mut of: FxHashMap<Identity, usize> = FxHashMap::default();
    for (at, (_, identity)) in worthy.iter().enumerate() {
        if let Some(cause) = found.cause_of(at) {
            of.entry(*identity).or_insert(cause);
        }
    }
    for finding in &mut outcome.findings {
        if let Some(cause) = of.get(&finding.identity).and_then(|cause| causes.get(*cause)) {
            finding.cause.clone_from(&cause.fingerprint);
        }
    }
    // A wait that is needed only once the others are there has no finding of its own yet.
    let explained: FxHashSet<&str> = outcome.findings.iter().map(|f| f.cause.as_str()).collect();
    causes.retain(|cause| cause.tried || explained.contains(cause.fingerprint.as_str()));
    outcome.causes = causes;
    let identities = |wanted: &dyn Fn(usize) -> bool| {
        let wanted = worthy.iter().enumerate().filter(|(at, _)| wanted(*at));
        wanted.map(|(_, (_, identity))| *identity).collect::<FxHashSet<Identity>>().len() as u64
    };
    outcome.mended = Some(SetCheck {
        waits: found.waits.len() as u64,
        findings: identities(&|_| true),
        remain: identities(&|at| found.remaining.contains(&at)),
        fresh: found.fresh,
        blocked: found.blocked,
        smallest: found.smallest,
        trials: found.work.0,
        weighed: found.work.1,
        skipped: String::new(),
    });
    outcome
}

/// Whether a finding is worth a wait.
fn is_worthy(raw: &RawFinding, pedantic: bool) -> bool {
    is_worthy_race(&raw.race, pedantic)
}

/// The same of a race.
fn is_worthy_race(race: &Race, pedantic: bool) -> bool {
    pedantic || race.confidence >= Confidence::Likely
}
