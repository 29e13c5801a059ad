//! Memory and timelines stay bounded; timelines of dead streams are used again only when no answer
//! changes.

use crate::common::{self, World};
use trace::*;

#[test]
fn timelines_of_covered_streams_are_used_again() {
    let mut w = World::new();
    let [keep] = w.streams();
    for i in 0..10_000 {
        let s = w.stream(100 + i, StreamKind::NonBlocking);
        let k = w.launch(s);
        w.sync_stream(s);
        w.op(Op::StreamDestroy { stream: s });
        assert!(w.launch_after(keep, k));
    }
    assert!(w.engine.timeline_count() < 10, "{}", w.engine.timeline_count());
}

#[test]
fn a_timeline_with_work_that_may_run_is_not_used_again() {
    let mut w = World::new();
    let [watch] = w.streams();
    let mut ks = vec![];
    for i in 0..100 {
        let s = w.stream(100 + i, StreamKind::NonBlocking);
        w.launch(s);
        assert!(ks.iter().all(|&k| !w.after(k)), "a new stream must not look ordered after an old one");
        ks.push(w.launch(s));
        w.op(Op::StreamDestroy { stream: s });
    }
    w.launch(watch);
    assert!(ks.iter().all(|&k| !w.after(k)));
    w.sync_context();
    assert!(ks.iter().all(|&k| w.host_after(k)));
    for i in 0..100 {
        w.stream(1000 + i, StreamKind::NonBlocking);
    }
    assert_eq!(w.engine.timeline_count(), 101);
}

#[test]
fn an_old_event_means_the_old_stream() {
    let mut w = World::new();
    let [a] = w.streams();
    let old = w.stream(50, StreamKind::NonBlocking);
    let k = w.launch(old);
    w.record(1, old);
    w.sync_stream(old);
    w.op(Op::StreamDestroy { stream: old });
    let new = w.stream(51, StreamKind::NonBlocking);
    let kn = w.launch(new);
    assert_eq!(k.timeline, kn.timeline);
    w.wait(a, 1);
    w.launch(a);
    assert!(w.after(k) && !w.after(kn));
    assert_eq!(w.engine.stream_on(kn.timeline), Some(new));
}

#[test]
fn a_new_stream_has_the_kind_it_was_made_with() {
    let mut w = World::new();
    let legacy = w.stream(1, StreamKind::Legacy);
    let old = w.stream(2, StreamKind::Blocking);
    w.launch(old);
    w.sync_stream(old);
    w.op(Op::StreamDestroy { stream: old });
    let new = w.stream(3, StreamKind::NonBlocking);
    let k = w.launch(new);
    assert!(!w.launch_after(legacy, k), "the old stream's place in the legacy order is gone");
}

#[test]
fn unknown_streams_are_filled_in() {
    let mut w = World::new();
    let (a, b) = (StreamId(70), StreamId(71));
    let k = w.launch(a);
    assert!(!w.launch_after(b, k) && w.launch_after(a, k));
    w.stream(70, StreamKind::NonBlocking);
    assert!(w.launch_after(a, k), "its definition came late");
    w.sync_context();
    assert!(w.host_after(k));
    assert_eq!(w.engine.stream_time(StreamId(99)), 0);
    assert_eq!(w.engine.timeline(StreamId(99)), None);
}

#[test]
fn ops_on_a_destroyed_stream_do_not_panic() {
    let mut w = World::new();
    let [a] = w.streams();
    w.launch(a);
    w.op(Op::StreamDestroy { stream: a });
    w.op(Op::StreamDestroy { stream: a });
    let k = w.launch(a);
    assert!(w.launch_after(a, k));
}

#[test]
fn a_million_ops_leave_nothing_behind() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    for i in 0..100_000_u64 {
        w.op(Op::EventCreate { event: EventId(i as u32 + 1), context: common::CTX, flags: 0, handle: i });
        w.launch(a);
        w.record(i as u32 + 1, a);
        w.wait(b, i as u32 + 1);
        w.op(Op::EventDestroy { event: EventId(i as u32 + 1) });
        w.alloc_async(0x1000 + i * 64, 64, b);
        w.free_async(0x1000 + i * 64, b);
        w.op(Op::HostFunc { stream: c, func: HostFuncId(i as u32), address: 1 });
        w.op(Op::HostFuncRun { func: HostFuncId(i as u32), done: true });
        if i % 64 == 0 {
            w.sync_context();
        }
    }
    let size = format!("{:?}", w.engine).len();
    assert!(size < 200_000, "the engine prints {size} bytes");
}
