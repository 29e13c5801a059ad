//! Random programs with captured graphs: `excess` says what leaving out each captured wait, and
//! each set of waits inside and outside of the graph, does to the whole check.
//!
//! The other side of the comparison knows nothing of captures: it works the edges out anew without
//! those waits, writes the program with them as explicit edges, and checks it from the beginning.
//! `PROPTEST_CASES=10000 cargo test --release -p analyzer --test it excess_graphs_property::` takes
//! ten thousand programs.

use crate::support::*;
use analysis::counterfactual::excess::listing::{Listing, SyncVerdict};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use trace::*;

/// The streams that are captured. The capture begins on the first.
const CAPTURED: [StreamId; 3] = [A, B, BLOCKING];
const CELL: u64 = 256;
const EVENTS: u32 = 2;
/// The event by which streams are joined in the end.
const JOIN: u32 = 7;
/// Lines that wait inside the capture, and then those outside.
const INSIDE: usize = 4;
const SITES: usize = 6;
/// The first line of those, and of the captured calls.
const FIRST: u32 = 500;
const NODES: u32 = 300;
const EXEC: GraphExecId = GraphExecId(1);
const CAPTURE: CaptureId = CaptureId(41);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Inside {
    /// A kernel reads or writes a cell.
    Node(usize, u64, bool),
    Record(usize, u32),
    /// A line waits: the number of the line, a stream, an event.
    Wait(usize, usize, u32),
}

#[derive(Clone, Copy, Debug)]
enum Outside {
    Kernel(usize, u64, bool),
    Graph(usize),
    /// A line waits for a stream, or lets one wait for the other.
    Sync(usize, usize, usize),
}

#[derive(Clone, Debug)]
struct Case {
    inside: Vec<Inside>,
    outside: Vec<Outside>,
    /// Two copies of the graph in child nodes of another one, one after the other.
    is_nested: bool,
    /// The driver leaves out edges that follow from others.
    is_reduced: bool,
}

fn case() -> impl Strategy<Value = Case> {
    // Mostly two streams, and more waits than kernels: of those, some stand for each other.
    let stream = prop_oneof![3 => Just(0_usize), 3 => Just(1_usize), 1 => Just(2_usize)];
    let inside = prop_oneof![
        3 => (stream.clone(), 0..3_u64, any::<bool>()).prop_map(|(s, c, w)| Inside::Node(s, c, w)),
        3 => (stream.clone(), 0..EVENTS).prop_map(|(s, e)| Inside::Record(s, e)),
        5 => (0..INSIDE, stream.clone(), 0..EVENTS).prop_map(|(l, s, e)| Inside::Wait(l, s, e)),
    ];
    let outside = prop_oneof![
        2 => (stream.clone(), 0..3_u64, any::<bool>()).prop_map(|(s, c, w)| Outside::Kernel(s, c, w)),
        3 => stream.clone().prop_map(Outside::Graph),
        3 => (INSIDE..SITES, stream.clone(), stream).prop_map(|(l, s, t)| Outside::Sync(l, s, t)),
    ];
    (prop::collection::vec(inside, 6..36), prop::collection::vec(outside, 1..6), any::<bool>(), any::<bool>()).prop_map(
        |(inside, outside, is_nested, is_reduced)| Case { inside: joined(&inside), outside, is_nested, is_reduced },
    )
}

/// What each captured kernel comes directly after, and whether the capture is whole.
fn edges(inside: &[Inside], without: u32) -> (BTreeMap<usize, BTreeSet<usize>>, bool) {
    let mut ends: BTreeMap<usize, (BTreeSet<usize>, bool)> = BTreeMap::from([(0, (BTreeSet::new(), true))]);
    let mut events: BTreeMap<u32, (BTreeSet<usize>, bool)> = BTreeMap::new();
    let (mut after, mut is_whole) = (BTreeMap::new(), true);
    for (at, step) in inside.iter().enumerate() {
        match *step {
            Inside::Node(stream, ..) => {
                let end = ends.entry(stream).or_default();
                is_whole &= end.1;
                after.insert(at, std::mem::replace(&mut end.0, BTreeSet::from([at])));
            }
            Inside::Record(stream, event) => drop(events.insert(event, ends.get(&stream).cloned().unwrap_or_default())),
            Inside::Wait(line, ..) if without & 1 << line != 0 => {}
            Inside::Wait(_, stream, event) => {
                let (nodes, is_captured) = events.get(&event).cloned().unwrap_or_default();
                let end = ends.entry(stream).or_default();
                end.0.extend(nodes);
                end.1 |= is_captured;
            }
        }
    }
    let mut reached = ends[&0].0.clone();
    for at in (0..inside.len()).rev() {
        if reached.contains(&at) {
            reached.extend(after.get(&at).into_iter().flatten());
        }
    }
    is_whole &= ends.values().filter(|(_, is_captured)| *is_captured).all(|(nodes, _)| nodes.is_subset(&reached));
    (after, is_whole)
}

/// The calls without kernels on streams that are not captured, and with joins in the end.
fn joined(inside: &[Inside]) -> Vec<Inside> {
    let mut captured = BTreeSet::from([0]);
    let mut events: BTreeSet<u32> = BTreeSet::new();
    let mut calls: Vec<Inside> = Vec::new();
    for step in inside {
        match *step {
            Inside::Node(stream, ..) if !captured.contains(&stream) => continue,
            Inside::Record(stream, event) if captured.contains(&stream) => drop(events.insert(event)),
            Inside::Record(_, event) => drop(events.remove(&event)),
            Inside::Wait(_, stream, event) if events.contains(&event) => drop(captured.insert(stream)),
            _ => {}
        }
        calls.push(*step);
    }
    for stream in captured.into_iter().filter(|stream| *stream > 0) {
        if !edges(&calls, 0).1 {
            calls.extend([Inside::Record(stream, JOIN), Inside::Wait(INSIDE - 1, 0, JOIN)]);
        }
    }
    assert!(edges(&calls, 0).1, "a joined capture is whole: {calls:?}");
    calls
}

/// Runs the program. `Some`: without those lines, and no capture is told of.
fn run(case: &Case, without: Option<u32>) -> Program {
    let mut p = Program::new();
    p.line(11).malloc(X, 8 * CELL);
    if without.is_none() {
        capture(&mut p, case);
    }
    graph(&mut p, case, without);
    for (number, step) in case.outside.iter().enumerate() {
        p.line(100 + number as u32);
        match *step {
            Outside::Kernel(stream, cell, is_write) => {
                let kernel = kernel(&mut p, is_write);
                p.launch(CAPTURED[stream], kernel, &[X + cell * CELL]);
            }
            Outside::Graph(stream) => {
                p.does("cudaGraphLaunch", Op::GraphLaunch { stream: CAPTURED[stream], exec: EXEC })
            }
            Outside::Sync(line, ..) if without.is_some_and(|set| set & 1 << line != 0) => {}
            Outside::Sync(line, stream, _) if line == INSIDE => p.line(FIRST + line as u32).sync(CAPTURED[stream]),
            Outside::Sync(line, from, to) => {
                let event = EventId(p.id());
                p.record(event, CAPTURED[from]);
                p.line(FIRST + line as u32).wait(CAPTURED[to], event);
            }
        }
    }
    p
}

fn kernel(p: &mut Program, is_write: bool) -> KernelId {
    let bytes = Shape::Exact(0, CELL);
    p.kernel(&format!("writes_{is_write}"), &[if is_write { writes(0, bytes) } else { reads(0, bytes) }])
}

fn capture(p: &mut Program, case: &Case) {
    let capture = CAPTURE;
    p.does("cudaStreamBeginCapture", Op::CaptureStart { capture, stream: CAPTURED[0] });
    for (at, step) in case.inside.iter().enumerate() {
        p.line(NODES + at as u32);
        match *step {
            Inside::Node(stream, ..) => {
                let (stream, node) = (CAPTURED[stream], 1000 + at as u32);
                p.does("cudaLaunchKernel", Op::CaptureNode { capture, stream, node });
            }
            Inside::Record(stream, event) => {
                let (event, stream) = (EventId(1 + event), CAPTURED[stream]);
                p.does("cudaEventRecord", Op::CaptureRecord { capture, event, stream });
            }
            Inside::Wait(line, stream, event) => {
                let (event, stream) = (EventId(1 + event), CAPTURED[stream]);
                p.line(FIRST + line as u32).does("cudaStreamWaitEvent", Op::CaptureWait { capture, stream, event });
            }
        }
    }
    p.does("cudaStreamEndCapture", Op::CaptureDone { stream: CAPTURED[0] });
}

/// Edges that do not follow from others.
fn reduced(after: &BTreeMap<usize, BTreeSet<usize>>) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut all: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (node, before) in after {
        let mut earlier = before.clone();
        before.iter().for_each(|node| earlier.extend(&all[node]));
        all.insert(*node, earlier);
    }
    let follows = |before: &BTreeSet<usize>, from: usize| before.iter().any(|other| all[other].contains(&from));
    let rest = |before: &BTreeSet<usize>| before.iter().copied().filter(|from| !follows(before, *from)).collect();
    after.iter().map(|(node, before)| (*node, rest(before))).collect()
}

fn graph(p: &mut Program, case: &Case, without: Option<u32>) {
    let (mut after, _) = edges(&case.inside, without.unwrap_or_default());
    if case.is_reduced && without.is_none() {
        after = reduced(&after);
    }
    let mut nodes: Vec<(u32, KernelId, u64, Vec<u32>)> = Vec::new();
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for copy in 0..=u32::from(case.is_nested) {
        let first = nodes.len() as u32;
        let numbers: BTreeMap<usize, u32> = after.keys().copied().zip(first..).collect();
        let ends: Vec<u32> = (0..first).collect();
        for (at, before) in &after {
            let Inside::Node(_, cell, is_write) = case.inside[*at] else { unreachable!("nodes have edges") };
            let kernel = kernel(p, is_write);
            let mut before: Vec<u32> = before.iter().map(|from| numbers[from]).collect();
            if before.is_empty() {
                before.clone_from(&ends);
            }
            nodes.push((NODES + *at as u32, kernel, X + cell * CELL, before));
            parts.push((copy, 1000 + *at as u32));
        }
    }
    p.line(200).graph(EXEC, &nodes, &[]);
    for (index, (copy, node)) in (0..).zip(parts) {
        match (without, case.is_nested) {
            (Some(_), _) => {}
            (None, false) => p.raw(Op::NodeOf { exec: EXEC, index, part: 0, node }),
            (None, true) => {
                p.raw(Op::NodeOf { exec: EXEC, index, part: 1 + copy, node });
                p.raw(Op::NodeOf { exec: EXEC, index, part: 0, node: 0 });
            }
        }
    }
}

/// The program without what races as it is: a pair that races anyway needs nothing.
fn mended(mut case: Case) -> Case {
    loop {
        let found = run(&case, Some(0)).analysis.finish().findings;
        let Some(finding) = found.first() else { return case };
        let line = finding.access.stack[0].line.expect("has a line");
        if line >= NODES {
            case.inside[(line - NODES) as usize] = Inside::Record(0, EVENTS);
        } else {
            let _ = case.outside.remove((line - 100) as usize);
        }
    }
}

fn line_of(site: &analysis::counterfactual::excess::listing::Listed) -> u32 {
    let at = site.at.rsplit(':').next().and_then(|line| line.parse::<u32>().ok());
    at.expect("has a line") - FIRST
}

fn agree(case: &Case, listing: &Listing) -> Result<(), TestCaseError> {
    let lines: Vec<u32> = listing.sites.iter().map(line_of).collect();
    let here = lines.iter().fold(0, |all, line| all | 1_u32 << line);
    let sets = 0..1_u32 << SITES;
    let is_launched = case.outside.iter().any(|step| matches!(step, Outside::Graph(_)));
    let races: Vec<bool> = sets
        .clone()
        .map(|set| set & here == set && !run(case, Some(set)).analysis.finish().findings.is_empty())
        .collect();
    let is_whole = |set: u32| !is_launched || edges(&case.inside, set).1;
    let fine: Vec<bool> = sets.clone().map(|set| set & here == set && !races[set as usize] && is_whole(set)).collect();
    let relevant = |line: u32| {
        sets.clone().any(|set| fine[set as usize] && set & here == set && !fine[(set | 1 << line) as usize])
    };
    let launches = case.outside.iter().filter(|step| matches!(step, Outside::Graph(_))).count();
    for (site, line) in listing.sites.iter().zip(&lines) {
        let alone = 1 << line;
        let expected = match (races[alone], is_whole(1 << line), relevant(*line)) {
            (true, ..) => SyncVerdict::Needed,
            (false, false, _) => SyncVerdict::Capture,
            (false, true, true) => SyncVerdict::Together,
            (false, true, false) => SyncVerdict::Nothing,
        };
        prop_assert_eq!(site.verdict, expected, "line {} of {:#?}", line, listing);
        let waits = case.inside.iter().filter(|step| matches!(step, Inside::Wait(l, ..) if *l == *line as usize));
        if (*line as usize) < INSIDE {
            prop_assert_eq!(site.kind, "captured-wait");
            prop_assert_eq!(site.count as usize, waits.count() * launches);
        }
    }
    let largest = sets.clone().filter(|set| fine[*set as usize]).map(u32::count_ones).max().unwrap_or(0);
    let going = listing.sites.iter().zip(&lines).filter(|(site, _)| site.can_go);
    let going = going.fold(0, |all, (_, line)| all | 1_u32 << line);
    prop_assert!(fine[going as usize], "the offered set races: {:#?}", listing);
    prop_assert_eq!(going.count_ones(), largest);
    prop_assert!(listing.is_complete);
    Ok(())
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn excess_agrees_with_graphs_written_anew(case in case()) {
        let case = mended(case);
        let listing = run(&case, None).listing();
        agree(&case, &listing)?;
    }
}

#[test]
fn the_graphs_have_waits_of_every_verdict() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..250 {
        let case = mended(case().new_tree(&mut runner).expect("a program").current());
        let sites = run(&case, None).listing().sites;
        seen.extend(sites.iter().filter(|site| site.kind == "captured-wait").map(|site| site.verdict));
    }
    use SyncVerdict::{Capture, Needed, Nothing, Together};
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [Needed, Capture, Together, Nothing]);
}
