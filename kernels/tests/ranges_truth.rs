//! Byte ranges against the truth. Every kernel of `cuda/ranges.cu` is compiled for each
//! architecture, its accesses are evaluated for many launches, and its index expressions are
//! emulated here over all threads. No byte may be missing, no byte may be claimed exactly that is
//! not touched, and the families listed as exact must be exact to the byte.
//!
//! Bases lie 4 KiB below a 4 GiB boundary, so that every carry between address words happens.

use crate::support::cuda;
use crate::truth::Arg::{I32, I64, Ptr};
use crate::truth::Sharp::{Bounded, Certain, Exact, Sound};
use crate::truth::{Arg, Shape, Thread, Truth, cases};
use kernels::{AccessKind, Base, Extent, KernelAccess, LaunchArgs};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

const ARCHES: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

fn base(p: u8) -> u64 {
    ((0x7f01 + 16 * u64::from(p)) << 32) - 4096
}

fn pack(args: &[Arg]) -> (Vec<u8>, BTreeMap<u16, u8>) {
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

fn shapes() -> Vec<Shape> {
    let s = |g, b| Shape { grid: g, block: b };
    vec![
        s([1, 1, 1], [32, 1, 1]),
        s([4, 1, 1], [256, 1, 1]),
        s([5, 1, 1], [100, 1, 1]),
        s([3, 2, 2], [64, 1, 1]),
        s([3, 2, 1], [16, 8, 1]),
        s([2, 5, 3], [8, 4, 2]),
        s([40, 1, 1], [64, 1, 1]),
        s([1, 1, 1], [1, 1, 1]),
    ]
}

fn threads(s: Shape) -> impl Iterator<Item = Thread> {
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

struct Outcome {
    exact: bool,
    certain: bool,
    bounded: bool,
}

/// Compares one launch; panics on unsoundness.
fn check(
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
    let mut certain = true;
    for a in accesses {
        let Base::Word { offset, value } = a.base else {
            certain = false;
            assert!(matches!(a.base, Base::Unknown), "{what}: {a:?}");
            continue;
        };
        // A word that is no pointer is dropped, as the analyzer does.
        let Some(p) = words.get(&offset) else {
            assert!(a.several, "{what}: scalar word as the only base: {a:?}");
            continue;
        };
        assert_eq!(value, base(*p));
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
    let (mut exact, mut bounded) = (true, true);
    for (k, t) in &truth.bytes {
        match sets.get(k) {
            None => panic!("{what}: {k:?} is touched but not predicted: {accesses:?}"),
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
    Outcome { exact, certain: exact && certain, bounded }
}

fn run(arch: &str) {
    run_as(arch, "-cubin");
}

/// `kind`: `-cubin` or `-ptx`.
fn run_as(arch: &str, kind: &str) {
    let numbers = [0, 1, 131, 255, 1000, 1279, 2000, 5000];
    run_over(arch, kind, shapes().into_iter().flat_map(|s| numbers.map(|n| (s, n))).collect());
}

/// Launches of a few blocks that differ in sizes only, in no order: after some of them no other is
/// evaluated from the code.
fn sizes() -> Vec<(Shape, i64)> {
    let shape = |blocks| Shape { grid: [blocks, 1, 1], block: [64, 1, 1] };
    let near = (0..24).map(|k| (shape(4), 256 + k * 37 % 256));
    let far = (0..24).map(|k| (shape(4 + k % 4), 256 + i64::from(k) * 59 % 256));
    near.chain(far).collect()
}

/// All kernels, launched like this, each time through one summary.
fn run_over(arch: &str, kind: &str, launches: Vec<(Shape, i64)>) {
    let image = cuda::image("ranges.cu", arch, kind);
    let mut lines = Vec::new();
    let mut failures = Vec::new();
    for c in cases() {
        let summary = image.summary(c.name).unwrap();
        let (mut exact, mut certain, mut bounded, mut all) = (0, 0, 0, 0);
        let mut first = String::new();
        for (s, n) in launches.iter().copied() {
            let (bytes, words) = pack(&(c.args)(n));
            let mut truth = Truth::default();
            threads(s).for_each(|t| (c.emulate)(&mut truth, t, n));
            let launch = LaunchArgs::new(s.grid, s.block, &bytes);
            let what = format!("{arch} {} grid {:?} block {:?} n {n}", c.name, s.grid, s.block);
            let o = check(&what, &summary, &launch, &words, &truth);
            all += 1;
            exact += usize::from(o.exact);
            certain += usize::from(o.certain);
            bounded += usize::from(o.bounded);
            // A 32-bit division of uniform numbers is spelled with uniform float instructions
            // there.
            let sharp = if arch == "sm_120" && c.name == "k_divparam" { Sound } else { c.sharp };
            let ok = match sharp {
                Certain => o.certain,
                Exact => o.exact,
                Bounded => o.bounded,
                Sound => true,
            };
            if !ok && first.is_empty() {
                first = what;
            }
        }
        lines.push(format!("{:12} certain {certain:2} exact {exact:2} bounded {bounded:2} of {all}", c.name));
        if !first.is_empty() {
            failures.push(format!("{} should be {:?}: {first}", c.name, c.sharp));
        }
    }
    println!("{arch} {kind}\n{}", lines.join("\n"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn sm_75() {
    run(ARCHES[0]);
}

#[test]
fn sm_80() {
    run(ARCHES[1]);
}

#[test]
fn sm_90() {
    run(ARCHES[2]);
}

#[test]
fn sm_100() {
    run(ARCHES[3]);
}

#[test]
fn sm_120() {
    run(ARCHES[4]);
}

#[test]
fn ptx() {
    run_as(ARCHES[1], "-ptx");
}

#[test]
fn launches_that_differ_in_sizes() {
    run_over("sm_90", "-cubin", sizes());
    run_over("sm_80", "-ptx", sizes());
}
