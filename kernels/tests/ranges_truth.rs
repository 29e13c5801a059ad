//! Byte ranges against the truth. Every kernel of `cuda/ranges.cu` is compiled for each
//! architecture, its accesses are evaluated for many launches, and its index expressions are
//! emulated here over all threads. No byte may be missing, no byte may be claimed exactly that is
//! not touched, and the families listed as exact must be exact to the byte.
//!
//! Unoptimised code (`-G`, and `-Xptxas -O0`) tests at the top of loops, and keeps what it computes
//! in local memory: no wrong byte may be claimed there, and how sharp the answer is does not count.

use crate::support::cuda;
use crate::truth::Sharp::{Bounded, Certain, Exact, Sound};
use crate::truth::compare::{check, pack, threads};
use crate::truth::{Shape, Truth, cases};
use kernels::LaunchArgs;

const ARCHES: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

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
            assert!(o.named, "{what}: a pointer is not named");
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

/// All kernels in code that is not optimised: sound, and exact where it is claimed. (Which pointer
/// it is may be lost in local memory, as long as the access is there.)
fn unoptimised(arch: &str, options: &[&str]) {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/ranges.cu");
    let image = cuda::image_with(&source, arch, options);
    let shapes = shapes();
    let launches = [shapes[0], shapes[2], shapes[4]].into_iter().flat_map(|s| [1, 131, 1000].map(|n| (s, n)));
    let launches: Vec<(Shape, i64)> = launches.collect();
    for c in cases() {
        let summary = image.summary(c.name).unwrap();
        for (s, n) in launches.iter().copied() {
            let (bytes, words) = pack(&(c.args)(n));
            let mut truth = Truth::default();
            threads(s).for_each(|t| (c.emulate)(&mut truth, t, n));
            let what = format!("{arch} {options:?} {} grid {:?} block {:?} n {n}", c.name, s.grid, s.block);
            check(&what, &summary, &LaunchArgs::new(s.grid, s.block, &bytes), &words, &truth);
        }
    }
}

#[test]
fn debug_ptx() {
    unoptimised("sm_80", &["-G", "-ptx"]);
}

#[test]
fn debug_machine_code() {
    unoptimised("sm_80", &["-G", "-cubin"]);
    unoptimised("sm_90", &["-G", "-cubin"]);
}

#[test]
fn unoptimised_machine_code() {
    unoptimised("sm_80", &["-Xptxas", "-O0", "-cubin"]);
    unoptimised("sm_90", &["-Xptxas", "-O0", "-cubin"]);
}
