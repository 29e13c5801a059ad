//! Which stack of the trace a known walk is.
//!
//! Owns one table of a trace, shared by all threads without a lock: from a pair of walk ids, the
//! native and the Python one, to the [`StackId`] that stands for both. Does not define stacks; the
//! log does (`crate::log::stacks`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace::StackId;

/// Which stack a pair of known walks is, native frames and Python's, for all threads: numbers of
/// walks are never given out twice, so nothing is ever forgotten, only pushed out. Of one trace.
/// Entries have two words and no lock: the first is a function of both, so that a half-written
/// entry is none.
#[derive(Clone, Copy)]
pub struct StackIds(&'static [[[AtomicU64; 2]; WAYS]]);

const WAYS: usize = 4;
const SETS: usize = 2048;

impl Default for StackIds {
    fn default() -> Self {
        // A process has one core, a forked child its own: neither ever ends before the process.
        Self(Vec::leak((0..SETS).map(|_| Default::default()).collect()))
    }
}

impl StackIds {
    #[inline]
    fn set(self, walk: u64) -> &'static [[AtomicU64; 2]; WAYS] {
        // Numbers are small at first: few walks lie close together.
        &self.0[((walk >> 32) ^ (walk << 2)) as usize % SETS]
    }

    fn check(walk: u64, id: u64) -> u64 {
        walk ^ id.wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// The stack that a pair of walks is; [`StackId::NONE`] when it is not known.
    #[inline]
    pub fn get(self, walk: u64) -> StackId {
        for [check, id] in self.set(walk) {
            let id = id.load(Relaxed);
            if id != 0 && check.load(Relaxed) == Self::check(walk, id) {
                return StackId(id as u32);
            }
        }
        StackId::NONE
    }

    /// Remembers a pair of walks, in the place of another where there is no room.
    pub fn put(self, walk: u64, id: StackId) {
        let set = self.set(walk);
        let place = set.iter().position(|[_, id]| id.load(Relaxed) == 0).unwrap_or(walk as usize % WAYS);
        let id = u64::from(id.0);
        set[place][1].store(id, Relaxed);
        set[place][0].store(Self::check(walk, id), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_remembered_or_pushed_out() {
        let known = StackIds::default();
        let walk = |n: u32| u64::from(n) << 32 | u64::from(n % 7);
        (1..=100_000).for_each(|n| known.put(walk(n), StackId(n)));
        let found = |n: &u32| known.get(walk(*n)) == StackId(*n);
        assert!((1..=100_000).all(|n| found(&n) || known.get(walk(n)).is_none()), "never another stack");
        assert!((1..=100_000).filter(found).count() > SETS, "most room is used");
        assert!(known.get(walk(100_001)).is_none());
    }
}
