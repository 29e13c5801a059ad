//! A trace as the order sees it: ops without their bytes, and the pairs that would race if nothing
//! synchronised.
//!
//! Owns the recording, which is made during one analysis. Does not work out any order: that is
//! [`crate::counterfactual::excess`].

use super::graphs::{self, LaunchedGraphs};
use super::sync::{SyncKind, SyncSite, class, made_by, stream_of};
use detect::race::{Hazard, Race};
use detect::state::graph_waits::GraphWaits;
use detect::state::graphs::Graph;
use order::policy::MemoryClass;
use order::{Opens, Overlap, Policy};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use trace::launch_flags::INSIDE_LIBRARY;
use trace::{
    CallId, Epoch, EventId, FreeKind, GraphExecId, KernelId, MemoryKind, Op, Record, StackId, StreamId, ThreadId,
};

/// No step, no site.
pub const NONE: u32 = u32::MAX;

/// Marks of a step.
pub mod marks {
    /// A kernel launch without a record of its own here.
    pub const LAUNCH: u8 = 1;
    /// It may overlap its predecessor, and never waits for it.
    pub const OVERLAPS: u8 = 2;
    /// It touches memory in stream order.
    pub const WORK: u8 = 4;
    /// Some of the bytes that it touches are not known.
    pub const UNKNOWN: u8 = 8;
    /// It writes memory that the host may read.
    pub const TO_HOST: u8 = 16;
    /// It reads memory of the host, which is read again later: the host may fill it in between.
    pub const REFILLED: u8 = 32;
    /// It may overlap its predecessor, when that has waited for all before it.
    pub const AFTER_WAIT: u8 = 64;
    /// It may overlap what its predecessor does not wait for.
    pub const AFTER_END: u8 = 128;
}

/// The marks of a launch that may overlap its predecessor.
fn overlapping(overlap: Overlap) -> u8 {
    let opens = match overlap.before {
        Opens::AtOnce => 0,
        Opens::AfterWait => marks::AFTER_WAIT,
        Opens::Never => marks::AFTER_END,
    };
    if overlap.waits { 0 } else { marks::OVERLAPS | opens }
}

/// One op.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    at: u32,
    len: u32,
    /// The stream, if it has one.
    pub stream: StreamId,
    /// The host thread.
    pub thread: ThreadId,
    /// The call stack.
    pub stack: StackId,
    /// The kernel, of launches.
    pub kernel: KernelId,
    /// Number of its synchronisation site, or [`NONE`].
    pub site: u32,
    /// For a query of a stream: the last step that it stands for, or [`NONE`].
    pub upto: u32,
    /// See [`marks`].
    pub marks: u8,
}

/// A pair of steps that share bytes.
#[derive(Clone, Copy, Debug)]
pub struct StepPair {
    /// The earlier step.
    pub first: u32,
    /// The later one.
    pub then: u32,
    /// How they conflict.
    pub hazard: Hazard,
}

/// A block goes back to its pool, and another allocation could be given it.
#[derive(Clone, Copy, Debug)]
pub struct Reuse {
    /// The last use that another stream has made of it.
    pub first: u32,
    /// The step before that allocation.
    pub then: u32,
    /// The stream of the pool.
    pub stream: StreamId,
    /// The allocation.
    pub stack: StackId,
    /// The number of the place whose events the pool waits for, or [`NONE`].
    pub place: u32,
}

/// A place that synchronises.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Where, and how.
    pub site: SyncSite,
    /// The API function.
    pub call: CallId,
    /// How often.
    pub count: u64,
    /// Whether it orders steps, not only nodes within a launch.
    pub(crate) is_of_steps: bool,
    /// Whether it can not be judged: what its graph's edges come from is not all known.
    pub is_opaque: bool,
}

/// What the recording needs to know of the analysis.
pub(crate) struct Context<'a> {
    /// The epoch of the op.
    pub(crate) epoch: Epoch,
    /// How the op, a launch, may overlap its predecessor.
    pub(crate) overlap: Option<Overlap>,
    /// The policy.
    pub(crate) policy: Policy,
    /// The kind of the memory at an address.
    pub(crate) memory: &'a dyn Fn(u64) -> Option<MemoryKind>,
}

/// The recording.
#[derive(Default)]
pub struct Steps {
    records: Vec<u8>,
    /// The ops.
    pub steps: Vec<Step>,
    /// The places that synchronise.
    pub places: Vec<Place>,
    /// What would race if nothing synchronised.
    pub pairs: Vec<StepPair>,
    /// Blocks that would be handed out too early if nothing synchronised.
    pub reuses: Vec<Reuse>,
    /// For a step that reads memory of the host: the next one that reads it again.
    pub refills: FxHashMap<u32, u32>,
    /// The graphs that were launched.
    pub graphs: LaunchedGraphs,
    /// Whether the trace was too long.
    pub is_cut: bool,
    numbers: FxHashMap<(SyncSite, CallId), u32>,
    /// For each timeline and time: the step.
    by_time: Vec<Vec<u32>>,
    /// For each stream: recorded times, with their steps.
    recorded: FxHashMap<StreamId, Vec<(u64, u32)>>,
    unknown_kernels: FxHashSet<KernelId>,
    unknown_graphs: FxHashSet<GraphExecId>,
    /// Memory of the host that was read last: first byte, one past the last byte, step.
    sources: BTreeMap<u64, (u64, u32)>,
    has_managed: bool,
    /// By thread: events that were recorded with nothing else in between, and where.
    recent: FxHashMap<ThreadId, SmallVec<[(EventId, StackId); 4]>>,
    /// How often each event was recorded.
    records_of: FxHashMap<EventId, u64>,
    /// Records that a pool has made before it took a block back: their places.
    of_pool: FxHashMap<(EventId, u64), u32>,
    /// By first byte: the place where a block went back, if its pool waits for events.
    freed: FxHashMap<u64, u32>,
}

impl Steps {
    /// A recording. `unknown`: kernels whose bytes are not all known.
    pub(crate) fn new(unknown: FxHashSet<KernelId>) -> Self {
        Self { unknown_kernels: unknown, ..Self::default() }
    }

    /// Takes an op, as it was recorded.
    pub(crate) fn take(&mut self, record: &Record<'_>, context: &Context<'_>, races: &[Race]) {
        self.blocks(record, races);
        if !matters(&record.op) || self.is_cut {
            return;
        }
        let index = self.steps.len() as u32;
        let op = &record.op;
        let stream = stream_of(op).unwrap_or(StreamId::NONE);
        let site = match *op {
            Op::EventReached { event, record } => self.of_pool.get(&(event, record)).copied().unwrap_or(NONE),
            _ => self.site(record, context),
        };
        if let Op::GraphLaunch { exec, .. } = *op {
            self.launched(exec, races);
        }
        let upto = self.stands_for(op);
        let mut kernel = KernelId::NONE;
        let mut marks = self.marks(op, index, context);
        let (mut at, mut len) = (0, 0);
        if let Op::Launch { kernel: launched, .. } = *op {
            kernel = launched;
            marks |= marks::LAUNCH | context.overlap.map_or(0, overlapping);
        } else {
            (at, len) = self.keep(record);
        }
        let origin = &record.origin;
        let (thread, stack) = (origin.thread, origin.stack);
        self.steps.push(Step { at, len, stream, thread, stack, kernel, site, upto, marks });
        let epoch = context.epoch;
        // A wait of the host names a stream, but takes no time of it.
        let of_host = matches!(op, Op::SyncBegin { .. });
        let is_of_stream = epoch.timeline != trace::TimelineId::HOST && !stream.is_none() && !of_host;
        if is_of_stream && !matches!(op, Op::StreamWait { .. }) {
            let timeline = epoch.timeline.0 as usize;
            if self.by_time.len() <= timeline {
                self.by_time.resize(timeline + 1, Vec::new());
            }
            let times = &mut self.by_time[timeline];
            if times.len() <= epoch.time as usize {
                times.resize(epoch.time as usize + 1, NONE);
            }
            times[epoch.time as usize] = index;
        }
        if is_of_stream && origin.epoch.time > 0 {
            self.recorded.entry(stream).or_default().push((origin.epoch.time, index));
        }
        self.pairs_of(index, races);
    }

    /// The steps as ops. `None`: a launch, of which the order needs no more than its stream.
    pub fn record(&self, step: &Step) -> Option<Record<'_>> {
        let bytes = self.records.get(step.at as usize..)?.get(..step.len as usize)?;
        Record::decode(bytes).ok().filter(|_| step.marks & marks::LAUNCH == 0)
    }

    fn keep(&mut self, record: &Record<'_>) -> (u32, u32) {
        let at = self.records.len();
        let mut room = 512;
        loop {
            self.records.resize(at + room, 0);
            if let Some(len) = record.encode(&mut self.records[at..]) {
                self.records.truncate(at + len);
                self.is_cut = at + len > u32::MAX as usize;
                return (at as u32, len as u32);
            }
            room *= 2;
        }
    }

    fn site(&mut self, record: &Record<'_>, context: &Context<'_>) -> u32 {
        let Some(kind) = SyncKind::of(&record.op, context.policy, context.memory) else { return NONE };
        let (stack, call) = made_by(record);
        let number = self.place(SyncSite { stack, kind }, call);
        let place = &mut self.places[number as usize];
        place.is_of_steps = true;
        // A node waits when its graph is launched.
        place.count += u64::from(kind != SyncKind::CapturedWait);
        number
    }

    /// The number of a place.
    fn place(&mut self, site: SyncSite, call: CallId) -> u32 {
        *self.numbers.entry((site, call)).or_insert_with(|| {
            self.places.push(Place { site, call, count: 0, is_of_steps: false, is_opaque: false });
            self.places.len() as u32 - 1
        })
    }

    /// Whether a place orders steps.
    pub fn is_of_steps(&self, place: u32) -> bool {
        self.places[place as usize].is_of_steps
    }

    /// The kernels whose bytes are not all known.
    pub fn unknown_kernels(&self) -> &FxHashSet<KernelId> {
        &self.unknown_kernels
    }

    /// A graph is about to be launched whose nodes are new, or have changed.
    pub(crate) fn graph(&mut self, exec: GraphExecId, graph: &Graph, waits: GraphWaits) {
        let kind = SyncKind::CapturedWait;
        let mut places: Vec<Vec<u32>> = Vec::new();
        for part in &waits.captures {
            let of_part = part.capture.waits.iter().map(|wait| {
                let place = self.place(SyncSite { stack: wait.stack, kind }, wait.call);
                self.places[place as usize].is_opaque |= part.is_opaque;
                place
            });
            let of_part = of_part.collect();
            places.push(of_part);
        }
        let outside = graph.nodes().iter().filter(|node| node.waits_outside());
        let outside = outside.map(|node| self.place(SyncSite { stack: node.stack, kind }, node.call)).collect();
        self.graphs.add(exec, graph, waits, places, outside);
    }

    fn launched(&mut self, exec: GraphExecId, races: &[Race]) {
        let Some(graph) = self.graphs.launched(exec, races) else { return };
        for place in graph.places.iter().flatten().chain(&graph.outside) {
            self.places[*place as usize].count += 1;
        }
    }

    /// Whether a query tells a pool that it may hand a block out again.
    pub(crate) fn is_of_pool(&self, event: EventId, record: u64) -> bool {
        self.of_pool.contains_key(&(event, record))
    }

    /// Notes what pools do with their blocks. As in [`detect::early_free`], the events that
    /// stand for a block are those that its thread has recorded directly before it goes back.
    fn blocks(&mut self, record: &Record<'_>, races: &[Race]) {
        let (thread, next) = (record.origin.thread, self.steps.len() as u32);
        match record.op {
            Op::EventRecord { event, .. } => {
                *self.records_of.entry(event).or_default() += 1;
                self.recent.entry(thread).or_default().push((event, record.origin.stack));
            }
            Op::EventCreate { .. } => {}
            Op::Free { ptr, kind: FreeKind::Block, .. } => {
                let events = self.recent.remove(&thread).unwrap_or_default();
                let mut place = NONE;
                if let Some((_, recorded)) = events.last() {
                    // Stacks of frees are mostly not recorded. The events were recorded on the way.
                    let own = record.origin.stack;
                    let stack = if own.is_none() { *recorded } else { own };
                    let site = SyncSite { stack, kind: SyncKind::RecordStream };
                    place = self.place(site, record.origin.call);
                    let known = &mut self.places[place as usize];
                    (known.count, known.is_of_steps) = (known.count + 1, true);
                }
                for (event, _) in events {
                    let number = self.records_of.get(&event).copied().unwrap_or_default();
                    self.of_pool.insert((event, number), place);
                }
                self.freed.insert(ptr, place);
            }
            Op::Alloc { kind: MemoryKind::Block, .. } => {
                for race in races.iter().filter(|race| race.freed_early && !race.latent) {
                    let first = self.step_of(race.previous.epoch);
                    let place = self.freed.get(&race.access.extent.start).copied().unwrap_or(NONE);
                    let (stream, stack) = (race.access.site.stream, record.origin.stack);
                    if let (Some(then), true) = (next.checked_sub(1), first != NONE) {
                        self.reuses.push(Reuse { first, then, stream, stack, place });
                    }
                }
                self.recent.remove(&thread);
            }
            _ => drop(self.recent.remove(&thread)),
        }
    }

    fn step_of(&self, epoch: Epoch) -> u32 {
        let times = self.by_time.get(epoch.timeline.0 as usize);
        times.and_then(|times| times.get(epoch.time as usize)).copied().unwrap_or(NONE)
    }

    fn stands_for(&self, op: &Op<'_>) -> u32 {
        let Op::StreamIdle { stream, upto } = *op else { return NONE };
        let Some(times) = self.recorded.get(&stream) else { return NONE };
        times[..times.partition_point(|(time, _)| *time <= upto)].last().map_or(NONE, |(_, step)| *step)
    }

    fn marks(&mut self, op: &Op<'_>, index: u32, context: &Context<'_>) -> u8 {
        let of_host = |class| !matches!(class, MemoryClass::Device);
        let managed = if self.has_managed { marks::TO_HOST } else { 0 };
        match *op {
            Op::Launch { kernel, shape, .. } => {
                let is_unknown = shape.flags & INSIDE_LIBRARY == 0 && self.unknown_kernels.contains(&kernel);
                marks::WORK | managed | if is_unknown { marks::UNKNOWN } else { 0 }
            }
            Op::Copy { ref dst, ref src, dst_space, src_space, .. }
            | Op::AttributedCopy { ref dst, ref src, dst_space, src_space, .. } => {
                let from = class(src, src_space, context.memory);
                if matches!(from, MemoryClass::Pinned | MemoryClass::Managed) {
                    self.read_of_host(src.start, src.end(), index);
                }
                let to_host = of_host(class(dst, dst_space, context.memory));
                marks::WORK | if to_host { marks::TO_HOST } else { 0 }
            }
            Op::Set { ref dst, .. } => {
                let to_host = of_host(class(dst, trace::Space::Device, context.memory));
                marks::WORK | if to_host { marks::TO_HOST } else { 0 }
            }
            Op::GraphLaunch { exec, .. } => {
                let is_unknown = self.unknown_graphs.contains(&exec);
                marks::WORK | managed | if is_unknown { marks::UNKNOWN } else { 0 }
            }
            Op::Opaque { .. } => marks::WORK | marks::UNKNOWN,
            Op::WriteValue { .. } | Op::HostFunc { .. } => marks::WORK,
            Op::GraphNode { exec, tag, body, .. } => {
                if let Ok(Op::Launch { kernel, .. }) = Op::decode(tag, body)
                    && self.unknown_kernels.contains(&kernel)
                {
                    self.unknown_graphs.insert(exec);
                }
                0
            }
            Op::Alloc { kind, .. } => {
                self.has_managed |= kind == MemoryKind::Managed;
                if kind == MemoryKind::Pool { marks::WORK } else { 0 }
            }
            Op::Free { kind: FreeKind::Async, .. } => marks::WORK,
            _ => 0,
        }
    }

    /// A step reads memory of the host: the one that read it before comes before a refill, if the
    /// host makes one.
    fn read_of_host(&mut self, start: u64, end: u64, index: u32) {
        let before = self.sources.range(..end).rev().take_while(|(from, (upto, _))| *upto > start || **from >= start);
        let over: SmallVec<[(u64, u32); 4]> =
            before.filter(|(_, (upto, _))| *upto > start).map(|(from, (_, step))| (*from, *step)).collect();
        for (from, step) in over {
            self.refills.insert(step, index);
            self.sources.remove(&from);
            if let Some(step) = self.steps.get_mut(step as usize) {
                step.marks |= marks::REFILLED;
            }
        }
        self.sources.insert(start, (end, index));
    }

    /// Of several races with ops of one timeline the latest op stands for all: what waits for it
    /// waits for those before it.
    fn pairs_of(&mut self, then: u32, races: &[Race]) {
        let mut latest: SmallVec<[(Epoch, Hazard); 8]> = SmallVec::new();
        for race in races.iter().filter(|race| !race.freed_early && !race.latent && !graphs::is_inside(race)) {
            let epoch = race.previous.epoch;
            match latest.iter_mut().find(|(known, _)| known.timeline == epoch.timeline) {
                Some(known) if known.0.time < epoch.time => *known = (epoch, race.hazard),
                Some(_) => {}
                None => latest.push((epoch, race.hazard)),
            }
        }
        for (epoch, hazard) in latest {
            let first = self.step_of(epoch);
            if first != NONE && first != then {
                self.pairs.push(StepPair { first, then, hazard });
            }
        }
    }
}

/// Whether an op matters to the order.
fn matters(op: &Op<'_>) -> bool {
    let is_block = matches!(
        op,
        Op::Alloc { kind: MemoryKind::Block, .. } | Op::Free { kind: FreeKind::Block, .. } | Op::HostWatch { .. }
    );
    let is_aside = matches!(
        op,
        Op::Contents { .. }
            | Op::Filled { .. }
            | Op::RangePush { .. }
            | Op::RangePop {}
            | Op::RangeStart { .. }
            | Op::RangeEnd { .. }
            | Op::DomainPush { .. }
            | Op::DomainPop { .. }
            | Op::HostAccess { .. }
            | Op::WaitsMet { .. }
            | Op::HostLook { .. }
            | Op::MemoryName { .. }
            | Op::Checking { .. }
            | Op::Global { .. }
            | Op::Exact { .. }
            | Op::ExactPart { .. }
            | Op::ExactOrder { .. }
            | Op::ExactNodes { .. }
            | Op::Inside { .. }
            | Op::Clock { .. }
            | Op::StreamTaken { .. }
            | Op::NodeCaptured { .. }
            | Op::NodeOf { .. }
            | Op::NodeConditional { .. }
            | Op::CaptureStart { .. }
            | Op::CaptureRecord { .. }
            | Op::CaptureWait { .. }
            | Op::CaptureNode { .. }
            | Op::CaptureChanged { .. }
            | Op::CaptureDone { .. }
    );
    !op.is_definition() && !is_block && !is_aside
}
