//! Which edges of an executable graph are there because of which captured wait.
//!
//! Owns the comparison of a finished graph with the captures that its nodes come from, and its
//! order without some of their waits. A capture whose calls do not explain the edges of the graph
//! (its graph was changed by hand, or something was not seen) is *opaque*: its waits stay.
//!
//! The driver may leave out an edge that follows from others. So without a wait an edge can go, and
//! one can appear that was there for nothing before.

use crate::state::captures::{Capture, Captures, Replayed};
use crate::state::graphs::{Graph, Inner};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use trace::{CaptureId, Dependency, StreamId};

/// A captured graph, or a copy of it inside another one.
#[derive(Clone, Debug, Default)]
struct Copy {
    /// For the capture's nodes by number: nodes of the executable graph, in an order that respects
    /// all dependencies.
    nodes: FxHashMap<u32, Vec<u32>>,
    /// Pairs of the capture's nodes with an edge.
    edges: FxHashSet<(u32, u32)>,
}

/// One capture, as far as an executable graph comes from it.
#[derive(Clone, Debug)]
pub struct CapturePart {
    /// Its calls.
    pub capture: Arc<Capture>,
    /// Its calls with all waits.
    pub(crate) whole: Replayed,
    /// Whether its waits can not be judged.
    pub is_opaque: bool,
    copies: BTreeMap<u32, Copy>,
}

/// Why an edge of an executable graph is there.
#[derive(Clone, Copy, Debug)]
struct Reason {
    /// The index of the capture.
    capture: u32,
    /// The capture's nodes.
    from: u32,
    to: u32,
}

/// An executable graph with its captures.
#[derive(Clone, Debug, Default)]
pub struct GraphWaits {
    /// The captures.
    pub captures: Vec<CapturePart>,
    /// Edges that no capture made.
    pub explicit_edges: u64,
    /// For each node: the innermost capture, and its number there.
    places: Vec<Option<(u32, u32)>>,
    /// For each node, for each dependency: its reason, if a capture made it.
    reasons: Vec<Vec<Option<Reason>>>,
}

impl GraphWaits {
    /// Compares a graph, in its own order, with the captures of the process.
    pub fn of(graph: &Graph, captures: &Captures) -> Self {
        let mut waits = Self::default();
        let mut numbers: FxHashMap<CaptureId, u32> = FxHashMap::default();
        for &index in graph.sequence() {
            for &(part, node) in graph.node(index).into_iter().flat_map(|node| node.parts()) {
                let Some((id, number)) = captures.of_node(node) else { continue };
                let Some(capture) = captures.get(id) else { continue };
                let at = *numbers.entry(id).or_insert_with(|| {
                    let whole = capture.replay(&|_| false);
                    let is_opaque = capture.is_changed || !whole.strays.is_empty() || !whole.unjoined.is_empty();
                    let copies = BTreeMap::new();
                    waits.captures.push(CapturePart { capture: capture.clone(), whole, is_opaque, copies });
                    waits.captures.len() as u32 - 1
                });
                let copy = waits.captures[at as usize].copies.entry(part).or_default();
                copy.nodes.entry(number).or_default().push(index);
            }
        }
        let place = |node: u32| {
            let (id, number) = captures.of_node(node)?;
            Some((*numbers.get(&id)?, number))
        };
        for node in graph.nodes() {
            waits.places.push(node.parts().iter().find_map(|(_, number)| place(*number)));
            let reasons = node.dependencies().iter().map(|d| waits.reason(graph, node.parts(), d, &place));
            let reasons = reasons.collect();
            waits.reasons.push(reasons);
        }
        for capture in &mut waits.captures {
            capture.is_opaque |= !capture.is_explained(graph);
        }
        waits
    }

    /// Why an edge is there. Both ends are parts of nodes of one graph somewhere: those decide.
    fn reason(
        &mut self,
        graph: &Graph,
        to: &[(u32, u32)],
        edge: &Dependency,
        place: &impl Fn(u32) -> Option<(u32, u32)>,
    ) -> Option<Reason> {
        let from = graph.node(edge.from)?.parts();
        let shared = to.iter().find_map(|(part, then)| {
            let (_, first) = from.iter().find(|(other, first)| other == part && (first != then || *then == 0))?;
            Some((*part, *first, *then))
        });
        let Some((part, first, then)) = shared else {
            // The ops of one node come after each other.
            self.explicit_edges += u64::from(to.is_empty() || from.is_empty());
            return None;
        };
        match (place(first), place(then)) {
            (None, None) => self.explicit_edges += 1,
            (Some((capture, from)), Some((of, to))) if capture == of => {
                let known = &mut self.captures[capture as usize];
                if known.whole.after[to as usize].contains(&from) {
                    known.copies.entry(part).or_default().edges.insert((from, to));
                    return Some(Reason { capture, from, to });
                }
                known.is_opaque = true;
            }
            (first, then) => {
                for (capture, _) in first.into_iter().chain(then) {
                    self.captures[capture as usize].is_opaque = true;
                }
            }
        }
        None
    }

    /// The captured node that a node of the graph is, or is part of: the index of the capture, and
    /// the stream.
    pub fn captured_on(&self, node: u32) -> Option<(u32, StreamId)> {
        let (capture, number) = (*self.places.get(node as usize)?)?;
        Some((capture, self.captures[capture as usize].capture.nodes.get(number as usize)?.stream))
    }

    /// A node of the graph that a node of a capture is, or the first that is part of it.
    pub fn node_of(&self, capture: u32, number: u32) -> Option<u32> {
        let copies = self.captures.get(capture as usize)?.copies.values();
        copies.filter_map(|copy| copy.nodes.get(&number)?.first()).min().copied()
    }

    /// The order without those waits for which `out` holds, by the index of the capture and their
    /// numbers. Second: what becomes of each capture.
    pub fn order_without(&self, graph: &Graph, out: &dyn Fn(u32, u32) -> bool) -> (Inner, Vec<Option<Replayed>>) {
        let is_out = |at: u32, part: &CapturePart| {
            !part.is_opaque && (0..part.capture.waits.len() as u32).any(|wait| out(at, wait))
        };
        let parts = self.captures.iter().enumerate().map(|(at, part)| {
            let at = at as u32;
            is_out(at, part).then(|| part.capture.replay(&|wait| out(at, wait)))
        });
        let replayed: Vec<Option<Replayed>> = parts.collect();
        let stays = |reason: &Option<Reason>| {
            reason.is_none_or(|reason| {
                let capture = replayed[reason.capture as usize].as_ref();
                capture.is_none_or(|capture| capture.after[reason.to as usize].contains(&reason.from))
            })
        };
        let mut edges: Vec<Vec<Dependency>> = (graph.nodes().iter().zip(&self.reasons))
            .map(|(node, reasons)| {
                let kept = node.dependencies().iter().zip(reasons).filter(|(_, reason)| stays(reason));
                kept.map(|(edge, _)| *edge).collect()
            })
            .collect();
        let mut changed: Vec<(u32, &Copy)> = Vec::new();
        for (part, replayed) in self.captures.iter().zip(&replayed) {
            let Some(replayed) = replayed else { continue };
            part.copies.values().for_each(|copy| copy.add_hidden(graph, replayed, &mut edges));
            changed.extend(part.copies.iter().map(|(number, copy)| (*number, copy)));
        }
        // Graphs are numbered from the outside in.
        changed.sort_unstable_by_key(|(number, _)| *number);
        changed.iter().for_each(|(_, copy)| copy.begin(graph, &mut edges));
        changed.iter().rev().for_each(|(_, copy)| copy.end(graph, &mut edges));
        let inner = graph.order_by(&edges.iter().map(Vec::as_slice).collect::<Vec<_>>());
        (inner, replayed)
    }
}

impl Copy {
    fn members(&self) -> FxHashSet<u32> {
        self.nodes.values().flatten().copied().collect()
    }

    /// What is first in the copy now comes after what the copy as a whole comes after.
    fn begin(&self, graph: &Graph, edges: &mut [Vec<Dependency>]) {
        let members = self.members();
        let is_first = |edges: &[Dependency]| !edges.iter().any(|edge| members.contains(&edge.from));
        let was_first = |node: u32| graph.node(node).is_some_and(|node| is_first(node.dependencies()));
        let mut entry: Vec<Dependency> = Vec::new();
        for node in members.iter().filter(|node| was_first(**node)) {
            entry.extend(edges[*node as usize].iter().filter(|edge| !members.contains(&edge.from)));
        }
        entry.sort_unstable_by_key(|edge| (edge.from, edge.port));
        entry.dedup();
        for node in members.iter().filter(|node| !was_first(**node)) {
            let edges = &mut edges[*node as usize];
            if is_first(edges) {
                edges.extend(&entry);
            }
        }
    }

    /// What comes after the copy as a whole comes after what is last in it now.
    fn end(&self, graph: &Graph, edges: &mut [Vec<Dependency>]) {
        let members = self.members();
        let within = |node: usize| members.contains(&(node as u32));
        let before = |node: usize| graph.node(node as u32).map_or(&[][..], |node| node.dependencies());
        let mut had_next: FxHashSet<u32> = FxHashSet::default();
        let mut has_next: FxHashSet<u32> = FxHashSet::default();
        for node in (0..edges.len()).filter(|node| within(*node)) {
            had_next.extend(before(node).iter().map(|edge| edge.from));
            has_next.extend(edges[node].iter().map(|edge| edge.from));
        }
        let ends: Vec<u32> = members.iter().filter(|node| !has_next.contains(node)).copied().collect();
        for node in (0..edges.len()).filter(|node| !within(*node)) {
            let is_after = |edge: &&Dependency| members.contains(&edge.from) && !had_next.contains(&edge.from);
            if edges[node].iter().any(|edge| is_after(&edge)) {
                edges[node].extend(ends.iter().map(|from| Dependency { from: *from, port: 0 }));
            }
        }
    }

    /// Adds the edges that the driver had left out.
    fn add_hidden(&self, graph: &Graph, replayed: &Replayed, edges: &mut [Vec<Dependency>]) {
        for (to, after) in replayed.after.iter().enumerate() {
            for from in after.iter().filter(|from| !self.edges.contains(&(**from, to as u32))) {
                let (Some(first), Some(then)) = (self.nodes.get(from), self.nodes.get(&(to as u32))) else { continue };
                let inside = |node: &&u32| {
                    let edges = graph.node(**node).map_or(&[][..], |node| node.dependencies());
                    edges.iter().any(|edge| then.contains(&edge.from))
                };
                for root in then.iter().filter(|node| !inside(node)) {
                    edges[*root as usize].extend(first.iter().map(|from| Dependency { from: *from, port: 0 }));
                }
            }
        }
    }
}

impl CapturePart {
    /// Whether the graph orders all that the calls order.
    fn is_explained(&self, graph: &Graph) -> bool {
        let ordered = |copy: &Copy, from: u32, to: u32| {
            let (Some(first), Some(then)) = (copy.nodes.get(&from), copy.nodes.get(&to)) else { return true };
            copy.edges.contains(&(from, to))
                || (first.last().zip(then.first())).is_none_or(|(first, then)| graph.before(*first, *then))
        };
        self.copies.values().all(|copy| {
            (self.whole.after.iter().enumerate())
                .all(|(to, after)| after.iter().all(|from| ordered(copy, *from, to as u32)))
        })
    }
}
