//! Loads and stores of instrumented host code (`libstreamsan_host.so`, crate `shim-instrumented`):
//! from the instruction to a run of bytes that is worth an op.
//!
//! Owns the gate that the library beside this one asks, and what each thread has touched since the
//! latest op. The way from an instruction:
//!
//! 1. The library asks the [`pages`] whether devices can reach what lies around the address. While
//!    the host has nothing to race with, the gate is closed: then it asks nothing.
//! 2. It looks the instruction up in the thread's [`runs`]. One that goes on where its latest run
//!    left off is done with that. `crate::libraries::instrumented` looks at its other runs.
//! 3. Otherwise the run before is written to the log, and a new one begins with the stack of now
//!    (`crate::observe::host_touch`).
//!
//! Every op of the program ends all runs of all threads first: what was touched before the op must
//! not stand behind it. Does not judge what races.

pub mod pages;
#[cfg(test)]
mod run_tests;
pub mod runs;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::arch;
use crate::runtime::thread_state::ThreadState;
use crate::stack::native::{Companion, note_companion};

/// Instrumented libraries that may ask: one usually, more if it was loaded under several names.
const GATES: usize = 8;

/// Where such a library looks. Its machine code knows the offsets.
#[repr(C, align(64))]
pub struct Gate {
    /// The bits of the pages; null: nothing is asked.
    pages: AtomicPtr<AtomicU32>,
    /// One byte for each granule: not 0 where devices can reach any of it. Null: nothing is asked.
    granules: AtomicPtr<AtomicU8>,
    /// Where a thread keeps the address of its runs, counted from its thread pointer.
    local: AtomicU64,
    /// The age of runs that go on.
    age: AtomicU32,
    /// Room for the bytes of the granules. Code that asks in line looks there whether the gate is
    /// open or not. Null: the library made none.
    room: AtomicPtr<AtomicU8>,
    /// Whether there is such code.
    is_asked_inline: AtomicU32,
}

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
    if gate.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    let (room, is_asked) =
        unsafe { ((*gate).room.load(Ordering::Acquire), (*gate).is_asked_inline.load(Ordering::Acquire) != 0) };
    // A second library's code would look into a room of its own, where nothing is shown.
    if !pages::map(room) || is_asked && pages::granules() != room {
        return false;
    }
    note_companion(Companion::Instrumented, gate as u64);
    for slot in &GATE {
        let old = slot.compare_exchange(std::ptr::null_mut(), gate, Ordering::AcqRel, Ordering::Acquire);
        if old.is_ok() || old == Err(gate) {
            // SAFETY: the caller's promise.
            let gate = unsafe { &*gate };
            let place = arch::local_offset() + std::mem::offset_of!(ThreadState, touches) as u64;
            gate.local.store(place, Ordering::Release);
            gate.age.store(runs::age(), Ordering::Release);
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

/// All gates.
fn gates() -> impl Iterator<Item = &'static Gate> {
    // SAFETY: a gate that was announced is valid for the life of the process.
    GATE.iter().filter_map(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

/// Opens the gate or closes it. The lock of the log is held.
#[inline]
pub fn set_open(open: bool) {
    if OPEN.load(Ordering::Relaxed) != open {
        show(open);
    }
}

#[cold]
fn show(open: bool) {
    OPEN.store(open, Ordering::Release);
    let (granules, pages) =
        if open { (pages::granules(), pages::table()) } else { (std::ptr::null_mut(), std::ptr::null_mut()) };
    for gate in gates() {
        // A thread that finds one half of this misses a touch that nothing orders behind the op.
        gate.pages.store(pages, Ordering::Release);
        gate.granules.store(granules, Ordering::Release);
    }
}

/// A new age of runs has begun.
fn show_age(age: u32) {
    gates().for_each(|gate| gate.age.store(age, Ordering::Release));
}
