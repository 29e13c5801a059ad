//! Who may run shim code right now: at most once on each thread's stack.
//!
//! A signal handler of the program may interrupt a hook and call CUDA itself; its call then goes straight to the driver and is
//! counted. The thread-local state has no destructor, so it is valid in late exit handlers too.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// Calls that were not observed because they came from inside a hook (a signal handler of the program).
pub static SKIPPED: AtomicU64 = AtomicU64::new(0);

/// Whether this thread is in shim code.
pub fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(true)
}

/// The number that was stored for this thread, 0 when there is none.
pub fn thread_number() -> u32 {
    THREAD.try_with(Cell::get).unwrap_or(0)
}

/// Proof that this thread runs shim code and is not nested in other shim code. Restores `errno` when it goes.
pub struct Inside {
    errno: i32,
}

impl Inside {
    /// Enters shim code, or says no when this thread is in it already.
    #[inline]
    pub fn enter() -> Option<Self> {
        let free = INSIDE.try_with(|inside| !inside.replace(true)).unwrap_or(false);
        if !free {
            SKIPPED.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        // SAFETY: errno of this thread always exists.
        Some(Self { errno: unsafe { *libc::__errno_location() } })
    }

    /// The number that [`set_thread`] stored for this thread, 0 before.
    #[inline]
    pub fn thread(&self) -> u32 {
        THREAD.try_with(Cell::get).unwrap_or(0)
    }

    /// Stores a number for this thread.
    pub fn set_thread(&self, number: u32) {
        let _ = THREAD.try_with(|thread| thread.set(number));
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: errno of this thread always exists.
        unsafe { *libc::__errno_location() = self.errno };
        let _ = INSIDE.try_with(|inside| inside.set(false));
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
            let outer = Inside::enter();
            assert!(outer.is_some());
            assert!(Inside::enter().is_none());
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = 7 };
        }
        // SAFETY: as above.
        assert_eq!(unsafe { *libc::__errno_location() }, 42);
        assert!(Inside::enter().is_some());
    }
}
