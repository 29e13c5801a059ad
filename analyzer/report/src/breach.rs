//! A broken rule as reports print it: a call that the user has forbidden (`--forbid`).
//!
//! Owns the data, and the merging of those of several processes and programs. It is no race, so it
//! has one side only. `rules::elaborate` makes it.

use crate::finding::Side;
use crate::fingerprint::{Identity, text_of};
use crate::judgement::GateStatus;
use crate::model::Sightings;
use detect::confidence::Confidence;
use serde::{Deserialize, Serialize};
use settings::FailOn;

/// A kind of rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum RuleKind {
    /// No op on the legacy default stream.
    #[serde(rename = "forbidden-default-stream")]
    DefaultStream,
    /// No synchronisation of the host.
    #[serde(rename = "forbidden-sync")]
    Sync,
    /// No work on a stream that the program has made and not named.
    #[serde(rename = "forbidden-unnamed-stream")]
    UnnamedStream,
}

impl RuleKind {
    /// All of them, in the order of the help.
    pub(crate) const ALL: [Self; 3] = [Self::DefaultStream, Self::Sync, Self::UnnamedStream];

    /// The word of the option.
    pub fn word(self) -> &'static str {
        match self {
            Self::DefaultStream => "default-stream",
            Self::Sync => "sync",
            Self::UnnamedStream => "unnamed-stream",
        }
    }

    /// The name in files: where a race has its hazard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DefaultStream => "forbidden-default-stream",
            Self::Sync => "forbidden-sync",
            Self::UnnamedStream => "forbidden-unnamed-stream",
        }
    }
}

/// A call site that breaks a rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Breach {
    /// The kind of the rule.
    pub kind: RuleKind,
    /// The rule as it was given: `sync=step`.
    pub rule: String,
    /// What happens, one sentence without its full stop.
    pub text: String,
    /// `certain`, or `likely` where CUDA says only that the call may do so.
    pub confidence: Confidence,
    /// The identity within the run and across runs.
    pub identity: Identity,
    /// Names it across runs, also when its lines have moved.
    pub fingerprint: String,
    /// The gate's decision.
    pub standing: GateStatus,
    /// Times.
    pub count: u64,
    /// The process of the first time.
    pub pid: u32,
    /// The name of that process.
    pub origin: String,
    /// All processes, as indices into the report's list.
    pub processes: Vec<u32>,
    /// Times in each of them.
    pub occurrences: Vec<u64>,
    /// The ranges that the call was in, outermost first, all times; each list once.
    #[serde(default)]
    pub ranges: Vec<Vec<String>>,
    /// The programs of a hunt that do it; empty elsewhere.
    pub programs: Vec<String>,
    /// The call. It says nothing of bytes.
    pub side: Side,
}

impl Breach {
    /// Whether it fails the run.
    pub(crate) fn fails(&self, fail_on: FailOn) -> bool {
        let least = if fail_on == FailOn::Certain { Confidence::Certain } else { Confidence::Likely };
        self.standing == GateStatus::New && self.confidence >= least
    }

    /// Adds one to a list, or to the one there that is the same.
    pub(crate) fn merge(list: &mut Vec<Self>, mut one: Self) {
        match list.iter_mut().find(|known| known.identity == one.identity && known.rule == one.rule) {
            Some(known) => known.sightings().add(&one.sightings()),
            None => list.push(one),
        }
    }

    fn sightings(&mut self) -> Sightings<'_> {
        let Self { count, processes, occurrences, ranges, programs, .. } = self;
        Sightings { count, processes, occurrences, ranges, programs }
    }
}

/// Gives all of a run their fingerprints, and puts the certain ones first.
pub(crate) fn number(list: &mut [Breach]) {
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by_key(|&at| (list[at].identity.lasting, list[at].identity.exact));
    let (mut last, mut nth) = (None, 0);
    for at in order {
        let lasting = list[at].identity.lasting;
        nth = if last == Some(lasting) { nth + 1 } else { 0 };
        last = Some(lasting);
        list[at].fingerprint = text_of(lasting, nth);
    }
    list.sort_by_key(|breach| std::cmp::Reverse(breach.confidence));
}
