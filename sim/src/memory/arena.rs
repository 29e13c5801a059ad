//! Hands out ranges of addresses: which are free, which are taken. Does not know what lies at them.
//!
//! First fit from the lowest address: freed addresses must come back quickly, because programs (and
//! races between an old and a new owner of an address) depend on it.

use std::collections::BTreeMap;

/// A set of free ranges. All sizes and addresses are multiples of `align`.
#[derive(Debug)]
pub(crate) struct Arena {
    free: BTreeMap<u64, u64>,
    align: u64,
}

/// Rounds up to a multiple of a power of two; `None` when that overflows.
pub(crate) fn round_up(n: u64, to: u64) -> Option<u64> {
    debug_assert!(to.is_power_of_two());
    n.checked_add(to - 1).map(|n| n & !(to - 1))
}

impl Arena {
    /// An arena in which everything from `start` to `end` is free.
    pub(crate) fn new(start: u64, end: u64, align: u64) -> Arena {
        Arena { free: BTreeMap::from([(start, end - start)]), align }
    }

    /// Takes `size` bytes at a multiple of `align` (at least the arena's own alignment).
    pub(crate) fn take(&mut self, size: u64, align: u64) -> Option<u64> {
        let size = round_up(size.max(1), self.align)?;
        let align = align.max(self.align);
        let (start, len, at) = self.free.iter().find_map(|(&start, &len)| {
            let at = round_up(start, align)?;
            (at.checked_add(size)? <= start + len).then_some((start, len, at))
        })?;
        self.carve(start, len, at, size);
        Some(at)
    }

    /// Takes exactly the given range, if it is free.
    pub(crate) fn take_at(&mut self, at: u64, size: u64) -> bool {
        let Some(size) = round_up(size.max(1), self.align) else { return false };
        if !at.is_multiple_of(self.align) {
            return false;
        }
        let Some((&start, &len)) = self.free.range(..=at).next_back() else { return false };
        if at.checked_add(size).is_none_or(|end| end > start + len) {
            return false;
        }
        self.carve(start, len, at, size);
        true
    }

    fn carve(&mut self, start: u64, len: u64, at: u64, size: u64) {
        self.free.remove(&start);
        if at > start {
            self.free.insert(start, at - start);
        }
        if at + size < start + len {
            self.free.insert(at + size, start + len - at - size);
        }
    }

    /// Gives a range back and answers the whole free range that it is now part of.
    pub(crate) fn give(&mut self, at: u64, size: u64) -> (u64, u64) {
        let size = round_up(size.max(1), self.align).unwrap_or(size);
        let (mut start, mut end) = (at, at + size);
        if let Some((&before, &len)) = self.free.range(..at).next_back() {
            debug_assert!(before + len <= at, "range given back twice");
            if before + len == at {
                self.free.remove(&before);
                start = before;
            }
        }
        if let Some(len) = self.free.remove(&end) {
            end += len;
        }
        self.free.insert(start, end - start);
        (start, end - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_the_address_just_freed() {
        let mut arena = Arena::new(0x1000, 0x1_0000, 512);
        let a = arena.take(100, 1).unwrap();
        let b = arena.take(1000, 1).unwrap();
        assert_eq!((a, b), (0x1000, 0x1200));
        arena.give(a, 100);
        assert_eq!(arena.take(512, 1), Some(a));
    }

    #[test]
    fn merges_with_both_neighbours() {
        let mut arena = Arena::new(0, 0x4000, 0x1000);
        let at: Vec<_> = (0..4).map(|_| arena.take(1, 1).unwrap()).collect();
        assert_eq!(arena.take(1, 1), None);
        arena.give(at[0], 1);
        arena.give(at[2], 1);
        assert_eq!(arena.give(at[1], 1), (0, 0x3000));
        assert_eq!(arena.take(0x3000, 0x1000), Some(0));
    }

    #[test]
    fn respects_alignment_and_exact_places() {
        let mut arena = Arena::new(0x1000, 0x10_0000, 0x1000);
        assert_eq!(arena.take(0x1000, 0x8000), Some(0x8000));
        assert!(arena.take_at(0x2000, 0x1000));
        assert!(!arena.take_at(0x2000, 0x1000));
        assert!(!arena.take_at(0x7000, 0x2000));
        assert!(!arena.take_at(0x2001, 0x1000));
        assert_eq!(arena.take(u64::MAX, 1), None);
    }
}
