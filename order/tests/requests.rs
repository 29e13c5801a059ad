//! Requests: what a library (MPI) does for the host beside it, until the host has seen it complete.

use crate::common::World;
use order::{Options, Policy};
use trace::*;

const REQUEST: StreamId = StreamId(900);

fn begin(w: &mut World, request: StreamId) -> Epoch {
    w.op(Op::RequestStart { request });
    touch(w, request)
}

fn touch(w: &mut World, request: StreamId) -> Epoch {
    let region = Region::linear(0x1000, 64);
    w.op(Op::HostTransfer { request, region, reads: true, writes: false, exact: true })
}

/// MPI 4.1, 3.7: the call begins the operation; it comes after what the host has seen finish.
#[test]
fn a_request_starts_after_what_the_host_has_seen() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let (ka, kb) = (w.launch(a), w.launch(b));
    w.sync_stream(a);
    begin(&mut w, REQUEST);
    assert!(w.after(ka) && !w.after(kb));
}

/// MPI 4.1, 3.7.3: it is complete when a wait or a successful test says so, for everything later.
#[test]
fn what_is_enqueued_after_the_wait_comes_after_the_request() {
    let mut w = World::new();
    let [a] = w.streams();
    let r = begin(&mut w, REQUEST);
    assert!(!w.launch_after(a, r) && !w.host_after(r));
    w.op(Op::RequestDone { request: REQUEST });
    assert!(w.launch_after(a, r) && w.host_after(r));
}

/// Follows: each operation has an end of its own.
#[test]
fn requests_are_not_ordered_among_themselves() {
    let mut w = World::new();
    let r = begin(&mut w, REQUEST);
    let other = begin(&mut w, StreamId(901));
    assert!(!w.after(r));
    w.op(Op::RequestDone { request: StreamId(901) });
    assert!(w.host_after(other) && !w.host_after(r));
    w.op(Op::RequestDone { request: REQUEST });
    begin(&mut w, StreamId(902));
    assert!(w.after(r) && w.after(other));
}

/// A request is no work of a device: nothing that waits for devices, contexts or the legacy stream
/// waits for it, under either policy.
#[test]
fn no_device_waits_for_a_request() {
    for policy in [Policy::Observed, Policy::Documented] {
        let mut options = Options::default();
        options.policy = policy;
        let mut w = World::with(options);
        let [a] = w.streams();
        w.alloc(0x1000, 64, MemoryKind::Device);
        let (k, r) = (w.launch(a), begin(&mut w, REQUEST));
        w.sync_context();
        assert!(w.host_after(k) && !w.host_after(r));
        for scope in [SyncScope::Device, SyncScope::Legacy, SyncScope::Stream] {
            let sync = w.begin(1, scope, a, 0);
            w.end(sync);
            assert!(!w.host_after(r), "{scope:?}");
        }
        w.free(0x1000, FreeKind::Plain);
        assert!(!w.after(r) && !w.host_after(r), "{policy:?}");
        let legacy = w.stream(50, StreamKind::Legacy);
        assert!(!w.launch_after(legacy, r));
        w.op(Op::RequestDone { request: REQUEST });
        assert!(w.launch_after(legacy, r));
    }
}

/// What a call touches before it returns is the host's own: later work comes after it.
#[test]
fn a_blocking_call_is_the_hosts() {
    let mut w = World::new();
    let [a] = w.streams();
    let k = w.launch(a);
    let call = touch(&mut w, StreamId::NONE);
    assert!(call.timeline == TimelineId::HOST && !w.after(k));
    assert!(w.launch_after(a, call));
    w.sync_stream(a);
    touch(&mut w, StreamId::NONE);
    assert!(w.after(k));
}

/// A wait for a request that is not known (it came before the recording) orders nothing.
#[test]
fn an_unknown_request_orders_nothing() {
    let mut w = World::new();
    let [a] = w.streams();
    let k = w.launch(a);
    w.op(Op::RequestDone { request: REQUEST });
    assert!(!w.host_after(k));
}
