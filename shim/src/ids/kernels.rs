//! The kernel behind a handle.
//!
//! Handles are `CUfunction`s, or `CUkernel`s passed in their place, as cudart 12 and later does.
//! Owns asking the driver for name, parameters and image, once a handle, and finding the kernel
//! again without a table. Does not read code: the analyzer does.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use cuda_sys::*;
use trace::codec::{List, Text};
use trace::{ImageId, KernelId, Op, ParamSlot};

use crate::handles::kernel::Kernel;
use crate::ids::variables::first_launch_from;
use crate::observe::Cx;
use crate::real::driver::real;
use crate::runtime::handle_cache::{self, Remembered};

/// Kernels by a hash of their handle: a step of a neural network has some hundred, and a launch
/// should not search a table for its own.
static LAST: [AtomicPtr<Kernel>; 1 << LAST_BITS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 1 << LAST_BITS];
const LAST_BITS: u32 = 10;

/// The kernel behind a handle.
#[unsafe(link_section = "streamsan_hot")]
pub fn kernel_of(cx: &mut Cx<'_>, handle: CUfunction) -> Option<&'static Kernel> {
    let core = cx.core()?;
    let key = handle.0 as u64;
    let last = &LAST[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LAST_BITS)) as usize];
    // SAFETY: null, or a kernel, which is never freed.
    let known = unsafe { last.load(Ordering::Acquire).as_ref() };
    // Read before the table is: what ends meanwhile is looked up again next time.
    let generation = handle_cache::generation(Remembered::Kernels, key);
    if let Some(kernel) = known.filter(|k| k.handle == key && k.generation.load(Ordering::Relaxed) == generation) {
        return Some(kernel);
    }
    let found = core.handles.kernels.get(&key).map(|kernel| *kernel);
    let kernel = match found {
        Some(kernel) => kernel,
        None => {
            let kernel = new_kernel(cx, handle)?;
            *core.handles.kernels.entry(key).or_insert(kernel)
        }
    };
    kernel.generation.store(generation, Ordering::Relaxed);
    last.store(std::ptr::from_ref(kernel).cast_mut(), Ordering::Release);
    Some(kernel)
}

#[cold]
fn new_kernel(cx: &mut Cx<'_>, handle: CUfunction) -> Option<&'static Kernel> {
    let core = cx.core()?;
    let mut name: *const c_char = std::ptr::null();
    let is_function =
        real!(cuFuncGetName(&raw mut name => *mut *const c_char, handle => CUfunction)) == CUresult::SUCCESS;
    if !is_function {
        let _ = real!(cuKernelGetName(&raw mut name => *mut *const c_char, handle => CUfunction));
    }
    let mut slots = Vec::new();
    let mut known = false;
    for index in 0..4096_usize {
        let (mut offset, mut size) = (0_usize, 0_usize);
        let result = if is_function {
            real!(cuFuncGetParamInfo(
                handle => CUfunction, index => usize, &raw mut offset => *mut usize, &raw mut size => *mut usize
            ))
        } else {
            real!(cuKernelGetParamInfo(
                handle => CUfunction, index => usize, &raw mut offset => *mut usize, &raw mut size => *mut usize
            ))
        };
        if result != CUresult::SUCCESS {
            // Past the last parameter the driver answers INVALID_VALUE; anything else means
            // that it does not know.
            known = result == CUresult::ERROR_INVALID_VALUE;
            break;
        }
        slots.push(ParamSlot { offset: offset as u32, size: size as u32 });
    }
    let name = if name.is_null() {
        &[][..]
    } else {
        // SAFETY: the driver answered a C string.
        unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes()
    };
    let image = image_of(cx, handle, is_function, name);
    if image != ImageId::NONE {
        // So that the kernel is forgotten when its image is unloaded.
        core.handles.images.entry(handle.0 as u64).or_insert(image);
    }
    first_launch_from(cx, image);
    let id = KernelId(core.handles.fresh());
    cx.define(&Op::Kernel { id, name: Text(name), image, params: List::new(&slots), handle: handle.0 as u64 });
    let (params, size) = Kernel::lay_out(&slots);
    let (handle, generation) = (handle.0 as u64, AtomicU32::new(0));
    Some(Box::leak(Box::new(Kernel { handle, generation, id, params, size, unknown: !known })))
}

/// The image that a function or kernel comes from: as seen when it was got, or as the driver
/// answers.
fn image_of(cx: &mut Cx<'_>, handle: CUfunction, is_function: bool, name: &[u8]) -> ImageId {
    let Some(core) = cx.core() else { return ImageId::NONE };
    let known = |key: u64| core.handles.images.get(&key).map(|id| *id);
    if let Some(image) = known(handle.0 as u64) {
        return image;
    }
    let mut owner: *mut c_void = std::ptr::null_mut();
    if is_function {
        let _ = real!(cuFuncGetModule(&raw mut owner => *mut *mut c_void, handle => CUfunction));
    } else {
        let _ = real!(cuKernelGetLibrary(&raw mut owner => *mut *mut c_void, handle => CUfunction));
    }
    known(owner as u64).or_else(|| core.handles.kernel_names.get(name).map(|image| *image)).unwrap_or(ImageId::NONE)
}
