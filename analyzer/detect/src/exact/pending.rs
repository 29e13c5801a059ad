//! Pending records: from a launch whose bytes are still being measured, everything waits in order
//! until they arrive.
//!
//! Owns the queue and its bound. Does not use the ranges. Without exact mode nothing is ever
//! queued, and the check costs one comparison.

use super::fences::MeasuredOrder;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use trace::launch_flags::EXACT;
use trace::op::inside::ReadInside;
use trace::{DecodeError, Epoch, ExactRun, GraphExecId, Op, Record, exact_flags};

/// Maximum size of the waiting records and of the ranges that wait with them, in bytes. More means
/// that a launch does not end or that its ranges were lost: it counts as predicted.
const MAX_BYTES: usize = 256 << 20;

struct Waiting {
    /// The launch, if it or some of its nodes are being measured.
    launch: Option<Epoch>,
    bytes: Vec<u8>,
}

/// The bytes of a launch, as they were measured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MeasuredLaunch {
    /// The bytes.
    pub runs: Vec<ExactRun>,
    /// What is not ordered of them.
    order: MeasuredOrder,
    /// `trace::exact_flags`.
    pub(crate) flags: u32,
    /// Runs that were sent for it: what it takes of the queue's room.
    sent: usize,
}

impl MeasuredLaunch {
    /// Whether a simulated GPU told them, which misses none.
    pub fn is_simulated(&self) -> bool {
        self.flags & exact_flags::SIMULATED != 0
    }

    /// What is not ordered of it, if that was looked at.
    pub fn take_order(&mut self) -> Option<MeasuredOrder> {
        (self.flags & exact_flags::ORDERED != 0).then(|| std::mem::take(&mut self.order))
    }

    /// Whether the kernel ran at all.
    pub fn has_run(&self) -> bool {
        self.flags & exact_flags::NOT_RUN == 0
    }
}

/// The queue.
#[derive(Default)]
pub struct PendingRecords {
    queue: VecDeque<Waiting>,
    bytes: usize,
    /// Launches with the measurements still to come: graph nodes, counted from 1, or 0 for the
    /// launch itself.
    awaited: FxHashMap<Epoch, FxHashSet<u32>>,
    /// Nodes of the next launch of a graph that will be measured.
    announced: FxHashMap<GraphExecId, FxHashSet<u32>>,
    arrived: FxHashMap<(Epoch, u32), MeasuredLaunch>,
    /// Bytes of launches of which there are more to come.
    parts: FxHashMap<(Epoch, u32), Vec<ExactRun>>,
    /// What is not ordered of the launches whose bytes come.
    orders: FxHashMap<(Epoch, u32), Vec<ExactRun>>,
    /// What was found inside launches.
    inside: FxHashMap<(Epoch, u32), Vec<Result<ReadInside, DecodeError>>>,
    /// The same of launches that are over.
    inside_late: u64,
    given_up: u64,
    max: Option<usize>,
}

impl PendingRecords {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// A queue with another bound.
    #[cfg(test)]
    pub(crate) fn bounded(max: usize) -> Self {
        Self { max: Some(max), ..Self::default() }
    }

    /// Whether the record was queued (or consumed by the queue), and is not to be applied now.
    /// [`PendingRecords::release`] then returns the records to apply.
    #[inline]
    pub fn takes(&mut self, record: &Record<'_>) -> bool {
        match record.op {
            Op::Exact { .. }
            | Op::ExactPart { .. }
            | Op::ExactOrder { .. }
            | Op::ExactNodes { .. }
            | Op::Inside { .. } => {}
            Op::Launch { shape, .. } if shape.flags & EXACT != 0 => {}
            Op::GraphLaunch { exec, .. } if self.announced.contains_key(&exec) => {}
            _ if self.queue.is_empty() => return false,
            _ => {}
        }
        self.keep(record)
    }

    fn keep(&mut self, record: &Record<'_>) -> bool {
        let mut launch = None;
        match record.op {
            Op::Exact { timeline, time, node, flags, runs } => {
                let epoch = Epoch { timeline, time };
                let (mut all, order) = self.take_sent(epoch, node);
                let Some(nodes) = self.awaited.get_mut(&epoch) else { return true };
                if nodes.remove(&node) && flags & exact_flags::LOST == 0 {
                    all.extend(runs.iter());
                    let sent = all.len() + order.len();
                    self.bytes += sent * size_of::<ExactRun>();
                    let order = MeasuredOrder::of(&order);
                    self.arrived.insert((epoch, node), MeasuredLaunch { runs: all, order, flags, sent });
                }
                if nodes.is_empty() {
                    self.awaited.remove(&epoch);
                }
                self.give_up();
                return true;
            }
            Op::ExactPart { timeline, time, node, runs } => {
                let epoch = Epoch { timeline, time };
                if self.awaits(epoch, node) {
                    self.parts.entry((epoch, node)).or_default().extend(runs.iter());
                    self.bytes += runs.len() * size_of::<ExactRun>();
                    self.give_up();
                }
                return true;
            }
            Op::ExactOrder { timeline, time, node, runs } => {
                let epoch = Epoch { timeline, time };
                if self.awaits(epoch, node) {
                    self.orders.entry((epoch, node)).or_default().extend(runs.iter());
                    self.bytes += runs.len() * size_of::<ExactRun>();
                    self.give_up();
                }
                return true;
            }
            Op::Inside { timeline, time, node, .. } => {
                let epoch = Epoch { timeline, time };
                if !self.awaited.contains_key(&epoch) {
                    self.inside_late += 1;
                } else if let Some(read) = ReadInside::of(&record.op) {
                    self.inside.entry((epoch, node)).or_default().push(read);
                }
                return true;
            }
            Op::ExactNodes { exec, nodes } => {
                self.announced.insert(exec, nodes.iter().collect());
                return true;
            }
            Op::Launch { shape, .. } if shape.flags & EXACT != 0 => launch = Some(FxHashSet::from_iter([0])),
            Op::GraphLaunch { exec, .. } => launch = self.announced.remove(&exec).filter(|nodes| !nodes.is_empty()),
            _ => {}
        }
        let epoch = launch.is_some().then_some(record.origin.epoch);
        if let Some(nodes) = launch {
            self.awaited.insert(record.origin.epoch, nodes);
        }
        let bytes = encoded(record);
        self.bytes += bytes.len() + size_of::<Waiting>();
        self.queue.push_back(Waiting { launch: epoch, bytes });
        self.give_up();
        true
    }

    /// Whether the bytes of a launch, or of a node, are still to come.
    fn awaits(&self, epoch: Epoch, node: u32) -> bool {
        self.awaited.get(&epoch).is_some_and(|nodes| nodes.contains(&node))
    }

    /// What was sent of a launch, or of a node, before the last of it: its bytes, and what is not
    /// ordered of them.
    fn take_sent(&mut self, epoch: Epoch, node: u32) -> (Vec<ExactRun>, Vec<ExactRun>) {
        let parts = self.parts.remove(&(epoch, node)).unwrap_or_default();
        let order = self.orders.remove(&(epoch, node)).unwrap_or_default();
        self.bytes -= (parts.len() + order.len()) * size_of::<ExactRun>();
        (parts, order)
    }

    /// Ends the waits of the first launches while too much waits.
    fn give_up(&mut self) {
        while self.bytes > self.max.unwrap_or(MAX_BYTES) {
            let Some(first) = self.queue.front().and_then(|w| w.launch) else { break };
            let Some(nodes) = self.awaited.remove(&first) else { break };
            self.given_up += nodes.len() as u64;
            // The rest of it may never come.
            for node in nodes {
                self.take_sent(first, node);
            }
        }
    }

    /// The next record whose wait is over.
    pub fn release(&mut self) -> Option<Vec<u8>> {
        if self.queue.front()?.launch.is_some_and(|launch| self.awaited.contains_key(&launch)) {
            return None;
        }
        let first = self.queue.pop_front()?;
        self.bytes -= first.bytes.len() + size_of::<Waiting>();
        Some(first.bytes)
    }

    /// Ends all waits: nothing more will arrive.
    pub fn end(&mut self) {
        self.given_up += self.awaited.values().map(|nodes| nodes.len() as u64).sum::<u64>();
        self.awaited.clear();
    }

    /// Whether no record waits for a measurement.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether every range that has arrived was taken by its launch.
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.arrived.is_empty() && self.inside.is_empty()
    }

    /// The measured bytes of the launch at this epoch, or of a node (counted from 1) of the graph
    /// launched there, if known.
    pub fn touched(&mut self, launch: Epoch, node: u32) -> Option<MeasuredLaunch> {
        let touched = if self.arrived.is_empty() { None } else { self.arrived.remove(&(launch, node)) }?;
        self.bytes -= touched.sent * size_of::<ExactRun>();
        Some(touched)
    }

    /// What was found inside the launch at this epoch, or inside a node (counted from 1) of the
    /// graph launched there: an entry for each grid.
    #[inline]
    pub fn inside(&mut self, launch: Epoch, node: u32) -> Vec<Result<ReadInside, DecodeError>> {
        if self.inside.is_empty() { Vec::new() } else { self.inside.remove(&(launch, node)).unwrap_or_default() }
    }

    /// Grids of which it was told too late what was found inside.
    pub fn inside_late(&self) -> u64 {
        self.inside_late
    }

    /// Launches whose ranges never arrived.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }
}

fn encoded(record: &Record<'_>) -> Vec<u8> {
    let mut room = 256;
    loop {
        let mut bytes = vec![0; room];
        if let Some(len) = record.encode(&mut bytes) {
            bytes.truncate(len);
            bytes.shrink_to_fit();
            return bytes;
        }
        room *= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::codec::List;
    use trace::exact_order;
    use trace::{KernelId, LaunchShape, Origin, StreamId, TimelineId};

    fn at(time: u64) -> Epoch {
        Epoch { timeline: TimelineId(1), time }
    }

    fn launch(time: u64, flags: u32) -> Record<'static> {
        let shape = LaunchShape::new([1; 3], [1; 3]).with_flags(flags);
        let op = Op::Launch { stream: StreamId(1), kernel: KernelId(1), shape, params: &[] };
        Record { origin: Origin { epoch: at(time), ..Origin::default() }, op }
    }

    fn exact(time: u64, flags: u32, runs: &[ExactRun]) -> Record<'_> {
        let op = Op::Exact { timeline: TimelineId(1), time, node: 0, flags, runs: List::new(runs) };
        Record { origin: Origin::default(), op }
    }

    fn released(pending: &mut PendingRecords) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(bytes) = pending.release() {
            times.push(Record::decode(&bytes).expect("our own").origin.epoch.time);
        }
        times
    }

    #[test]
    fn nothing_waits_without_exact_mode() {
        let mut pending = PendingRecords::default();
        assert!(!pending.takes(&launch(1, 0)));
        assert!(pending.release().is_none());
    }

    #[test]
    fn everything_behind_a_measured_launch_waits_in_order() {
        let mut pending = PendingRecords::default();
        let run = ExactRun { start: 64, stride: 0, width: 4, count: 1, kind: 0 };
        assert!(pending.takes(&launch(1, EXACT)) && pending.takes(&launch(2, 0)) && pending.takes(&launch(3, EXACT)));
        assert!(pending.takes(&launch(4, 0)));
        assert!(released(&mut pending).is_empty());
        assert!(pending.takes(&exact(3, 0, &[run])));
        assert!(released(&mut pending).is_empty(), "the first is not there yet");
        assert!(pending.takes(&exact(1, exact_flags::LOST, &[])));
        assert_eq!(released(&mut pending), [1, 2, 3, 4]);
        let touched = [1, 3].map(|time| pending.touched(at(time), 0).map(|measured| measured.runs));
        assert_eq!(touched, [None, Some(vec![run])]);
        assert!(!pending.takes(&launch(5, 0)), "nothing waits any more");
        assert_eq!(pending.given_up(), 0);
    }

    #[test]
    fn a_graph_waits_for_its_announced_nodes() {
        let mut pending = PendingRecords::default();
        let run = ExactRun { start: 64, stride: 0, width: 4, count: 1, kind: 0 };
        let exec = GraphExecId(7);
        let record = |time, op| Record { origin: Origin { epoch: at(time), ..Origin::default() }, op };
        let graph = |time, exec| record(time, Op::GraphLaunch { stream: StreamId(1), exec });
        fn of_node(node: u32, runs: &[ExactRun]) -> Op<'_> {
            Op::Exact { timeline: TimelineId(1), time: 1, node, flags: 0, runs: List::new(runs) }
        }
        let (nodes, runs) = ([2_u32, 5], [run]);
        assert!(!pending.takes(&graph(0, exec)), "nothing was announced");
        assert!(pending.takes(&record(0, Op::ExactNodes { exec, nodes: List::new(&nodes) })));
        assert!(!pending.takes(&graph(0, GraphExecId(8))), "another graph");
        assert!(pending.takes(&graph(1, exec)) && pending.takes(&launch(2, 0)));
        assert!(pending.takes(&record(0, of_node(2, &[]))) && pending.takes(&record(0, of_node(3, &[]))));
        assert!(released(&mut pending).is_empty(), "node 5 is not there yet");
        assert!(pending.takes(&record(0, of_node(5, &runs))));
        assert_eq!(released(&mut pending), [1, 2]);
        let touched = [2, 3, 5, 0].map(|node| pending.touched(at(1), node).map(|measured| measured.runs));
        assert_eq!(touched, [Some(vec![]), None, Some(vec![run]), None]);
        assert!(!pending.takes(&graph(3, exec)), "announced for one launch only");
        assert_eq!(pending.given_up(), 0);
    }

    #[test]
    fn bytes_may_come_in_several_records() {
        let run = |start| ExactRun { start, stride: 0, width: 4, count: 1, kind: 0 };
        let mut pending = PendingRecords::default();
        assert!(pending.takes(&launch(1, EXACT)));
        let first = [run(8)];
        let part = Op::ExactPart { timeline: TimelineId(1), time: 1, node: 0, runs: List::new(&first) };
        assert!(pending.takes(&Record { origin: Origin::default(), op: part }));
        assert!(pending.release().is_none(), "there is more to come");
        assert!(pending.takes(&exact(1, exact_flags::SIMULATED, &[run(16)])));
        assert!(pending.release().is_some());
        let touched = pending.touched(at(1), 0).expect("both");
        assert_eq!((touched.runs, touched.flags), (vec![run(8), run(16)], exact_flags::SIMULATED));
    }

    #[test]
    fn what_was_found_inside_comes_with_its_launch() {
        fn inside(time: u64, node: u32, texts: &[u8]) -> Record<'_> {
            let (counts, races, sides) = (&[0; 4], List::new(&[]), List::new(&[]));
            let op = Op::Inside {
                timeline: TimelineId(1),
                time,
                node,
                kernel: "k".into(),
                flags: 0,
                grid: [1; 3],
                block: [1; 3],
                counts: List::new(counts),
                races,
                sides,
                frames: List::new(&[]),
                texts,
            };
            Record { origin: Origin::default(), op }
        }
        let mut pending = PendingRecords::default();
        assert!(pending.takes(&launch(1, EXACT)));
        assert!(
            pending.takes(&inside(1, 0, b"")) && pending.takes(&inside(1, 0, b"")) && pending.takes(&inside(1, 4, b""))
        );
        assert!(pending.takes(&inside(7, 0, b"")), "of no launch");
        assert!(pending.takes(&exact(1, exact_flags::LOST, &[])));
        assert_eq!(released(&mut pending), [1]);
        assert!(!pending.is_unused());
        assert_eq!(
            (pending.inside(at(1), 0).len(), pending.inside(at(1), 0).len(), pending.inside(at(1), 4).len()),
            (2, 0, 1)
        );
        assert!(pending.is_unused());
        assert_eq!(pending.inside_late(), 1);
    }

    #[test]
    fn the_end_of_the_trace_ends_all_waits() {
        let mut pending = PendingRecords::default();
        assert!(pending.takes(&launch(1, EXACT)) && pending.takes(&launch(2, 0)));
        pending.end();
        assert_eq!(released(&mut pending), [1, 2]);
        assert_eq!(pending.given_up(), 1);
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut pending = PendingRecords::bounded(2000);
        for time in 1..200 {
            assert!(pending.takes(&launch(time, if time % 7 == 1 { EXACT } else { 0 })));
            released(&mut pending);
            assert!(pending.queue.len() < 60);
        }
        assert!(pending.given_up() > 10);
    }

    #[test]
    fn what_is_not_ordered_comes_with_the_bytes() {
        let run = |kind| ExactRun { start: 64, stride: 0, width: 4, count: 1, kind };
        let (untold, bytes) = ([run(exact_order::NOT_TOLD)], [run(0)]);
        for (flags, told) in [(exact_flags::ORDERED, true), (exact_flags::SIMULATED, false)] {
            let mut pending = PendingRecords::default();
            assert!(pending.takes(&launch(1, EXACT)));
            let op = Op::ExactOrder { timeline: TimelineId(1), time: 1, node: 0, runs: List::new(&untold) };
            assert!(pending.takes(&Record { origin: Origin::default(), op }));
            assert!(pending.release().is_none(), "the bytes are not there yet");
            assert!(pending.takes(&exact(1, flags, &bytes)));
            let mut found = pending.touched(at(1), 0).expect("the bytes");
            assert_eq!(found.runs, bytes);
            assert_eq!(found.take_order(), told.then(|| MeasuredOrder::of(&untold)));
        }
    }

    #[test]
    fn what_is_not_ordered_counts_toward_the_bound() {
        let runs = [ExactRun { start: 64, stride: 0, width: 4, count: 1, kind: exact_order::NOT_TOLD }; 10];
        let order = |time| {
            let op = Op::ExactOrder { timeline: TimelineId(1), time, node: 0, runs: List::new(&runs) };
            Record { origin: Origin::default(), op }
        };
        let part = |time| {
            let op = Op::ExactPart { timeline: TimelineId(1), time, node: 0, runs: List::new(&runs) };
            Record { origin: Origin::default(), op }
        };
        let room = 40 * size_of_val(&runs);
        for sent in [order(1), part(1)] {
            for (times, given_up) in [(20, 0), (60, 1)] {
                let mut pending = PendingRecords::bounded(room);
                assert!(pending.takes(&launch(1, EXACT)));
                (0..times).for_each(|_| assert!(pending.takes(&sent)));
                assert_eq!(pending.given_up(), given_up, "{times} times {}", sent.op.name());
                assert_eq!(pending.release().is_some(), given_up == 1);
                // The last of it, whether it is waited for or not. Then nothing is held.
                assert!(pending.takes(&exact(1, exact_flags::ORDERED, &runs)));
                released(&mut pending);
                assert_eq!(pending.touched(at(1), 0).is_some(), given_up == 0);
                assert_eq!(pending.bytes, 0);
                // The next launch has all of the room.
                assert!(pending.takes(&launch(2, EXACT)));
                (0..20).for_each(|_| assert!(pending.takes(&order(2))));
                assert_eq!(pending.given_up(), given_up);
            }
        }
    }

    #[test]
    fn what_is_lost_is_not_held() {
        let runs = [ExactRun { start: 64, stride: 0, width: 4, count: 1, kind: exact_order::NOT_TOLD }; 10];
        let mut pending = PendingRecords::default();
        assert!(pending.takes(&launch(1, EXACT)));
        let op = Op::ExactOrder { timeline: TimelineId(1), time: 1, node: 0, runs: List::new(&runs) };
        assert!(pending.takes(&Record { origin: Origin::default(), op }));
        assert!(pending.takes(&exact(1, exact_flags::LOST, &[])));
        assert_eq!(released(&mut pending), [1]);
        assert_eq!((pending.touched(at(1), 0), pending.bytes), (None, 0));
    }
}
