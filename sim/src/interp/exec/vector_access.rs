//! Accesses to memory of several elements at once.

use crate::interp::exec::load_store::Cell;

/// Reads 2 to 32 bytes. What is aligned and not longer than 16 bytes is read as one, as devices do
/// it: algorithms that pass a value and its flag from block to block in one vector count on it.
///
/// # Safety
/// The bytes stay mapped, and the address is a multiple of their number.
pub(super) unsafe fn read_whole(at: u64, bytes: usize) -> [u64; 4] {
    let mut words = [0; 4];
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            2 => words[0] = u16::read(at),
            4 => words[0] = u32::read(at),
            8 => words[0] = u64::read(at),
            _ => {
                for (part, pair) in words.chunks_exact_mut(2).take(bytes / 16).enumerate() {
                    pair.copy_from_slice(&read_pair(at + part as u64 * 16));
                }
            }
        }
    }
    words
}

/// The same for writing.
///
/// # Safety
/// As of [`read_whole`].
pub(super) unsafe fn write_whole(at: u64, bytes: usize, words: &[u64; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            2 => u16::write(at, words[0]),
            4 => u32::write(at, words[0]),
            8 => u64::write(at, words[0]),
            _ => {
                for (part, pair) in words.chunks_exact(2).take(bytes / 16).enumerate() {
                    write_pair(at + part as u64 * 16, [pair[0], pair[1]]);
                }
            }
        }
    }
}

/// Reads 16 bytes at once: an aligned load of a vector register is not divided on any processor
/// that has AVX.
///
/// # Safety
/// The bytes stay mapped, and the address is a multiple of 16.
#[cfg(target_arch = "x86_64")]
unsafe fn read_pair(at: u64) -> [u64; 2] {
    use std::arch::x86_64::__m128i;
    let pair: __m128i;
    // SAFETY: reads the 16 bytes that the caller vouches for. The compiler has no atomic access of
    // this size.
    unsafe {
        std::arch::asm!("movdqa {pair}, xmmword ptr [{at}]", pair = out(xmm_reg) pair, at = in(reg) at,
            options(nostack, preserves_flags, readonly));
        std::mem::transmute::<__m128i, [u64; 2]>(pair)
    }
}

/// # Safety
/// As of [`read_pair`].
#[cfg(target_arch = "x86_64")]
unsafe fn write_pair(at: u64, pair: [u64; 2]) {
    use std::arch::x86_64::__m128i;
    // SAFETY: writes the 16 bytes that the caller vouches for.
    unsafe {
        let pair = std::mem::transmute::<[u64; 2], __m128i>(pair);
        std::arch::asm!("movdqa xmmword ptr [{at}], {pair}", pair = in(xmm_reg) pair, at = in(reg) at,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// The bytes stay mapped, and the address is a multiple of 16.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn read_pair(at: u64) -> [u64; 2] {
    // SAFETY: the caller's promise.
    unsafe { [u64::read(at), u64::read(at + 8)] }
}

/// # Safety
/// As of [`read_pair`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn write_pair(at: u64, pair: [u64; 2]) {
    // SAFETY: the caller's promise.
    unsafe {
        u64::write(at, pair[0]);
        u64::write(at + 8, pair[1]);
    }
}
