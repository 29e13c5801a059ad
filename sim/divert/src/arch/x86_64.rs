//! x86-64.

use core::arch::asm;

use super::PieceTargets;

/// The processor, in the header of a file.
pub(crate) const MACHINE: u16 = 62;

/// Numbers of system calls.
pub(crate) mod number {
    /// `read`.
    pub(crate) const READ_FILE: usize = 0;
    /// `write`.
    pub(crate) const WRITE: usize = 1;
    /// `close`.
    pub(crate) const CLOSE: usize = 3;
    /// `lseek`.
    pub(crate) const LSEEK: usize = 8;
    /// `mmap`.
    pub(crate) const MMAP: usize = 9;
    /// `mprotect`.
    pub(crate) const MPROTECT: usize = 10;
    /// `munmap`.
    pub(crate) const MUNMAP: usize = 11;
    /// `exit_group`.
    pub(crate) const EXIT_GROUP: usize = 231;
    /// `openat`.
    pub(crate) const OPENAT: usize = 257;
    /// `faccessat`.
    pub(crate) const FACCESSAT: usize = 269;
}

/// A system call. Errors are small negative numbers.
///
/// # Safety
/// As the call's.
pub(crate) unsafe fn system_call(number: usize, args: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller's promise; the kernel clobbers the two registers named.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// The size of a page: the processor has one.
pub(crate) fn page() -> usize {
    4096
}

/// Copies from the first byte to the last.
///
/// # Safety
/// Both are valid for so many bytes, and `to` does not lie inside of what is still to be read.
pub(crate) unsafe fn copy_forwards(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise. The direction flag is clear by the ABI.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags));
    }
}

/// Copies from the last byte to the first.
///
/// # Safety
/// Both are valid for so many bytes, at least one.
pub(crate) unsafe fn copy_backwards(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise. Backwards from the last byte, and the flag is clear again.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") len => _, inout("rdi") to.add(len).sub(1) => _,
            inout("rsi") from.add(len).sub(1) => _, options(nostack));
    }
}

/// Fills bytes.
///
/// # Safety
/// They may be written.
pub(crate) unsafe fn fill(to: *mut u8, byte: u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte, options(nostack, preserves_flags));
    }
}

/// All functions of NVIDIA's runtime begin at multiples of so many bytes, so that a jump never
/// reaches into the next one, even where a function is shorter.
pub(crate) const ALIGNED: u64 = 16;
/// Bytes of each that are compared with the file's before any is overwritten.
pub(crate) const COMPARED: u64 = 16;
/// How far the jump of [`jump`] reaches.
pub(crate) const REACH: usize = usize::MAX;
/// `jmp *0(%rip)`, and the address behind it.
const JUMP: usize = 14;

/// The code that jumps from the entry of a function to `to`.
pub(crate) fn jump(_from: usize, to: usize) -> Option<[u8; JUMP]> {
    let mut jump = [0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    jump[6..].copy_from_slice(&to.to_le_bytes());
    Some(jump)
}

/// Lets the processor see code that was written.
///
/// # Safety
/// The bytes can be read.
pub(crate) unsafe fn written(_at: usize, _len: usize) {}

/// Bytes of code for each function of a stub.
pub(crate) const PIECE: usize = 48;
/// Where in it the first call goes, and where a refusal.
pub(crate) const FIRST_CALL: usize = 6;
/// As above.
pub(crate) const REFUSAL: usize = 24;

/// The piece of code of one function, to lie at `at`.
pub(crate) fn piece(at: usize, targets: &PieceTargets) -> Option<[u8; PIECE]> {
    let mut code = [0xcc_u8; PIECE];
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        for byte in bytes {
            if let Some(place) = code.get_mut(len) {
                *place = *byte;
            }
            len += 1;
        }
    };
    // The distance from the end of an instruction whose operand comes last.
    let to = |target: usize, end: usize| (target.wrapping_sub(at + end) as u32).to_le_bytes();
    put(&[0xff, 0x25]); // jmp *slot
    put(&to(targets.slot, FIRST_CALL));
    put(&[0x4c, 0x8d, 0x1d]); // lea header, %r11
    put(&to(targets.header, 13));
    put(&[0x68]); // push index
    put(&targets.index.to_le_bytes());
    put(&[0xff, 0x25]); // jmp *resolver
    put(&to(targets.header, REFUSAL));
    put(&[0x48, 0x8d, 0x3d]); // lea name, %rdi
    put(&to(targets.name, 31));
    put(&[0xff, 0x25]); // jmp *refuse
    put(&to(targets.header + 8, 37));
    Some(code)
}

/// The body of what a piece goes to at the first call: asks `$find` for the function, and goes
/// there with all
/// arguments as they were. `%r11` is the header, the function's number lies on the stack.
macro_rules! find_then_jump {
    ($find:path) => {
        core::arch::naked_asm!(
            "push rax", "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
            "sub rsp, 136",
            "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
            "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5", "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
            "mov rdi, r11",
            "mov rsi, [rsp + 192]",
            "call {find}",
            "mov r11, rax",
            "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
            "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]", "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
            "add rsp, 136",
            "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi", "pop rax",
            "add rsp, 8",
            "jmp r11",
            find = sym $find,
        )
    };
}
pub(crate) use find_then_jump;

/// Code that jumps to a function of this crate, for one that the linker shall see.
#[cfg(freestanding)]
macro_rules! jump_to {
    () => {
        "jmp {begin}"
    };
}
#[cfg(freestanding)]
pub(crate) use jump_to;

/// How to make the function that the dynamic linker calls for debuggers jump elsewhere: where in it
/// to write what. `None` if it does not look as expected: as if it did nothing.
///
/// # Safety
/// It is that function.
pub(crate) unsafe fn redirection(function: usize, to: usize) -> Option<(usize, [u8; 5])> {
    const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa]; // endbr64
    if !function.is_multiple_of(16) {
        return None;
    }
    // SAFETY: the dynamic linker's own function, and what follows it up to the next multiple of 16.
    let code = unsafe { &*(function as *const [u8; 16]) };
    let at = if code.starts_with(&MARK) { MARK.len() } else { 0 };
    if !does_nothing(code.get(at..)?) {
        return None;
    }
    let from = function + at;
    let distance = i32::try_from(to.wrapping_sub(from + 5) as isize).ok()?;
    let [a, b, c, d] = distance.to_le_bytes();
    Some((from, [0xe9, a, b, c, d]))
}

/// Whether code returns at once, and what follows is filling: it may be overwritten.
fn does_nothing(code: &[u8]) -> bool {
    let rest = match code {
        [0xc3, rest @ ..] | [0xf3, 0xc3, rest @ ..] => rest,
        _ => return false,
    };
    // The ways in which assemblers fill: single and long instructions that do nothing.
    matches!(rest, [0x66 | 0x90 | 0xcc | 0x00 | 0x2e, ..] | [0x0f, 0x1f, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_do_nothing_are_overwritten() {
        // As in glibc 2.36 and 2.41.
        assert!(does_nothing(&[0xc3, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0]));
        assert!(does_nothing(&[0xf3, 0xc3, 0x0f, 0x1f, 0x40, 0]));
        assert!(!does_nothing(&[0x55, 0x48, 0x89, 0xe5, 0xc3, 0x90]), "it does something");
        assert!(!does_nothing(&[0xc3, 0x48, 0x8d, 0x05]), "another function follows");
        assert!(!does_nothing(&[]));
    }
}
