//! The nodes of an executable graph by what they are behind and ahead of.
//!
//! A node that waits for something outside (a *source*) holds back the nodes behind it, and a node
//! that something outside may wait for (a *sink*) is behind some nodes and not behind others. Nodes
//! that are behind the same sources and ahead of the same sinks are one *part* of the graph: for
//! all that is outside, they are one op.
//!
//! Owns the division into parts. Does not know what a source waits for.

use smallvec::SmallVec;

use crate::state::graph_exec::{ExternalNode, GraphExec};

/// Sources, and sinks, that are told apart. Beyond that the graph is one op.
const LINKS: usize = 64;

/// Parts of a graph. Beyond that the graph is one op.
const PARTS: usize = 64;

/// A node, as far as the plan needs it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct PlannedNode {
    /// The nodes that come directly before it.
    pub(crate) behind: SmallVec<[u32; 4]>,
    /// Whether it does anything beside recording an event and waiting.
    pub(crate) works: bool,
}

/// A set of sources, or of sinks, by their place among the graph's links.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Links(u64);

impl Links {
    /// Whether a link is among them.
    pub(crate) fn has(self, link: usize) -> bool {
        link < LINKS && self.0 >> link & 1 != 0
    }
}

/// Nodes that are one op for all that is outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// The sources that they wait for.
    pub(crate) behind: Links,
    /// The sinks that wait for them.
    pub(crate) ahead: Links,
}

/// The division of one graph.
#[derive(Clone, Default, Debug)]
pub(crate) struct GraphPlan {
    /// Its parts. Empty: nothing in it works, or there are too many links.
    pub(crate) parts: Vec<Part>,
    /// By node: the part that it is in.
    part_of: Vec<Option<u8>>,
    /// By link: the sources that it is behind.
    behind: Vec<Links>,
    /// Whether a launch is one op of its stream: all that works waits for all sources.
    pub(crate) is_whole: bool,
}

impl GraphPlan {
    /// That of a graph without links, or with too many.
    pub(crate) fn nothing() -> Self {
        Self { is_whole: true, ..Self::default() }
    }

    /// Divides a graph. `whole`: it stays one op.
    pub(crate) fn of(exec: &GraphExec, whole: bool) -> Self {
        let links = &exec.links;
        if links.len() > LINKS {
            return Self::nothing();
        }
        let count = exec.nodes.len().max(links.iter().map(|(index, _)| *index as usize + 1).max().unwrap_or(0));
        let (mut behind, mut ahead) = (vec![0_u64; count], vec![0_u64; count]);
        let mut sources = 0;
        for (at, (index, link)) in links.iter().enumerate() {
            match link {
                _ if exec.is_source(link) => {
                    behind[*index as usize] |= 1 << at;
                    sources |= 1 << at;
                }
                ExternalNode::Record(_) | ExternalNode::Write { .. } => ahead[*index as usize] |= 1 << at,
                ExternalNode::Wait(_) | ExternalNode::WaitFor { .. } => {}
            }
        }
        // Most graphs have their nodes in an order that respects all edges: then one pass does.
        let edges = || {
            let nodes = exec.nodes.iter().enumerate();
            nodes.flat_map(|(to, node)| node.behind.iter().map(move |from| (*from as usize, to)))
        };
        let edges: Vec<(usize, usize)> = edges().filter(|(from, _)| *from < count).collect();
        while raise(&mut behind, edges.iter().map(|(from, to)| (*from, *to))) {}
        while raise(&mut ahead, edges.iter().rev().map(|(from, to)| (*to, *from))) {}
        let mut plan = Self { part_of: vec![None; count], ..Self::default() };
        for (index, _) in exec.nodes.iter().enumerate().filter(|(_, node)| node.works) {
            let part = Part { behind: Links(behind[index]), ahead: Links(ahead[index]) };
            let known = plan.parts.iter().position(|known| *known == part);
            let number = known.unwrap_or_else(|| {
                plan.parts.push(part);
                plan.parts.len() - 1
            });
            plan.part_of[index] = u8::try_from(number).ok();
            if plan.parts.len() > PARTS {
                return Self::nothing();
            }
        }
        plan.behind = links.iter().map(|(index, _)| Links(behind[*index as usize])).collect();
        plan.is_whole = whole || plan.parts.len() <= 1 && plan.parts.iter().all(|part| part.behind == Links(sources));
        plan
    }

    /// The part that a node is in, if a launch is more than one op.
    pub(crate) fn part_of(&self, index: u32) -> Option<usize> {
        self.part_of.get(index as usize).filter(|_| !self.is_whole)?.map(usize::from)
    }

    /// The sources that a link is behind.
    pub(crate) fn behind(&self, link: usize) -> Links {
        self.behind.get(link).copied().unwrap_or_default()
    }

    /// Whether a sink waits for the work of a graph that is one op. Of a graph with too many links
    /// every sink does.
    pub(crate) fn is_last(&self, link: usize) -> bool {
        self.behind.is_empty() || self.parts.iter().any(|part| part.ahead.has(link))
    }
}

/// Hands sets on along edges. Whether one has changed.
fn raise(sets: &mut [u64], edges: impl Iterator<Item = (usize, usize)>) -> bool {
    let mut changed = false;
    for (from, to) in edges {
        let all = sets[to] | sets[from];
        changed |= std::mem::replace(&mut sets[to], all) != all;
    }
    changed
}
