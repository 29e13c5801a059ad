//! What one thread remembers of the CUDA handles that it used last.
//!
//! Owns the cache of one kind of handle, and the counters that invalidate the caches of a kind of
//! all threads when one of its handles ends. A look-up in a shared table costs two locked
//! instructions; this costs none. The tables themselves are in `crate::handles`.
//!
//! A kind has a counter of its own, and events have several: a step of cuDNN's LSTM destroys 800
//! events between 1,700 launches, and with one counter for all handles each of them made the
//! threads forget their streams and kernels.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kinds of handles that are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remembered {
    /// Streams, and the default streams of contexts.
    Streams,
    /// Functions and kernels.
    Kernels,
    /// Contexts.
    Contexts,
    /// Events.
    Events,
}

/// Counters of events, by a hash of the handle.
const EVENT_COUNTERS: usize = 8;

/// How often handles have ended, by kind. None is ever 0. All of it is one line of the cache.
#[repr(C, align(64))]
struct Ended {
    kinds: [AtomicU32; 3],
    events: [AtomicU32; EVENT_COUNTERS],
}

#[unsafe(link_section = "streamsan_state")]
static ENDED: Ended =
    Ended { kinds: [const { AtomicU32::new(1) }; 3], events: [const { AtomicU32::new(1) }; EVENT_COUNTERS] };

#[inline(always)]
fn hashed(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(always)]
fn counter(kind: Remembered, key: u64) -> &'static AtomicU32 {
    match kind {
        Remembered::Events => &ENDED.events[(hashed(key) >> 32) as usize % EVENT_COUNTERS],
        kind => &ENDED.kinds[kind as usize],
    }
}

/// Handles that one thread used last, with their ids. All zeros remembers nothing: [`generation`]
/// is never 0.
pub struct HandleCache<const SLOTS: usize> {
    /// Handle, generation then, id.
    entries: [Cell<(u64, u32, u32)>; SLOTS],
}

impl<const SLOTS: usize> HandleCache<SLOTS> {
    fn slot(key: u64) -> usize {
        (hashed(key) >> 60) as usize % SLOTS
    }

    /// The id of a handle, if this thread remembers it and none that it may have been taken for has
    /// ended since.
    #[inline]
    pub fn get(&self, kind: Remembered, key: u64) -> Option<u32> {
        let (known, generation, id) = self.entries[Self::slot(key)].get();
        (known == key && generation == counter(kind, key).load(Ordering::Acquire)).then_some(id)
    }

    /// Remembers an id. `generation`: [`generation`] as it was before the table was asked.
    pub fn put(&self, key: u64, id: u32, generation: u32) {
        self.entries[Self::slot(key)].set((key, generation, id));
    }
}

/// A handle has ended: its value may come back for another object.
pub fn invalidate(kind: Remembered, key: u64) {
    counter(kind, key).fetch_add(1, Ordering::AcqRel);
}

/// All handles may have ended (with their context, or in the child after a fork).
pub fn invalidate_all() {
    ENDED.kinds.iter().chain(&ENDED.events).for_each(|counter| {
        counter.fetch_add(1, Ordering::AcqRel);
    });
}

/// Counts the endings of handles like this one: what was remembered under another value may be
/// stale.
#[inline]
pub fn generation(kind: Remembered, key: u64) -> u32 {
    counter(kind, key).load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Remembered; 4] = [Remembered::Streams, Remembered::Kernels, Remembered::Contexts, Remembered::Events];

    fn empty() -> HandleCache<16> {
        HandleCache { entries: [const { Cell::new((0, 0, 0)) }; 16] }
    }

    /// The counters are those of the process.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn an_end_is_forgotten_by_its_kind_and_remembered_by_the_others() {
        let _alone = ALONE.lock();
        // Addresses of objects, as handles are, of several sizes.
        for key in (0..4000_u64).map(|n| 0x7f00_1234_0000 + n * (16 << (n % 7))) {
            for kind in KINDS {
                let cache = empty();
                assert_eq!(cache.get(kind, key), None);
                cache.put(key, 7, generation(kind, key));
                assert_eq!(cache.get(kind, key), Some(7));
                for other in KINDS.into_iter().filter(|other| *other != kind) {
                    invalidate(other, key);
                    assert_eq!(cache.get(kind, key), Some(7), "{other:?} is not {kind:?}");
                }
                invalidate(kind, key);
                assert_eq!(cache.get(kind, key), None, "{kind:?} {key:#x} may be another one");
                cache.put(key, 8, generation(kind, key));
                invalidate_all();
                assert_eq!(cache.get(kind, key), None);
            }
        }
    }

    #[test]
    fn most_events_outlive_another() {
        let _alone = ALONE.lock();
        let key = |n: u64| 0x5555_0000_0000 + n * 160;
        let cache = empty();
        let kept = (1..1000)
            .filter(|n| {
                cache.put(key(0), 1, generation(Remembered::Events, key(0)));
                invalidate(Remembered::Events, key(*n));
                cache.get(Remembered::Events, key(0)).is_some()
            })
            .count();
        assert!(kept > 800, "{kept} of 999");
    }

    #[test]
    fn what_was_looked_up_before_the_end_is_not_remembered() {
        let _alone = ALONE.lock();
        let (cache, key) = (empty(), 0x1000);
        let before = generation(Remembered::Streams, key);
        invalidate(Remembered::Streams, key);
        cache.put(key, 3, before);
        assert_eq!(cache.get(Remembered::Streams, key), None);
    }
}
