//! Counted loops against the truth, in optimised and unoptimised code. The kernels are generated:
//! each way to write a loop, each direction, comparison, step and type. What each writes is
//! emulated here. No byte may be missing, none may be claimed exactly that is not touched, and what
//! a compiler leaves as a counted loop must be exact to the byte.

use crate::support::cuda;
use crate::truth::Arg::{I32, I64, Ptr};
use crate::truth::compare::{check, pack, threads};
use crate::truth::{Shape, Thread, Truth};
use kernels::{CodeImage, LaunchArgs};
use std::fmt::Write as _;

/// Where the test stands.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    For,
    While,
    /// `for (;;) { if (!test) break; ... }`
    Break,
    /// The test is at the end of the body, behind one before the loop.
    DoWhile,
    /// Inside of a loop over three rows of 512 elements.
    Nested,
    /// The same; the row begins where its number says (a triangle).
    NestedFrom,
    /// A loop of the same kind precedes it.
    Second,
}

const FORMS: [Form; 7] =
    [Form::For, Form::While, Form::Break, Form::DoWhile, Form::Nested, Form::NestedFrom, Form::Second];

/// From where to where, and how far in a turn.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// From 0, while less than n.
    Up(i64),
    /// From 0, while at most n.
    UpTo(i64),
    /// From 0 by one, while not n.
    UpUnequal,
    /// From n - 1, while at least 0 (of an unsigned number: more than 0).
    Down(i64),
    /// From n, while more than 0.
    DownAbove(i64),
    /// From the number of the thread by the number of all threads, while less than n.
    Stride,
    /// From the number of the thread in its block by two blocks, while at most n.
    StrideTo,
}

const WAYS: [Way; 11] = [
    Way::Up(1),
    Way::Up(3),
    Way::UpTo(1),
    Way::UpTo(5),
    Way::UpUnequal,
    Way::Down(1),
    Way::Down(4),
    Way::DownAbove(1),
    Way::DownAbove(3),
    Way::Stride,
    Way::StrideTo,
];

const TYPES: [&str; 4] = ["int", "unsigned", "long long", "unsigned long long"];

#[derive(Clone, Copy, Debug)]
struct Kernel {
    form: Form,
    way: Way,
    ty: &'static str,
}

fn kernels() -> Vec<Kernel> {
    let mut all = Vec::new();
    for (number, form) in FORMS.into_iter().enumerate() {
        for (k, way) in WAYS.into_iter().enumerate() {
            for (t, ty) in TYPES.into_iter().enumerate() {
                // All types in the first form; in the others half of them, in turns.
                if number == 0 || (number + k + t).is_multiple_of(2) {
                    all.push(Kernel { form, way, ty });
                }
            }
        }
    }
    all
}

impl Kernel {
    fn is_unsigned(self) -> bool {
        self.ty.starts_with("unsigned")
    }

    /// Start, test and step, as C++.
    fn words(self) -> (String, String, String) {
        let (start, test, step) = match self.way {
            Way::Up(by) => ("0", "i < n", format!("i += {by}")),
            Way::UpTo(by) => ("0", "i <= n", format!("i += {by}")),
            Way::UpUnequal => ("0", "i != n", "i++".to_owned()),
            // An unsigned number never leaves at the lower end by a larger step.
            Way::Down(by) if self.is_unsigned() => ("n - 1", "i > 0", format!("i -= min(i, ({}){by})", self.ty)),
            Way::Down(by) => ("n - 1", "i >= 0", format!("i -= {by}")),
            Way::DownAbove(by) if self.is_unsigned() => ("n", "i > 0", format!("i -= min(i, ({}){by})", self.ty)),
            Way::DownAbove(by) => ("n", "i > 0", format!("i -= {by}")),
            Way::Stride => ("blockIdx.x * blockDim.x + threadIdx.x", "i < n", "i += gridDim.x * blockDim.x".to_owned()),
            Way::StrideTo => ("threadIdx.x", "i <= n", "i += 2 * blockDim.x".to_owned()),
        };
        (start.to_owned(), test.to_owned(), step)
    }

    fn source(self, number: usize) -> String {
        let (start, test, step) = self.words();
        let ty = self.ty;
        let head = format!("extern \"C\" __global__ void k{number}(float *a, float *b, {ty} n)");
        let one = format!("for ({ty} i = {start}; {test}; {step}) a[i] = 1;");
        let body = match self.form {
            Form::For => one,
            Form::While => format!("{ty} i = {start}; while ({test}) {{ a[i] = 1; {step}; }}"),
            Form::Break => format!("{ty} i = {start}; for (;;) {{ if (!({test})) break; a[i] = 1; {step}; }}"),
            Form::DoWhile => format!("{ty} i = {start}; if ({test}) do {{ a[i] = 1; {step}; }} while ({test});"),
            Form::Nested => {
                format!("for (int r = 0; r < 3; r++) for ({ty} i = {start}; {test}; {step}) a[512 * r + i] = 1;")
            }
            Form::NestedFrom => {
                format!("for (int r = 0; r < 3; r++) for ({ty} i = {start}; {test}; {step}) a[512 * r + i + r] = 1;")
            }
            Form::Second => format!("for ({ty} i = {start}; {test}; {step}) b[i] = 2; {one}"),
        };
        format!("{head} {{ {body} }}\n")
    }

    /// What a thread writes.
    fn emulate(self, truth: &mut Truth, t: Thread, n: i64) {
        let (from, by) = match self.way {
            Way::Up(by) | Way::UpTo(by) => (0, by),
            Way::UpUnequal => (0, 1),
            Way::Down(by) => (n - 1, -by),
            Way::DownAbove(by) => (n, -by),
            Way::Stride => (t.i(), t.stride()),
            Way::StrideTo => (t.t[0], 2 * t.bd[0]),
        };
        let goes_on = |i: i64| match self.way {
            Way::Up(_) | Way::Stride => i < n,
            Way::UpTo(_) | Way::StrideTo => i <= n,
            Way::UpUnequal => i != n,
            Way::Down(_) if self.is_unsigned() => i > 0,
            Way::Down(_) => i >= 0,
            Way::DownAbove(_) => i > 0,
        };
        let mut i = from;
        while goes_on(i) {
            match self.form {
                Form::Nested => (0..3).for_each(|r| truth.w(0, 512 * r + i)),
                Form::NestedFrom => (0..3).for_each(|r| truth.w(0, 512 * r + i + r)),
                Form::Second => {
                    truth.w(1, i);
                    truth.w(0, i);
                }
                _ => truth.w(0, i),
            }
            i += by;
        }
    }

    /// Must the answer be exact? Steps that a minimum cuts off are no progression.
    fn is_plain(self) -> bool {
        let cut = self.is_unsigned() && matches!(self.way, Way::Down(_) | Way::DownAbove(_));
        !cut
    }
}

fn image(arch: &str, options: &[&str]) -> CodeImage {
    let mut text = String::new();
    for (number, kernel) in kernels().into_iter().enumerate() {
        text.write_str(&kernel.source(number)).expect("a string");
    }
    cuda::image_with(&tests::build::generated("loops.cu", &text), arch, options)
}

/// Shapes and numbers: no turn, one, a few, and steps that end short of the end.
fn launches() -> Vec<(Shape, i64)> {
    let shape = |grid, block| Shape { grid: [grid, 1, 1], block: [block, 1, 1] };
    let sizes = [1, 2, 10, 33, 200];
    [shape(1, 1), shape(3, 32)].into_iter().flat_map(|s| sizes.map(|n| (s, n))).collect()
}

/// How many launches of plain loops are inexact, of how many.
fn run(arch: &str, options: &[&str]) -> (usize, usize) {
    let image = image(arch, options);
    let (mut inexact, mut all) = (0, 0);
    for (number, kernel) in kernels().into_iter().enumerate() {
        let summary = image.summary(&format!("k{number}")).unwrap();
        for (shape, n) in launches() {
            let size = if kernel.ty.ends_with("long long") { I64(n) } else { I32(n) };
            let (bytes, words) = pack(&[Ptr(0), Ptr(1), size]);
            let mut truth = Truth::default();
            threads(shape).for_each(|t| kernel.emulate(&mut truth, t, n));
            let launch = LaunchArgs::new(shape.grid, shape.block, &bytes);
            let what = format!("{arch} {options:?} {kernel:?} grid {:?} block {:?} n {n}", shape.grid, shape.block);
            let outcome = check(&what, &summary, &launch, &words, &truth);
            if kernel.is_plain() {
                all += 1;
                if !outcome.certain {
                    inexact += 1;
                    println!("not exact: {what}");
                }
            }
        }
    }
    println!("{arch} {options:?}: {inexact} of {all} launches of plain loops are not exact");
    (inexact, all)
}

/// Nothing but claims that hold, and of a hundred launches as many exact as this at least.
fn holds(arch: &str, options: &[&str], exact: usize) {
    let (inexact, all) = run(arch, options);
    let enough = (all - inexact) * 100 >= all * exact;
    assert!(all > 1000 && enough, "{arch} {options:?}: {inexact} of {all} launches are not exact");
}

#[test]
fn optimised() {
    holds("sm_80", &["-ptx"], 100);
    holds("sm_80", &["-cubin"], 90);
    holds("sm_90", &["-cubin"], 90);
}

#[test]
fn debug() {
    holds("sm_80", &["-G", "-ptx"], 100);
    holds("sm_80", &["-G", "-cubin"], 90);
    holds("sm_90", &["-G", "-cubin"], 90);
}

#[test]
fn assembled_without_optimisation() {
    holds("sm_80", &["-Xptxas", "-O0", "-cubin"], 90);
    holds("sm_90", &["-Xptxas", "-O0", "-cubin"], 90);
}
