//! Executable graphs: a launch is one op of its stream, ordered after the previous launch of the
//! same graph.
//!
//! Owns that, and what nodes do that order a graph with what is outside: events, values in memory,
//! and host functions. The order of the nodes of one launch among themselves is the analyzer's: all
//! of them have the launch's epoch.

use trace::codec::List;
use trace::{Dependency, GraphExecId, Op, StreamId};

use crate::condition::Condition;
use crate::engine::Engine;
use crate::rules::events::join_event;
use crate::state::graph_exec::ExternalNode;

/// The graph is new or was updated: its nodes follow.
pub(crate) fn graph_exec(engine: &mut Engine, exec: GraphExecId) {
    let known = engine.execs.entry(exec.0).or_default();
    known.links.clear();
    known.early.clear();
}

/// One node. A body that does not decode belongs to no such node that we know. The node may be an
/// early one only if all its dependencies are.
pub(crate) fn graph_node(
    engine: &mut Engine,
    exec: GraphExecId,
    index: u32,
    enabled: bool,
    dependencies: List<'_, Dependency>,
    (tag, body): (u16, &[u8]),
) {
    const RECORD: u16 = 38;
    const WAIT: u16 = 39;
    const WRITE_VALUE: u16 = 101;
    const WAIT_VALUE: u16 = 102;
    const HOST_FUNC: u16 = 99;
    let known = engine.execs.entry(exec.0).or_default();
    let follows_early = dependencies.iter().all(|on| known.early.contains(&on.from));
    known.links.retain(|(i, _)| *i != index);
    known.early.remove(&index);
    if follows_early && matches!(tag, RECORD | WAIT | WAIT_VALUE) {
        known.early.insert(index);
    }
    if !enabled || !matches!(tag, RECORD | WAIT | WRITE_VALUE | WAIT_VALUE | HOST_FUNC) {
        return;
    }
    let link = match Op::decode(tag, body) {
        Ok(Op::EventRecord { event, .. }) => ExternalNode::Record(event),
        Ok(Op::StreamWait { event, .. }) => ExternalNode::Wait(event),
        Ok(Op::WriteValue { address, value, width, barrier, .. }) => {
            ExternalNode::Write { word: (address, width), value, barrier }
        }
        Ok(Op::WaitValue { address, value, width, compare, .. }) => {
            ExternalNode::WaitFor { address, condition: Condition { compare, value, width } }
        }
        Ok(Op::HostFunc { func, address, .. }) if address != 0 => ExternalNode::Function(func),
        _ => return,
    };
    known.links.push((index, link));
}

/// The graph runs. A wait node holds back the whole graph, a record or write node completes
/// with it: the true order is weaker for nodes beside them, and races that hang on that are
/// missed. A record node that no work is in front of completes before the work of the graph. A wait
/// for a value that the graph itself writes is an edge inside it.
pub(crate) fn graph_launch(engine: &mut Engine, stream: StreamId, exec: GraphExecId) -> trace::Epoch {
    let slot = engine.begin(stream);
    let mut known = engine.execs.remove(&exec.0).unwrap_or_default();
    if let Some(last) = &known.last {
        engine.join(slot, last);
    }
    for (_, link) in &known.links {
        match *link {
            ExternalNode::Wait(event) => join_event(engine, slot, event),
            ExternalNode::WaitFor { address, condition } if !known.writes(address) => {
                engine.hold_back(slot, address, condition);
            }
            _ => {}
        }
    }
    let before = (!known.early.is_empty()).then(|| engine.streams.slots[slot as usize].snapshot(slot));
    let upto = engine.streams.slots[slot as usize].time;
    let epoch = engine.advance(slot, upto);
    let now = engine.streams.slots[slot as usize].snapshot(slot);
    let mut released = false;
    for (index, link) in &known.links {
        match *link {
            // After a gap, earlier launches of it may be running.
            ExternalNode::Function(func) if !engine.resumed => {
                let start = engine.start_clock().snapshot();
                engine.graph_funcs.entry(func.0).or_default().launch(epoch, start);
            }
            ExternalNode::Record(event) => {
                let state = before.as_ref().filter(|_| known.early.contains(index)).unwrap_or(&now);
                engine.events.entry(event.0).or_default().set(state.clone());
            }
            ExternalNode::Write { word, value, barrier } => {
                let floor = engine.host.floor_ref();
                released |= engine.sync_vars.write_value(word, value, barrier, now.clone(), floor);
            }
            _ => {}
        }
    }
    if released {
        engine.released_waits();
    }
    known.last = Some(now);
    engine.execs.insert(exec.0, known);
    epoch
}
