//! Allocations and frees: ops of streams for pool memory, waits of the host for all other.
//!
//! Owns how reuse of pool memory orders streams, and what a free that drains the device covers.

use trace::{ContextId, Epoch, FreeKind, MemoryKind, StreamId, ThreadId};

use crate::engine::Engine;
use crate::policy::{self, HostWait, Policy};
use crate::rules::copies::guarantee;
use crate::rules::host_sync::{acquire, covered_by_contexts};
use crate::start_clock::OpStart;

/// Stream-ordered allocation is an op of its stream, after the free of any byte that it gets
/// again, wherever that free was: the pool sees to it.
pub(crate) fn alloc(
    engine: &mut Engine,
    ptr: u64,
    size: u64,
    kind: MemoryKind,
    context: ContextId,
    stream: StreamId,
) -> Epoch {
    engine.allocations.insert(ptr, size, kind, context);
    if kind != MemoryKind::Pool {
        return engine.host_op();
    }
    let slot = engine.begin(stream);
    for free in engine.allocations.take_freed(ptr, ptr.saturating_add(size)) {
        engine.join(slot, &free);
    }
    let upto = engine.streams.slots[slot as usize].time;
    engine.advance(slot, upto)
}

pub(crate) fn free(engine: &mut Engine, thread: ThreadId, ptr: u64, kind: FreeKind, stream: StreamId) -> Epoch {
    let range = engine.allocations.remove(ptr, kind);
    if let Some(range) = range {
        engine.sync_vars.forget(ptr, range.end);
    }
    if kind == FreeKind::Async {
        let epoch = engine.stream_op(stream);
        if let Some(range) = range {
            let slot = epoch.timeline.0;
            let now = engine.streams.slots[slot as usize].snapshot(slot);
            engine.allocations.freed(ptr, range.end, now, engine.host.floor_ref());
        }
        return epoch;
    }
    let rule = policy::free(kind, range.map(|r| r.kind));
    let guarantee = guarantee(engine, rule, HostWait::Device);
    if guarantee.by_policy || guarantee.documented {
        let device = range.and_then(|r| engine.streams.find_context(r.context)).and_then(|c| {
            let plain = kind == FreeKind::Plain;
            if plain { engine.streams.contexts[c as usize].device } else { None }
        });
        let what = covered_by_contexts(engine, |_, d| device.is_none() || d.is_none() || d == device);
        acquire(engine, thread, &what, guarantee);
    }
    let drains = rule.observed == HostWait::Device && matches!(kind, FreeKind::Plain | FreeKind::Imported);
    freed(engine, drains)
}

/// An array is destroyed. Its device is not known: all of them are drained.
pub(crate) fn free_array(engine: &mut Engine, thread: ThreadId) -> Epoch {
    let guarantee = guarantee(engine, policy::free_array(), HostWait::Device);
    if guarantee.by_policy || guarantee.documented {
        let what = covered_by_contexts(engine, |_, _| true);
        acquire(engine, thread, &what, guarantee);
    }
    freed(engine, true)
}

/// The op of a free. Whatever the documents promise, the driver does not take pages away under
/// running work where it drains the device.
fn freed(engine: &mut Engine, drained: bool) -> Epoch {
    let epoch = engine.host_op();
    if engine.options.policy == Policy::Documented || engine.options.latent {
        engine.last = OpStart { drained, ..engine.last };
    }
    epoch
}
