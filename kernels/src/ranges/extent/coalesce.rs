//! Byte sets of one base and direction, joined where that loses nothing.
//!
//! Owns the joining only. What a set means is defined by [`crate::Extent`].

use crate::ranges::domain::byte_set::{ByteSet, Dims};
use crate::ranges::domain::int::Int;

/// Sorts progressions by stride and merges those that join without gaps.
pub(crate) fn merge(mut dims: Dims) -> Dims {
    dims.sort_unstable();
    let mut out = Dims::new();
    for (s, n) in dims {
        if let Some((t, m)) = out.last_mut()
            && s.divides(*t)
            && s.div_euclid(*t) <= *m
        {
            // {t*i | i < m} + {s*j | j < n}, s a multiple of t that reaches no further than m: one
            // progression.
            *m += (n - 1) * s.div_euclid(*t);
            continue;
        }
        out.push((s, n));
    }
    // Bytes that touch make a run: stride <= width says the same as stride 1, kept as it is.
    out
}

/// Joins byte sets of one base and direction where that loses nothing: unrolled copies become one
/// progression, runs that touch become one run, sets inside another vanish. (An exact set never
/// swallows a larger upper bound, nor is swallowed by one.)
///
/// `apart`: the sets hold addresses as numbers, so they may lie in different allocations. Exact
/// sets are joined, because the bytes touched are looked up for each allocation. Of an upper bound
/// only the part in the lowest allocation counts, so upper bounds stay apart.
pub(crate) fn coalesce(sets: &mut Vec<ByteSet>, apart: bool) {
    if let [one] = &mut sets[..] {
        if let ByteSet::Bounded { lo, dims, width, exact, .. } = one {
            *one = bounded(*lo, merge(dims.clone()), *width, *exact);
        }
        return;
    }
    let (mut alone, mut together) = (Vec::new(), std::mem::take(sets));
    if apart {
        (together, alone) = together.into_iter().partition(|e| matches!(e, ByteSet::Bounded { exact: true, .. }));
        alone.sort_by_key(ends);
        alone.dedup();
    }
    for _ in 0..4 {
        let before = together.len();
        join_copies(&mut together);
        join_runs(&mut together);
        if together.len() == before {
            break;
        }
    }
    together.append(&mut alone);
    *sets = together;
}

/// Where a set begins and ends.
fn ends(e: &ByteSet) -> (Int, Int) {
    match e {
        ByteSet::Bounded { lo, hi, .. } => (*lo, *hi),
        ByteSet::Unknown { .. } => (Int::from(i64::MIN), Int::from(i64::MIN)),
    }
}

/// Equal shapes at evenly spaced starts are one shape with one more dimension.
fn join_copies(sets: &mut Vec<ByteSet>) {
    type Shape = (Dims, Int, bool);
    let mut shapes: Vec<(Shape, Vec<Int>)> = Vec::new();
    let mut rest = Vec::new();
    for e in sets.drain(..) {
        match e {
            ByteSet::Bounded { lo, dims, width, exact, .. } => {
                let shape = (dims, width, exact);
                match shapes.iter_mut().find(|s| s.0 == shape) {
                    Some(s) => s.1.push(lo),
                    None => shapes.push((shape, vec![lo])),
                }
            }
            e @ ByteSet::Unknown { .. } => {
                if !rest.contains(&e) {
                    rest.push(e);
                }
            }
        }
    }
    for ((dims, width, exact), mut los) in shapes {
        los.sort_unstable();
        los.dedup();
        let mut k = 0;
        while k < los.len() {
            // The longest run of equal steps from here.
            let mut n = 1;
            if let Some(next) = los.get(k + 1) {
                let step = *next - los[k];
                // Not further apart than a stride can be.
                while step <= i128::from(i64::MAX) && los.get(k + n).is_some_and(|l| *l - los[k + n - 1] == step) {
                    n += 1;
                }
            }
            // Two of a kind are no progression worth a dimension, unless it merges into what is
            // there.
            let step = if n > 1 { los[k + 1] - los[k] } else { Int::new(0) };
            let mut all = dims.clone();
            if n > 1 {
                all.push((step, Int::from(n)));
            }
            let merged = merge(all);
            if n > 1 && merged.len() > dims.len().max(1) && (n < 3 || merged.len() > 3) {
                n = 1;
                rest.push(bounded(los[k], dims.clone(), width, exact));
            } else {
                rest.push(bounded(los[k], merged, width, exact));
            }
            k += n;
        }
    }
    *sets = rest;
}

fn bounded(lo: Int, dims: Dims, width: Int, exact: bool) -> ByteSet {
    let hi = dims.iter().fold(lo + width, |s, d| s.add_hi(d.0.mul_sat(d.1 - 1)));
    ByteSet::Bounded { lo, hi: hi.min(i64::MAX), dims, width, exact }
}

/// A run without gaps: no dimension, or one whose stride is at most the width.
fn run_of(e: &ByteSet) -> Option<(Int, Int, bool)> {
    match e {
        ByteSet::Bounded { lo, hi, dims, width, exact } => match dims[..] {
            [] => Some((*lo, *hi, *exact)),
            [d] if d.0 <= *width => Some((*lo, *hi, *exact)),
            _ => None,
        },
        ByteSet::Unknown { .. } => None,
    }
}

fn join_runs(sets: &mut Vec<ByteSet>) {
    let mut k = 0;
    while k < sets.len() {
        let mut j = k + 1;
        while j < sets.len() {
            let (Some(a), Some(b)) = (run_of(&sets[k]), run_of(&sets[j])) else {
                j += 1;
                continue;
            };
            let inside = |x: (Int, Int, bool), y: (Int, Int, bool)| y.0 <= x.0 && x.1 <= y.1;
            if inside(b, a) && (a.2 || !b.2) {
                sets.remove(j);
            } else if inside(a, b) && (b.2 || !a.2) {
                sets.swap(k, j);
                sets.remove(j);
                j = k + 1;
            } else if a.2 == b.2
                && a.0 <= b.1
                && b.0 <= a.1
                && let Some(joined) = join_two(&sets[k], &sets[j])
            {
                sets[k] = joined;
                sets.remove(j);
                j = k + 1;
            } else {
                j += 1;
            }
        }
        k += 1;
    }
}

/// Two runs that touch, as one run of the narrower elements.
fn join_two(a: &ByteSet, b: &ByteSet) -> Option<ByteSet> {
    let (ByteSet::Bounded { lo: l, hi: h, width: w, exact, .. }, ByteSet::Bounded { lo: m, hi: i, width: v, .. }) =
        (a, b)
    else {
        return None;
    };
    let (lo, hi, width) = ((*l).min(*m), (*h).max(*i), (*w).min(*v));
    let len = hi - lo;
    if width == 0 {
        return None;
    }
    // Elements as wide as both allow; the last one overlaps when the length is no multiple.
    let width = if len.divides(width) { width } else { Int::new(1) };
    let count = len.div_euclid(width);
    let mut dims = Dims::new();
    if count > 1 {
        dims.push((width, count));
    }
    Some(ByteSet::Bounded { lo, hi, dims, width, exact: *exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progressions_merge_when_they_touch() {
        let m = |v: &[(i128, i128)]| -> Vec<(i128, i128)> {
            let dims = v.iter().map(|d| (Int::new(d.0), Int::new(d.1))).collect();
            merge(dims).iter().map(|d| (d.0.pin(), d.1.pin())).collect()
        };
        assert_eq!(m(&[(4, 32), (128, 10)]), vec![(4, 320)]);
        assert_eq!(m(&[(4, 32), (132, 10)]), vec![(4, 32), (132, 10)]);
        assert_eq!(m(&[(512, 8), (4, 33)]), vec![(4, 33), (512, 8)]);
        assert_eq!(m(&[(4, 33), (128, 2)]), vec![(4, 65)]);
    }

    fn run(lo: i64, count: u64, stride: u64, exact: bool) -> ByteSet {
        let mut dims = Dims::new();
        if count > 1 {
            dims.push((stride.into(), count.into()));
        }
        bounded(lo.into(), dims, 4.into(), exact)
    }

    #[test]
    fn sets_are_joined_without_loss() {
        let c = |mut v: Vec<ByteSet>| {
            coalesce(&mut v, false);
            v
        };
        // Four unrolled copies of a strided loop.
        assert_eq!(c((0..4).map(|k| run(4 * k, 10, 16, true)).collect()), vec![run(0, 40, 4, true)]);
        // Neighbours and overlaps.
        assert_eq!(c(vec![run(0, 10, 4, true), run(40, 5, 4, true)]), vec![run(0, 15, 4, true)]);
        assert_eq!(c(vec![run(8, 10, 4, false), run(0, 5, 4, false)]), vec![run(0, 12, 4, false)]);
        // A gap stays.
        assert_eq!(c(vec![run(0, 10, 4, true), run(44, 5, 4, true)]).len(), 2);
        // An upper bound inside an exact set vanishes, an exact set inside an upper bound stays.
        assert_eq!(c(vec![run(0, 10, 4, true), run(4, 5, 4, false)]), vec![run(0, 10, 4, true)]);
        assert_eq!(c(vec![run(0, 10, 4, false), run(4, 5, 4, true)]).len(), 2);
        // Even and odd elements are one run.
        assert_eq!(c(vec![run(0, 10, 8, true), run(4, 10, 8, true)]), vec![run(0, 20, 4, true)]);
        // As far apart as numbers go.
        assert_eq!(c(vec![run(i64::MIN, 2, 4, true), run(1 << 62, 2, 4, true)]).len(), 2);
    }

    #[test]
    fn upper_bounds_at_fixed_addresses_stay_alone() {
        let evenly = |exact| {
            let mut v: Vec<ByteSet> = (0..4).map(|k| run(k << 20, 10, 4, exact)).collect();
            coalesce(&mut v, true);
            v.len()
        };
        assert_eq!((evenly(true), evenly(false)), (1, 4));
        let mut same = vec![run(0, 10, 4, false), run(40, 5, 4, false), run(0, 10, 4, false)];
        coalesce(&mut same, true);
        assert_eq!(same.len(), 2, "{same:?}");
    }
}
