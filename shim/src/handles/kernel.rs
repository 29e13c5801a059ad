//! A launched kernel: its id, and where its parameters lie.
//!
//! Owns gathering the parameters of a launch into the bytes that the trace stores. Does not ask the
//! driver for the layout (`crate::ids::kernels` does, once a handle), and does not read code: the
//! analyzer does.

use std::sync::atomic::AtomicU32;

use cuda_sys::c_void;
use trace::{KernelId, ParamSlot};

/// A kernel that was launched. Never freed: there are as many as the program has kernels.
pub struct Kernel {
    /// Its handle.
    pub handle: u64,
    /// The generation of handles ([`crate::runtime::handle_cache::generation`]) in which it was
    /// last looked up.
    pub generation: AtomicU32,
    /// Its id.
    pub id: KernelId,
    /// Parameter layout, in the order of offsets; empty and `unknown` when the driver does not
    /// say.
    pub params: Box<[ParamSlot]>,
    /// Bytes of the parameter buffer.
    pub size: usize,
    /// Whether the layout is unknown.
    pub unknown: bool,
}

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

    /// Whether any word that a parameter holds is such a one. A word is 8 bytes of one parameter,
    /// at a multiple of 8 in the buffer.
    ///
    /// # Safety
    /// `kernel_params` is the array that the program passed to a launch that has succeeded.
    #[inline(always)]
    pub unsafe fn any_word(&self, kernel_params: *mut *mut c_void, is: impl Fn(u64) -> bool) -> bool {
        for (index, slot) in self.params.iter().enumerate() {
            if slot.size < 8 {
                continue;
            }
            // SAFETY: the driver has read exactly these parameters from this array.
            let value: *const u8 = unsafe { *kernel_params.add(index) }.cast();
            if value.is_null() {
                continue;
            }
            // As nearly all are.
            if slot.size == 8 && slot.offset.is_multiple_of(8) {
                // SAFETY: the driver has read 8 bytes from where the value is.
                if is(unsafe { value.cast::<u64>().read_unaligned() }) {
                    return true;
                }
                continue;
            }
            let first = slot.offset.next_multiple_of(8) - slot.offset;
            for at in (first..slot.size.saturating_sub(7)).step_by(8) {
                // SAFETY: the driver has read size bytes from where the value is.
                if is(unsafe { value.add(at as usize).cast::<u64>().read_unaligned() }) {
                    return true;
                }
            }
        }
        false
    }

    /// Slots that follow each other, and their end: what lies before the end of another one is
    /// taken for empty.
    pub fn lay_out(slots: &[ParamSlot]) -> (Box<[ParamSlot]>, usize) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_every_size_come_with_cleared_gaps() {
        let slot = |offset, size| ParamSlot { offset, size };
        let slots = [slot(0, 1), slot(4, 4), slot(8, 8), slot(16, 3), slot(24, 12), slot(32, 8), slot(40, 4)];
        let (params, size) = Kernel::lay_out(&slots);
        let (handle, id, generation) = (1, KernelId(1), AtomicU32::new(0));
        let kernel = Kernel { handle, generation, id, params, size, unknown: false };
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
        // The words that the gathered bytes hold, but those that lie in no parameter alone.
        let words: Vec<u64> =
            [8, 24].map(|at| u64::from_le_bytes(buffer[at..at + 8].try_into().expect("8 bytes"))).into();
        for word in [0, 1, 0x0807_0605_0403_0201, 0x0403_0201, words[0], words[1], 0x0c0b_0a09] {
            // SAFETY: as above.
            let found = unsafe { kernel.any_word(pointers.as_mut_ptr(), |w| w == word) };
            assert_eq!(found, words.contains(&word), "{word:#x}");
        }
        // Eight bytes between two words hold none.
        let (params, size) = Kernel::lay_out(&[slot(4, 8)]);
        let between = Kernel { handle, generation: AtomicU32::new(0), id, params, size, unknown: false };
        // SAFETY: as above.
        assert!(!unsafe { between.any_word(pointers.as_mut_ptr(), |_| true) });
        // SAFETY: no bytes, no parameters.
        unsafe { kernel.gather(std::ptr::null_mut(), &mut []) };
        assert_eq!(Kernel::lay_out(&[slot(0, 8), slot(MAX_PARAMS as u32, 4)]).1, 8, "more than there may be");
    }
}
