//! Loads and stores: what instrumented code calls before each.

use core::ffi::c_void;

use crate::arch;
use crate::gate::{ATOMIC, GATE, READ, TOUCH, WRITE, touch};
use crate::thread_sanitizer;

/// Functions that are told one address: how many bytes, how, and what says where the access is.
macro_rules! accesses {
    ($($name:ident $bytes:literal $how:expr, $pc:ident;)*) => {$(
        /// An access is about to happen.
        ///
        /// # Safety
        /// Called by compilers' code.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(_address: *const c_void) {
            arch::tell_access!(GATE, TOUCH, $bytes << 3 | $how, $pc)
        }
    )*};
}

accesses! {
    __tsan_read1 1 READ, caller;
    __tsan_read2 2 READ, caller;
    __tsan_read4 4 READ, caller;
    __tsan_read8 8 READ, caller;
    __tsan_read16 16 READ, caller;
    __tsan_write1 1 WRITE, caller;
    __tsan_write2 2 WRITE, caller;
    __tsan_write4 4 WRITE, caller;
    __tsan_write8 8 WRITE, caller;
    __tsan_write16 16 WRITE, caller;
    __tsan_read1_pc 1 READ, given;
    __tsan_read2_pc 2 READ, given;
    __tsan_read4_pc 4 READ, given;
    __tsan_read8_pc 8 READ, given;
    __tsan_read16_pc 16 READ, given;
    __tsan_write1_pc 1 WRITE, given;
    __tsan_write2_pc 2 WRITE, given;
    __tsan_write4_pc 4 WRITE, given;
    __tsan_write8_pc 8 WRITE, given;
    __tsan_write16_pc 16 WRITE, given;
    __tsan_unaligned_read1 1 READ, caller;
    __tsan_unaligned_read2 2 READ, caller;
    __tsan_unaligned_read4 4 READ, caller;
    __tsan_unaligned_read8 8 READ, caller;
    __tsan_unaligned_read16 16 READ, caller;
    __tsan_unaligned_write1 1 WRITE, caller;
    __tsan_unaligned_write2 2 WRITE, caller;
    __tsan_unaligned_write4 4 WRITE, caller;
    __tsan_unaligned_write8 8 WRITE, caller;
    __tsan_unaligned_write16 16 WRITE, caller;
    __tsan_read_write1 1 WRITE, caller;
    __tsan_read_write2 2 WRITE, caller;
    __tsan_read_write4 4 WRITE, caller;
    __tsan_read_write8 8 WRITE, caller;
    __tsan_read_write16 16 WRITE, caller;
    __tsan_unaligned_read_write2 2 WRITE, caller;
    __tsan_unaligned_read_write4 4 WRITE, caller;
    __tsan_unaligned_read_write8 8 WRITE, caller;
    __tsan_unaligned_read_write16 16 WRITE, caller;
    __tsan_volatile_read1 1 READ | ATOMIC, caller;
    __tsan_volatile_read2 2 READ | ATOMIC, caller;
    __tsan_volatile_read4 4 READ | ATOMIC, caller;
    __tsan_volatile_read8 8 READ | ATOMIC, caller;
    __tsan_volatile_read16 16 READ | ATOMIC, caller;
    __tsan_volatile_write1 1 WRITE | ATOMIC, caller;
    __tsan_volatile_write2 2 WRITE | ATOMIC, caller;
    __tsan_volatile_write4 4 WRITE | ATOMIC, caller;
    __tsan_volatile_write8 8 WRITE | ATOMIC, caller;
    __tsan_volatile_write16 16 WRITE | ATOMIC, caller;
    __tsan_unaligned_volatile_read2 2 READ | ATOMIC, caller;
    __tsan_unaligned_volatile_read4 4 READ | ATOMIC, caller;
    __tsan_unaligned_volatile_read8 8 READ | ATOMIC, caller;
    __tsan_unaligned_volatile_read16 16 READ | ATOMIC, caller;
    __tsan_unaligned_volatile_write2 2 WRITE | ATOMIC, caller;
    __tsan_unaligned_volatile_write4 4 WRITE | ATOMIC, caller;
    __tsan_unaligned_volatile_write8 8 WRITE | ATOMIC, caller;
    __tsan_unaligned_volatile_write16 16 WRITE | ATOMIC, caller;
    __tsan_vptr_read 8 READ, caller;
    __tsan_vptr_update 8 WRITE, caller;
}

/// Functions that are told a range.
macro_rules! ranges {
    ($($name:ident $how:expr, $pc:ident;)*) => {$(
        /// An access is about to happen.
        ///
        /// # Safety
        /// Called by compilers' code.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(_address: *const c_void, _size: usize) {
            arch::tell_range!(GATE, range, $how, $pc)
        }
    )*};
}

ranges! {
    __tsan_read_range READ, caller;
    __tsan_write_range WRITE, caller;
    __tsan_read_range_pc READ, given;
    __tsan_write_range_pc WRITE, given;
}

extern "C" fn range(start: u64, len: u64, pc: u64, how: u64) {
    touch(start, len, how, pc);
}

/// Functions that say nothing of interest here.
macro_rules! silent {
    ($($name:ident)*) => {$(
        /// Nothing to note.
        ///
        /// # Safety
        /// Called by compilers' code.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() {
            arch::just_return!()
        }
    )*};
}

silent! { __tsan_func_entry __tsan_func_exit }

/// An instrumented object of the process is being started.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __tsan_init() {
    thread_sanitizer::start(__tsan_init as *mut c_void);
}
