//! Executable graphs: a launch is one op of its stream, ordered after the previous launch of the same graph.
//!
//! Owns that, and the event nodes inside a graph. The order of the nodes of one launch among themselves is the
//! analyzer's: all of them have the launch's epoch.

use trace::{EventId, GraphExecId, Op, StreamId};

use crate::clock::Snapshot;
use crate::engine::Engine;

/// One executable graph.
#[derive(Debug, Default)]
pub(crate) struct Exec {
    /// State of the stream of the latest launch, the launch included.
    pub last: Option<Snapshot>,
    /// Event nodes by index: what they record or wait for.
    events: Vec<(u32, EventNode)>,
}

#[derive(Clone, Copy, Debug)]
enum EventNode {
    Record(EventId),
    Wait(EventId),
}

impl Engine {
    /// The graph is new or was made anew: its nodes follow.
    pub(crate) fn graph_exec(&mut self, exec: GraphExecId) {
        self.execs.entry(exec.0).or_default().events.clear();
    }

    /// One node. A body that does not decode belongs to no event node that we know.
    pub(crate) fn graph_node(&mut self, exec: GraphExecId, index: u32, enabled: bool, tag: u16, body: &[u8]) {
        const RECORD: u16 = 38;
        const WAIT: u16 = 39;
        let known = self.execs.entry(exec.0).or_default();
        known.events.retain(|(i, _)| *i != index);
        if !enabled || !matches!(tag, RECORD | WAIT) {
            return;
        }
        match Op::decode(tag, body) {
            Ok(Op::EventRecord { event, .. }) => known.events.push((index, EventNode::Record(event))),
            Ok(Op::StreamWait { event, .. }) => known.events.push((index, EventNode::Wait(event))),
            _ => {}
        }
    }

    /// The graph runs. A wait node holds back the whole graph and a record node completes with it: the true order is
    /// weaker for nodes beside them, and races that hang on that are missed.
    pub(crate) fn graph_launch(&mut self, stream: StreamId, exec: GraphExecId) -> trace::Epoch {
        let slot = self.begin(stream);
        let mut known = self.execs.remove(&exec.0).unwrap_or_default();
        if let Some(last) = &known.last {
            self.join(slot, last);
        }
        for (_, node) in &known.events {
            if let EventNode::Wait(event) = node {
                self.join_event(slot, *event);
            }
        }
        let upto = self.streams.slots[slot as usize].time;
        let epoch = self.advance(slot, upto);
        let now = self.streams.slots[slot as usize].now(slot);
        for (_, node) in &known.events {
            if let EventNode::Record(event) = node {
                self.events.entry(event.0).or_default().set(now.clone());
            }
        }
        known.last = Some(now);
        self.execs.insert(exec.0, known);
        epoch
    }
}
