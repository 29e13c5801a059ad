//! Captures: what was done on captured streams, and what each node comes after because of it.
//!
//! Owns the calls of every capture and their replay, with or without some of the waits. The
//! finished graph says which node comes after which; only the calls say because of which wait. Does
//! not know executable graphs: [`super::graph_waits`] finds these nodes in them.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use trace::{CallId, CaptureId, EventId, Op, Origin, StackId, StreamId, ThreadId};

/// Calls of all captures that are kept. Beyond that, the oldest captures are forgotten.
const MOST_CALLS: usize = 1 << 23;

/// Numbers of nodes within their capture.
pub(crate) type NodeSet = SmallVec<[u32; 2]>;

/// A wait of a captured stream.
#[derive(Clone, Copy, Debug)]
pub struct CapturedWait {
    /// The call stack.
    pub stack: StackId,
    /// The API function.
    pub call: CallId,
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub struct CapturedNode {
    /// The stream that it was captured on.
    pub(crate) stream: StreamId,
    /// Where.
    pub stack: StackId,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Record(EventId, StreamId),
    /// A wait by number.
    Wait(u32, StreamId, EventId),
    /// A node by number.
    Node(u32, StreamId),
}

/// One capture.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The stream that it began on.
    pub origin: StreamId,
    /// Its waits.
    pub waits: Vec<CapturedWait>,
    /// Its nodes.
    pub nodes: Vec<CapturedNode>,
    /// Whether its calls are not all that its nodes come after.
    pub(crate) is_changed: bool,
    calls: Vec<Call>,
    thread: ThreadId,
}

/// A stream whose work would not be joined, or was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unjoined {
    /// The stream.
    pub stream: StreamId,
    /// The wait that brought it in.
    pub brought_by: Option<u32>,
    /// Its last node; of a stream without any, one that it waits for.
    pub node: u32,
}

/// What follows from the calls of a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// For each node, those that it comes directly after.
    pub(crate) after: Vec<NodeSet>,
    /// Nodes of streams that nothing brought into the capture: there it would end before them.
    pub strays: Vec<u32>,
    /// What the stream that the capture began on is not joined with in the end.
    pub unjoined: Vec<Unjoined>,
}

/// What a captured stream, or an event, stands for.
#[derive(Clone, Default)]
struct Reached {
    nodes: NodeSet,
    is_inside: bool,
    brought_by: Option<u32>,
}

impl Capture {
    fn new(origin: StreamId, thread: ThreadId) -> Self {
        let (waits, nodes, calls) = (Vec::new(), Vec::new(), Vec::new());
        Self { origin, waits, nodes, is_changed: false, calls, thread }
    }

    /// Makes the calls again, without those waits for which `out` holds. A stream that is not
    /// brought in any more keeps the order of its own nodes: what they would be is another
    /// question, which [`Replayed::strays`] answers.
    pub fn replay(&self, out: &dyn Fn(u32) -> bool) -> Replayed {
        let mut streams: FxHashMap<StreamId, Reached> = FxHashMap::default();
        let mut events: FxHashMap<EventId, Reached> = FxHashMap::default();
        streams.insert(self.origin, Reached { is_inside: true, ..Reached::default() });
        let mut replayed = Replayed { after: vec![NodeSet::new(); self.nodes.len()], ..Replayed::default() };
        for call in &self.calls {
            match *call {
                Call::Record(event, stream) => {
                    drop(events.insert(event, streams.get(&stream).cloned().unwrap_or_default()));
                }
                Call::Wait(wait, stream, event) => {
                    let Some(event) = events.get(&event).filter(|_| !out(wait)) else { continue };
                    let waiting = streams.entry(stream).or_default();
                    let new = event.nodes.iter().filter(|node| !waiting.nodes.contains(node)).copied();
                    let new: NodeSet = new.collect();
                    waiting.nodes.extend(new);
                    if event.is_inside && !waiting.is_inside {
                        (waiting.is_inside, waiting.brought_by) = (true, Some(wait));
                    }
                }
                Call::Node(node, stream) => {
                    let on = streams.entry(stream).or_default();
                    replayed.after[node as usize] = std::mem::replace(&mut on.nodes, NodeSet::from_slice(&[node]));
                    if !on.is_inside {
                        replayed.strays.push(node);
                    }
                }
            }
        }
        let reached = replayed.reached_by(&streams[&self.origin].nodes);
        for (stream, on) in streams.iter().filter(|(stream, on)| on.is_inside && **stream != self.origin) {
            let loose = on.nodes.iter().find(|node| !reached.contains(node));
            replayed.unjoined.extend(loose.map(|node| Unjoined {
                stream: *stream,
                brought_by: on.brought_by,
                node: *node,
            }));
        }
        replayed.unjoined.sort_unstable_by_key(|unjoined| unjoined.stream);
        replayed
    }
}

impl Replayed {
    /// These nodes, and all that come before them.
    fn reached_by(&self, nodes: &[u32]) -> FxHashSet<u32> {
        let mut reached: FxHashSet<u32> = nodes.iter().copied().collect();
        let mut next: Vec<u32> = nodes.to_vec();
        while let Some(node) = next.pop() {
            next.extend(self.after[node as usize].iter().filter(|before| reached.insert(**before)));
        }
        reached
    }
}

/// The captures of a process.
#[derive(Default)]
pub struct Captures {
    /// Those that have not ended, by their numbers.
    open: FxHashMap<CaptureId, Capture>,
    /// Those that have, in their order.
    done: FxHashMap<CaptureId, Arc<Capture>>,
    order: std::collections::VecDeque<CaptureId>,
    calls: usize,
    /// Nodes by their numbers in the trace: the capture, and the number within it.
    nodes: FxHashMap<u32, (CaptureId, u32)>,
    /// Whether captures are kept when they have ended.
    keeps: bool,
}

impl Captures {
    /// No captures yet. `keeps`: they are wanted beyond their ends.
    pub fn new(keeps: bool) -> Self {
        Self { keeps, ..Self::default() }
    }

    /// Takes an op of a capture.
    pub fn apply(&mut self, op: &Op<'_>, origin: &Origin) {
        match *op {
            Op::CaptureStart { capture, stream } => {
                // One that ended in an error has left its stream.
                self.open.retain(|_, open| open.origin != stream);
                self.open.insert(capture, Capture::new(stream, origin.thread));
            }
            Op::CaptureRecord { capture, event, stream } => {
                if let Some(open) = self.open.get_mut(&capture) {
                    open.calls.push(Call::Record(event, stream));
                }
            }
            Op::CaptureWait { capture, stream, event } => {
                if let Some(open) = self.open.get_mut(&capture) {
                    open.calls.push(Call::Wait(open.waits.len() as u32, stream, event));
                    open.waits.push(CapturedWait { stack: origin.stack, call: origin.call });
                }
            }
            Op::CaptureNode { capture, stream, node } => {
                if let Some(open) = self.open.get_mut(&capture) {
                    let number = open.nodes.len() as u32;
                    open.calls.push(Call::Node(number, stream));
                    open.nodes.push(CapturedNode { stream, stack: origin.stack });
                    if self.keeps {
                        self.nodes.insert(node, (capture, number));
                    }
                }
            }
            Op::CaptureChanged { capture } => {
                if let Some(open) = self.open.get_mut(&capture) {
                    open.is_changed = true;
                }
            }
            Op::CaptureDone { stream } => self.end(stream),
            _ => {}
        }
    }

    fn end(&mut self, stream: StreamId) {
        let Some(capture) = self.open.iter().find(|(_, open)| open.origin == stream).map(|(id, _)| *id) else { return };
        let Some(open) = self.open.remove(&capture).filter(|_| self.keeps) else { return };
        self.calls += open.calls.len();
        self.order.push_back(capture);
        self.done.insert(capture, Arc::new(open));
        while self.calls > MOST_CALLS
            && let Some(oldest) = self.order.pop_front().and_then(|oldest| self.done.remove(&oldest))
        {
            self.calls -= oldest.calls.len();
        }
    }

    /// The capture that made a node, and the node's number within it.
    pub(crate) fn of_node(&self, node: u32) -> Option<(CaptureId, u32)> {
        self.nodes.get(&node).copied().filter(|(capture, _)| self.done.contains_key(capture))
    }

    /// A capture that has ended.
    pub(crate) fn get(&self, capture: CaptureId) -> Option<&Arc<Capture>> {
        self.done.get(&capture)
    }

    /// A capture has ended with work that was not joined. Which one: the only one, or that of the
    /// thread whose call answered so.
    pub fn take_unjoined(&mut self, thread: ThreadId) -> Option<Capture> {
        let of_thread = self.open.iter().filter(|(_, open)| open.thread == thread);
        let latest = |open: Vec<(&CaptureId, &Capture)>| open.into_iter().map(|(id, _)| *id).max();
        let found = latest(of_thread.collect()).or_else(|| latest(self.open.iter().collect()))?;
        self.open.remove(&found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: StreamId = StreamId(1);
    const SIDE: StreamId = StreamId(2);

    /// Origin, then the calls: `r` records event 1 on a stream, `w` waits for it, `n` makes a node.
    fn capture(calls: &[(char, StreamId)]) -> Capture {
        let mut captures = Captures::default();
        let (capture, event, origin) = (CaptureId(7), EventId(1), Origin::default());
        captures.apply(&Op::CaptureStart { capture, stream: ORIGIN }, &origin);
        for (number, (what, stream)) in calls.iter().enumerate() {
            let (stream, node) = (*stream, 1 + number as u32);
            let op = match what {
                'r' => Op::CaptureRecord { capture, event, stream },
                'w' => Op::CaptureWait { capture, stream, event },
                _ => Op::CaptureNode { capture, stream, node },
            };
            captures.apply(&op, &origin);
        }
        captures.take_unjoined(ThreadId(0)).expect("it is open")
    }

    /// A kernel, a fork, a kernel on each stream, a join, a kernel.
    fn forked() -> Capture {
        let (o, s) = (ORIGIN, SIDE);
        capture(&[('n', o), ('r', o), ('w', s), ('n', s), ('n', o), ('r', s), ('w', o), ('n', o)])
    }

    #[test]
    fn a_fork_and_a_join_are_edges_and_go_with_their_waits() {
        let after = |out: u32| forked().replay(&|wait| out & 1 << wait != 0).after;
        let sets = |sets: [&[u32]; 4]| sets.map(NodeSet::from_slice).to_vec();
        assert_eq!(after(0), sets([&[], &[0], &[0], &[2, 1]]));
        assert_eq!(after(1), sets([&[], &[], &[0], &[2, 1]]));
        assert_eq!(after(2), sets([&[], &[0], &[0], &[2]]));
    }

    #[test]
    fn without_the_fork_there_is_a_stray_and_without_the_join_unjoined_work() {
        let replayed = |out: u32| {
            let replayed = forked().replay(&|wait| out & 1 << wait != 0);
            (replayed.strays.clone(), replayed.unjoined.iter().map(|u| (u.stream, u.node)).collect::<Vec<_>>())
        };
        assert_eq!(replayed(0), (vec![], vec![]));
        assert_eq!(replayed(1), (vec![1], vec![]));
        assert_eq!(replayed(2), (vec![], vec![(SIDE, 1)]));
    }

    #[test]
    fn a_stream_that_did_nothing_need_not_be_joined() {
        let idle = capture(&[('n', ORIGIN), ('r', ORIGIN), ('w', SIDE), ('n', ORIGIN)]);
        assert_eq!(idle.replay(&|_| false).unjoined, []);
        let busy = capture(&[('n', ORIGIN), ('r', ORIGIN), ('w', SIDE), ('n', SIDE)]);
        let unjoined = busy.replay(&|_| false).unjoined;
        assert_eq!(unjoined, [Unjoined { stream: SIDE, brought_by: Some(0), node: 1 }]);
    }
}
