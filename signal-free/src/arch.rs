//! System calls without the C library, for each architecture.

use libc::{c_long, c_void};

/// Makes a system call. The answer of the kernel: a negative number is an error.
///
/// # Safety
/// The call's own preconditions.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn system_call(number: c_long, args: [*const c_void; 5]) -> isize {
    let answer: isize;
    // SAFETY: the kernel keeps all registers but these three; the rest is the caller's promise.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// Makes a system call. The answer of the kernel: a negative number is an error.
///
/// # Safety
/// The call's own preconditions.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn system_call(number: c_long, args: [*const c_void; 5]) -> isize {
    let answer: isize;
    // SAFETY: the kernel keeps all registers but the answer's; the rest is the caller's promise.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => answer,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4],
            options(nostack),
        );
    }
    answer
}

/// Defines `__wrap_NAME`, which leads to the function NAME and is seen in one library only.
macro_rules! define_wrapped {
    ($name:ident) => {
        core::arch::global_asm!(
            ".pushsection .text.streamsan_calls, \"ax\", @progbits",
            concat!(".hidden __wrap_", stringify!($name)),
            concat!(".globl __wrap_", stringify!($name)),
            concat!(".type __wrap_", stringify!($name), ", @function"),
            concat!("__wrap_", stringify!($name), ":"),
            $crate::arch::jump!(),
            concat!(".size __wrap_", stringify!($name), ", . - __wrap_", stringify!($name)),
            ".popsection",
            to = sym $name,
        );
    };
}

/// The jump to `to`.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {to}"
    };
}

/// The jump to `to`.
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b {to}"
    };
}

pub(crate) use {define_wrapped, jump};
