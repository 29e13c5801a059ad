//! Atomic operations: instrumented code calls these instead of performing them.
//!
//! Owns the operations, for 1 to 16 bytes. Each is performed as sequentially consistent, which is
//! at least what was asked for; plain loads and weaker stores stay what they are on x86-64. An
//! operation that releases or acquires orders host threads (`--host-order threads`).

use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use crate::arch::exchange_16;
use crate::gate::{ATOMIC, READ, WRITE, order, touch};

/// The object that stands for fences, which name none.
const FENCES: u64 = 1 << 61;

/// The compilers' numbers of memory orders; higher bits are hints.
fn acquires(order: c_int) -> bool {
    matches!(order & 0x7fff, 1 | 2 | 4 | 5)
}

fn releases(order: c_int) -> bool {
    matches!(order & 0x7fff, 3..=5)
}

/// Performs an operation on `len` bytes, with what the shim is to be told before and after.
#[inline(always)]
fn perform<T>(address: u64, len: u64, how: u64, memory_order: c_int, operation: impl FnOnce() -> T) -> T {
    // No address of code has this bit: each object counts as an instruction of its own.
    touch(address, len, how | ATOMIC, address | 1 << 63);
    if how == WRITE && releases(memory_order) {
        order(address, false);
    }
    let result = operation();
    if acquires(memory_order) {
        order(address, true);
    }
    result
}

macro_rules! operations {
    ($($ty:ty, $atomic:ty, $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident $or:ident
       $xor:ident $nand:ident $strong:ident $weak:ident $val:ident;)*) => {$(
        /// Loads.
        ///
        /// # Safety
        /// The address is valid and aligned.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $load(a: *const $atomic, order: c_int) -> $ty {
            // SAFETY: the caller's promise.
            perform(a as u64, size_of::<$ty>() as u64, READ, order, || unsafe { &*a }.load(Ordering::SeqCst))
        }

        /// Stores.
        ///
        /// # Safety
        /// As for the load.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $store(a: *const $atomic, value: $ty, order: c_int) {
            let strength = if order & 0x7fff == 5 { Ordering::SeqCst } else { Ordering::Release };
            // SAFETY: the caller's promise.
            perform(a as u64, size_of::<$ty>() as u64, WRITE, order, || unsafe { &*a }.store(value, strength));
        }

        operations!(@fetch $ty, $atomic, $exchange swap, $add fetch_add, $sub fetch_sub, $and fetch_and,
                    $or fetch_or, $xor fetch_xor, $nand fetch_nand);

        /// Compares and exchanges; answers whether it did.
        ///
        /// # Safety
        /// As for the load; `expected` is valid too.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $strong(
            a: *const $atomic, expected: *mut $ty, value: $ty, order: c_int, failure: c_int,
        ) -> c_int {
            // SAFETY: the caller's promise.
            let wanted = unsafe { *expected };
            // SAFETY: as above.
            let found = unsafe { $val(a, wanted, value, order, failure) };
            // SAFETY: as above.
            unsafe { *expected = found };
            c_int::from(found == wanted)
        }

        /// As the strong one.
        ///
        /// # Safety
        /// As for the strong one.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $weak(
            a: *const $atomic, expected: *mut $ty, value: $ty, order: c_int, failure: c_int,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $strong(a, expected, value, order, failure) }
        }

        /// Compares and exchanges; answers what was there.
        ///
        /// # Safety
        /// As for the load.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $val(
            a: *const $atomic, expected: $ty, value: $ty, order: c_int, _failure: c_int,
        ) -> $ty {
            perform(a as u64, size_of::<$ty>() as u64, WRITE, order, || {
                // SAFETY: the caller's promise.
                let done = unsafe { &*a }.compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst);
                done.unwrap_or_else(|found| found)
            })
        }
    )*};
    (@fetch $ty:ty, $atomic:ty, $($name:ident $method:ident),*) => {$(
        /// Changes the value; answers what was there.
        ///
        /// # Safety
        /// The address is valid and aligned.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(a: *const $atomic, value: $ty, order: c_int) -> $ty {
            // SAFETY: the caller's promise.
            perform(a as u64, size_of::<$ty>() as u64, WRITE, order, || unsafe { &*a }.$method(value, Ordering::SeqCst))
        }
    )*};
}

operations! {
    u8, AtomicU8, __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange __tsan_atomic8_fetch_add
        __tsan_atomic8_fetch_sub __tsan_atomic8_fetch_and __tsan_atomic8_fetch_or __tsan_atomic8_fetch_xor
        __tsan_atomic8_fetch_nand __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak
        __tsan_atomic8_compare_exchange_val;
    u16, AtomicU16, __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange __tsan_atomic16_fetch_add
        __tsan_atomic16_fetch_sub __tsan_atomic16_fetch_and __tsan_atomic16_fetch_or __tsan_atomic16_fetch_xor
        __tsan_atomic16_fetch_nand __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak
        __tsan_atomic16_compare_exchange_val;
    u32, AtomicU32, __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange __tsan_atomic32_fetch_add
        __tsan_atomic32_fetch_sub __tsan_atomic32_fetch_and __tsan_atomic32_fetch_or __tsan_atomic32_fetch_xor
        __tsan_atomic32_fetch_nand __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak
        __tsan_atomic32_compare_exchange_val;
    u64, AtomicU64, __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange __tsan_atomic64_fetch_add
        __tsan_atomic64_fetch_sub __tsan_atomic64_fetch_and __tsan_atomic64_fetch_or __tsan_atomic64_fetch_xor
        __tsan_atomic64_fetch_nand __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak
        __tsan_atomic64_compare_exchange_val;
}

/// Replaces 16 bytes by what `change` makes of them; answers what was there.
///
/// # Safety
/// As for [`exchange_16`].
unsafe fn update(a: *mut u128, change: impl Fn(u128) -> u128) -> u128 {
    let mut known = 0;
    loop {
        // SAFETY: the caller's promise.
        let found = unsafe { exchange_16(a, known, change(known)) };
        if found == known {
            return found;
        }
        known = found;
    }
}

/// Loads 16 bytes.
///
/// # Safety
/// The address is valid and a multiple of 16.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __tsan_atomic128_load(a: *mut u128, order: c_int) -> u128 {
    // SAFETY: the caller's promise.
    perform(a as u64, 16, READ, order, || unsafe { exchange_16(a, 0, 0) })
}

/// Stores 16 bytes.
///
/// # Safety
/// As for the load.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __tsan_atomic128_store(a: *mut u128, value: u128, order: c_int) {
    // SAFETY: the caller's promise.
    perform(a as u64, 16, WRITE, order, || unsafe { update(a, |_| value) });
}

macro_rules! wide {
    ($($name:ident |$old:ident, $value:ident| $new:expr;)*) => {$(
        /// Changes 16 bytes; answers what was there.
        ///
        /// # Safety
        /// As for the load.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(a: *mut u128, $value: u128, order: c_int) -> u128 {
            // SAFETY: the caller's promise.
            perform(a as u64, 16, WRITE, order, || unsafe { update(a, |$old| $new) })
        }
    )*};
}

wide! {
    __tsan_atomic128_exchange |_old, value| value;
    __tsan_atomic128_fetch_add |old, value| old.wrapping_add(value);
    __tsan_atomic128_fetch_sub |old, value| old.wrapping_sub(value);
    __tsan_atomic128_fetch_and |old, value| old & value;
    __tsan_atomic128_fetch_or |old, value| old | value;
    __tsan_atomic128_fetch_xor |old, value| old ^ value;
    __tsan_atomic128_fetch_nand |old, value| !(old & value);
}

/// Compares and exchanges 16 bytes; answers what was there.
///
/// # Safety
/// As for the load.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __tsan_atomic128_compare_exchange_val(
    a: *mut u128,
    expected: u128,
    value: u128,
    order: c_int,
    _failure: c_int,
) -> u128 {
    let exchange = || {
        // SAFETY: the caller's promise.
        unsafe { exchange_16(a, expected, value) }
    };
    perform(a as u64, 16, WRITE, order, exchange)
}

/// Compares and exchanges 16 bytes; answers whether it did.
///
/// # Safety
/// As for the load; `expected` is valid too.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __tsan_atomic128_compare_exchange_strong(
    a: *mut u128,
    expected: *mut u128,
    value: u128,
    order: c_int,
    failure: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let wanted = unsafe { *expected };
    // SAFETY: as above.
    let found = unsafe { __tsan_atomic128_compare_exchange_val(a, wanted, value, order, failure) };
    // SAFETY: as above.
    unsafe { *expected = found };
    c_int::from(found == wanted)
}

/// As the strong one.
///
/// # Safety
/// As for the strong one.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __tsan_atomic128_compare_exchange_weak(
    a: *mut u128,
    expected: *mut u128,
    value: u128,
    order: c_int,
    failure: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { __tsan_atomic128_compare_exchange_strong(a, expected, value, order, failure) }
}

/// A fence.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __tsan_atomic_thread_fence(memory_order: c_int) {
    if releases(memory_order) {
        order(FENCES, false);
    }
    fence(Ordering::SeqCst);
    if acquires(memory_order) {
        order(FENCES, true);
    }
}

/// A fence against a signal handler of the same thread: none of the compiler's reordering crosses a
/// call.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __tsan_atomic_signal_fence(_order: c_int) {}
