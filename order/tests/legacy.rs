//! The legacy default stream and per-thread default streams.

use crate::common::{self, World};
use trace::*;

fn setup() -> (World, StreamId, StreamId, StreamId, StreamId) {
    let mut w = World::new();
    let legacy = w.stream(1, StreamKind::Legacy);
    let a = w.stream(2, StreamKind::Blocking);
    let b = w.stream(3, StreamKind::Blocking);
    let n = w.stream(4, StreamKind::NonBlocking);
    (w, legacy, a, b, n)
}

/// Driver API, stream synchronization behavior: the legacy default stream and blocking streams wait
/// for each other.
#[test]
fn a_legacy_op_waits_for_blocking_streams_and_holds_back_later_ops() {
    let (mut w, legacy, a, b, _) = setup();
    let ka = w.launch(a);
    let kl = w.launch(legacy);
    assert!(w.after(ka));
    w.launch(b);
    assert!(w.after(kl) && w.after(ka), "b is fenced off from a by the legacy op");
}

/// The same page: only the legacy stream orders blocking streams.
#[test]
fn blocking_streams_are_unordered_without_a_legacy_op_between() {
    let (mut w, legacy, a, b, _) = setup();
    w.launch(legacy);
    let ka = w.launch(a);
    assert!(!w.launch_after(b, ka));
}

/// `CU_STREAM_NON_BLOCKING`: no implicit synchronisation with the legacy stream.
#[test]
fn non_blocking_streams_take_no_part() {
    let (mut w, legacy, a, _, n) = setup();
    let kn = w.launch(n);
    let ka = w.launch(a);
    let kl = w.launch(legacy);
    assert!(w.after(ka) && !w.after(kn));
    assert!(!w.launch_after(n, kl));
}

/// Driver API, stream synchronization behavior: the per-thread default stream synchronises with the
/// legacy one.
#[test]
fn per_thread_streams_are_blocking_streams() {
    let (mut w, legacy, a, _, _) = setup();
    let p = w.stream(10, StreamKind::PerThread);
    let q = w.stream(11, StreamKind::PerThread);
    let kp = w.launch(p);
    assert!(!w.launch_after(q, kp), "but do not wait for each other");
    assert!(!w.launch_after(a, kp));
    let kl = w.launch(legacy);
    assert!(w.after(kp));
    assert!(w.launch_after(q, kl) && w.after(kp));
}

/// The same page speaks of any action; measured: `tests/gpu/programs/what_waits.cu`, "record on c
/// after record on 0".
#[test]
fn recording_and_waiting_on_the_legacy_stream_are_actions() {
    let (mut w, legacy, a, b, n) = setup();
    let ka = w.launch(a);
    w.record(1, legacy);
    w.wait(n, 1);
    assert!(w.launch_after(n, ka), "the record waits for blocking streams");
    let kn = w.launch(n);
    w.record(2, n);
    w.wait(legacy, 2);
    assert!(w.launch_after(b, kn), "the wait holds back blocking streams");
}

/// Measured (tests/gpu/programs/what_waits.cu, "record on c after wait(0, never recorded)"): such a
/// wait is no action of the legacy stream, so it is no barrier among blocking streams.
#[test]
fn waiting_for_an_event_never_recorded_is_no_action() {
    let (mut w, legacy, a, b, _) = setup();
    let ka = w.launch(a);
    w.op(Op::EventCreate { event: EventId(7), context: common::CTX, flags: 0, handle: 7 });
    w.wait(legacy, 7);
    assert!(!w.launch_after(b, ka), "no barrier");
    w.wait(legacy, 8);
    assert!(!w.launch_after(b, ka), "nor for an event that was never seen made");
    w.record(7, b);
    w.wait(legacy, 7);
    assert!(w.launch_after(b, ka), "its silent twin: a recorded event");
}

/// The same page: every action of a blocking stream waits for legacy work before it.
#[test]
fn recording_on_a_blocking_stream_comes_after_legacy_work() {
    let (mut w, legacy, a, _, n) = setup();
    let kl = w.launch(legacy);
    w.record(1, a);
    w.wait(n, 1);
    assert!(w.launch_after(n, kl));
}

/// The same page: the default stream is one of the current context.
#[test]
fn contexts_have_legacy_streams_of_their_own() {
    let (mut w, legacy, a, _, _) = setup();
    let other = w.stream_in(ContextId(2), 20, StreamKind::Blocking);
    let other_legacy = w.stream_in(ContextId(2), 21, StreamKind::Legacy);
    let ka = w.launch(a);
    let ko = w.launch(other);
    w.launch(legacy);
    assert!(w.after(ka) && !w.after(ko));
    w.launch(other_legacy);
    assert!(w.after(ko) && !w.after(ka));
}

/// Follows: the legacy stream waits for the streams, so for what they waited for.
#[test]
fn what_a_blocking_stream_waited_for_goes_along() {
    let (mut w, legacy, a, b, n) = setup();
    let kn = w.launch(n);
    w.record(1, n);
    w.wait(a, 1);
    w.launch(legacy);
    assert!(w.after(kn));
    assert!(w.launch_after(b, kn));
}

/// Follows: a stream made later is a blocking stream like any other.
#[test]
fn a_stream_made_later_waits_for_earlier_legacy_work() {
    let (mut w, legacy, ..) = setup();
    let kl = w.launch(legacy);
    let new = w.stream(30, StreamKind::Blocking);
    assert!(w.launch_after(new, kl));
    let new = w.stream(31, StreamKind::NonBlocking);
    assert!(!w.launch_after(new, kl));
}

/// Follows: it exists from the beginning, whether or not it was used.
#[test]
fn a_legacy_stream_first_seen_late_has_missed_nothing() {
    let mut w = World::new();
    let a = w.stream(1, StreamKind::Blocking);
    let ka = w.launch(a);
    let legacy = w.stream(2, StreamKind::Legacy);
    assert!(w.launch_after(legacy, ka));
}

/// `cuStreamSynchronize(0)`: measured, `tests/gpu/programs/what_waits.cu`.
#[test]
fn synchronising_the_legacy_stream_covers_blocking_streams_only() {
    let (mut w, legacy, a, _, n) = setup();
    let (ka, kn) = (w.launch(a), w.launch(n));
    w.sync_stream(legacy);
    assert!(w.host_after(ka) && !w.host_after(kn));
    let s = w.begin(1, SyncScope::Legacy, StreamId::NONE, 0);
    let late = w.launch(a);
    w.end(s);
    assert!(!w.host_after(late));
}

/// The same rules over many streams, applied lazily.
#[test]
fn many_streams_around_a_legacy_stream_stay_exact() {
    let mut w = World::new();
    let legacy = w.stream(1, StreamKind::Legacy);
    let streams: Vec<_> = (0..50).map(|i| w.stream(10 + i, StreamKind::Blocking)).collect();
    let outside = w.stream(2, StreamKind::NonBlocking);
    let mut before = vec![];
    for round in 0..4 {
        let ko = w.launch(outside);
        let mut now: Vec<Epoch> = vec![];
        for (i, &s) in streams.iter().enumerate() {
            now.push(w.launch(s));
            assert!(before.iter().all(|&e| w.after(e)), "round {round}, stream {i}");
            assert!(now[..i].iter().all(|&e| !w.after(e)), "round {round}, stream {i}");
            assert!(!w.after(ko));
        }
        before = now;
        before.push(w.launch(legacy));
    }
}
