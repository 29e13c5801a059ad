//! The last walk of each thread, so that the next one need not do it all again.
//!
//! Owns the walks that are kept and the proof that a part of one still holds. Most stacks of a thread share their outer part
//! with the stack before: the loop, the module, the operator that are still running. A walk that gets to a frame of the last
//! walk (same code address, same stack pointer, same frame pointer) only has to look whether the words on the stack that led
//! outwards from there are what they were: the return address and the saved frame pointer of each frame. That is as good as
//! walking (the same words lead to the same frames), but needs no rule, and its loads do not wait for one another.
//!
//! Walks are kept in a static table, not with the thread: thread-local memory comes out of small stacks, and nothing has to be
//! given back when a thread ends. Whoever finds a slot busy (a signal in the middle of a walk) does without.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::memory::Window;
use super::{Registers, cache};

/// Frames kept: the longest walk, with room to put frames before and behind those that are kept in place.
const CAPACITY: usize = 2 * super::MAX;
/// Threads whose walks are kept.
const SLOTS: usize = 32;
/// Slots that a thread may use.
const PROBES: usize = 4;

/// A frame of a walk, and where the words came from that led to it.
#[derive(Clone, Copy)]
struct Step {
    /// The return address minus one, as [`Registers::lookup`]; its word lies below `sp`.
    lookup: u64,
    sp: u64,
    fp: u64,
    /// Where `fp` was loaded from; 0: the inner frame's.
    fp_slot: u64,
}

/// Given to [`Memo::note`] for a frame that was found in another way than by a plain rule (through a signal, say).
pub const NOT_PLAIN: u64 = u64::MAX;

const NOTHING: Step = Step { lookup: 0, sp: 0, fp: 0, fp_slot: 0 };

struct Slot {
    busy: AtomicBool,
    /// Thread pointer of the thread whose walk this is; 0: nobody's.
    owner: AtomicU64,
    walk: UnsafeCell<Walk>,
}

// SAFETY: `walk` is touched only by whoever has set `busy`.
unsafe impl Sync for Slot {}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        busy: AtomicBool::new(false),
        owner: AtomicU64::new(0),
        walk: UnsafeCell::new(Walk {
            epoch: 0,
            to_python: false,
            start: 0,
            end: 0,
            steps: [NOTHING; CAPACITY],
            inner: [NOTHING; super::MAX],
        }),
    }
}; SLOTS];

/// One walk: `steps[start..end]`, innermost frame first, stack pointers rising.
struct Walk {
    epoch: u64,
    /// It ended at Python's interpreter, if it got there.
    to_python: bool,
    start: usize,
    end: usize,
    steps: [Step; CAPACITY],
    /// Frames of a new walk before it has met this one: they are put in place when all are known.
    inner: [Step; super::MAX],
}

/// The calling thread's last walk, to be compared with and replaced by a new one.
pub struct Memo {
    busy: &'static AtomicBool,
    walk: &'static mut Walk,
    /// Next frame of the last walk that the new one may meet.
    next: usize,
    inner_len: usize,
    /// The new walk has met the last one, at `next`, and is going on behind it.
    met: bool,
    /// Nothing more is to be kept of the new walk.
    full: bool,
}

impl Memo {
    /// `None`: do without.
    #[inline]
    pub fn take(thread: u64, to_python: bool) -> Option<Self> {
        let home = (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize;
        let near = |probe: usize| &TABLE[(home + probe) % SLOTS];
        let owned = |owner| (0..PROBES).map(near).find(|slot| slot.owner.load(Ordering::Relaxed) == owner);
        let slot = owned(thread).or_else(|| owned(0)).unwrap_or(near(0));
        if slot.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: we have set `busy`, and clear it when the only reference is gone.
        let walk = unsafe { &mut *slot.walk.get() };
        let is_theirs = slot.owner.swap(thread, Ordering::Relaxed) != thread;
        if is_theirs || walk.epoch != cache::epoch() || walk.to_python != to_python {
            (walk.start, walk.end, walk.epoch, walk.to_python) = (0, 0, cache::epoch(), to_python);
        }
        Some(Self { busy: &slot.busy, next: walk.start, walk, inner_len: 0, met: false, full: false })
    }

    /// The new walk has got to a frame. Writes the frames of the last walk that follow it there, as far as they still hold, to
    /// `out` as return addresses, and gives their number and the outermost frame reached.
    #[inline]
    pub fn meet(&mut self, at: Registers, window: &mut Window, out: &mut [u64]) -> Option<(usize, Registers)> {
        if self.met {
            return None;
        }
        let walk = &mut *self.walk;
        while self.next < walk.end && walk.steps[self.next].sp < at.sp {
            self.next += 1;
        }
        let here = walk.steps[..walk.end].get(self.next)?;
        if here.sp != at.sp || here.lookup != at.lookup || here.fp != at.fp {
            return None;
        }
        self.met = true;
        let mut last = *here;
        let mut len = 0;
        for step in &walk.steps[self.next + 1..walk.end] {
            if len == out.len()
                || window.read(step.sp - 8) != Some(step.lookup + 1)
                || step.fp_slot != 0 && window.read(step.fp_slot) != Some(step.fp)
            {
                break;
            }
            out[len] = step.lookup + 1;
            len += 1;
            last = *step;
        }
        // What does not hold any more is cut off, what follows instead is put behind; what there was no room for may stay.
        if len < out.len() {
            walk.end = self.next + 1 + len;
        }
        self.full = len == out.len();
        Some((len, Registers { lookup: last.lookup, sp: last.sp, fp: last.fp }))
    }

    /// A frame of the new walk, in order. `fp_slot` as in [`Step`]; [`NOT_PLAIN`] when no plain rule led there.
    #[inline]
    pub fn note(&mut self, at: Registers, fp_slot: u64) {
        if self.full {
            return;
        }
        let walk = &mut *self.walk;
        let step = Step { lookup: at.lookup, sp: at.sp, fp: at.fp, fp_slot };
        if fp_slot == NOT_PLAIN {
            // What is kept must lead from frame to frame by two words each: this is where that begins anew.
            (self.full, self.inner_len) = (self.met, 0);
        }
        let (to, len) = if self.met {
            (walk.steps.get_mut(walk.end), &mut walk.end)
        } else {
            (walk.inner.get_mut(self.inner_len), &mut self.inner_len)
        };
        match to {
            Some(to) if !self.full => {
                *to = step;
                *len += 1;
            }
            _ => self.full = true,
        }
    }
}

impl Drop for Memo {
    /// The walk is over: it becomes the last one.
    #[inline]
    fn drop(&mut self) {
        let walk = &mut *self.walk;
        let inner = self.inner_len;
        let kept = if self.met { self.next..walk.end } else { 0..0 };
        if kept.start < inner {
            // No room before what is kept: it moves to the middle.
            let len = kept.len().min(CAPACITY - super::MAX);
            walk.steps.copy_within(kept.start..kept.start + len, super::MAX);
            (walk.start, walk.end) = (super::MAX, super::MAX + len);
        } else {
            (walk.start, walk.end) = (kept.start, kept.end);
        }
        let before = walk.start - inner;
        walk.steps[before..walk.start].copy_from_slice(&walk.inner[..inner]);
        walk.start = before;
        self.busy.store(false, Ordering::Release);
    }
}

/// In the child of a fork: walks that other threads of the parent were in the middle of will never end.
pub fn after_fork_in_child() {
    for slot in &TABLE {
        slot.busy.store(false, Ordering::Relaxed);
        slot.owner.store(0, Ordering::Relaxed);
    }
}
