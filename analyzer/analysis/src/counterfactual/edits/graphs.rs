//! Launched graphs: their captured waits as sites, and what must stay ordered inside.
//!
//! Owns the graphs of a trace as they were launched, the pairs of nodes that would race if no
//! captured wait was made, and the trial of their order without some of those waits. What comes
//! before and after a launch is none of its: that is [`crate::counterfactual::excess`].

use super::need::{Need, Why};
use super::steps::NONE;
use detect::race::{Hazard, Race};
use detect::state::graph_waits::GraphWaits;
use detect::state::graphs::Graph;
use rustc_hash::{FxHashMap, FxHashSet};
use trace::{GraphExecId, KernelId, Op, StreamId};

/// Nodes with unknown bytes that are compared with others, of one graph.
const UNKNOWN_NODES: usize = 64;

/// A graph, from one change of its nodes to the next.
#[derive(Debug)]
pub struct LaunchedGraph {
    /// The graph, with its own order.
    pub graph: Graph,
    /// Its waits.
    pub waits: GraphWaits,
    /// For each capture, for each of its waits: the place.
    pub(crate) places: Vec<Vec<u32>>,
    /// The places of nodes that wait for events of outside.
    pub(crate) outside: Vec<u32>,
    /// How often it was launched.
    pub(crate) launches: u64,
    /// Nodes of one launch that would race.
    pairs: Vec<(u32, u32, Hazard)>,
    known: FxHashSet<(u32, u32)>,
}

/// All launched graphs of a trace.
#[derive(Debug, Default)]
pub struct LaunchedGraphs {
    /// The graphs.
    pub all: Vec<LaunchedGraph>,
    of_exec: FxHashMap<GraphExecId, u32>,
}

impl LaunchedGraph {
    /// The stream that a node was captured on.
    pub fn stream(&self, node: u32) -> StreamId {
        self.waits.captured_on(node).map_or(StreamId::NONE, |(_, stream)| stream)
    }

    /// Whether a site leaves something of this graph's own order out.
    fn is_changed(&self, out: &dyn Fn(u32) -> bool) -> bool {
        let parts = self.places.iter().zip(&self.waits.captures).filter(|(_, part)| !part.is_opaque);
        parts.flat_map(|(places, _)| places).any(|place| out(*place))
    }
}

impl LaunchedGraphs {
    /// A graph is launched for the first time since its nodes have changed.
    pub(crate) fn add(
        &mut self,
        exec: GraphExecId,
        graph: &Graph,
        waits: GraphWaits,
        places: Vec<Vec<u32>>,
        outside: Vec<u32>,
    ) {
        let graph = LaunchedGraph {
            graph: graph.clone(),
            waits,
            places,
            outside,
            launches: 0,
            pairs: Vec::new(),
            known: FxHashSet::default(),
        };
        self.of_exec.insert(exec, self.all.len() as u32);
        self.all.push(graph);
    }

    /// A graph is launched. What raced inside is noted.
    pub(crate) fn launched(&mut self, exec: GraphExecId, races: &[Race]) -> Option<&LaunchedGraph> {
        let graph = self.all.get_mut(*self.of_exec.get(&exec)? as usize)?;
        graph.launches += 1;
        for race in races.iter().filter(|race| is_inside(race) && !race.freed_early && !race.latent) {
            let (first, then) = (race.previous.site.node - 1, race.access.site.node - 1);
            if graph.known.insert((first, then)) {
                graph.pairs.push((first, then, race.hazard));
            }
        }
        Some(graph)
    }

    /// What must stay ordered inside, as far as the recorded order meets it. Second: pairs that it
    /// does not order.
    pub fn needs(&self, unknown: &FxHashSet<KernelId>) -> (Vec<Need>, u64) {
        let (mut needs, mut unordered) = (Vec::new(), 0);
        for (number, graph) in (0..).zip(&self.all) {
            for &(first, then, hazard) in &graph.pairs {
                match graph.graph.before(first, then) {
                    true => needs.push(Need { first, then, why: Why::Nodes(number, hazard) }),
                    false => unordered += 1,
                }
            }
            graph.unknown_needs(number, unknown, &mut needs);
        }
        (needs, unordered)
    }

    /// The needs that are not met without these places.
    pub fn violated(&self, needs: &[Need], out: &dyn Fn(u32) -> bool) -> Vec<Need> {
        let mut violated = Vec::new();
        let mut of_graph: FxHashMap<u32, Vec<&Need>> = FxHashMap::default();
        for need in needs {
            if let Why::Nodes(graph, _) | Why::UnknownNodes(graph) = need.why {
                of_graph.entry(graph).or_default().push(need);
            }
        }
        for (number, graph) in (0..).zip(&self.all).filter(|(_, graph)| graph.is_changed(out)) {
            let is_out = |capture: u32, wait: u32| out(graph.places[capture as usize][wait as usize]);
            let (order, replayed) = graph.waits.order_without(&graph.graph, &is_out);
            let needs = of_graph.get(&number).into_iter().flatten();
            violated.extend(needs.filter(|need| !order.before(need.first, need.then)).map(|need| **need));
            for (capture, replayed) in (0..).zip(&replayed) {
                let Some(replayed) = replayed else { continue };
                let stray = replayed.strays.first().map(|node| (*node, Why::Stray(number)));
                let unjoined = replayed.unjoined.first().map(|unjoined| (unjoined.node, Why::Unjoined(number)));
                violated.extend(stray.or(unjoined).map(|(node, why)| Need { first: node, then: capture, why }));
            }
        }
        violated
    }
}

/// Whether both sides of a race belong to one launch.
pub(crate) fn is_inside(race: &Race) -> bool {
    race.previous.epoch == race.access.epoch && race.previous.site.node > 0 && race.access.site.node > 0
}

impl LaunchedGraph {
    /// Nodes whose bytes are not known are compared with the next and the last node of each other
    /// captured stream that they are ordered with.
    fn unknown_needs(&self, number: u32, unknown: &FxHashSet<KernelId>, needs: &mut Vec<Need>) {
        let sequence = self.graph.sequence();
        let op = |node: u32| self.graph.node(node).and_then(|node| node.op());
        let is_unknown =
            |node: &&u32| matches!(op(**node), Some(Op::Launch { kernel, .. }) if unknown.contains(&kernel));
        let is_work = |node: u32| {
            let op = op(node);
            op.is_some_and(|op| !matches!(op, Op::EventRecord { .. } | Op::StreamWait { .. } | Op::WaitValue { .. }))
        };
        for &node in sequence.iter().filter(is_unknown).take(UNKNOWN_NODES) {
            let own = self.waits.captured_on(node);
            let mut nearest: FxHashMap<(u32, StreamId), (u32, u32)> = FxHashMap::default();
            for &other in sequence {
                let Some(on) = self.waits.captured_on(other).filter(|on| Some(*on) != own && is_work(other)) else {
                    continue;
                };
                let nearest = nearest.entry(on).or_insert((NONE, NONE));
                if self.graph.before(other, node) {
                    nearest.0 = other;
                } else if nearest.1 == NONE && self.graph.before(node, other) {
                    nearest.1 = other;
                }
            }
            for (last, next) in nearest.into_values() {
                let why = Why::UnknownNodes(number);
                needs.extend((last != NONE).then_some(Need { first: last, then: node, why }));
                needs.extend((next != NONE).then_some(Need { first: node, then: next, why }));
            }
        }
    }
}
