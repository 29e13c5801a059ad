//! Streams and events: each rule, and where it must not reach.

use crate::common::{self, World};
use order::{Options, Overlap};
use trace::*;

/// Programming guide, streams: what is enqueued in one stream runs in that order.
#[test]
fn one_stream_is_in_order() {
    let mut w = World::new();
    let [a] = w.streams();
    let k = w.launch(a);
    assert!(w.launch_after(a, k));
}

/// Programming guide, streams: different streams may run in any order, or at once.
#[test]
fn two_streams_are_not() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let k = w.launch(a);
    assert!(!w.launch_after(b, k));
}

/// `cuEventRecord` (what the stream held at the time of the call) and `cuStreamWaitEvent` (all
/// later work of the stream).
#[test]
fn a_wait_orders_what_was_before_the_record() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let before = w.launch(a);
    w.record(1, a);
    let after = w.launch(a);
    w.wait(b, 1);
    assert!(w.launch_after(b, before));
    assert!(!w.launch_after(b, after), "the record had expired");
}

/// `cuStreamWaitEvent`: an event without a record is complete.
#[test]
fn a_wait_on_an_event_never_recorded_is_no_order() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let k = w.launch(a);
    w.wait(b, 1);
    w.record(1, a);
    assert!(!w.launch_after(b, k), "recorded only after the wait");
    w.wait(b, 1);
    assert!(w.launch_after(b, k));
}

/// `cuStreamWaitEvent`: holds back the stream that waits, not the one that recorded.
#[test]
fn a_wait_in_the_wrong_direction_is_no_order() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let k = w.launch(a);
    w.record(1, b);
    w.wait(a, 1);
    assert!(!w.launch_after(b, k));
}

/// `cuEventRecord`: a later record overwrites; waits made before keep what they captured.
#[test]
fn recording_again_replaces_the_snapshot_for_later_waits_only() {
    let mut w = World::new();
    let [a, b, c, d] = w.streams();
    let ka = w.launch(a);
    w.record(1, a);
    w.wait(c, 1);
    let kb = w.launch(b);
    w.record(1, b);
    w.wait(d, 1);
    assert!(w.launch_after(c, ka) && !w.after(kb));
    assert!(w.launch_after(d, kb) && !w.after(ka));
}

/// `cuEventDestroy`: may be called with the event pending; what waits goes on waiting.
#[test]
fn destroying_an_event_keeps_waits_and_forgets_records() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let k = w.launch(a);
    w.record(1, a);
    w.wait(b, 1);
    w.op(Op::EventDestroy { event: EventId(1) });
    w.wait(c, 1);
    assert!(w.launch_after(b, k));
    assert!(!w.launch_after(c, k));
}

/// Follows from `cuStreamWaitEvent`: a record captures what its stream waited for.
#[test]
fn order_passes_through_a_chain_of_streams() {
    let mut w = World::new();
    let streams: [StreamId; 40] = w.streams();
    let mut ks = vec![];
    for (i, pair) in streams.windows(2).enumerate() {
        ks.push(w.launch(pair[0]));
        w.record(i as u32 + 1, pair[0]);
        w.wait(pair[1], i as u32 + 1);
    }
    w.launch(streams[39]);
    for &k in &ks {
        assert!(w.after(k));
    }
    w.launch(streams[20]);
    assert!(w.after(ks[19]) && w.after(ks[20]) && !w.after(ks[21]));
}

/// Follows from `cuStreamWaitEvent`: two streams that wait for a third are not ordered by it.
#[test]
fn branches_are_ordered_with_the_trunk_and_not_with_each_other() {
    let mut w = World::new();
    let [trunk, left, right] = w.streams();
    let k = w.launch(trunk);
    w.record(1, trunk);
    w.wait(left, 1);
    w.wait(right, 1);
    let l = w.launch(left);
    assert!(w.after(k));
    let r = w.launch(right);
    assert!(w.after(k) && !w.after(l));
    w.record(2, left);
    w.wait(trunk, 2);
    w.launch(trunk);
    assert!(w.after(l) && !w.after(r), "only one branch was joined");
}

/// `cuStreamWaitEvent`: each wait is one more condition for what comes later.
#[test]
fn several_waits_add_up() {
    let mut w = World::new();
    let streams: [StreamId; 20] = w.streams();
    let ks: Vec<_> = streams[1..].iter().map(|&s| w.launch(s)).collect();
    for (i, &s) in streams[1..].iter().enumerate() {
        w.record(i as u32 + 1, s);
        w.wait(streams[0], i as u32 + 1);
    }
    w.launch(streams[0]);
    assert!(ks.iter().all(|&k| w.after(k)));
}

/// The same rules over many streams, where clocks are stored in another form.
#[test]
fn fork_and_join_over_many_streams_stays_exact() {
    let mut w = World::new();
    let streams: [StreamId; 33] = w.streams();
    let (main, workers) = streams.split_first().unwrap();
    let mut last: Vec<Epoch> = vec![];
    for round in 0..5 {
        let k = w.launch(*main);
        w.record(100, *main);
        assert!(last.iter().all(|&e| w.engine.start_clock().covers(e)));
        last.clear();
        for (i, &s) in workers.iter().enumerate() {
            w.wait(s, 100);
            let e = w.launch(s);
            assert!(w.after(k), "round {round}, worker {i}");
            assert!(last.iter().all(|&e| !w.engine.start_clock().covers(e)), "round {round}, worker {i}");
            last.push(e);
        }
        for (i, &s) in workers.iter().enumerate() {
            w.record(200 + i as u32, s);
            w.wait(*main, 200 + i as u32);
        }
    }
}

/// cuda.h, `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`, `..._LAUNCH_COMPLETION_EVENT`: fires before
/// the kernel has completed.
#[test]
fn a_programmatic_event_says_only_that_the_kernel_started() {
    for mode in [EventMode::Programmatic, EventMode::LaunchCompletion] {
        let mut w = World::new();
        let [a, b] = w.streams();
        let first = w.launch(a);
        let second = w.launch(a);
        w.op(Op::EventRecord { event: EventId(1), stream: a, mode });
        w.wait(b, 1);
        w.launch(b);
        assert!(w.after(first) && !w.after(second));
    }
}

/// cuda.h, `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`: a dependent launch may wait by itself.
#[test]
fn a_kernel_that_waits_is_behind_the_kernel_that_fired_the_event() {
    for (waits, is_after) in [(true, true), (false, false)] {
        let mut w = World::new();
        let [a, b] = w.streams();
        let first = w.launch(a);
        let mode = EventMode::Programmatic;
        w.op(Op::EventRecord { event: EventId(1), stream: a, mode });
        assert!(!w.engine.is_behind_fired(b));
        w.wait(b, 1);
        assert!(w.engine.is_behind_fired(b) && !w.engine.is_behind_fired(a));
        w.engine.launch_behind_fired(b, waits);
        w.launch(b);
        assert_eq!(w.after(first), is_after, "waits: {waits}");
        // It is asked once: what a later kernel waits for is the one before it.
        assert!(!w.engine.is_behind_fired(b));
    }
    // Recorded again as an ordinary event.
    let mut w = World::new();
    let [a, b] = w.streams();
    w.launch(a);
    w.op(Op::EventRecord { event: EventId(1), stream: a, mode: EventMode::Programmatic });
    w.record(1, a);
    w.wait(b, 1);
    assert!(!w.engine.is_behind_fired(b));
}

/// cuda.h, `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: may begin before the kernel
/// before it has ended.
#[test]
fn an_overlapping_launch_is_not_after_its_predecessor() {
    let mut w = World::new();
    let [a] = w.streams();
    let pdl = launch_flags::PROGRAMMATIC_SERIALIZATION;
    let k0 = w.launch(a);
    let k1 = w.launch(a);
    let k2 = w.launch_flags(a, pdl);
    assert!(w.after(k0) && !w.after(k1));
    w.launch_flags(a, pdl);
    assert!(w.after(k0) && !w.after(k1) && !w.after(k2), "overlap is passed on");
    w.launch(a);
    assert!(w.after(k1) && w.after(k2), "an ordinary launch waits for all");
    let k4 = w.launch(a);
    let overlap = Overlap { waits: true, ..Overlap::default() };
    w.engine.apply_overlapping_launch(a, KernelId(1), common::MAIN, overlap);
    assert!(w.after(k4), "the kernel waits by itself");
    let copy = w.set(a, 0x1000, true);
    w.launch_flags(a, pdl);
    assert!(w.after(copy), "the overlap is only with a kernel");
    let k5 = w.launch(a);
    w.sync_stream(a);
    w.launch_flags(a, pdl);
    assert!(w.after(k5), "the host had seen it finish");
}

/// CUDA C++ Programming Guide, programmatic dependent launch: from compute capability 9.0 on. CUB
/// sets the attribute on every device.
#[test]
fn launches_overlap_from_compute_capability_9_on() {
    let pdl = launch_flags::PROGRAMMATIC_SERIALIZATION;
    let overlaps = |arch| {
        let mut w = World::on_device(Options::default(), arch);
        let [a] = w.streams();
        let first = w.launch(a);
        w.launch_flags(a, pdl);
        !w.after(first)
    };
    for arch in [90, 100, 120] {
        assert!(overlaps(Some(arch)), "{arch}");
    }
    for arch in [Some(70), Some(80), Some(89), None] {
        assert!(!overlaps(arch), "{arch:?}: no order is taken away");
    }
}

/// The same, in a program with two unlike devices: each stream by its own.
#[test]
fn launches_overlap_by_the_device_of_their_stream() {
    let pdl = launch_flags::PROGRAMMATIC_SERIALIZATION;
    let mut w = World::on_device(Options::default(), Some(80));
    w.engine.define_device(1, 90);
    w.op(Op::ContextCreate { context: ContextId(2), device: 1, handle: 2 });
    let old = w.stream(1, StreamKind::NonBlocking);
    let new = w.stream_in(ContextId(2), 2, StreamKind::NonBlocking);
    let nowhere = w.stream_in(ContextId(3), 3, StreamKind::NonBlocking);
    for (stream, overlaps) in [(old, false), (new, true), (nowhere, false)] {
        let first = w.launch(stream);
        w.launch_flags(stream, pdl);
        assert_eq!(!w.after(first), overlaps, "{stream:?}");
    }
}

/// Below 9.0 no block fires the event before it ends. That all blocks have begun says as little as
/// ever.
#[test]
fn a_programmatic_event_is_the_end_where_nothing_overlaps() {
    for (arch, mode, ended) in [
        (Some(80), EventMode::Programmatic, true),
        (None, EventMode::Programmatic, true),
        (Some(90), EventMode::Programmatic, false),
        (Some(80), EventMode::LaunchCompletion, false),
    ] {
        let mut w = World::on_device(Options::default(), arch);
        let [a, b] = w.streams();
        let kernel = w.launch(a);
        w.op(Op::EventRecord { event: EventId(1), stream: a, mode });
        let later = w.launch(a);
        w.wait(b, 1);
        w.launch(b);
        assert_eq!(w.after(kernel), ended, "{arch:?} {mode:?}");
        assert!(!w.after(later), "{arch:?} {mode:?}");
    }
}

/// `cuCtxRecordEvent`: captures all work of the context at the time of the call.
#[test]
fn a_context_event_stands_for_all_streams() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let other = w.stream_in(ContextId(2), 9, StreamKind::NonBlocking);
    let (ka, kb, ko) = (w.launch(a), w.launch(b), w.launch(other));
    w.op(Op::ContextRecord { event: EventId(1), context: common::CTX });
    let late = w.launch(a);
    w.wait(c, 1);
    w.launch(c);
    assert!(w.after(ka) && w.after(kb) && !w.after(ko) && !w.after(late));
}

/// `cuCtxWaitEvent`: all future work of the context waits.
#[test]
fn a_context_waits_with_all_its_streams_new_ones_too() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let other = w.stream_in(ContextId(2), 9, StreamKind::NonBlocking);
    let ko = w.launch(other);
    w.record(1, other);
    let before = w.launch(a);
    w.op(Op::ContextWait { context: common::CTX, event: EventId(1) });
    for s in [a, b] {
        assert!(w.launch_after(s, ko));
    }
    assert!(!w.after(before));
    let new = w.stream(20, StreamKind::Blocking);
    assert!(w.launch_after(new, ko));
    let third = w.stream_in(ContextId(3), 30, StreamKind::Blocking);
    assert!(!w.launch_after(third, ko));
}
