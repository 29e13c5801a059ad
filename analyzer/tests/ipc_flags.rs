//! Order between the processes of a run by flags in memory: kernels that may wait for one, and
//! values that streams write and wait for. Sources: PTX ISA, "Memory Consistency Model"; cuda.h on
//! `cuStreamWaitValue32`.

use crate::ipc::{EVENT, N, RAW, Run, Y, two};
use crate::support::*;
use detect::confidence::Weakness;
use trace::*;

/// What a launch does that may wait for other processes: an update with a fence of system scope.
fn signals(run: &mut Run, process: usize, stream: StreamId, at: u64) {
    run.at(process).go(stream, at, &[atomics(0, Shape::Exact(0, 4))]);
}

/// A kernel that may wait for another process may order what is behind it, on its own stream or
/// behind an event, whichever of the two comes first. What the kernel waits for is not followed.
#[test]
fn what_is_behind_a_kernel_that_may_wait_is_possible() {
    let data = || Shape::Exact(64, N);
    for how in ["later", "earlier", "elsewhere"] {
        let mut run = two(true);
        if how == "earlier" {
            // It waits for the other process to have read, and writes then.
            signals(&mut run, 0, A, X);
        }
        run.at(0).go(A, X, &[writes(0, data())]);
        match how {
            "later" => signals(&mut run, 1, B, Y),
            "elsewhere" => {
                signals(&mut run, 1, A, Y);
                run.at(1).record(EVENT, A);
                run.at(1).wait(B, EVENT);
            }
            _ => {}
        }
        run.at(1).go(B, Y, &[reads(0, data())]);
        let found = run.finds("read-after-write possible");
        let why: Vec<&str> = found.doubts.iter().map(|doubt| doubt.reason.as_str()).collect();
        let says = "one of the two comes after a wait for a flag in memory, which may have been set behind the other";
        assert_eq!((why, found.weakness), (vec![says], Some(Weakness::Flag)), "{how}");
    }
}

/// A kernel that only tells others orders nothing before they listen, and neither does one behind
/// the read, on another stream, or one that was over before the write began.
#[test]
fn a_kernel_that_no_access_is_behind_leaves_a_race_certain() {
    for how in ["told", "behind", "beside", "over"] {
        let mut run = two(true);
        if how == "over" {
            signals(&mut run, 1, B, Y);
            run.at(1).sync(B);
        }
        run.at(0).go(A, X, &[writes(0, Shape::Exact(64, N))]);
        match how {
            "told" => signals(&mut run, 0, A, X),
            "beside" => signals(&mut run, 1, A, Y),
            _ => {}
        }
        run.at(1).go(B, Y, &[reads(0, Shape::Exact(64, N))]);
        if how == "behind" {
            signals(&mut run, 1, B, Y);
        }
        run.finds(RAW);
    }
}

/// A stream waits for a value in shared memory that a stream of the other process writes.
#[test]
fn values_in_shared_memory_order_streams_of_two_processes() {
    let write = |run: &mut Run, at: u64, value: u64| {
        let op = Op::WriteValue { stream: A, address: X + at, value, width: 4, barrier: true };
        run.at(0).does("cuStreamWriteValue32", op);
    };
    let wait = |run: &mut Run, at: u64, value: u64| {
        let op = Op::WaitValue { stream: B, address: Y + at, value, width: 4, compare: WaitCompare::GreaterEqual };
        run.at(1).does("cuStreamWaitValue32", op);
    };
    let fill = |run: &mut Run| run.at(0).go(A, X, &[writes(0, Shape::Exact(64, N))]);
    let read = |run: &mut Run| run.at(1).go(B, Y, &[reads(0, Shape::Exact(64, N))]);
    for live in [false, true] {
        // In order, also if the wait comes first.
        let mut run = two(live);
        fill(&mut run);
        write(&mut run, 0, 3);
        wait(&mut run, 0, 3);
        read(&mut run);
        run.silent();
        let mut run = two(live);
        wait(&mut run, 0, 3);
        fill(&mut run);
        write(&mut run, 0, 3);
        read(&mut run);
        run.silent();
        // No wait, or one behind the read.
        for late in [false, true] {
            let mut run = two(live);
            fill(&mut run);
            write(&mut run, 0, 3);
            read(&mut run);
            if late {
                wait(&mut run, 0, 3);
            }
            run.finds(RAW);
        }
        // Whoever writes what the wait is for has not been seen: another word, another value, a
        // write in front of the data.
        for (at, value) in [(4, 3), (0, 4)] {
            let mut run = two(live);
            fill(&mut run);
            write(&mut run, 0, 3);
            wait(&mut run, at, value);
            read(&mut run);
            run.finds("read-after-write possible");
        }
        let mut run = two(live);
        write(&mut run, 0, 3);
        fill(&mut run);
        wait(&mut run, 0, 3);
        read(&mut run);
        run.finds("read-after-write possible");
    }
}
