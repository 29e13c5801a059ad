//! What the host has seen finish, and with it everything that it enqueues afterwards.

use crate::common::{self, CTX, World};
use order::Options;
use trace::*;

/// `cuStreamSynchronize`: waits for one stream; whatever is enqueued afterwards, anywhere, comes
/// after it.
#[test]
fn a_stream_synchronise_covers_one_stream_for_everybody() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let (ka, kb) = (w.launch(a), w.launch(b));
    w.sync_stream(a);
    assert!(w.host_after(ka) && !w.host_after(kb));
    assert!(w.launch_after(c, ka) && !w.after(kb));
    w.launch(b);
    assert!(w.after(ka), "streams that ran before learn of it too");
}

/// Follows: the stream cannot be over before what it waited for.
#[test]
fn what_the_synchronised_stream_waited_for_is_covered_too() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let ka = w.launch(a);
    w.record(1, a);
    let late = w.launch(a);
    w.wait(b, 1);
    w.sync_stream(b);
    assert!(w.host_after(ka) && !w.host_after(late));
    assert!(w.launch_after(c, ka));
}

/// `cuEventSynchronize`: waits for the work captured by the latest record.
#[test]
fn an_event_synchronise_covers_the_snapshot_only() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let ka = w.launch(a);
    w.record(1, a);
    let late = w.launch(a);
    w.sync_event(1);
    assert!(w.launch_after(b, ka) && !w.after(late));
    let never = w.launch(b);
    w.sync_event(7);
    assert!(!w.host_after(never));
}

/// `cuCtxSynchronize`: all preceding tasks of the context.
#[test]
fn a_context_synchronise_covers_all_its_streams_and_no_others() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let blocking = w.stream(8, StreamKind::Blocking);
    let other = w.stream_in(ContextId(2), 9, StreamKind::NonBlocking);
    let ks = [w.launch(a), w.launch(b), w.launch(blocking)];
    let ko = w.launch(other);
    w.sync_context();
    assert!(ks.iter().all(|&k| w.host_after(k)) && !w.host_after(ko));
    let new = w.stream(20, StreamKind::NonBlocking);
    w.launch(new);
    assert!(ks.iter().all(|&k| w.after(k)), "a new stream starts from what the host knows");
    let late = w.launch(a);
    assert!(!w.launch_after(b, late), "the synchronisation has expired");
}

/// Follows, where its streams had waited for the other context.
#[test]
fn a_context_synchronise_covers_what_other_contexts_did_before() {
    let mut w = World::new();
    let [a] = w.streams();
    let other = w.stream_in(ContextId(2), 9, StreamKind::NonBlocking);
    let ko = w.launch(other);
    w.record(1, other);
    w.wait(a, 1);
    let late = w.launch(other);
    w.sync_context();
    assert!(w.host_after(ko) && !w.host_after(late));
}

/// `cuDevicePrimaryCtxReset` and the end of a device: measured for `cudaFree`,
/// `tests/gpu/programs/what_waits.cu`.
#[test]
fn a_device_wide_wait_covers_every_context() {
    let mut w = World::new();
    let other = w.stream_in(ContextId(2), 9, StreamKind::NonBlocking);
    let ko = w.launch(other);
    let s = w.begin(1, SyncScope::Device, StreamId::NONE, 0);
    w.end(s);
    assert!(w.host_after(ko));
}

/// `cuStreamSynchronize`: tasks that precede the call; what other threads enqueue meanwhile is not
/// promised.
#[test]
fn a_wait_covers_what_was_enqueued_before_it_began_and_only_when_it_ends() {
    for scope in [SyncScope::Stream, SyncScope::Context, SyncScope::Device] {
        let mut w = World::new();
        let [a, b] = w.streams();
        let before = w.launch(a);
        let s = w.begin(2, scope, a, 0);
        assert!(!w.host_after(before), "{scope:?}: it has not ended");
        assert!(!w.launch_after(b, before));
        let during = w.launch(a);
        w.end(s);
        assert!(w.host_after(before) && !w.host_after(during), "{scope:?}");
    }
}

/// As before, for waits of several threads at once.
#[test]
fn waits_of_several_threads_overlap() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let ka = w.launch(a);
    let sa = w.begin(1, SyncScope::Stream, a, 0);
    let kb = w.launch(b);
    let all = w.begin(2, SyncScope::Context, StreamId::NONE, 0);
    let late = w.launch(b);
    w.end(all);
    assert!(w.host_after(ka) && w.host_after(kb) && !w.host_after(late));
    w.end(sa);
    assert!(!w.host_after(late));
}

/// A trace may begin in the middle of a wait: it proves nothing.
#[test]
fn a_wait_that_ends_without_a_beginning_is_nothing() {
    let mut w = World::new();
    let [a] = w.streams();
    let k = w.launch(a);
    w.end((common::MAIN, SyncId(99)));
    let s = w.begin(1, SyncScope::Stream, a, 0);
    w.end((ThreadId(2), s.1));
    assert!(!w.host_after(k), "another thread's end");
    w.end(s);
    assert!(w.host_after(k));
}

/// `cuStreamQuery`: `CUDA_SUCCESS` says that all work of the stream has completed.
#[test]
fn a_successful_stream_query_covers_what_was_there_when_it_began() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let kc = w.launch(c);
    w.record(2, c);
    let kb = w.launch(b);
    w.record(1, b);
    w.wait(a, 1);
    let ka = w.launch(a);
    let upto = w.engine.stream_time(a);
    w.wait(a, 2);
    let late = w.launch(a);
    w.op(Op::StreamIdle { stream: a, upto });
    assert!(w.host_after(ka) && w.host_after(kb));
    assert!(!w.host_after(late) && !w.host_after(kc), "enqueued by another thread during the query");
}

/// `cuEventQuery`: about the work captured by the latest record.
#[test]
fn a_successful_event_query_is_about_the_record_when_it_began() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let ka = w.launch(a);
    w.record(1, a);
    let record = w.engine.event_record(EventId(1));
    let kb = w.launch(b);
    w.record(1, b);
    w.op(Op::EventReached { event: EventId(1), record });
    assert!(w.host_after(ka) && !w.host_after(kb));
    w.op(Op::EventReached { event: EventId(1), record: 0 });
    w.op(Op::EventReached { event: EventId(1), record: 77 });
    w.op(Op::EventReached { event: EventId(5), record: 1 });
    assert!(!w.host_after(kb), "not recorded, not yet recorded, not known");
}

/// Measured, `tests/gpu/programs/what_waits.cu`: "cudaStreamQuery(0) with b busy" answers not
/// ready.
#[test]
fn an_idle_legacy_stream_means_idle_blocking_streams() {
    let mut w = World::new();
    let legacy = w.stream(1, StreamKind::Legacy);
    let blocking = w.stream(2, StreamKind::Blocking);
    let free = w.stream(3, StreamKind::NonBlocking);
    w.launch(legacy);
    let (kb, kf) = (w.launch(blocking), w.launch(free));
    let upto = w.engine.stream_time(legacy);
    w.op(Op::StreamIdle { stream: legacy, upto });
    assert!(w.host_after(kb) && !w.host_after(kf));
}

/// Programming guide, asynchronous execution: work starts after it is enqueued, and is over for the
/// host when it waited.
#[test]
fn host_accesses_are_ordered_by_enqueueing_and_synchronising() {
    let mut w = World::new();
    let [a] = w.streams();
    let store = w.engine.host_epoch();
    let k = w.launch(a);
    assert!(w.after(store), "a launch comes after what the host did");
    let store = w.engine.host_epoch();
    assert!(!w.after(store), "but not after what the host does next");
    assert!(!w.engine.host_clock().covers(k));
    w.sync_stream(a);
    assert!(w.engine.host_clock().covers(k) && w.engine.host_clock().covers(store));
}

/// `cuLaunchHostFunc`: after the work before it, before the work after it.
#[test]
fn a_host_function_runs_in_stream_order_and_is_not_the_host() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let seen = w.launch(b);
    w.sync_stream(b);
    let before = w.launch(a);
    let unrelated = w.launch(b);
    let f = w.op(Op::HostFunc { stream: a, func: HostFuncId(1), address: 1 });
    let after = w.launch(a);
    assert!(w.after(f));
    w.sync_stream(b);
    let run = w.op(Op::HostFuncRun { func: HostFuncId(1), done: false });
    assert_eq!(run, f);
    assert!(w.after(before) && w.after(seen) && !w.after(after));
    assert!(!w.after(unrelated), "that the host learnt later by chance is no order");
    let store = w.engine.host_epoch();
    w.launch(b);
    assert!(w.after(store) && !w.after(f));
    w.op(Op::HostFuncRun { func: HostFuncId(1), done: true });
    assert!(!w.host_after(f) && !w.host_after(before));
    assert!(w.engine.host_function(HostFuncId(1)).is_none());
}

/// `cuLaunchHostFunc`: a load or store inside it is ordered as the function is.
#[test]
fn what_a_host_function_touches_is_ordered_as_the_function_is() {
    let mut w = World::new();
    let [a, b] = w.streams();
    assert!(w.engine.host_knows_all());
    let before = w.launch(a);
    assert!(!w.engine.host_knows_all());
    let f = w.op(Op::HostFunc { stream: a, func: HostFuncId(1), address: 1 });
    let other = w.launch(b);
    let frontier = w.engine.times();
    assert!(frontier[other.timeline.0 as usize] >= other.time && frontier[f.timeline.0 as usize] >= f.time);
    w.op(Op::HostFuncRun { func: HostFuncId(1), done: false });
    let touch = |func| {
        let region = Region::linear(8, 4);
        Op::HostTouch { region, writes: true, atomic: false, polled: false, func }
    };
    assert_eq!(w.op(touch(HostFuncId(1))), f);
    assert!(w.after(before) && !w.after(other));
    w.op(touch(HostFuncId::NONE));
    assert!(!w.after(before), "the host itself has waited for nothing");
    w.sync_stream(a);
    assert!(!w.engine.host_knows_all());
    w.sync_stream(b);
    assert!(w.engine.host_knows_all());
    w.op(touch(HostFuncId::NONE));
    assert!(w.after(before) && w.after(other));
}

/// `cuLaunchHostFunc`: what it stores for the host is the program's own protocol, hence an option.
#[test]
fn a_host_function_may_count_as_a_message_to_the_host() {
    // JAX 0.10: the host waits until a function behind an awaited event has woken it, and goes on
    // before that function has returned.
    let mut options = Options::default();
    options.host_functions_signal = true;
    let mut w = World::with(options);
    let [a, b] = w.streams();
    let awaited = w.launch(b);
    w.record(1, b);
    let not_awaited = w.launch(b);
    let before = w.launch(a);
    w.wait(a, 1);
    let f = w.op(Op::HostFunc { stream: a, func: HostFuncId(1), address: 1 });
    let after = w.launch(a);
    assert!(!w.host_after(before) && !w.host_after(awaited), "it does not run yet");
    w.op(Op::HostFuncRun { func: HostFuncId(1), done: false });
    assert!(w.host_after(before) && w.host_after(awaited), "it may have sent it");
    assert!(!w.host_after(f) && !w.host_after(after) && !w.host_after(not_awaited));
    w.op(Op::HostFuncRun { func: HostFuncId(1), done: true });
    assert!(w.host_after(f) && !w.host_after(after) && !w.host_after(not_awaited));
}

/// `cuStreamDestroy`: returns at once, pending work goes on.
#[test]
fn destroying_a_stream_is_no_synchronisation() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let k = w.launch(a);
    w.op(Op::StreamDestroy { stream: a });
    assert!(!w.host_after(k) && !w.launch_after(b, k));
    w.sync_context();
    assert!(w.host_after(k), "its work still counts");
}

/// `cuCtxDestroy`: nothing of the context is left.
#[test]
fn a_destroyed_context_leaves_nothing_running() {
    let mut w = World::new();
    let other = w.stream_in(ContextId(2), 9, StreamKind::NonBlocking);
    let (ko, ka) = (w.launch(other), w.launch(StreamId(1)));
    w.op(Op::ContextDestroy { context: ContextId(2) });
    assert!(w.host_after(ko) && !w.host_after(ka));
    w.op(Op::ContextDestroy { context: ContextId::NONE });
    assert!(!w.host_after(ka));
    w.op(Op::ContextDestroy { context: CTX });
}

/// Follows from the order of host functions: what the host learns later did not come before them.
#[test]
fn a_kept_clock_does_not_learn() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let k = w.launch(a);
    let before = w.launch(b);
    w.launch(b);
    let kept = w.engine.start_clock().snapshot();
    let host = w.engine.host_clock().snapshot();
    w.sync_context();
    assert!(w.host_after(k));
    assert!(!kept.clock().covers(k) && kept.clock().covers(before));
    assert!(!host.clock().covers(k) && host.clock().snapshot().clock().time_of(k.timeline) == 0);
}
