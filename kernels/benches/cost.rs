//! What it costs to find out which bytes a launch touches: small kernels (`small.cu`, machine code
//! and PTX), and launches recorded from real programs when their `launches.txt` are named (see
//! `examples/dump.rs`).
//!
//!     cargo bench -p kernels --bench cost [-- [PATTERN] FILE.txt...]
//!
//! Columns: preparing the kernel; its first launch; a launch that differs in its pointers only; in
//! the number of elements; in that and the grid; in a scalar that decides no address. Medians of
//! one busy core, in microseconds. Needs the toolkit (`scripts/toolkit`).

use device_code::arch::Arch;
use device_code::image::{CodeRef, Image};
use kernels::{CodeImage, KernelAccess, LaunchArgs, Summary};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One argument of a small kernel.
#[derive(Clone, Copy)]
enum Arg {
    Pointer,
    /// The number of elements (or columns).
    Count,
    /// A number that stays.
    Fixed(u32),
    /// A number that decides no address.
    Scalar,
}

/// A launch of a small kernel, with `n` elements.
struct Case {
    name: &'static str,
    args: &'static [Arg],
    block: [u32; 3],
    /// Blocks for so many elements.
    grid: fn(u32) -> [u32; 3],
}

use Arg::{Count, Fixed, Pointer, Scalar};

const CASES: [Case; 6] = [
    Case { name: "vector_add", args: &[Pointer, Pointer, Pointer, Count], block: [256, 1, 1], grid: per_256 },
    Case { name: "saxpy", args: &[Pointer, Pointer, Scalar, Count], block: [256, 1, 1], grid: per_256 },
    Case { name: "grid_stride", args: &[Pointer, Pointer, Count], block: [256, 1, 1], grid: |n| [n / 1024 + 1, 1, 1] },
    Case {
        name: "transpose",
        args: &[Pointer, Pointer, Count, Fixed(512)],
        block: [32, 8, 1],
        grid: |n| [n.div_ceil(32), 16, 1],
    },
    Case { name: "stencil", args: &[Pointer, Pointer, Count], block: [256, 1, 1], grid: per_256 },
    Case { name: "softmax", args: &[Pointer, Pointer, Count], block: [256, 1, 1], grid: |n| [n / 64 + 1, 1, 1] },
];

fn per_256(n: u32) -> [u32; 3] {
    [n.div_ceil(256), 1, 1]
}

/// Parameter bytes: pointers of the `round`-th launch, `n` elements.
fn pack(args: &[Arg], n: u32, round: u32, scalar: f32) -> Vec<u8> {
    let mut b: Vec<u8> = Vec::new();
    for (k, a) in args.iter().enumerate() {
        match a {
            Pointer => {
                b.resize(b.len().next_multiple_of(8), 0);
                let p = 0x7f00_0000_0000 + ((k as u64) << 32) + 4096 * u64::from(round);
                b.extend(p.to_le_bytes());
            }
            Count => b.extend(n.to_le_bytes()),
            Fixed(v) => b.extend(v.to_le_bytes()),
            Scalar => b.extend(scalar.to_le_bytes()),
        }
    }
    b
}

fn main() {
    let mut only = String::new();
    let mut studies = Vec::new();
    for a in std::env::args().skip(1).filter(|a| !a.starts_with("--")) {
        if a.ends_with(".txt") { studies.push(a) } else { only = a }
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/small.cu");
    println!(
        "{:<22}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "us", "prepare", "first", "pointers", "n", "n, grid", "scalar"
    );
    for (what, options) in [("sm_90", ["-cubin", "-arch=sm_90"]), ("PTX", ["-ptx", "-arch=sm_80"])] {
        let code = std::fs::read(tests::build::nvcc(&source, &options)).expect("compiled");
        for case in CASES.iter().filter(|c| c.name.contains(&only)) {
            let row = small(&code, case);
            println!(
                "{:<22}{}",
                format!("{} {what}", case.name),
                row.map(|d| d.map_or_else(|| format!("{:>10}", "-"), |d| format!("{:>10.2}", micros(d)))).concat()
            );
        }
    }
    studies.iter().for_each(|s| study(s));
}

fn summary(code: &[u8], name: &str) -> Arc<Summary> {
    let image = Image::parse(code).expect("an image");
    let entry = image.entries().first().expect("an entry");
    let code = CodeImage::from_code(entry.unpack().expect("unpacked"), entry.arch).expect("code");
    code.summary(name).expect("a summary")
}

/// The columns of one small kernel.
fn small(code: &[u8], case: &Case) -> [Option<Duration>; 6] {
    const N: u32 = 100_000;
    let mut out = Vec::new();
    let mut evaluate = |s: &Summary, n: u32, grid: u32, round: u32, scalar: f32| {
        let params = pack(case.args, n, round, scalar);
        let launch = LaunchArgs::new((case.grid)(grid), case.block, &params);
        out.clear();
        let t = Instant::now();
        s.evaluate(&launch, &mut out);
        let took = t.elapsed();
        assert!(!out.is_empty(), "{}: no access", case.name);
        took
    };
    let (mut prepare, mut first) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let t = Instant::now();
        let s = summary(code, case.name);
        prepare.push(t.elapsed());
        first.push(evaluate(&s, N, N, 0, 1.0));
    }
    let s = summary(code, case.name);
    let series = |f: &mut dyn FnMut(u32) -> Duration| {
        f(0);
        median(&mut (1..4000).map(f).collect::<Vec<_>>())
    };
    let pointers = series(&mut |k| evaluate(&s, N, N, k, 1.0));
    let n = series(&mut |k| evaluate(&s, N - 16 * k, N, 0, 1.0));
    let grid = series(&mut |k| evaluate(&s, N + 16 * k, N + 16 * k, 0, 1.0));
    let scalar = case.args.iter().any(|a| matches!(a, Scalar));
    let scalar = scalar.then(|| series(&mut |k| evaluate(&s, N, N, 0, k as f32)));
    [Some(median(&mut prepare)), Some(median(&mut first)), Some(pointers), Some(n), Some(grid), scalar]
}

/// A file of recorded launches: each shape evaluated for the first time.
fn study(path: &str) {
    let folder = Path::new(path).parent().unwrap_or(Path::new("."));
    let text = std::fs::read_to_string(path).expect("readable");
    let mut codes: HashMap<&str, Option<CodeImage>> = HashMap::new();
    let (mut prepare, mut first) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let f: Vec<&str> = line.split(' ').collect();
        let [name, file, numbers @ .., hex] = f.as_slice() else { continue };
        let code = codes.entry(file).or_insert_with(|| {
            let bytes = std::fs::read(folder.join(file)).ok()?;
            CodeImage::from_code(CodeRef::Cubin(bytes.into()), Arch::new(90)).ok()
        });
        let n: Vec<u32> = numbers.iter().filter_map(|x| x.parse().ok()).collect();
        let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok();
        let params: Vec<u8> = (0..hex.len() / 2).filter_map(byte).collect();
        let (Some(code), &[gx, gy, gz, bx, by, bz, cx, cy, cz, shared, ..]) = (code, n.as_slice()) else { continue };
        let launch =
            LaunchArgs { grid: [gx, gy, gz], block: [bx, by, bz], cluster: [cx, cy, cz], shared, params: &params };
        let t = Instant::now();
        let Ok(s) = code.summary(name) else { continue };
        prepare.push(t.elapsed());
        let mut out: Vec<KernelAccess> = Vec::new();
        let t = Instant::now();
        s.evaluate(&launch, &mut out);
        first.push(t.elapsed());
    }
    println!("{path}: {} launch shapes", first.len());
    for (what, v) in [("prepare", &mut prepare), ("first", &mut first)] {
        let total: Duration = v.iter().sum();
        let m = median(v);
        let (p99, worst) = (v.len() * 99 / 100, v.len().saturating_sub(1));
        println!("  {what:<8} total {total:.2?}, median {m:.1?}, 99 % {:.1?}, largest {:.1?}", v[p99], v[worst]);
    }
}

fn median(v: &mut [Duration]) -> Duration {
    v.sort_unstable();
    v.get(v.len() / 2).copied().unwrap_or_default()
}

fn micros(d: Duration) -> f64 {
    d.as_secs_f64() * 1e6
}
