//! Hints about two communicators of NCCL whose members enqueue collectives in different orders.
//! Each has a twin that gets none. Source: NCCL's user guide, "Using multiple NCCL communicators
//! concurrently".

use crate::support::*;
use analysis::AnalysisOptions;
use analysis::ipc::Across;
use report::model::{Hint, Outcome};
use settings::Judging;
use trace::*;

const OTHER: ContextId = ContextId(2);
const THERE: [StreamId; 2] = [StreamId(11), StreamId(12)];

/// A process with a second device.
fn program() -> Program {
    let judging = Judging { hints: true, ..Default::default() };
    let mut p = Program::with(AnalysisOptions { judging, ..Default::default() });
    p.does("cuCtxCreate", Op::ContextCreate { context: OTHER, device: 1, handle: 2 });
    for stream in THERE {
        let kind = StreamKind::NonBlocking;
        p.does("cuStreamCreate", Op::StreamCreate { stream, context: OTHER, kind, priority: 0, handle: 0 });
    }
    p
}

/// A member's calls: letters are communicators, each on a stream of its own; those in brackets are
/// one group, and what follows a `!` is not followed any longer.
fn enqueue(p: &mut Program, streams: [StreamId; 2], calls: &str, members: u32) {
    let (mut numbers, mut groups, mut group, mut lost) = ([0; 2], 0, 0, false);
    for call in calls.chars() {
        match call {
            '(' => {
                groups += 1;
                group = groups;
            }
            ')' => group = 0,
            '!' => lost = true,
            letter => {
                let which = usize::from(letter == 'b');
                let (communicator, number) = (7 + which as u64, numbers[which]);
                let stream = if lost { StreamId::NONE } else { streams[which] };
                p.does("ncclAllReduce", Op::Collective { stream, communicator, members, number, group });
                numbers[which] += 1;
            }
        }
    }
}

fn hints(outcomes: &[Outcome]) -> Vec<Hint> {
    outcomes.iter().flat_map(|outcome| outcome.hints.clone()).collect()
}

/// Two devices of one process.
fn of_two_devices(one: &str, other: &str, members: u32) -> Vec<Hint> {
    let mut p = program();
    enqueue(&mut p, [A, B], one, members);
    enqueue(&mut p, THERE, other, members);
    hints(&[p.outcome()])
}

/// Two processes.
fn of_two_processes(calls: [&str; 2], live: bool) -> Vec<Hint> {
    let across = Across::new(live);
    let mut outcomes = calls.map(|calls| {
        let mut p = program();
        p.analysis.join(across.join());
        enqueue(&mut p, [A, B], calls, 2);
        p.outcome()
    });
    across.finish(&mut outcomes);
    hints(&outcomes)
}

#[test]
fn two_members_enqueue_in_different_orders() {
    for (one, other, count) in [("ab", "ba", 1), ("abab", "baba", 2), ("aab", "aba", 1), ("abba", "abab", 1)] {
        for found in
            [of_two_devices(one, other, 2), of_two_processes([one, other], false), of_two_processes([one, other], true)]
        {
            let said: Vec<_> = found.iter().map(|hint| (hint.kind.name(), hint.count)).collect();
            assert_eq!(said, [("communicator-order", count)], "{one} {other}");
            assert!(!found[0].stack.is_empty() && !found[0].other.is_empty() && found[0].stack != found[0].other);
        }
    }
    let found = of_two_processes(["ab", "ba"], true);
    let text = "A collective of one NCCL communicator is enqueued on stream 2 (non-blocking, device 0, created at app.cu:3), then one of another \
                communicator on stream 1 (non-blocking, device 0, created at app.cu:2); a member of the two in process 77 enqueues the \
                second one first. Each waits for all members";
    assert!(found[0].text.starts_with(text), "{}", found[0].text);
}

#[test]
fn members_that_agree_get_no_hint() {
    for (one, other) in [
        ("ab", "ab"),
        // One has come further than the other.
        ("abab", "ab"),
        // A group launches its calls together.
        ("(ab)", "ba"),
        ("a(ab)b", "abab"),
        // A captured call, after which nobody knows which one is which.
        ("ab!a", "ba"),
        // One of them is used by one member alone.
        ("aa", "aab"),
    ] {
        assert!(of_two_devices(one, other, 2).is_empty(), "{one} {other}");
        for live in [false, true] {
            assert!(of_two_processes([one, other], live).is_empty(), "{one} {other}");
            assert!(of_two_processes([other, one], live).is_empty(), "{other} {one}");
        }
    }
    // Nothing waits for others in a communicator of one.
    assert!(of_two_devices("ab", "ba", 1).is_empty());
}

#[test]
fn hints_are_asked_for() {
    let mut p = Program::new();
    enqueue(&mut p, [A, B], "ab", 2);
    enqueue(&mut p, [B, A], "ba", 2);
    assert!(p.outcome().hints.is_empty());
}
