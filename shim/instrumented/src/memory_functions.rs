//! The C library's memory functions, as instrumented code calls them: `gcc` leaves calls of
//! `memcpy` as they are, `clang` calls `__tsan_memcpy` instead.
//!
//! Owns these names. Calls from code that is not instrumented are forwarded without a look: the
//! driver's and the simulator's own copies are not the program's.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::arch::{self, move_bytes, set_bytes};
use crate::gate::{GATE, READ, WRITE, touch};
use crate::modules;

/// Defines a wrapper: the real function, how it is found, what to do until then (while the loader
/// starts the objects of the process), and what is
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
            pub(crate) unsafe extern "C" fn $name() {
                arch::tell_then_jump!(GATE, $real, $told)
            }
        )*

        /// Finds the real functions.
        pub(crate) fn find() {
            $(look(&$real, $text);)*
        }
    };
}

wrappers! {
    memcpy REAL_MEMCPY c"memmove" move_bytes copies;
    memmove REAL_MEMMOVE c"memmove" move_bytes copies;
    memset REAL_MEMSET c"memset" set_bytes fills;
    memcmp REAL_MEMCMP c"memcmp" early_compare compares;
    bcmp REAL_BCMP c"memcmp" early_compare compares;
    __memcpy_chk REAL_MEMCPY_CHK c"__memcpy_chk" move_bytes copies;
    __memmove_chk REAL_MEMMOVE_CHK c"__memmove_chk" move_bytes copies;
    __memset_chk REAL_MEMSET_CHK c"__memset_chk" set_bytes fills;
    __tsan_memcpy REAL_TSAN_MEMCPY c"memmove" move_bytes copies;
    __tsan_memmove REAL_TSAN_MEMMOVE c"memmove" move_bytes copies;
    __tsan_memset REAL_TSAN_MEMSET c"memset" set_bytes fills;
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

/// As [`move_bytes`], for `memcmp`.
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
