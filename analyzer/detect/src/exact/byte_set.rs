//! Sets of bytes as sorted intervals: the arithmetic of the comparison. Pure.
//!
//! Owns the sets and the decomposition of a pattern into intervals. Knows nothing of accesses.

use crate::memory::Dim;

/// Maximum number of intervals of one pattern. A finer pattern counts as the interval around it.
const MAX_PIECES: u64 = 1 << 20;

/// Bytes, as disjoint intervals in ascending order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ByteSet {
    spans: Vec<(u64, u64)>,
}

impl ByteSet {
    /// A set from intervals in any order, which may overlap.
    pub(crate) fn of(mut spans: Vec<(u64, u64)>) -> Self {
        spans.retain(|s| s.0 < s.1);
        spans.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(spans.len().min(1024));
        for span in spans {
            match joined.last_mut() {
                Some(last) if last.1 >= span.0 => last.1 = last.1.max(span.1),
                _ => joined.push(span),
            }
        }
        Self { spans: joined }
    }

    /// The intervals.
    pub(crate) fn spans(&self) -> &[(u64, u64)] {
        &self.spans
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.spans.iter().map(|s| s.1 - s.0).sum()
    }

    /// Whether a byte from `lo` up to `hi` is in the set.
    pub(crate) fn meets(&self, lo: u64, hi: u64) -> bool {
        lo < hi && self.spans.get(self.spans.partition_point(|s| s.1 <= lo)).is_some_and(|s| s.0 < hi)
    }

    /// The union.
    #[must_use]
    pub(crate) fn union(&self, other: &Self) -> Self {
        Self::of(self.spans.iter().chain(&other.spans).copied().collect())
    }

    /// The bytes that the other set lacks.
    #[must_use]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut holes = other.spans.iter().peekable();
        for &(mut from, to) in &self.spans {
            while holes.next_if(|h| h.1 <= from).is_some() {}
            let mut ahead = holes.clone();
            while let Some(hole) = ahead.next_if(|h| h.0 < to) {
                if hole.0 > from {
                    left.push((from, hole.0));
                }
                from = from.max(hole.1);
            }
            if from < to {
                left.push((from, to));
            }
        }
        Self { spans: left }
    }
}

/// The intervals of a pattern: runs of `width` bytes along `dims` from `lo` to `hi`. False: there
/// are too many, and the interval around them is used.
pub(crate) fn pieces(lo: u64, hi: u64, width: u64, dims: &[Dim], to: &mut Vec<(u64, u64)>) -> bool {
    let count = dims.iter().fold(1_u64, |n, d| n.saturating_mul(d.count.max(1)));
    if dims.is_empty() || count > MAX_PIECES {
        to.push((lo, hi));
        return dims.is_empty();
    }
    let first = to.len();
    to.push((lo, lo.saturating_add(width)));
    for dim in dims {
        let have = to.len();
        for step in 1..dim.count {
            let by = dim.stride.saturating_mul(step);
            for at in first..have {
                let (from, until) = to[at];
                to.push((from.saturating_add(by), until.saturating_add(by)));
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_agrees_with_single_bytes() {
        let mut seed = 3_u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % n
        };
        for _ in 0..500 {
            let mut set = || -> Vec<(u64, u64)> {
                let n = next(6);
                (0..n).map(|_| (next(60), next(20))).map(|(from, len)| (from, from + len)).collect()
            };
            let (a, b) = (set(), set());
            let holds = |spans: &[(u64, u64)], byte: u64| spans.iter().any(|s| s.0 <= byte && byte < s.1);
            let (x, y) = (ByteSet::of(a.clone()), ByteSet::of(b.clone()));
            let (minus, union) = (x.minus(&y), x.union(&y));
            for byte in 0..90 {
                assert_eq!(holds(minus.spans(), byte), holds(&a, byte) && !holds(&b, byte), "{a:?} - {b:?} at {byte}");
                assert_eq!(holds(union.spans(), byte), holds(&a, byte) || holds(&b, byte));
            }
            let (lo, hi) = (next(60), next(30));
            assert_eq!(x.meets(lo, lo + hi), (lo..lo + hi).any(|byte| holds(&a, byte)));
            assert_eq!(x.len(), (0..90).filter(|byte| holds(&a, *byte)).count() as u64);
        }
    }

    #[test]
    fn patterns_are_taken_apart() {
        let mut to = Vec::new();
        let dims = [Dim { stride: 8, count: 3 }, Dim { stride: 100, count: 2 }];
        assert!(pieces(10, 130, 4, &dims, &mut to));
        to.sort_unstable();
        assert_eq!(to, [(10, 14), (18, 22), (26, 30), (110, 114), (118, 122), (126, 130)]);
        to.clear();
        assert!(!pieces(0, 1 << 40, 1, &[Dim { stride: 2, count: 1 << 39 }], &mut to));
        assert_eq!(to, [(0, 1 << 40)]);
    }
}
