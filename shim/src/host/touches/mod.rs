//! Loads and stores of instrumented host code (`libstreamsan_host.so`, crate `shim-instrumented`):
//! from the instruction to a run of bytes that is worth an op.
//!
//! Owns the gate that the library beside this one asks, and what each thread has touched since the
//! latest op. The way from an instruction:
//!
//! 1. The library asks the [`pages`] whether the address lies on one that devices can reach. While
//!    the host has nothing to race with, the gate is closed: then it asks nothing.
//! 2. `crate::libraries::instrumented` finds the instruction in the thread's [`runs`]. An
//!    instruction that goes on where its run left off is done with that.
//! 3. Otherwise the run before is written to the log, and a new one begins with the stack of now
//!    (`crate::observe::host_touch`).
//!
//! Every op of the program ends all runs of all threads first: what was touched before the op must
//! not stand behind it. Does not judge what races.

pub mod pages;
#[cfg(test)]
mod run_tests;
pub mod runs;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::stack::native::note_companion;

/// Instrumented libraries that may ask: one usually, more if it was loaded under several names.
const GATES: usize = 8;

/// Where such a library looks.
#[repr(C, align(64))]
pub struct Gate {
    /// The bits of the pages; null: nothing is asked.
    pages: AtomicPtr<AtomicU32>,
    /// The first page that devices can reach.
    low: AtomicU64,
    /// Bytes from there to the end of the last one; 0: nothing is asked.
    size: AtomicU64,
}

/// What the gates show: see [`Gate`].
static SHOWN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

static GATE: [AtomicPtr<Gate>; GATES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; GATES];

/// Whether there is such a library in this process.
#[unsafe(link_section = "streamsan_state")]
static LINKED: AtomicBool = AtomicBool::new(false);

/// Whether host threads have an order of their own.
#[unsafe(link_section = "streamsan_state")]
static THREADS: AtomicBool = AtomicBool::new(false);

/// Whether its questions are answered now.
#[unsafe(link_section = "streamsan_state")]
static OPEN: AtomicBool = AtomicBool::new(false);

/// Whether host code of this process is instrumented, by a library that asks this shim.
#[inline]
pub fn is_linked() -> bool {
    LINKED.load(Ordering::Relaxed)
}

/// Whether host threads have an order of their own (`--host-order threads`).
#[inline]
pub fn has_thread_order() -> bool {
    THREADS.load(Ordering::Relaxed)
}

/// Host threads have an order of their own, or share one.
pub fn set_thread_order(threads: bool) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// Whether touches are looked at now.
#[inline]
pub fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// A library announces itself: `gate` is where it looks. Answers whether it will be answered.
///
/// # Safety
/// `gate` is valid for the life of the process.
pub unsafe fn link(gate: *mut Gate) -> bool {
    if gate.is_null() || !pages::map() {
        return false;
    }
    note_companion(gate as u64);
    for slot in &GATE {
        let old = slot.compare_exchange(std::ptr::null_mut(), gate, Ordering::AcqRel, Ordering::Acquire);
        if old.is_ok() || old == Err(gate) {
            LINKED.store(true, Ordering::Release);
            return true;
        }
    }
    false
}

/// Asks a library that was loaded before this one to announce itself.
pub fn look_for_library() {
    if is_linked() {
        return;
    }
    // SAFETY: a string that ends in NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"streamsan_host_announce".as_ptr()) };
    if !found.is_null() {
        // SAFETY: the library's function of this name takes nothing and answers nothing.
        unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(found)() };
    }
}

/// Opens the gate or closes it. `window`: where the memory lies that devices can reach, and how
/// far. The lock of the log is held.
#[inline]
pub fn set_open(open: bool, window: (u64, u64)) {
    let (low, size) = if open { window } else { (SHOWN[0].load(Ordering::Relaxed), 0) };
    let shown = (SHOWN[0].load(Ordering::Relaxed), SHOWN[1].load(Ordering::Relaxed)) == (low, size);
    if !shown || OPEN.load(Ordering::Relaxed) != open {
        show(open, low, size);
    }
}

#[cold]
fn show(open: bool, low: u64, size: u64) {
    OPEN.store(open, Ordering::Release);
    SHOWN[0].store(low, Ordering::Relaxed);
    SHOWN[1].store(size, Ordering::Relaxed);
    let table = if open { pages::table() } else { std::ptr::null_mut() };
    for slot in &GATE {
        // SAFETY: a gate that was announced is valid for the life of the process.
        if let Some(gate) = unsafe { slot.load(Ordering::Acquire).as_ref() } {
            // A thread that finds one half of this asks the bits, or misses a touch that nothing
            // orders behind the op.
            gate.pages.store(table, Ordering::Release);
            gate.low.store(low, Ordering::Release);
            gate.size.store(size, Ordering::Release);
        }
    }
}
