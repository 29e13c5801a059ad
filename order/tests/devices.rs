//! Several contexts and devices, parts of contexts, semaphores of other APIs, attributes of copies:
//! rules that few programs need.

use crate::common::{CTX, World};
use trace::*;

const OTHER: ContextId = ContextId(2);
const HERE: u64 = 0x1_0000;
const THERE: u64 = 0x2_0000;

/// Two devices with a context, a blocking and a non-blocking stream each, and memory on both.
fn two_devices() -> (World, StreamId, [StreamId; 4]) {
    let mut w = World::new();
    w.op(Op::ContextCreate { context: OTHER, device: 1, handle: 2 });
    let legacy = w.stream(1, StreamKind::Legacy);
    let streams = [
        w.stream(2, StreamKind::Blocking),
        w.stream(3, StreamKind::NonBlocking),
        w.stream_in(OTHER, 4, StreamKind::Blocking),
        w.stream_in(OTHER, 5, StreamKind::NonBlocking),
    ];
    for (ptr, context) in [(HERE, CTX), (THERE, OTHER)] {
        let (kind, stream, pool) = (MemoryKind::Device, StreamId::NONE, PoolId::NONE);
        w.op(Op::Alloc { ptr, size: 64, kind, context, stream, pool, flags: 0 });
    }
    (w, legacy, streams)
}

/// Programming guide, peer-to-peer memory copy: a copy between two devices in the implicit stream
/// starts when everything issued to either device before has completed, and completes before
/// anything issued to either after it starts.
#[test]
fn a_synchronous_peer_copy_is_a_barrier_on_both_devices() {
    let (mut w, legacy, streams) = two_devices();
    let before = streams.map(|s| w.launch(s));
    let copy = w.copy(legacy, THERE, HERE, false);
    assert!(before.iter().all(|e| w.after(*e)), "silent: everything before");
    assert!(before.iter().all(|e| !w.host_after(*e)) && !w.host_after(copy), "but the host does not wait");
    for s in streams {
        assert!(w.launch_after(s, copy) && w.after(before[0]) && w.after(before[3]), "silent: everything after");
    }

    // Reported: a copy inside one device, and a copy in a stream.
    for (dst, asynchronous) in [(HERE + 32, false), (THERE, true)] {
        let (mut w, legacy, [_, _, _, far]) = two_devices();
        let before = w.launch(far);
        let copy = w.copy(legacy, dst, HERE, asynchronous);
        assert!(!w.after(before), "{dst:x} {asynchronous}");
        assert!(!w.launch_after(far, copy), "{dst:x} {asynchronous}");
    }
}

/// cuda.h, `cuCtxSynchronize`: a wait for a primary context waits for its green contexts; not the
/// other way round.
#[test]
fn a_green_context_is_part_of_the_primary_one() {
    let mut w = World::new();
    w.op(Op::ContextCreate { context: OTHER, device: 0, handle: 2 });
    w.op(Op::ContextPart { context: OTHER, whole: CTX });
    let (main, green) = (w.stream(1, StreamKind::NonBlocking), w.stream_in(OTHER, 2, StreamKind::NonBlocking));
    let (k, g) = (w.launch(main), w.launch(green));
    // An event of the green context captures its own streams (cuGreenCtxRecordEvent).
    w.op(Op::ContextRecord { event: EventId(1), context: OTHER });
    let c = w.stream(3, StreamKind::NonBlocking);
    w.wait(c, 1);
    assert!(w.launch_after(c, g), "silent");
    assert!(!w.launch_after(c, k), "reported");
    // Its work waits for an event as a whole (cuGreenCtxWaitEvent).
    w.record(2, main);
    w.op(Op::ContextWait { context: OTHER, event: EventId(2) });
    assert!(w.launch_after(green, k), "silent");
    let late = w.launch(main);
    assert!(!w.launch_after(green, late), "reported");
    w.sync_context();
    assert!(w.host_after(g) && w.host_after(late), "silent: the primary context waits for both");

    let g = w.launch(green);
    let k = w.launch(main);
    w.op(Op::SyncBegin {
        sync: SyncId(900),
        scope: SyncScope::Context,
        stream: StreamId::NONE,
        event: EventId::NONE,
        context: OTHER,
    });
    w.op(Op::SyncEnd { sync: SyncId(900) });
    assert!(w.host_after(g) && !w.host_after(k), "reported: the green one waits for itself");
}

/// cuda.h, `CU_CTX_SYNC_MEMOPS`: "synchronous memory operations initiated on this context will
/// always synchronize".
#[test]
fn a_context_may_make_memory_operations_wait() {
    for on in [false, true] {
        let mut w = World::new();
        let legacy = w.stream(1, StreamKind::Legacy);
        w.alloc(HERE, 64, MemoryKind::Device);
        w.alloc(THERE, 64, MemoryKind::Device);
        w.op(Op::ContextSyncMemops { context: CTX, on });
        let copy = w.copy(legacy, HERE, THERE, false);
        assert_eq!(w.host_after(copy), on, "copy");
        let set = w.set(legacy, HERE, false);
        assert_eq!(w.host_after(set), on, "set");
        let set = w.set(legacy, HERE, true);
        assert!(!w.host_after(set), "asynchronous ones stay so");
    }
}

fn attributed(w: &mut World, stream: StreamId, source: SourceOrder) -> Epoch {
    let (dst, src) = (Region::linear(HERE, 64), Region::linear(THERE, 64));
    let space = Space::Unified;
    w.op(Op::AttributedCopy { stream, dst, src, dst_space: space, src_space: space, batch: 0, source })
}

/// cuda.h, `CUmemcpySrcAccessOrder`: a source that is accessed during the call is free when it
/// returns.
#[test]
fn a_source_may_be_read_during_the_call() {
    let mut w = World::new();
    let [a] = w.streams();
    w.alloc(HERE, 64, MemoryKind::Device);
    w.alloc(THERE, 64, MemoryKind::PinnedHost);
    attributed(&mut w, a, SourceOrder::DuringCall);
    assert!(w.engine.source_epoch().is_some(), "silent");
    attributed(&mut w, a, SourceOrder::Any);
    assert!(w.engine.source_epoch().is_none(), "reported: it may be read late");
    w.copy(a, HERE, THERE, true);
    assert!(w.engine.source_epoch().is_none(), "reported: in stream order");
}

/// The same: "access to the source pointer can be out of stream order", so earlier work of the
/// stream is not over when it is read, unless the host has seen that.
#[test]
fn a_source_out_of_stream_order_may_be_read_before_earlier_work() {
    for source in [SourceOrder::Stream, SourceOrder::DuringCall, SourceOrder::Any] {
        for waits in [false, true] {
            let mut w = World::new();
            let [a] = w.streams();
            w.alloc(HERE, 64, MemoryKind::Device);
            w.alloc(THERE, 64, MemoryKind::PinnedHost);
            let k = w.launch(a);
            if waits {
                w.sync_stream(a);
            }
            let copy = attributed(&mut w, a, source);
            assert!(w.after(k), "the target is written in stream order");
            let early = w.engine.early_source(copy).map(|clock| clock.covers(k));
            assert_eq!(early, (source != SourceOrder::Stream).then_some(waits), "{source:?} {waits}");
            w.copy(a, HERE, THERE, true);
            assert!(w.engine.early_source(copy).is_some() == early.is_some(), "it is asked by its epoch");
        }
    }
}

/// Measured on an H200 with driver 580 (`tests/gpu/programs/batch_sources.h200.txt`): with
/// `DURING_API_CALL` the stream is drained before the call returns, unless the source is pageable;
/// then 1 MiB and more are read after it has returned.
#[test]
fn what_the_driver_does_during_the_call() {
    const TO: u64 = 1 << 32;
    const FROM: u64 = 2 << 32;
    use MemoryKind::{Device, Managed, PinnedHost, RegisteredHost};
    for policy in [order::Policy::Observed, order::Policy::Documented] {
        for kind in [Some(PinnedHost), Some(RegisteredHost), Some(Managed), Some(Device), None] {
            for len in [64_u64, 1 << 16, 1 << 20, 8 << 20] {
                let mut options = order::Options::default();
                options.policy = policy;
                let mut w = World::with(options);
                let [a] = w.streams();
                w.alloc(TO, len, Device);
                if let Some(kind) = kind {
                    w.alloc(FROM, len, kind);
                }
                let k = w.launch(a);
                let (dst, src) = (Region::linear(TO, len), Region::linear(FROM, len));
                let (dst_space, src_space, source) = (Space::Unified, Space::Unified, SourceOrder::DuringCall);
                w.op(Op::AttributedCopy { stream: a, dst, src, dst_space, src_space, batch: 0, source });
                let observed = policy == order::Policy::Observed;
                let is_late = observed && kind.is_none() && len >= 1 << 20;
                assert_eq!(w.engine.source_epoch().is_none(), is_late, "{policy:?} {kind:?} {len}");
                assert_eq!(w.host_after(k), observed && kind.is_some(), "{policy:?} {kind:?} {len}");
            }
        }
    }
}

/// External semaphores: a wait for a value is after the signals that may have given it.
#[test]
fn a_semaphore_orders_two_streams() {
    let mut w = World::new();
    let [a, b, c, d] = w.streams();
    let k = w.launch(a);
    w.op(Op::SemaphoreSignal { stream: a, semaphore: 1, value: 5 });
    let late = w.launch(a);
    w.op(Op::SemaphoreWait { stream: b, semaphore: 1, value: 5 });
    assert!(w.launch_after(b, k), "silent");
    assert!(!w.launch_after(b, late), "reported");
    assert!(!w.launch_after(c, k), "reported: c did not wait");
    // A value that has not been signalled yet: not judged, until it is.
    w.op(Op::SemaphoreWait { stream: d, semaphore: 2, value: 1 });
    assert!(w.launch_after(d, late));
    w.op(Op::SemaphoreSignal { stream: c, semaphore: 2, value: 1 });
    assert!(!w.launch_after(d, late), "reported");
}
