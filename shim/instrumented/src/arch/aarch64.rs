//! AArch64.
//!
//! What programs call begins with `bti c`, a hint that older processors pass over. The pages of the
//! gate are read with acquire: what the shim had set before it showed them
//! is then seen, too, as x86-64 sees it by itself.

use core::arch::{asm, naked_asm};

/// Bits of the addresses that programs have, unless they ask for more than that.
pub(crate) const ADDRESSES: u32 = 48;

/// The body of a function that is told the address of an access. Six instructions while nothing is
/// asked, nine where no device can reach the 64 KiB around it. Runs are moved on by the shim. The
/// address of the access is the return address (`caller`) or the second argument (`given`).
macro_rules! tell_access {
    ($gate:path, $touch:path, $what:expr, caller) => {
        $crate::arch::tell_access!(@ $gate, $touch, $what, "mov x2, x30")
    };
    ($gate:path, $touch:path, $what:expr, given) => {
        $crate::arch::tell_access!(@ $gate, $touch, $what, "mov x2, x1")
    };
    (@ $gate:path, $touch:path, $what:expr, $pc:literal) => {
        core::arch::naked_asm!(
            "hint #34",
            "adrp x9, {gate}",
            "add x9, x9, :lo12:{gate}",
            "ldr x10, [x9, #8]",
            "cbz x10, 2f",
            "lsr x11, x0, #16",
            "ldrb w10, [x10, x11]",
            "cbz w10, 2f",
            "ldar x9, [x9]",
            "cbz x9, 2f",
            "lsr x10, x0, #17",
            "ldr w10, [x9, x10, lsl #2]",
            "lsr x11, x0, #12",
            "lsr w10, w10, w11",
            "tbnz w10, #0, 3f",
            "2:",
            "ret",
            "3:",
            $pc,
            "mov w1, {what}",
            "adrp x16, {touch}",
            "ldr x16, [x16, :lo12:{touch}]",
            "br x16",
            gate = sym $gate,
            touch = sym $touch,
            what = const ($what) as i32,
        )
    };
}

/// The body of a function that is told a range: goes to `$range` with the address of the access and
/// `$how`, while anything is asked.
macro_rules! tell_range {
    ($gate:path, $range:path, $how:expr, caller) => {
        $crate::arch::tell_range!(@ $gate, $range, $how, "mov x2, x30")
    };
    ($gate:path, $range:path, $how:expr, given) => {
        $crate::arch::tell_range!(@ $gate, $range, $how, "nop")
    };
    (@ $gate:path, $range:path, $how:expr, $pc:literal) => {
        core::arch::naked_asm!(
            "hint #34",
            "adrp x9, {gate}",
            "ldr x9, [x9, :lo12:{gate}]",
            "cbnz x9, 3f",
            "ret",
            "3:",
            $pc,
            "mov w3, {how}",
            "b {range}",
            gate = sym $gate,
            range = sym $range,
            how = const $how as i32,
        )
    };
}

/// No code asks in line on this processor: `include/streamsan_inline.s` is for x86-64.
macro_rules! inline_symbols {
    ($gate:path, $room:path) => {};
}

/// The body of a function that says nothing of interest.
macro_rules! just_return {
    () => {
        core::arch::naked_asm!("hint #34", "ret")
    };
}

/// The body of a wrapper of up to four arguments, that tells `$told` (while anything is asked) of
/// the first three and of the return address, and goes to the real function.
macro_rules! tell_then_jump {
    ($gate:path, $real:path, $told:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "hint #34",
            "adrp x16, {gate}",
            "ldr x16, [x16, :lo12:{gate}]",
            "cbz x16, 3f",
            "stp x29, x30, [sp, #-48]!",
            ".cfi_def_cfa_offset 48",
            ".cfi_offset 29, -48",
            ".cfi_offset 30, -40",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "mov x3, x30",
            "bl {told}",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x29, x30, [sp], #48",
            ".cfi_restore 29",
            ".cfi_restore 30",
            ".cfi_def_cfa_offset 0",
            "3:",
            "adrp x16, {real}",
            "ldr x16, [x16, :lo12:{real}]",
            "br x16",
            ".cfi_endproc",
            gate = sym $gate,
            real = sym $real,
            told = sym $told,
        )
    };
}

pub(crate) use {inline_symbols, just_return, tell_access, tell_range, tell_then_jump};

/// `memmove`, made of instructions that no compiler turns into a call of it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn move_bytes() {
    naked_asm!(
        "cbz x2, 4f",
        "sub x3, x0, x1",
        "cmp x3, x2",
        "b.lo 3f",
        "mov x3, x0",
        "2:",
        "ldrb w4, [x1], #1",
        "strb w4, [x3], #1",
        "subs x2, x2, #1",
        "b.ne 2b",
        "ret",
        "3:",
        "sub x2, x2, #1",
        "ldrb w4, [x1, x2]",
        "strb w4, [x0, x2]",
        "cbnz x2, 3b",
        "4:",
        "ret",
    )
}

/// As [`move_bytes`], for `memset`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn set_bytes() {
    naked_asm!("cbz x2, 3f", "2:", "sub x2, x2, #1", "strb w1, [x0, x2]", "cbnz x2, 2b", "3:", "ret")
}

/// Compares 16 bytes with `expected` and replaces them by `value` if they are equal; answers what
/// was there. A pair of exclusive accesses, which every processor has; what was there is written
/// back where it is not equal, for only then were both halves read as one.
///
/// # Safety
/// The address is valid, may be written and is a multiple of 16.
pub(crate) unsafe fn exchange_16(a: *mut u128, expected: u128, value: u128) -> u128 {
    let (low, high): (u64, u64);
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "2:",
            "ldaxp {low}, {high}, [{a}]",
            "cmp {low}, {old_low}",
            "ccmp {high}, {old_high}, #0, eq",
            "csel {put_low}, {new_low}, {low}, eq",
            "csel {put_high}, {new_high}, {high}, eq",
            "stlxp {failed:w}, {put_low}, {put_high}, [{a}]",
            "cbnz {failed:w}, 2b",
            // As sequentially consistent as the operations of fewer bytes.
            "dmb ish",
            a = in(reg) a,
            old_low = in(reg) expected as u64,
            old_high = in(reg) (expected >> 64) as u64,
            new_low = in(reg) value as u64,
            new_high = in(reg) (value >> 64) as u64,
            low = out(reg) low,
            high = out(reg) high,
            put_low = out(reg) _,
            put_high = out(reg) _,
            failed = out(reg) _,
            options(nostack),
        );
    }
    u128::from(high) << 64 | u128::from(low)
}
