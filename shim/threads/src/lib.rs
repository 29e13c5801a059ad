//! The synchronisation of host threads, seen by interposition: loaded beside the shim for
//! `--host-order threads` only, so that programs checked without it run the C library's own
//! functions.
//!
//! Owns the wrappers of pthread creation, joining, mutexes, read-write locks, condition variables,
//! semaphores and barriers. Each calls the real function and reports to the shim what was
//! released before it, or acquired after it. Does not decide what is worth an op: the shim does
//! (`shim/src/libraries/host_threads.rs`). Nothing here allocates (but for the start of a thread),
//! locks or fails: without the shim the wrappers only forward.
//!
//! An object is named by its address. The start and the end of a thread are objects of their own,
//! with numbers that no address has.

#![warn(unreachable_pub)]

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use libc::{
    clockid_t, pthread_attr_t, pthread_barrier_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_t, sem_t,
    timespec,
};
// Defines the system calls that Rust's standard library makes here: see its `calls`.
use signal_free as _;

/// The shim's entry: an object, and whether it was acquired (or released).
type Edge = unsafe extern "C" fn(u64, c_int);
/// The shim's entry for new threads: the object that their start acquires.
type Birth = unsafe extern "C" fn(u64);

const START: u64 = 1 << 62;
const END: u64 = 1 << 63;

/// A function of another library, found when it is first used.
struct Other {
    address: AtomicPtr<c_void>,
}

const ABSENT: *mut c_void = core::ptr::without_provenance_mut(1);

impl Other {
    const fn new() -> Self {
        Self { address: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Its address, looked up with `find` the first time.
    #[inline]
    fn get(&self, find: impl FnOnce() -> *mut c_void) -> Option<*mut c_void> {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return (known != ABSENT).then_some(known);
        }
        let found = find();
        self.address.store(if found.is_null() { ABSENT } else { found }, Ordering::Relaxed);
        (!found.is_null()).then_some(found)
    }
}

fn next(name: &CStr, version: &CStr) -> *mut c_void {
    // SAFETY: RTLD_NEXT and strings that end in NUL are what both take. Condition variables exist
    // in two versions, of which the plain look-up gives the old one with some C libraries.
    unsafe {
        let versioned = if version.is_empty() {
            core::ptr::null_mut()
        } else {
            libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr())
        };
        if versioned.is_null() { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } else { versioned }
    }
}

fn shim(name: &CStr) -> *mut c_void {
    // SAFETY: as above. Preloaded libraries are in the global scope.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

fn edge(object: u64, acquired: bool) {
    static EDGE: Other = Other::new();
    if let Some(address) = EDGE.get(|| shim(c"streamsan_host_edge")) {
        // SAFETY: the shim's function of this name has this type.
        let report: Edge = unsafe { core::mem::transmute(address) };
        // SAFETY: it takes any numbers.
        unsafe { report(object, c_int::from(acquired)) };
    }
}

fn released<T>(object: *const T) {
    edge(object as u64, false);
}

fn acquired<T>(object: *const T) {
    edge(object as u64, true);
}

/// Defines wrappers: `before` runs before the real function, `after` when it has answered `Ok`.
macro_rules! wrappers {
    ($($name:ident($($arg:ident: $ty:ty),*) $version:literal, before $before:block after $after:block;)*) => {$(
        /// Forwards to the C library's function of this name.
        ///
        /// # Safety
        /// As that function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            static REAL: Other = Other::new();
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let Some(address) = REAL.get(|| next(NAME, $version)) else { return libc::ENOSYS };
            // SAFETY: the C library's function of this name has this type.
            let real: unsafe extern "C" fn($($ty),*) -> c_int = unsafe { core::mem::transmute(address) };
            $before
            // SAFETY: forwarded from the caller.
            let result = unsafe { real($($arg),*) };
            // A mutex whose owner died is acquired too; a barrier lets one of its threads know that
            // it is the last.
            if result == 0 || result == libc::EOWNERDEAD || result == libc::PTHREAD_BARRIER_SERIAL_THREAD {
                $after
            }
            result
        }
    )*};
}

wrappers! {
    pthread_mutex_lock(m: *mut pthread_mutex_t) c"", before {} after { acquired(m) };
    pthread_mutex_trylock(m: *mut pthread_mutex_t) c"", before {} after { acquired(m) };
    pthread_mutex_timedlock(m: *mut pthread_mutex_t, until: *const timespec) c"", before {} after { acquired(m) };
    pthread_mutex_unlock(m: *mut pthread_mutex_t) c"", before { released(m) } after {};
    pthread_rwlock_rdlock(l: *mut pthread_rwlock_t) c"", before {} after { acquired(l) };
    pthread_rwlock_tryrdlock(l: *mut pthread_rwlock_t) c"", before {} after { acquired(l) };
    pthread_rwlock_wrlock(l: *mut pthread_rwlock_t) c"", before {} after { acquired(l) };
    pthread_rwlock_trywrlock(l: *mut pthread_rwlock_t) c"", before {} after { acquired(l) };
    pthread_rwlock_unlock(l: *mut pthread_rwlock_t) c"", before { released(l) } after {};
    pthread_cond_wait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t) c"GLIBC_2.3.2",
        before { released(m) } after { acquired(m); acquired(c) };
    pthread_cond_signal(c: *mut pthread_cond_t) c"GLIBC_2.3.2", before { released(c) } after {};
    pthread_cond_broadcast(c: *mut pthread_cond_t) c"GLIBC_2.3.2", before { released(c) } after {};
    sem_post(s: *mut sem_t) c"", before { released(s) } after {};
    sem_wait(s: *mut sem_t) c"", before {} after { acquired(s) };
    sem_trywait(s: *mut sem_t) c"", before {} after { acquired(s) };
    sem_timedwait(s: *mut sem_t, until: *const timespec) c"", before {} after { acquired(s) };
    pthread_barrier_wait(b: *mut pthread_barrier_t) c"", before { released(b) } after { acquired(b) };
}

/// Waits that may run out of time take the mutex again whatever they answer.
macro_rules! timed_waits {
    ($($name:ident($($extra:ident: $extra_ty:ty),*) $version:literal;)*) => {$(
        /// Forwards to the C library's function of this name.
        ///
        /// # Safety
        /// As that function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, $($extra: $extra_ty),*) -> c_int {
            static REAL: Other = Other::new();
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let Some(address) = REAL.get(|| next(NAME, $version)) else { return libc::ENOSYS };
            type Real = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t, $($extra_ty),*) -> c_int;
            // SAFETY: the C library's function of this name has this type.
            let real: Real = unsafe { core::mem::transmute(address) };
            released(m);
            // SAFETY: forwarded from the caller.
            let result = unsafe { real(c, m, $($extra),*) };
            if matches!(result, 0 | libc::ETIMEDOUT | libc::EOWNERDEAD) {
                acquired(m);
            }
            if result == 0 {
                acquired(c);
            }
            result
        }
    )*};
}

timed_waits! {
    pthread_cond_timedwait(until: *const timespec) c"GLIBC_2.3.2";
    pthread_cond_clockwait(clock: clockid_t, until: *const timespec) c"";
}

type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

/// What a new thread is to run.
struct Begin {
    routine: Routine,
    argument: *mut c_void,
    start: u64,
}

extern "C" fn run(begin: *mut c_void) -> *mut c_void {
    // SAFETY: the box that pthread_create gave away, once.
    let begin = unsafe { Box::from_raw(begin.cast::<Begin>()) };
    let Begin { routine, argument, start } = *begin;
    static BIRTH: Other = Other::new();
    if let Some(address) = BIRTH.get(|| shim(c"streamsan_host_thread")) {
        // SAFETY: the shim's function of this name has this type, and takes any number.
        unsafe { core::mem::transmute::<*mut c_void, Birth>(address)(start) };
    }
    let result = routine(argument);
    ended();
    result
}

fn ended() {
    // SAFETY: asks for the calling thread.
    edge(unsafe { libc::pthread_self() } | END, false);
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
    static STARTED: AtomicU64 = AtomicU64::new(0);
    type Create = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Routine, *mut c_void) -> c_int;
    let Some(address) = REAL.get(|| next(c"pthread_create", c"")) else { return libc::EAGAIN };
    // SAFETY: the C library's function of this name has this type.
    let real: Create = unsafe { core::mem::transmute(address) };
    let start = START | STARTED.fetch_add(1, Ordering::Relaxed);
    edge(start, false);
    let begin = Box::into_raw(Box::new(Begin { routine, argument, start }));
    // SAFETY: forwarded from the caller; run takes the box.
    let result = unsafe { real(thread, attributes, run, begin.cast()) };
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
pub unsafe extern "C" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    static REAL: Other = Other::new();
    type Join = unsafe extern "C" fn(pthread_t, *mut *mut c_void) -> c_int;
    let Some(address) = REAL.get(|| next(c"pthread_join", c"")) else { return libc::ESRCH };
    // SAFETY: the C library's function of this name has this type.
    let real: Join = unsafe { core::mem::transmute(address) };
    // SAFETY: forwarded from the caller.
    let answer = unsafe { real(thread, result) };
    if answer == 0 {
        edge(thread | END, true);
    }
    answer
}
