//! AArch64, as Linux runs it (Arm's 64-bit architecture from 8.0 on).
//!
//! Every jump target begins with `bti c`, and every jump goes through `x16`: pages that are guarded
//! by branch target identification allow no other. `bti` is a hint that older processors pass over,
//! and so is `xpaclri`, which strips the signature of a return address.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use gimli::{AArch64, Register};

use super::loads_stores::{self, LoadStore};
use super::{MachineAccess, SignalFrame};

/// Bits of the addresses that programs have, unless they ask for more than that.
pub(crate) const ADDRESSES: u64 = 48;
/// The size of a page, which the kernel was built with: 4, 16 or 64 KiB.
#[inline]
pub(crate) fn page_size() -> u64 {
    static PAGE: AtomicU64 = AtomicU64::new(0);
    let known = PAGE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: reads the vector that each program starts with, in a signal handler too.
    let page = unsafe { libc::getauxval(libc::AT_PAGESZ) };
    PAGE.store(page, Ordering::Relaxed);
    page
}

/// DWARF's number of the stack pointer.
pub(crate) const SP: Register = AArch64::SP;
/// DWARF's number of the frame pointer.
pub(crate) const FP: Register = AArch64::X29;
/// DWARF's number of the return address.
pub(crate) const RA: Register = AArch64::X30;
/// Registers that unwind information may name: x19 to x30, d8 to d15, whether x30 is signed.
pub(crate) const MOST_RULES: usize = 24;
/// Whose extensions of DWARF the compilers use: `DW_CFA_AARCH64_negate_ra_state`.
pub(crate) const VENDOR: gimli::Vendor = gimli::Vendor::AArch64;
/// Calls put the return address into a register.
pub(crate) const HAS_LINK: bool = true;
/// `struct rt_sigframe` of the kernel: 128 bytes of `siginfo`, then a `ucontext` whose registers
/// begin at 184.
pub(crate) const SIGNAL_FRAME: SignalFrame = SignalFrame { fp: 544, sp: 560, pc: 568, link: Some(552) };
/// `mov x8, 139; svc 0`: a return from a signal handler.
pub(crate) const SIGRETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
/// Bytes below a return address that a call instruction takes.
pub(crate) const LONGEST_CALL: usize = 4;

/// Program counter, stack pointer and frame pointer of the caller.
#[inline(always)]
pub(crate) fn registers() -> (u64, u64, u64) {
    let (pc, sp, fp): (u64, u64, u64);
    // SAFETY: reads three registers, touches no memory.
    unsafe {
        core::arch::asm!(
            "adr {pc}, .", "mov {sp}, sp", "mov {fp}, x29",
            pc = out(reg) pc, sp = out(reg) sp, fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    (pc, sp, fp)
}

/// Where a frame keeps its return address: above the word of the frame pointer, wherever in the
/// frame these two lie.
#[inline(always)]
pub(crate) fn return_slot(cfa: u64, saved_fp: i64) -> u64 {
    cfa.wrapping_add_signed(saved_fp).wrapping_add(8)
}

/// The return address that a saved word stands for: without its signature.
#[inline(always)]
pub(crate) fn strip(word: u64) -> u64 {
    let plain: u64;
    // SAFETY: `xpaclri`, by its number as a hint; it changes x30 alone.
    unsafe {
        core::arch::asm!("hint #7", inlateout("x30") word => plain, options(pure, nomem, nostack, preserves_flags));
    }
    plain
}

/// The caller's stack pointer after a frame record at `record`, whose first word is `fp`: compilers
/// that find a frame by the stack pointer keep the record at its bottom.
pub(crate) fn sp_above(record: u64, fp: u64) -> u64 {
    fp.max(record + 16)
}

/// Whether the bytes before a return address are a call: `bl`, `blr`, or `blr` with a signature.
pub(crate) fn is_call(bytes: &[u8]) -> bool {
    let code = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    code & 0xfc00_0000 == 0x9400_0000 || code & 0xffff_fc1f == 0xd63f_0000 || code & 0xfeff_f800 == 0xd63f_0800
}

/// The processor's clock, which goes on at one speed.
#[cfg(feature = "cycles")]
#[inline(always)]
pub(crate) fn cycles() -> u64 {
    let cycles: u64;
    // SAFETY: reads a register that the kernel lets programs read.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) cycles, options(nomem, nostack)) };
    cycles
}

/// Address of the thread's control block. The thread library's own state lies below it, and below
/// that the thread's stack.
pub(crate) fn thread_pointer() -> u64 {
    let tp: u64;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mrs {}, tpidr_el0", out(reg) tp, options(nostack, nomem, preserves_flags)) };
    tp
}

/// Address of a symbol in the calling thread's memory that the loader lays out at start.
macro_rules! in_thread {
    ($symbol:literal) => {{
        let address: *const c_void;
        // SAFETY: the TLS ABI (initial exec): the offset from the thread pointer lies in the table
        // of global offsets and stays.
        unsafe {
            std::arch::asm!(
                concat!("adrp {address}, :gottprel:", $symbol),
                concat!("ldr {address}, [{address}, :gottprel_lo12:", $symbol, "]"),
                "mrs {tp}, tpidr_el0",
                "add {address}, {address}, {tp}",
                address = out(reg) address, tp = out(reg) _, options(pure, nomem, nostack),
            );
        }
        address
    }};
}

/// Address of `streamsan_local` in the calling thread.
#[inline(always)]
pub(crate) fn local() -> *const c_void {
    in_thread!("streamsan_local")
}

/// Address of `streamsan_stack_bounds` in the calling thread.
#[inline(always)]
pub(crate) fn stack_bounds() -> *const c_void {
    in_thread!("streamsan_stack_bounds")
}

/// Where [`local`] lies, counted from what `tpidr_el0` points to.
pub(crate) fn local_offset() -> u64 {
    let offset: u64;
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "adrp {offset}, :gottprel:streamsan_local",
            "ldr {offset}, [{offset}, :gottprel_lo12:streamsan_local]",
            offset = out(reg) offset, options(pure, nomem, nostack),
        );
    }
    offset
}

/// The interrupted instruction's address.
pub(crate) fn pc(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.pc
}

/// The interrupted thread's stack pointer.
pub(crate) fn sp(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.sp
}

/// Whether a fault came of a store: the kernel says so in a record behind the registers
/// (`esr_context`). Where that is missing, the instruction says it.
pub(crate) fn is_store(context: &libc::ucontext_t, is_readable: fn(u64, u64) -> bool) -> bool {
    match syndrome(context) {
        // A data abort: WnR, but for maintenance of caches, which reads nothing and is a write.
        Some(esr) if matches!(esr >> 26 & 63, 0x24 | 0x25) => esr & 1 << 6 != 0,
        _ => read(pc(context), is_readable).is_some_and(|access| access.writes),
    }
}

/// The exception syndrome of a fault.
fn syndrome(context: &libc::ucontext_t) -> Option<u64> {
    /// From the machine context to its further records, and their length, by the kernel's ABI.
    const RECORDS: (u64, u64) = (288, 4096);
    const ESR: u32 = 0x4553_5201;
    let start = &raw const context.uc_mcontext as u64 + RECORDS.0;
    let end = start + RECORDS.1;
    let mut at = start;
    while at + 16 <= end {
        // SAFETY: the kernel reserves this many bytes; records are aligned to 16 bytes.
        let (magic, size) = unsafe { ((at as *const u32).read(), ((at + 4) as *const u32).read()) };
        if magic == ESR && size >= 16 {
            // SAFETY: as above; a record of this kind has a second word.
            return Some(unsafe { ((at + 8) as *const u64).read() });
        }
        if magic == 0 || size < 16 || size % 16 != 0 {
            return None;
        }
        at += u64::from(size);
    }
    None
}

/// There is no trap flag that a program could set: nothing is executed.
pub(crate) fn try_step() -> bool {
    false
}

/// Nothing: see [`try_step`].
pub(crate) fn set_stepping(_context: &mut libc::ucontext_t, _on: bool) {}

/// No instruction repeats itself.
pub(crate) fn repeated(_context: &libc::ucontext_t, _address: u64) -> Option<u64> {
    None
}

/// What the instruction at this address does to memory. `is_readable`: whether all bytes of a range
/// can be read.
pub(crate) fn operand(instruction: u64, is_readable: fn(u64, u64) -> bool) -> MachineAccess {
    let known =
        read(instruction, is_readable).map(|access| MachineAccess { bytes: access.bytes, atomic: access.atomic });
    known.unwrap_or(MachineAccess { bytes: 1, atomic: false })
}

fn read(instruction: u64, is_readable: fn(u64, u64) -> bool) -> Option<LoadStore> {
    if instruction % 4 != 0 || !is_readable(instruction, instruction + 4) {
        return None;
    }
    // SAFETY: just found readable and aligned; code is not changed while it runs.
    loads_stores::decode(unsafe { (instruction as *const u32).read() })
}

/// Whether the instruction at this address is an atomic operation on memory.
pub(crate) fn is_atomic(instruction: u64, is_readable: fn(u64, u64) -> bool) -> bool {
    operand(instruction, is_readable).atomic
}

/// Whether [`blocks`] may be called.
#[inline]
pub(crate) fn has_blocks() -> bool {
    false
}

/// Never called: sums are made word by word.
///
/// # Safety
/// [`has_blocks`] said so.
pub(crate) unsafe fn blocks<const A: u64, const B: u64>(_at: u64, _len: u64) -> [u64; 16] {
    unreachable!("has_blocks says no")
}

/// This processor has all of them in one form.
pub(crate) fn arguments_of_older_call(_number: i64) -> usize {
    0
}

/// The body of a wrapper that jumps to the driver's function in a slot; `$find` gets the function's
/// number where there is none yet.
macro_rules! jump_to_slot {
    ($slots:path, $number:expr, $find:path) => {
        core::arch::naked_asm!(
            "hint #34",
            "adrp x16, {slots}",
            "add x16, x16, :lo12:{slots}",
            "mov w17, {offset}",
            "add x16, x16, x17",
            // With acquire: the driver's own data is as ready as when the address was stored.
            "ldar x16, [x16]",
            "cbz x16, 2f",
            "br x16",
            "2: mov w17, {index}",
            "b {find}",
            slots = sym $slots,
            offset = const $number as usize * size_of::<usize>(),
            index = const $number,
            find = sym $find,
        )
    };
}

/// What [`jump_to_slot`] jumps to: asks `$find` for the function and jumps there with every
/// argument register as it was.
macro_rules! find_and_jump {
    ($find:path) => {
        core::arch::naked_asm!(
            "stp x29, x30, [sp, #-112]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "str x8, [sp, #80]",
            "stp d0, d1, [sp, #96]",
            "mov w0, w17",
            "bl {find}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x4, x5, [sp, #48]",
            "ldp x6, x7, [sp, #64]",
            "ldr x8, [sp, #80]",
            "ldp d0, d1, [sp, #96]",
            "ldp x29, x30, [sp], #112",
            "br x16",
            find = sym $find,
        )
    };
}

/// The body of `dlsym`: `$pick` gets the two arguments and the return address. What it answers is
/// returned; null: jump to `$real`.
macro_rules! pick_or_jump_2 {
    ($pick:path, $real:path) => {
        core::arch::naked_asm!(
            "hint #34",
            "stp x29, x30, [sp, #-32]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "mov x2, x30",
            "bl {pick}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x29, x30, [sp], #32",
            "cbnz x16, 2f",
            "adrp x16, {real}",
            "ldr x16, [x16, :lo12:{real}]",
            "cbz x16, 2f",
            "br x16",
            "2: mov x0, x16",
            "ret",
            pick = sym $pick,
            real = sym $real,
        )
    };
}

/// As [`pick_or_jump_2`], with three arguments.
macro_rules! pick_or_jump_3 {
    ($pick:path, $real:path) => {
        core::arch::naked_asm!(
            "hint #34",
            "stp x29, x30, [sp, #-48]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "str x2, [sp, #32]",
            "mov x3, x30",
            "bl {pick}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldr x2, [sp, #32]",
            "ldp x29, x30, [sp], #48",
            "cbnz x16, 2f",
            "adrp x16, {real}",
            "ldr x16, [x16, :lo12:{real}]",
            "cbz x16, 2f",
            "br x16",
            "2: mov x0, x16",
            "ret",
            pick = sym $pick,
            real = sym $real,
        )
    };
}

/// The body of a wrapper with one argument that calls `$note` and jumps to what it answers.
macro_rules! note_then_jump {
    ($note:path) => {
        core::arch::naked_asm!(
            "hint #34",
            "stp x29, x30, [sp, #-32]!",
            "mov x29, sp",
            "str x0, [sp, #16]",
            "bl {note}",
            "mov x16, x0",
            "ldr x0, [sp, #16]",
            "ldp x29, x30, [sp], #32",
            "br x16",
            note = sym $note,
        )
    };
}

/// The body of a wrapper that gives its arguments to `$before` and jumps to what it answers. The
/// stack of a touch begins at this frame's caller: where that is, the directives say.
macro_rules! tell_then_jump {
    ($before:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "hint #34",
            "stp x29, x30, [sp, #-96]!",
            ".cfi_def_cfa_offset 96",
            ".cfi_offset 29, -96",
            ".cfi_offset 30, -88",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "str x8, [sp, #80]",
            "bl {before}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x4, x5, [sp, #48]",
            "ldp x6, x7, [sp, #64]",
            "ldr x8, [sp, #80]",
            "ldp x29, x30, [sp], #96",
            ".cfi_restore 29",
            ".cfi_restore 30",
            ".cfi_def_cfa_offset 0",
            "br x16",
            ".cfi_endproc",
            before = sym $before,
        )
    };
}

pub(crate) use {find_and_jump, jump_to_slot, note_then_jump, pick_or_jump_2, pick_or_jump_3, tell_then_jump};
