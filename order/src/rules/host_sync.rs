//! Waits of the host: explicit synchronisation, queries, host functions, the end of a context.
//!
//! Owns what each scope covers. A wait covers what was enqueued before it began and takes effect
//! when it ends.

use trace::{ContextId, Epoch, EventId, HostFuncId, StreamId, StreamKind, SyncId, SyncScope, ThreadId};

use crate::clock::{Entry, NO_LINEAGE, TimelineSnapshot};
use crate::engine::Engine;
use crate::start_clock::{ClockSnapshot, ClockSource};
use crate::state::graph_exec::GraphFunction;
use crate::state::host::{Covered, Guarantee};

/// The host has seen this finish.
pub(crate) fn acquire(engine: &mut Engine, thread: ThreadId, what: &Covered, guarantee: Guarantee) {
    if engine.threads.is_some() {
        return acquire_alone(engine, thread, what, guarantee);
    }
    acquire_for_all(engine, thread, what, guarantee);
}

/// One host thread of several has seen this finish.
fn acquire_alone(engine: &mut Engine, thread: ThreadId, what: &Covered, guarantee: Guarantee) {
    if !guarantee.by_policy {
        return;
    }
    let mut many = what.many.clone();
    let nothing = TimelineSnapshot::default();
    let snapshot = what.snapshot.as_ref().unwrap_or(&nothing);
    if let Some(threads) = engine.threads.as_mut() {
        threads.acquire(thread, snapshot, &mut many, engine.host.floor_ref());
    }
    if snapshot.clock.release_waits() {
        engine.released_waits();
    }
    engine.raise_common(thread);
}

/// All host threads have seen this finish.
pub(crate) fn acquire_for_all(engine: &mut Engine, thread: ThreadId, what: &Covered, guarantee: Guarantee) {
    engine.host.acquire(thread, what, guarantee);
    let released = what.snapshot.as_ref().is_some_and(|s| s.clock.release_waits());
    if released {
        engine.released_waits();
    }
    let floor = engine.host.weakest().times.clone();
    if let Some(s) = &what.snapshot {
        engine.streams.settle(s.own.slot, &floor);
    }
    for e in &what.many {
        engine.streams.settle(e.slot, &floor);
    }
    for slot in engine.graph_parts.keys() {
        engine.streams.settle(*slot, &floor);
    }
}

pub(crate) fn sync_begin(
    engine: &mut Engine,
    thread: ThreadId,
    sync: SyncId,
    scope: SyncScope,
    stream: StreamId,
    event: EventId,
    context: ContextId,
) -> Epoch {
    let what = match scope {
        SyncScope::Stream => covered_by_stream(engine, stream),
        SyncScope::Legacy => {
            if engine.streams.find(stream).is_some() {
                covered_by_stream(engine, stream)
            } else {
                engine
                    .streams
                    .find_context(context)
                    .map_or_else(Covered::default, |c| covered_by_legacy(engine, c, None))
            }
        }
        SyncScope::Event => {
            let snapshot = engine.events.get(&event.0).and_then(|e| e.current()).cloned();
            Covered { snapshot, ..Covered::default() }
        }
        SyncScope::Context => match engine.streams.find_context(context) {
            Some(index) => {
                let contexts = &engine.streams.contexts;
                covered_by_contexts(engine, |i, _| i == index || contexts[i as usize].part_of == Some(index))
            }
            None => Covered::default(),
        },
        SyncScope::Device => covered_by_contexts(engine, |_, _| true),
    };
    engine.host.begin(thread, sync, what);
    engine.host_op()
}

/// Waiting for a stream covers its work; for the legacy stream, also the blocking streams of
/// its context (measured).
pub(crate) fn covered_by_stream(engine: &mut Engine, stream: StreamId) -> Covered {
    let slot = engine.slot(stream);
    let s = &engine.streams.slots[slot as usize];
    if is_legacy(engine, slot) {
        let now = s.snapshot(slot);
        return covered_by_legacy(engine, s.context, Some(now));
    }
    Covered { snapshot: Some(s.snapshot(slot)), ..Covered::default() }
}

/// The legacy stream, when there is one, and all that its next op would wait for.
pub(crate) fn covered_by_legacy(engine: &Engine, context: u32, legacy: Option<TimelineSnapshot>) -> Covered {
    let mut snapshot = legacy.unwrap_or_default();
    let floor = engine.host.floor_ref();
    let mut many = Vec::new();
    for slot in engine.streams.contexts[context as usize].unjoined.iter() {
        let s = &engine.streams.slots[slot as usize];
        many.push(Entry { slot, time: s.time });
        snapshot.clock.join(&s.clock, snapshot.own.slot, floor);
    }
    Covered { snapshot: Some(snapshot), many, all_before: 0 }
}

/// All work of some contexts. No device and no context waits for requests of libraries.
pub(crate) fn covered_by_contexts(engine: &Engine, which: impl Fn(u32, Option<u32>) -> bool) -> Covered {
    let floor = engine.host.floor_ref();
    let mut snapshot = TimelineSnapshot::default();
    let mut many = Vec::new();
    let mut everything = true;
    for (index, context) in engine.streams.contexts.iter().enumerate() {
        if which(index as u32, context.device) && !context.is_host {
            many.extend(context.uncovered.iter().map(|slot| frontier(engine, slot)));
        } else {
            everything &= context.uncovered.is_empty();
        }
    }
    for e in &many {
        let clock = &engine.streams.slots[e.slot as usize].clock;
        // Clocks hold nothing but epochs of streams with work that is not covered: those of
        // these contexts are in `many` anyway.
        if !everything || clock.has_open_wait() {
            snapshot.clock.join(clock, NO_LINEAGE, floor);
        }
    }
    let all_before = if everything { engine.host.time } else { 0 };
    Covered { snapshot: Some(snapshot), many, all_before }
}

pub(crate) fn frontier(engine: &Engine, slot: u32) -> Entry {
    Entry { slot, time: engine.streams.slots[slot as usize].time }
}

/// A query found the stream idle: as good as waiting for what was in it when the query began.
/// For the legacy stream that includes the blocking streams; what they got during the query is
/// then covered too.
pub(crate) fn stream_idle(engine: &mut Engine, thread: ThreadId, stream: StreamId, upto: u64) -> Epoch {
    let upto = if engine.resumed { u64::MAX } else { upto };
    if let Some(slot) = engine.streams.find(stream) {
        let s = &engine.streams.slots[slot as usize];
        let at = s.snapshot_at(slot, upto);
        let what = if is_legacy(engine, slot) {
            covered_by_legacy(engine, s.context, Some(at))
        } else {
            Covered { snapshot: Some(at), ..Covered::default() }
        };
        acquire(engine, thread, &what, Guarantee::ALWAYS);
    }
    engine.host_op()
}

/// The host has seen a request of a library complete (MPI 4.1, 3.7.3: a wait, or
/// a test that succeeds, "returns when the operation is complete").
pub(crate) fn request_done(engine: &mut Engine, thread: ThreadId, request: StreamId) -> Epoch {
    if let Some(slot) = engine.streams.find(request) {
        let snapshot = Some(engine.streams.slots[slot as usize].snapshot(slot));
        acquire(engine, thread, &Covered { snapshot, ..Covered::default() }, Guarantee::ALWAYS);
        engine.streams.destroy(request);
    }
    engine.host_op()
}

/// Host functions run in stream order. What the host does inside is ordered as the function's
/// epoch is.
pub(crate) fn host_func_run(engine: &mut Engine, thread: ThreadId, func: HostFuncId, done: bool) -> Epoch {
    let found = engine.placed_function(func).map(|(epoch, clock)| (epoch, clock.clone()));
    if done {
        engine.host_funcs.remove(&func.0);
    }
    let graph = engine.graph_funcs.get_mut(&func.0);
    let in_graph = graph.is_some();
    graph.filter(|_| done).into_iter().for_each(GraphFunction::end);
    let Some((epoch, clock)) = found else { return engine.host_op() };
    if engine.options.host_functions_signal {
        // It may send its message at any time while it runs, and what was before it in the
        // stream has finished when it begins. XLA's callbacks wake the host so: `order/host`
        // has the case that was seen.
        let slot = epoch.timeline.0;
        let mut snapshot = engine.streams.slots.get(slot as usize).map(|s| s.snapshot_at(slot, epoch.time));
        // The end of one node is not that of its graph.
        if let Some(snapshot) = snapshot.as_mut().filter(|_| !done || in_graph) {
            snapshot.own.time = snapshot.own.time.saturating_sub(1);
        }
        // How the driver's thread notifies the others is not followed: all of them know.
        acquire_for_all(
            engine,
            thread,
            &Covered { snapshot, ..Covered::default() },
            Guarantee { by_policy: true, documented: false },
        );
    }
    start_in_host_func(engine, epoch, clock)
}

/// A load or store inside a host function: ordered as the function is. Of one that is not known
/// to be pending it is the host's.
pub(crate) fn host_func_touch(engine: &mut Engine, func: HostFuncId) -> Epoch {
    let Some((epoch, clock)) = engine.placed_function(func) else { return engine.host_op() };
    let clock = clock.clone();
    start_in_host_func(engine, epoch, clock)
}

fn start_in_host_func(engine: &mut Engine, epoch: Epoch, clock: ClockSnapshot) -> Epoch {
    engine.start_snapshot = Some(clock);
    engine.last.source = ClockSource::Snapshot;
    epoch
}

/// Whether a stream waits for the legacy stream and is waited for by it.
pub(crate) fn is_legacy(engine: &Engine, slot: u32) -> bool {
    engine.streams.slots[slot as usize].kind == StreamKind::Legacy
}

/// A context is destroyed with all its work and memory: nothing of it runs afterwards.
pub(crate) fn context_destroy(engine: &mut Engine, context: ContextId, thread: ThreadId) -> Epoch {
    if let Some(index) = engine.streams.find_context(context)
        && !context.is_none()
    {
        let what = covered_by_contexts(engine, |i, _| i == index);
        acquire(engine, thread, &what, Guarantee::ALWAYS);
    }
    engine.streams.destroy_context(context);
    engine.host_op()
}
