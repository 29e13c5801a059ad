//! Executable graphs: the latest launch, and the nodes that order the graph with what is outside
//! it.
//!
//! Does not know the other nodes: the order inside one launch belongs to the analyzer.

use trace::EventId;

use crate::clock::TimelineSnapshot;
use crate::state::sync_vars::Condition;

/// One executable graph.
#[derive(Debug, Default)]
pub(crate) struct GraphExec {
    /// State of the stream of the latest launch, the launch included.
    pub last: Option<TimelineSnapshot>,
    /// Nodes by index that order the graph with what is outside.
    pub links: Vec<(u32, ExternalNode)>,
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

impl GraphExec {
    pub fn writes(&self, to: u64) -> bool {
        self.links.iter().any(|(_, link)| matches!(link, ExternalNode::Write { word, .. } if word.0 == to))
    }

    /// The waits for values that something outside the graph writes.
    pub fn waits(&self) -> impl Iterator<Item = (u64, Condition)> {
        self.links.iter().filter_map(|(_, link)| match *link {
            ExternalNode::WaitFor { address, condition } if !self.writes(address) => Some((address, condition)),
            _ => None,
        })
    }
}
