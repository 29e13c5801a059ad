//! Executable graphs: a launch is one op of its stream, ordered after the previous launch of the
//! same graph.
//!
//! Owns that, and what nodes do that order a graph with what is outside: events, values in memory,
//! and host functions. The order of the nodes of one launch among themselves is the analyzer's.
//!
//! A graph whose nodes are behind different waits, or ahead of different records, has parts
//! ([`crate::state::graph_plan`]). Then its launch is a fork and a join: each part is an op of a
//! timeline that belongs to the executable graph, after what the launch is after and after the
//! waits that it is behind, and the launch is an op of its stream after all of them.

use trace::{Dependency, Epoch, GraphExecId, Op, StreamId, TimelineId};

use crate::clock::{Entry, NO_LINEAGE, TimelineSnapshot};
use crate::condition::Condition;
use crate::engine::Engine;
use crate::start_clock::{ClockRef, OpStart};
use crate::state::graph_exec::{ExternalNode, GraphExec, PartTimeline};
use crate::state::graph_plan::{GraphPlan, Links, PlannedNode};
use crate::state::sync_vars::WaitOutcome;

/// What a source of a graph waits for.
enum Awaited {
    /// Nothing: no source, or an event that was never recorded.
    Nothing,
    Event(TimelineSnapshot),
    Value(WaitOutcome),
}

/// The graph is new or was updated: its nodes follow.
pub(crate) fn graph_exec(engine: &mut Engine, exec: GraphExecId) {
    let known = engine.execs.entry(exec.0).or_default();
    known.links.clear();
    known.functions.clear();
    known.nodes.clear();
    known.plan = None;
}

/// One node. A body that does not decode belongs to no such node that we know.
pub(crate) fn graph_node(
    engine: &mut Engine,
    exec: GraphExecId,
    index: u32,
    enabled: bool,
    (tag, body): (u16, &[u8]),
    dependencies: impl Iterator<Item = Dependency>,
) {
    const RECORD: u16 = 38;
    const WAIT: u16 = 39;
    const WRITE_VALUE: u16 = 101;
    const WAIT_VALUE: u16 = 102;
    const HOST_FUNC: u16 = 99;
    let known = engine.execs.entry(exec.0).or_default();
    // A damaged index must not cause a huge allocation.
    if index as usize > known.nodes.len() + (1 << 16) {
        return;
    }
    if index as usize >= known.nodes.len() {
        known.nodes.resize_with(index as usize + 1, PlannedNode::default);
    }
    let works = enabled && tag != 0 && !matches!(tag, RECORD | WAIT | WAIT_VALUE);
    let node = PlannedNode { behind: dependencies.map(|on| on.from).collect(), works };
    let is_same = std::mem::replace(&mut known.nodes[index as usize], node) == known.nodes[index as usize];
    let links = known.links.len();
    known.links.retain(|(i, _)| *i != index);
    known.functions.retain(|(i, _)| *i != index);
    if !is_same || known.links.len() != links {
        known.plan = None;
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
        Ok(Op::HostFunc { func, address, .. }) if address != 0 => return known.functions.push((index, func)),
        _ => return,
    };
    known.links.push((index, link));
    known.plan = None;
}

/// The graph runs.
pub(crate) fn graph_launch(engine: &mut Engine, stream: StreamId, exec: GraphExecId) -> Epoch {
    let slot = engine.begin(stream);
    let mut known = engine.execs.remove(&exec.0).unwrap_or_default();
    if let Some(last) = &known.last {
        engine.join(slot, last);
    }
    let plan = match known.plan.take() {
        Some(plan) => plan,
        None if known.links.is_empty() => GraphPlan::nothing(),
        None => GraphPlan::of(&known, engine.options.whole_graphs),
    };
    // The state of the stream at its latest op, and what the stream has learned since.
    let before = TimelineSnapshot { exact: false, ..engine.streams.slots[slot as usize].snapshot(slot) };
    if !known.links.is_empty() {
        // Of two states of a timeline at one host time, clocks cannot tell which is later.
        engine.tick();
    }
    let awaited = all_awaited(engine, &known, &plan, &before);
    if !plan.is_whole {
        launch_parts(engine, (slot, stream), exec, &mut known, &plan, &before, &awaited);
    }
    awaited.iter().for_each(|awaited| take_in(engine, slot, awaited));
    let upto = engine.streams.slots[slot as usize].time;
    let epoch = engine.advance(slot, upto);
    let now = engine.streams.slots[slot as usize].snapshot(slot);
    known.start = engine.last;
    // After a gap, earlier launches of it may be running.
    for (index, func) in known.functions.iter().filter(|_| !engine.resumed) {
        let part = plan.part_of(*index).and_then(|part| known.parts.get(part));
        let (epoch, start) = part.map_or((epoch, known.start), |part| (part.epoch(engine), part.start));
        let start = ClockRef::of_start(&engine.host, &engine.streams, start).snapshot();
        engine.graph_funcs.entry(func.0).or_default().launch(epoch, start);
    }
    let mut released = false;
    for (at, (index, link)) in known.links.iter().enumerate() {
        let state = || match plan.is_whole && plan.is_last(at) {
            true => now.clone(),
            false => {
                let own = plan.part_of(*index).and_then(|part| known.parts.get(part));
                sink_state(engine, (at, own), &known, &plan, &before, &awaited)
            }
        };
        match *link {
            ExternalNode::Record(event) => {
                let state = state();
                engine.events.entry(event.0).or_default().set(state);
            }
            ExternalNode::Write { word, value, barrier } => {
                let state = state();
                let floor = engine.host.floor_ref();
                released |= engine.sync_vars.write_value(word, value, barrier, state, floor);
            }
            ExternalNode::Wait(_) | ExternalNode::WaitFor { .. } => {}
        }
    }
    if released {
        engine.released_waits();
    }
    engine.execs.insert(exec.0, GraphExec { last: Some(now), plan: Some(plan), ..known });
    epoch
}

/// What each link waits for, as things are when the graph is launched: a record made later does not
/// count (measured: H200, driver 580, `tests/gpu/programs/graph_events.cu`).
fn all_awaited(engine: &mut Engine, exec: &GraphExec, plan: &GraphPlan, before: &TimelineSnapshot) -> Vec<Awaited> {
    let event = |link: &ExternalNode| match *link {
        ExternalNode::Wait(event) => engine.events.get(&event.0).and_then(|e| e.current()).cloned(),
        _ => None,
    };
    let events = exec.links.iter().map(|(_, link)| event(link).map_or(Awaited::Nothing, Awaited::Event));
    let mut awaited: Vec<Awaited> = events.collect();
    for (at, (_, link)) in exec.links.iter().enumerate().filter(|(_, (_, link))| exec.is_source(link)) {
        if let ExternalNode::WaitFor { address, condition } = *link {
            let mut state = before.clone();
            wait_for(engine, plan.behind(at), &mut state, &awaited);
            let floor = engine.host.floor_ref();
            let (own, clock) = (state.own, &state.clock);
            let outcome = engine.sync_vars.wait(address, condition, own.time, clock, own.slot, floor);
            awaited[at] = Awaited::Value(outcome);
        }
    }
    awaited
}

/// A timeline that has begun an op waits for this.
fn take_in(engine: &mut Engine, slot: u32, awaited: &Awaited) {
    match awaited {
        Awaited::Nothing => {}
        Awaited::Event(snapshot) => engine.join(slot, snapshot),
        Awaited::Value(outcome) => engine.hold_back(slot, outcome),
    }
}

/// The parts of a graph start, each on a timeline of the graph, and the stream waits for them.
fn launch_parts(
    engine: &mut Engine,
    (slot, stream): (u32, StreamId),
    exec: GraphExecId,
    known: &mut GraphExec,
    plan: &GraphPlan,
    before: &TimelineSnapshot,
    awaited: &[Awaited],
) {
    let context = engine.streams.slots[slot as usize].context;
    while known.parts.len() < plan.parts.len() {
        let floor = engine.host.weakest();
        let part = engine.streams.part(context, &floor.times, engine.host.changes);
        // All parts count the launches, from the first one on that any of them has seen.
        let first = engine.streams.slots[part as usize].time;
        let time = |slot: u32| engine.streams.slots[slot as usize].time;
        let launches = known.parts.first().map_or(0, |other| time(other.slot).wrapping_sub(other.first));
        known.parts.push(PartTimeline { slot: part, first: first.wrapping_sub(launches), start: OpStart::default() });
        engine.graph_parts.insert(part, exec.0);
    }
    for (number, timeline) in known.parts.iter_mut().enumerate() {
        engine.streams.use_part(timeline.slot, stream, context);
        engine.join(timeline.slot, before);
        let behind = plan.parts.get(number).map(|part| part.behind).unwrap_or_default();
        for (_, awaited) in awaited.iter().enumerate().filter(|(link, _)| behind.has(*link)) {
            take_in(engine, timeline.slot, awaited);
        }
        let upto = engine.streams.slots[timeline.slot as usize].time;
        engine.advance(timeline.slot, upto);
        timeline.start = engine.last;
    }
    for timeline in &known.parts {
        let now = engine.streams.slots[timeline.slot as usize].snapshot(timeline.slot);
        engine.join(slot, &now);
    }
}

/// What has finished when a link of a graph has. `at`: its place among the links, and the part that
/// it is in, if it is work.
fn sink_state(
    engine: &Engine,
    (at, own): (usize, Option<&PartTimeline>),
    exec: &GraphExec,
    plan: &GraphPlan,
    before: &TimelineSnapshot,
    awaited: &[Awaited],
) -> TimelineSnapshot {
    let floor = engine.host.floor_ref();
    let mut state = before.clone();
    wait_for(engine, plan.behind(at), &mut state, awaited);
    for (_, timeline) in plan.parts.iter().zip(&exec.parts).filter(|(part, _)| part.ahead.has(at)) {
        let part = engine.streams.slots[timeline.slot as usize].snapshot(timeline.slot);
        state.clock.raise(part.own, NO_LINEAGE, floor);
        state.clock.join(&part.clock, NO_LINEAGE, floor);
    }
    if let Some(own) = own {
        // What overwrites a value comes after its write, not only after the stream's latest op.
        state.clock.raise(before.own, NO_LINEAGE, floor);
        state.own = Entry { slot: own.slot, time: engine.streams.slots[own.slot as usize].time };
    }
    state
}

/// A state of no timeline learns what these sources wait for.
fn wait_for(engine: &Engine, sources: Links, state: &mut TimelineSnapshot, awaited: &[Awaited]) {
    let floor = engine.host.floor_ref();
    for (_, awaited) in awaited.iter().enumerate().filter(|(link, _)| sources.has(*link)) {
        match awaited {
            Awaited::Nothing => {}
            Awaited::Event(snapshot) => {
                state.clock.raise(snapshot.own, NO_LINEAGE, floor);
                state.clock.join(&snapshot.clock, NO_LINEAGE, floor);
            }
            Awaited::Value(WaitOutcome::After(clock)) => state.clock.join(clock, NO_LINEAGE, floor),
            Awaited::Value(WaitOutcome::Open(wait)) => state.clock.add_open_wait(wait.clone()),
        }
    }
}

/// An executable graph is gone. Its launches go on.
pub(crate) fn graph_exec_destroy(engine: &mut Engine, exec: GraphExecId) {
    let Some(known) = engine.execs.remove(&exec.0) else { return };
    for part in known.parts {
        engine.graph_parts.remove(&part.slot);
        engine.streams.destroy_part(part.slot);
    }
}

impl PartTimeline {
    /// The epoch of its nodes in the latest launch.
    pub(crate) fn epoch(&self, engine: &Engine) -> Epoch {
        Epoch { timeline: TimelineId(self.slot), time: engine.streams.slots[self.slot as usize].time }
    }
}
