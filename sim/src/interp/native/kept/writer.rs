//! When code is written: by a thread of its own, a while after it was made, and what is left at the
//! end of the process. The program waits for neither, but for a bounded time at its end.
//!
//! A child process of `fork` has no such thread, and writes nothing: it has no device either.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Kept;
use crate::own_threads;

/// How long after code was made it is first written; each time twice as long, up to the last.
const SOON: Duration = Duration::from_millis(500);
const LATE: Duration = Duration::from_secs(30);

/// How long the end of the process may take to write what is left, and how long it waits for a
/// thread that writes.
const AT_END: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Waiting {
    /// The process that the thread belongs to; 0: there is none yet.
    process: u32,
    /// Programs with new code.
    programs: Vec<Arc<Kept>>,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { process: 0, programs: Vec::new() });
static NEWS: Condvar = Condvar::new();

/// Held by whoever writes.
static WRITING: Mutex<()> = Mutex::new(());

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program has new code.
pub(super) fn wake(kept: &Arc<Kept>) {
    let mut waiting = waiting();
    if waiting.process == 0 {
        waiting.process = std::process::id();
        // SAFETY: a function without arguments that may be called when the process ends.
        unsafe { libc::atexit(at_exit) };
        // Without the thread all is written at the end.
        own_threads::spawn("sim-keep", 256 << 10, work);
    }
    if waiting.process == std::process::id() && !waiting.programs.iter().any(|known| Arc::ptr_eq(known, kept)) {
        waiting.programs.push(kept.clone());
        NEWS.notify_one();
    }
}

fn work() {
    // The program's threads go first.
    // SAFETY: changes this thread's share of the processor, on Linux.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
    let mut pause = SOON;
    loop {
        let mut now = waiting();
        while now.programs.is_empty() {
            now = NEWS.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        drop(now);
        std::thread::sleep(pause);
        pause = (pause * 2).min(LATE);
        let _held = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let programs = std::mem::take(&mut waiting().programs);
        programs.iter().for_each(|kept| kept.write());
    }
}

extern "C" fn at_exit() {
    // A panic must not cross the C library.
    let _ = std::panic::catch_unwind(|| {
        let end = Instant::now() + AT_END;
        // The thread that ends the process may hold something itself: nothing is waited for
        // without end.
        let Some(mut waiting) = tried(&WAITING, end) else { return };
        if waiting.process != std::process::id() {
            return;
        }
        let programs = std::mem::take(&mut waiting.programs);
        drop(waiting);
        let Some(_held) = tried(&WRITING, end) else { return };
        without_file_signals(|| programs.iter().take_while(|_| Instant::now() < end).for_each(|kept| kept.write()));
    });
}

/// Does something of which the program must not die: where files have become too large
/// (`RLIMIT_FSIZE`) a write that fails is an error, and no signal.
fn without_file_signals(f: impl FnOnce()) {
    // SAFETY: plain signal-mask calls on locals. What came in between is taken off again, unless it
    // waited before.
    unsafe {
        let (mut own, mut old, mut before): (libc::sigset_t, libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigemptyset(&mut own);
        libc::sigaddset(&mut own, libc::SIGXFSZ);
        libc::sigpending(&mut before);
        libc::pthread_sigmask(libc::SIG_BLOCK, &own, &mut old);
        f();
        if libc::sigismember(&before, libc::SIGXFSZ) == 0 {
            let at_once: libc::timespec = std::mem::zeroed();
            libc::sigtimedwait(&own, std::ptr::null_mut(), &at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut());
    }
}

/// Takes a lock that is free before a time.
fn tried<T>(lock: &Mutex<T>, end: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match lock.try_lock() {
            Ok(guard) => return Some(guard),
            Err(std::sync::TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(_) if Instant::now() >= end => return None,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
