//! A cause as reports print it: what is missing, between which places, and the lines that mend it.
//!
//! Owns the data, and the cause of a finding that was not tried. `causes` makes the
//! others.

use crate::call_site::{site, site_frame};
use crate::finding::{Finding, MendingLines};
use crate::fingerprint::of_cause;
use crate::words::{Actor, CauseKind, FindingKind};
use serde::{Deserialize, Serialize};
use symbols::frame::Frame;

/// How the later side is made to wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Join {
    /// An event is recorded after the earlier op, and the later op's stream waits for it.
    Event,
    /// The stream of the later op waits for an event that the program records itself: the earlier
    /// sites are those records.
    Existing,
    /// The host waits for the stream of the earlier op.
    Host,
    /// A pool is told that the stream of the earlier op uses a block that is freed at the later
    /// site (`record_stream`).
    KeepAlive,
    /// While a graph is captured: one captured stream waits for the other.
    Capture,
}

/// What became of an added wait in one pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// Times it had something to wait for.
    pub waits: u64,
    /// Times nothing had been recorded yet, or only on the same stream.
    pub idle: u64,
    /// Times anything was recorded for it.
    pub records: u64,
    /// Times it would wait behind a wait for a value that nobody has been seen to write yet: the
    /// program may never get past that.
    pub blocked: u64,
    /// Graphs that hold one of its two places only: a wait within a capture reaches no other work.
    pub captured: u64,
}

/// One of the two places that a missing wait joins.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CausePoint {
    /// `file:line`, or the function; empty when unknown.
    pub at: String,
    /// The stack, innermost first.
    pub stack: Vec<Frame>,
    /// The streams that have run it, in prose.
    pub streams: Vec<String>,
}

/// What explains findings.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RootCause {
    /// Names the cause across runs, also when its lines have moved.
    pub fingerprint: String,
    /// What is missing.
    pub kind: CauseKind,
    /// What is missing, one sentence.
    pub missing: String,
    /// What has to come first.
    pub after: CausePoint,
    /// What has to wait for it.
    pub before: CausePoint,
    /// The lines that mend it, the program's own interface first.
    pub mend: Vec<MendingLines>,
    /// Whether the mend is part of the set that was tried ([`SetCheck`]).
    pub tried: bool,
}

/// The set of waits that was tried, and what is left with it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SetCheck {
    /// Waits of the set.
    pub waits: u64,
    /// Findings of the run.
    pub findings: u64,
    /// Findings that are still there with the set.
    pub remain: u64,
    /// Findings that are there only with the set.
    pub fresh: u64,
    /// Times that an added wait may never come to an end.
    pub blocked: u64,
    /// Whether none of the waits can be left out.
    pub smallest: bool,
    /// Times that the run was analysed again.
    #[serde(skip)]
    pub trials: u64,
    /// Waits that were weighed for a race: with `trials`, what the search has cost.
    #[serde(skip)]
    pub weighed: u64,
    /// Why nothing was tried; empty when it was.
    pub skipped: String,
}

/// A wait that the user wrote down, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GivenWait {
    /// As written.
    pub(crate) text: String,
    /// `FILE:LINE`.
    pub(crate) place: String,
    /// Times that anything was recorded for it.
    pub(crate) records: u64,
    /// Times that it made something wait.
    pub waits: u64,
    /// Times that there was nothing to wait for yet.
    pub(crate) idle: u64,
    /// Times that it may never come to an end.
    pub blocked: u64,
    /// Graphs that hold one of its two places only.
    pub(crate) captured: u64,
}

impl GivenWait {
    /// What became of a wait in one process.
    pub fn of(text: &str, place: &str, applied: &Applied) -> Self {
        let Applied { waits, idle, records, blocked, captured } = *applied;
        Self { text: text.to_string(), place: place.to_string(), records, waits, idle, blocked, captured }
    }

    /// Takes in what became of it in another process.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.records += other.records;
        self.waits += other.waits;
        self.idle += other.idle;
        self.blocked += other.blocked;
        self.captured += other.captured;
    }
}

impl SetCheck {
    /// Takes in the trial of another process.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.waits += other.waits;
        self.findings += other.findings;
        self.remain += other.remain;
        self.fresh += other.fresh;
        self.blocked += other.blocked;
        self.trials += other.trials;
        self.weighed += other.weighed;
        self.smallest &= other.smallest;
        if self.skipped.is_empty() {
            self.skipped.clone_from(&other.skipped);
        }
    }
}

impl RootCause {
    /// Whether another cause is this one but for who called the functions of its two places: what
    /// is missing is missing once.
    pub(crate) fn is_at_places_of(&self, other: &Self) -> bool {
        let is_one = |a: &CausePoint, b: &CausePoint| {
            let (frame, others) = (site_frame(&a.stack), site_frame(&b.stack));
            let names = |frame: Option<&Frame>| frame.map(|f| (f.function.clone(), f.file.clone(), f.line));
            !a.at.is_empty() && a.at == b.at && frame.is_some() && names(frame) == names(others)
        };
        self.kind == other.kind && is_one(&self.after, &other.after) && is_one(&self.before, &other.before)
    }

    /// Takes in the same cause as another program showed it, with other callers.
    pub(crate) fn join(&mut self, other: Self) {
        for (into, from) in [(&mut self.after, other.after), (&mut self.before, other.before)] {
            let fresh: Vec<String> = from.streams.into_iter().filter(|name| !into.streams.contains(name)).collect();
            into.streams.extend(fresh);
        }
        for mend in other.mend {
            if !self.mend.iter().any(|known| known.api == mend.api) {
                self.mend.push(mend);
            }
        }
        self.tried |= other.tried;
    }

    /// The cause of a finding by itself, as far as its two places tell it.
    pub(crate) fn of(f: &Finding) -> Self {
        let kind = match f.kind {
            FindingKind::RaceInsideKernel => CauseKind::MissingThreadOrder,
            FindingKind::StaleGraphMemory => CauseKind::OutlivedMemory,
            FindingKind::UninitializedRead => CauseKind::MissingWrite,
            FindingKind::Race if f.access.actor == Actor::Host => CauseKind::MissingHostWait,
            FindingKind::Race
                if f.access.node.is_some() && f.previous.node.is_some() && f.access.launched == f.previous.launched =>
            {
                CauseKind::MissingGraphEdge
            }
            FindingKind::Race if f.access.stream.id == f.previous.stream.id => CauseKind::Other,
            FindingKind::FreedWithoutRecordStream => CauseKind::MissingRecordStream,
            _ => CauseKind::MissingWait,
        };
        let point = |stack: &[Frame], stream: &str| CausePoint {
            at: site(stack).unwrap_or_default(),
            stack: stack.to_vec(),
            streams: vec![stream.to_string()],
        };
        let after = point(&f.previous.stack, &f.previous.stream.long);
        let before = point(&f.access.stack, &f.access.stream.long);
        let s = &f.synchronisation;
        let mut mend = s.mend.clone();
        mend.retain(|mend| !mend.lines.is_empty());
        let fingerprint = of_cause(kind.name(), &after.stack, &before.stack);
        Self { fingerprint, kind, missing: s.missing.clone(), after, before, mend, tried: false }
    }
}
