//! Compares what the analysis says of a launch with the truth. No byte may be missing, and none may
//! be claimed exactly that is not touched.
//!
//! Bases lie 4 KiB below a 4 GiB boundary, so that every carry between address words happens.

use super::Arg::{I32, I64, Ptr};
use super::{Arg, Shape, Thread, Truth};
use kernels::{AccessKind, Base, Extent, KernelAccess, LaunchArgs};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Where a pointer points to.
fn base(p: u8) -> u64 {
    ((0x7f01 + 16 * u64::from(p)) << 32) - 4096
}

/// Parameter bytes, and the pointers among them by offset.
pub fn pack(args: &[Arg]) -> (Vec<u8>, BTreeMap<u16, u8>) {
    let (mut b, mut words) = (Vec::new(), BTreeMap::new());
    for a in args {
        let (size, v) = match a {
            Ptr(p) => (8, base(*p)),
            I32(v) => (4, *v as u64),
            I64(v) => (8, *v as u64),
        };
        while b.len() % size != 0 {
            b.push(0);
        }
        if let Ptr(p) = a {
            words.insert(b.len() as u16, *p);
        }
        b.extend(&v.to_le_bytes()[..size]);
    }
    (b, words)
}

/// All threads of a launch.
pub fn threads(s: Shape) -> impl Iterator<Item = Thread> {
    let g = s.grid.map(i64::from);
    let b = s.block.map(i64::from);
    let axes =
        move |e: [i64; 3]| (0..e[2]).flat_map(move |z| (0..e[1]).flat_map(move |y| (0..e[0]).map(move |x| [x, y, z])));
    axes(g).flat_map(move |bi| axes(b).map(move |t| Thread { t, b: bi, bd: b, gd: g }))
}

/// Adds the bytes of an extent.
fn expand(e: &Extent, into: &mut FxHashSet<i64>) -> bool {
    let Extent::Bounded { lo, hi, dims, width, .. } = e else { return false };
    let total: u64 = dims.iter().map(|d| d.count).product::<u64>() * u64::from(*width);
    if total > 20_000_000 {
        return false;
    }
    let mut starts = vec![*lo];
    for d in dims {
        starts = starts.iter().flat_map(|s| (0..d.count).map(move |k| s + (d.stride * k) as i64)).collect();
    }
    for s in starts {
        assert!(s >= *lo && s + i64::from(*width) <= *hi, "set leaves its interval: {e:?}");
        into.extend(s..s + i64::from(*width));
    }
    true
}

/// How well a launch was told.
pub struct Outcome {
    pub exact: bool,
    pub certain: bool,
    pub bounded: bool,
    /// Each pointer that is touched was named.
    pub named: bool,
}

/// Compares one launch; panics on unsoundness.
pub fn check(
    what: &str,
    summary: &kernels::Summary,
    launch: &LaunchArgs<'_>,
    words: &BTreeMap<u16, u8>,
    truth: &Truth,
) -> Outcome {
    let mut accesses = Vec::new();
    // Following the threads of small launches hides what the forms are too small for.
    summary.evaluate_by_forms(launch, &mut accesses);
    compare(&format!("{what}, by forms"), &accesses, words, truth);
    accesses.clear();
    summary.evaluate(launch, &mut accesses);
    compare(what, &accesses, words, truth)
}

fn compare(what: &str, accesses: &[KernelAccess], words: &BTreeMap<u16, u8>, truth: &Truth) -> Outcome {
    let mut sets: BTreeMap<(u8, AccessKind), Option<FxHashSet<i64>>> = BTreeMap::new();
    let (mut certain, mut anywhere) = (true, Vec::new());
    for a in accesses {
        // How far the extent counts from behind the pointer.
        let (p, from) = match a.base {
            Base::Word { offset, value } => match words.get(&offset) {
                Some(p) => {
                    assert_eq!(value, base(*p));
                    (p, 0)
                }
                // A word that is no pointer is dropped, as the analyzer does.
                None => {
                    assert!(a.several, "{what}: scalar word as the only base: {a:?}");
                    continue;
                }
            },
            // A number that is an address: that of the pointer which lies near.
            Base::Absolute { value } => {
                let far = |p: u8| (value.wrapping_sub(base(p)) as i64).unsigned_abs();
                let near = words.values().min_by_key(|p| far(**p)).filter(|p| far(**p) < 1 << 32);
                let p = near.unwrap_or_else(|| panic!("{what}: nobody's address: {a:?}"));
                (p, value.wrapping_sub(base(*p)) as i64)
            }
            _ => {
                certain = false;
                assert!(matches!(a.base, Base::Unknown), "{what}: {a:?}");
                anywhere.push(a.kind);
                continue;
            }
        };
        let set = sets.entry((*p, a.kind)).or_insert_with(|| Some(FxHashSet::default()));
        match &a.extent {
            Extent::Unknown { .. } => {
                *set = None;
                certain = false;
            }
            e @ Extent::Bounded { exact, .. } => {
                let mut one = FxHashSet::default();
                if !expand(e, &mut one) {
                    *set = None;
                }
                let one: FxHashSet<i64> = one.into_iter().map(|byte| byte + from).collect();
                certain &= exact;
                if *exact {
                    let t = truth.bytes.get(&(*p, a.kind));
                    let wrong = one.iter().filter(|b| !t.is_some_and(|t| t.contains(b))).min();
                    assert!(wrong.is_none(), "{what}: claimed exact, but byte {wrong:?} is not touched: {a:?}");
                }
                if let Some(s) = set {
                    s.extend(one);
                }
            }
        }
    }
    let (mut exact, mut bounded, mut named) = (true, true, true);
    for (k, t) in &truth.bytes {
        match sets.get(k) {
            None => {
                assert!(anywhere.contains(&k.1), "{what}: {k:?} is touched but not predicted: {accesses:?}");
                (exact, bounded, named) = (false, false, false);
            }
            Some(None) => {
                exact = false;
                bounded = false;
            }
            Some(Some(s)) => {
                let missing = t.iter().filter(|b| !s.contains(b)).min();
                assert!(missing.is_none(), "{what}: byte {missing:?} of {k:?} is missing: {accesses:?}");
                exact &= s.len() == t.len();
            }
        }
    }
    for (k, s) in &sets {
        if !truth.bytes.contains_key(k) && s.as_ref().is_none_or(|s| !s.is_empty()) {
            exact = false;
        }
    }
    Outcome { exact, certain: exact && certain, bounded, named }
}
