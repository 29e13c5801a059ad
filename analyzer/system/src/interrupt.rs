//! SIGINT and SIGTERM while an analysis runs: the first ends it with what is known, a later one
//! ends the process.
//!
//! Owns that state, and when a signal is a later one. While a program under test runs these signals
//! are the program's: the launcher asks for them once it has ended. What stops where is decided by
//! who asks [`signal`].

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The signal that has come; 0: none.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// When the first signal came: milliseconds of the monotonic clock, and one; 0: none has.
static FIRST: AtomicU64 = AtomicU64::new(0);

/// Signals that come so soon after the first, in milliseconds, are the same wish: `timeout` of
/// GNU signals its child and then the group that both are in.
const ECHO: u64 = 500;

extern "C" fn ask(signal: libc::c_int) {
    ASKED.store(signal, Ordering::Relaxed);
    hear(signal);
}

/// In the handler of a signal that asks for an orderly end: ends the process at once if another
/// such signal came before, and this one is no echo of it.
pub fn hear(signal: i32) {
    let now = milliseconds() + 1;
    match FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {}
        Err(first) if now.saturating_sub(first) < ECHO => {}
        // SAFETY: both are async-signal-safe. The signal is pending until the handler returns.
        Err(_) => unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        },
    }
}

fn milliseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the value; async-signal-safe (signal-safety(7)).
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
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
