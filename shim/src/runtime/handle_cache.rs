//! What one thread remembers of the CUDA handles that it used last.
//!
//! Owns the cache of one kind of handle, and the counter that invalidates all caches of all threads
//! when any handle ends. A look-up in a shared table costs two locked instructions; this costs
//! none. The tables themselves are in `crate::handles`.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rises whenever a handle ends, so that no thread goes on with what it remembers of handles.
#[unsafe(link_section = "streamsan_state")]
static ENDED: AtomicU32 = AtomicU32::new(1);

/// Handles that one thread used last, with their ids. All zeros remembers nothing: [`generation`]
/// is never 0.
pub struct HandleCache<const SLOTS: usize> {
    /// Handle, generation then, id.
    entries: [Cell<(u64, u32, u32)>; SLOTS],
}

impl<const SLOTS: usize> HandleCache<SLOTS> {
    fn slot(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % SLOTS
    }

    /// The id of a handle, if this thread remembers it and no handle has ended since.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u32> {
        let (known, generation, id) = self.entries[Self::slot(key)].get();
        (known == key && generation == ENDED.load(Ordering::Acquire)).then_some(id)
    }

    /// Remembers an id. `generation`: [`generation`] as it was before the table was asked.
    pub fn put(&self, key: u64, id: u32, generation: u32) {
        self.entries[Self::slot(key)].set((key, generation, id));
    }
}

/// Some handle has ended, or all have (in the child after a fork): its value may come back for
/// another object.
pub fn invalidate() {
    ENDED.fetch_add(1, Ordering::AcqRel);
}

/// Counts the endings of handles: what was remembered under another value may be stale.
#[inline]
pub fn generation() -> u32 {
    ENDED.load(Ordering::Acquire)
}
