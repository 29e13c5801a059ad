//! Executable graphs: the latest launch, and the nodes that order the graph with what is outside
//! it.
//!
//! Does not know the other nodes: the order inside one launch belongs to the analyzer.

use trace::{Epoch, EventId, HostFuncId};

use std::collections::{BTreeSet, VecDeque};

use crate::clock::TimelineSnapshot;
use crate::condition::Condition;
use crate::start_clock::ClockSnapshot;

/// One executable graph.
#[derive(Debug, Default)]
pub(crate) struct GraphExec {
    /// State of the stream of the latest launch, the launch included.
    pub(crate) last: Option<TimelineSnapshot>,
    /// Nodes by index that order the graph with what is outside.
    pub(crate) links: Vec<(u32, ExternalNode)>,
    /// Records and waits, by index, that have no nodes in front of them but such.
    pub(crate) early: BTreeSet<u32>,
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
    /// A host function that is seen running.
    Function(HostFuncId),
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
    pub(crate) fn writes(&self, to: u64) -> bool {
        self.links.iter().any(|(_, link)| matches!(link, ExternalNode::Write { word, .. } if word.0 == to))
    }

    /// The waits for values that something outside the graph writes.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (u64, Condition)> {
        self.links.iter().filter_map(|(_, link)| match *link {
            ExternalNode::WaitFor { address, condition } if !self.writes(address) => Some((address, condition)),
            _ => None,
        })
    }
}
