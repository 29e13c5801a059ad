//! Host accesses: what counts as a race, and everything that explains a change otherwise, but for
//! host functions (`host_functions`).

use crate::support::*;
use trace::*;

pub(crate) const N: u64 = 4096;

/// A program that copies from pinned memory on stream A, watched as number 1.
fn copying() -> Program {
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.copy(A, X, PINNED, N, H2D);
    watch(&mut p, 1, A, false);
    p
}

pub(crate) fn watch(p: &mut Program, watch: u32, stream: StreamId, writes: bool) {
    let region = Region::linear(PINNED, N);
    p.does("cudaMemcpyAsync", Op::HostWatch { watch, stream, exec: GraphExecId::NONE, node: 0, region, writes });
}

pub(crate) fn changed(p: &mut Program, watch: u32) {
    let op = Op::HostAccess { watch, start: PINNED + 256, end: PINNED + 1024, writes: true, in_the_act: false };
    p.does("cudaStreamSynchronize", op);
}

pub(crate) fn caught(p: &mut Program, watch: u32, writes: bool) {
    p.does("", Op::HostAccess { watch, start: PINNED + 8, end: PINNED + 16, writes, in_the_act: true });
}

#[test]
fn other_bytes_than_at_the_copy_are_a_write_of_the_host() {
    let mut p = copying();
    changed(&mut p, 1);
    let f = p.finds("write-after-read certain");
    assert!(f.host);
    assert_eq!((f.from, f.to), (256, 1024));
    assert_eq!(f.access.seen_by, "cudaStreamSynchronize");
    assert_eq!((f.previous.call.as_str(), f.previous.verb.name()), ("cudaMemcpyAsync", "reads"));
    assert!(f.synchronisation.missing.contains("The host does not wait for stream 1"), "{:?}", f.synchronisation);
    let advice = "--host-accesses names the line of the host that writes there.";
    assert!(f.synchronisation.facts.iter().any(|fact| fact == advice), "{:?}", f.synchronisation);
}

#[test]
fn a_watch_that_was_never_seen_says_nothing() {
    let mut p = copying();
    changed(&mut p, 2);
    p.silent();
}

#[test]
fn work_that_was_still_to_write_the_bytes_explains_their_change() {
    // Downloaded and uploaded again from the same buffer: the upload was enqueued when the old
    // bytes were still there.
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.copy(A, PINNED, X, N, D2H);
    p.copy(A, X, PINNED, N, H2D);
    watch(&mut p, 1, A, false);
    p.sync(A);
    changed(&mut p, 1);
    p.silent();
}

#[test]
fn work_that_is_over_explains_nothing() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.copy(A, PINNED, X, N, D2H);
    p.sync(A);
    p.copy(A, X, PINNED, N, H2D);
    watch(&mut p, 1, A, false);
    changed(&mut p, 1);
    p.finds("write-after-read certain");
}

#[test]
fn a_kernel_that_writes_the_bytes_later_explains_their_change() {
    for (bytes, silent) in [(Shape::Exact(0, 512), true), (Shape::Unknown, true), (Shape::Exact(N, N + 64), true)] {
        // The last one writes elsewhere in pinned memory: it may have signalled the end of the copy
        // to the host.
        let mut p = Program::new();
        p.malloc(X, N);
        p.alloc(PINNED, 2 * N, MemoryKind::PinnedHost);
        p.copy(A, X, PINNED, N, H2D);
        watch(&mut p, 1, A, false);
        p.go(A, PINNED, &[writes(0, bytes)]);
        changed(&mut p, 1);
        assert_eq!(p.findings().is_empty(), silent);
    }
}

#[test]
fn kernels_that_tell_the_host_nothing_do_not_hide_its_writes() {
    let mut p = copying();
    p.go(A, X, &[writes(0, Shape::Exact(0, N))]);
    p.go(A, PINNED, &[reads(0, Shape::Exact(0, N))]);
    changed(&mut p, 1);
    p.finds("write-after-read certain");
}

#[test]
fn a_message_from_before_the_copy_is_none() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.alloc(PINNED + (1 << 20), N, MemoryKind::PinnedHost);
    p.go(A, PINNED + (1 << 20), &[writes(0, Shape::Exact(0, 4))]);
    p.copy(A, X, PINNED, N, H2D);
    watch(&mut p, 1, A, false);
    changed(&mut p, 1);
    p.finds("write-after-read certain");
}

#[test]
fn a_value_written_behind_the_copy_may_have_notified_the_host() {
    let mut p = copying();
    p.alloc(PINNED + (1 << 20), N, MemoryKind::PinnedHost);
    let (address, value) = (PINNED + (1 << 20), 1);
    p.does("cuStreamWriteValue32", Op::WriteValue { stream: A, address, value, width: 4, barrier: true });
    changed(&mut p, 1);
    p.silent();
}

#[test]
fn a_download_tells_nothing_before_it_is_waited_for() {
    let mut p = copying();
    p.alloc(PINNED + (1 << 20), N, MemoryKind::PinnedHost);
    p.copy(A, PINNED + (1 << 20), X, N, D2H);
    changed(&mut p, 1);
    p.finds("write-after-read certain");
}

#[test]
fn the_host_in_the_act_of_reading_a_download() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.copy(A, PINNED, X, N, D2H);
    watch(&mut p, 1, A, true);
    p.line(70);
    caught(&mut p, 1, false);
    let f = p.finds("read-after-write certain");
    assert!(f.host && f.access.seen_by.is_empty() && f.access.call.is_empty());
    assert_eq!((f.from, f.to, f.access.verb.name()), (8, 16, "reads"));
    assert_eq!(f.access.stack[0].line, Some(70));
}

#[test]
fn the_host_in_the_act_of_writing_what_a_download_writes() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.copy(A, PINNED, X, N, D2H);
    watch(&mut p, 1, A, true);
    caught(&mut p, 1, true);
    p.finds("write-after-write certain");
}

#[test]
fn a_flag_behind_the_download_may_have_notified_the_host() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.alloc(PINNED + (1 << 20), N, MemoryKind::PinnedHost);
    p.copy(A, PINNED, X, N, D2H);
    watch(&mut p, 1, A, true);
    p.go(A, PINNED + (1 << 20), &[writes(0, Shape::Exact(0, 4))]);
    caught(&mut p, 1, false);
    p.silent();
}

/// A kernel that writes a block, and an engine that reads it, with a message to the host behind the
/// kernel (`Some(true)`), before it (`Some(false)`), or none.
fn sending(told: Option<bool>) -> Program {
    const FLAG: u64 = PINNED + (1 << 20);
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(FLAG, N, MemoryKind::PinnedHost);
    let value = Op::WriteValue { stream: A, address: FLAG, value: 1, width: 4, barrier: true };
    if told == Some(false) {
        p.does("cuStreamWriteValue32", value);
    }
    p.go(A, X, &[writes(0, Shape::Exact(0, N))]);
    if told == Some(true) {
        p.does("cuStreamWriteValue32", value);
    }
    let (request, region) = (StreamId(40), Region::linear(X, N));
    p.does("ibv_post_send", Op::RequestStart { request });
    p.does("ibv_post_send", Op::HostTransfer { request, region, reads: true, writes: false, exact: true });
    p
}

#[test]
fn a_host_that_may_have_been_told_hands_a_block_on() {
    assert_eq!(sending(Some(true)).verdict(), ["read-after-write possible"]);
    assert_eq!(sending(Some(false)).verdict(), ["read-after-write certain"]);
    assert_eq!(sending(None).verdict(), ["read-after-write certain"]);
}

#[test]
fn wild_numbers_do_no_harm() {
    let mut p = copying();
    let exec = GraphExecId(99);
    let region = Region { height: u32::MAX, depth: u32::MAX, pitch: u64::MAX, ..Region::linear(PINNED, N) };
    p.does("", Op::HostWatch { watch: u32::MAX, stream: StreamId(77), exec, node: u32::MAX, region, writes: true });
    p.does("", Op::HostAccess { watch: u32::MAX, start: u64::MAX, end: 0, writes: false, in_the_act: true });
    p.does("", Op::HostAccess { watch: 1, start: 0, end: u64::MAX, writes: true, in_the_act: false });
}

pub(crate) fn touch(p: &mut Program, region: Region, writes: bool, atomic: bool, polled: bool) {
    p.does("", Op::HostTouch { region, writes, atomic, polled, func: HostFuncId::NONE });
}

/// A kernel on stream A that writes the first half of managed memory.
pub(crate) fn computing() -> Program {
    let mut p = Program::new();
    p.alloc(PINNED, N, MemoryKind::Managed);
    p.go(A, PINNED, &[writes(0, Shape::Exact(0, N / 2))]);
    p
}

#[test]
fn a_touch_of_what_a_kernel_still_writes() {
    let mut p = computing();
    p.line(71);
    touch(&mut p, Region::linear(PINNED + 16, 4), false, false, false);
    let f = p.finds("read-after-write certain");
    assert!(f.host);
    assert_eq!((f.from, f.to, f.access.stack[0].line), (16, 20, Some(71)));
    let mut p = computing();
    touch(&mut p, Region::linear(PINNED + 16, 4), true, false, false);
    p.finds("write-after-write certain");
}

#[test]
fn touches_that_race_with_nothing() {
    let mut p = computing();
    touch(&mut p, Region::linear(PINNED + N / 2, N / 2), true, false, false);
    p.sync(A);
    touch(&mut p, Region::linear(PINNED, N), true, false, false);
    p.silent();
    let mut p = Program::new();
    p.alloc(PINNED, N, MemoryKind::Managed);
    touch(&mut p, Region::linear(PINNED, N), true, false, false);
    p.go(A, PINNED, &[reads(0, Shape::Exact(0, N))]);
    touch(&mut p, Region::linear(PINNED, N), false, false, false);
    p.silent();
}

#[test]
fn other_members_of_the_same_structures_are_other_bytes() {
    let mut p = Program::new();
    p.alloc(PINNED, N, MemoryKind::Managed);
    p.go(A, PINNED, &[writes(0, Shape::Strided { lo: 0, width: 4, stride: 16, count: 64 })]);
    touch(&mut p, Region::pitched(PINNED + 8, 4, 64, 16), true, false, false);
    p.silent();
    let mut p = Program::new();
    p.alloc(PINNED, N, MemoryKind::Managed);
    p.go(A, PINNED, &[writes(0, Shape::Strided { lo: 0, width: 4, stride: 16, count: 64 })]);
    touch(&mut p, Region::pitched(PINNED + 2, 4, 64, 16), true, false, false);
    p.finds("write-after-write certain");
}

#[test]
fn a_flag_that_is_polled_may_tell_of_what_came_before_it() {
    for (atomic, polled) in [(true, false), (false, true)] {
        let mut p = computing();
        p.go(A, PINNED, &[writes(0, Shape::Exact(N - 4, N))]);
        touch(&mut p, Region::linear(PINNED + N - 4, 4), false, atomic, polled);
        touch(&mut p, Region::linear(PINNED, 64), false, false, false);
        assert_eq!(p.verdict(), ["read-after-write possible", "read-after-write possible"]);
    }
    // Another stream's work is not told of, nor what comes behind the flag.
    let mut p = computing();
    p.alloc(PINNED + (1 << 20), N, MemoryKind::Managed);
    p.go(B, PINNED + (1 << 20), &[writes(0, Shape::Exact(0, 4))]);
    touch(&mut p, Region::linear(PINNED + (1 << 20), 4), false, true, false);
    touch(&mut p, Region::linear(PINNED, 64), false, false, false);
    assert_eq!(p.verdict(), ["read-after-write certain", "read-after-write possible"]);
}

#[test]
fn atomic_operations_of_both_sides_are_no_race() {
    let mut p = Program::new();
    p.alloc(PINNED, N, MemoryKind::Managed);
    p.go(A, PINNED, &[atomics(0, Shape::Exact(0, 4))]);
    touch(&mut p, Region::linear(PINNED, 4), true, true, false);
    p.silent();
    let mut p = computing();
    touch(&mut p, Region::linear(PINNED, 4), true, true, false);
    p.finds("read-after-write certain");
}

#[test]
fn the_instruction_and_its_bytes_are_one_finding() {
    let mut p = copying();
    touch(&mut p, Region::linear(PINNED + 256, 4), true, false, false);
    changed(&mut p, 1);
    p.finds("write-after-read certain");
}

#[test]
fn wild_touches_do_no_harm() {
    let mut p = computing();
    let wild = Region { height: u32::MAX, depth: u32::MAX, pitch: u64::MAX, ..Region::linear(u64::MAX - 1, u64::MAX) };
    touch(&mut p, wild, true, true, true);
    touch(&mut p, Region::linear(0, u64::MAX), false, false, false);
    p.does("", Op::HostFuncRun { func: HostFuncId(7), done: true });
}

/// A stream that waits for a value which nobody was seen to write may wait for the host, which may
/// fill the source before it writes the value. Where a write is seen, the host is not needed, and
/// what is in front of the wait, or beside it, does not wait.
#[test]
fn a_copy_behind_an_open_wait_may_wait_for_the_host() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Write {
        No,
        Before,
        Between,
        OfLess,
    }
    const C: StreamId = StreamId(9);
    const FLAG: u64 = PINNED + (1 << 20);
    let all = [Write::No, Write::Before, Write::Between, Write::OfLess];
    for (write, stream, behind) in all.into_iter().flat_map(|w| [(w, A, true), (w, A, false), (w, B, true)]) {
        for compare in [WaitCompare::Equal, WaitCompare::GreaterEqual, WaitCompare::And] {
            let mut p = Program::new();
            p.malloc(X, N);
            p.alloc(PINNED, N, MemoryKind::PinnedHost);
            p.alloc(FLAG, N, MemoryKind::PinnedHost);
            let wait = Op::WaitValue { stream, address: FLAG, value: 1, width: 4, compare };
            let writes = |p: &mut Program, value| {
                p.does(
                    "cuStreamWriteValue32",
                    Op::WriteValue { stream: C, address: FLAG, value, width: 4, barrier: true },
                );
                // A value that may still be written may tell the host something, too.
                p.sync(C);
            };
            if write == Write::Before {
                writes(&mut p, 1);
            }
            if behind {
                p.does("cuStreamWaitValue32", wait);
            }
            match write {
                Write::Between => writes(&mut p, 1),
                Write::OfLess => writes(&mut p, 0),
                _ => {}
            }
            p.copy(A, X, PINNED, N, H2D);
            watch(&mut p, 1, A, false);
            if !behind {
                p.does("cuStreamWaitValue32", wait);
            }
            changed(&mut p, 1);
            let waits = behind && stream == A && matches!(write, Write::No | Write::OfLess);
            let confidence = if waits { "possible" } else { "certain" };
            assert_eq!(
                p.verdict(),
                [format!("write-after-read {confidence}")],
                "{write:?} {stream:?} {behind} {compare:?}"
            );
        }
    }
}

/// The shim reads the words when the host touches the bytes: if they have their values, nothing
/// holds the copy back from then on. That says nothing of other copies.
#[test]
fn a_host_that_touches_the_source_when_the_wait_is_over_races() {
    const FLAG: u64 = PINNED + (1 << 20);
    for (met, writes) in [(0, true), (1, true), (1, false), (2, true)] {
        let mut p = Program::new();
        p.malloc(X, N);
        p.alloc(PINNED, N, MemoryKind::PinnedHost);
        p.alloc(FLAG, N, MemoryKind::PinnedHost);
        let compare = WaitCompare::GreaterEqual;
        p.does("cuStreamWaitValue32", Op::WaitValue { stream: A, address: FLAG, value: 1, width: 4, compare });
        p.copy(A, X, PINNED, N, H2D);
        watch(&mut p, 1, A, !writes);
        if met > 0 {
            p.does("", Op::WaitsMet { watch: met });
        }
        caught(&mut p, 1, writes);
        let confidence = if met == 1 { "certain" } else { "possible" };
        let hazard = if writes { "write-after-read" } else { "read-after-write" };
        assert_eq!(p.verdict(), [format!("{hazard} {confidence}")], "{met} {writes}");
    }
}
