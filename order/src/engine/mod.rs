//! The engine: the state that ops change one after the other.
//!
//! Owns the state as a whole and the path that every op of a stream takes. What is ordered before
//! what is asked in `queries`; [`crate::rules`] applies ops, each by its rule. The documentation of
//! the crate explains the model and why it is sound.

mod host_threads;
mod queries;

pub use queries::Awaits;

use trace::{ContextId, Epoch, KernelId, Region, StreamId, StreamKind, ThreadId, TimelineId};

use crate::clock::{Entry, FloorRef, TimelineSnapshot};
use crate::id_map::IdMap;
use crate::policy::Policy;
use crate::start_clock::{ClockSnapshot, ClockSource, OpStart};
use crate::state::allocations::Allocations;
use crate::state::devices::Devices;
use crate::state::event::Event;
use crate::state::graph_exec::{GraphExec, GraphFunction};
use crate::state::host::Host;
use crate::state::host_threads::HostThreads;
use crate::state::last_kernel::{Began, LastKernel, Overlap};
use crate::state::stream::{Stream, Streams};
use crate::state::sync_vars::SyncVars;

/// How an engine works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Which synchronisation counts that the program did not ask for.
    pub policy: Policy,
    /// Also keep what documented synchronisation alone would order, for
    /// [`crate::ClockRef::covers_documented`]. Costs a second floor; clocks then shrink only at
    /// documented synchronisation.
    pub latent: bool,
    /// Take the end of a host function as a message to the host threads (a promise fulfilled, a
    /// flag set). Off: such a program looks unordered. On: what was really unordered may look
    /// ordered when the function happened to run early.
    pub host_functions_signal: bool,
    /// Give each host thread a timeline of its own, from [`Op::HostThreads`] on; without that op
    /// there are no edges between threads to take, and they share one. Not together with `latent`.
    pub host_threads: bool,
    /// Take a synchronous copy from pageable memory to be over when it returns. The documents
    /// promise only that its source has been read.
    pub pageable_copies_wait: bool,
    /// Keep what fills and copies leave in memory: a wait for a value may find it there. Before a
    /// wait, ask [`Engine::values_found`]: kernels and others write, too.
    pub left_values: bool,
    /// Take each launch of a graph as one op: it waits for all that its nodes wait for, before it
    /// begins, and what they record and write completes with it.
    pub whole_graphs: bool,
}

/// The happens-before engine. What every op touches lies together, from the end of `host` to the
/// beginning of `streams`: in the program under test it is cold whenever an op comes.
#[derive(Debug)]
#[repr(C)]
pub struct Engine {
    pub(crate) host: Host,
    pub(crate) last: OpStart,
    pub(crate) last_source: Option<Epoch>,
    /// The latest copy whose source may be read before the earlier work of its stream is over: its
    /// epoch, and what the host knew when it was called.
    pub(crate) early_source: Option<(Epoch, ClockSnapshot)>,
    /// The latest launch that may have begun before its predecessor had ended, by a kernel that
    /// waits for that: its epoch, and what had finished when it began.
    pub(crate) early_launch: Option<(Epoch, Began)>,
    /// Host threads, when each has a timeline of its own.
    pub(crate) threads: Option<Box<HostThreads>>,
    pub(crate) streams: Streams,
    /// The thread that the op in hand was made by.
    pub(crate) thread: ThreadId,
    pub(crate) options: Options,
    pub(crate) events: IdMap<u32, Event>,
    pub(crate) allocations: Allocations,
    pub(crate) execs: IdMap<u32, GraphExec>,
    pub(crate) host_funcs: IdMap<u32, (Epoch, ClockSnapshot)>,
    pub(crate) graph_funcs: IdMap<u32, GraphFunction>,
    pub(crate) sync_vars: SyncVars,
    /// The latest fill, or copy whose source has been read: the thread that made it, its epoch, and
    /// where to.
    pub(crate) last_left: Option<(ThreadId, Epoch, Region)>,
    pub(crate) start_snapshot: Option<ClockSnapshot>,
    pub(crate) scratch: Vec<Entry>,
    pub(crate) devices: Devices,
    /// Whether records are missing before those of now.
    pub(crate) resumed: bool,
    /// The timelines that belong to executable graphs, and to which.
    pub(crate) graph_parts: IdMap<u32, u32>,
    /// Events that a kernel fires before it ends, with its end.
    pub(crate) fired: IdMap<u32, TimelineSnapshot>,
    /// Streams that have waited for such an event and have not launched since, with that end.
    pub(crate) behind_fired: IdMap<u32, TimelineSnapshot>,
}

impl Engine {
    /// An engine that knows nothing yet.
    pub fn new(policy: Policy) -> Self {
        Self::with_options(Options { policy, ..Options::default() })
    }

    /// An engine with all options.
    pub fn with_options(options: Options) -> Self {
        Self {
            options,
            streams: Streams::new(),
            host: Host::new(options.latent),
            events: IdMap::default(),
            allocations: Allocations::default(),
            execs: IdMap::default(),
            host_funcs: IdMap::default(),
            graph_funcs: IdMap::default(),
            sync_vars: SyncVars::default(),
            last_left: None,
            last: OpStart::default(),
            last_source: None,
            early_source: None,
            early_launch: None,
            start_snapshot: None,
            scratch: Vec::new(),
            devices: Devices::default(),
            threads: None,
            thread: ThreadId::NONE,
            resumed: false,
            graph_parts: IdMap::default(),
            fired: IdMap::default(),
            behind_fired: IdMap::default(),
        }
    }

    /// Takes the compute capability of a device (major * 10 + minor). Without it, no launch on the
    /// device overlaps another.
    pub fn define_device(&mut self, ordinal: u32, arch: u32) {
        self.devices.define(ordinal, arch);
    }

    /// A kernel launch. `overlap`: its attributes say that it may overlap its predecessor.
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn launch(&mut self, stream: StreamId, kernel: KernelId, overlap: Option<Overlap>) -> Epoch {
        self.tick();
        let slot = self.begin_here(stream);
        if let Some(overlap) = overlap
            && self.has_programmatic_launches(slot)
        {
            return self.overlapping_launch(slot, kernel, overlap);
        }
        let upto = self.streams.slots[slot as usize].time;
        let epoch = self.advance_here(slot, upto, Some(upto));
        self.streams.slots[slot as usize].kernel = LastKernel::ordinary(kernel, epoch.time);
        epoch
    }

    /// Whether kernels of this stream may overlap by programmatic dependent launch.
    #[cold]
    pub fn has_programmatic_launches(&self, slot: u32) -> bool {
        let context = self.streams.slots[slot as usize].context;
        self.devices.have_programmatic_launches(self.streams.contexts[context as usize].device)
    }

    /// A new op: host time goes on.
    #[inline]
    pub(crate) fn tick(&mut self) {
        self.host.time += 1;
        self.last_source = None;
    }

    /// An op of the host: its epoch, with the host's knowledge as its start.
    #[inline]
    pub(crate) fn host_op(&mut self) -> Epoch {
        self.last = OpStart { host_upto: self.host.time - 1, source: ClockSource::Host, ..OpStart::default() };
        if self.threads.is_some() {
            self.start_on_thread();
        }
        self.host_epoch()
    }

    /// Slot of a stream, made now if the stream was never seen (a damaged trace, a tool that came
    /// late): such a stream counts as a blocking one.
    #[inline]
    pub(crate) fn slot(&mut self, id: StreamId) -> u32 {
        match self.streams.find(id) {
            Some(slot) => {
                self.streams.remember(id, slot);
                slot
            }
            None => self.backfill(id),
        }
    }

    #[cold]
    fn backfill(&mut self, id: StreamId) -> u32 {
        self.create_stream(id, ContextId::NONE, StreamKind::Blocking)
    }

    pub(crate) fn create_stream(&mut self, id: StreamId, context: ContextId, kind: StreamKind) -> u32 {
        let floor = self.host.weakest();
        self.streams.create(id, context, kind, &floor.times, self.host.changes)
    }

    /// What comes before any op of a stream: it takes in what the context's streams share.
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn begin(&mut self, id: StreamId) -> u32 {
        self.begin_here(id)
    }

    #[inline(always)]
    fn begin_here(&mut self, id: StreamId) -> u32 {
        let slot = self.slot(id);
        let s = &self.streams.slots[slot as usize];
        let c = &self.streams.contexts[s.context as usize];
        let behind = match s.kind {
            StreamKind::NonBlocking => s.joined_version != c.wait_version,
            StreamKind::Legacy => s.joined_version != c.wait_version || !c.unjoined.is_empty(),
            StreamKind::Blocking | StreamKind::PerThread => s.joined_version != c.version,
        };
        if behind {
            self.catch_up(slot);
        }
        if self.threads.is_some() {
            self.take_from_thread(slot);
        }
        slot
    }

    /// The op takes place: its stream's time goes on. `upto` is the time of the stream that has
    /// finished when it starts.
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn advance(&mut self, slot: u32, upto: u64) -> Epoch {
        self.advance_here(slot, upto, None)
    }

    #[inline(always)]
    fn advance_here(&mut self, slot: u32, upto: u64, kernel_start: Option<u64>) -> Epoch {
        let Streams { slots, contexts, .. } = &mut self.streams;
        let s = &mut slots[slot as usize];
        let c = &mut contexts[s.context as usize];
        s.time += 1;
        s.kernel_start = kernel_start;
        s.batch = 0;
        let time = s.time;
        if s.clock.has_open_wait() && s.blocked_from == u64::MAX {
            s.blocked_from = time;
        }
        c.enter(s, slot);
        if s.kind == StreamKind::Legacy {
            c.version += 1;
        }
        self.last = OpStart {
            own: slot,
            own_upto: upto,
            host_upto: self.host.time - 1,
            source: ClockSource::Stream,
            blocked: s.blocked_from != u64::MAX,
            ..OpStart::default()
        };
        Epoch { timeline: TimelineId(slot), time }
    }

    /// An ordinary op of a stream.
    #[inline]
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn stream_op(&mut self, id: StreamId) -> Epoch {
        let slot = self.begin(id);
        let upto = self.streams.slots[slot as usize].time;
        self.advance(slot, upto)
    }

    /// Joins what all streams of a kind share: the legacy stream's work, the work that the legacy
    /// stream waits for, the events that a whole context waits for.
    #[cold]
    fn catch_up(&mut self, slot: u32) {
        let floor = self.host.floor_ref();
        let s = &mut self.streams.slots[slot as usize];
        s.save_clock();
        let mut clock = std::mem::take(&mut s.clock);
        let (kind, context, seen) = (s.kind, s.context as usize, s.joined_version);
        let c = &mut self.streams.contexts[context];
        clock.join(&c.waits, slot, floor);
        let seen = match kind {
            StreamKind::NonBlocking => c.wait_version,
            StreamKind::Legacy => {
                self.scratch.clear();
                for other in c.unjoined.iter() {
                    let other_stream = &self.streams.slots[other as usize];
                    self.scratch.push(Entry { slot: other, time: other_stream.time });
                }
                clock.raise_many(&mut self.scratch, slot, floor);
                for other in c.unjoined.iter() {
                    clock.join(&self.streams.slots[other as usize].clock, slot, floor);
                }
                c.unjoined.clear(&mut self.streams.slots, |s| &mut s.in_legacy_list);
                c.wait_version
            }
            StreamKind::Blocking | StreamKind::PerThread => {
                let legacy = c.legacy;
                if legacy != 0 && seen != c.version {
                    let l = &self.streams.slots[legacy as usize];
                    clock.raise(Entry { slot: legacy, time: l.time }, slot, floor);
                    clock.join(&l.clock, slot, floor);
                }
                c.version
            }
        };
        let s = &mut self.streams.slots[slot as usize];
        s.clock = clock;
        s.joined_version = seen;
    }

    /// A stream's clock takes in a snapshot; the stream must have begun an op.
    #[inline]
    pub(crate) fn join(&mut self, slot: u32, from: &TimelineSnapshot) {
        Self::join_stream(&mut self.streams.slots[slot as usize], slot, from, self.host.floor_ref());
    }

    #[inline]
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn join_stream(s: &mut Stream, slot: u32, from: &TimelineSnapshot, floor: FloorRef<'_>) {
        if knows(s.time, slot, &s.clock, from, floor) {
            return;
        }
        s.save_clock();
        s.clock.raise(from.own, slot, floor);
        s.clock.join(&from.clock, slot, floor);
    }
}

/// Whether a clock holds a snapshot already.
#[inline]
fn knows(time: u64, own: u32, clock: &crate::clock::Clock, from: &TimelineSnapshot, floor: FloorRef<'_>) -> bool {
    if !from.exact {
        return false;
    }
    let e = from.own;
    if e.slot == own {
        return e.time <= time;
    }
    floor.times.get(e.slot as usize).is_some_and(|&t| e.time <= t) || clock.get(e.slot) >= e.time
}
