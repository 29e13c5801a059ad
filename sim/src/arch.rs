//! The call of the program's host functions, for each architecture. Textures ask for the
//! processor's instructions by themselves; the interpreter has its own `arch`.

use std::arch::global_asm;
use std::ffi::c_void;

// Without `.cfi_startproc`: see `call_foreign`. The frame pointer leads debuggers on.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.streamsan_call_foreign, \"ax\", @progbits",
    ".hidden streamsan_call_foreign",
    ".globl streamsan_call_foreign",
    ".type streamsan_call_foreign, @function",
    "streamsan_call_foreign:",
    "push rbp",
    "mov rbp, rsp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "pop rbp",
    "ret",
    ".size streamsan_call_foreign, . - streamsan_call_foreign",
    ".popsection",
);

// Without `.cfi_startproc`: see `call_foreign`. The frame record leads debuggers on.
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.streamsan_call_foreign, \"ax\", @progbits",
    ".hidden streamsan_call_foreign",
    ".globl streamsan_call_foreign",
    ".type streamsan_call_foreign, @function",
    "streamsan_call_foreign:",
    "stp x29, x30, [sp, -16]!",
    "mov x29, sp",
    "mov x9, x0",
    "mov x0, x1",
    "blr x9",
    "ldp x29, x30, [sp], 16",
    "ret",
    ".size streamsan_call_foreign, . - streamsan_call_foreign",
    ".popsection",
);

unsafe extern "C" {
    #[link_name = "streamsan_call_foreign"]
    fn call_without_unwind_tables(function: unsafe extern "C" fn(*mut c_void), data: *mut c_void);
}

/// Calls a function of the program as the driver does, whose code has no tables for unwinding: a
/// C++ exception that leaves the function finds no handler and no way on. So `throw` calls
/// `std::terminate`, with the stack that it was called from, and never comes to Rust's frames.
///
/// # Safety
/// As for the function itself.
pub(crate) unsafe fn call_foreign(function: unsafe extern "C" fn(*mut c_void), data: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { call_without_unwind_tables(function, data) };
}
