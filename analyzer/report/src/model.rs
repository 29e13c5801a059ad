//! The report of a run as plain data: everything is resolved, nothing refers to the analysis.
//!
//! Owns the report ([`Report`]), each process's part ([`Outcome`]), and the merging and counting of
//! findings. Its parts are [`super::finding`], [`super::fault`] and [`super::judgement`]. Does not
//! print: that is [`crate::format`].

pub use crate::breach::{Breach, RuleKind};
pub use crate::cause::{CausePoint, GivenWait, RootCause, SetCheck};
pub use crate::fault::{Fault, FaultSite, Running, UnjoinedStream};
pub use crate::finding::{
    AllocationInfo, Finding, InKernel, Inside, MendingLines, SharedArray, Side, StaleMemory, StreamName,
    Synchronisation, ThreadPlace, titled,
};
pub use crate::judgement::{AppliedFilter, AppliedSuppression, GateStatus, Judgement};
pub use crate::words::Actor;

use crate::breach;
use crate::escape::Harmless;
use crate::fingerprint::number;
use crate::program::Program;
use detect::confidence::Confidence;
use detect::coverage::Coverage;
use detect::exact::learned::Learned;
use detect::exact::oracle::Oracle;
use detect::hint_kind::HintKind;
use detect::state::names::Process;
use serde::{Deserialize, Serialize};
use settings::FailOn;
use symbols::frame::Frame;

/// A call that is no race but probably a mistake.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hint {
    /// Its kind.
    pub kind: HintKind,
    /// One sentence.
    pub text: String,
    /// Occurrences.
    pub count: u64,
    /// The process.
    pub pid: u32,
    /// Where.
    pub stack: Vec<Frame>,
    /// Where the other call was made, if there are two.
    pub other: Vec<Frame>,
}

/// The result of the analysis of one process.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The process.
    pub process: Process,
    /// Its number among those that are compared with each other.
    pub member: Option<u32>,
    /// Its findings.
    pub findings: Vec<Finding>,
    /// Findings that measured ranges refute.
    pub withdrawn: Vec<Finding>,
    /// The causes of its findings, as far as they were searched for.
    pub causes: Vec<RootCause>,
    /// The trial of the mending waits; `None` without findings.
    pub mended: Option<SetCheck>,
    /// The waits that the user wrote down.
    pub with: Vec<GivenWait>,
    /// What breaks a rule of the user's.
    pub breaches: Vec<Breach>,
    /// Its hints, when they were asked for.
    pub hints: Vec<Hint>,
    /// Errors that ended a context.
    pub faults: Vec<Fault>,
    /// What could be seen.
    pub coverage: Coverage,
    /// Predictions against measurements, when that was asked for.
    #[serde(skip)]
    pub oracle: Oracle,
    /// Ranges to keep, when that was asked for.
    #[serde(skip)]
    pub learned: Learned,
}

/// The report of a run: all its processes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// All processes that used CUDA, in the order they were given.
    pub processes: Vec<Process>,
    /// All findings, the most certain and most frequent first.
    pub findings: Vec<Finding>,
    /// Findings that measured ranges refute; see [`Report::withdrawn`].
    pub withdrawn: Vec<Finding>,
    /// The causes of the findings, the one with most findings first.
    pub causes: Vec<RootCause>,
    /// The trial of the mending waits, when one was made.
    pub mended: Option<SetCheck>,
    /// The waits that the user wrote down.
    pub(crate) with: Vec<GivenWait>,
    /// What breaks a rule of the user's.
    pub breaches: Vec<Breach>,
    /// Hints, when they were asked for. They never fail a run.
    pub(crate) hints: Vec<Hint>,
    /// Errors that ended a context. They fail no run: reporting them is up to the program.
    pub(crate) faults: Vec<Fault>,
    /// What could be seen in all processes.
    pub coverage: Coverage,
    /// Predictions against measurements, when that was asked for.
    pub oracle: Oracle,
    /// Ranges to keep, when that was asked for.
    pub learned: Learned,
    /// Whether weak findings are shown.
    pub pedantic: bool,
    /// The weakest finding that fails the run.
    pub fail_on: FailOn,
    /// What the gate has set aside.
    pub judgement: Judgement,
    /// Names of kernels that options ask for and that none has, as lines.
    pub unmet_names: Vec<String>,
    /// Whether a run without CUDA work fails.
    pub cuda_required: bool,
    /// The programs of a hunt, in the order they were found; empty elsewhere.
    pub programs: Vec<Program>,
}

impl Report {
    /// Puts the outcomes of several processes together. Findings with one identity become one.
    pub fn merge(outcomes: Vec<Outcome>, pedantic: bool) -> Self {
        let fail_on = if pedantic { FailOn::Possible } else { FailOn::Likely };
        let mut report = Self { pedantic, fail_on, ..Self::default() };
        for (index, outcome) in outcomes.into_iter().enumerate() {
            report.coverage.merge(&outcome.coverage);
            let origin = outcome.process.name();
            report.oracle.merge(outcome.oracle);
            report.learned.merge(outcome.learned);
            for finding in outcome.withdrawn {
                merge_finding(&mut report.withdrawn, finding);
            }
            report.processes.push(outcome.process);
            for mut breach in outcome.breaches {
                breach.processes = vec![index as u32];
                breach.occurrences = vec![breach.count];
                breach.origin.clone_from(&origin);
                Breach::merge(&mut report.breaches, breach);
            }
            report.hints.extend(outcome.hints);
            report.faults.extend(outcome.faults);
            report.take_causes(outcome.causes);
            report.take_trial(outcome.mended);
            for given in outcome.with {
                match report.with.iter_mut().find(|known| known.place == given.place) {
                    Some(known) => known.merge(&given),
                    None => report.with.push(given),
                }
            }
            for mut finding in outcome.findings {
                finding.processes = vec![index as u32];
                finding.occurrences = vec![finding.count];
                finding.origin.clone_from(&origin);
                merge_finding(&mut report.findings, finding);
            }
        }
        report.sort();
        number(&mut report.findings);
        number(&mut report.withdrawn);
        breach::number(&mut report.breaches);
        report.disarm();
        report.settle_causes();
        report
    }

    /// Adds causes. Those of several processes at one place are one.
    pub fn take_causes(&mut self, causes: Vec<RootCause>) {
        for cause in causes {
            if !self.causes.iter().any(|known| known.fingerprint == cause.fingerprint) {
                self.causes.push(cause);
            }
        }
    }

    /// Adds the trial of another process or program.
    pub(super) fn take_trial(&mut self, trial: Option<SetCheck>) {
        match (&mut self.mended, trial) {
            (Some(all), Some(one)) => all.merge(&one),
            (all, Some(one)) => *all = Some(one),
            (_, None) => {}
        }
    }

    /// Gives a cause to the findings that have none, and puts the causes with most findings first.
    pub fn settle_causes(&mut self) {
        for at in 0..self.findings.len() {
            let known = self.causes.iter().any(|cause| cause.fingerprint == self.findings[at].cause);
            if !known {
                let own = RootCause::of(&self.findings[at]);
                self.findings[at].cause.clone_from(&own.fingerprint);
                self.take_causes(vec![own]);
            }
        }
        let mine = |cause: &RootCause| {
            let mut places = (0..self.findings.len()).filter(|at| self.findings[*at].cause == cause.fingerprint);
            let first = places.next();
            (first.map_or(0, |_| 1 + places.count()), first)
        };
        let mut sized: Vec<_> = self.causes.iter().map(|cause| (mine(cause), cause.clone())).collect();
        sized.retain(|((findings, _), cause)| *findings > 0 || cause.tried);
        sized.sort_by_key(|((findings, first), _)| (std::cmp::Reverse(*findings), *first));
        self.causes = sized.into_iter().map(|(_, cause)| cause).collect();
        if let Some(mended) = &mut self.mended {
            mended.waits = self.causes.iter().filter(|cause| cause.tried).count() as u64;
        }
    }

    /// The causes that some of these findings have, in the order of the list.
    pub(crate) fn causes_of<'a>(&'a self, findings: impl Iterator<Item = &'a Finding>) -> Vec<&'a RootCause> {
        let wanted: std::collections::BTreeSet<&str> = findings.map(|f| f.cause.as_str()).collect();
        self.causes.iter().filter(|cause| wanted.contains(cause.fingerprint.as_str())).collect()
    }

    /// Puts the most certain findings first.
    pub fn sort(&mut self) {
        self.findings.sort_by(|a, b| {
            (a.latent, std::cmp::Reverse(a.confidence)).cmp(&(b.latent, std::cmp::Reverse(b.confidence)))
        });
    }

    /// Escapes all names that come from the program, for every format at once.
    fn disarm(&mut self) {
        self.processes.disarm();
        self.findings.disarm();
        self.breaches.disarm();
        self.withdrawn.disarm();
        self.hints.disarm();
        self.faults.disarm();
        self.coverage.disarm();
        self.causes.disarm();
        self.with.disarm();
    }

    /// Findings that are printed: not set aside, and certain enough. Those inside NVIDIA's
    /// libraries only if weak ones are shown too.
    pub fn shown(&self) -> impl Iterator<Item = &Finding> {
        self.worth_showing().filter(|f| f.standing == GateStatus::New)
    }

    /// Findings that measured ranges refute and that would be printed otherwise, and guesses, which
    /// a NOTE would count.
    pub fn withdrawn(&self) -> impl Iterator<Item = &Finding> {
        let stands = |w: &Finding| self.findings.iter().any(|f| f.identity == w.identity && f.latent == w.latent);
        self.withdrawn.iter().filter(move |f| (self.is_worth_showing(f) || f.is_guessed()) && !stands(f))
    }

    /// Findings that would be printed if they were not set aside.
    pub(crate) fn set_aside(&self) -> impl Iterator<Item = &Finding> {
        self.worth_showing().filter(|f| f.standing != GateStatus::New)
    }

    fn worth_showing(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| self.is_worth_showing(f))
    }

    fn is_worth_showing(&self, f: &Finding) -> bool {
        let least = if self.pedantic { Confidence::Possible } else { Confidence::Likely };
        f.confidence >= least && (self.pedantic || !f.internal)
    }

    /// Whether a finding of this report fails the run.
    pub(crate) fn fails(&self, finding: &Finding) -> bool {
        finding.fails(self.pedantic, self.fail_on)
    }

    /// Findings that fail the run.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| self.fails(f))
    }

    /// Broken rules that fail the run.
    pub fn failing_breaches(&self) -> impl Iterator<Item = &Breach> {
        self.breaches.iter().filter(|breach| breach.fails(self.fail_on))
    }

    /// Number of races and broken rules that fail the run.
    pub fn failing(&self) -> u64 {
        (self.failures().count() + self.failing_breaches().count()) as u64
    }

    /// How often what fails the run has occurred.
    pub(crate) fn occurrences(&self) -> u64 {
        self.failures().map(|f| f.count).chain(self.failing_breaches().map(|b| b.count)).sum()
    }

    /// Number of races and broken rules that fail the run, by confidence: certain, likely,
    /// possible. The last number is that of latent ones, which do not fail it.
    pub(crate) fn counts(&self) -> [usize; 4] {
        let broken = |c: Confidence| self.failing_breaches().filter(|b| b.confidence == c).count();
        let by = |c: Confidence| self.failures().filter(|f| f.confidence == c).count() + broken(c);
        let latent = self.findings.iter().filter(|f| f.latent && f.standing == GateStatus::New).count();
        [by(Confidence::Certain), by(Confidence::Likely), by(Confidence::Possible), latent]
    }
}

/// Adds a finding, or merges it with the one of equal identity.
pub fn merge_finding(findings: &mut Vec<Finding>, finding: Finding) {
    let same = findings.iter().position(|f| f.identity == finding.identity && f.latent == finding.latent);
    merge_into(findings, same, finding);
}

/// Adds a finding, or merges it with the one at this place.
pub(crate) fn merge_into(findings: &mut Vec<Finding>, same: Option<usize>, mut finding: Finding) {
    let Some(first) = same.and_then(|same| findings.get_mut(same)) else {
        findings.push(finding);
        return;
    };
    first.sightings().add(&finding.sightings());
    if first.confidence < finding.confidence {
        first.sightings().swap(finding.sightings());
        *first = finding;
    }
}

/// Where and how often a race or a broken rule was seen, while those of several processes and
/// programs become one.
pub(crate) struct Sightings<'a> {
    pub count: &'a mut u64,
    /// Indices into the report's list, and the times in each.
    pub processes: &'a mut Vec<u32>,
    pub occurrences: &'a mut Vec<u64>,
    pub ranges: &'a mut Vec<Vec<String>>,
    pub programs: &'a mut Vec<String>,
}

impl Sightings<'_> {
    /// Adds those of the same finding in another process or program.
    pub(crate) fn add(self, other: &Sightings<'_>) {
        *self.count += *other.count;
        for (process, count) in other.processes.iter().zip(other.occurrences.iter()) {
            match (self.processes.last(), self.occurrences.last_mut()) {
                (Some(last), Some(sum)) if last == process => *sum += count,
                _ => {
                    self.processes.push(*process);
                    self.occurrences.push(*count);
                }
            }
        }
        join(self.ranges, other.ranges);
        join(self.programs, other.programs);
    }

    /// Exchanges them with those of another finding.
    pub(crate) fn swap(self, other: Sightings<'_>) {
        std::mem::swap(self.count, other.count);
        std::mem::swap(self.processes, other.processes);
        std::mem::swap(self.occurrences, other.occurrences);
        std::mem::swap(self.ranges, other.ranges);
        std::mem::swap(self.programs, other.programs);
    }
}

/// Adds what is not there yet.
fn join<T: Clone + PartialEq>(list: &mut Vec<T>, more: &[T]) {
    let fresh: Vec<T> = more.iter().filter(|one| !list.contains(one)).cloned().collect();
    list.extend(fresh);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Count, processes, times in each, ranges, programs.
    type Seen = (u64, Vec<u32>, Vec<u64>, Vec<Vec<String>>, Vec<String>);

    fn of(seen: &mut Seen) -> Sightings<'_> {
        let (count, processes, occurrences, ranges, programs) = seen;
        Sightings { count, processes, occurrences, ranges, programs }
    }

    fn seen(processes: &[(u32, u64)], ranges: &[&str], programs: &[&str]) -> Seen {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let count = processes.iter().map(|(_, count)| count).sum();
        let (processes, occurrences) = processes.iter().copied().unzip();
        (count, processes, occurrences, ranges.iter().map(|name| texts(&[name])).collect(), texts(programs))
    }

    #[test]
    fn one_process_counts_once_and_each_range_and_program_stands_once() {
        let mut first = seen(&[(0, 2), (1, 1)], &["step", "epoch"], &["a"]);
        let mut more = seen(&[(1, 4), (2, 1)], &["epoch", "load"], &["a", "b"]);
        of(&mut first).add(&of(&mut more));
        assert_eq!(first, seen(&[(0, 2), (1, 5), (2, 1)], &["step", "epoch", "load"], &["a", "b"]));
    }

    #[test]
    fn what_is_exchanged_is_all_of_it() {
        let (mut first, mut second) = (seen(&[(0, 2)], &["step"], &["a"]), seen(&[(7, 1)], &[], &["b"]));
        let before = (first.clone(), second.clone());
        of(&mut first).swap(of(&mut second));
        assert_eq!((second, first), before);
    }
}
