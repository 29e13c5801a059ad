//! Whether two extents share a byte.
//!
//! Owns the answer for each pair of shapes, and how long patterns are compared before it is
//! "maybe".

use kernels::Dim;

use super::{Extent, gcd};
use crate::memory::pieces::{self, Pieces};

/// Pieces of a pattern that are compared one by one before the comparison gives up with
/// [`Meet::Maybe`]: fields of 100,000 structures beside others of another size. (A millisecond.)
const MAX_PIECES: u64 = 1 << 17;

/// Whether two extents share a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meet {
    /// Certainly not.
    No,
    /// The patterns are too irregular to decide.
    Maybe,
    /// Certainly.
    Yes,
}

impl Extent {
    /// Whether the two share a byte. Only the bytes are compared. The caller weighs inexact
    /// extents.
    pub fn meet(&self, other: &Self) -> Meet {
        let (lo, hi) = (self.start.max(other.start), self.end.min(other.end));
        if lo >= hi {
            return Meet::No;
        }
        // Moved below address 0, where no real access is.
        if self.origin > self.start || other.origin > other.start {
            return Meet::Maybe;
        }
        match (self.is_dense(), other.is_dense()) {
            (true, true) => Meet::Yes,
            (true, false) => meet_dense(other, lo, hi),
            (false, true) => meet_dense(self, lo, hi),
            (false, false) => match (&self.pieces, &other.pieces) {
                (Some(a), Some(b)) => meet_pieces((self, a), (other, b), lo, hi),
                (Some(a), None) => meet_each((self, a), other, lo, hi),
                (None, Some(b)) => meet_each((other, b), self, lo, hi),
                (None, None) => meet_patterns(self, other, lo, hi),
            },
        }
    }
}

fn meet_dense(pattern: &Extent, lo: u64, hi: u64) -> Meet {
    match (pattern.touches(lo, hi), pattern.nested()) {
        (false, _) => Meet::No,
        (true, true) => Meet::Yes,
        (true, false) => Meet::Maybe,
    }
}

/// Irregular pieces against others.
fn meet_pieces((a, x): (&Extent, &Pieces), (b, y): (&Extent, &Pieces), lo: u64, hi: u64) -> Meet {
    let mine = x.within(lo.saturating_sub(a.origin), hi - a.origin);
    let theirs = y.within(lo.saturating_sub(b.origin), hi - b.origin);
    if pieces::meet(mine, a.origin, theirs, b.origin, lo, hi) { Meet::Yes } else { Meet::No }
}

/// Irregular pieces against a pattern: each piece asks it.
fn meet_each((a, x): (&Extent, &Pieces), pattern: &Extent, lo: u64, hi: u64) -> Meet {
    let mut pieces = x.within(lo.saturating_sub(a.origin), hi - a.origin).iter();
    let touched = |s: &(u64, u64)| pattern.touches((s.0 + a.origin).max(lo), (s.1 + a.origin).min(hi));
    match (pieces.any(touched), pattern.nested()) {
        (false, _) => Meet::No,
        (true, true) => Meet::Yes,
        (true, false) => Meet::Maybe,
    }
}

fn meet_patterns(a: &Extent, b: &Extent, lo: u64, hi: u64) -> Meet {
    // Strides with a common divisor keep every run at the same place modulo that divisor: this
    // alone decides even against odd elements, and different columns of one pitched image.
    let divisor = a.dims().iter().chain(b.dims()).fold(0, |g, d| gcd(g, d.stride));
    if divisor > 0 && a.width < divisor && b.width < divisor {
        let (x, y) = (a.origin % divisor, b.origin % divisor);
        let apart = if y >= x { y - x } else { divisor - (x - y) };
        if apart >= a.width && b.width <= divisor - apart {
            return Meet::No;
        }
    }
    let pieces = |e: &Extent| e.dims().iter().fold(1_u64, |n, d| n.saturating_mul(d.count));
    let (walk, ask) = match (a.nested(), b.nested()) {
        (true, true) if pieces(a) <= pieces(b) => (a, b),
        (true, true) | (true, false) => (b, a),
        (false, true) => (a, b),
        (false, false) => return Meet::Maybe,
    };
    let mut budget = MAX_PIECES;
    match walk_pieces(walk.dims(), walk.origin, walk.width, lo, hi, &mut budget, &mut |from, to| ask.touches(from, to))
    {
        Some(true) => Meet::Yes,
        Some(false) => Meet::No,
        None => Meet::Maybe,
    }
}

/// Calls `hit` for the runs that reach into `lo..hi` until it returns true. `None`: the budget ran
/// out.
fn walk_pieces(
    dims: &[Dim],
    at: u64,
    width: u64,
    lo: u64,
    hi: u64,
    budget: &mut u64,
    hit: &mut impl FnMut(u64, u64) -> bool,
) -> Option<bool> {
    let Some((dim, inner)) = dims.split_last() else {
        if *budget == 0 {
            return None;
        }
        *budget -= 1;
        let (from, to) = (at.max(lo), at.saturating_add(width).min(hi));
        return Some(from < to && hit(from, to));
    };
    let span = inner.iter().fold(width, |n, d| n.saturating_add(d.stride.saturating_mul(d.count - 1)));
    let first = lo.saturating_sub(at.saturating_add(span).saturating_sub(1)).div_ceil(dim.stride);
    let last = if hi > at { (hi - 1 - at) / dim.stride } else { return Some(false) };
    for i in first..=last.min(dim.count - 1) {
        if walk_pieces(inner, at.saturating_add(i.saturating_mul(dim.stride)), width, lo, hi, budget, hit)? {
            return Some(true);
        }
    }
    Some(false)
}
