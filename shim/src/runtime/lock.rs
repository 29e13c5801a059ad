//! The one lock of the shim: held for the few dozen nanoseconds in which an op gets its place in
//! the order, never across a real call.
//!
//! Owns a mutex that notices when its owner was killed (`pthread_cancel`, a thread ended by a raw
//! `exit` system call). The standard mutex cannot: every other thread would wait forever, and the
//! shim promises that it never hangs the program.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::runtime::thread_state;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// A value behind the lock.
pub struct Lock<T> {
    state: AtomicU32,
    owner: AtomicI32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one reference at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The owner of the lock died while it held it: what it guards may be half changed.
#[derive(Debug)]
pub struct OwnerDied;

/// Kernel id of this thread, cached. After a fork the child's main thread has a stale one: see
/// [`forget_tid`].
#[inline]
pub fn tid() -> i32 {
    thread_state::with(|l| {
        if l.tid.get() == 0 {
            // SAFETY: gettid has no preconditions.
            l.tid.set(unsafe { libc::syscall(libc::SYS_gettid) } as i32);
        }
        l.tid.get()
    })
}

/// Drops the cached id: for the child after a fork.
pub fn forget_tid() {
    thread_state::with(|l| l.tid.set(0));
}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self { state: AtomicU32::new(FREE), owner: AtomicI32::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock.
    #[inline]
    pub fn lock(&self) -> Result<Held<'_, T>, OwnerDied> {
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait()?;
        }
        self.owner.store(tid(), Ordering::Relaxed);
        Ok(Held { lock: self })
    }

    #[cold]
    fn wait(&self) -> Result<(), OwnerDied> {
        for _ in 0..100 {
            if self.state.load(Ordering::Relaxed) == FREE
                && self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let mut patience_left = 50;
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            let patience = libc::timespec { tv_sec: 0, tv_nsec: 200_000_000 };
            // SAFETY: the futex word lives as long as self; the timeout is a valid timespec.
            let r = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.state.as_ptr(),
                    libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                    CONTENDED,
                    &raw const patience,
                )
            };
            // SAFETY: errno of this thread always exists.
            let timed_out = r != 0 && unsafe { *libc::__errno_location() } == libc::ETIMEDOUT;
            if timed_out && self.owner_is_dead() {
                return Err(OwnerDied);
            }
            // No live thread takes ten seconds to store its id.
            patience_left -= i32::from(timed_out && self.owner.load(Ordering::Relaxed) == 0);
            if patience_left <= 0 {
                return Err(OwnerDied);
            }
        }
        Ok(())
    }

    fn owner_is_dead(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        // SAFETY: signal 0 only asks whether the thread exists.
        let r = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), owner, 0) };
        // SAFETY: errno of this thread always exists.
        owner != 0 && r != 0 && unsafe { *libc::__errno_location() } == libc::ESRCH
    }
}

/// The lock is held as long as this lives.
pub struct Held<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and self is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Otherwise the next owner, held up before it has stored its id, would pass for this
        // thread, which may have ended by then.
        self.lock.owner.store(0, Ordering::Relaxed);
        if self.lock.state.swap(FREE, Ordering::Release) == CONTENDED {
            // SAFETY: the futex word lives as long as the lock.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.lock.state.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    1,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn sixteen_threads_lose_no_increment() {
        let lock = Arc::new(Lock::new(0_u64));
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let lock = Arc::clone(&lock);
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        *lock.lock().expect("owner lives") += 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().expect("thread"));
        assert_eq!(*lock.lock().expect("owner lives"), 320_000);
    }

    #[test]
    fn a_dead_owner_is_noticed() {
        let lock = Arc::new(Lock::new(()));
        let theirs = Arc::clone(&lock);
        std::thread::spawn(move || std::mem::forget(theirs.lock().expect("free"))).join().expect("thread");
        assert!(lock.lock().is_err());
    }
}
