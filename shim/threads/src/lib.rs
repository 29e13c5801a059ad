//! The synchronisation of host threads, seen by interposition: loaded beside the shim for
//! `--host-order threads` only, so that programs checked without it run the C library's own
//! functions.
//!
//! Owns the wrappers of mutexes, spin locks, read-write locks, condition variables, semaphores and
//! barriers, of pthreads and of C11. Each calls the real function and reports to the shim what was
//! released before it, or acquired after it. The starts and ends of threads, and what runs once,
//! are in [`threads`]. Does not decide what is worth an op: the shim does
//! (`shim/src/libraries/host_threads.rs`). Nothing here allocates (but for the start of a thread),
//! locks or fails: without the shim the wrappers only forward.
//!
//! An object is named by its address. The C library's functions of C11 do not call those of
//! pthreads by their exported names, so they have wrappers of their own.

#![warn(unreachable_pub)]

pub mod threads;

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    clockid_t, pthread_barrier_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_spinlock_t, sem_t,
    timespec,
};
// Defines the system calls that Rust's standard library makes here: see its `calls`.
use signal_free as _;

/// The shim's entry: an object, and whether it was acquired (or released).
type Edge = unsafe extern "C" fn(u64, c_int);
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

/// A mutex of C11.
#[repr(C)]
pub struct Mtx {
    _opaque: [u8; 0],
}

/// A condition variable of C11.
#[repr(C)]
pub struct Cnd {
    _opaque: [u8; 0],
}

/// What C11's functions answer where the time ran out (`thrd_timedout`).
const C11_TIMED_OUT: c_int = 4;

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
    pthread_mutex_clocklock(m: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) c"",
        before {} after { acquired(m) };
    pthread_mutex_unlock(m: *mut pthread_mutex_t) c"", before { released(m) } after {};
    pthread_rwlock_rdlock(l: *mut pthread_rwlock_t) c"", before {} after { acquired(l) };
    pthread_rwlock_tryrdlock(l: *mut pthread_rwlock_t) c"", before {} after { acquired(l) };
    pthread_rwlock_wrlock(l: *mut pthread_rwlock_t) c"", before {} after { acquired(l) };
    pthread_rwlock_trywrlock(l: *mut pthread_rwlock_t) c"", before {} after { acquired(l) };
    pthread_rwlock_timedrdlock(l: *mut pthread_rwlock_t, until: *const timespec) c"", before {} after { acquired(l) };
    pthread_rwlock_timedwrlock(l: *mut pthread_rwlock_t, until: *const timespec) c"", before {} after { acquired(l) };
    pthread_rwlock_clockrdlock(l: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) c"",
        before {} after { acquired(l) };
    pthread_rwlock_clockwrlock(l: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) c"",
        before {} after { acquired(l) };
    pthread_rwlock_unlock(l: *mut pthread_rwlock_t) c"", before { released(l) } after {};
    pthread_cond_wait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t) c"GLIBC_2.3.2",
        before { released(m) } after { acquired(m); acquired(c) };
    pthread_cond_signal(c: *mut pthread_cond_t) c"GLIBC_2.3.2", before { released(c) } after {};
    pthread_cond_broadcast(c: *mut pthread_cond_t) c"GLIBC_2.3.2", before { released(c) } after {};
    pthread_spin_lock(l: *mut pthread_spinlock_t) c"", before {} after { acquired(l) };
    pthread_spin_trylock(l: *mut pthread_spinlock_t) c"", before {} after { acquired(l) };
    pthread_spin_unlock(l: *mut pthread_spinlock_t) c"", before { released(l) } after {};
    sem_post(s: *mut sem_t) c"", before { released(s) } after {};
    sem_wait(s: *mut sem_t) c"", before {} after { acquired(s) };
    sem_trywait(s: *mut sem_t) c"", before {} after { acquired(s) };
    sem_timedwait(s: *mut sem_t, until: *const timespec) c"", before {} after { acquired(s) };
    sem_clockwait(s: *mut sem_t, clock: clockid_t, until: *const timespec) c"", before {} after { acquired(s) };
    mtx_lock(m: *mut Mtx) c"", before {} after { acquired(m) };
    mtx_trylock(m: *mut Mtx) c"", before {} after { acquired(m) };
    mtx_timedlock(m: *mut Mtx, until: *const timespec) c"", before {} after { acquired(m) };
    mtx_unlock(m: *mut Mtx) c"", before { released(m) } after {};
    cnd_wait(c: *mut Cnd, m: *mut Mtx) c"", before { released(m) } after { acquired(m); acquired(c) };
    cnd_signal(c: *mut Cnd) c"", before { released(c) } after {};
    cnd_broadcast(c: *mut Cnd) c"", before { released(c) } after {};
    pthread_barrier_wait(b: *mut pthread_barrier_t) c"", before { released(b) } after { acquired(b) };
}

/// Waits that may run out of time take the mutex again whatever they answer.
macro_rules! timed_waits {
    ($($name:ident<$cond:ty, $mutex:ty>($($extra:ident: $extra_ty:ty),*) $version:literal $timed_out:path;)*) => {$(
        /// Forwards to the C library's function of this name.
        ///
        /// # Safety
        /// As that function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(c: *mut $cond, m: *mut $mutex, $($extra: $extra_ty),*) -> c_int {
            static REAL: Other = Other::new();
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let Some(address) = REAL.get(|| next(NAME, $version)) else { return libc::ENOSYS };
            type Real = unsafe extern "C" fn(*mut $cond, *mut $mutex, $($extra_ty),*) -> c_int;
            // SAFETY: the C library's function of this name has this type.
            let real: Real = unsafe { core::mem::transmute(address) };
            released(m);
            // SAFETY: forwarded from the caller.
            let result = unsafe { real(c, m, $($extra),*) };
            if matches!(result, 0 | $timed_out | libc::EOWNERDEAD) {
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
    pthread_cond_timedwait<pthread_cond_t, pthread_mutex_t>(until: *const timespec) c"GLIBC_2.3.2" libc::ETIMEDOUT;
    pthread_cond_clockwait<pthread_cond_t, pthread_mutex_t>(clock: clockid_t, until: *const timespec) c"" libc::ETIMEDOUT;
    cnd_timedwait<Cnd, Mtx>(until: *const timespec) c"" C11_TIMED_OUT;
}
