//! Events: records and waits of streams and of whole contexts, and queries of the host.

use trace::{ContextId, Epoch, EventId, EventMode, StreamId, StreamKind, ThreadId, TimelineId};

use crate::clock::{Clock, Entry, NO_LINEAGE, TimelineSnapshot};
use crate::engine::Engine;
use crate::rules::host_sync::{acquire, frontier};
use crate::state::host::{Covered, Guarantee};

/// An event captures "the contents of the stream at the time of the call"; recording again
/// replaces the snapshot. An event fired by a kernel (programmatic, launch completion) says no
/// more than that the kernel has started. Without programmatic dependent launch no block fires
/// a programmatic event before it ends.
#[unsafe(link_section = "streamsan_hot")]
pub(crate) fn event_record_op(engine: &mut Engine, event: EventId, stream: StreamId, mode: EventMode) -> Epoch {
    match mode {
        EventMode::Plain | EventMode::External => {
            let slot = engine.slot(stream);
            let kernel_start = engine.streams.slots[slot as usize].kernel_start;
            let epoch = engine.stream_op(stream);
            let s = &mut engine.streams.slots[slot as usize];
            // Kernels overlap across it (see `state::last_kernel`). Measured on non-blocking
            // streams; on others it waits for the legacy stream, or that for it.
            s.kernel_start = kernel_start.filter(|_| s.kind == StreamKind::NonBlocking);
            let now = s.snapshot(slot);
            engine.events.entry(event.0).or_default().set(now);
            if !engine.fired.is_empty() {
                engine.fired.remove(&event.0);
            }
            epoch
        }
        EventMode::Programmatic | EventMode::LaunchCompletion => {
            let slot = engine.slot(stream);
            let early = mode == EventMode::LaunchCompletion || engine.has_programmatic_launches(slot);
            let s = &engine.streams.slots[slot as usize];
            let time = s.kernel_start.filter(|_| early).unwrap_or(s.time);
            let snapshot = TimelineSnapshot { own: Entry { slot, time }, clock: s.clock.clone(), exact: !early };
            engine.events.entry(event.0).or_default().set(snapshot);
            if early {
                let own = Entry { slot, time: s.time };
                engine.fired.insert(event.0, TimelineSnapshot { own, clock: s.clock.clone(), exact: false });
            }
            Epoch { timeline: TimelineId(slot), time: s.time }
        }
    }
}

/// `cuStreamWaitEvent`. A wait for an event that was never recorded ("the empty set") is
/// nothing at all, not even an action of the legacy stream: measured on an H200
/// (`tests/gpu/programs/what_waits.cu`), a record on one blocking stream does not wait for
/// another one across it. Its epoch is the stream's as it was.
#[unsafe(link_section = "streamsan_hot")]
pub(crate) fn stream_wait(engine: &mut Engine, stream: StreamId, event: EventId) -> Epoch {
    let known = engine.events.get(&event.0);
    let unseen = engine.resumed && known.is_none_or(|e| !e.created);
    let recorded = unseen || known.is_some_and(|e| e.current().is_some());
    if !recorded {
        let slot = engine.slot(stream);
        engine.host_op();
        let s = &mut engine.streams.slots[slot as usize];
        // Whether a kernel may still overlap one on the far side of such a wait was not
        // measured.
        s.kernel_start = None;
        return Epoch { timeline: TimelineId(slot), time: s.time };
    }
    let slot = engine.begin(stream);
    join_event(engine, slot, event);
    if let Some(end) = engine.fired.get(&event.0) {
        engine.behind_fired.insert(slot, end.clone());
    }
    let upto = engine.streams.slots[slot as usize].time;
    engine.advance(slot, upto)
}

/// A clock takes in what the event captured last; an event never recorded is no order.
#[unsafe(link_section = "streamsan_hot")]
pub(crate) fn join_event(engine: &mut Engine, slot: u32, event: EventId) {
    let floor = engine.host.floor_ref();
    let s = &mut engine.streams.slots[slot as usize];
    if let Some(snapshot) = engine.events.get(&event.0).and_then(|e| e.current()) {
        Engine::join_stream(s, slot, snapshot, floor);
    }
}

/// `cuCtxRecordEvent`: the event captures the work of all streams of the context.
pub(crate) fn context_record(engine: &mut Engine, event: EventId, context: ContextId) -> Epoch {
    let snapshot = match engine.streams.find_context(context) {
        Some(index) => {
            let floor = engine.host.floor_ref();
            let context = &engine.streams.contexts[index as usize];
            let mut clock = Clock::default();
            let mut many: Vec<Entry> = context.uncovered.iter().map(|slot| frontier(engine, slot)).collect();
            for e in &many {
                clock.join(&engine.streams.slots[e.slot as usize].clock, NO_LINEAGE, floor);
            }
            clock.raise_many(&mut many, NO_LINEAGE, floor);
            TimelineSnapshot { clock, ..TimelineSnapshot::default() }
        }
        None => TimelineSnapshot::default(),
    };
    engine.events.entry(event.0).or_default().set(snapshot);
    engine.host_op()
}

/// `cuCtxWaitEvent`: all future work of the context waits for the event.
pub(crate) fn context_wait(engine: &mut Engine, context: ContextId, event: EventId) -> Epoch {
    let index = engine.streams.context(context);
    if let Some(snapshot) = engine.events.get(&event.0).and_then(|e| e.current()) {
        let floor = engine.host.floor_ref();
        let context = &mut engine.streams.contexts[index as usize];
        // Lineage of its own: no stream has a number like this one.
        let owner = u32::MAX - index;
        context.waits.raise(snapshot.own, owner, floor);
        context.waits.join(&snapshot.clock, owner, floor);
        context.wait_version += 1;
        context.version += 1;
    }
    engine.host_op()
}

/// `cuEventQuery` that succeeds: the host knows what the event captured. `record`: which of its
/// records the call was about, for the event may have been recorded again meanwhile.
pub(crate) fn event_reached(engine: &mut Engine, thread: ThreadId, event: EventId, record: u64) -> Epoch {
    let known = engine.events.get(&event.0);
    // After a gap the number of the record says nothing, unless the event was made since then.
    let latest = engine.resumed && known.is_some_and(|e| !e.created);
    let snapshot = known.and_then(|e| if latest { e.current() } else { e.of_record(record) }).cloned();
    if snapshot.is_some() {
        acquire(engine, thread, &Covered { snapshot, ..Covered::default() }, Guarantee::ALWAYS);
    }
    engine.host_op()
}
