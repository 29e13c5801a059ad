//! The interface that a place of the program uses to synchronise.
//!
//! Owns the choice, by the packages on the stacks.

use crate::report::words::Word;
use crate::symbols::frame::{Frame, FrameKind};

/// An interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Api {
    /// CUDA's runtime.
    Runtime,
    /// CUDA's driver API.
    Driver,
    /// PyTorch, and Triton, which launches on PyTorch's current stream.
    Torch,
    /// CuPy.
    CuPy,
    /// JAX.
    Jax,
    /// cuda.core.
    CudaCore,
    /// Numba.
    Numba,
}

impl Api {
    /// Its name.
    pub fn name(self) -> Word {
        match self {
            Self::Runtime => "CUDA runtime",
            Self::Driver => "CUDA driver",
            Self::Torch => "PyTorch",
            Self::CuPy => "CuPy",
            Self::Jax => "JAX",
            Self::CudaCore => "cuda.core",
            Self::Numba => "Numba",
        }
    }

    /// The Python interfaces of these frames, PyTorch first. `is_torch`: PyTorch's allocator was
    /// seen in the process.
    pub fn of_python<'f>(frames: impl Iterator<Item = &'f Frame> + Clone, is_torch: bool) -> Vec<Self> {
        let has = |words: &[&str]| {
            let named =
                |text: &Option<String>| text.as_deref().is_some_and(|text| words.iter().any(|w| text.contains(w)));
            frames.clone().any(|f| named(&f.file) || named(&f.module))
        };
        let mut list = Vec::new();
        list.extend((is_torch || has(&["/torch/", "libtorch", "libc10", "/triton/"])).then_some(Self::Torch));
        list.extend(has(&["/cupy/", "/cupy_backends/"]).then_some(Self::CuPy));
        list.extend(has(&["/jaxlib/", "/jax/", "xla_extension", "/jax_cuda"]).then_some(Self::Jax));
        list.extend(has(&["/cuda/core/"]).then_some(Self::CudaCore));
        list.extend(has(&["/numba/", "/numba_cuda/"]).then_some(Self::Numba));
        if list.is_empty() {
            list.push(Self::Torch);
        }
        list
    }

    /// CUDA's interface that a call with this stack was made through. Calls of a runtime that is
    /// linked into the program bear the driver's names.
    pub fn of_call(call: &str, stack: &[Frame]) -> Self {
        let of_runtime = |f: &Frame| f.function.starts_with("cuda") || f.function.contains("cudart");
        let named = call.starts_with("cu") && !call.starts_with("cuda");
        match named && stack.iter().any(|f| f.kind == FrameKind::Native) && !stack.iter().any(of_runtime) {
            true => Self::Driver,
            false => Self::Runtime,
        }
    }

    /// The interface of two calls: the runtime, unless both use the driver's.
    pub fn of_both(first: Self, then: Self) -> Self {
        if first == then { first } else { Self::Runtime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str) -> Frame {
        Frame {
            kind: FrameKind::Python,
            function: "f".into(),
            file: Some(file.into()),
            line: Some(1),
            module: None,
            address: 0,
            inlined: false,
            source: None,
        }
    }

    #[test]
    fn the_packages_on_the_stacks_say_which() {
        let of = |files: &[&str], is_torch| {
            let frames: Vec<Frame> = files.iter().map(|file| frame(file)).collect();
            Api::of_python(frames.iter(), is_torch)
        };
        let cupy = "/site-packages/cupy/_core/core.pyx";
        assert_eq!(of(&["/home/me/train.py"], false), [Api::Torch]);
        assert_eq!(of(&["/site-packages/triton/runtime/jit.py"], false), [Api::Torch]);
        assert_eq!(of(&[cupy, "/home/me/solve.py"], false), [Api::CuPy]);
        assert_eq!(of(&[cupy, "/home/me/solve.py"], true), [Api::Torch, Api::CuPy]);
        assert_eq!(of(&["/site-packages/jax/_src/pjit.py"], false), [Api::Jax]);
        assert_eq!(of(&["/site-packages/cuda/core/_stream.py"], false), [Api::CudaCore]);
        assert_eq!(of(&["/site-packages/numba/cuda/cudadrv/driver.py"], false), [Api::Numba]);
        assert_eq!(of(&["/site-packages/numba_cuda/numba/cuda/compiler.py"], false), [Api::Numba]);
        assert_eq!(of(&["/home/me/numba_test.py"], false), [Api::Torch]);
    }
}
