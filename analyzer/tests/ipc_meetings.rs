//! Processes that come together on streams: barriers of NVSHMEM (`nvshmemx_barrier_all_on_stream`),
//! whose rule is OpenSHMEM 1.5's ("Collective Routines"): nobody goes on before all have come.

use crate::ipc::{N, RAW, Run, Y, two};
use crate::support::*;
use detect::confidence::Weakness;
use trace::*;

/// The events by which processes come, as each of them numbers them.
const EVENTS: [EventId; 3] = [EventId(60), EventId(61), EventId(62)];

fn streams(process: usize) -> (StreamId, u64) {
    if process == 0 { (A, X) } else { (B, Y) }
}

/// The events get their names. `of`: by which two elements of one program are told from others.
fn knows(run: &mut Run, process: usize, of: &[u8]) {
    for (element, event) in EVENTS.into_iter().enumerate() {
        let key = [MEETING_KEY, of, &[element as u8]].concat();
        run.at(process)
            .does("nvshmemx_barrier_all_on_stream", Op::EventCreate { event, context: CONTEXT, flags: 2, handle: 0 });
        run.at(process).does("nvshmemx_barrier_all_on_stream", Op::SharedEvent { event, key: &key });
    }
}

/// An element of so many comes, and waits for the others.
fn comes(run: &mut Run, process: usize, element: usize, count: usize) {
    let (stream, _) = streams(process);
    run.at(process).record(EVENTS[element], stream);
    for other in (0..count).filter(|other| *other != element) {
        run.at(process).wait(stream, EVENTS[other]);
    }
}

fn writes_there(run: &mut Run) {
    run.at(0).go(A, X, &[writes(0, Shape::Exact(64, N))]);
}

fn reads_there(run: &mut Run) {
    run.at(1).go(B, Y, &[reads(0, Shape::Exact(64, N))]);
}

fn met(live: bool) -> Run {
    let mut run = two(live);
    knows(&mut run, 0, b"one");
    knows(&mut run, 1, b"one");
    run
}

/// The write comes before the meeting and the read behind it, whichever process comes first.
#[test]
fn what_is_behind_a_meeting_comes_after_what_was_before_it() {
    for live in [false, true] {
        let mut run = met(live);
        writes_there(&mut run);
        comes(&mut run, 0, 0, 2);
        comes(&mut run, 1, 1, 2);
        reads_there(&mut run);
        run.silent();
        // The reader is far ahead.
        let mut run = met(live);
        comes(&mut run, 1, 1, 2);
        reads_there(&mut run);
        writes_there(&mut run);
        comes(&mut run, 0, 0, 2);
        run.silent();
    }
}

/// Either side is on the other side of the meeting, or the two have met too early.
#[test]
fn a_meeting_orders_nothing_else() {
    for live in [false, true] {
        let mut run = met(live);
        comes(&mut run, 0, 0, 2);
        comes(&mut run, 1, 1, 2);
        writes_there(&mut run);
        reads_there(&mut run);
        run.finds(RAW);
        let mut run = met(live);
        writes_there(&mut run);
        reads_there(&mut run);
        comes(&mut run, 0, 0, 2);
        comes(&mut run, 1, 1, 2);
        run.finds(RAW);
    }
}

/// The second meeting of the one is the second of the other.
#[test]
fn meetings_are_counted() {
    for rounds in [1, 7] {
        let mut run = met(true);
        for _ in 0..rounds {
            comes(&mut run, 1, 1, 2);
        }
        comes(&mut run, 1, 1, 2);
        reads_there(&mut run);
        for _ in 0..rounds {
            comes(&mut run, 0, 0, 2);
        }
        writes_there(&mut run);
        comes(&mut run, 0, 0, 2);
        run.silent();
        let mut run = met(true);
        for _ in 0..rounds {
            comes(&mut run, 0, 0, 2);
            comes(&mut run, 1, 1, 2);
        }
        writes_there(&mut run);
        comes(&mut run, 0, 0, 2);
        reads_there(&mut run);
        comes(&mut run, 1, 1, 2);
        run.finds(RAW);
    }
}

/// One that never comes, or a name that two processes give themselves: anything may be in order
/// behind that. The process that ends first has not told anything of what the other one waits for.
#[test]
fn what_is_behind_a_meeting_with_someone_unknown_is_possible() {
    for live in [false, true] {
        let mut run = met(live);
        comes(&mut run, 0, 0, 2);
        comes(&mut run, 1, 1, 3);
        // The third one may have waited for this.
        writes_there(&mut run);
        reads_there(&mut run);
        let found = run.finds("read-after-write possible");
        assert_eq!(found.weakness, Some(Weakness::Flag));
        let mut run = met(live);
        writes_there(&mut run);
        comes(&mut run, 0, 0, 2);
        run.at(1).record(EVENTS[0], B);
        run.at(1).wait(B, EVENTS[0]);
        reads_there(&mut run);
        run.finds("read-after-write possible");
    }
}

/// What is behind the meeting is compared late. What a host had seen end when it was submitted was
/// over, and what a host has seen later was not.
#[test]
fn news_orders_what_was_submitted_behind_it_though_it_is_compared_late() {
    for live in [false, true] {
        for when in ["never", "behind", "before"] {
            let mut run = met(live);
            comes(&mut run, 1, 1, 3);
            writes_there(&mut run);
            if when == "before" {
                run.at(0).sync(A);
            }
            reads_there(&mut run);
            if when == "behind" {
                run.at(0).sync(A);
            }
            run.judge(when != "before", "read-after-write possible");
        }
    }
}

/// The host has seen the end of what is behind the meeting: all have come, though one of them is
/// not known.
#[test]
fn a_host_that_has_seen_what_is_behind_a_meeting_proves_that_it_is_over() {
    for live in [false, true] {
        for waits in [true, false] {
            let mut run = met(live);
            comes(&mut run, 1, 1, 3);
            comes(&mut run, 0, 0, 2);
            run.at(1).go(B, Y, &[writes(0, Shape::Exact(64, N))]);
            if waits {
                run.at(1).sync(B);
            }
            run.at(0).go(B, X, &[reads(0, Shape::Exact(64, N))]);
            run.judge(!waits, "write-after-read possible");
        }
    }
}

/// The host of one that waits in a meeting has seen other work end, and the other process may know
/// of that before it comes.
#[test]
fn a_meeting_that_is_open_hides_no_news() {
    for live in [false, true] {
        for waits in [true, false] {
            let mut run = met(live);
            comes(&mut run, 1, 1, 2);
            run.at(1).go(A, Y, &[writes(0, Shape::Exact(64, N))]);
            if waits {
                run.at(1).sync(A);
            }
            run.at(0).go(A, X, &[reads(0, Shape::Exact(64, N))]);
            comes(&mut run, 0, 0, 2);
            run.judge(!waits, RAW);
        }
    }
}

/// The one process enqueues so many rounds, each with so many reads behind a meeting, before the
/// other has come to the first. The last read comes before the last write has met.
fn far_ahead(rounds: usize, each: usize, is_racy: bool) -> Run {
    let mut run = met(true);
    for _ in 0..rounds {
        comes(&mut run, 1, 1, 2);
        (0..each).for_each(|_| reads_there(&mut run));
        comes(&mut run, 1, 1, 2);
    }
    for round in 0..rounds {
        if round + 1 < rounds || !is_racy {
            writes_there(&mut run);
        }
        comes(&mut run, 0, 0, 2);
        if round + 1 == rounds && is_racy {
            writes_there(&mut run);
        }
        comes(&mut run, 0, 0, 2);
    }
    run
}

#[test]
fn a_process_may_be_many_meetings_ahead() {
    far_ahead(40, 8, false).silent();
    far_ahead(40, 8, true).finds("write-after-read certain");
}

/// What it costs to hold back 100,000 messages (`docs/measurements/analyzer-throughput.md`).
#[test]
#[ignore = "measures"]
fn a_hundred_thousand_messages_behind_an_open_meeting() {
    for rounds in [1, 100, 1000] {
        let start = std::time::Instant::now();
        far_ahead(rounds, 100_000 / rounds, false).silent();
        println!("{rounds} rounds: {:.2?}", start.elapsed());
    }
}

/// The most memory that this process has had so far, in MiB.
fn most() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("the peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") >> 10
}

/// What memory they take, beside as many accesses that no other process sees.
#[test]
#[ignore = "measures"]
fn what_held_messages_take() {
    for (count, is_shared) in [(100_000, false), (100_000, true), (200_000, true)] {
        let before = most();
        let mut run = met(true);
        comes(&mut run, 1, 1, 2);
        run.at(1).malloc(X + (1 << 40), 4 * N);
        let at = if is_shared { Y } else { X + (1 << 40) };
        for _ in 0..count {
            run.at(1).go(B, at, &[reads(0, Shape::Exact(64, N))]);
            run.passes(10_000);
        }
        println!("{count} accesses, shared {is_shared}: from {before} to {} MiB", most());
    }
}
