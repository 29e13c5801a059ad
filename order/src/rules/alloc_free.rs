//! Allocations and frees.

use trace::{ContextId, Epoch, FreeKind, MemoryKind, StreamId, ThreadId};

use crate::engine::Engine;
use crate::policy::{self, HostWait, Policy};
use crate::start_clock::Start;

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
        self.memory.insert(ptr, size, kind, context);
        if kind != MemoryKind::Pool {
            return self.host_op();
        }
        let slot = self.begin(stream);
        for free in self.memory.take_freed(ptr, ptr.saturating_add(size)) {
            self.join(slot, &free);
        }
        let upto = self.streams.slots[slot as usize].time;
        self.advance(slot, upto)
    }

    pub(crate) fn free(&mut self, thread: ThreadId, ptr: u64, kind: FreeKind, stream: StreamId) -> Epoch {
        let range = self.memory.remove(ptr, kind);
        if let Some(range) = range
            && !self.values.is_empty()
        {
            self.values.forget(ptr, range.end);
        }
        if kind == FreeKind::Async {
            let epoch = self.stream_op(stream);
            if let Some(range) = range {
                let slot = epoch.timeline.0;
                let now = self.streams.slots[slot as usize].now(slot);
                self.memory.freed(ptr, range.end, now, self.host.known());
            }
            return epoch;
        }
        let rule = policy::free(kind, range.map(|r| r.kind));
        let holds = self.holds(rule, HostWait::Device);
        if holds.by_policy || holds.promised {
            let device = range.and_then(|r| self.streams.find_context(r.context)).and_then(|c| {
                let plain = kind == FreeKind::Plain;
                if plain { self.streams.contexts[c as usize].device } else { None }
            });
            let what = self.covered_by_contexts(|_, d| device.is_none() || d.is_none() || d == device);
            self.acquire(thread, &what, holds);
        }
        let epoch = self.host_op();
        // Whatever is promised to the program, the driver does not take pages away under running
        // work.
        let drained = rule.observed == HostWait::Device && kind == FreeKind::Plain;
        if self.options.policy == Policy::Documented || self.options.latent {
            self.last = Start { drained, ..self.last };
        }
        epoch
    }
}
