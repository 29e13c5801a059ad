//! Host code that says itself what it touches: the library that stands in the place of
//! ThreadSanitizer's runtime, in programs that are compiled with `-fsanitize=thread` (gcc, clang,
//! `nvcc -Xcompiler`).
//!
//! Owns the functions that such code calls before each load and store and instead of each atomic
//! operation. A function asks one bit whether devices can reach the page of its address, and tells
//! the shim if so (`shim/src/libraries/instrumented.rs`). Atomic operations are performed here.
//! Nothing else is kept: races among host threads are not looked for, and there is no shadow
//! memory. Without the shim in the process the functions only answer.
//!
//! The interface is the compilers', as their headers and documentation give it
//! (`sanitizer/tsan_interface.h`, `sanitizer/tsan_interface_atomic.h`); its parts are in
//! [`accesses`], [`atomics`], [`annotations`] and [`memory_functions`]. [`modules`] knows which
//! objects of the process are instrumented, [`thread_sanitizer`] whether the real runtime is there
//! too. None of them but [`modules`] and this file is known to another.
//!
//! # Rules
//!
//! 1. Nothing here allocates, locks or has state of a thread.
//! 2. What has to be fast is written in machine code, and passes on to the shim by a jump: the
//!    stack then looks as if the program had called the shim.

mod accesses;
mod annotations;
mod atomics;
mod memory_functions;
mod modules;
mod thread_sanitizer;

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// What the library and the shim have agreed on.
const VERSION: u32 = 1;

/// Loads.
const READ: u64 = 0;
/// Stores.
const WRITE: u64 = 1;
/// Atomic operations, and accesses of `volatile` objects.
const ATOMIC: u64 = 2;

/// Bits to shift an address by to get the index of its page.
const PAGE: u32 = 12;
/// Addresses of programs end here.
const ADDRESSES: u32 = 47;

/// Where the pages are that devices can reach: one bit each, in words of 32. Null: nothing is asked.
/// The shim sets it.
static PAGES: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());

/// The shim's function that is told of a touch: address, bytes times 8 plus how, and where. Valid
/// whenever [`PAGES`] is not null.
static TOUCH: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The shim's function that is told of the synchronisation of host threads; null without it.
static ORDER: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

type Link = unsafe extern "C" fn(u32, *const AtomicPtr<AtomicU32>) -> bool;
type Touch = extern "C" fn(u64, u64, u64);
type Order = extern "C" fn(u64, bool);

/// A function of any library of the process.
fn global(name: &CStr) -> *mut c_void {
    // SAFETY: a string that ends in NUL. Preloaded libraries are in the global scope.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// One line for the user.
fn say(line: &str) {
    // SAFETY: the bytes are valid. Whether they could be written does not matter.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Looks for the shim, and tells it that this library is here. The shim asks for this when it comes
/// later.
#[unsafe(no_mangle)]
pub extern "C" fn streamsan_host_announce() {
    let (touch, link) = (global(c"streamsan_host_touch"), global(c"streamsan_host_link"));
    if touch.is_null() || link.is_null() {
        return;
    }
    TOUCH.store(touch, Ordering::Release);
    // SAFETY: the shim's function of this name has this type in every version.
    let link: Link = unsafe { core::mem::transmute(link) };
    // SAFETY: PAGES lives as long as the process: the library is never unloaded.
    if !unsafe { link(VERSION, &raw const PAGES) } {
        return say("streamsan: libstreamsan_host.so does not fit libstreamsan.so (another version, or no room): \
             the host's own accesses are not watched\n");
    }
    ORDER.store(global(c"streamsan_host_order"), Ordering::Release);
    thread_sanitizer::warn();
}

#[ctor::ctor(unsafe)]
fn start() {
    memory_functions::find();
    // First: looking at an object moves bytes itself.
    modules::is_instrumented(start as *const () as u64);
    streamsan_host_announce();
}

/// Whether devices can reach a page of these bytes.
#[inline]
fn is_reachable(start: u64, len: u64) -> bool {
    let pages = PAGES.load(Ordering::Relaxed);
    let last = start.saturating_add(len.max(1) - 1);
    if pages.is_null() || last >> ADDRESSES != 0 {
        return false;
    }
    let (mut page, last) = (start >> PAGE, last >> PAGE);
    while page <= last {
        // SAFETY: the page lies below 2^47, so its word lies in the shim's table.
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
fn touch(start: u64, len: u64, how: u64, pc: u64) {
    if len > 0 && is_reachable(start, len) {
        // SAFETY: PAGES is set, so this is the shim's function.
        let touch: Touch = unsafe { core::mem::transmute(TOUCH.load(Ordering::Relaxed)) };
        touch(start, len << 3 | how, pc);
    }
}

/// A host thread acquires an object (or releases it).
#[inline]
fn order(object: u64, acquires: bool) {
    let told = ORDER.load(Ordering::Relaxed);
    if !told.is_null() {
        // SAFETY: the shim's function of this name has this type.
        let told: Order = unsafe { core::mem::transmute(told) };
        told(object, acquires);
    }
}
