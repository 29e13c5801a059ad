//! The back channel, from the analyzer to the program: which kernels to measure (exact mode on
//! demand), and which launches need no measuring (exact mode).
//!
//! Owns a list of kernels and a set of classes of launches in the ring's header. One thread of the
//! analyzer writes, any thread of the program reads. No side waits for the other, and a reader that
//! is late measures a launch later. The shim decides what measuring means.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::KernelId;

/// Kernels that can be named one by one; beyond that all are wanted.
pub const MAX_WANTED: usize = 512;

/// The count that stands for all kernels.
const ALL: u32 = u32::MAX;

/// The list, in shared memory: all zero is an empty one.
#[repr(C)]
pub struct MeasureRequests {
    count: AtomicU32,
    kernels: [AtomicU32; MAX_WANTED],
}

impl MeasureRequests {
    /// Adds a kernel. To be called by one thread only; the caller adds none twice.
    pub fn add(&self, kernel: KernelId) {
        let count = self.count.load(Ordering::Relaxed);
        match self.kernels.get(count as usize) {
            Some(free) => {
                free.store(kernel.0, Ordering::Relaxed);
                self.count.store(count + 1, Ordering::Release);
            }
            None => self.count.store(ALL, Ordering::Release),
        }
    }

    /// Whether there is any. Costs one load.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Whether this one is wanted.
    pub fn has(&self, kernel: KernelId) -> bool {
        let count = self.count.load(Ordering::Acquire) as usize;
        let named = self.kernels.get(..count);
        named.is_none_or(|named| named.iter().any(|k| k.load(Ordering::Relaxed) == kernel.0))
    }
}

/// Classes of launches that can be settled.
const CLASSES: u32 = 12_288;

/// Launches of one kernel by as many blocks of as many threads: where the code determines every
/// byte of one, it mostly does of all. Few launches that differ share a class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaunchClass(u32);

impl LaunchClass {
    /// The class of a launch.
    pub fn of(kernel: KernelId, grid: [u32; 3], block: [u32; 3]) -> Self {
        let mix = |hash: u64, word: u32| (hash ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let hash = [kernel.0].iter().chain(&grid).chain(&block).fold(0, |hash, word| mix(hash, *word));
        Self((((hash >> 32) * u64::from(CLASSES)) >> 32) as u32)
    }
}

/// Classes of launches of which the code determines every byte, so that there is nothing to
/// measure. All zero is the empty set.
#[repr(C)]
pub struct SettledLaunches {
    bits: [AtomicU32; CLASSES as usize / 32],
}

impl SettledLaunches {
    /// Puts a class in, or takes it out. To be called by one thread only.
    pub fn set(&self, class: LaunchClass, on: bool) {
        let bit = 1 << (class.0 % 32);
        if let Some(word) = self.bits.get(class.0 as usize / 32) {
            let have = word.load(Ordering::Relaxed);
            word.store(if on { have | bit } else { have & !bit }, Ordering::Relaxed);
        }
    }

    /// Whether this one is in it.
    #[inline]
    pub fn has(&self, class: LaunchClass) -> bool {
        self.bits.get(class.0 as usize / 32).is_some_and(|w| w.load(Ordering::Relaxed) >> (class.0 % 32) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_settled_one_by_one() {
        // SAFETY: all-zero is an empty set.
        let set: SettledLaunches = unsafe { std::mem::zeroed() };
        let class = |kernel, blocks| LaunchClass::of(KernelId(kernel), [blocks, 1, 1], [32, 1, 1]);
        for one in [class(33, 1), class(33, 2)] {
            assert!(!set.has(one));
            set.set(one, true);
            assert!(set.has(one) && !set.has(class(1, 1)) && !set.has(class(33, 3)));
        }
        set.set(class(33, 1), false);
        assert!(!set.has(class(33, 1)) && set.has(class(33, 2)));
        assert_ne!(LaunchClass::of(KernelId(1), [2, 1, 1], [1; 3]), LaunchClass::of(KernelId(1), [1; 3], [2, 1, 1]));
    }

    #[test]
    fn a_thousand_launches_share_few_classes() {
        let launches = (0..1000).map(|n| LaunchClass::of(KernelId(n / 8), [1 << (n % 8), 1, 1], [256, 1, 1]));
        let classes: std::collections::HashSet<_> = launches.inspect(|c| assert!(c.0 < CLASSES)).collect();
        assert!(classes.len() > 930, "{} classes", classes.len());
    }

    #[test]
    fn the_list_grows_and_overflows_into_all() {
        // SAFETY: all-zero is an empty list.
        let list: MeasureRequests = unsafe { std::mem::zeroed() };
        assert!(!list.any() && !list.has(KernelId(1)));
        list.add(KernelId(7));
        assert!(list.any() && list.has(KernelId(7)) && !list.has(KernelId(8)));
        for id in 100..100 + MAX_WANTED as u32 - 1 {
            list.add(KernelId(id));
        }
        assert!(list.has(KernelId(100)) && !list.has(KernelId(8)));
        list.add(KernelId(9));
        assert!(list.has(KernelId(8)), "there was no room to name it");
        list.add(KernelId(10));
        assert!(list.has(KernelId(9)));
    }
}
