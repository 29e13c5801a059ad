//! What depends on the processor: the hint that a line will be written.

/// Asks for the line at `at`, to be written. Never faults. By its name on x86-64: the intrinsic
/// becomes a fetch for reading where the compiler does not know that all processors have it.
#[inline(always)]
pub(crate) fn fetch_for_writing(at: *const u8) {
    // SAFETY: hints, which never fault.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags))
    };
    // SAFETY: as above.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags))
    };
    #[cfg(miri)]
    let _ = at;
}
