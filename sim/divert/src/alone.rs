//! What the compiler expects of a program without any library: memory functions, and the end after
//! a panic.

use core::arch::global_asm;
use core::ffi::c_int;

use crate::arch;

// Preloaded as it is, the library must not offer these to the program.
global_asm!(".hidden memcpy, memmove, memset, memcmp, bcmp, strlen, rust_eh_personality");

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    crate::system::fail(&[b"the diversion of the CUDA runtime failed"])
}

/// Named by the tables of precompiled code, never called: nothing unwinds here.
// SAFETY: the name that the compiler's tables use.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// # Safety
/// As in C.
// SAFETY: the C library's name and meaning.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { arch::copy_forwards(to, from, len) };
    to
}

/// # Safety
/// As in C.
// SAFETY: the C library's name and meaning.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= len {
        // SAFETY: the caller's promise; forwards, `to` never overtakes `from`.
        return unsafe { memcpy(to, from, len) };
    }
    // SAFETY: the caller's promise; with no bytes the two are far enough apart.
    unsafe { arch::copy_backwards(to, from, len) };
    to
}

/// # Safety
/// As in C.
// SAFETY: the C library's name and meaning.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: c_int, len: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { arch::fill(to, byte as u8, len) };
    to
}

/// # Safety
/// As in C.
// SAFETY: the C library's name and meaning.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> c_int {
    for at in 0..len {
        // SAFETY: the caller's promise. Volatile, or the compiler would make a call of this
        // function out of it.
        let (x, y) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if x != y {
            return c_int::from(x) - c_int::from(y);
        }
    }
    0
}

/// # Safety
/// As in C.
// SAFETY: the C library's name and meaning.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { memcmp(a, b, len) }
}

/// # Safety
/// As in C.
// SAFETY: the C library's name and meaning.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut len = 0;
    // SAFETY: the caller's promise. Volatile as above.
    while unsafe { text.add(len).read_volatile() } != 0 {
        len += 1;
    }
    len
}
