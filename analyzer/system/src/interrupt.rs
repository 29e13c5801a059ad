//! SIGINT and SIGTERM while an analysis runs: the first ends it with what is known, the second ends
//! the process.
//!
//! Owns that state. While a program under test runs these signals are the program's: the launcher
//! asks for them once it has ended. What stops where is decided by who asks [`signal`].

use std::sync::atomic::{AtomicI32, Ordering};

/// The signal that has come; 0: none.
static ASKED: AtomicI32 = AtomicI32::new(0);

extern "C" fn ask(signal: libc::c_int) {
    if ASKED.swap(signal, Ordering::Relaxed) != 0 {
        // SAFETY: both are async-signal-safe. The signal is pending until this handler returns.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

/// From now on these signals end the analysis. One that the process was told to ignore stays so.
pub fn watch() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: all-zero is a valid sigaction to be filled; the handler is async-signal-safe.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ask as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// The signal that has asked for the end, if one has.
pub fn signal() -> Option<i32> {
    Some(ASKED.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

/// Whether the analysis is to end.
pub fn is_asked() -> bool {
    signal().is_some()
}
