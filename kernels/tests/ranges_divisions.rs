//! Divisions of integers in optimised and unoptimised code, which machine code does through
//! floating point or calls a function for. The kernels are generated: each type, quotient and
//! remainder, by a parameter and by a constant. No byte may be missing or claimed wrongly, and each
//! launch has ranges.

use crate::support::cuda;
use crate::truth::Arg::{I32, I64, Ptr};
use crate::truth::compare::{check, pack, threads};
use crate::truth::{Shape, Truth};
use kernels::LaunchArgs;

const TYPES: [&str; 4] = ["int", "unsigned", "long long", "unsigned long long"];

#[derive(Clone, Copy, Debug)]
struct Division {
    ty: &'static str,
    is_remainder: bool,
    /// `None`: by the parameter.
    by: Option<i64>,
}

fn divisions() -> Vec<Division> {
    let mut all = Vec::new();
    for ty in TYPES {
        for is_remainder in [false, true] {
            all.extend([None, Some(3), Some(12), Some(16)].map(|by| Division { ty, is_remainder, by }));
        }
    }
    all
}

impl Division {
    fn source(self, number: usize) -> String {
        let (ty, op) = (self.ty, if self.is_remainder { '%' } else { '/' });
        let by = self.by.map_or("d".to_owned(), |by| by.to_string());
        format!(
            "extern \"C\" __global__ void k{number}(float *a, {ty} n, {ty} d) {{ \
             {ty} i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i {op} {by}] = 1; }}\n"
        )
    }
}

fn run(arch: &str, options: &[&str]) {
    let text: String = divisions().into_iter().enumerate().map(|(number, d)| d.source(number)).collect();
    let image = cuda::image_with(&tests::build::generated("divisions.cu", &text), arch, options);
    let mut unbounded = Vec::new();
    for (number, division) in divisions().into_iter().enumerate() {
        let summary = image.summary(&format!("k{number}")).unwrap();
        for (blocks, n, d) in [(1, 20, 7), (3, 96, 5), (3, 70, 1), (4, 128, 200)] {
            let shape = Shape { grid: [blocks, 1, 1], block: [32, 1, 1] };
            let size = |v| if division.ty.ends_with("long long") { I64(v) } else { I32(v) };
            let (bytes, words) = pack(&[Ptr(0), size(n), size(d)]);
            let mut truth = Truth::default();
            let by = division.by.unwrap_or(d);
            for t in threads(shape).filter(|t| t.i() < n) {
                truth.w(0, if division.is_remainder { t.i() % by } else { t.i() / by });
            }
            let launch = LaunchArgs::new(shape.grid, shape.block, &bytes);
            let what = format!("{arch} {options:?} {division:?} {blocks} blocks, n {n}, d {d}");
            if !check(&what, &summary, &launch, &words, &truth).bounded {
                unbounded.push(what);
            }
        }
    }
    assert!(unbounded.is_empty(), "no ranges: {}", unbounded.join("\n"));
}

#[test]
fn optimised() {
    run("sm_80", &["-ptx"]);
    run("sm_80", &["-cubin"]);
    run("sm_90", &["-cubin"]);
}

#[test]
fn debug() {
    run("sm_80", &["-G", "-ptx"]);
    run("sm_80", &["-G", "-cubin"]);
    run("sm_90", &["-G", "-cubin"]);
}

#[test]
fn assembled_without_optimisation() {
    run("sm_80", &["-Xptxas", "-O0", "-cubin"]);
    run("sm_90", &["-Xptxas", "-O0", "-cubin"]);
}
