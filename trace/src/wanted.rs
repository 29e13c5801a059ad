//! The way back: which kernels the analyzer wants measured (exact mode on demand), and which need no measuring (exact mode).
//!
//! Owns a list and a set of kernels in the ring's header. One thread of the analyzer writes, any thread of the program reads; nobody
//! waits for anybody, and a reader that is late measures a launch later. What measuring means is the shim's business.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::KernelId;

/// Kernels that can be named one by one; beyond that all are wanted.
pub const MAX_WANTED: usize = 512;

/// The count that stands for all kernels.
const ALL: u32 = u32::MAX;

/// The list, in shared memory: all zero is an empty one.
#[repr(C)]
pub struct Wanted {
    count: AtomicU32,
    kernels: [AtomicU32; MAX_WANTED],
}

impl Wanted {
    /// Adds a kernel. To be called by one thread only; who calls keeps from adding one twice.
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

/// Kernels whose id is below this can be settled.
const MAX_SETTLED: usize = 12_288;

/// Kernels of which the code tells every byte, so that there is nothing to measure. All zero is the empty set.
#[repr(C)]
pub struct Settled {
    bits: [AtomicU32; MAX_SETTLED / 32],
}

impl Settled {
    /// Puts a kernel in, or takes it out. To be called by one thread only. Ids beyond the bound stay out.
    pub fn set(&self, kernel: KernelId, on: bool) {
        let bit = 1 << (kernel.0 % 32);
        if let Some(word) = self.bits.get(kernel.0 as usize / 32) {
            let have = word.load(Ordering::Relaxed);
            word.store(if on { have | bit } else { have & !bit }, Ordering::Relaxed);
        }
    }

    /// Whether this one is in it.
    #[inline]
    pub fn has(&self, kernel: KernelId) -> bool {
        self.bits.get(kernel.0 as usize / 32).is_some_and(|w| w.load(Ordering::Relaxed) >> (kernel.0 % 32) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_settled_one_by_one() {
        // SAFETY: all-zero is an empty set.
        let set: Settled = unsafe { std::mem::zeroed() };
        let last = KernelId(MAX_SETTLED as u32 - 1);
        for id in [KernelId(33), last] {
            assert!(!set.has(id));
            set.set(id, true);
            assert!(set.has(id) && !set.has(KernelId(1)) && !set.has(KernelId(32)));
        }
        set.set(KernelId(33), false);
        assert!(!set.has(KernelId(33)) && set.has(last));
        set.set(KernelId(u32::MAX), true);
        assert!(!set.has(KernelId(u32::MAX)));
    }

    #[test]
    fn the_list_grows_and_overflows_into_all() {
        // SAFETY: all-zero is an empty list.
        let list: Wanted = unsafe { std::mem::zeroed() };
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
