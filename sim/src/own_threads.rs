//! Threads of the simulator's own in the program's process, and signals when no other threads are
//! left.
//!
//! Does not know what the threads do. They take no signals: those belong to the program's threads.
//! If the main thread has ended with `pthread_exit` and the program's other threads have ended as
//! well, nothing is left to take a signal, and no SIGTERM would end the process. A real driver's
//! threads do not let it end by itself either, but they take signals (measured on an H100, driver
//! 580). So a thread of ours takes them from then on.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

/// What threads of ours are called: those that they start for one kernel have the name from them.
const NAMES: [&str; 2] = ["sim-gpu", "sim-signals"];
/// How often it is seen whether the program's threads have ended, once its main thread has.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The main thread will tell us when it ends.
static MAIN_TELLS: AtomicBool = AtomicBool::new(false);
static MAIN_HAS_ENDED: AtomicBool = AtomicBool::new(false);
/// The signals that the program had blocked when our first thread started: a driver's threads
/// inherit them.
static BLOCKED: OnceLock<libc::sigset_t> = OnceLock::new();

/// Starts a thread that takes no signals: they belong to the program's own threads. `stack` is in
/// bytes. False where the system gives no thread.
pub(crate) fn spawn(stack: usize, work: impl FnOnce() + Send + 'static) -> bool {
    let started = spawn_named(NAMES[0], stack, work);
    if MAIN_HAS_ENDED.load(Ordering::Acquire) || !MAIN_TELLS.load(Ordering::Acquire) {
        take_signals_at_the_end();
    }
    started
}

fn spawn_named(name: &str, stack: usize, work: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: plain signal-mask calls on locals; the mask of this thread is restored below.
    let old = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    };
    BLOCKED.get_or_init(|| old);
    let started = std::thread::Builder::new().name(name.into()).stack_size(stack).spawn(work).is_ok();
    // SAFETY: restores the mask saved above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
    started
}

/// Starts the thread that takes signals when only threads of ours are left; once.
fn take_signals_at_the_end() {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    // A child of a fork has none of its parent's threads.
    if STARTED.swap(std::process::id(), Ordering::AcqRel) != std::process::id() {
        spawn_named(NAMES[1], 8 << 20, || {
            while !only_ours_are_left() {
                std::thread::sleep(LOOK_EVERY);
            }
            if let Some(blocked) = BLOCKED.get() {
                // SAFETY: a set that was read from the system. A handler of the program may run on
                // this thread, which holds nothing.
                unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, blocked, std::ptr::null_mut()) };
            }
            loop {
                std::thread::park();
            }
        });
    }
}

/// The name of a thread of this process, and its state. None: there is no such thread.
fn look(thread: &OsStr) -> Option<(String, char)> {
    let stat = std::fs::read_to_string(Path::new("/proc/self/task").join(thread).join("stat")).ok()?;
    // PID (NAME) STATE ...
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
    Some((name.to_owned(), rest.chars().next()?))
}

/// The state of a thread of this process as in `/proc`: `R` runs or would, `S` sleeps. None: it has
/// ended.
pub(crate) fn state(thread: i32) -> Option<char> {
    look(&OsString::from(thread.to_string())).map(|(_, state)| state)
}

/// Whether the main thread has ended, and all other threads of the process are of the simulator.
fn only_ours_are_left() -> bool {
    let main = OsString::from(std::process::id().to_string());
    if look(&main).is_none_or(|(_, state)| state != 'Z') {
        return false;
    }
    let is_ours = |thread: OsString| {
        thread == main || look(&thread).is_some_and(|(name, state)| state == 'Z' || NAMES.contains(&name.as_str()))
    };
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    threads.into_iter().all(|thread| thread.is_ok_and(|thread| is_ours(thread.file_name())))
}

/// The main thread ends, and the process does not: the C library calls this for no other thread,
/// and not when the process exits.
extern "C" fn main_ends(_: *mut libc::c_void) {
    MAIN_HAS_ENDED.store(true, Ordering::Release);
    if BLOCKED.get().is_some() {
        take_signals_at_the_end();
    }
}

/// The library is loaded, mostly by the main thread: that one will tell when it ends.
extern "C" fn prepare() {
    static ONCE: Once = Once::new();
    // SAFETY: asks for numbers.
    if unsafe { libc::syscall(libc::SYS_gettid) } as u32 != std::process::id() {
        return;
    }
    ONCE.call_once(|| {
        let mut key = 0;
        // SAFETY: a place for the key, and a function that stays loaded (`-z nodelete`); the value
        // is only to be not null.
        let told = unsafe {
            libc::pthread_key_create(&mut key, Some(main_ends)) == 0
                && libc::pthread_setspecific(key, std::ptr::dangling()) == 0
        };
        MAIN_TELLS.store(told, Ordering::Release);
    });
}

#[used]
#[unsafe(link_section = ".init_array")]
static PREPARE: extern "C" fn() = prepare;
