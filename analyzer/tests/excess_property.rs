//! Random programs with random synchronisation: `excess` says what leaving out each site, and each
//! set of sites, does to the whole check. Two host threads submit to streams of every kind, events
//! are recorded again, and captured graphs are launched.
//!
//! The other side of the comparison writes each program anew without those calls and checks it
//! from the beginning. Nothing is shared with the trials but the analysis itself.
//! `PROPTEST_CASES=10000 cargo test --release -p analyzer --test it excess_property::` takes ten
//! thousand programs.

use crate::support::*;
use analysis::counterfactual::excess::listing::{Listing, SyncVerdict};
use proptest::prelude::*;
use trace::*;

const STREAMS: [StreamId; 6] = [A, B, BLOCKING, LEGACY, OWN, OTHERS];
const CELL: u64 = 256;
const EVENTS: u32 = 3;
/// Lines that synchronise; what each of them calls is fixed.
const SITES: usize = 6;
/// The first of these lines.
const FIRST: u32 = 500;

#[derive(Clone, Debug)]
enum Step {
    /// A kernel reads or writes some cells.
    Launch(usize, u64, u64, bool),
    /// A line synchronises: the number of the line, a stream, an event.
    Sync(usize, usize, u32),
    Record(usize, u32),
    /// A query finds a stream idle. The program acts on that, so it is no site.
    Query(usize),
    /// A graph of two kernels, one after the other, is launched: the cell of the first, whether it
    /// writes.
    Graph(usize, u64, bool),
    /// Another host thread goes on.
    Thread(u32),
}

fn program() -> impl Strategy<Value = Vec<Step>> {
    // Mostly four streams: of more, fewer pairs would be ordered by chance.
    let stream = prop_oneof![8 => 0..4_usize, 1 => 4..STREAMS.len()];
    let step = prop_oneof![
        6 => (stream.clone(), 0..4_u64, 1..3_u64, any::<bool>()).prop_map(|(s, c, n, w)| Step::Launch(s, c, n, w)),
        4 => (0..SITES, stream.clone(), 0..EVENTS).prop_map(|(l, s, e)| Step::Sync(l, s, e)),
        3 => (stream.clone(), 0..EVENTS).prop_map(|(s, e)| Step::Record(s, e)),
        1 => stream.clone().prop_map(Step::Query),
        1 => (stream, 0..4_u64, any::<bool>()).prop_map(|(s, c, w)| Step::Graph(s, c, w)),
        1 => (1..3_u32).prop_map(Step::Thread),
    ];
    prop::collection::vec(step, 4..36)
}

/// Runs the program without some of its lines that synchronise.
fn run(steps: &[Step], without: u32) -> Program {
    let mut p = Program::new();
    p.per_thread_streams();
    p.line(11).malloc(X, 8 * CELL);
    for event in 0..EVENTS {
        let event = EventId(1 + event);
        p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 0, handle: 0 });
    }
    for (number, step) in steps.iter().enumerate() {
        p.line(100 + number as u32);
        match *step {
            Step::Launch(stream, cell, cells, writes_it) => {
                let bytes = Shape::Exact(0, cells * CELL);
                let does = if writes_it { writes(0, bytes) } else { reads(0, bytes) };
                p.go(STREAMS[stream], X + cell * CELL, &[does]);
            }
            Step::Graph(stream, cell, writes_it) => {
                let exec = GraphExecId(1 + number as u32);
                let bytes = Shape::Exact(0, CELL);
                let does = if writes_it { writes(0, bytes) } else { reads(0, bytes) };
                let first = p.kernel(&format!("first{writes_it}"), &[does]);
                let second = p.kernel("second", &[reads(0, Shape::Exact(0, CELL))]);
                let (x, y) = (X + cell * CELL, X + (cell + 1) * CELL);
                p.line(300).graph(exec, &[(301, first, x, vec![]), (302, second, y, vec![0])], &[]);
                let op = Op::GraphLaunch { stream: STREAMS[stream], exec };
                p.line(100 + number as u32).does("cudaGraphLaunch", op);
            }
            Step::Thread(thread) => drop(p.thread(thread)),
            Step::Query(stream) => {
                p.does("cudaStreamQuery", Op::StreamIdle { stream: STREAMS[stream], upto: u64::MAX });
            }
            Step::Record(stream, event) => p.record(EventId(1 + event), STREAMS[stream]),
            Step::Sync(line, stream, event) => synchronise(&mut p, line, STREAMS[stream], EventId(1 + event), without),
        }
    }
    p
}

fn synchronise(p: &mut Program, line: usize, stream: StreamId, event: EventId, without: u32) {
    let is_out = without & 1 << line != 0;
    p.line(FIRST + line as u32);
    let mut wait = |scope, name| {
        let sync = SyncId(p.id());
        p.does(name, Op::SyncBegin { sync, scope, stream, event, context: CONTEXT });
        p.does(name, Op::SyncEnd { sync });
    };
    match line {
        5 => {
            // A blocking copy is an access too: without its wait it is an asynchronous one.
            let (dst, src) = (Region::linear(X + 6 * CELL, CELL), Region::linear(PAGEABLE, CELL));
            let (dst_space, src_space) = H2D;
            let op = Op::Copy { stream, dst, src, dst_space, src_space, asynchronous: is_out, batch: 0 };
            p.does("cudaMemcpy", op);
        }
        _ if is_out => {}
        0 => p.wait(stream, event),
        1 => wait(SyncScope::Stream, "cudaStreamSynchronize"),
        2 => wait(SyncScope::Event, "cudaEventSynchronize"),
        3 => wait(SyncScope::Device, "cudaDeviceSynchronize"),
        _ => p.does("cuCtxWaitEvent", Op::ContextWait { context: CONTEXT, event }),
    }
}

/// The program without launches that race as it is: a pair that races anyway needs nothing.
fn mended(mut steps: Vec<Step>) -> Vec<Step> {
    loop {
        let found = run(&steps, 0).analysis.finish().findings;
        let Some(finding) = found.first() else { return steps };
        let side = &finding.access;
        // The node of a graph: the line that launched it.
        let at = side.launched.first().unwrap_or_else(|| &side.stack[0]);
        let line = at.line.expect("has a line");
        // The blocking copy is in no step of its own line: then all of them go.
        match line.checked_sub(100).filter(|number| *number < FIRST - 100) {
            Some(number) => drop(steps.remove(number as usize)),
            None => steps.retain(|step| !matches!(step, Step::Sync(5, ..))),
        }
    }
}

fn line_of(site: &analysis::counterfactual::excess::listing::Listed) -> u32 {
    let at = site.at.rsplit(':').next().and_then(|line| line.parse::<u32>().ok());
    at.expect("has a line") - FIRST
}

fn agree(steps: &[Step], listing: &Listing) -> Result<(), TestCaseError> {
    let lines: Vec<u32> = listing.sites.iter().map(line_of).collect();
    let here = lines.iter().fold(0, |all, line| all | 1_u32 << line);
    let fine: Vec<bool> = (0..1_u32 << SITES)
        .map(|set| set & here == set && run(steps, set).analysis.finish().findings.is_empty())
        .collect();
    let relevant = |line: u32| {
        (0..1_u32 << SITES).any(|set| fine[set as usize] && set & here == set && !fine[(set | 1 << line) as usize])
    };
    for (site, line) in listing.sites.iter().zip(&lines) {
        let expected = match (fine[1 << line], relevant(*line)) {
            (false, _) => SyncVerdict::Needed,
            (true, true) => SyncVerdict::Together,
            (true, false) => SyncVerdict::Nothing,
        };
        prop_assert_eq!(site.verdict, expected, "line {} of {:#?}", line, listing);
        prop_assert_eq!(site.pair.is_some(), expected == SyncVerdict::Needed);
    }
    let largest = (0..1_u32 << SITES).filter(|set| fine[*set as usize]).map(u32::count_ones).max().unwrap_or(0);
    let going =
        listing.sites.iter().zip(&lines).filter(|(site, _)| site.can_go).fold(0, |all, (_, line)| all | 1_u32 << line);
    prop_assert!(fine[going as usize], "the offered set races: {:#?}", listing);
    prop_assert_eq!(going.count_ones(), largest);
    prop_assert!(listing.is_complete);
    Ok(())
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn excess_agrees_with_leaving_out_by_hand(steps in program()) {
        let steps = mended(steps);
        let listing = run(&steps, 0).listing();
        agree(&steps, &listing)?;
    }
}

#[test]
fn the_programs_have_sites_of_every_verdict() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let steps = mended(program().new_tree(&mut runner).expect("a program").current());
        seen.extend(run(&steps, 0).listing().sites.iter().map(|site| site.verdict));
    }
    assert!(
        [SyncVerdict::Needed, SyncVerdict::Together, SyncVerdict::Nothing].iter().all(|v| seen.contains(v)),
        "{seen:?}"
    );
}
