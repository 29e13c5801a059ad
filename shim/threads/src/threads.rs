//! The starts and ends of threads, and functions that run once.
//!
//! Owns the wrappers of creation, joining and `pthread_once`, of pthreads and of C11. The end of a
//! thread is seen by the destructor of a key: it runs however the thread ends, and behind the
//! destructors of C++. The start and the end of a thread are objects of their own, with numbers
//! that no address has.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::{clockid_t, pthread_attr_t, pthread_key_t, pthread_t, timespec};

use crate::{Other, acquired, edge, next, released, shim};

/// The shim's entry for new threads: the object that their start acquires.
type Birth = unsafe extern "C" fn(u64);
// The program's functions may throw, and threads that are cancelled unwind.
type Routine = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type C11Routine = extern "C-unwind" fn(*mut c_void) -> c_int;
type Once = extern "C-unwind" fn();

const START: u64 = 1 << 62;
const END: u64 = 1 << 63;

/// What a new thread is to run.
struct Begin<F> {
    routine: F,
    argument: *mut c_void,
    start: u64,
}

/// The key whose destructor sees threads end; one more, so that 0 is none.
static KEY: AtomicU32 = AtomicU32::new(0);

/// The end of this thread. Destructors of other keys may still use CUDA: this one comes again
/// behind them, as often as the C library calls destructors.
unsafe extern "C" fn ended(round: *mut c_void) {
    // SAFETY: asks for the calling thread.
    edge(unsafe { libc::pthread_self() } | END, false);
    let (round, key) = (round.addr() + 1, KEY.load(Ordering::Relaxed));
    // PTHREAD_DESTRUCTOR_ITERATIONS of the C library (limits.h).
    if round <= 4 && key != 0 {
        // SAFETY: the key was made, and is never deleted.
        unsafe { libc::pthread_setspecific(key - 1, core::ptr::without_provenance(round)) };
    }
}

fn end_key() -> Option<pthread_key_t> {
    match KEY.load(Ordering::Relaxed) {
        0 => {
            let mut made = 0;
            // SAFETY: the destructor has the type that is asked for, and stays: the library is
            // never unloaded.
            if unsafe { libc::pthread_key_create(&raw mut made, Some(ended)) } != 0 {
                return None;
            }
            let Err(first) = KEY.compare_exchange(0, made + 1, Ordering::Relaxed, Ordering::Relaxed) else {
                return Some(made);
            };
            // SAFETY: just made, and nobody has it: another thread was first.
            unsafe { libc::pthread_key_delete(made) };
            Some(first - 1)
        }
        key => Some(key - 1),
    }
}

/// A thread begins: what it acquires, and how its end is seen.
fn begun(start: u64) {
    static BIRTH: Other = Other::new();
    if let Some(address) = BIRTH.get(|| shim(c"streamsan_host_thread")) {
        // SAFETY: the shim's function of this name has this type, and takes any number.
        unsafe { core::mem::transmute::<*mut c_void, Birth>(address)(start) };
    }
    if let Some(key) = end_key() {
        // SAFETY: the key was made.
        unsafe { libc::pthread_setspecific(key, core::ptr::without_provenance(1)) };
    }
}

/// What a thread was given to run; the thread has begun.
fn take<F: Copy>(begin: *mut c_void) -> (F, *mut c_void) {
    // SAFETY: the box that the creating thread gave away, once.
    let Begin { routine, argument, start } = *unsafe { Box::from_raw(begin.cast::<Begin<F>>()) };
    begun(start);
    (routine, argument)
}

extern "C-unwind" fn run(begin: *mut c_void) -> *mut c_void {
    let (routine, argument) = take::<Routine>(begin);
    routine(argument)
}

extern "C-unwind" fn run_c11(begin: *mut c_void) -> c_int {
    let (routine, argument) = take::<C11Routine>(begin);
    routine(argument)
}

/// Makes a thread by `create`, which answers 0 when it has.
fn started<F>(routine: F, argument: *mut c_void, create: impl FnOnce(*mut c_void) -> c_int) -> c_int {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let start = START | STARTED.fetch_add(1, Ordering::Relaxed);
    edge(start, false);
    let begin = Box::into_raw(Box::new(Begin { routine, argument, start }));
    let result = create(begin.cast());
    if result != 0 {
        // SAFETY: no thread was made to take it.
        drop(unsafe { Box::from_raw(begin) });
    }
    result
}

/// Forwards to the C library's function of this name.
///
/// # Safety
/// As that function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    static REAL: Other = Other::new();
    type Create = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Routine, *mut c_void) -> c_int;
    let Some(address) = REAL.get(|| next(c"pthread_create", c"")) else { return libc::EAGAIN };
    // SAFETY: the C library's function of this name has this type.
    let real: Create = unsafe { core::mem::transmute(address) };
    // SAFETY: forwarded from the caller; run takes the box.
    started(routine, argument, |begin| unsafe { real(thread, attributes, run, begin) })
}

/// Forwards to the C library's function of this name.
///
/// # Safety
/// As that function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(thread: *mut pthread_t, routine: C11Routine, argument: *mut c_void) -> c_int {
    static REAL: Other = Other::new();
    type Create = unsafe extern "C" fn(*mut pthread_t, C11Routine, *mut c_void) -> c_int;
    /// `thrd_error`.
    const ERROR: c_int = 2;
    let Some(address) = REAL.get(|| next(c"thrd_create", c"")) else { return ERROR };
    // SAFETY: the C library's function of this name has this type.
    let real: Create = unsafe { core::mem::transmute(address) };
    // SAFETY: forwarded from the caller; run_c11 takes the box.
    started(routine, argument, |begin| unsafe { real(thread, run_c11, begin) })
}

macro_rules! joins {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {$(
        /// Forwards to the C library's function of this name. It may be cancelled.
        ///
        /// # Safety
        /// As that function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(thread: pthread_t, $($arg: $ty),*) -> c_int {
            static REAL: Other = Other::new();
            const NAME: &core::ffi::CStr = match core::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let Some(address) = REAL.get(|| next(NAME, c"")) else { return libc::ESRCH };
            // SAFETY: the C library's function of this name has this type.
            let real: unsafe extern "C-unwind" fn(pthread_t, $($ty),*) -> c_int = unsafe { core::mem::transmute(address) };
            // SAFETY: forwarded from the caller.
            let answer = unsafe { real(thread, $($arg),*) };
            if answer == 0 {
                edge(thread | END, true);
            }
            answer
        }
    )*};
}

joins! {
    pthread_join(result: *mut *mut c_void);
    pthread_tryjoin_np(result: *mut *mut c_void);
    pthread_timedjoin_np(result: *mut *mut c_void, until: *const timespec);
    pthread_clockjoin_np(result: *mut *mut c_void, clock: clockid_t, until: *const timespec);
    thrd_join(result: *mut c_int);
}

thread_local! {
    /// What this thread runs once, if it is the first to come.
    static ONCE: Cell<Option<(*mut c_int, Once)>> = const { Cell::new(None) };
}

extern "C-unwind" fn run_once() {
    if let Some((control, call)) = ONCE.take() {
        call();
        released(control);
    }
}

fn once(control: *mut c_int, call: Once, real: impl FnOnce(Once) -> c_int) -> c_int {
    ONCE.set(Some((control, call)));
    let answer = real(run_once);
    ONCE.set(None);
    acquired(control);
    answer
}

/// Forwards to the C library's function of this name.
///
/// # Safety
/// As that function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_once(control: *mut c_int, call: Once) -> c_int {
    static REAL: Other = Other::new();
    let Some(address) = REAL.get(|| next(c"pthread_once", c"")) else { return libc::ENOSYS };
    // SAFETY: the C library's function of this name has this type.
    let real: unsafe extern "C-unwind" fn(*mut c_int, Once) -> c_int = unsafe { core::mem::transmute(address) };
    // SAFETY: forwarded from the caller.
    once(control, call, |run| unsafe { real(control, run) })
}

/// Forwards to the C library's function of this name.
///
/// # Safety
/// As that function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn call_once(control: *mut c_int, call: Once) {
    static REAL: Other = Other::new();
    let Some(address) = REAL.get(|| next(c"call_once", c"")) else { return };
    // SAFETY: the C library's function of this name has this type.
    let real: unsafe extern "C-unwind" fn(*mut c_int, Once) = unsafe { core::mem::transmute(address) };
    once(control, call, |run| {
        // SAFETY: forwarded from the caller.
        unsafe { real(control, run) };
        0
    });
}
