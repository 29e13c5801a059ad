//! The bounds of all pinned memory, for a test without the lock.
//!
//! Owns two words: most copies are found to have nothing to do with pinned memory by two
//! comparisons. The list of that memory is in [`super::watches`].

use std::sync::atomic::{AtomicU64, Ordering};

use trace::Region;

use super::watches::Watches;

/// Where pinned memory lies, all of it.
static LOWEST: AtomicU64 = AtomicU64::new(u64::MAX);
static HIGHEST: AtomicU64 = AtomicU64::new(0);
/// Where those pieces of it lie that may be tables of pointers.
static TABLES: [AtomicU64; 2] = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];

/// Pinned memory has come or gone.
pub fn note(watches: &Watches) {
    let (start, end) = watches.bounds();
    LOWEST.store(start, Ordering::Relaxed);
    HIGHEST.store(end, Ordering::Relaxed);
    let (start, end) = watches.table_bounds();
    TABLES[0].store(start, Ordering::Relaxed);
    TABLES[1].store(end, Ordering::Relaxed);
}

/// Whether a table of pointers may lie at an address.
#[inline]
pub fn may_hold_table(address: u64) -> bool {
    (TABLES[0].load(Ordering::Relaxed)..TABLES[1].load(Ordering::Relaxed)).contains(&address)
}

/// Where tables of pointers may lie: for tests of many addresses. `None`: there are none.
#[inline]
pub fn tables() -> Option<Tables> {
    let [start, end] = [TABLES[0].load(Ordering::Relaxed), TABLES[1].load(Ordering::Relaxed)];
    (end > 0).then_some(Tables { start, size: end.saturating_sub(start) })
}

/// Bytes among which tables of pointers may lie.
#[derive(Clone, Copy)]
pub struct Tables {
    start: u64,
    size: u64,
}

impl Tables {
    /// Whether one may lie at an address.
    #[inline(always)]
    pub fn may_be_at(self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.size
    }
}

/// Whether a region may lie in pinned memory.
#[inline]
pub fn may_hold(region: &Region) -> bool {
    region.array.is_none()
        && region.start >= LOWEST.load(Ordering::Relaxed)
        && region.start < HIGHEST.load(Ordering::Relaxed)
}

/// Whether any of these bytes may lie in pinned memory.
pub fn may_overlap(start: u64, end: u64) -> bool {
    start < HIGHEST.load(Ordering::Relaxed) && end > LOWEST.load(Ordering::Relaxed)
}

/// Whether there is no pinned memory.
pub fn are_empty() -> bool {
    LOWEST.load(Ordering::Relaxed) >= HIGHEST.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lie_from_their_start_to_their_end() {
        let some = Tables { start: 100, size: 20 };
        assert!([100, 119].into_iter().all(|at| some.may_be_at(at)));
        assert!(![0, 99, 120, u64::MAX].into_iter().any(|at| some.may_be_at(at)));
        let none = Tables { start: 100, size: 0 };
        assert!(![0, 99, 100, 101, u64::MAX].into_iter().any(|at| none.may_be_at(at)));
    }
}
