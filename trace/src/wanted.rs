//! The way back: which kernels the analyzer wants measured (exact mode on demand).
//!
//! Owns a list of kernels in the ring's header that only grows. One thread of the analyzer writes, any thread of the program reads; nobody
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

#[cfg(test)]
mod tests {
    use super::*;

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
