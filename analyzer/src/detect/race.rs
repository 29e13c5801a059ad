//! What a pair of unordered accesses is worth: the conflict rule, the hazard's name, the
//! confidence. Pure.
//!
//! Hazards are named by the order in which the program submitted the two operations, which is the
//! order it had in mind: a write that a later read was meant to see is a read-after-write.

use crate::memory::{Access, Extent, Meet, Precision};
use trace::Epoch;

/// The kind of conflict, by order of submission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadAfterWrite => "read-after-write",
            Self::WriteAfterWrite => "write-after-write",
            Self::WriteAfterRead => "write-after-read",
        }
    }

    /// The first that fits of read-after-write, write-after-write, write-after-read; `None` when
    /// the two do not conflict.
    pub fn of(previous: &Access, access: &Access) -> Option<Self> {
        if !previous.kind.conflicts(access.kind) {
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

/// How sure it is that the two share a byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Confidence {
    /// Anything weaker than the others: same allocation, extents unknown.
    Possible,
    /// An extent is unknown, but both start at one address, or one side's range holds the other's
    /// start.
    Likely,
    /// Both ranges are exact, and they overlap.
    Certain,
}

impl Confidence {
    /// The name that reports and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }

    /// How sure it is that two extents share a byte; `None` when they do not.
    pub fn of(a: &Extent, b: &Extent) -> Option<Self> {
        use Precision::{Bound, Exact, Unknown};
        let meet = a.meet(b);
        match (a.precision, b.precision) {
            // Upper bounds that do not meet prove that there is no race, and so does a bound beside
            // a known start.
            (Exact | Bound, Exact | Bound) if meet == Meet::No => None,
            (Exact, Exact) if meet == Meet::Yes => Some(Self::Certain),
            (Exact, Exact) => Some(Self::Likely),
            _ if a.anchor == b.anchor => Some(Self::Likely),
            (Unknown, Unknown) => Some(Self::Possible),
            (Unknown, _) => Some(if b.holds(a.anchor) { Self::Likely } else { Self::Possible }),
            (_, Unknown) => Some(if a.holds(b.anchor) { Self::Likely } else { Self::Possible }),
            _ => Some(if a.holds(b.anchor) || b.holds(a.anchor) { Self::Likely } else { Self::Possible }),
        }
    }
}

/// One race: two accesses of different ops.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Race {
    /// The kind.
    pub hazard: Hazard,
    /// How sure.
    pub confidence: Confidence,
    /// The two are ordered after all, but only by a synchronisation that CUDA does not promise.
    pub latent: bool,
    /// The later op does not touch the bytes: its allocator could have given them out, for they
    /// were given back too early.
    pub freed_early: bool,
    /// The earlier op's side.
    pub previous: Access,
    /// The later op's side.
    pub access: Access,
}

impl Race {
    /// Judges an unordered pair; `None` when it is no race.
    pub fn judge(previous: &Access, access: &Access, latent: bool) -> Option<Self> {
        let hazard = Hazard::of(previous, access)?;
        let mut confidence = Confidence::of(&previous.extent, &access.extent)?;
        // Two scatters into one table usually share it out between them, and nobody can tell
        // without running them. A scatter and a gather that are not ordered are hardly ever meant.
        let scatters = previous.extent.scattered && access.extent.scattered && hazard == Hazard::WriteAfterWrite;
        // A bound around pieces that data picked proves absence only.
        let loose = |e: &Extent| e.scattered && e.precision == Precision::Bound;
        if scatters || loose(&previous.extent) || loose(&access.extent) {
            confidence = confidence.min(Confidence::Possible);
        }
        Some(Self { hazard, confidence, latent, freed_early: false, previous: *previous, access: *access })
    }

    /// Takes in a race of the same two accesses about the bytes behind these.
    fn join(&mut self, next: &Self) {
        let kinds = |r: &Self| (r.previous.kind, r.access.kind);
        if kinds(self) == kinds(next)
            && let Some(previous) = self.previous.extent.joined(&next.previous.extent)
            && let Some(access) = self.access.extent.joined(&next.access.extent)
        {
            (self.previous.extent, self.access.extent) = (previous, access);
        }
    }

    /// The two ops and the allocation: races that agree in these are one.
    fn pair(&self) -> (Epoch, u32, Epoch, u32, u32) {
        let (p, a) = (&self.previous, &self.access);
        (p.epoch, p.site.node, a.epoch, a.site.node, a.allocation.0)
    }
}

/// Makes one race of all that one pair of ops has in one allocation: the hazard that comes first
/// among those worth showing, with the highest confidence found for the pair.
pub fn merge(races: &mut Vec<Race>) {
    races.sort_by_key(|r| {
        let weak = r.confidence == Confidence::Possible;
        (r.pair(), r.latent, weak, r.hazard, std::cmp::Reverse(r.confidence))
    });
    races.dedup_by(|next, first| {
        let same = next.pair() == first.pair();
        if same && next.latent == first.latent {
            first.confidence = first.confidence.max(next.confidence);
            first.join(next);
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Dim;

    fn of(a: Extent, b: Extent) -> Option<Confidence> {
        let forward = Confidence::of(&a, &b);
        assert_eq!(forward, Confidence::of(&b, &a), "confidence must not depend on who came first");
        forward
    }

    #[test]
    fn exact_ranges_are_certain_or_nothing() {
        assert_eq!(of(Extent::exact(0, 101), Extent::exact(100, 200)), Some(Confidence::Certain));
        assert_eq!(of(Extent::exact(0, 100), Extent::exact(100, 200)), None);
    }

    #[test]
    fn unknown_extents_are_likely_at_one_start_and_possible_elsewhere() {
        let at = |p| Extent::unknown(p, 0, 1000);
        assert_eq!(of(at(8), at(8)), Some(Confidence::Likely));
        assert_eq!(of(at(8), at(16)), Some(Confidence::Possible));
        assert_eq!(of(at(8), Extent::exact(0, 9)), Some(Confidence::Likely));
        assert_eq!(of(at(8), Extent::exact(9, 20)), Some(Confidence::Possible));
    }

    #[test]
    fn bounds_that_overlap_are_never_certain_and_silent_when_apart() {
        let bound = |a, b| Extent::bound(a, b, a);
        assert_eq!(of(bound(0, 10), bound(10, 20)), None);
        assert_eq!(of(bound(0, 11), bound(10, 20)), Some(Confidence::Likely));
        assert_eq!(of(bound(0, 10), Extent::exact(0, 10)), Some(Confidence::Likely));
        assert_eq!(of(bound(5, 10), Extent::exact(0, 5)), None);
        assert_eq!(of(bound(0, 10), Extent::unknown(20, 20, 21)), Some(Confidence::Possible));
    }

    #[test]
    fn interleaved_patterns_are_silent() {
        let every_other = |p| Extent::pattern(p, 4, &[Dim { stride: 8, count: 100 }], p, Precision::Exact);
        assert_eq!(of(every_other(0), every_other(4)), None);
        assert_eq!(of(every_other(0), every_other(2)), Some(Confidence::Certain));
    }
}
