//! Byte ranges of generated kernels against an interpreter of the generator's own syntax trees: no
//! touched byte may be missing, and no byte may be claimed exactly that is not touched.
//!
//! `RANGES_FUZZ=FIRST..LAST` runs other seeds than the one that is always run, and more launches of
//! each kernel (`cargo xtask nightly`: 24 seeds). Each seed is one file of kernels. `program`
//! generates them, and knows what their threads touch.

mod program;

use device_code::arch::Arch;
use kernels::{AccessKind, Base, CodeImage, Dim, Extent, KernelAccess, LaunchArgs, Summary};
use program::{Env, Rng, Stmt, Truth, block, run, text};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const KERNELS: usize = 40;
/// Launches of each kernel that are compared with evaluations only, as a rule and by night.
const LAUNCHES: [usize; 2] = [16, 40];

/// Comparisons with what was found, for the accesses of one kind.
const COMPARED: usize = 1_000_000;

/// Is offset `at` one of `base + sum(stride * j)`?
fn member(at: i64, dims: &[Dim]) -> bool {
    let Some((last, rest)) = dims.split_last() else { return at == 0 };
    if at < 0 {
        return false;
    }
    let span: u64 = rest.iter().map(|d| d.stride * (d.count - 1)).sum();
    let at = at as u64;
    let least = at.saturating_sub(span).div_ceil(last.stride);
    let most = (at / last.stride).min(last.count - 1);
    (least..=most).any(|j| member((at - j * last.stride) as i64, rest))
}

fn covers(e: &Extent, at: i64) -> bool {
    match e {
        Extent::Unknown { .. } => true,
        Extent::Bounded { lo, hi, dims, width, .. } => {
            at >= *lo && at < *hi && (0..i64::from(*width)).any(|w| member(at - w - lo, dims))
        }
    }
}

/// Where the pointer to what is asked lies among the parameters.
const ASKED: u16 = 32;

fn params(first: u64, numbers: [u32; 3]) -> Vec<u8> {
    let mut bytes = [first, base(1)].map(u64::to_le_bytes).concat();
    numbers.iter().for_each(|p| bytes.extend(p.to_le_bytes()));
    bytes.resize(usize::from(ASKED), 0);
    bytes.extend((base(1) + (1 << 40)).to_le_bytes());
    bytes
}

fn base(p: u8) -> u64 {
    ((0x7f01 + 16 * u64::from(p)) << 32) - 4096
}

/// An access at a known address, as one relative to the pointer it lies near.
fn relative(a: &KernelAccess) -> KernelAccess {
    let mut a = a.clone();
    if let (Base::Absolute { value }, Extent::Bounded { lo, hi, .. }) = (a.base, &mut a.extent) {
        let p = u8::from(value.abs_diff(base(1)) < value.abs_diff(base(0)));
        let d = value.wrapping_sub(base(p)) as i64;
        (*lo, *hi) = (*lo + d, *hi + d);
        a.base = Base::Word { offset: u16::from(p) * 8, value: base(p) };
    }
    a
}

/// What the threads of a launch touch: as accesses, and as bytes.
struct Touched {
    accesses: Truth,
    bytes: BTreeMap<(u8, AccessKind), FxHashSet<i64>>,
}

impl Touched {
    fn of(accesses: Truth) -> Self {
        let bytes = |set: &FxHashSet<(i64, i64)>| set.iter().flat_map(|(at, w)| *at..at + w).collect();
        Self { bytes: accesses.iter().map(|(by, set)| (*by, bytes(set))).collect(), accesses }
    }
}

fn check(what: &str, accesses: &[KernelAccess], truth: &Touched, bounded: &mut usize, exact: &mut usize) {
    let accesses: Vec<KernelAccess> = accesses.iter().map(relative).collect();
    let accesses = &accesses[..];
    for ((p, kind), set) in &truth.accesses {
        let word = u16::from(*p) * 8;
        let mine: Vec<&Extent> = accesses
            .iter()
            .filter(|a| a.kind == *kind)
            .filter(|a| {
                matches!(a.base, Base::Unknown) || matches!(a.base, Base::Word { offset, .. } if offset == word)
            })
            .map(|a| &a.extent)
            .collect();
        for (at, w) in set.iter().take(COMPARED / mine.len().max(1)) {
            for b in [*at, at + w - 1] {
                assert!(
                    mine.iter().any(|e| covers(e, b)),
                    "{what}: byte {b} of p{p} {kind:?} is missing: {accesses:#?}"
                );
            }
        }
    }
    for a in accesses {
        let Base::Word { offset, .. } = a.base else { continue };
        if offset == ASKED {
            continue;
        }
        let Extent::Bounded { lo, dims, width, exact: e, .. } = &a.extent else { continue };
        *bounded += 1;
        let count: u64 = dims.iter().map(|d| d.count).product();
        if !*e || count > 200_000 {
            continue;
        }
        *exact += 1;
        let touched = truth.bytes.get(&((offset / 8) as u8, a.kind));
        let mut starts = vec![*lo];
        for d in dims {
            starts = starts.iter().flat_map(|s| (0..d.count).map(move |k| s + (d.stride * k) as i64)).collect();
        }
        for s in starts {
            for b in [s, s + i64::from(*width) - 1] {
                assert!(
                    touched.is_some_and(|t| t.contains(&b)),
                    "{what}: byte {b} is claimed exactly, but not touched: {a:?}"
                );
            }
        }
    }
}

fn anew(summary: &Summary, launch: &LaunchArgs<'_>) -> Vec<KernelAccess> {
    let mut out = Vec::new();
    summary.evaluate_uncached(launch, &mut out);
    out
}

/// Many launches of one kernel that differ in numbers: what is replayed for them is what an
/// evaluation finds.
fn launches(r: &mut Rng, summary: &Summary, what: &str) {
    let (mut n, mut m, mut d) = (100, 37, 7);
    for _ in 0..LAUNCHES[usize::from(wanted().is_some())] {
        // Now and then far from the launch before.
        let mut number = |before: u32| match r.below(8) {
            0 => r.pick(&[0, 1, 2, 31, 32, 33, 64, 100, 127, 128, 255, 1 << 16, i32::MAX as u32, 1 << 31, u32::MAX]),
            1 => r.next() as u32 >> r.below(32),
            2 | 3 => before.wrapping_add(r.below(5) as u32).wrapping_sub(2),
            4 => 50 + r.below(200) as u32,
            _ => before,
        };
        (n, m, d) = (number(n), number(m), number(d));
        let (near, grid) = (r.below(64), [1 + r.below(6) as u32, 1 + r.below(2) as u32, 1]);
        let bytes = params(base(0) + 4 * near, [n, m, d]);
        let launch = LaunchArgs::new(grid, [32, 1, 1], &bytes);
        let mut out = Vec::new();
        summary.evaluate(&launch, &mut out);
        // A kernel that has cost too much gets brief evaluations.
        let mut brief = Vec::new();
        summary.evaluate_briefly(&launch, &mut brief);
        if out != brief {
            assert_eq!(out, anew(summary, &launch), "{what}: n {n}, m {m}, d {d}, grid {grid:?}");
        }
    }
}

/// The launches that each kernel is followed in: grid, block, numbers.
fn cases() -> impl Iterator<Item = ([u32; 3], [u32; 3], [u32; 3])> {
    let shapes = [([1, 1, 1], [32, 1, 1]), ([3, 2, 1], [40, 2, 1]), ([5, 1, 1], [64, 1, 1])];
    let numbers = [[0, 1, 3], [100, 37, 7], [1000, 131, 16], [u32::MAX - 3, 64, 1]];
    shapes.into_iter().flat_map(move |(grid, block)| numbers.into_iter().map(move |params| (grid, block, params)))
}

/// What the threads of a launch touch.
fn truth(program: &[Stmt], grid: [u32; 3], block: [u32; 3], params: [u32; 3]) -> Truth {
    let mut truth = Truth::new();
    for b in 0..grid[0] * grid[1] {
        for t in 0..block[0] * block[1] {
            let (t, b) = ([t % block[0], t / block[0], 0], [b % grid[0], b / grid[0], 0]);
            let data = Rng(truth.len() as u64 * 64 + u64::from(t[0]) + 1);
            run(program, &mut Env { data, t, b, bd: block, params, vars: Vec::new() }, &mut truth);
        }
    }
    truth
}

/// `asks`: data decide some statements.
fn seed(seed: u64, asks: bool) {
    let mut r = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let programs: Vec<Vec<Stmt>> = (0..KERNELS).map(|_| block(&mut r, 3, 0, 2, asks)).collect();
    let mut source = String::new();
    for (k, p) in programs.iter().enumerate() {
        writeln!(
            source,
            "extern \"C\" __global__ void f{k}(void *p0, void *p1, unsigned n, unsigned m, unsigned d, void *q) {{\n\
             unsigned tx = threadIdx.x, ty = threadIdx.y, bx = blockIdx.x, by = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;"
        )
        .unwrap();
        text(p, &mut source);
        source.push_str("}\n");
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ranges-fuzz");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join(format!("seed{seed}{}.cu", if asks { "-asks" } else { "" }));
    std::fs::write(&file, &source).unwrap();
    let (mut bounded, mut exact, mut total) = (0, 0, 0);
    // What threads touch is the same for all code that is made of a program.
    let touched = |p: &Vec<Stmt>| {
        cases().map(|(grid, block, params)| Touched::of(truth(p, grid, block, params))).collect::<Vec<Touched>>()
    };
    let truths: Vec<Vec<Touched>> = programs.iter().map(touched).collect();
    for (arch, kind) in [("sm_90", "-cubin"), ("sm_80", "-cubin"), ("sm_120", "-cubin"), ("sm_80", "-ptx")] {
        let code = std::fs::read(tests::build::nvcc(&file, &[kind, &format!("-arch={arch}"), "-w"])).unwrap();
        let image = CodeImage::load(&code, arch.parse::<Arch>().unwrap()).unwrap();
        for (k, truths) in truths.iter().enumerate() {
            let summary = image.summary(&format!("f{k}")).unwrap();
            for ((grid, block, params), truth) in cases().zip(truths) {
                let bytes = self::params(base(0), params);
                let mut out = Vec::new();
                let launch = LaunchArgs::new(grid, block, &bytes);
                summary.evaluate(&launch, &mut out);
                assert_eq!(out, anew(&summary, &launch), "f{k} {arch} {kind}, {launch:?} in {}", file.display());
                total += out.len();
                let what = format!(
                    "seed {seed} f{k} {arch} {kind} grid {grid:?} block {block:?} params {params:?} in {}",
                    file.display()
                );
                check(&what, &out, truth, &mut bounded, &mut exact);
                // Following the threads hides what the forms are too small for.
                out.clear();
                summary.evaluate_by_forms(&launch, &mut out);
                check(&what, &out, truth, &mut 0, &mut 0);
                out.clear();
                summary.evaluate_briefly(&launch, &mut out);
                check(&what, &out, truth, &mut 0, &mut 0);
            }
            launches(&mut r, &summary, &format!("f{k} {arch} {kind} in {}", file.display()));
        }
    }
    println!("seed {seed}: {total} results, {bounded} bounded, {exact} exact");
    assert!(asks || bounded * 2 > total, "seed {seed}: only {bounded} of {total} results are bounded");
}

/// The seeds of `RANGES_FUZZ`, or nothing.
fn wanted() -> Option<std::ops::Range<u64>> {
    let wanted = std::env::var("RANGES_FUZZ").ok()?;
    let (a, b) = wanted.split_once("..").expect("RANGES_FUZZ=FIRST..LAST");
    Some(a.parse().unwrap()..b.parse().unwrap())
}

#[test]
fn generated_kernels() {
    wanted().unwrap_or(1..2).for_each(|s| seed(s, false));
}

#[test]
fn generated_kernels_that_ask_data() {
    wanted().unwrap_or(1..2).for_each(|s| seed(s, true));
}
