//! The behaviours that PyTorch publishes for the engine of its CUDA Sanitizer
//! (`test/test_cuda_sanitizer.py`, the tests of its event handler), each as a scenario of our own,
//! each with its silent twin. "Reported" means here: the later op is not ordered after the earlier
//! one.

use crate::common::{self, World};
use trace::*;

/// Expired record: what is enqueued after the record is not in it.
#[test]
fn an_expired_record() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let before = w.launch(a);
    w.record(1, a);
    let after = w.launch(a);
    w.wait(b, 1);
    w.launch(b);
    assert!(!w.after(after), "reported: launched after the record");
    assert!(w.after(before), "silent: launched before it");
    // Twin: recorded again after the launch.
    w.record(1, a);
    w.wait(b, 1);
    assert!(w.launch_after(b, after));
}

/// Deleted record: an event that is destroyed, or destroyed and made again, has no record.
#[test]
fn a_deleted_record() {
    for (destroy, create) in [(true, false), (true, true), (false, false)] {
        let mut w = World::new();
        let [a, b] = w.streams();
        w.op(Op::EventCreate { event: EventId(1), context: common::CTX, flags: 0, handle: 1 });
        let k = w.launch(a);
        w.record(1, a);
        if destroy {
            w.op(Op::EventDestroy { event: EventId(1) });
        }
        // The driver hands the same handle out again; it is another event.
        let event = if create { 2 } else { 1 };
        if create {
            w.op(Op::EventCreate { event: EventId(2), context: common::CTX, flags: 0, handle: 1 });
        }
        w.wait(b, event);
        assert_eq!(w.launch_after(b, k), !destroy, "destroyed: {destroy}, made again: {create}");
    }
}

/// A wait that was made before the event was destroyed stays.
#[test]
fn a_record_deleted_after_the_wait() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let k = w.launch(a);
    w.record(1, a);
    w.wait(b, 1);
    w.op(Op::EventDestroy { event: EventId(1) });
    assert!(w.launch_after(b, k));
}

/// Record override: the latest record counts, whichever stream it was on.
#[test]
fn a_record_override() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let (ka, kb) = (w.launch(a), w.launch(b));
    w.record(1, a);
    w.record(1, b);
    w.wait(c, 1);
    w.launch(c);
    assert!(!w.after(ka), "reported: the record on a is gone");
    assert!(w.after(kb), "silent");
    // Twin: two events.
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let (ka, kb) = (w.launch(a), w.launch(b));
    w.record(1, a);
    w.record(2, b);
    w.wait(c, 1);
    w.wait(c, 2);
    w.launch(c);
    assert!(w.after(ka) && w.after(kb));
}

/// Chained synchronisation: order passes through ten streams, and stops where a link is missing.
#[test]
fn chained_synchronisation() {
    for broken in [None, Some(4)] {
        let mut w = World::new();
        let streams: [StreamId; 10] = w.streams();
        let first = w.launch(streams[0]);
        for i in 0..9 {
            w.record(i as u32 + 1, streams[i]);
            if broken != Some(i) {
                w.wait(streams[i + 1], i as u32 + 1);
            }
        }
        assert_eq!(w.launch_after(streams[9], first), broken.is_none(), "broken link: {broken:?}");
    }
}

/// Branch synchronisation: two branches that waited for one trunk are ordered after it, and not
/// with each other.
#[test]
fn branch_synchronisation() {
    let mut w = World::new();
    let [trunk, left, right] = w.streams();
    let k = w.launch(trunk);
    w.record(1, trunk);
    w.wait(left, 1);
    w.wait(right, 1);
    let l = w.launch(left);
    assert!(w.after(k), "silent");
    w.launch(right);
    assert!(w.after(k), "silent");
    assert!(!w.after(l), "reported");
    // Twin: the second branch waits for the first one as well.
    w.record(2, left);
    w.wait(right, 2);
    assert!(w.launch_after(right, l));
}

/// A new stream starts from what the host has seen, and from nothing more.
#[test]
fn a_new_stream_starts_from_the_host() {
    let mut w = World::new();
    let [a] = w.streams();
    let seen = w.launch(a);
    w.sync_stream(a);
    let unseen = w.launch(a);
    let new = w.stream(20, StreamKind::NonBlocking);
    w.launch(new);
    assert!(w.after(seen), "silent: synchronised before");
    assert!(!w.after(unseen), "reported: may still run");
}

/// One stream synchronised: all streams are after it, and the others stay unordered.
#[test]
fn one_stream_synchronised() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let (ka, kb) = (w.launch(a), w.launch(b));
    w.sync_stream(a);
    for stream in [b, c] {
        w.launch(stream);
        assert!(w.after(ka), "silent");
    }
    w.launch(c);
    assert!(!w.after(kb), "reported");
    // Twin.
    w.sync_stream(b);
    assert!(w.launch_after(c, kb));
}

/// One event synchronised: what came after its record stays unordered.
#[test]
fn one_event_synchronised() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let before = w.launch(a);
    w.record(1, a);
    let after = w.launch(a);
    w.sync_event(1);
    w.launch(b);
    assert!(w.after(before), "silent");
    assert!(!w.after(after), "reported");
}

/// The device synchronised: everything before is over, nothing after it is.
#[test]
fn the_device_synchronised_and_what_came_later() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let before = w.launch(a);
    w.sync_context();
    let later = w.launch(a);
    w.launch(b);
    assert!(w.after(before), "silent");
    assert!(!w.after(later), "reported: an expired synchronisation");
}

/// States merge: a stream that waits for two knows what both knew.
#[test]
fn states_merge() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let (ka, kb) = (w.launch(a), w.launch(b));
    w.record(1, a);
    w.wait(b, 1);
    w.record(2, b);
    let late = w.launch(a);
    w.wait(c, 2);
    w.launch(c);
    assert!(w.after(ka) && w.after(kb), "silent: through b");
    assert!(!w.after(late), "reported: a's later op is not in it");
}
