//! The interface that a place of the program uses to synchronise.
//!
//! Owns the choice, by the packages on the stacks.

pub use crate::words::Api;
use detect::state::names::TorchUse;
use symbols::frame::{Frame, FrameKind};

impl Api {
    /// The Python interfaces of these frames, PyTorch first. `torch`: what was seen of PyTorch in
    /// the process. Where the frames show no interface, PyTorch's libraries alone speak for it;
    /// without them the list is empty, and CUDA's own calls are all that can be advised.
    pub fn of_python<'f>(frames: impl Iterator<Item = &'f Frame> + Clone, torch: TorchUse) -> Vec<Self> {
        let has = |words: &[&str]| {
            let named =
                |text: &Option<String>| text.as_deref().is_some_and(|text| words.iter().any(|w| text.contains(w)));
            frames.clone().any(|f| named(&f.file) || named(&f.module))
        };
        let mut list = Vec::new();
        list.extend(
            (torch == TorchUse::Allocates || has(&["/torch/", "libtorch", "libc10", "/triton/"]))
                .then_some(Self::Torch),
        );
        list.extend(has(&["/cupy/", "/cupy_backends/"]).then_some(Self::CuPy));
        list.extend(has(&["/jaxlib/", "/jax/", "xla_extension", "/jax_cuda"]).then_some(Self::Jax));
        list.extend(has(&["/cuda/core/"]).then_some(Self::CudaCore));
        list.extend(has(&["/numba/", "/numba_cuda/"]).then_some(Self::Numba));
        if list.is_empty() && torch == TorchUse::Loaded {
            list.push(Self::Torch);
        }
        list
    }

    /// CUDA's interface that a call with this stack was made through. Calls of a runtime that is
    /// linked into the program bear the driver's names.
    pub fn of_call(call: &str, stack: &[Frame]) -> Self {
        let of_runtime = |f: &Frame| f.function.starts_with("cuda") || f.function.contains("cudart");
        let named = call.starts_with("cu") && !call.starts_with("cuda");
        match named && stack.iter().any(|f| f.kind != FrameKind::Folded) && !stack.iter().any(of_runtime) {
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
        let of = |files: &[&str], torch| {
            let frames: Vec<Frame> = files.iter().map(|file| frame(file)).collect();
            Api::of_python(frames.iter(), torch)
        };
        let cupy = "/site-packages/cupy/_core/core.pyx";
        for torch in [TorchUse::None, TorchUse::Loaded] {
            assert_eq!(of(&["/site-packages/triton/runtime/jit.py"], torch), [Api::Torch]);
            assert_eq!(of(&[cupy, "/home/me/solve.py"], torch), [Api::CuPy]);
            assert_eq!(of(&["/site-packages/jax/_src/pjit.py"], torch), [Api::Jax]);
            assert_eq!(of(&["/site-packages/cuda/core/_stream.py"], torch), [Api::CudaCore]);
            assert_eq!(of(&["/site-packages/numba/cuda/cudadrv/driver.py"], torch), [Api::Numba]);
            assert_eq!(of(&["/site-packages/numba_cuda/numba/cuda/compiler.py"], torch), [Api::Numba]);
        }
        assert_eq!(of(&[cupy, "/home/me/solve.py"], TorchUse::Allocates), [Api::Torch, Api::CuPy]);
    }

    #[test]
    fn without_a_package_on_the_stacks_only_pytorch_s_libraries_speak_for_it() {
        for file in ["/home/me/train.py", "/home/me/numba_test.py", "/site-packages/onnxruntime/capi/session.py"] {
            let of = |torch| Api::of_python([frame(file)].iter(), torch);
            assert_eq!(of(TorchUse::None), []);
            assert_eq!(of(TorchUse::Loaded), [Api::Torch]);
            assert_eq!(of(TorchUse::Allocates), [Api::Torch]);
        }
    }

    #[test]
    fn the_driver_s_calls_are_those_that_no_runtime_made() {
        let python = frame("/home/me/app.py");
        let folded = |text: &str| Frame { kind: FrameKind::Folded, function: text.into(), file: None, ..frame("") };
        let ctypes = [folded("[3 frames of ctypes]"), python.clone()];
        let runtime = [folded("[3 frames of libcudart.so.13, entered by cudaLaunchKernel]"), python];
        assert_eq!(Api::of_call("cuMemsetD8Async", &ctypes), Api::Driver);
        assert_eq!(Api::of_call("cuLaunchKernel", &runtime), Api::Runtime);
        assert_eq!(Api::of_call("cudaMemcpyAsync", &ctypes), Api::Runtime);
        assert_eq!(Api::of_call("cuMemsetD8Async", &[]), Api::Runtime);
    }
}
