//! The C library's memory functions, as instrumented code calls them: `gcc` leaves calls of
//! `memcpy` as they are, `clang` calls `__tsan_memcpy` instead.
//!
//! Owns these names. Calls from code that is not instrumented are forwarded without a look: the
//! driver's and the simulator's own copies are not the program's.

use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::gate::{GATE, READ, WRITE, touch};
use crate::modules;

/// Defines a wrapper: the real function, how it is found, what to do until then, and what is
/// touched (`$told`, which gets the arguments and the address of the call).
macro_rules! wrappers {
    ($($name:ident $real:ident $text:literal $early:ident $told:ident;)*) => {
        $(
            static $real: AtomicPtr<c_void> = AtomicPtr::new($early as *mut c_void);

            /// The C library's function of this name.
            ///
            /// # Safety
            /// As that function.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name() {
                naked_asm!(
                    "cmp qword ptr [rip + {gate} + 8], 0",
                    "jne 3f",
                    "jmp qword ptr [rip + {real}]",
                    "3:",
                    // The arguments are kept while the shim is told; the stack is aligned by that.
                    ".cfi_startproc",
                    "push rdi", ".cfi_adjust_cfa_offset 8",
                    "push rsi", ".cfi_adjust_cfa_offset 8",
                    "push rdx", ".cfi_adjust_cfa_offset 8",
                    "push rcx", ".cfi_adjust_cfa_offset 8",
                    "mov rcx, qword ptr [rsp + 32]",
                    "sub rsp, 8", ".cfi_adjust_cfa_offset 8",
                    "call {told}",
                    "add rsp, 8", ".cfi_adjust_cfa_offset -8",
                    "pop rcx", ".cfi_adjust_cfa_offset -8",
                    "pop rdx", ".cfi_adjust_cfa_offset -8",
                    "pop rsi", ".cfi_adjust_cfa_offset -8",
                    "pop rdi", ".cfi_adjust_cfa_offset -8",
                    "jmp qword ptr [rip + {real}]",
                    ".cfi_endproc",
                    gate = sym GATE,
                    real = sym $real,
                    told = sym $told,
                )
            }
        )*

        /// Finds the real functions.
        pub fn find() {
            $(look(&$real, $text);)*
        }
    };
}

wrappers! {
    memcpy REAL_MEMCPY c"memmove" early_move copies;
    memmove REAL_MEMMOVE c"memmove" early_move copies;
    memset REAL_MEMSET c"memset" early_set fills;
    memcmp REAL_MEMCMP c"memcmp" early_compare compares;
    bcmp REAL_BCMP c"memcmp" early_compare compares;
    __memcpy_chk REAL_MEMCPY_CHK c"__memcpy_chk" early_move copies;
    __memmove_chk REAL_MEMMOVE_CHK c"__memmove_chk" early_move copies;
    __memset_chk REAL_MEMSET_CHK c"__memset_chk" early_set fills;
    __tsan_memcpy REAL_TSAN_MEMCPY c"memmove" early_move copies;
    __tsan_memmove REAL_TSAN_MEMMOVE c"memmove" early_move copies;
    __tsan_memset REAL_TSAN_MEMSET c"memset" early_set fills;
}

fn look(real: &AtomicPtr<c_void>, name: &CStr) {
    // SAFETY: a string that ends in NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        real.store(found, Ordering::Release);
    }
}

extern "C" fn copies(to: u64, from: u64, len: u64, pc: u64) {
    if modules::is_instrumented(pc) {
        touch(from, len, READ, pc);
        // Another number, so that the two do not look like one instruction.
        touch(to, len, WRITE, pc | SECOND);
    }
}

extern "C" fn fills(to: u64, _byte: u64, len: u64, pc: u64) {
    if modules::is_instrumented(pc) {
        touch(to, len, WRITE, pc);
    }
}

extern "C" fn compares(one: u64, other: u64, len: u64, pc: u64) {
    if modules::is_instrumented(pc) {
        touch(one, len, READ, pc);
        touch(other, len, READ, pc | SECOND);
    }
}

/// No address of code has this bit.
const SECOND: u64 = 1 << 62;

/// What moves bytes until the C library's function is found: while the loader starts the objects of
/// the process.
#[unsafe(naked)]
unsafe extern "C" fn early_move() {
    naked_asm!(
        "mov rax, rdi",
        "mov rcx, rdx",
        "mov r8, rdi",
        "sub r8, rsi",
        "cmp r8, rdx",
        "jb 2f",
        "rep movsb",
        "ret",
        "2:",
        "lea rdi, [rdi + rcx - 1]",
        "lea rsi, [rsi + rcx - 1]",
        "std",
        "rep movsb",
        "cld",
        "ret",
    )
}

/// As [`early_move`], for `memset`.
#[unsafe(naked)]
unsafe extern "C" fn early_set() {
    naked_asm!("mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret")
}

/// As [`early_move`], for `memcmp`.
unsafe extern "C" fn early_compare(one: *const u8, other: *const u8, len: usize) -> c_int {
    for at in 0..len {
        // SAFETY: the caller's promise: both are valid for so many bytes.
        let (a, b) = unsafe { (one.add(at).read_volatile(), other.add(at).read_volatile()) };
        if a != b {
            return c_int::from(a) - c_int::from(b);
        }
    }
    0
}
