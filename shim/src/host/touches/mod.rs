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

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use crate::stack::native::note_companion;

/// Instrumented libraries that may ask: one usually, more if it was loaded under several names.
const GATES: usize = 8;

static GATE: [AtomicPtr<AtomicPtr<AtomicU32>>; GATES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; GATES];

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

/// A library announces itself: `gate` is where it looks for the pages, null to ask nothing. Answers
/// whether it will be answered.
///
/// # Safety
/// `gate` is valid for the life of the process.
pub unsafe fn link(gate: *mut AtomicPtr<AtomicU32>) -> bool {
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

/// Opens the gate or closes it.
pub fn set_open(open: bool) {
    if OPEN.swap(open, Ordering::AcqRel) == open {
        return;
    }
    let table = if open { pages::table() } else { std::ptr::null_mut() };
    for slot in &GATE {
        // SAFETY: a gate that was announced is valid for the life of the process.
        if let Some(gate) = unsafe { slot.load(Ordering::Acquire).as_ref() } {
            gate.store(table, Ordering::Release);
        }
    }
}
