//! AArch64.
//!
//! Code that is written goes through `x16` and `x17`, which procedure linkage tables may use too.
//! Pages that are written lose `PROT_BTI`, so no landing pads are needed in them.

use core::arch::asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::PieceTargets;

/// The processor, in the header of a file.
pub(crate) const MACHINE: u16 = 183;

/// Numbers of system calls.
pub(crate) mod number {
    /// `faccessat`.
    pub(crate) const FACCESSAT: usize = 48;
    /// `openat`.
    pub(crate) const OPENAT: usize = 56;
    /// `close`.
    pub(crate) const CLOSE: usize = 57;
    /// `lseek`.
    pub(crate) const LSEEK: usize = 62;
    /// `read`.
    pub(crate) const READ_FILE: usize = 63;
    /// `write`.
    pub(crate) const WRITE: usize = 64;
    /// `exit_group`.
    pub(crate) const EXIT_GROUP: usize = 94;
    /// `munmap`.
    pub(crate) const MUNMAP: usize = 215;
    /// `mmap`.
    pub(crate) const MMAP: usize = 222;
    /// `mprotect`.
    pub(crate) const MPROTECT: usize = 226;
}

/// A system call. Errors are small negative numbers.
///
/// # Safety
/// As the call's.
pub(crate) unsafe fn system_call(number: usize, args: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller's promise.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") args[0] => result, in("x1") args[1], in("x2") args[2],
            in("x3") args[3], in("x4") args[4], in("x5") args[5], options(nostack));
    }
    result
}

/// The size of a page, which the kernel was built with: 4, 16 or 64 KiB. It says so in the vector
/// that each program starts with.
pub(crate) fn page() -> usize {
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    const LARGEST: usize = 1 << 16;
    match PAGE.load(Ordering::Relaxed) {
        0 => {
            let found = page_from_kernel().filter(|size| size.is_power_of_two()).unwrap_or(LARGEST);
            PAGE.store(found, Ordering::Relaxed);
            found
        }
        known => known,
    }
}

fn page_from_kernel() -> Option<usize> {
    const CURRENT: usize = -100_isize as usize;
    const PAGE_SIZE: usize = 6;
    let mut pairs = [[0_usize; 2]; 64];
    // SAFETY: a C string, numbers, and memory with room for what is read.
    unsafe {
        let path = c"/proc/self/auxv".as_ptr() as usize;
        let fd = system_call(number::OPENAT, [CURRENT, path, 0, 0, 0, 0]);
        let fd = usize::try_from(fd).ok()?;
        system_call(number::READ_FILE, [fd, pairs.as_mut_ptr() as usize, size_of_val(&pairs), 0, 0, 0]);
        system_call(number::CLOSE, [fd, 0, 0, 0, 0, 0]);
    }
    pairs.iter().find(|pair| pair[0] == PAGE_SIZE).map(|pair| pair[1])
}

/// Copies from the first byte to the last.
///
/// # Safety
/// Both are valid for so many bytes, and `to` does not lie inside of what is still to be read.
pub(crate) unsafe fn copy_forwards(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "subs {len}, {len}, #16",
            "b.lo 3f",
            "2: ldp {a}, {b}, [{from}], #16",
            "stp {a}, {b}, [{to}], #16",
            "subs {len}, {len}, #16",
            "b.hs 2b",
            "3: adds {len}, {len}, #16",
            "b.eq 5f",
            "4: ldrb {a:w}, [{from}], #1",
            "strb {a:w}, [{to}], #1",
            "subs {len}, {len}, #1",
            "b.ne 4b",
            "5:",
            len = inout(reg) len => _, from = inout(reg) from => _, to = inout(reg) to => _,
            a = out(reg) _, b = out(reg) _, options(nostack),
        );
    }
}

/// Copies from the last byte to the first.
///
/// # Safety
/// Both are valid for so many bytes, at least one.
pub(crate) unsafe fn copy_backwards(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "2: ldrb {a:w}, [{from}, #-1]!",
            "strb {a:w}, [{to}, #-1]!",
            "subs {len}, {len}, #1",
            "b.ne 2b",
            len = inout(reg) len => _, from = inout(reg) from.add(len) => _, to = inout(reg) to.add(len) => _,
            a = out(reg) _, options(nostack),
        );
    }
}

/// Fills bytes.
///
/// # Safety
/// They may be written.
pub(crate) unsafe fn fill(to: *mut u8, byte: u8, len: usize) {
    let word = u64::from(byte) * 0x0101_0101_0101_0101;
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "subs {len}, {len}, #16",
            "b.lo 3f",
            "2: stp {word}, {word}, [{to}], #16",
            "subs {len}, {len}, #16",
            "b.hs 2b",
            "3: adds {len}, {len}, #16",
            "b.eq 5f",
            "4: strb {word:w}, [{to}], #1",
            "subs {len}, {len}, #1",
            "b.ne 4b",
            "5:",
            len = inout(reg) len => _, to = inout(reg) to => _, word = in(reg) word, options(nostack),
        );
    }
}

/// All functions begin at multiples of so many bytes. NVIDIA's runtime has some of 8 bytes, right
/// before others: there is room for one instruction.
pub(crate) const ALIGNED: u64 = 4;
/// Bytes of each that are compared with the file's before any is overwritten.
pub(crate) const COMPARED: u64 = 8;
/// How far the jump of [`jump`] reaches.
pub(crate) const REACH: usize = 1 << 27;

/// The code that jumps from the entry of a function to `to`.
pub(crate) fn jump(from: usize, to: usize) -> Option<[u8; 4]> {
    let distance = to.wrapping_sub(from) as isize;
    let reaches = (-(REACH as isize)..REACH as isize).contains(&distance) && distance % 4 == 0;
    reaches.then_some((0x1400_0000 | (distance >> 2) as u32 & 0x03ff_ffff).to_le_bytes())
}

/// Lets the processor see code that was written: caches of data and code are not kept alike.
///
/// # Safety
/// The bytes can be read.
pub(crate) unsafe fn written(at: usize, len: usize) {
    let sizes: usize;
    // SAFETY: reads a register that Linux lets programs read.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack, preserves_flags)) };
    let lines = |log: usize| {
        let line = 4 << log;
        (at & !(line - 1)..at + len).step_by(line)
    };
    // SAFETY: cleans and invalidates lines of memory that can be read.
    unsafe {
        lines(sizes >> 16 & 15).for_each(|line| asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)));
        asm!("dsb ish", options(nostack, preserves_flags));
        lines(sizes & 15).for_each(|line| asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)));
        asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
}

/// Bytes of code for each function of a stub.
pub(crate) const PIECE: usize = 48;
/// Where in it the first call goes, and where a refusal.
pub(crate) const FIRST_CALL: usize = 8;
/// As above.
pub(crate) const REFUSAL: usize = 24;

const BR_X16: u32 = 0xd61f_0200;

/// The piece of code of one function, to lie at `at`.
pub(crate) fn piece(at: usize, targets: &PieceTargets) -> Option<[u8; PIECE]> {
    const BRK: u32 = 0xd420_0000;
    // An operand of 19 bits, in words, or of 21 bits in bytes: both reach a megabyte.
    let distance = |target: usize, place: usize| {
        let distance = target.wrapping_sub(at + place) as isize;
        (-(1 << 20)..1 << 20).contains(&distance).then_some(distance as u32)
    };
    let load = |register: u32, target: usize, place: usize| {
        let distance = distance(target, place).filter(|distance| distance % 4 == 0)?;
        Some(0x5800_0000 | (distance >> 2 & 0x7_ffff) << 5 | register)
    };
    let address = |register: u32, target: usize, place: usize| {
        let distance = distance(target, place)?;
        Some(0x1000_0000 | (distance & 3) << 29 | (distance >> 2 & 0x7_ffff) << 5 | register)
    };
    let index = u32::from(u16::try_from(targets.index).ok()?);
    let code = [
        load(16, targets.slot, 0)?,
        BR_X16,
        address(16, targets.header, FIRST_CALL)?,
        0xd280_0000 | index << 5 | 17, // mov x17, index
        load(15, targets.header, 16)?,
        0xd61f_01e0, // br x15
        address(0, targets.name, REFUSAL)?,
        load(16, targets.header + 8, 28)?,
        BR_X16,
        BRK,
        BRK,
        BRK,
    ];
    let mut bytes = [0; PIECE];
    bytes.chunks_exact_mut(4).zip(code).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    Some(bytes)
}

/// The body of what a piece goes to at the first call: asks `$find` for the function, and goes
/// there with all arguments as they were. `x16` is the header, `x17` the function's number.
macro_rules! find_then_jump {
    ($find:path) => {
        core::arch::naked_asm!(
            "stp x29, x30, [sp, #-224]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "str x8, [sp, #80]",
            "stp q0, q1, [sp, #96]",
            "stp q2, q3, [sp, #128]",
            "stp q4, q5, [sp, #160]",
            "stp q6, q7, [sp, #192]",
            "mov x0, x16",
            "mov x1, x17",
            "bl {find}",
            "mov x16, x0",
            "ldp q6, q7, [sp, #192]",
            "ldp q4, q5, [sp, #160]",
            "ldp q2, q3, [sp, #128]",
            "ldp q0, q1, [sp, #96]",
            "ldr x8, [sp, #80]",
            "ldp x6, x7, [sp, #64]",
            "ldp x4, x5, [sp, #48]",
            "ldp x2, x3, [sp, #32]",
            "ldp x0, x1, [sp, #16]",
            "ldp x29, x30, [sp], #224",
            "br x16",
            find = sym $find,
        )
    };
}
pub(crate) use find_then_jump;

/// Code that jumps to a function of this crate, for one that the linker shall see.
#[cfg(freestanding)]
macro_rules! jump_to {
    () => {
        "b {begin}"
    };
}
#[cfg(freestanding)]
pub(crate) use jump_to;

/// How to make the function that the dynamic linker calls for debuggers jump elsewhere: where in it
/// to write what. `None` if it does not look as expected: as if it did nothing.
///
/// # Safety
/// It is that function.
pub(crate) unsafe fn redirection(function: usize, to: usize) -> Option<(usize, [u8; 4])> {
    if !function.is_multiple_of(4) {
        return None;
    }
    let first = function as *const u32;
    // SAFETY: the dynamic linker's own function has at least one instruction, and another behind a
    // landing pad.
    let at = unsafe { return_at([*first, if *first == LANDING { *first.add(1) } else { 0 }])? };
    let from = function + at;
    jump(from, to).map(|jump| (from, jump))
}

/// `bti c`.
const LANDING: u32 = 0xd503_245f;

/// Where in code that does nothing else its return stands. One instruction takes its place, so that
/// nothing behind it matters.
fn return_at(code: [u32; 2]) -> Option<usize> {
    const RETURN: u32 = 0xd65f_03c0;
    match code {
        [RETURN, _] => Some(0),
        [LANDING, RETURN] => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_do_nothing_are_overwritten() {
        assert_eq!(return_at([0xd65f_03c0, 0xd503_201f]), Some(0));
        assert_eq!(return_at([LANDING, 0xd65f_03c0]), Some(4), "as glibc is built for BTI");
        assert_eq!(return_at([0x9100_03fd, 0xd65f_03c0]), None, "it does something");
        assert_eq!(return_at([LANDING, 0x9100_03fd]), None);
    }

    #[test]
    fn jumps_reach_128_megabytes_either_way() {
        assert_eq!(jump(0x1000, 0x1008).map(u32::from_le_bytes), Some(0x1400_0002));
        assert_eq!(jump(0x1008, 0x1000).map(u32::from_le_bytes), Some(0x17ff_fffe));
        assert!(jump(0, REACH - 4).is_some() && jump(REACH, 0).is_some());
        assert!(jump(0, REACH).is_none() && jump(REACH + 4, 0).is_none());
    }

    #[test]
    fn pieces_are_what_an_assembler_makes_of_them() {
        let targets = PieceTargets { slot: 0x1_1000, header: 0x1_2000, index: 7, name: 0x1_3005 };
        let words: Vec<u32> = piece(0x1_0000, &targets)
            .expect("near")
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        // ldr x16, .+0x1000; br x16; adr x16, .+0x1ff8; mov x17, #7; ldr x15, .+0x1ff0; br x15;
        // adr x0, .+0x2fed; ldr x16, .+0x1fec; br x16.
        let wanted = [
            0x5800_8010,
            0xd61f_0200,
            0x1000_ffd0,
            0xd280_00f1,
            0x5800_ff8f,
            0xd61f_01e0,
            0x3001_7f60,
            0x5800_ff70,
            0xd61f_0200,
        ];
        assert_eq!(words[..9], wanted);
        assert!(piece(0x1_0000, &PieceTargets { slot: 0x20_0000, ..targets }).is_none(), "too far");
    }

    #[test]
    fn memory_functions() {
        for len in [0_usize, 1, 15, 16, 17, 31, 32, 100] {
            let from: Vec<u8> = (0..len as u8).collect();
            let mut to = vec![0xff_u8; len + 1];
            // SAFETY: both have so many bytes.
            unsafe { copy_forwards(to.as_mut_ptr(), from.as_ptr(), len) };
            assert!(to[..len] == from && to[len] == 0xff, "{len}");
            // SAFETY: as above.
            unsafe { fill(to.as_mut_ptr(), 0xab, len) };
            assert!(to[..len].iter().all(|byte| *byte == 0xab) && to[len] == 0xff, "{len}");
            if len > 0 {
                // SAFETY: as above.
                unsafe { copy_backwards(to.as_mut_ptr(), from.as_ptr(), len) };
                assert!(to[..len] == from && to[len] == 0xff, "{len}");
            }
        }
    }
}
