//! AArch64.
//!
//! A load or store of two registers is one access to 16 aligned bytes from Armv8.4 on
//! (`FEAT_LSE2`, which Linux shows as `uscat`): Grace, Vera, Thor and GB10 have it. Older
//! processors, Orin's among them, promise that of stores by exclusive pairs only. There is no such
//! load without a store, and kernels read memory that they may not write. So two loads in a row
//! have to agree there: with whole stores, these differ from what was there at one moment only if
//! the same value came back in between.

use std::arch::asm;
use std::sync::atomic::{AtomicU8, Ordering};

/// `HWCAP_USCAT`.
const LSE2: u64 = 1 << 25;

#[inline]
fn has_lse2() -> bool {
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: takes a number.
            let has = unsafe { libc::getauxval(libc::AT_HWCAP) } & LSE2 != 0;
            KNOWN.store(1 + u8::from(has), Ordering::Relaxed);
            has
        }
        known => known == 2,
    }
}

/// Reads 16 bytes as one, before everything that follows.
///
/// # Safety
/// The bytes stay mapped, and the address is a multiple of 16.
pub(crate) unsafe fn read_pair(at: u64) -> [u64; 2] {
    // SAFETY: the caller's promise.
    unsafe { if has_lse2() { read_by_load(at) } else { read_twice(at) } }
}

/// Writes 16 bytes as one, after everything that came before.
///
/// # Safety
/// As of [`read_pair`].
pub(crate) unsafe fn write_pair(at: u64, pair: [u64; 2]) {
    // SAFETY: the caller's promise.
    unsafe { if has_lse2() { write_by_store(at, pair) } else { write_exclusively(at, pair) } }
}

/// # Safety
/// As of [`read_pair`].
unsafe fn read_by_load(at: u64) -> [u64; 2] {
    let (low, high);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("ldp {low}, {high}, [{at}]", "dmb ishld", low = out(reg) low, high = out(reg) high, at = in(reg) at,
            options(nostack, preserves_flags));
    }
    [low, high]
}

/// # Safety
/// As of [`read_pair`].
unsafe fn write_by_store(at: u64, pair: [u64; 2]) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("dmb ish", "stp {low}, {high}, [{at}]", low = in(reg) pair[0], high = in(reg) pair[1], at = in(reg) at,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// As of [`read_pair`].
unsafe fn read_twice(at: u64) -> [u64; 2] {
    let (low, high);
    // SAFETY: the caller's promise. Loads with acquire stay in their order.
    unsafe {
        asm!(
            "2: ldar {low}, [{at}]",
            "ldar {high}, [{above}]",
            "ldar {again}, [{at}]",
            "cmp {again}, {low}",
            "b.ne 2b",
            "ldar {again}, [{above}]",
            "cmp {again}, {high}",
            "b.ne 2b",
            low = out(reg) low, high = out(reg) high, again = out(reg) _, at = in(reg) at, above = in(reg) at + 8,
            options(nostack),
        );
    }
    [low, high]
}

/// # Safety
/// As of [`read_pair`].
unsafe fn write_exclusively(at: u64, pair: [u64; 2]) {
    // SAFETY: the caller's promise. Nothing but the store's success is of interest of what is read.
    unsafe {
        asm!(
            "2: ldxp {old}, {above}, [{at}]",
            "stlxp {failed:w}, {low}, {high}, [{at}]",
            "cbnz {failed:w}, 2b",
            low = in(reg) pair[0], high = in(reg) pair[1], at = in(reg) at, old = out(reg) _, above = out(reg) _,
            failed = out(reg) _, options(nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Pair([u64; 2]);

    #[test]
    fn both_ways_read_and_write_the_same() {
        let mut pair = Pair([1, 2]);
        let at = &raw mut pair.0 as u64;
        // SAFETY: 16 bytes, aligned, of this function.
        unsafe {
            assert_eq!((read_by_load(at), read_twice(at)), ([1, 2], [1, 2]));
            write_exclusively(at, [3, 4]);
            assert_eq!((read_by_load(at), read_twice(at)), ([3, 4], [3, 4]));
            write_by_store(at, [5, 6]);
            assert_eq!((read_by_load(at), read_twice(at)), ([5, 6], [5, 6]));
        }
    }
}
