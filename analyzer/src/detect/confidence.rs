//! How sure it is that two accesses share a byte: why a finding is `certain`, `likely` or `possible`.
//!
//! Owns the rule. What is known of each side's bytes ([`Precision`]) comes from the calls' arguments,
//! from the kernels' code ([`crate::launches`]) or from measurements ([`crate::exact`]).

use crate::memory::{Extent, Meet, Precision};

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

    /// How sure it is that two accesses share a byte; `None` when they do not. `both_write`: the pair
    /// is a write-after-write.
    pub fn of_pair(previous: &Extent, access: &Extent, both_write: bool) -> Option<Self> {
        let confidence = Self::of(previous, access)?;
        // Two scatters into one table usually share it out between them, and only a run shows
        // whether they do. A scatter and a gather that are not ordered are hardly ever meant.
        let scatters = previous.scattered && access.scattered && both_write;
        // A bound around pieces that data picked proves absence only.
        let loose = |e: &Extent| e.scattered && e.precision == Precision::Bound;
        let weak = scatters || loose(previous) || loose(access);
        Some(if weak { confidence.min(Self::Possible) } else { confidence })
    }

    /// How sure it is that two extents share a byte, whatever picked them; `None` when they do not.
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
