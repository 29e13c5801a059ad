//! What the shim knows of a kernel: its id, and where its parameters lie.
//!
//! The driver is asked once per handle; handles are `CUfunction`s, or `CUkernel`s passed in their
//! place (as cudart 12 and later does). Reading the code is the analyzer's business.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use cuda_sys::*;
use trace::codec::{List, Text};
use trace::{ImageId, KernelId, Op, ParamSlot};

use crate::handles::tables::meaning;
use crate::observe::context::Cx;
use crate::real;

/// A kernel that was launched. Lives for ever: there are as many as the program has kernels.
pub struct Kernel {
    /// Its handle.
    handle: u64,
    /// Which meaning of handles it was last looked up under.
    meaning: AtomicU32,
    /// Its id.
    pub id: KernelId,
    /// Parameter layout, in the order of offsets; empty and `unknown` when the driver does not
    /// tell.
    params: Box<[ParamSlot]>,
    /// Bytes of the parameter buffer.
    size: usize,
    /// Whether the layout is unknown.
    pub unknown: bool,
}

/// Kernels by a hash of their handle: a step of a neural network has some hundred, and a launch
/// shall not search a table for its own.
static LAST: [AtomicPtr<Kernel>; 1 << LAST_BITS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 1 << LAST_BITS];
const LAST_BITS: u32 = 10;

/// Largest parameter buffer that CUDA allows (32,764 bytes since 12.1 on sm_70 and later).
pub const MAX_PARAMS: usize = 32_764;

impl Kernel {
    /// Gathers the parameters of a launch into `to`, of [`Kernel::size`] bytes; bytes between
    /// parameters, and parameters without a value, are zeros.
    ///
    /// # Safety
    /// `kernel_params` is the array that the program passed to a launch that has succeeded; or `to`
    /// is empty.
    #[inline(always)]
    pub unsafe fn gather(&self, kernel_params: *mut *mut c_void, to: &mut [u8]) {
        if to.len() != self.size {
            return;
        }
        // Bytes before this one have been written.
        let mut written = 0;
        for (index, slot) in self.params.iter().enumerate() {
            let (start, size) = (slot.offset as usize, slot.size as usize);
            // SAFETY: the driver has read exactly these parameters from this array.
            let value: *const u8 = unsafe { *kernel_params.add(index) }.cast();
            let end = if value.is_null() { start + size } else { start };
            // SAFETY: slots follow each other and end at `size`: see `Kernel::lay_out`. The driver
            // has read size bytes from where the value is.
            unsafe {
                clear(to.as_mut_ptr().add(written), end - written);
                if !value.is_null() {
                    copy(value, to.as_mut_ptr().add(start), size);
                }
            }
            written = start + size;
        }
    }

    /// Slots that follow each other, and their end: what lies before the end of another one is
    /// taken for empty.
    fn lay_out(slots: &[ParamSlot]) -> (Box<[ParamSlot]>, usize) {
        let mut end = 0;
        let in_order = slots.iter().map(|slot| {
            let (start, size) = (slot.offset as usize, slot.size as usize);
            let fits = start >= end && start + size <= MAX_PARAMS;
            let slot = if fits { *slot } else { ParamSlot { offset: end as u32, size: 0 } };
            end = (slot.offset + slot.size) as usize;
            slot
        });
        (in_order.collect(), end)
    }

    /// Bytes of the parameter buffer.
    pub fn size(&self) -> usize {
        self.size
    }
}

/// Copies a parameter: nearly all are words, and a call of the C library would touch more lines
/// than it copies.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller's promise; the words need not be aligned.
    unsafe {
        match size {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => std::ptr::copy_nonoverlapping(from, to, size),
        }
    }
}

/// Clears what lies between parameters: a few bytes.
///
/// # Safety
/// The bytes may be written.
#[inline(always)]
unsafe fn clear(from: *mut u8, size: usize) {
    for at in 0..size {
        // Volatile, or the loop becomes a call of the C library.
        // SAFETY: the caller's promise.
        unsafe { from.add(at).write_volatile(0) };
    }
}

impl Cx<'_> {
    /// The kernel behind a handle.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn kernel(&mut self, handle: CUfunction) -> Option<&'static Kernel> {
        let core = self.core()?;
        let key = handle.0 as u64;
        let last = &LAST[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LAST_BITS)) as usize];
        // SAFETY: null, or a kernel, which lives for ever.
        let known = unsafe { last.load(Ordering::Acquire).as_ref() };
        // Read before the table is: what ends meanwhile is looked up again next time.
        let meaning = meaning();
        if let Some(kernel) = known.filter(|k| k.handle == key && k.meaning.load(Ordering::Relaxed) == meaning) {
            return Some(kernel);
        }
        let found = core.handles.kernels.get(&key).map(|kernel| *kernel);
        let kernel = match found {
            Some(kernel) => kernel,
            None => {
                let kernel = self.new_kernel(handle)?;
                *core.handles.kernels.entry(key).or_insert(kernel)
            }
        };
        kernel.meaning.store(meaning, Ordering::Relaxed);
        last.store(std::ptr::from_ref(kernel).cast_mut(), Ordering::Release);
        Some(kernel)
    }

    #[cold]
    fn new_kernel(&mut self, handle: CUfunction) -> Option<&'static Kernel> {
        let core = self.core()?;
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
                // that it can not tell.
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
        let image = self.image_of(handle, is_function, name);
        self.first_launch_from(image);
        let id = KernelId(core.handles.fresh());
        self.define(&Op::Kernel { id, name: Text(name), image, params: List::new(&slots), handle: handle.0 as u64 });
        let (params, size) = Kernel::lay_out(&slots);
        let (handle, meaning) = (handle.0 as u64, AtomicU32::new(0));
        Some(Box::leak(Box::new(Kernel { handle, meaning, id, params, size, unknown: !known })))
    }

    /// The image that a function or kernel comes from: as seen when it was got, or as the driver
    /// tells.
    fn image_of(&mut self, handle: CUfunction, is_function: bool, name: &[u8]) -> ImageId {
        let Some(core) = self.core() else { return ImageId::NONE };
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_every_size_come_with_cleared_gaps() {
        let slot = |offset, size| ParamSlot { offset, size };
        let slots = [slot(0, 1), slot(4, 4), slot(8, 8), slot(16, 3), slot(24, 12), slot(32, 8), slot(40, 4)];
        let (params, size) = Kernel::lay_out(&slots);
        let (handle, id, meaning) = (1, KernelId(1), AtomicU32::new(0));
        let kernel = Kernel { handle, meaning, id, params, size, unknown: false };
        let bytes: Vec<u8> = (1..=12).collect();
        let value = bytes.as_ptr().cast_mut().cast::<c_void>();
        // A parameter that the program gave no value for is as if it were a gap; so is one that
        // lies in another.
        let mut pointers = [value, value, value, value, value, value, std::ptr::null_mut()];
        let mut buffer = [0xff; 44];
        // SAFETY: a pointer for each slot, to at least as many bytes or null.
        unsafe { kernel.gather(pointers.as_mut_ptr(), &mut buffer) };
        let mut expected = [0; 44];
        for (start, size) in [(0, 1), (4, 4), (8, 8), (16, 3), (24, 12)] {
            expected[start..start + size].copy_from_slice(&bytes[..size]);
        }
        assert_eq!(buffer, expected);
        // SAFETY: no bytes, no parameters.
        unsafe { kernel.gather(std::ptr::null_mut(), &mut []) };
        assert_eq!(Kernel::lay_out(&[slot(0, 8), slot(MAX_PARAMS as u32, 4)]).1, 8, "more than there may be");
    }
}
