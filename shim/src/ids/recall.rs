//! The id of a handle by way of what the calling thread remembers.
//!
//! Owns the order of the two look-ups: the thread's cache first, the shared table second. Does not
//! define ids.

use crate::runtime::handle_cache::{self, HandleCache, Remembered};
use crate::runtime::thread_state::{self, ThreadState};

/// Looks a handle up in the thread's cache, then in the table.
#[inline(always)]
pub(super) fn recall<const SLOTS: usize>(
    recent: impl Fn(&ThreadState) -> &HandleCache<SLOTS>,
    kind: Remembered,
    key: u64,
    table: impl FnOnce() -> Option<u32>,
) -> Option<u32> {
    thread_state::with(|l| {
        let recent = recent(l);
        recent.get(kind, key).or_else(|| look_up(recent, kind, key, table))
    })
}

#[cold]
#[inline(never)]
fn look_up<const SLOTS: usize>(
    recent: &HandleCache<SLOTS>,
    kind: Remembered,
    key: u64,
    table: impl FnOnce() -> Option<u32>,
) -> Option<u32> {
    let generation = handle_cache::generation(kind, key);
    let id = table()?;
    recent.put(key, id, generation);
    Some(id)
}
