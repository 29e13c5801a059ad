//! The gate: what the shim has told this library, and the way to tell it of a touch.
//!
//! Owns the places that the shim fills in. Nothing here decides what is worth an op.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::arch::ADDRESSES;

/// Loads.
pub(crate) const READ: u64 = 0;
/// Stores.
pub(crate) const WRITE: u64 = 1;
/// Atomic operations, and accesses of `volatile` objects.
pub(crate) const ATOMIC: u64 = 2;

/// Bits to shift an address by to get the index of its page.
pub(crate) const PAGE: u32 = 12;

/// What the shim fills in. Machine code knows the offsets.
#[repr(C, align(64))]
pub(crate) struct Gate {
    /// Where the pages are that devices can reach: one bit each, in words of 32. Null: nothing is
    /// asked.
    pub pages: AtomicPtr<AtomicU32>,
    /// One byte for each 64 KiB: not 0 where devices can reach any of it. Null: nothing is asked.
    pub granules: AtomicPtr<u8>,
    /// Where a thread keeps the address of its runs, counted from its thread pointer.
    pub local: AtomicU64,
    /// Runs of another age are over.
    pub age: AtomicU32,
    /// Room for the bytes of the granules, which code may know: see [`crate::inlined`].
    /// Null: the shim makes room itself.
    pub room: AtomicPtr<u8>,
    /// Whether instrumented code knows that room.
    pub is_asked_inline: AtomicU32,
}

/// What is asked now.
pub(crate) static GATE: Gate = Gate {
    pages: AtomicPtr::new(core::ptr::null_mut()),
    granules: AtomicPtr::new(core::ptr::null_mut()),
    local: AtomicU64::new(0),
    age: AtomicU32::new(0),
    room: AtomicPtr::new(core::ptr::null_mut()),
    is_asked_inline: AtomicU32::new(0),
};

/// The shim's function that is told of a touch: address, bytes times 8 plus how, and where. Valid
/// whenever the pages of the [`GATE`] are not null.
pub(crate) static TOUCH: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The shim's function that is told of the synchronisation of host threads; null without it.
pub(crate) static ORDER: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

type Touch = extern "C" fn(u64, u64, u64);
type Order = extern "C" fn(u64, bool);

/// A function of any library of the process.
pub(crate) fn global(name: &CStr) -> *mut c_void {
    // SAFETY: a string that ends in NUL. Preloaded libraries are in the global scope.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// One line for the user.
pub(crate) fn say(line: &str) {
    signal_free::write(line.as_bytes());
}

/// Whether devices can reach a page of these bytes.
#[inline]
pub(crate) fn is_reachable(start: u64, len: u64) -> bool {
    // With acquire: TOUCH was set before there were pages.
    let pages = GATE.pages.load(Ordering::Acquire);
    let last = start.saturating_add(len.max(1) - 1);
    if pages.is_null() || last >> ADDRESSES != 0 {
        return false;
    }
    let (mut page, last) = (start >> PAGE, last >> PAGE);
    while page <= last {
        // SAFETY: the page is one that programs have, so its word lies in the shim's table.
        let word = unsafe { &*pages.add((page / 32) as usize) }.load(Ordering::Relaxed);
        let count = (32 - page % 32).min(last - page + 1);
        if word & (u32::MAX >> (32 - count)) << (page % 32) != 0 {
            return true;
        }
        page += count;
    }
    false
}

/// Tells the shim of a touch, if devices can reach the bytes.
#[inline]
pub(crate) fn touch(start: u64, len: u64, how: u64, pc: u64) {
    if len > 0 && is_reachable(start, len) {
        // SAFETY: there are pages, so this is the shim's function.
        let touch: Touch = unsafe { core::mem::transmute(TOUCH.load(Ordering::Relaxed)) };
        touch(start, len << 3 | how, pc);
    }
}

/// A host thread acquires an object (or releases it).
#[inline]
pub(crate) fn order(object: u64, acquires: bool) {
    let told = ORDER.load(Ordering::Relaxed);
    if !told.is_null() {
        // SAFETY: the shim's function of this name has this type.
        let told: Order = unsafe { core::mem::transmute(told) };
        told(object, acquires);
    }
}
