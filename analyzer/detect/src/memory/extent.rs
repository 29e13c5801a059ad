//! The bytes of one access: an interval, a regular pattern of intervals or a list of irregular
//! pieces, and how precisely they are known.
//!
//! Owns the arithmetic of one pattern: normalisation, and the question whether it has a byte in a
//! range. Whether two extents share a byte is in [`meet`], whether one has neither gaps nor doubts
//! in `plain`, the arithmetic of irregular pieces in [`super::pieces`]. Does not know allocations.

mod meet;
mod plain;

use super::pieces::{self, Pieces};
use serde::{Deserialize, Serialize};

/// Dimensions that a pattern keeps. A fourth one is only ever needed by kernels that walk a 4D
/// tensor with four gaps.
pub(crate) const MAX_DIMS: usize = 3;

pub use kernels::Dim;
pub use meet::Meet;

/// How precisely the bytes of an access are known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Only where it starts.
    Unknown,
    /// No byte outside the extent is touched, but not every byte inside need be.
    Bound,
    /// Exactly these bytes.
    Exact,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Bound, Self::Exact];

    /// The name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Bound => "bound",
            Self::Exact => "exact",
        }
    }
}

/// The bytes of one access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First byte that counts.
    pub start: u64,
    /// One past the last byte that counts.
    pub end: u64,
    /// The address that the access starts from, as the program passed it. Two accesses of unknown
    /// extent are compared by it.
    pub(crate) anchor: u64,
    /// How well the bytes are known.
    pub precision: Precision,
    /// The bytes are selected by data (a loaded index). The two sides of a scatter may well be
    /// disjoint by design.
    pub(crate) scattered: bool,
    /// A bound that is the range of the types of loaded values, which alone select the bytes: no
    /// tile of threads rounds it up.
    pub(crate) looked_up: bool,
    origin: u64,
    width: u64,
    dims: [Dim; MAX_DIMS],
    used: u8,
    /// Instead of a pattern, from `origin` on.
    pieces: Option<Pieces>,
}

impl Extent {
    /// Exactly the bytes from `start` up to `end`.
    pub fn exact(start: u64, end: u64) -> Self {
        Self::dense(start, end, start, Precision::Exact)
    }

    /// Some of the bytes from `start` up to `end`.
    pub fn bound(start: u64, end: u64, anchor: u64) -> Self {
        Self::dense(start, end, anchor, Precision::Bound)
    }

    /// An unknown number of bytes around `anchor`. The bytes from `start` to `end` are compared.
    pub fn unknown(anchor: u64, start: u64, end: u64) -> Self {
        Self::dense(start, end, anchor, Precision::Unknown)
    }

    /// The same extent, marked as selected by data.
    #[must_use]
    pub fn by_data(self) -> Self {
        Self { scattered: true, ..self }
    }

    fn dense(start: u64, end: u64, anchor: u64, precision: Precision) -> Self {
        let width = end.saturating_sub(start);
        Self {
            start,
            end,
            anchor,
            precision,
            scattered: false,
            looked_up: false,
            origin: start,
            width,
            dims: [Dim::default(); MAX_DIMS],
            used: 0,
            pieces: None,
        }
    }

    /// These pieces, which count from `origin`. Their first byte is the anchor.
    pub fn irregular(origin: u64, pieces: Pieces, precision: Precision) -> Self {
        let (first, last) = (pieces.spans().first(), pieces.spans().last());
        let (start, end) = first.zip(last).map_or((0, 0), |(first, last)| (first.0, last.1));
        let dense =
            Self::dense(origin.wrapping_add(start), origin.wrapping_add(end), origin.wrapping_add(start), precision);
        Self { origin, width: 0, pieces: Some(pieces), ..dense }
    }

    /// Runs of `width` bytes from `origin`, repeated along `dims`. More gaps than [`MAX_DIMS`] can
    /// hold turn an exact pattern into a bound, never the other way round.
    pub fn pattern(origin: u64, width: u64, dims: &[Dim], anchor: u64, precision: Precision) -> Self {
        let repeats = |dim: &Dim| dim.count > 1 && dim.stride > 0;
        if !dims.iter().any(repeats) {
            return Self { width, ..Self::dense(origin, origin.saturating_add(width), anchor, precision) };
        }
        let mut sorted: smallvec::SmallVec<[Dim; 8]> = dims.iter().copied().filter(repeats).collect();
        sorted.sort_unstable_by_key(|d| d.stride);
        let (mut width, mut precision) = (width, precision);
        let mut kept: smallvec::SmallVec<[Dim; 8]> = smallvec::SmallVec::new();
        for dim in sorted {
            let reach = dim.stride.saturating_mul(dim.count - 1);
            match kept.last_mut() {
                None if dim.stride <= width => width = width.saturating_add(reach),
                // A stride that lands on the grid of the last dimension, without leaving a hole,
                // continues it.
                Some(last) if dim.stride.is_multiple_of(last.stride) && dim.stride / last.stride <= last.count => {
                    let steps = (dim.stride / last.stride).saturating_mul(dim.count - 1);
                    last.count = last.count.saturating_add(steps);
                }
                _ => kept.push(dim),
            }
        }
        while kept.len() > MAX_DIMS {
            let inner = kept.remove(0);
            width = width.saturating_add(inner.stride.saturating_mul(inner.count - 1));
            precision = precision.min(Precision::Bound);
        }
        let mut extent = Self::dense(origin, origin.saturating_add(width), anchor, precision);
        extent.width = width;
        if width == 0 {
            return extent;
        }
        for (slot, dim) in extent.dims.iter_mut().zip(&kept) {
            *slot = *dim;
            extent.end = extent.end.saturating_add(dim.stride.saturating_mul(dim.count - 1));
        }
        extent.used = kept.len() as u8;
        extent
    }

    /// Whether every byte from the first to the last is touched.
    pub(crate) fn is_whole(&self) -> bool {
        self.precision == Precision::Exact && self.is_dense()
    }

    /// Whether all bytes of the other extent are among these, as far as equal gaps show it.
    pub(crate) fn takes_in(&self, other: &Self) -> bool {
        if self.start > other.start || other.end > self.end {
            return false;
        }
        if self.is_dense() {
            return true;
        }
        if self.pieces.is_some() || other.pieces.is_some() || !self.nested() || !other.nested() {
            return false;
        }
        let Some(mut offset) = other.origin.checked_sub(self.origin) else { return false };
        let mut theirs = other.dims();
        for mine in self.dims().iter().rev() {
            let count = match theirs.split_last() {
                Some((last, rest)) if last.stride == mine.stride => {
                    theirs = rest;
                    last.count
                }
                _ => 1,
            };
            if offset / mine.stride + count > mine.count {
                return false;
            }
            offset %= mine.stride;
        }
        theirs.is_empty() && offset.saturating_add(other.width) <= self.width
    }

    /// Whether no byte counts.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Whether the extent includes every byte from start to end.
    pub fn is_dense(&self) -> bool {
        self.used == 0 && self.pieces.is_none()
    }

    /// Number of bytes that the pattern holds (before clipping for patterns with gaps).
    pub(crate) fn bytes(&self) -> u64 {
        if self.is_dense() {
            return self.end - self.start;
        }
        if let Some(pieces) = &self.pieces {
            return pieces.bytes();
        }
        self.dims().iter().fold(self.width, |n, d| n.saturating_mul(d.count))
    }

    /// The repetitions, innermost first; empty when dense.
    pub fn dims(&self) -> &[Dim] {
        &self.dims[..usize::from(self.used)]
    }

    /// The irregular pieces, if that is what the bytes are.
    pub fn pieces(&self) -> Option<&Pieces> {
        self.pieces.as_ref()
    }

    /// Bytes of one run.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// The part between two addresses.
    #[must_use]
    pub fn clip(mut self, start: u64, end: u64) -> Self {
        self.start = self.start.max(start);
        self.end = self.end.min(end).max(self.start);
        self
    }

    /// The union of both, when they are neighbouring parts of one extent (memory that is mapped in
    /// pieces cuts accesses there).
    pub(crate) fn joined(&self, next: &Self) -> Option<Self> {
        (self.end == next.start && self.same_shape(next)).then(|| Self { end: next.end, ..self.clone() })
    }

    /// The same bytes moved by `by` addresses (wrapping, so also backwards).
    #[must_use]
    pub fn moved(mut self, by: u64) -> Self {
        for place in [&mut self.start, &mut self.end, &mut self.anchor, &mut self.origin] {
            *place = place.wrapping_add(by);
        }
        self
    }

    /// Whether this address is one of the bytes. For a bound: may be one of them.
    pub fn holds(&self, address: u64) -> bool {
        self.touches(address, address.saturating_add(1))
    }

    /// Whether both describe the same bytes in the same way, apart from clipping, so that the later
    /// one can stand for the earlier one.
    pub(crate) fn same_shape(&self, other: &Self) -> bool {
        self.anchor == other.anchor
            && self.precision == other.precision
            && self.scattered == other.scattered
            && self.looked_up == other.looked_up
            && self.origin == other.origin
            && self.width == other.width
            && self.dims() == other.dims()
            && self.pieces == other.pieces
    }

    /// Whether these are pieces that are all touched, and the other's bytes between the first and
    /// the last of them are all among them: where this access is, it stands for the other.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let Some(mine) = self.pieces.as_ref().filter(|_| self.precision == Precision::Exact) else { return false };
        let (lo, hi) = (self.start.max(other.start), self.end.min(other.end));
        let window = [(0, other.end.saturating_sub(other.origin))];
        let theirs = match &other.pieces {
            Some(pieces) => pieces.spans(),
            None if other.is_dense() => &window[..],
            None => return false,
        };
        pieces::include(mine.spans(), self.origin, theirs, other.origin, lo, hi)
    }

    /// Whether an access of the same op to the other bytes adds nothing where it overlaps these.
    /// That holds if these are all touched, or both describe the same bytes, or both are upper
    /// bounds without gaps and the other's bytes are among these. (An access that overlaps such an
    /// inner bound overlaps this one too, and one of the two begins inside of the other, unless
    /// that access has gaps.)
    pub(crate) fn speaks_for(&self, other: &Self) -> bool {
        let is_bound = |e: &Self| e.precision == Precision::Bound && e.is_dense();
        let bounds = || {
            is_bound(self)
                && is_bound(other)
                && self.scattered == other.scattered
                && self.looked_up == other.looked_up
                && self.start <= other.start
                && other.end <= self.end
        };
        self.is_whole() || self.same_shape(other) || bounds()
    }

    /// Whether runs never overlap each other along the dimensions, which makes [`Self::touches`]
    /// exact.
    fn nested(&self) -> bool {
        let mut inner = self.width;
        for dim in self.dims() {
            if dim.stride < inner {
                return false;
            }
            inner = inner.saturating_add(dim.stride.saturating_mul(dim.count - 1));
        }
        true
    }

    /// Whether the pattern has a byte from `lo` up to `hi`. For patterns that are not nested: may
    /// have.
    pub(crate) fn touches(&self, lo: u64, hi: u64) -> bool {
        let (lo, hi) = (lo.max(self.start), hi.min(self.end));
        if lo >= hi {
            return false;
        }
        if self.is_dense() || !self.nested() || self.origin > lo {
            return true;
        }
        let (lo, hi) = (lo.wrapping_sub(self.origin), hi.wrapping_sub(self.origin));
        match &self.pieces {
            Some(pieces) => pieces.touches(lo, hi),
            None => touches(self.dims(), self.width, lo, hi),
        }
    }
}

/// Whether a nested pattern (offsets from 0) has a byte in `lo..hi`.
fn touches(dims: &[Dim], width: u64, lo: u64, hi: u64) -> bool {
    let Some((dim, inner)) = dims.split_last() else {
        return lo < width && lo < hi;
    };
    let span = inner.iter().fold(width, |n, d| n.saturating_add(d.stride.saturating_mul(d.count - 1)));
    let first = (lo + 1).saturating_sub(span).div_ceil(dim.stride);
    let last = ((hi - 1) / dim.stride).min(dim.count - 1);
    if first > last {
        return false;
    }
    // Of three repetitions in a row the middle one lies wholly inside.
    if last - first >= 2 {
        return true;
    }
    (first..=last).any(|i| {
        let base = i * dim.stride;
        let (from, to) = (lo.saturating_sub(base), (hi - base).min(span));
        from < to && touches(inner, width, from, to)
    })
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn pitched(origin: u64, width: u64, rows: u64, pitch: u64) -> Extent {
        Extent::pattern(origin, width, &[Dim { stride: pitch, count: rows }], origin, Precision::Exact)
    }

    #[test]
    fn joining_dimensions_become_one_interval() {
        let e = Extent::pattern(
            100,
            4,
            &[Dim { stride: 1024, count: 7 }, Dim { stride: 4, count: 256 }],
            100,
            Precision::Exact,
        );
        assert!(e.is_dense());
        assert_eq!((e.start, e.end, e.bytes()), (100, 100 + 7 * 1024, 7 * 1024));
    }

    #[test]
    fn threads_and_blocks_of_a_strided_access_become_one_dimension() {
        let e = Extent::pattern(
            0,
            4,
            &[Dim { stride: 8, count: 256 }, Dim { stride: 2048, count: 3 }],
            0,
            Precision::Exact,
        );
        assert_eq!(e.dims(), [Dim { stride: 8, count: 768 }]);
    }

    #[test]
    fn even_and_odd_elements_do_not_meet() {
        assert_eq!(pitched(0, 4, 1 << 20, 8).meet(&pitched(4, 4, 1 << 20, 8)), Meet::No);
        assert_eq!(pitched(0, 4, 1 << 20, 8).meet(&pitched(3, 4, 1 << 20, 8)), Meet::Yes);
    }

    #[test]
    fn columns_of_a_pitched_image_do_not_meet_until_they_overlap_by_a_byte() {
        assert_eq!(pitched(0, 333, 512, 1024).meet(&pitched(333, 667, 512, 1024)), Meet::No);
        assert_eq!(pitched(0, 334, 512, 1024).meet(&pitched(333, 667, 512, 1024)), Meet::Yes);
    }

    #[test]
    fn too_many_gaps_make_a_bound() {
        let dims: Vec<Dim> = (1..=5).map(|i| Dim { stride: 10_u64.pow(i), count: 3 }).collect();
        let e = Extent::pattern(0, 1, &dims, 0, Precision::Exact);
        assert_eq!((e.precision, e.dims().len()), (Precision::Bound, MAX_DIMS));
        assert_eq!(e.end, 1 + 2 * 111_110);
    }

    #[test]
    fn huge_numbers_do_not_overflow() {
        let e = Extent::pattern(
            u64::MAX - 10,
            u64::MAX,
            &[Dim { stride: u64::MAX / 2, count: u64::MAX }],
            0,
            Precision::Exact,
        );
        assert_eq!(e.end, u64::MAX);
        let f = Extent::pattern(0, 1, &[Dim { stride: u64::MAX / 2 + 9, count: u64::MAX }], 0, Precision::Exact);
        assert!(f.meet(&e) != Meet::Yes || f.end > e.start);
        let _ = f.touches(5, u64::MAX);
        let _ = f.meet(&pitched(3, 1, u64::MAX, 7));
    }

    fn bytes_of(origin: u64, width: u64, dims: &[Dim]) -> BTreeSet<u64> {
        let mut starts = vec![origin];
        for d in dims {
            starts = starts.iter().flat_map(|s| (0..d.count).map(move |i| s + i * d.stride)).collect();
        }
        starts.iter().flat_map(|s| *s..s + width).collect()
    }

    fn dims() -> impl Strategy<Value = Vec<Dim>> {
        proptest::collection::vec((1_u64..40, 1_u64..5).prop_map(|(stride, count)| Dim { stride, count }), 0..4)
    }

    proptest! {
        #[test]
        fn agrees_with_sets_of_bytes(
            (o1, w1, d1) in (0_u64..100, 1_u64..9, dims()),
            (o2, w2, d2) in (0_u64..100, 1_u64..9, dims()),
            (lo, len) in (0_u64..200, 1_u64..9),
        ) {
            let (a, b) = (bytes_of(o1, w1, &d1), bytes_of(o2, w2, &d2));
            let ea = Extent::pattern(o1, w1, &d1, o1, Precision::Exact);
            let eb = Extent::pattern(o2, w2, &d2, o2, Precision::Exact);
            prop_assert_eq!(ea.start, *a.first().unwrap());
            prop_assert_eq!(ea.end, *a.last().unwrap() + 1);
            if ea.precision == Precision::Exact && eb.precision == Precision::Exact {
                match ea.meet(&eb) {
                    Meet::Yes => prop_assert!(!a.is_disjoint(&b)),
                    Meet::No => prop_assert!(a.is_disjoint(&b)),
                    Meet::Maybe => {}
                }
            } else if ea.meet(&eb) == Meet::No {
                prop_assert!(a.is_disjoint(&b));
            }
            // The same bytes as a list of pieces, moved and clipped, against both forms of the
            // others.
            let list = |set: &BTreeSet<u64>, origin: u64| {
                let spans = set.iter().map(|b| (*b + 1000, *b + 1001)).collect();
                Extent::irregular(origin + 1000, Pieces::of(spans, origin + 1000), Precision::Exact)
                    .moved(1000_u64.wrapping_neg())
            };
            let (la, lb) = (list(&a, o1), list(&b, o2));
            prop_assert_eq!((la.start, la.end, la.bytes()), (ea.start, ea.end, a.len() as u64));
            let yes = |shared: bool| if shared { Meet::Yes } else { Meet::No };
            prop_assert_eq!(la.meet(&lb), yes(!a.is_disjoint(&b)));
            let window: BTreeSet<u64> = (lo..lo + len).collect();
            prop_assert_eq!(la.meet(&Extent::exact(lo, lo + len)), yes(!a.is_disjoint(&window)));
            let clipped: BTreeSet<u64> = a.intersection(&window).copied().collect();
            prop_assert_eq!(la.clone().clip(lo, lo + len).meet(&lb), yes(!clipped.is_disjoint(&b)));
            prop_assert_eq!(la.includes(&lb), b.range(la.start..la.end).all(|byte| a.contains(byte)));
            if eb.precision == Precision::Exact && eb.nested() {
                prop_assert_eq!(la.meet(&eb), yes(!a.is_disjoint(&b)));
                prop_assert_eq!(eb.meet(&la), yes(!a.is_disjoint(&b)));
            }
            let touched = (lo..lo + len).any(|x| a.contains(&x));
            prop_assert_eq!(la.touches(lo, lo + len), touched);
            prop_assert!(ea.touches(lo, lo + len) || !touched);
            if ea.nested() && ea.precision == Precision::Exact {
                prop_assert_eq!(ea.touches(lo, lo + len), touched);
            }
        }
    }
}
