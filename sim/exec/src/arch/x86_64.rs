//! x86-64: an aligned access of a vector register is not divided on any processor that has AVX. The
//! compiler has no atomic access of this size.

use std::arch::asm;
use std::arch::x86_64::__m128i;

/// Reads 16 bytes as one, before everything that follows.
///
/// # Safety
/// The bytes stay mapped, and the address is a multiple of 16.
pub(crate) unsafe fn read_pair(at: u64) -> [u64; 2] {
    let pair: __m128i;
    // SAFETY: reads the 16 bytes that the caller vouches for.
    unsafe {
        asm!("movdqa {pair}, xmmword ptr [{at}]", pair = out(xmm_reg) pair, at = in(reg) at,
            options(nostack, preserves_flags, readonly));
        std::mem::transmute::<__m128i, [u64; 2]>(pair)
    }
}

/// Writes 16 bytes as one, after everything that came before.
///
/// # Safety
/// As of [`read_pair`].
pub(crate) unsafe fn write_pair(at: u64, pair: [u64; 2]) {
    // SAFETY: writes the 16 bytes that the caller vouches for.
    unsafe {
        let pair = std::mem::transmute::<[u64; 2], __m128i>(pair);
        asm!("movdqa xmmword ptr [{at}], {pair}", pair = in(xmm_reg) pair, at = in(reg) at,
            options(nostack, preserves_flags));
    }
}
