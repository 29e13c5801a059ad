//! Order between the processes of a run by flags in memory: kernels that may wait for one, and
//! values that streams write and wait for. Sources: PTX ISA, "Memory Consistency Model"; cuda.h on
//! `cuStreamWaitValue32`.

use crate::ipc::{EVENT, N, RAW, Run, Y, two};
use crate::support::*;
use detect::confidence::Weakness;
use trace::codec::List;
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
        // Two values may end the wait: it may be for the second round.
        let mut run = two(live);
        write(&mut run, 0, 3);
        write(&mut run, 0, 0);
        write(&mut run, 0, 3);
        fill(&mut run);
        wait(&mut run, 0, 3);
        read(&mut run);
        run.finds("read-after-write possible");
    }
}

/// A word is counted up: the first value that ends the wait is enough, and what is behind that is
/// not in order, whoever is seen first. The waiting stream answers in the twin.
#[test]
fn the_first_of_values_that_are_counted_up_ends_a_wait() {
    let write = |run: &mut Run, process: usize, at: u64, value: u64| {
        let (stream, address) = if process == 0 { (A, X + at) } else { (B, Y + at) };
        let op = Op::WriteValue { stream, address, value, width: 4, barrier: true };
        run.at(process).does("cuStreamWriteValue32", op);
    };
    let wait = |run: &mut Run, process: usize, at: u64, value: u64| {
        let (stream, address) = if process == 0 { (A, X + at) } else { (B, Y + at) };
        let op = Op::WaitValue { stream, address, value, width: 4, compare: WaitCompare::GreaterEqual };
        run.at(process).does("cuStreamWaitValue32", op);
    };
    for live in [false, true] {
        for reader_first in [false, true] {
            for mended in [false, true] {
                let mut run = two(live);
                let writer = |run: &mut Run| {
                    for step in 1..4 {
                        run.at(0).line(10).go(A, X, &[writes(0, Shape::Exact(64, N))]);
                        write(run, 0, 0, step);
                        if mended {
                            wait(run, 0, 4, step);
                        }
                    }
                };
                let reader = |run: &mut Run| {
                    for step in 1..4 {
                        wait(run, 1, 0, step);
                        run.at(1).line(20).go(B, Y, &[reads(0, Shape::Exact(64, N))]);
                        if mended {
                            write(run, 1, 4, step);
                        }
                    }
                };
                match reader_first {
                    true => (reader(&mut run), writer(&mut run)),
                    false => (writer(&mut run), reader(&mut run)),
                };
                if mended {
                    run.silent();
                } else {
                    let found = run.found_verdicts();
                    assert!(!found.is_empty() && found.iter().all(|said| said.ends_with(" likely")), "{found:?}");
                }
            }
        }
    }
}

/// The value is written in front of the data, and nothing else writes there: the stream that waits
/// comes after the write, and not after the data.
#[test]
fn a_value_that_is_written_too_early_orders_nothing_behind_it() {
    let write = |run: &mut Run, at: u64| {
        let op = Op::WriteValue { stream: A, address: X + at, value: 3, width: 4, barrier: true };
        run.at(0).does("cuStreamWriteValue32", op);
    };
    let wait = |run: &mut Run, at: u64| {
        let op = Op::WaitValue { stream: B, address: Y + at, value: 3, width: 4, compare: WaitCompare::GreaterEqual };
        run.at(1).does("cuStreamWaitValue32", op);
    };
    let fill = |run: &mut Run| run.at(0).go(A, X, &[writes(0, Shape::Exact(64, N))]);
    let read = |run: &mut Run| run.at(1).go(B, Y, &[reads(0, Shape::Exact(64, N))]);
    for live in [false, true] {
        for is_synchronised in [false, true] {
            let mut run = two(live);
            write(&mut run, 0);
            fill(&mut run);
            wait(&mut run, 0);
            read(&mut run);
            if is_synchronised {
                run.at(1).sync(B);
            }
            run.finds("read-after-write likely");
        }
        // Behind a second wait, whose value comes behind the data, or is not seen.
        for is_seen in [false, true] {
            let mut run = two(live);
            write(&mut run, 0);
            fill(&mut run);
            if is_seen {
                write(&mut run, 8);
            }
            wait(&mut run, 0);
            wait(&mut run, 8);
            read(&mut run);
            match is_seen {
                true => run.silent(),
                false => drop(run.finds("read-after-write possible")),
            }
        }
    }
}

/// A kernel of PyTorch's symmetric memory.
const BARRIER: &str = "_ZN4c10d16symmetric_memoryL14barrier_kernelEPPjiiim";
const REDUCE: &str = "_ZN70_GLOBAL__N__2b_26_CUDASymmetricMemoryOps_cu_26one_shot_all_reduce_kernelEv";

/// Where both ranks have the memory of the other one.
const THEIRS: u64 = Y + (1 << 30);
/// Where the pad begins in the memory of each rank, which has a word for each sender in each of its
/// channels.
const PAD: u64 = N / 2;

/// Two ranks with memory each, which both have: their own at `X`.
fn ranks(live: bool) -> Run {
    let mut run = Run::new(2, live);
    for owner in [0, 1] {
        let key = [owner as u8 + 1; 64];
        run.at(owner).malloc(X, N);
        run.at(owner).does("cudaIpcGetMemHandle", Op::SharedMemory { ptr: X, key: &key });
        run.at(1 - owner).alloc(THEIRS, N, MemoryKind::Imported);
        run.at(1 - owner).does("cudaIpcOpenMemHandle", Op::SharedMemory { ptr: THEIRS, key: &key });
    }
    run
}

/// A kernel that signals, as the simulated GPU measures it: words of pads, and bytes that it reads
/// and writes.
fn pads(run: &mut Run, rank: usize, kernel: &str, words: &[u64], bytes: &[ExactRun]) {
    pads_on(run, rank, A, kernel, words, bytes);
}

fn pads_on(run: &mut Run, rank: usize, stream: StreamId, kernel: &str, words: &[u64], bytes: &[ExactRun]) {
    let update = |at: &u64| ExactRun { start: *at, stride: 0, width: 4, count: 1, kind: exact_kind::ATOMIC };
    let runs: Vec<ExactRun> = words.iter().map(update).chain(bytes.iter().copied()).collect();
    let program = run.at(rank);
    let kernel = program.kernel(kernel, &[atomics(0, Shape::Unknown)]);
    let (timeline, time, flags) = (TimelineId(stream.0), u64::from(kernel.0), exact_flags::SIMULATED);
    program.at(Epoch { timeline, time });
    program.does("cudaLaunchKernel", launch_with(stream, kernel, launch_flags::EXACT, &X.to_le_bytes()));
    program.at(Epoch::default());
    program.raw(Op::Exact { timeline, time, node: 0, flags, runs: List::new(&runs) });
}

/// Both words of a channel that this rank updates in a barrier: it waits for the other one, and
/// sets its own one there.
fn of_barrier(rank: u64, channel: u64) -> [u64; 2] {
    let word = |of: u64| PAD + 8 * channel + 4 * of;
    [X + word(1 - rank), THEIRS + word(rank)]
}

/// Those of an all-reduce: PyTorch lets each rank signal to itself, too.
fn of_reduce(rank: u64) -> [u64; 3] {
    let [waits, sets] = of_barrier(rank, 0);
    [waits, X + PAD + 4 * rank, sets]
}

/// Signals of pads order two ranks, whichever of them is seen first: what is in front of a barrier
/// of one and behind that of the other. What is behind both is a race.
#[test]
fn signals_of_pads_order_what_is_in_front_of_them_and_behind_them() {
    for live in [false, true] {
        for reduces in [false, true] {
            for reader_first in [false, true] {
                for mended in [false, true] {
                    let mut run = ranks(live);
                    let signal = |run: &mut Run, rank: usize| match reduces {
                        true => pads(run, rank, REDUCE, &of_reduce(rank as u64), &[]),
                        false => pads(run, rank, BARRIER, &of_barrier(rank as u64, 0), &[]),
                    };
                    let write = |run: &mut Run| run.at(0).go(A, X, &[writes(0, Shape::Exact(0, 64))]);
                    let read = |run: &mut Run| run.at(1).go(A, THEIRS, &[reads(0, Shape::Exact(0, 64))]);
                    let writer = |run: &mut Run| {
                        if mended {
                            write(run);
                        }
                        signal(run, 0);
                        if !mended {
                            write(run);
                        }
                    };
                    let reader = |run: &mut Run| {
                        signal(run, 1);
                        read(run);
                    };
                    match reader_first {
                        true => (reader(&mut run), writer(&mut run)),
                        false => (writer(&mut run), reader(&mut run)),
                    };
                    let hazard = if reader_first { "write-after-read certain" } else { RAW };
                    run.judge(!mended, hazard);
                }
            }
        }
    }
}

/// An all-reduce reads behind its first signals and in front of its last ones: what comes before it
/// in the other rank and what comes behind it there is in order, and what is on another stream is
/// not.
#[test]
fn what_an_all_reduce_reads_is_between_its_signals() {
    let read = ExactRun { start: THEIRS, stride: 0, width: 128, count: 1, kind: exact_kind::READ };
    for live in [false, true] {
        for rank_first in [0, 1] {
            for beside in [false, true] {
                let mut run = ranks(live);
                let reduce = |run: &mut Run, rank: usize| {
                    if rank == 0 {
                        run.at(0).go(A, X, &[writes(0, Shape::Exact(0, 64))]);
                    }
                    let bytes = if rank == 1 { &[read][..] } else { &[] };
                    pads(run, rank, REDUCE, &of_reduce(rank as u64), bytes);
                    if rank == 0 {
                        let stream = if beside { B } else { A };
                        run.at(0).go(stream, X, &[writes(0, Shape::Exact(64, 128))]);
                    }
                };
                reduce(&mut run, rank_first);
                reduce(&mut run, 1 - rank_first);
                match (beside, rank_first) {
                    (false, _) => run.silent(),
                    (true, 0) => drop(run.finds(RAW)),
                    (true, _) => drop(run.finds("write-after-read certain")),
                }
            }
        }
    }
}

/// A kernel waits for the other rank. What its process does beside it goes on, and the other rank
/// may need that first.
#[test]
fn a_kernel_that_waits_for_a_signal_hides_no_news() {
    for live in [false, true] {
        for waits in [true, false] {
            let mut run = ranks(live);
            pads(&mut run, 1, BARRIER, &of_barrier(1, 0), &[]);
            run.at(1).go(B, X, &[writes(0, Shape::Exact(0, 64))]);
            if waits {
                run.at(1).sync(B);
            }
            run.at(0).go(A, THEIRS, &[reads(0, Shape::Exact(0, 64))]);
            pads(&mut run, 0, BARRIER, &of_barrier(0, 0), &[]);
            run.judge(!waits, RAW);
        }
    }
}

/// Each rank has two streams with a kernel that signals, and launches them the other way round.
#[test]
fn kernels_on_two_streams_wait_for_each_other_crosswise() {
    for live in [false, true] {
        for mended in [true, false] {
            let mut run = ranks(live);
            pads_on(&mut run, 1, A, BARRIER, &of_barrier(1, 0), &[]);
            pads_on(&mut run, 1, B, BARRIER, &of_barrier(1, 1), &[]);
            let stream = if mended { B } else { A };
            run.at(1).go(stream, THEIRS, &[reads(0, Shape::Exact(0, 64))]);
            run.at(0).go(B, X, &[writes(0, Shape::Exact(0, 64))]);
            pads_on(&mut run, 0, B, BARRIER, &of_barrier(0, 1), &[]);
            pads_on(&mut run, 0, A, BARRIER, &of_barrier(0, 0), &[]);
            run.judge(!mended, RAW);
        }
    }
}

/// A rank launches many steps before the other one launches the first. In each, one writes in front
/// of a barrier, and the other reads behind it and in front of a second one, or else behind that.
#[test]
fn a_rank_may_be_many_barriers_ahead() {
    for mended in [true, false] {
        let mut run = ranks(true);
        let barrier = |run: &mut Run, rank: usize, channel: u64| {
            pads(run, rank, BARRIER, &of_barrier(rank as u64, channel), &[]);
        };
        let (read, write) = (reads(0, Shape::Exact(0, 64)), writes(0, Shape::Exact(0, 64)));
        let kernels = [run.at(0).kernel("fill", &[write]), run.at(1).kernel("sum", &[read])];
        for rank in [1, 0] {
            for _ in 0..20 {
                if rank == 0 {
                    run.at(0).line(10).launch(A, kernels[0], &[X]);
                }
                barrier(&mut run, rank, 0);
                if rank == 1 && mended {
                    run.at(1).line(20).launch(A, kernels[1], &[THEIRS]);
                }
                barrier(&mut run, rank, 1);
                if rank == 1 && !mended {
                    run.at(1).line(20).launch(A, kernels[1], &[THEIRS]);
                }
            }
        }
        if mended {
            run.silent();
        } else {
            let found = run.finds("write-after-read certain");
            assert_eq!(found.count, 19);
        }
    }
}

/// The words of a launch are not known: what it may order is possible, and silent by default.
#[test]
fn signals_that_were_not_measured_leave_pairs_possible() {
    for is_measured in [false, true] {
        let mut run = ranks(true);
        for rank in [0, 1] {
            match is_measured {
                true => pads(&mut run, rank, BARRIER, &of_barrier(rank as u64, 0), &[]),
                false => {
                    let program = run.at(rank);
                    let kernel = program.kernel(BARRIER, &[atomics(0, Shape::Exact(PAD, PAD + 8))]);
                    program.launch(A, kernel, &[X]);
                }
            }
        }
        run.at(0).go(A, X, &[writes(0, Shape::Exact(0, 64))]);
        run.at(1).go(A, THEIRS, &[reads(0, Shape::Exact(0, 64))]);
        drop(run.finds(if is_measured { RAW } else { "read-after-write possible" }));
    }
}
