//! Frees and destroys under way: what ends if the real call succeeds.
//!
//! Owns the ops that wait for their call to return. A call that fails leaves none: it "did
//! nothing", and no failing free waits for anything (measured on an H200, driver 580:
//! `tests/gpu/programs/batch_sources.h200.txt`). So the op is logged after the call, with the stack
//! from before it. When the call returns, another thread may have been given the address already:
//! an op that begins a life there proves that the end was reached, and the end is logged before it.

use std::sync::atomic::{AtomicU32, Ordering};

use cuda_sys::FnId;
use trace::{Op, StackId, ThreadId};

/// How many there are: while it is 0, a call that fails asks for no lock.
#[unsafe(link_section = "streamsan_state")]
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// Whether there may be any.
pub fn any() -> bool {
    UNDER_WAY.load(Ordering::Relaxed) != 0
}

/// An op that is logged when its call has succeeded.
#[derive(Debug)]
pub struct Ending {
    /// The number of the call; several ops of one call share it.
    number: u32,
    /// The op.
    pub op: Op<'static>,
    /// Of freed memory: one past its last address.
    end: u64,
    /// Who called, and from where.
    pub origin: (FnId, ThreadId, StackId),
}

impl Ending {
    /// Whether an op can only come after this one.
    fn comes_before(&self, op: &Op<'_>) -> bool {
        match (&self.op, op) {
            (Op::Free { ptr: freed, .. }, Op::Alloc { ptr, size, kind, .. }) => {
                *kind != trace::MemoryKind::Block && *freed < ptr.saturating_add(*size) && *ptr < self.end
            }
            (Op::Free { ptr: freed, .. } | Op::Unalias { ptr: freed }, Op::Alias { ptr, size, .. }) => {
                *freed < ptr.saturating_add(*size) && *ptr < self.end
            }
            (Op::Unalias { ptr: freed }, Op::Alloc { ptr, size, .. }) => {
                *freed < ptr.saturating_add(*size) && *ptr < self.end
            }
            (Op::ObjectDestroy { object: gone }, Op::ObjectCreate { object, .. }) => gone == object,
            _ => false,
        }
    }
}

/// All of them, in the order of their calls.
#[derive(Debug, Default)]
pub struct Endings(Vec<Ending>);

impl Endings {
    /// A call is about to be made.
    pub fn begin(&mut self, number: u32, op: Op<'static>, end: u64, origin: (FnId, ThreadId, StackId)) {
        self.0.push(Ending { number, op, end, origin });
        self.count();
    }

    /// The ops of a call that has succeeded, or failed; none: they were logged already.
    pub fn take(&mut self, number: u32) -> Vec<Ending> {
        let taken = self.0.extract_if(.., |ending| ending.number == number).collect();
        self.count();
        taken
    }

    /// Those that must be logged before this op.
    #[inline]
    pub fn before(&mut self, op: &Op<'_>) -> Vec<Ending> {
        if self.0.is_empty() { Vec::new() } else { self.reached(op) }
    }

    #[cold]
    fn reached(&mut self, op: &Op<'_>) -> Vec<Ending> {
        let taken = self.0.extract_if(.., |ending| ending.comes_before(op)).collect();
        self.count();
        taken
    }

    fn count(&self) {
        UNDER_WAY.store(self.0.len() as u32, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{ContextId, FreeKind, MemoryKind, PoolId, StreamId};

    const ORIGIN: (FnId, ThreadId, StackId) = (cuda_sys::id::cuMemFree_v2, ThreadId(1), StackId(1));

    fn alloc(ptr: u64, size: u64, kind: MemoryKind) -> Op<'static> {
        let (context, stream, pool) = (ContextId::NONE, StreamId::NONE, PoolId::NONE);
        Op::Alloc { ptr, size, kind, context, stream, pool, flags: 0 }
    }

    #[test]
    fn memory_that_is_handed_out_again_was_freed_before() {
        let mut all = Endings::default();
        let free = |ptr| Op::Free { ptr, kind: FreeKind::Plain, stream: StreamId::NONE };
        all.begin(1, free(0x1000), 0x2000, ORIGIN);
        all.begin(2, free(0x5000), 0x6000, ORIGIN);
        for other in [
            alloc(0x2000, 0x100, MemoryKind::Device),
            alloc(0xf00, 0x100, MemoryKind::Device),
            alloc(0x1000, 0x100, MemoryKind::Block),
        ] {
            assert!(all.before(&other).is_empty(), "{other:?}");
        }
        assert_eq!(all.before(&alloc(0x1800, 0x100, MemoryKind::Pool)).len(), 1);
        assert!(all.take(1).is_empty(), "it was logged already");
        assert_eq!(all.take(2).len(), 1);
        assert!(!any());
    }
}
