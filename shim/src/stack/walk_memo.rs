//! What the earlier walks of each thread have read: a walk that would read the same again is not
//! made.
//!
//! Owns the slots in which walks are kept, one for each thread: the tree of native walks
//! ([`super::native::walk_tree`]) and the chains of Python's ([`super::python::walk_chains`]).
//!
//! # Why following a path is as good as walking
//!
//! A walk is a function of the registers that it starts with, of the words that it reads, in the
//! order in which it reads them, and of rules that stay until they are forgotten (an epoch of its
//! own). Where the next word lies follows from those before. So a walk is kept as a path: at each
//! place the word that was read there. Take a walk that starts alike, reads word after word where
//! the path says, and finds each as it was. It has done all that the first walk would have read, in
//! its order, and gets what the first walk got: the number of the path, which stands for its
//! frames. A word that differs may be known from another walk (an edge leads on to its path). If it
//! is not, the walk is done as if nothing had been kept, and its path is added from there on.
//! Following a path is as safe as walking: nothing is read that the walk would not read.
//!
//! Numbers are never given out again, so a path that was thrown away and is met again is another
//! one: what refers to numbers needs no clearing.
//!
//! Walks are kept in memory mapped for them, not with the thread: thread-local memory comes out of
//! small stacks, and nothing has to be given back when a thread ends. A capture that finds its slot
//! busy (a signal in the middle of a walk) does without. A slot that is full is emptied.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::native::{WalkTree, thread_pointer};
use super::python::WalkChains;

/// Threads whose walks are kept.
const SLOTS: usize = 128;
/// Places that a thread may use.
const PROBES: usize = 8;

/// A thread's walks. All zeros: none.
pub struct ThreadWalks {
    /// Of native frames.
    pub native: WalkTree,
    /// Of Python's.
    pub python: WalkChains,
}

struct Slot {
    busy: AtomicBool,
    /// Thread pointer of the thread whose walks these are; 0: no thread's.
    owner: AtomicU64,
    kept: AtomicPtr<ThreadWalks>,
}

static SLOT: [Slot; SLOTS] = [const {
    Slot { busy: AtomicBool::new(false), owner: AtomicU64::new(0), kept: AtomicPtr::new(core::ptr::null_mut()) }
}; SLOTS];

/// The calling thread's walks.
pub struct WalkMemo {
    busy: &'static AtomicBool,
    /// What is kept.
    pub kept: &'static mut ThreadWalks,
}

impl WalkMemo {
    /// `None`: do without.
    #[inline]
    pub fn take() -> Option<Self> {
        let thread = thread_pointer();
        let home = (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())) as usize;
        let near = |probe: usize| &SLOT[(home + probe) % SLOTS];
        let owned = |owner| (0..PROBES).map(near).find(|slot| slot.owner.load(Ordering::Relaxed) == owner);
        let slot = owned(thread).or_else(|| owned(0)).unwrap_or(near(0));
        if slot.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let mut kept = slot.kept.load(Ordering::Relaxed);
        if kept.is_null() {
            kept = map();
            if kept.is_null() {
                // Stays busy: there is no memory for it.
                return None;
            }
            slot.kept.store(kept, Ordering::Relaxed);
        }
        // SAFETY: never unmapped, zeros are valid; we have set `busy`, and clear it when the only
        // reference is gone.
        let kept = unsafe { &mut *kept };
        if slot.owner.swap(thread, Ordering::Relaxed) != thread {
            kept.native.clear();
            kept.python.clear();
        }
        Some(Self { busy: &slot.busy, kept })
    }
}

impl Drop for WalkMemo {
    #[inline]
    fn drop(&mut self) {
        self.busy.store(false, Ordering::Release);
    }
}

/// Fresh memory for a thread's walks, or null. What is not used of it is none.
#[cold]
fn map() -> *mut ThreadWalks {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: errno is the thread's own; a fresh anonymous mapping.
    unsafe {
        let errno = *libc::__errno_location();
        let at = libc::mmap(core::ptr::null_mut(), size_of::<ThreadWalks>(), access, kind, -1, 0);
        *libc::__errno_location() = errno;
        if at == libc::MAP_FAILED { core::ptr::null_mut() } else { at.cast() }
    }
}

/// In the child of a fork: walks that other threads of the parent were in the middle of will never
/// end.
pub fn after_fork_in_child() {
    for slot in &SLOT {
        slot.owner.store(0, Ordering::Relaxed);
        slot.busy.store(false, Ordering::Relaxed);
    }
}
