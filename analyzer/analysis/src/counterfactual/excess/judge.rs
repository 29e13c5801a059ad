//! The verdict on every synchronisation of a process.
//!
//! Owns the way from a finished analysis to the listing. The order of each trial is
//! [`super::trial`], the sets are [`super::search`].

use crate::Analysis;
use crate::counterfactual::edits::graphs::LaunchedGraph;
use crate::counterfactual::edits::need::{Need, Why};
use crate::counterfactual::edits::steps::{NONE, Reuse, Steps, marks};
use crate::counterfactual::edits::sync::SyncKind;
use crate::counterfactual::excess::dependents;
use crate::counterfactual::excess::listing::{End, Listed, Listing, OrderedPair, SyncVerdict};
use crate::counterfactual::excess::needs;
use crate::counterfactual::excess::search;
use crate::counterfactual::excess::trial::OrderTrial;
use crate::counterfactual::trial::Trial;
use crate::counterfactual::trial::records::Records;
use report::call_site;
use report::elaborate::called;
use report::escape::harmless;
use report::words::counted;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use symbols::frame::{Frame, FrameKind};
use trace::Op;

/// Trials of sets of sites.
const TRIALS: usize = 300;
/// Steps of all trials of sets: longer traces get fewer.
const TRIAL_STEPS: usize = 300_000_000;
/// Kernels that are named for one verdict.
const NAMED: usize = 6;

/// Judges the synchronisations of the process whose records `first` has been fed. Ends `first`.
/// `None`: not all records can be had.
pub fn judge(first: &mut Analysis, records: &mut dyn Records) -> Option<Listing> {
    let outcome = first.finish();
    let mut unsynchronised = Trial::unsynchronised(first);
    let read = records.each(&mut |bytes| unsynchronised.feed_encoded(bytes));
    let (steps, forgotten) = unsynchronised.into_steps().filter(|_| read)?;
    let devices = first.facts.names.devices();
    let trial = OrderTrial { steps: &steps, options: first.order_options(), devices: &devices };
    let (needs, unordered) = needs::find(&steps, &trial);
    let (mut sites, of_place) = sites(first, &steps);
    let alone = each_alone(sites.len(), |site| trial.violated(&needs, &|place| of_place[place as usize] == site));
    let opaque = steps.places.iter().zip(&of_place).filter(|(place, site)| place.is_opaque && **site != NONE);
    let opaque: FxHashSet<u32> = opaque.map(|(_, site)| *site).collect();
    let is_library_s = |site: &u32| sites[*site as usize].verdict == SyncVerdict::Library;
    let is_free = |site: &u32| alone[*site as usize].is_empty() && !opaque.contains(site) && !is_library_s(site);
    let mut free: Vec<u32> = (0..sites.len() as u32).filter(is_free).collect();
    // Of those that stand for each other, the first are kept: what holds the host is to go.
    let holds_host = |site: &u32| {
        let kind = sites[*site as usize].kind;
        !matches!(kind, "record-stream" | "stream-wait" | "captured-wait" | "context-wait")
    };
    free.sort_by_key(|site| (holds_host(site), *site));
    let chosen = |set: &[u32]| -> Vec<u32> {
        let mut set: Vec<u32> = set.iter().map(|at| free[*at as usize]).collect();
        set.sort_unstable();
        set
    };
    let budget = TRIALS.min(TRIAL_STEPS / steps.steps.len().max(1));
    let all: Vec<u32> = (0..free.len() as u32).collect();
    let mut found = search::search(&all, budget, &mut |set| {
        let set = chosen(set);
        trial.violated(&needs, &|place| set.binary_search(&of_place[place as usize]).is_ok()).is_empty()
    });
    found.largest = chosen(&found.largest);
    found.conflicts.iter_mut().for_each(|conflict| *conflict = chosen(conflict));
    for (site, violated) in sites.iter_mut().zip(&alone) {
        weigh(first, &steps, site, violated);
    }
    for site in &opaque {
        let site = &mut sites[*site as usize];
        if site.verdict == SyncVerdict::Nothing {
            site.verdict = SyncVerdict::Unknown;
        }
    }
    for conflict in &found.conflicts {
        for site in conflict {
            let listed = &mut sites[*site as usize];
            listed.verdict = SyncVerdict::Together;
            if listed.partners.is_empty() || listed.partners.len() + 1 > conflict.len() {
                listed.partners = conflict.iter().filter(|other| *other != site).map(|at| *at as usize).collect();
            }
        }
    }
    found.largest.iter().for_each(|site| sites[*site as usize].can_go = true);
    let mut notes = Vec::new();
    if !outcome.findings.is_empty() || unordered > 0 {
        notes.push("pairs that race in this run are not used to judge a synchronisation".to_owned());
    }
    if forgotten > 0 {
        notes.push(format!("{forgotten} accesses were forgotten for lack of room: a need may have been missed"));
    }
    if steps.is_cut {
        notes.push("the trace is too long: only its beginning was looked at".to_owned());
    }
    if outcome.coverage.damaged > 0 {
        notes.push("parts of the trace are damaged: a need may have been missed".to_owned());
    }
    if !opaque.is_empty() {
        let sites: Vec<String> =
            (0..sites.len() as u32).filter(|site| opaque.contains(site)).map(|site| format!("#{}", site + 1)).collect();
        notes.push(format!(
            "not all edges of the graphs of {} follow from captured calls: these waits are not judged",
            sites.join(" "),
        ));
    }
    let edges: u64 = steps.graphs.all.iter().map(|graph| graph.waits.explicit_edges).sum();
    if edges > 0 {
        let edges = counted(edges, "edge", "edges");
        notes.push(format!("not judged: {edges} of launched graphs that no recorded wait made"));
    }
    if !found.is_complete {
        notes.push(
            "not all sets of sites were tried: there may be a larger one, and more that exclude each other".to_owned(),
        );
    }
    let seen = &outcome.coverage;
    let unseen = seen.damaged + seen.paused + seen.unknown_memory + seen.launches_system;
    let is_silent =
        unseen == 0 && seen.lost.is_empty() && outcome.findings.is_empty() && unordered == 0 && !first.shares();
    let (dependents, unjudged) = dependents::find(first, records, is_silent)?;
    notes.extend(unjudged);
    let process = &outcome.process;
    let program = process.args.first().map_or_else(|| process.name(), |name| harmless(name).into_owned());
    Some(Listing {
        process: program,
        pid: process.pid,
        sites,
        ops: steps.steps.len() as u64,
        findings: outcome.findings.len() as u64,
        is_complete: found.is_complete,
        dependents,
        notes,
    })
}

/// The places of a trace by what a reader sees of them. Second: the site of each place.
fn sites(first: &mut Analysis, steps: &Steps) -> (Vec<Listed>, Vec<u32>) {
    let mut sites: Vec<Listed> = Vec::new();
    let mut known: FxHashMap<(&str, String, Vec<String>), u32> = FxHashMap::default();
    let of_place = steps.places.iter().map(|place| {
        // Captured, and never launched.
        if place.count == 0 {
            return NONE;
        }
        let frames = first.facts.stacks.resolve(place.site.stack);
        let call = match place.site.kind {
            // The call itself is not in the trace: the pool acts on it when the block goes back.
            SyncKind::RecordStream => "record_stream".to_owned(),
            _ => called(&frames, first.facts.names.call(place.call)),
        };
        let by_library = is_library_s(&frames, first.facts.names.call(place.call));
        let stack: Vec<String> = frames
            .iter()
            .map(|frame| {
                let at = frame.place().map_or_else(String::new, |at| format!("  {at}"));
                harmless(&format!("{}{at}", frame.function)).into_owned()
            })
            .collect();
        let kind = place.site.kind.word();
        let number = *known.entry((kind, call.clone(), stack.clone())).or_insert_with(|| {
            let at = call_site::site(&frames).unwrap_or_default();
            sites.push(Listed {
                call: harmless(&call).into_owned(),
                kind,
                at: harmless(&at).into_owned(),
                stack,
                count: 0,
                verdict: if by_library { SyncVerdict::Library } else { SyncVerdict::Nothing },
                pair: None,
                pairs: 0,
                kernels: Vec::new(),
                partners: Vec::new(),
                can_go: false,
            });
            sites.len() as u32 - 1
        });
        sites[number as usize].count += place.count;
        number
    });
    let of_place = of_place.collect();
    (sites, of_place)
}

/// Whether a communication library makes a synchronisation for itself: by its own code, or inside a
/// call of it that is observed as a whole (`ncclGroupEnd`).
fn is_library_s(frames: &[Frame], call: &str) -> bool {
    let caller = frames.iter().find(|frame| frame.kind == FrameKind::Native);
    let module = caller.and_then(|frame| frame.module.as_deref()?.rsplit('/').next());
    let is_one = |name: &str, ours: [&str; 2]| ours.iter().any(|prefix| name.starts_with(prefix));
    is_one(call, ["nccl", "nvshmem"]) || module.is_some_and(|module| is_one(module, ["libnccl", "libnvshmem"]))
}

/// What each site is alone needed for. Uses all processors.
fn each_alone(count: usize, violated: impl Fn(u32) -> Vec<Need> + Sync) -> Vec<Vec<Need>> {
    let all = Mutex::new(vec![Vec::new(); count]);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let site = next.fetch_add(1, Ordering::Relaxed);
            if site >= count {
                return;
            }
            let found = violated(site as u32);
            all.lock().unwrap_or_else(PoisonError::into_inner)[site] = found;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8)).min(count);
    std::thread::scope(|scope| {
        // What can not be started is done by this thread.
        let _ = (1..threads).map(|_| std::thread::Builder::new().spawn_scoped(scope, work)).collect::<Vec<_>>();
        work();
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The verdict on a site that alone is needed for these.
fn weigh(first: &mut Analysis, steps: &Steps, site: &mut Listed, violated: &[Need]) {
    let Some(clearest) = violated.iter().min_by_key(|need| need.why.rank()) else { return };
    let rank = clearest.why.rank();
    site.pairs = violated.iter().filter(|need| need.why.rank() == rank).count() as u64;
    let (verdict, why) = match clearest.why {
        Why::Race(hazard) | Why::Nodes(_, hazard) => (SyncVerdict::Needed, hazard.name()),
        Why::Stray(_) => (SyncVerdict::Capture, "not-captured"),
        Why::Unjoined(_) => (SyncVerdict::Capture, "unjoined"),
        Why::Reused(_) => (SyncVerdict::Needed, "reused-early"),
        Why::HostReads => (SyncVerdict::Host, "host-reads"),
        Why::HostWrites => (SyncVerdict::Host, "host-writes"),
        Why::Unknown | Why::UnknownThen | Why::UnknownNodes(_) => (SyncVerdict::Unknown, "unknown"),
    };
    let earlier = match clearest.why {
        Why::Nodes(graph, _) | Why::UnknownNodes(graph) => {
            node_end(first, &steps.graphs.all[graph as usize], clearest.first)
        }
        Why::Stray(graph) | Why::Unjoined(graph) => {
            let graph = &steps.graphs.all[graph as usize];
            let node = graph.waits.node_of(clearest.then, clearest.first).unwrap_or(NONE);
            node_end(first, graph, node)
        }
        _ => end(first, steps, clearest.first),
    };
    let then = match clearest.why {
        Why::HostReads | Why::HostWrites | Why::Stray(_) | Why::Unjoined(_) => None,
        Why::Nodes(graph, _) | Why::UnknownNodes(graph) => {
            Some(node_end(first, &steps.graphs.all[graph as usize], clearest.then))
        }
        Why::Reused(at) => Some(handed_out(first, &steps.reuses[at as usize])),
        _ => Some(end(first, steps, clearest.then)),
    };
    site.verdict = verdict;
    site.pair = Some(OrderedPair { first: earlier, then, why });
    if verdict == SyncVerdict::Unknown {
        for need in violated {
            let name = match need.why {
                Why::UnknownNodes(graph) => {
                    let graph = &steps.graphs.all[graph as usize];
                    let unknown = [need.first, need.then].into_iter().find(|node| {
                        matches!(graph.graph.node(*node).and_then(|node| node.op()),
                            Some(Op::Launch { kernel, .. }) if steps.unknown_kernels().contains(&kernel))
                    });
                    node_end(first, graph, unknown.unwrap_or(need.first)).what
                }
                Why::Unknown => end(first, steps, need.first).what,
                _ => end(first, steps, need.then).what,
            };
            if !site.kernels.contains(&name) {
                site.kernels.push(name);
            }
            if site.kernels.len() == NAMED {
                break;
            }
        }
    }
}

/// The allocation that could be given a block.
fn handed_out(first: &mut Analysis, reuse: &Reuse) -> End {
    let stream = first.elaborator().stream_name(reuse.stream);
    let at = call_site::site(&first.facts.stacks.resolve(reuse.stack)).unwrap_or_default();
    let what = "an allocation that could be given its block".to_owned();
    End { what, at: harmless(&at).into_owned(), stream: harmless(&stream).into_owned() }
}

/// A node of a graph as a side of a pair.
fn node_end(first: &mut Analysis, graph: &LaunchedGraph, number: u32) -> End {
    let Some(node) = graph.graph.node(number) else { return End::default() };
    let mut elaborator = first.elaborator();
    let op = node.op();
    let what = match op {
        Some(Op::Launch { kernel, .. }) => format!("kernel {}", elaborator.kernel_name(kernel)),
        _ => what(op.as_ref()).to_owned(),
    };
    let stream = match graph.stream(number) {
        stream if stream.is_none() => String::new(),
        stream => elaborator.stream_name(stream),
    };
    let at = call_site::site(&first.facts.stacks.resolve(node.stack)).unwrap_or_default();
    End { what: harmless(&what).into_owned(), at: harmless(&at).into_owned(), stream: harmless(&stream).into_owned() }
}

/// What an op is.
fn what(op: Option<&Op<'_>>) -> &'static str {
    match op {
        Some(Op::Copy { .. } | Op::AttributedCopy { .. }) => "a copy",
        Some(Op::Set { .. }) => "a fill",
        Some(Op::GraphLaunch { .. }) => "the launch of a graph",
        Some(Op::Alloc { .. }) => "an allocation",
        Some(Op::Free { .. } | Op::ArrayDestroy { .. }) => "a free",
        Some(Op::Opaque { .. }) => "an operation that is not modelled",
        Some(Op::HostFunc { .. }) => "a host function",
        _ => "an operation",
    }
}

/// A step as a side of a pair.
fn end(first: &mut Analysis, steps: &Steps, number: u32) -> End {
    let step = &steps.steps[number as usize];
    let mut elaborator = first.elaborator();
    let what = if step.marks & marks::LAUNCH != 0 {
        format!("kernel {}", elaborator.kernel_name(step.kernel))
    } else {
        what(steps.record(step).map(|record| record.op).as_ref()).to_owned()
    };
    let stream = elaborator.stream_name(step.stream);
    let frames = first.facts.stacks.resolve(step.stack);
    let at = call_site::site(&frames).unwrap_or_default();
    End { what: harmless(&what).into_owned(), at: harmless(&at).into_owned(), stream: harmless(&stream).into_owned() }
}
