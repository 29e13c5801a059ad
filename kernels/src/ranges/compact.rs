//! Byte sets of one base and direction, joined where that loses nothing.
//!
//! Owns the joining only; what a set means is said in `access`.

use super::form::Int;
use crate::access::{Dim, Extent};
use smallvec::SmallVec;

/// A coordinate as the analyzer's type; out of range, the end of it.
pub(super) fn clamp(v: Int) -> u64 {
    u64::try_from(v).unwrap_or(u64::MAX)
}

/// Sorts progressions by stride and merges those that join without gaps. The flag: no precision was lost.
pub(super) fn merge(mut dims: SmallVec<[(Int, Int); 4]>, width: Int) -> (SmallVec<[(Int, Int); 4]>, bool) {
    dims.sort_unstable();
    let mut out: SmallVec<[(Int, Int); 4]> = SmallVec::new();
    for (s, n) in dims {
        if let Some((t, m)) = out.last_mut()
            && s % *t == 0
            && s / *t <= *m
        {
            // {t*i | i < m} + {s*j | j < n}, s a multiple of t that reaches no further than m: one progression.
            *m += (n - 1) * (s / *t);
            continue;
        }
        out.push((s, n));
    }
    // Bytes that touch make a run: stride <= width says the same as stride 1, kept as it is.
    let _ = width;
    (out, true)
}

/// Joins byte sets of one base and direction where that loses nothing: unrolled copies become one progression, runs that
/// touch become one run, sets inside another vanish. (An exact set never swallows, nor is swallowed by, an upper bound that
/// is larger.) `apart`: they are addresses as numbers, so those sets may lie in different allocations. Which bytes are touched is
/// looked up for each allocation when they are exact; of an upper bound only what is in the lowest one's counts, so those stay alone.
pub(super) fn compact(sets: &mut Vec<Extent>, apart: bool) {
    if let [one] = &mut sets[..] {
        if let Extent::Bounded { lo, dims, width, exact, .. } = one {
            *one = bounded(*lo, merged(dims, Int::from(*width)), *width, *exact);
        }
        return;
    }
    let (mut alone, mut together) = (Vec::new(), std::mem::take(sets));
    if apart {
        (together, alone) = together.into_iter().partition(|e| matches!(e, Extent::Bounded { exact: true, .. }));
        alone.sort_unstable_by_key(start);
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

/// Progressions without those that continue others.
fn merged(dims: &[Dim], width: Int) -> SmallVec<[Dim; 3]> {
    let all = dims.iter().map(|d| (Int::from(d.stride), Int::from(d.count))).collect();
    merge(all, width).0.into_iter().map(|d| Dim { stride: clamp(d.0), count: clamp(d.1) }).collect()
}

/// Where a set begins.
fn start(e: &Extent) -> i64 {
    match e {
        Extent::Bounded { lo, .. } => *lo,
        Extent::Unknown { .. } => i64::MIN,
    }
}

/// Equal shapes at evenly spaced starts are one shape with one more dimension.
fn join_copies(sets: &mut Vec<Extent>) {
    type Shape = (SmallVec<[Dim; 3]>, u32, bool);
    let mut shapes: Vec<(Shape, Vec<i64>)> = Vec::new();
    let mut rest = Vec::new();
    for e in sets.drain(..) {
        match e {
            Extent::Bounded { lo, dims, width, exact, .. } => {
                let shape = (dims, width, exact);
                match shapes.iter_mut().find(|s| s.0 == shape) {
                    Some(s) => s.1.push(lo),
                    None => shapes.push((shape, vec![lo])),
                }
            }
            e @ Extent::Unknown { .. } => {
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
                // No step: further apart than a number can say.
                let step = next.checked_sub(los[k]);
                while step.is_some() && los.get(k + n).is_some_and(|l| l.checked_sub(los[k + n - 1]) == step) {
                    n += 1;
                }
            }
            // Two of a kind are no progression worth a dimension, unless it merges into what is there.
            let step = if n > 1 { los[k + 1] - los[k] } else { 0 };
            let mut all: SmallVec<[(Int, Int); 4]> =
                dims.iter().map(|d| (Int::from(d.stride), Int::from(d.count))).collect();
            if n > 1 {
                all.push((Int::from(step), n as Int));
            }
            let merged = merge(all, Int::from(width)).0;
            if n > 1 && merged.len() > dims.len().max(1) && (n < 3 || merged.len() > 3) {
                n = 1;
                rest.push(bounded(los[k], dims.clone(), width, exact));
            } else {
                let d = merged.into_iter().map(|d| Dim { stride: clamp(d.0), count: clamp(d.1) }).collect();
                rest.push(bounded(los[k], d, width, exact));
            }
            k += n;
        }
    }
    *sets = rest;
}

fn bounded(lo: i64, dims: SmallVec<[Dim; 3]>, width: u32, exact: bool) -> Extent {
    let span = dims.iter().fold(0u64, |s, d| s.saturating_add(d.stride.saturating_mul(d.count - 1)));
    let hi =
        i64::try_from(span).ok().and_then(|s| lo.checked_add(s)?.checked_add(i64::from(width))).unwrap_or(i64::MAX);
    Extent::Bounded { lo, hi, dims, width, exact }
}

/// A run without gaps: no dimension, or one whose stride is at most the width.
fn run_of(e: &Extent) -> Option<(i64, i64, bool)> {
    match e {
        Extent::Bounded { lo, hi, dims, width, exact } => match dims[..] {
            [] => Some((*lo, *hi, *exact)),
            [d] if d.stride <= u64::from(*width) => Some((*lo, *hi, *exact)),
            _ => None,
        },
        Extent::Unknown { .. } => None,
    }
}

fn join_runs(sets: &mut Vec<Extent>) {
    let mut k = 0;
    while k < sets.len() {
        let mut j = k + 1;
        while j < sets.len() {
            let (Some(a), Some(b)) = (run_of(&sets[k]), run_of(&sets[j])) else {
                j += 1;
                continue;
            };
            let inside = |x: (i64, i64, bool), y: (i64, i64, bool)| y.0 <= x.0 && x.1 <= y.1;
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
fn join_two(a: &Extent, b: &Extent) -> Option<Extent> {
    let (Extent::Bounded { lo: l, hi: h, width: w, exact, .. }, Extent::Bounded { lo: m, hi: i, width: v, .. }) =
        (a, b)
    else {
        return None;
    };
    let (lo, hi, width) = (*l.min(m), *h.max(i), *w.min(v));
    let len = u64::try_from(hi - lo).ok()?;
    if width == 0 {
        return None;
    }
    // Elements as wide as both allow; the last one overlaps when the length is no multiple.
    let width = if len % u64::from(width) == 0 { width } else { 1 };
    let count = len / u64::from(width);
    let mut dims = SmallVec::new();
    if count > 1 {
        dims.push(Dim { stride: u64::from(width), count });
    }
    Some(Extent::Bounded { lo, hi, dims, width, exact: *exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progressions_merge_when_they_touch() {
        let m = |v: &[(Int, Int)]| merge(SmallVec::from_slice(v), 4).0.to_vec();
        assert_eq!(m(&[(4, 32), (128, 10)]), vec![(4, 320)]);
        assert_eq!(m(&[(4, 32), (132, 10)]), vec![(4, 32), (132, 10)]);
        assert_eq!(m(&[(512, 8), (4, 33)]), vec![(4, 33), (512, 8)]);
        assert_eq!(m(&[(4, 33), (128, 2)]), vec![(4, 65)]);
    }

    fn run(lo: i64, count: u64, stride: u64, exact: bool) -> Extent {
        let dims = if count > 1 { SmallVec::from_slice(&[Dim { stride, count }]) } else { SmallVec::new() };
        bounded(lo, dims, 4, exact)
    }

    #[test]
    fn sets_are_joined_without_loss() {
        let c = |mut v: Vec<Extent>| {
            compact(&mut v, false);
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
            let mut v: Vec<Extent> = (0..4).map(|k| run(k << 20, 10, 4, exact)).collect();
            compact(&mut v, true);
            v.len()
        };
        assert_eq!((evenly(true), evenly(false)), (1, 4));
        let mut same = vec![run(0, 10, 4, false), run(40, 5, 4, false), run(0, 10, 4, false)];
        compact(&mut same, true);
        assert_eq!(same.len(), 2, "{same:?}");
    }
}
