//! The conflict rule: whether a pair of unordered accesses is a race, and the name of its hazard.
//! Pure.
//!
//! Hazards are named by the order in which the program submitted the two operations, because that
//! is the order it intended: a write that a later read was meant to see is a read-after-write. Does
//! not grade how certain a race is: that is [`super::confidence`].

use crate::confidence::{Confidence, Weakness};
use crate::memory::{Access, AccessKind, Cause, conflict};
use serde::{Deserialize, Serialize};
use trace::Epoch;

/// The kind of conflict, by order of submission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Hazard {
    /// The earlier op writes what the later one reads.
    ReadAfterWrite,
    /// Both write.
    WriteAfterWrite,
    /// The earlier op reads what the later one writes.
    WriteAfterRead,
}

impl Hazard {
    /// The name that reports and JSON use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadAfterWrite => "read-after-write",
            Self::WriteAfterWrite => "write-after-write",
            Self::WriteAfterRead => "write-after-read",
        }
    }

    /// The first that applies of read-after-write, write-after-write and write-after-read; `None`
    /// when the two do not conflict.
    pub(crate) fn of(previous: &Access, access: &Access) -> Option<Self> {
        if !conflict((previous.kind, &previous.exclusion), (access.kind, &access.exclusion)) {
            None
        } else if previous.kind.writes() && access.kind.reads() {
            Some(Self::ReadAfterWrite)
        } else if previous.kind.writes() {
            Some(Self::WriteAfterWrite)
        } else {
            Some(Self::WriteAfterRead)
        }
    }
}

/// One race: two accesses of different ops.
#[derive(Clone, PartialEq, Debug)]
pub struct Race {
    /// The kind.
    pub hazard: Hazard,
    /// How certain it is that the two share a byte.
    pub confidence: Confidence,
    /// Why it is not more than possible, when that is by rule.
    pub weakness: Option<Weakness>,
    /// The two are ordered, but only by a synchronisation that CUDA does not promise.
    pub latent: bool,
    /// The later op does not touch the bytes: it is an allocation that could have received them,
    /// because they were freed too early.
    pub freed_early: bool,
    /// The earlier op's side.
    pub previous: Access,
    /// The later op's side.
    pub access: Access,
    /// The other access of each op to the same memory, the earlier op's first: of an op that reads
    /// and writes there, the one that `previous` and `access` do not show.
    pub beside: [Option<Beside>; 2],
}

/// Another access of an op to the memory of a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beside {
    /// Its kind.
    pub kind: AccessKind,
    /// Byte offset of the kernel parameter that led there.
    pub param: Option<u32>,
}

impl Race {
    /// Judges an unordered pair; `None` when it is no race.
    pub fn judge(previous: &Access, access: &Access, latent: bool) -> Option<Self> {
        // Races among host threads are not looked for.
        if previous.site.cause == Cause::Host && access.site.cause == Cause::Host {
            return None;
        }
        let hazard = Hazard::of(previous, access)?;
        let (confidence, weakness) = Confidence::of_pair(previous, access)?;
        let (previous, access) = (previous.clone(), access.clone());
        Some(Self { hazard, confidence, weakness, latent, freed_early: false, previous, access, beside: [None; 2] })
    }

    /// Rates this `possible`: what the analysis cannot see may order the two.
    pub fn demote(&mut self, weakness: Weakness) {
        (self.confidence, self.weakness) = (Confidence::Possible, Some(weakness));
    }

    /// Absorbs a race of the same two accesses on the bytes behind these.
    fn join(&mut self, next: &Self) {
        let kinds = |r: &Self| (r.previous.kind, r.access.kind);
        if kinds(self) == kinds(next)
            && let Some(previous) = self.previous.extent.joined(&next.previous.extent)
            && let Some(access) = self.access.extent.joined(&next.access.extent)
        {
            (self.previous.extent, self.access.extent) = (previous, access);
        }
    }

    /// Notes that an op both reads and writes bytes of this race, by another race of the same two.
    fn note_beside(&mut self, next: &Self) {
        for (at, (one, other)) in
            [(&self.previous, &next.previous), (&self.access, &next.access)].into_iter().enumerate()
        {
            let plain = |kind: AccessKind| !kind.is_atomic();
            let differ = one.kind != other.kind && plain(one.kind) && plain(other.kind);
            if differ && one.extent.start < other.extent.end && other.extent.start < one.extent.end {
                self.beside[at] = Some(Beside { kind: other.kind, param: other.site.param });
            }
        }
    }

    /// The two ops and the allocation. Races that agree in these are merged.
    fn pair(&self) -> (Epoch, u32, Epoch, u32, u32) {
        let (p, a) = (&self.previous, &self.access);
        (p.epoch, p.site.node, a.epoch, a.site.node, a.allocation.0)
    }
}

/// Merges all races of one pair of ops in one allocation into one: the first hazard among those
/// worth showing, with the highest confidence found for the pair.
pub fn merge(races: &mut Vec<Race>) {
    races.sort_by_key(|r| {
        let weak = r.confidence == Confidence::Possible;
        (r.pair(), r.latent, weak, r.hazard, std::cmp::Reverse(r.confidence))
    });
    races.dedup_by(|next, first| {
        let same = next.pair() == first.pair();
        if same && next.latent == first.latent {
            if next.confidence > first.confidence {
                (first.confidence, first.weakness) = (next.confidence, next.weakness);
            }
            first.join(next);
            first.note_beside(next);
        }
        same
    });
}
