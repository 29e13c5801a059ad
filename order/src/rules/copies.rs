//! Copies and sets: ops of streams, and waits of the host.
//!
//! Owns how the table in [`crate::policy`] changes clocks.

use trace::{Epoch, Region, SourceOrder, Space, StreamId, ThreadId};

use crate::engine::Engine;
use crate::policy::{self, HostWait, MemoryClass, Rule, SourceRead};
use crate::rules::host_sync::{acquire, covered_by_contexts};
use crate::state::host::{Covered, Guarantee};
use crate::state::left_values::LeftBytes;
use crate::state::stream::Stream;

fn place(engine: &Engine, region: &Region, space: Space) -> (MemoryClass, bool) {
    if !region.array.is_none() {
        return (MemoryClass::Device, false);
    }
    let range = engine.allocations.find(region.start);
    (MemoryClass::of(space, range.map(|r| r.kind)), range.is_some_and(|r| r.sync_memops))
}

/// What a wait of this rule is worth, when it is at least `least`.
pub(crate) fn guarantee(engine: &Engine, rule: &Rule, least: HostWait) -> Guarantee {
    Guarantee { by_policy: rule.wait(engine.options.policy) >= least, documented: rule.documented >= least }
}

pub(crate) fn copy(
    engine: &mut Engine,
    thread: ThreadId,
    stream: StreamId,
    (dst, dst_space): (Region, Space),
    (src, src_space): (Region, Space),
    asynchronous: bool,
    batch: u32,
) -> Epoch {
    let (to, to_sync) = place(engine, &dst, dst_space);
    let (from, from_sync) = place(engine, &src, src_space);
    let slot = engine.begin(stream);
    let context = &engine.streams.contexts[engine.streams.slots[slot as usize].context as usize];
    let rule = policy::copy(asynchronous, to, from, to_sync || from_sync || context.sync_memops);
    let between = if asynchronous { None } else { between_devices(engine, &dst, &src) };
    if let Some(devices) = between {
        join_devices(engine, slot, devices);
    }
    let s = &engine.streams.slots[slot as usize];
    // Copies inside one batch are unordered among themselves.
    let upto = if batch != 0 && s.batch == batch { s.batch_start } else { s.time };
    let epoch = engine.advance(slot, upto);
    let s = &mut engine.streams.slots[slot as usize];
    (s.batch, s.batch_start) = (batch, upto);
    let settled = engine.options.pageable_copies_wait && policy::is_staged(rule);
    host_waits(engine, thread, slot, if settled { policy::copied_from_pinned() } else { rule });
    if rule.source(engine.options.policy) == SourceRead::DuringCall {
        engine.last_source = Some(engine.host_epoch());
    }
    overwritten(engine, &dst, slot);
    if let Some(devices) = between {
        hold_back_devices(engine, slot, devices);
    }
    if engine.options.left_values {
        // The source is what it was when the call returned.
        let read = rule.source(engine.options.policy) == SourceRead::DuringCall
            || guarantee(engine, rule, HostWait::Op).by_policy;
        engine.last_left = (read && dst.array.is_none()).then_some((thread, epoch, dst));
    }
    epoch
}

/// A copy whose source is not read in stream order. cuda.h, cuMemcpyBatchAsync: "access to the
/// source pointer can be out of stream order", for sources of which "it's known that no prior
/// operations in the stream can be accessing the memory". So the read may begin when the call
/// does. With `DURING_API_CALL` it is over when the call returns; with `ANY` it may be as late
/// as the rest of the copy.
pub(crate) fn attributed_copy(
    engine: &mut Engine,
    thread: ThreadId,
    stream: StreamId,
    dst: (Region, Space),
    src: (Region, Space),
    batch: u32,
    source: SourceOrder,
) -> Epoch {
    let known = engine.host_clock().snapshot();
    let (from, _) = place(engine, &src.0, src.1);
    let epoch = copy(engine, thread, stream, dst, src, true, batch);
    if source == SourceOrder::Stream {
        return epoch;
    }
    let during = source == SourceOrder::DuringCall;
    let len = src.0.width.saturating_mul(src.0.height.into()).saturating_mul(src.0.depth.into());
    let late = from == MemoryClass::Pageable && policy::is_read_late(engine.options.policy, len);
    engine.last_source = (during && !late).then(|| engine.host_epoch());
    engine.early_source = Some((epoch, known));
    if during && let Some(slot) = engine.streams.find(stream) {
        host_waits(engine, thread, slot, policy::source_during_call(from));
    }
    epoch
}

/// The devices of both sides, when they are two.
fn between_devices(engine: &Engine, dst: &Region, src: &Region) -> Option<[u32; 2]> {
    let device = |region: &Region| {
        let range = engine.allocations.find(region.start).filter(|_| region.array.is_none())?;
        let on_device = MemoryClass::of(Space::Unified, Some(range.kind)) == MemoryClass::Device;
        let context = engine.streams.find_context(range.context).filter(|_| on_device)?;
        engine.streams.contexts[context as usize].device
    };
    let (to, from) = (device(dst)?, device(src)?);
    (to != from).then_some([to, from])
}

/// A copy between two devices without a stream "does not start until all commands previously
/// issued to either device have completed" (programming guide, peer-to-peer memory copy).
fn join_devices(engine: &mut Engine, slot: u32, devices: [u32; 2]) {
    let all = covered_by_contexts(engine, |_, device| device.is_some_and(|d| devices.contains(&d)));
    let floor = engine.host.floor_ref();
    let s = &mut engine.streams.slots[slot as usize];
    s.save_clock();
    let mut many = all.many;
    many.retain(|e| e.slot != slot);
    s.clock.raise_many(&mut many, slot, floor);
    // What those streams had waited for themselves, as far as it is not in `many`.
    if let Some(snapshot) = all.snapshot {
        s.clock.join(&snapshot.clock, slot, floor);
    }
}

/// ... "and runs to completion before any commands issued after the copy to either device can
/// start".
fn hold_back_devices(engine: &mut Engine, slot: u32, devices: [u32; 2]) {
    let floor = engine.host.floor_ref();
    let now = engine.streams.slots[slot as usize].snapshot(slot);
    for (index, context) in engine.streams.contexts.iter_mut().enumerate() {
        if context.device.is_some_and(|d| devices.contains(&d)) {
            // Lineage of its own: no stream has a number like this one.
            let owner = u32::MAX - index as u32;
            context.waits.raise(now.own, owner, floor);
            context.waits.join(&now.clock, owner, floor);
            context.wait_version += 1;
            context.version += 1;
        }
    }
}

pub(crate) fn fill(engine: &mut Engine, thread: ThreadId, stream: StreamId, dst: Region, asynchronous: bool) -> Epoch {
    let (to, sync) = place(engine, &dst, Space::Unified);
    // Sets take device addresses: what is not known is memory from before the tool was loaded.
    let to = if to == MemoryClass::Pageable { MemoryClass::Device } else { to };
    let slot = engine.begin(stream);
    let context = &engine.streams.contexts[engine.streams.slots[slot as usize].context as usize];
    let rule = policy::set(asynchronous, to, sync || context.sync_memops);
    let upto = engine.streams.slots[slot as usize].time;
    let epoch = engine.advance(slot, upto);
    host_waits(engine, thread, slot, rule);
    overwritten(engine, &dst, slot);
    if engine.options.left_values {
        engine.last_left = dst.array.is_none().then_some((thread, epoch, dst));
    }
    epoch
}

/// The bytes of the fill or the copy before this op become known.
pub(crate) fn bytes_known(engine: &mut Engine, thread: ThreadId, at: u64, bytes: LeftBytes<'_>) {
    let Some((by, epoch, dst)) = engine.last_left.take() else { return };
    let slot = epoch.timeline.0;
    let s = &engine.streams.slots[slot as usize];
    // An op of another thread that came between has changed the stream's clock.
    if by == thread && dst.start == at && s.time == epoch.time {
        engine.sync_vars.leave(dst, bytes, s.snapshot(slot), engine.host.floor_ref());
    }
}

/// The host waits for the op just applied on `slot`, or for what came before it.
fn host_waits(engine: &mut Engine, thread: ThreadId, slot: u32, rule: &Rule) {
    let s: &Stream = &engine.streams.slots[slot as usize];
    for (least, time) in [(HostWait::Before, s.time - 1), (HostWait::Op, s.time)] {
        let guarantee = guarantee(engine, rule, least);
        if guarantee.by_policy || guarantee.documented {
            let mut snapshot = engine.streams.slots[slot as usize].snapshot(slot);
            snapshot.own.time = time;
            acquire(engine, thread, &Covered { snapshot: Some(snapshot), ..Covered::default() }, guarantee);
        }
    }
}

fn overwritten(engine: &mut Engine, dst: &Region, slot: u32) {
    if !engine.sync_vars.is_empty() && dst.array.is_none() {
        let now = engine.streams.slots[slot as usize].snapshot(slot);
        engine.sync_vars.overwrite(dst.start, dst.end(), &now, engine.host.floor_ref());
    }
}
