//! Executable graphs: the latest launch, and the nodes that order the graph with what is outside
//! it.
//!
//! Which nodes these are behind and ahead of is in [`crate::state::graph_plan`]. The order of the
//! nodes of one launch among themselves belongs to the analyzer.

use trace::{Epoch, EventId, HostFuncId};

use std::collections::VecDeque;

use crate::clock::TimelineSnapshot;
use crate::condition::Condition;
use crate::start_clock::{ClockSnapshot, OpStart};
use crate::state::graph_plan::{GraphPlan, PlannedNode};

/// One executable graph.
#[derive(Debug, Default)]
pub(crate) struct GraphExec {
    /// State of the stream of the latest launch, the launch included.
    pub(crate) last: Option<TimelineSnapshot>,
    /// Nodes by index that order the graph with what is outside.
    pub(crate) links: Vec<(u32, ExternalNode)>,
    /// Nodes by index that are host functions, if these are seen running.
    pub(crate) functions: Vec<(u32, HostFuncId)>,
    /// All nodes, by index.
    pub(crate) nodes: Vec<PlannedNode>,
    /// Which nodes `links` are behind and ahead of; `None`: not known yet, or no longer.
    pub(crate) plan: Option<GraphPlan>,
    /// Timelines for the parts of the plan, more than it has if an earlier one had more.
    pub(crate) parts: Vec<PartTimeline>,
    /// How the latest launch started as a whole.
    pub(crate) start: OpStart,
}

/// A timeline of an executable graph, for nodes that are behind and ahead of the same nodes with an
/// effect outside. Each launch is one op on each of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartTimeline {
    /// Its slot.
    pub(crate) slot: u32,
    /// Its time before the first launch.
    pub(crate) first: u64,
    /// How its nodes of the latest launch started.
    pub(crate) start: OpStart,
}

/// A node that orders its graph with what is outside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExternalNode {
    Record(EventId),
    Wait(EventId),
    /// The word is an address and a width.
    Write {
        word: (u64, u8),
        value: u64,
        barrier: bool,
    },
    WaitFor {
        address: u64,
        condition: Condition,
    },
}

/// A host function of an executable graph: the launches in which it has not ended yet, the oldest
/// first. Launches of one executable run one after the other, so it runs for that one.
#[derive(Debug, Default)]
pub(crate) struct GraphFunction {
    runs: VecDeque<(u64, Epoch, ClockSnapshot)>,
    launched: u64,
    ended: u64,
}

impl GraphFunction {
    /// Launches that are kept. What ran before them is of no known place.
    const MOST: usize = 256;

    /// Its graph is launched, and starts at this clock.
    pub(crate) fn launch(&mut self, epoch: Epoch, clock: ClockSnapshot) {
        self.runs.push_back((self.launched, epoch, clock));
        self.launched += 1;
        if self.runs.len() > Self::MOST {
            self.runs.pop_front();
        }
    }

    /// The launch that it runs for now, and the clock at which that started.
    pub(crate) fn running(&self) -> Option<&(u64, Epoch, ClockSnapshot)> {
        self.runs.front().filter(|run| run.0 == self.ended)
    }

    /// It has ended.
    pub(crate) fn end(&mut self) {
        if self.running().is_some() {
            self.runs.pop_front();
        }
        self.ended += 1;
    }
}

impl GraphExec {
    /// The part of the plan that a node is in, if the graph has several.
    pub(crate) fn part_of(&self, index: u32) -> Option<&PartTimeline> {
        self.parts.get(self.plan.as_ref()?.part_of(index)?)
    }

    pub(crate) fn writes(&self, to: u64) -> bool {
        self.links.iter().any(|(_, link)| matches!(link, ExternalNode::Write { word, .. } if word.0 == to))
    }

    /// Whether a node waits for something outside the graph. A wait for a value that the graph
    /// itself writes is an edge inside it.
    pub(crate) fn is_source(&self, link: &ExternalNode) -> bool {
        match *link {
            ExternalNode::Wait(_) => true,
            ExternalNode::WaitFor { address, .. } => !self.writes(address),
            _ => false,
        }
    }

    /// The waits for values that something outside the graph writes.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (u64, Condition)> {
        self.links.iter().filter_map(|(_, link)| match *link {
            ExternalNode::WaitFor { address, condition } if !self.writes(address) => Some((address, condition)),
            _ => None,
        })
    }
}
