//! Streams that wait for values in memory.

use crate::common::World;
use trace::*;

const FLAG: u64 = 0x1000;

fn write(w: &mut World, stream: StreamId, value: u64) -> Epoch {
    w.op(Op::WriteValue { stream, address: FLAG, value, width: 4, barrier: true })
}

fn wait(w: &mut World, stream: StreamId, compare: WaitCompare, value: u64) -> Epoch {
    w.op(Op::WaitValue { stream, address: FLAG, value, width: 4, compare })
}

use WaitCompare::{Equal, GreaterEqual};

/// `cuStreamWriteValue64`, `cuStreamWaitValue64`: the wait ends when the condition holds; the write
/// comes with a fence.
#[test]
fn a_wait_is_after_the_write_that_satisfies_it() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let before = w.launch(a);
    write(&mut w, a, 1);
    let after = w.launch(a);
    wait(&mut w, b, GreaterEqual, 1);
    w.launch(b);
    assert!(w.after(before) && !w.after(after));
    assert!(!w.engine.start_clock().is_behind_open_wait());
}

/// cuda.h, `CUstreamWaitValue_flags`: greater or equal (cyclic), equal, and, nor.
#[test]
fn a_value_that_does_not_satisfy_is_no_order() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let ka = w.launch(a);
    write(&mut w, a, 1);
    let kc = w.launch(c);
    write(&mut w, c, 2);
    wait(&mut w, b, Equal, 2);
    w.launch(b);
    assert!(w.after(kc) && !w.after(ka));
}

/// Follows: any write that satisfies may have ended the wait.
#[test]
fn the_earliest_write_that_may_have_released_it_counts() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let first = w.launch(a);
    write(&mut w, a, 1);
    let second = w.launch(a);
    write(&mut w, a, 2);
    wait(&mut w, b, GreaterEqual, 1);
    w.launch(b);
    assert!(w.after(first) && !w.after(second));
    wait(&mut w, b, GreaterEqual, 2);
    assert!(w.launch_after(b, second));
}

/// Follows: one of the two was it, so only what both are after is sure.
#[test]
fn two_possible_writers_are_as_good_as_what_they_share() {
    let mut w = World::new();
    let [root, a, c, b] = w.streams();
    let shared = w.launch(root);
    w.record(1, root);
    let mut only = vec![];
    for s in [a, c] {
        w.wait(s, 1);
        only.push(w.launch(s));
        write(&mut w, s, 5);
    }
    wait(&mut w, b, Equal, 5);
    w.launch(b);
    assert!(w.after(shared) && !w.after(only[0]) && !w.after(only[1]));
}

/// Follows: a value overwritten before the wait cannot end it.
#[test]
fn a_flag_that_was_reset_does_not_release_again() {
    let mut w = World::new();
    let [a, b] = w.streams();
    for _ in 0..3 {
        let k = w.launch(a);
        write(&mut w, a, 1);
        wait(&mut w, b, Equal, 1);
        assert!(w.launch_after(b, k));
        write(&mut w, b, 0);
        wait(&mut w, a, Equal, 0);
    }
}

/// As before; fills and copies write flags too.
#[test]
fn a_flag_cleared_by_a_set_does_not_release_again() {
    let mut w = World::new();
    let [a, b] = w.streams();
    for _ in 0..3 {
        w.set(a, FLAG, true);
        w.record(1, a);
        w.wait(b, 1);
        let k = w.launch(a);
        write(&mut w, a, 1);
        wait(&mut w, b, Equal, 1);
        assert!(w.launch_after(b, k));
        w.record(2, b);
        w.wait(a, 2);
    }
}

/// Follows: the value may have been there already.
#[test]
fn a_stale_flag_is_no_order() {
    let mut w = World::new();
    let [a, b] = w.streams();
    write(&mut w, a, 1);
    w.sync_context();
    let k = w.launch(a);
    write(&mut w, a, 1);
    wait(&mut w, b, Equal, 1);
    assert!(!w.launch_after(b, k), "the old value satisfies the wait at once");
}

/// cuda.h, `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`.
#[test]
fn a_write_without_a_barrier_releases_nothing() {
    let mut w = World::new();
    let [a, b] = w.streams();
    let k = w.launch(a);
    w.op(Op::WriteValue { stream: a, address: FLAG, value: 1, width: 4, barrier: false });
    wait(&mut w, b, Equal, 1);
    assert!(!w.launch_after(b, k));
    assert!(!w.engine.start_clock().is_behind_open_wait());
}

/// `cuStreamWaitValue64`: the write may be enqueued later.
#[test]
fn a_wait_may_come_before_its_write() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let early = w.launch(a);
    wait(&mut w, b, Equal, 1);
    let behind = w.launch(b);
    assert!(w.after(early) && w.engine.start_clock().is_behind_open_wait(), "it may well be before the write");
    w.launch(a);
    assert!(w.after(behind), "this is before the write, so the other is in its future");
    w.record(1, b);
    w.wait(c, 1);
    let transitive = w.launch(c);
    write(&mut w, a, 1);
    let late = w.launch(a);
    assert!(!w.after(behind) && !w.after(transitive), "after the write nothing excuses it");
    w.launch(b);
    assert!(w.after(early) && !w.after(late) && !w.engine.start_clock().is_behind_open_wait());
    w.launch(c);
    assert!(w.after(early) && !w.after(late) && !w.engine.start_clock().is_behind_open_wait());
}

/// Follows: the record is behind the wait.
#[test]
fn an_event_recorded_behind_a_wait_learns_of_the_write() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    wait(&mut w, b, Equal, 1);
    w.record(1, b);
    let k = w.launch(a);
    write(&mut w, a, 1);
    w.wait(c, 1);
    assert!(w.launch_after(c, k));
    assert!(!w.engine.start_clock().is_behind_open_wait());
}

/// Follows: a stream that is over has passed its waits.
#[test]
fn a_synchronise_shows_that_the_wait_is_over() {
    let mut w = World::new();
    let [a, b] = w.streams();
    wait(&mut w, b, Equal, 1);
    let kb = w.launch(b);
    assert!(!w.engine.host_covers(kb), "not judged is not finished");
    w.sync_stream(b);
    let ka = w.launch(a);
    assert!(w.after(kb));
    w.launch(b);
    assert!(!w.after(ka) && !w.engine.start_clock().is_behind_open_wait());
}

/// Follows: a write that comes after a wait is not what releases it, on one stream or across two.
#[test]
fn no_write_releases_a_wait_that_it_is_behind() {
    let mut w = World::new();
    let [a, b] = w.streams();
    wait(&mut w, a, Equal, 1);
    write(&mut w, a, 1);
    w.launch(a);
    assert!(w.engine.start_clock().is_behind_open_wait());
    wait(&mut w, b, Equal, 2);
    write(&mut w, a, 2);
    write(&mut w, b, 1);
    w.launch(b);
    assert!(w.engine.start_clock().is_behind_open_wait(), "the write on b is behind the wait on a");
    w.sync_stream(a);
    w.launch(b);
    assert!(!w.engine.start_clock().is_behind_open_wait());
}

/// Follows: the address is other memory now.
#[test]
fn freed_memory_forgets_its_flags() {
    let mut w = World::new();
    let [a, b] = w.streams();
    w.alloc(FLAG, 64, MemoryKind::Device);
    let k = w.launch(a);
    write(&mut w, a, 1);
    w.free(FLAG, FreeKind::Unmap);
    wait(&mut w, b, Equal, 1);
    w.launch(b);
    assert!(w.engine.start_clock().is_behind_open_wait() && w.after(k));
}

/// Two words of four bytes in one of eight: a write of one does not overwrite the other. A wait for
/// eight bytes finds both.
#[test]
fn a_write_of_the_word_beside_overwrites_nothing() {
    const LOW: u64 = 0x1000;
    for (flag, beside, width) in [(LOW, LOW + 4, 4), (LOW + 4, LOW, 4), (LOW, LOW + 4, 8)] {
        let mut w = World::new();
        let [a, b] = w.streams();
        let value = |stream, address, value| Op::WriteValue { stream, address, value, width: 4, barrier: true };
        let wait = Op::WaitValue { stream: b, address: flag, value: 1, width, compare: WaitCompare::GreaterEqual };
        let first = w.launch(a);
        w.op(value(a, flag, 1));
        w.op(wait);
        assert!(w.launch_after(b, first));
        w.op(value(b, beside, 1));
        let second = w.launch(a);
        w.op(value(a, flag, 2));
        w.op(wait);
        w.launch(b);
        let found_the_first = width == 4;
        assert_eq!(w.after(second), !found_the_first, "{width} bytes: the first value may still be there");
    }
}
