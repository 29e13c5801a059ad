//! Irregular bytes: many pieces at no regular distance, as sorted intervals.
//!
//! Owns the arithmetic on them: whether they hold a byte of an interval or of other pieces. An
//! extent holds them where no pattern describes its bytes: a scatter touches an element here and an
//! element there. One access then stands for all of them, and two such accesses are compared piece
//! by piece, in one pass over both.

use std::sync::Arc;

/// Disjoint intervals in ascending order, none of which touches the next. Places count from an
/// origin that the holder knows, so the same pieces can stand elsewhere. A copy shares them.
#[derive(Clone, Debug, Eq)]
pub struct Pieces(Arc<[(u64, u64)]>);

impl PartialEq for Pieces {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Pieces {
    /// From intervals in any order, which may overlap, and the origin that their places count from:
    /// no interval may begin before it.
    pub fn of(mut spans: Vec<(u64, u64)>, origin: u64) -> Self {
        spans.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(spans.len());
        for (from, to) in spans.into_iter().filter(|s| s.0 < s.1).map(|s| (s.0 - origin, s.1 - origin)) {
            match joined.last_mut() {
                Some(last) if last.1 >= from => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self(joined.into())
    }

    /// The intervals, from the origin on.
    pub fn spans(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|s| s.1 - s.0).sum()
    }

    /// The intervals that have a byte from `lo` up to `hi`.
    pub(crate) fn within(&self, lo: u64, hi: u64) -> &[(u64, u64)] {
        let first = self.0.partition_point(|s| s.1 <= lo);
        let last = self.0.partition_point(|s| s.0 < hi);
        self.0.get(first..last).unwrap_or_default()
    }

    /// Whether a byte from `lo` up to `hi` is among them.
    pub(crate) fn touches(&self, lo: u64, hi: u64) -> bool {
        self.0.get(self.0.partition_point(|s| s.1 <= lo)).is_some_and(|s| s.0 < hi)
    }
}

/// Whether two lists of intervals share a byte; each counts from an origin of its own.
pub(crate) fn meet(a: &[(u64, u64)], a_origin: u64, b: &[(u64, u64)], b_origin: u64, lo: u64, hi: u64) -> bool {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (x, y) = ((x.0 + a_origin, x.1 + a_origin), (y.0 + b_origin, y.1 + b_origin));
        let (from, to) = (x.0.max(y.0).max(lo), x.1.min(y.1).min(hi));
        if from < to {
            return true;
        }
        if x.1 <= y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    false
}

/// Whether each byte of the second list is in the first; each counts from an origin of its own.
pub(crate) fn include(a: &[(u64, u64)], a_origin: u64, b: &[(u64, u64)], b_origin: u64, lo: u64, hi: u64) -> bool {
    let mut i = 0;
    for y in b {
        let (from, to) = ((y.0 + b_origin).max(lo), (y.1 + b_origin).min(hi));
        if from >= to {
            continue;
        }
        while a.get(i).is_some_and(|x| x.1 + a_origin <= from) {
            i += 1;
        }
        // Intervals do not touch each other, so a single one has to hold all of this one.
        if !a.get(i).is_some_and(|x| x.0 + a_origin <= from && to <= x.1 + a_origin) {
            return false;
        }
    }
    true
}
