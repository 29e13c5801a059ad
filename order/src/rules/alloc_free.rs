//! Allocations and frees: ops of streams for pool memory, waits of the host for all other.
//!
//! Owns how reuse of pool memory orders streams, and what a free that drains the device covers.

use trace::{ContextId, Epoch, FreeKind, MemoryKind, StreamId, ThreadId};

use crate::engine::Engine;
use crate::policy::{self, HostWait, Policy};
use crate::start_clock::OpStart;

impl Engine {
    /// Stream-ordered allocation is an op of its stream, after the free of any byte that it gets
    /// again, wherever that free was: the pool sees to it.
    pub(crate) fn alloc(
        &mut self,
        ptr: u64,
        size: u64,
        kind: MemoryKind,
        context: ContextId,
        stream: StreamId,
    ) -> Epoch {
        self.allocations.insert(ptr, size, kind, context);
        if kind != MemoryKind::Pool {
            return self.host_op();
        }
        let slot = self.begin(stream);
        for free in self.allocations.take_freed(ptr, ptr.saturating_add(size)) {
            self.join(slot, &free);
        }
        let upto = self.streams.slots[slot as usize].time;
        self.advance(slot, upto)
    }

    pub(crate) fn free(&mut self, thread: ThreadId, ptr: u64, kind: FreeKind, stream: StreamId) -> Epoch {
        let range = self.allocations.remove(ptr, kind);
        if let Some(range) = range {
            self.sync_vars.forget(ptr, range.end);
        }
        if kind == FreeKind::Async {
            let epoch = self.stream_op(stream);
            if let Some(range) = range {
                let slot = epoch.timeline.0;
                let now = self.streams.slots[slot as usize].snapshot(slot);
                self.allocations.freed(ptr, range.end, now, self.host.floor_ref());
            }
            return epoch;
        }
        let rule = policy::free(kind, range.map(|r| r.kind));
        let guarantee = self.guarantee(rule, HostWait::Device);
        if guarantee.by_policy || guarantee.documented {
            let device = range.and_then(|r| self.streams.find_context(r.context)).and_then(|c| {
                let plain = kind == FreeKind::Plain;
                if plain { self.streams.contexts[c as usize].device } else { None }
            });
            let what = self.covered_by_contexts(|_, d| device.is_none() || d.is_none() || d == device);
            self.acquire(thread, &what, guarantee);
        }
        let drains = rule.observed == HostWait::Device && matches!(kind, FreeKind::Plain | FreeKind::Imported);
        self.freed(drains)
    }

    /// An array is destroyed. Its device is not known: all of them are drained.
    pub(crate) fn free_array(&mut self, thread: ThreadId) -> Epoch {
        let guarantee = self.guarantee(policy::free_array(), HostWait::Device);
        if guarantee.by_policy || guarantee.documented {
            let what = self.covered_by_contexts(|_, _| true);
            self.acquire(thread, &what, guarantee);
        }
        self.freed(true)
    }

    /// The op of a free. Whatever the documents promise, the driver does not take pages away under
    /// running work where it drains the device.
    fn freed(&mut self, drained: bool) -> Epoch {
        let epoch = self.host_op();
        if self.options.policy == Policy::Documented || self.options.latent {
            self.last = OpStart { drained, ..self.last };
        }
        epoch
    }
}
