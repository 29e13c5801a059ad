//! Random programs with random waits: the reported set of waits, written into the program by hand,
//! makes it silent, and without any one of them it races again. Two host threads submit to streams
//! of every kind, events are recorded again, and a captured graph is launched.
//!
//! The waits are put in here, as a program would make them: an event for each stream after the
//! first line, waits for all of them before the second; within a capture, between the captured
//! streams. Nothing is shared with the trials.
//! `PROPTEST_CASES=10000 cargo test --release -p analyzer --test it causes_property::` takes ten
//! thousand programs.

use crate::support::*;
use proptest::prelude::*;
use report::model::Outcome;
use std::collections::BTreeMap;
use trace::*;

/// Lines of the program that launch kernels. What the kernel does belongs to the line.
const LINES: usize = 6;
const STREAMS: [StreamId; 6] = [A, B, BLOCKING, LEGACY, OWN, OTHERS];
/// Lines of the program that are captured: the first of them.
const CAPTURED: u32 = 400;
/// The line that launches the graph.
const GRAPH: u32 = 150;
const CELL: u64 = 256;

#[derive(Clone, Debug)]
enum Step {
    /// A line launches its kernel on a stream, on some cell.
    Launch(usize, usize, u64),
    Record(usize, usize),
    Wait(usize, usize),
    Sync(usize),
    /// The graph is launched on a stream.
    Graph(usize),
    /// Another host thread goes on.
    Thread(u32),
}

/// A node: whether it writes, its cell, the stream it is captured on, and whether it waits for the
/// node before it beyond what its stream orders.
type CapturedNode = (bool, u64, usize, bool);

#[derive(Clone, Debug)]
struct Source {
    /// Whether the kernel of each line writes, and how many cells it touches.
    lines: Vec<(bool, u64)>,
    nodes: Vec<CapturedNode>,
    steps: Vec<Step>,
}

fn source() -> impl Strategy<Value = Source> {
    let stream = 0..STREAMS.len();
    let step = prop_oneof![
        8 => (0..LINES, stream.clone(), 0..4_u64).prop_map(|(l, s, c)| Step::Launch(l, s, c)),
        2 => (0..3_usize, stream.clone()).prop_map(|(e, s)| Step::Record(e, s)),
        2 => (0..3_usize, stream.clone()).prop_map(|(e, s)| Step::Wait(e, s)),
        1 => stream.clone().prop_map(Step::Sync),
        1 => stream.prop_map(Step::Graph),
        1 => (1..3_u32).prop_map(Step::Thread),
    ];
    let lines = prop::collection::vec((any::<bool>(), 1..3_u64), LINES);
    let nodes = prop::collection::vec((any::<bool>(), 0..4_u64, 0..2_usize, any::<bool>()), 1..5);
    let steps = prop::collection::vec(step, 2..24);
    (lines, nodes, steps).prop_map(|(lines, nodes, steps)| Source { lines, nodes, steps })
}

/// Captures the graph, with waits between its lines.
fn capture(p: &mut Program, source: &Source, waits: &[(u32, u32)]) {
    let streams: Vec<StreamId> = source.nodes.iter().map(|node| [A, B][node.2]).collect();
    let mut nodes = Vec::new();
    for (index, (writes_it, cell, on, joined)) in source.nodes.iter().enumerate() {
        let bytes = Shape::Exact(0, CELL);
        let does = if *writes_it { writes(0, bytes) } else { reads(0, bytes) };
        let kernel = p.kernel(&format!("n{index}"), &[does]);
        let line = CAPTURED + index as u32;
        let comes_first = |before: &usize| {
            let is_last = !source.nodes[before + 1..index].iter().any(|node| node.2 == *on);
            (source.nodes[*before].2 == *on && is_last)
                || (*joined && before + 1 == index)
                || waits.contains(&(CAPTURED + *before as u32, line))
        };
        let before = (0..index).filter(comes_first).map(|before| before as u32).collect();
        nodes.push((line, kernel, X + cell * CELL, before));
    }
    p.line(390).graph(GraphExecId(1), &nodes, &streams);
}

/// Runs the program with waits between lines: after the first, before the second.
fn run(source: &Source, waits: &[(u32, u32)]) -> Outcome {
    let mut p = Program::new();
    p.per_thread_streams();
    p.line(11).malloc(X, 8 * CELL);
    capture(&mut p, source, waits);
    let kernels: Vec<KernelId> = source
        .lines
        .iter()
        .enumerate()
        .map(|(line, (writes_it, cells))| {
            let bytes = Shape::Exact(0, cells * CELL);
            p.kernel(&format!("k{line}"), &[if *writes_it { writes(0, bytes) } else { reads(0, bytes) }])
        })
        .collect();
    let mut events: BTreeMap<(usize, StreamId), EventId> = BTreeMap::new();
    for step in &source.steps {
        match *step {
            Step::Launch(..) | Step::Graph(_) => {
                let (line, stream) = match *step {
                    Step::Launch(at, stream, _) => (100 + at as u32, STREAMS[stream]),
                    Step::Graph(stream) => (GRAPH, STREAMS[stream]),
                    _ => unreachable!("matched above"),
                };
                for (index, _) in waits.iter().enumerate().filter(|(_, wait)| wait.1 == line) {
                    let others = events.iter().filter(|((wait, on), _)| *wait == index && *on != stream);
                    for event in others.map(|(_, event)| *event).collect::<Vec<_>>() {
                        p.line(500).wait(stream, event);
                    }
                }
                match *step {
                    Step::Launch(at, _, cell) => p.line(line).launch(stream, kernels[at], &[X + cell * CELL]),
                    _ => p.line(line).does("cudaGraphLaunch", Op::GraphLaunch { stream, exec: GraphExecId(1) }),
                }
                for (index, _) in waits.iter().enumerate().filter(|(_, wait)| wait.0 == line) {
                    let next = EventId(50 + events.len() as u32);
                    let event = *events.entry((index, stream)).or_insert(next);
                    p.line(501).record(event, stream);
                }
            }
            Step::Record(event, stream) => {
                p.line(300 + event as u32).record(EventId(event as u32 + 1), STREAMS[stream])
            }
            Step::Wait(event, stream) => p.line(310 + event as u32).wait(STREAMS[stream], EventId(event as u32 + 1)),
            Step::Sync(stream) => p.line(320).sync(STREAMS[stream]),
            Step::Thread(thread) => drop(p.thread(thread)),
        }
    }
    p.outcome()
}

fn line(at: &str) -> u32 {
    at.strip_prefix("app.cu:").and_then(|line| line.parse().ok()).expect("a line of the program")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_reported_set_mends_the_program_and_no_part_of_it_does(source in source()) {
        let outcome = run(&source, &[]);
        if outcome.findings.is_empty() {
            prop_assert!(outcome.causes.is_empty() && outcome.mended.is_none());
            return Ok(());
        }
        let check = outcome.mended.as_ref().expect("a trial");
        prop_assert_eq!((check.remain, check.fresh, check.smallest), (0, 0, true), "{:?}", check);
        let waits: Vec<(u32, u32)> =
            outcome.causes.iter().filter(|cause| cause.tried).map(|c| (line(&c.after.at), line(&c.before.at))).collect();
        prop_assert_eq!(waits.len() as u64, check.waits);
        let mended = run(&source, &waits);
        prop_assert!(mended.findings.is_empty(), "{:?} leave {}", waits, mended.findings.len());
        for left_out in 0..waits.len() {
            let mut fewer = waits.clone();
            let wait = fewer.remove(left_out);
            prop_assert!(!run(&source, &fewer).findings.is_empty(), "{:?} is not needed beside {:?}", wait, fewer);
        }
        // Each finding has a cause, and each cause a finding.
        for finding in &outcome.findings {
            prop_assert!(outcome.causes.iter().any(|cause| cause.fingerprint == finding.cause), "{:?}", finding.identity);
        }
        for cause in &outcome.causes {
            let any = outcome.findings.iter().any(|finding| finding.cause == cause.fingerprint);
            // A wait may be needed only once the others are there.
            prop_assert!(any || (cause.tried && check.waits > 1));
        }
    }
}
