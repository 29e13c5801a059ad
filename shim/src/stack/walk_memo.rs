//! What earlier walks of each thread have read: whoever reads the same again need not walk.
//!
//! Owns the places where it is kept, one for each thread, and the edges that both kinds of walks
//! keep ([`crate::stack::native::walk_tree`] for native frames, [`crate::stack::python::walk_chains`] for Python's).
//!
//! # Why that is a walk
//!
//! A walk is a function of the registers that it starts with, of the words that it reads, in the
//! order in which it reads them, and of rules that stay until they are forgotten (an epoch of its
//! own). Where the next word lies follows from those before. So a walk is kept as a path: at each
//! place the word that was read there. Whoever starts alike, reads word after word where the path
//! says, and finds each as it was, has done all that the walk would have read, in its order, and
//! gets what the walk got: the number of the path, which stands for its frames. A word that differs
//! may be known from another walk (an edge leads on to its path); if it is not, the walk is done as
//! if nothing had been kept, and its path is added from there on. It is as safe as the walk:
//! nothing is read that it would not read.
//!
//! Numbers are never given out again, so a path that was thrown away and is met again is another
//! one: what refers to numbers needs no clearing.
//!
//! Walks are kept in memory mapped for them, not with the thread: thread-local memory comes out of
//! small stacks, and nothing has to be given back when a thread ends. Whoever finds its place busy
//! (a signal in the middle of a walk) does without. A place that is full is emptied.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::native::{Tree, thread_pointer};
use super::python::Chains;

/// Threads whose walks are kept.
const SLOTS: usize = 128;
/// Places that a thread may use.
const PROBES: usize = 8;

/// How a walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Frames written. None, although there are some, when the walk was known.
    pub len: usize,
    /// What stands for these frames, in this thread or another: 0 for no frames, `None` when the
    /// walk could not be kept.
    pub id: Option<u32>,
}

impl Found {
    /// No frames.
    pub const NOTHING: Self = Self { len: 0, id: Some(0) };

    /// Whether there are frames that were not written.
    pub fn is_known(self) -> bool {
        self.len == 0 && self.id.is_some_and(|id| id != 0)
    }

    /// Whether there are frames.
    pub fn has_frames(self) -> bool {
        self.len > 0 || self.is_known()
    }
}

/// A thread's walks. All zeros: none.
pub struct Kept {
    /// Of native frames.
    pub native: Tree,
    /// Of Python's.
    pub python: Chains,
}

struct Slot {
    busy: AtomicBool,
    /// Thread pointer of the thread whose walks these are; 0: nobody's.
    owner: AtomicU64,
    kept: AtomicPtr<Kept>,
}

static SLOT: [Slot; SLOTS] = [const {
    Slot { busy: AtomicBool::new(false), owner: AtomicU64::new(0), kept: AtomicPtr::new(core::ptr::null_mut()) }
}; SLOTS];

/// The calling thread's walks.
pub struct Memo {
    busy: &'static AtomicBool,
    /// What is kept.
    pub kept: &'static mut Kept,
}

impl Memo {
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
        // SAFETY: mapped for ever, zeros are valid; we have set `busy`, and clear it when the only
        // reference is gone.
        let kept = unsafe { &mut *kept };
        if slot.owner.swap(thread, Ordering::Relaxed) != thread {
            kept.native.clear();
            kept.python.clear();
        }
        Some(Self { busy: &slot.busy, kept })
    }
}

impl Drop for Memo {
    #[inline]
    fn drop(&mut self) {
        self.busy.store(false, Ordering::Release);
    }
}

/// Fresh memory for a thread's walks, or null. What is not used of it is none.
#[cold]
fn map() -> *mut Kept {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: errno is the thread's own; a fresh anonymous mapping.
    unsafe {
        let errno = *libc::__errno_location();
        let at = libc::mmap(core::ptr::null_mut(), size_of::<Kept>(), access, kind, -1, 0);
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

/// A number that was never given out; `None` when there are no more.
pub fn new_id() -> Option<u32> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| last.checked_add(1)).ok().map(|last| last + 1)
}

/// From a place on a path, with a word that is not the one on the path, to another path.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Edge {
    value: u64,
    from: u16,
    to: [u16; 2],
    generation: u16,
}

/// Homes of edges, at first and at most, as powers of two: few stacks shall not lie on many pages.
const FIRST_BITS: u32 = 8;
const MOST_BITS: u32 = 13;
/// Edges that have the same home at most.
const NEAR: usize = 8;

/// Edges by where they begin. All zeros: none, once cleared.
pub struct Edges {
    generation: u16,
    bits: u32,
    full: bool,
    table: [Edge; (1 << MOST_BITS) + NEAR],
}

impl Edges {
    #[inline(always)]
    fn home(&self, from: u16, value: u64) -> usize {
        let mixed = (value ^ u64::from(from) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - self.bits)) as usize
    }

    /// Where the edge leads, if there is one.
    #[inline(always)]
    pub fn get(&self, from: u16, value: u64) -> Option<[u16; 2]> {
        let home = self.home(from, value);
        for edge in &self.table[home..home + NEAR] {
            if edge.generation != self.generation {
                break;
            }
            if edge.value == value && edge.from == from {
                return Some(edge.to);
            }
        }
        None
    }

    /// Adds an edge, unless there is no room: there is more once it is cleared.
    pub fn put(&mut self, from: u16, value: u64, to: [u16; 2]) -> Option<()> {
        let home = self.home(from, value);
        let generation = self.generation;
        let Some(free) = self.table[home..home + NEAR].iter_mut().find(|edge| edge.generation != generation) else {
            self.full = true;
            return None;
        };
        *free = Edge { value, from, to, generation };
        Some(())
    }

    /// Whether [`Edges::clear`] was ever called.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.generation == 0
    }

    /// Forgets all edges.
    pub fn clear(&mut self) {
        self.bits = (self.bits + u32::from(core::mem::take(&mut self.full))).clamp(FIRST_BITS, MOST_BITS);
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            // Those of this generation's last time are still there.
            self.table.fill(Edge { value: 0, from: 0, to: [0; 2], generation: 0 });
            self.generation = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_found_until_they_are_cleared_and_then_there_is_more_room() {
        // SAFETY: zeros are valid.
        let mut edges: Box<Edges> = unsafe { Box::new_zeroed().assume_init() };
        assert!(edges.is_new());
        let mut room = 0;
        loop {
            edges.clear();
            let put = (0..60_000).take_while(|n| edges.put(*n, u64::from(*n) / 3, [*n, 7]).is_some()).count();
            assert!(
                (0..put as u16)
                    .all(|n| edges.get(n, u64::from(n) / 3) == Some([n, 7]) && edges.get(n, 1 << 40).is_none())
            );
            assert_eq!(edges.get(put as u16, put as u64 / 3), None);
            if put <= room {
                break;
            }
            room = put;
        }
        assert!(room > 2000, "{room} edges");
        // Generations come round.
        (0..u32::from(u16::MAX) + 2).for_each(|_| edges.clear());
        assert!((0..60_000).all(|n| edges.get(n, u64::from(n) / 3).is_none()));
    }
}
