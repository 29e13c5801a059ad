//! The prefetch hint to the processor.
//!
//! Owns the instruction. Its callers decide what is worth fetching.

/// Prefetches the bytes of a value into the processor's cache. Only a hint.
#[inline(always)]
pub(crate) fn fetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of this family has the instruction, and it reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).wrapping_byte_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
