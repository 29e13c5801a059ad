//! Random programs with random waits: the reported set of waits, written into the program by hand,
//! makes it silent, and without any one of them it races again.
//!
//! The waits are put in here, as a program would make them: an event for each stream after the
//! first line, waits for all of them before the second. Nothing is shared with the trials.
//! `PROPTEST_CASES=10000 cargo test --release -p analyzer --test causes_property` takes ten
//! thousand programs.

mod support;

use analyzer::report::model::Outcome;
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::*;
use trace::*;

/// Lines of the program that launch kernels. What the kernel does belongs to the line.
const LINES: usize = 6;
const STREAMS: [StreamId; 4] = [A, B, BLOCKING, LEGACY];
const CELL: u64 = 256;

#[derive(Clone, Debug)]
enum Step {
    /// A line launches its kernel on a stream, on some cell.
    Launch(usize, usize, u64),
    Record(usize, usize),
    Wait(usize, usize),
    Sync(usize),
}

#[derive(Clone, Debug)]
struct Source {
    /// Whether the kernel of each line writes, and how many cells it touches.
    lines: Vec<(bool, u64)>,
    steps: Vec<Step>,
}

fn source() -> impl Strategy<Value = Source> {
    let stream = 0..STREAMS.len();
    let step = prop_oneof![
        8 => (0..LINES, stream.clone(), 0..4_u64).prop_map(|(l, s, c)| Step::Launch(l, s, c)),
        2 => (0..3_usize, stream.clone()).prop_map(|(e, s)| Step::Record(e, s)),
        2 => (0..3_usize, stream.clone()).prop_map(|(e, s)| Step::Wait(e, s)),
        1 => stream.prop_map(Step::Sync),
    ];
    let lines = prop::collection::vec((any::<bool>(), 1..3_u64), LINES);
    (lines, prop::collection::vec(step, 2..24)).prop_map(|(lines, steps)| Source { lines, steps })
}

/// Runs the program with waits between lines: after the first, before the second.
fn run(source: &Source, waits: &[(u32, u32)]) -> Outcome {
    let mut p = Program::new();
    p.line(11).malloc(X, 8 * CELL);
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
            Step::Launch(at, stream, cell) => {
                let (line, stream) = (100 + at as u32, STREAMS[stream]);
                for (index, _) in waits.iter().enumerate().filter(|(_, wait)| wait.1 == line) {
                    let others = events.iter().filter(|((wait, on), _)| *wait == index && *on != stream);
                    for event in others.map(|(_, event)| *event).collect::<Vec<_>>() {
                        p.line(500).wait(stream, event);
                    }
                }
                p.line(line).launch(stream, kernels[at], &[X + cell * CELL]);
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
