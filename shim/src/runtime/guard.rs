//! The guard against nested entry: shim code runs at most once on each thread's stack.
//!
//! Owns entering and leaving shim code, and the program's `errno` meanwhile. A signal handler of
//! the program may interrupt a hook and call CUDA itself; its call then goes straight to the driver
//! and is counted. The thread-local state has no destructor, so it is valid in late exit handlers
//! too.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::runtime::thread_state;

/// Calls that were not observed because they came from inside a hook (a signal handler of the
/// program).
pub static SKIPPED: AtomicU64 = AtomicU64::new(0);

/// Whether calls pass unobserved: `python3 tests/gpu cost --within` compares steps of one process
/// that are observed with steps that are not. What such a run says of the program is not the truth,
/// so only builds with the feature `pass` have it.
#[cfg(feature = "pass")]
static PASS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Lets all calls from now on pass unobserved, or no longer. Safe at any time, for all threads.
#[cfg(feature = "pass")]
#[unsafe(no_mangle)]
pub extern "C" fn streamsan_pass(pass: bool) {
    PASS.store(pass, Ordering::Relaxed);
}

/// Whether this thread is in shim code.
pub fn is_inside() -> bool {
    thread_state::with(|l| l.inside.get())
}

/// The number that was stored for this thread, 0 when there is none.
pub fn thread_number() -> u32 {
    thread_state::with(|l| l.thread.get())
}

/// Proof that this thread runs shim code and is not nested in other shim code. Restores `errno`
/// when it goes.
pub struct EntryGuard {
    errno: i32,
    place: *mut i32,
}

impl EntryGuard {
    /// Enters shim code, or says no when this thread is in it already.
    #[inline]
    pub fn enter() -> Option<Self> {
        #[cfg(feature = "pass")]
        if PASS.load(Ordering::Relaxed) {
            return None;
        }
        let free = thread_state::with(|l| !l.inside.replace(true));
        if !free {
            SKIPPED.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        // SAFETY: errno of this thread always exists.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        Some(Self { errno: unsafe { *place }, place })
    }

    /// The number that [`EntryGuard::set_thread`] stored for this thread, 0 before.
    #[inline]
    pub fn thread(&self) -> u32 {
        thread_state::with(|l| l.thread.get())
    }

    /// Stores a number for this thread.
    pub fn set_thread(&self, number: u32) {
        thread_state::with(|l| l.thread.set(number));
    }
}

impl Drop for EntryGuard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: errno of this thread; the pointer makes this type stay on it.
        unsafe { *self.place = self.errno };
        thread_state::with(|l| l.inside.set(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_entry_is_refused_and_errno_survives() {
        // SAFETY: errno of this thread always exists.
        unsafe { *libc::__errno_location() = 42 };
        {
            let outer = EntryGuard::enter();
            assert!(outer.is_some());
            assert!(EntryGuard::enter().is_none());
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = 7 };
        }
        // SAFETY: as above.
        assert_eq!(unsafe { *libc::__errno_location() }, 42);
        assert!(EntryGuard::enter().is_some());
    }
}
