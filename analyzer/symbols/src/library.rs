//! Which frames belong to libraries that stand between a program's line and CUDA: CUDA's headers,
//! CUB, Thrust, PyTorch's internals, pytest and others, and what the user says is one.
//!
//! Owns that judgement, by file, function and object file. A frame's source file decides where it
//! is known: only headers count, for the tests of such a library are a program of their own. Does
//! not fold anything: that is [`super::stack_text`].

use crate::frame::{Frame, FrameKind};
use std::sync::OnceLock;

/// The user's own judgement of a function, a source file or an object file.
type Judge = Box<dyn Fn(&str) -> bool + Send + Sync>;

static ASKED: OnceLock<Judge> = OnceLock::new();

/// Sets what the user takes for a library besides (`--library`). Call it once, before anything is
/// printed.
pub fn set_libraries(judge: impl Fn(&str) -> bool + Send + Sync + 'static) {
    let _ = ASKED.set(Box::new(judge));
}

/// Headers: a part of the path, and the library.
const HEADERS: [(&str, &str); 18] = [
    ("/cub/", "CUB"),
    ("/thrust/", "Thrust"),
    ("/libcudacxx/", "libcu++"),
    ("/cuda/std/", "libcu++"),
    ("/cuda/__", "libcu++"),
    ("/nv/target", "libcu++"),
    ("/c2h/", "CCCL's test framework"),
    ("/catch2/", "Catch2"),
    ("/cutlass/", "CUTLASS"),
    ("/cute/", "CUTLASS"),
    ("/rmm/", "RMM"),
    ("/ATen/", "PyTorch"),
    ("/c10/", "PyTorch"),
    ("/torch/include/", "PyTorch"),
    ("/torch/csrc/", "PyTorch"),
    ("/include/c++/", "C++'s library"),
    ("/nvidia/cu1", "CUDA's headers"),
    ("/targets/x86_64-linux/include/", "CUDA's headers"),
];

/// Headers of CUDA by name, wherever they are installed.
const CUDA: [&str; 5] =
    ["/cuda_runtime.h", "/cuda_runtime_api.h", "/device_functions.h", "/cooperative_groups.h", "/cudart_platform.h"];

/// Functions without a source file: how their names begin, and the library.
const FUNCTIONS: [(&str, &str); 9] = [
    ("cub::", "CUB"),
    ("thrust::", "Thrust"),
    ("cuda::std::", "libcu++"),
    ("cutlass::", "CUTLASS"),
    ("cute::", "CUTLASS"),
    ("rmm::", "RMM"),
    ("at::", "PyTorch"),
    ("c10::", "PyTorch"),
    ("torch::", "PyTorch"),
];

/// Object files whose functions have neither a source file nor a telling name: how they begin, and
/// the library.
const MODULES: [(&str, &str); 5] = [
    ("libstdc++.so", "C++'s library"),
    ("libc++.so", "C++'s library"),
    ("libtorch", "PyTorch"),
    ("libc10", "PyTorch"),
    ("librmm", "RMM"),
];

/// Packages of Python, installed.
const PACKAGES: [(&str, &str); 10] = [
    ("_pytest", "pytest"),
    ("pytest", "pytest"),
    ("pluggy", "pytest"),
    ("hypothesis", "Hypothesis"),
    ("torch", "PyTorch"),
    ("triton", "Triton"),
    ("cupy", "CuPy"),
    ("cupy_backends", "CuPy"),
    ("jax", "JAX"),
    ("numba", "Numba"),
];

/// Rust's standard library.
const RUST: &str = "Rust's library";

/// Whether a frame is of Rust's standard library. It has lines where the program has none, and they
/// say nothing about a program.
pub fn is_rust_s(frame: &Frame) -> bool {
    library(frame) == Some(RUST)
}

/// The library that a frame belongs to; `None`: it is the program's, or nothing says.
pub fn library(frame: &Frame) -> Option<&'static str> {
    if frame.kind == FrameKind::Folded {
        return None;
    }
    if let Some(judge) = ASKED.get() {
        let named = |text: &Option<String>| text.as_deref().is_some_and(judge);
        if judge(&frame.function) || named(&frame.file) || (frame.file.is_none() && named(&frame.module)) {
            return Some("--library");
        }
    }
    if frame.kind == FrameKind::Python {
        return package(frame.file.as_deref()?);
    }
    if frame.function.contains("__device_stub_") {
        return Some("launch stubs");
    }
    match &frame.file {
        Some(file) => header(file),
        None => {
            let (name, module) = (unadorned(&frame.function), base(frame.module.as_deref().unwrap_or_default()));
            let begins = |text: &str, table: &'static [(&str, &str)]| {
                table.iter().find(|(begin, _)| text.starts_with(begin)).map(|(_, library)| *library)
            };
            begins(name, &FUNCTIONS).or_else(|| begins(module, &MODULES))
        }
    }
}

/// Whether a frame is the program's own: neither folded nor a library's.
pub fn is_own(frame: &Frame) -> bool {
    frame.kind != FrameKind::Folded && library(frame).is_none()
}

fn header(file: &str) -> Option<&'static str> {
    if file.starts_with("/rustc/") || file.contains("/lib/rustlib/src/rust/library/") {
        return Some(RUST);
    }
    if ["/.cargo/registry/src/", "/.cargo/git/checkouts/"].iter().any(|folder| file.contains(folder)) {
        return Some("Rust crates");
    }
    if file.contains("tmpxft_") {
        return Some("launch stubs");
    }
    if CUDA.iter().any(|name| file.ends_with(name)) {
        return Some("CUDA's headers");
    }
    let is_header = match base(file).rsplit_once('.') {
        None => true,
        Some((_, end)) => matches!(end, "h" | "hpp" | "cuh" | "inl" | "hxx" | "tcc" | "ipp"),
    };
    if !is_header {
        return None;
    }
    HEADERS.iter().find(|(part, _)| file.contains(part)).map(|(_, library)| *library)
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn package(file: &str) -> Option<&'static str> {
    if file == "<frozen runpy>" || file.ends_with("/runpy.py") || file.starts_with("<frozen importlib") {
        return Some("Python's library");
    }
    let folders = ["/site-packages/", "/dist-packages/"];
    let Some((_, inside)) = folders.iter().find_map(|folder| file.split_once(folder)) else {
        // It stands around the test as pytest does.
        let unittest = file.split_once("/lib/python3.").and_then(|(_, rest)| rest.split_once('/'));
        return unittest.filter(|(_, rest)| rest.starts_with("unittest/")).map(|_| "unittest");
    };
    let first = inside.split(['/', '.']).next().unwrap_or(inside);
    PACKAGES.iter().find(|(name, _)| *name == first).map(|(_, library)| *library)
}

/// A function's name without its return type, which templates have in front.
fn unadorned(function: &str) -> &str {
    let (mut depth, mut begin) = (0_u32, 0);
    for (at, c) in function.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            ' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    &function[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, function: &str, file: Option<&str>) -> Frame {
        Frame {
            kind,
            function: function.into(),
            file: file.map(String::from),
            line: file.map(|_| 7),
            module: Some("/a/app".into()),
            address: 1,
            inlined: false,
            source: None,
        }
    }

    #[test]
    fn headers_of_libraries_are_theirs_and_their_tests_are_not() {
        let of = |file| library(&frame(FrameKind::Native, "f", Some(file)));
        assert_eq!(of("/x/cub/device/device_reduce.cuh"), Some("CUB"));
        assert_eq!(of("/x/thrust/detail/vector_base.inl"), Some("Thrust"));
        assert_eq!(of("/x/include/cuda/std/__algorithm/copy.h"), Some("libcu++"));
        assert_eq!(of("/usr/local/cuda/include/cuda_runtime.h"), Some("CUDA's headers"));
        assert_eq!(of("/x/thrust/testing/async.cu"), None);
        assert_eq!(of("/home/me/rmm/benchmark.cpp"), None);
        assert_eq!(of("/home/me/app.cuh"), None);
        assert_eq!(of("/rustc/59807616/library/core/src/option.rs"), Some("Rust's library"));
        assert_eq!(
            of("/home/me/.cargo/registry/src/index.crates.io-6f17/rustacuda-0.1.3/src/memory.rs"),
            Some("Rust crates")
        );
        assert_eq!(of("/home/me/app/src/memory.rs"), None);
    }

    #[test]
    fn functions_without_lines_are_judged_by_their_names() {
        let of = |function| library(&frame(FrameKind::Native, function, None));
        assert_eq!(of("cudaError cub::DeviceReduce::Sum<int*, int>(void*)"), Some("CUB"));
        assert_eq!(of("void thrust::detail::f<std::less<int> >(int)"), Some("Thrust"));
        assert_eq!(of("void mine<cub::Sum>(int*)"), None);
        assert_eq!(of("sort(thrust::device_vector<int>&)"), None);
        assert_eq!(of("__device_stub__Z3addPi(int*)"), Some("launch stubs"));
        let thread = Frame { module: Some("/lib/libstdc++.so.6".into()), ..frame(FrameKind::Native, "", None) };
        assert_eq!(library(&thread), Some("C++'s library"));
    }

    #[test]
    fn frames_of_pytest_are_not_the_tests() {
        let of = |file| library(&frame(FrameKind::Python, "f", Some(file)));
        assert_eq!(of("/v/lib/python3.12/site-packages/_pytest/runner.py"), Some("pytest"));
        assert_eq!(of("/v/lib/python3.12/site-packages/hypothesis/core.py"), Some("Hypothesis"));
        assert_eq!(of("/usr/lib/python3.12/unittest/case.py"), Some("unittest"));
        assert_eq!(of("/home/me/unittest/case.py"), None);
        assert_eq!(of("/v/lib/python3.12/site-packages/triton/runtime/jit.py"), Some("Triton"));
        assert_eq!(of("/v/lib/python3.12/site-packages/vllm/worker.py"), None);
        assert_eq!(of("/home/me/torch/test_copy.py"), None);
        assert_eq!(of("<frozen runpy>"), Some("Python's library"));
    }
}
