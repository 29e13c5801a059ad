//! The engine: applies ops one after the other and answers what is ordered before what.
//!
//! Owns the public interface and the path that every op of a stream takes. The rules of single ops
//! are in `rules`; what the model is, and why it is sound, is told in the crate's documentation.

use trace::{
    ContextId, Epoch, EventId, FreeKind, GraphExecId, HostFuncId, MemoryKind, Op, StreamId, StreamKind, ThreadId,
    TimelineId,
};

use crate::clock::{Entry, Known, Snapshot};
use crate::id_map::IdMap;
use crate::policy::Policy;
use crate::rules::graphs::Exec;
use crate::start_clock::{ClockRef, KeptClock, Start, Usual, View};
use crate::state::allocations::Memory;
use crate::state::event::Event;
use crate::state::host::{Covered, Holds, Host};
use crate::state::host_threads::Threads;
use crate::state::stream::{Stream, Streams};
use crate::state::sync_vars::Values;

/// How an engine works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Whose word is taken for synchronisation that the program did not ask for.
    pub policy: Policy,
    /// Also keep what documented synchronisation alone would order, for
    /// [`ClockRef::covers_promised`]. Costs a second floor; clocks then shrink only at documented
    /// synchronisation.
    pub latent: bool,
    /// Take the end of a host function as a message to the host threads (a promise fulfilled, a
    /// flag set). Off: such a program looks unordered. On: what was really unordered may look
    /// ordered when the function happened to run early.
    pub host_functions_signal: bool,
    /// Give each host thread a timeline of its own, from [`Op::HostThreads`] on; without that op
    /// there are no edges between threads to take, and they share one. Not together with `latent`.
    pub host_threads: bool,
}

/// The happens-before engine. What every op touches lies together, from the end of `host` to the
/// beginning of `streams`: in the program under test it is cold whenever an op comes.
#[derive(Debug)]
#[repr(C)]
pub struct Engine {
    pub(crate) host: Host,
    pub(crate) last: Start,
    pub(crate) last_source: Option<Epoch>,
    /// Host threads, when each has a timeline of its own.
    pub(crate) threads: Option<Box<Threads>>,
    pub(crate) streams: Streams,
    /// The thread that the op in hand was made by.
    pub(crate) thread: ThreadId,
    pub(crate) options: Options,
    pub(crate) events: IdMap<u32, Event>,
    pub(crate) memory: Memory,
    pub(crate) execs: IdMap<u32, Exec>,
    pub(crate) host_funcs: IdMap<u32, (Epoch, KeptClock)>,
    pub(crate) values: Values,
    pub(crate) kept: Option<KeptClock>,
    pub(crate) scratch: Vec<Entry>,
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
            memory: Memory::default(),
            execs: IdMap::default(),
            host_funcs: IdMap::default(),
            values: Values::default(),
            last: Start::default(),
            last_source: None,
            kept: None,
            scratch: Vec::new(),
            threads: None,
            thread: ThreadId::NONE,
        }
    }

    /// Applies one op, made by host thread `thread`. Answers the op's epoch: of its stream for ops
    /// of a stream, of the host for all others. Definitions change nothing.
    ///
    /// Ops must come in the order of the calls; ops on one stream in the order in which they were
    /// enqueued.
    #[inline]
    pub fn apply(&mut self, op: &Op<'_>, thread: ThreadId) -> Epoch {
        if self.threads.is_some() {
            self.enter_thread(op, thread);
        }
        match *op {
            Op::Launch { stream, flags, .. } => {
                self.launch(stream, flags & trace::launch_flags::PROGRAMMATIC_SERIALIZATION != 0)
            }
            // What a program's own allocator does says nothing of order, and it does much of it.
            Op::Alloc { kind: MemoryKind::Block, .. } | Op::Free { kind: FreeKind::Block, .. } => {
                self.tick();
                self.host_op()
            }
            _ => self.apply_other(op, thread),
        }
    }

    /// Applies a launch whose attributes say that it may overlap its predecessor, by a kernel that
    /// is known to wait for it (`griddepcontrol.wait`): then nothing is weaker than usual.
    ///
    /// [`Engine::apply`] takes a launch with [`trace::launch_flags::PROGRAMMATIC_SERIALIZATION`] as
    /// one by a kernel that never waits.
    pub fn apply_waiting_launch(&mut self, stream: StreamId, thread: ThreadId) -> Epoch {
        if self.threads.is_some() {
            self.enter_thread(&Op::Opaque { stream }, thread);
        }
        self.launch(stream, false)
    }

    #[unsafe(link_section = "streamsan_hot")]
    fn launch(&mut self, stream: StreamId, overlaps: bool) -> Epoch {
        self.tick();
        let slot = self.begin_here(stream);
        let s = &self.streams.slots[slot as usize];
        // The programmatic dependency is on a kernel directly before; anything in between is waited
        // for as usual.
        let upto = match s.kernel_start {
            Some(start) if overlaps => start,
            _ => s.time,
        };
        self.advance_here(slot, upto, Some(upto))
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
        self.last = Start { host_upto: self.host.time - 1, view: View::Host, ..Start::default() };
        if self.threads.is_some() {
            self.start_on_thread();
        }
        self.host_epoch()
    }

    /// An op by a thread that has a timeline of its own: the thread is known, its time goes on.
    #[cold]
    pub(crate) fn enter_thread(&mut self, op: &Op<'_>, thread: ThreadId) {
        self.thread = thread;
        if op.tag() < 32 {
            return;
        }
        let Some(mut threads) = self.threads.take() else { return };
        if threads.get(thread).is_none() {
            let slot = self.streams.host_slot();
            let time = self.streams.slots[slot as usize].time;
            let start = match *op {
                Op::HostEdge { object, acquire: true, start: true } => Some(object),
                _ => None,
            };
            threads.begin(thread, slot, time, start, self.host.known());
        }
        if let Some(t) = threads.get_mut(thread) {
            t.time += 1;
            self.streams.slots[t.slot as usize].time = t.time;
        }
        self.threads = Some(threads);
    }

    /// The op in hand is one of the host: it starts at what its thread knows.
    fn start_on_thread(&mut self) {
        let Some(t) = self.threads.as_ref().and_then(|threads| threads.get(self.thread)) else { return };
        let start = Start { own: t.slot, own_upto: t.time - 1, view: View::Kept, ..self.last };
        self.kept = Some(ClockRef::of_clock(self, start, &t.clock).keep());
        self.last = start;
    }

    /// A stream that begins an op takes in what the thread knows that enqueues it.
    #[cold]
    fn take_from_thread(&mut self, slot: u32) {
        if let Some(now) = self.threads.as_ref().and_then(|threads| threads.snapshot(self.thread)) {
            self.join(slot, &now);
        }
    }

    /// `HostEdge`: knowledge passes from thread to thread.
    pub(crate) fn host_edge(&mut self, object: u64, acquire: bool, start: bool) -> Epoch {
        let thread = self.thread;
        if let Some(mut threads) = self.threads.take() {
            match (acquire, threads.left(object)) {
                // A start was taken in when the thread was first seen.
                (true, Some(_)) if start => {}
                (true, Some(left)) => threads.learn(thread, &left, &mut Vec::new(), self.host.known()),
                (true, None) => {}
                (false, _) => threads.release(thread, object, self.host.known()),
            }
            self.threads = Some(threads);
            if acquire {
                self.raise_common(thread);
            }
        }
        self.host_op()
    }

    /// What all threads know belongs on the floor.
    pub(crate) fn raise_common(&mut self, thread: ThreadId) {
        let Some(threads) = &self.threads else { return };
        let mut many = threads.common(thread);
        many.retain(|e| self.host.floor.get(e.slot) < e.time);
        if !many.is_empty() {
            self.host.acquire(thread, &Covered { many: many.clone(), ..Covered::default() }, Holds::ALWAYS);
            let floor = self.host.weakest().times.clone();
            for e in &many {
                self.streams.settle(e.slot, &floor);
            }
        }
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
            StreamKind::NonBlocking => s.seen != c.wait_version,
            StreamKind::Legacy => s.seen != c.wait_version || !c.unjoined.is_empty(),
            StreamKind::Blocking | StreamKind::PerThread => s.seen != c.version,
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
        if s.clock.is_behind() && s.blocked_from == u64::MAX {
            s.blocked_from = time;
        }
        c.enter(s, slot);
        if s.kind == StreamKind::Legacy {
            c.version += 1;
        }
        self.last = Start {
            own: slot,
            own_upto: upto,
            host_upto: self.host.time - 1,
            view: View::Stream,
            blocked: s.blocked_from != u64::MAX,
            ..Start::default()
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
        let known = self.host.known();
        let s = &mut self.streams.slots[slot as usize];
        s.keep_past();
        let mut clock = std::mem::take(&mut s.clock);
        let (kind, context, seen) = (s.kind, s.context as usize, s.seen);
        let c = &mut self.streams.contexts[context];
        clock.join(&c.waits, slot, known);
        let seen = match kind {
            StreamKind::NonBlocking => c.wait_version,
            StreamKind::Legacy => {
                self.scratch.clear();
                for other in c.unjoined.iter() {
                    let other_stream = &self.streams.slots[other as usize];
                    self.scratch.push(Entry { slot: other, time: other_stream.time });
                }
                clock.raise_many(&mut self.scratch, slot, known);
                for other in c.unjoined.iter() {
                    clock.join(&self.streams.slots[other as usize].clock, slot, known);
                }
                c.unjoined.clear(&mut self.streams.slots, |s| &mut s.in_legacy_list);
                c.wait_version
            }
            StreamKind::Blocking | StreamKind::PerThread => {
                let legacy = c.legacy;
                if legacy != 0 && seen != c.version {
                    let l = &self.streams.slots[legacy as usize];
                    clock.raise(Entry { slot: legacy, time: l.time }, slot, known);
                    clock.join(&l.clock, slot, known);
                }
                c.version
            }
        };
        let s = &mut self.streams.slots[slot as usize];
        s.clock = clock;
        s.seen = seen;
    }

    /// A stream's clock takes in a snapshot; the stream must have begun an op.
    #[inline]
    pub(crate) fn join(&mut self, slot: u32, from: &Snapshot) {
        Self::join_stream(&mut self.streams.slots[slot as usize], slot, from, self.host.known());
    }

    #[inline]
    pub(crate) fn join_stream(s: &mut Stream, slot: u32, from: &Snapshot, known: Known<'_>) {
        if knows(s.time, slot, &s.clock, from, known) {
            return;
        }
        s.keep_past();
        s.clock.raise(from.own, slot, known);
        s.clock.join(&from.clock, slot, known);
    }

    // ---- questions
    // -------------------------------------------------------------------------------------------------

    /// Time of a stream now: the value to pass back in [`Op::StreamIdle`]'s `upto`. 0 for a stream
    /// never seen.
    pub fn stream_time(&self, stream: StreamId) -> u64 {
        self.streams.find(stream).map_or(0, |slot| self.streams.slots[slot as usize].time)
    }

    /// Number of an event's latest record: the value to pass back in [`Op::EventReached`]'s
    /// `record`. 0: never recorded.
    pub fn event_record(&self, event: EventId) -> u64 {
        self.events.get(&event.0).map_or(0, |e| e.record)
    }

    /// The timeline that a living stream's ops are on.
    pub fn timeline(&self, stream: StreamId) -> Option<TimelineId> {
        self.streams.find(stream).map(TimelineId)
    }

    /// What an event's latest record covers, to be kept. `None`: never recorded.
    pub fn event_clock(&self, event: EventId) -> Option<KeptClock> {
        let snapshot = self.events.get(&event.0).and_then(|e| e.current())?;
        let start = Start { own: snapshot.own.slot, own_upto: snapshot.own.time, ..Start::default() };
        Some(ClockRef::of_clock(self, start, &snapshot.clock).keep())
    }

    /// The stream that lives on a timeline, or lived there last.
    pub fn stream_on(&self, timeline: TimelineId) -> Option<StreamId> {
        let slot = timeline.0 as usize;
        if slot == 0 { None } else { self.streams.slots.get(slot).map(|s| s.id) }
    }

    /// Number of timelines in use (for statistics): streams that live, and dead ones whose work
    /// nobody has waited for.
    pub fn timeline_count(&self) -> usize {
        self.streams.slot_count()
    }

    /// The host's epoch now: what a load or store of the host gets that happens after the op
    /// applied last.
    #[inline]
    pub fn host_epoch(&self) -> Epoch {
        if let Some(t) = self.threads.as_ref().and_then(|threads| threads.get(self.thread)) {
            return Epoch { timeline: TimelineId(t.slot), time: t.time };
        }
        Epoch { timeline: TimelineId::HOST, time: self.host.time }
    }

    /// Whether the host has seen this finish. Nothing that comes later can race with it, so it may
    /// be forgotten. To judge a load or store of the host, ask [`Engine::host_clock`], which is
    /// lenient with what cannot be judged.
    #[inline]
    pub fn host_covers(&self, epoch: Epoch) -> bool {
        epoch.timeline == TimelineId::HOST || self.host.floor.get(epoch.timeline.0) >= epoch.time
    }

    /// How often the host has learnt that something finished: while this stands still, so does what
    /// [`Engine::host_covers`] says.
    #[inline]
    pub fn host_changes(&self) -> u64 {
        self.host.changes
    }

    /// The clock at which the op applied last starts: all that it covers has finished before the op
    /// begins. Valid until the next op; [`ClockRef::keep`] makes it last.
    #[inline]
    pub fn start_clock(&self) -> ClockRef<'_> {
        match &self.kept {
            Some(kept) if self.last.view == View::Kept => kept.as_ref(Some(self)),
            _ => ClockRef::of_last(self),
        }
    }

    /// What [`Engine::start_clock`] answers most questions with.
    #[inline]
    pub fn usual_start(&self) -> Usual<'_> {
        match self.last.view {
            View::Stream => {
                Usual::of(self.last, &self.host.floor.times, &self.streams.slots[self.last.own as usize].clock)
            }
            View::Host | View::Kept => self.start_clock().usual(),
        }
    }

    /// Lets a stream take in what an op of it would wait for if it were enqueued now;
    /// [`Engine::stream_clock`] tells of it.
    pub fn prepare_stream(&mut self, stream: StreamId) {
        self.begin(stream);
    }

    /// The clock at which an op of this stream would start if it were enqueued now, as of the
    /// latest [`Engine::prepare_stream`].
    pub fn stream_clock(&self, stream: StreamId) -> ClockRef<'_> {
        let Some(slot) = self.streams.find(stream) else { return self.host_clock() };
        let s = &self.streams.slots[slot as usize];
        let start = Start {
            own: slot,
            own_upto: s.time,
            host_upto: self.host.time,
            view: View::Stream,
            blocked: s.clock.is_behind() || s.blocked_from != u64::MAX,
            ..Start::default()
        };
        ClockRef::of_start(self, start)
    }

    /// The clock of the host now, for loads and stores of the host.
    #[inline]
    pub fn host_clock(&self) -> ClockRef<'_> {
        if let Some(t) = self.threads.as_ref().and_then(|threads| threads.get(self.thread)) {
            let start = Start {
                own: t.slot,
                own_upto: t.time,
                host_upto: self.host.time,
                view: View::Kept,
                ..Start::default()
            };
            return ClockRef::of_clock(self, start, &t.clock);
        }
        ClockRef::of_host(self)
    }

    /// When the copy applied last reads its source, if not with the rest of it: the host stages
    /// pageable sources during the call. The read is then ordered by [`Engine::host_clock`].
    pub fn source_epoch(&self) -> Option<Epoch> {
        self.last_source
    }

    /// The clock that a host function in stream order runs at, and its epoch, while it is pending
    /// or running.
    pub fn host_function(&self, func: HostFuncId) -> Option<(Epoch, ClockRef<'_>)> {
        self.host_funcs.get(&func.0).map(|(epoch, clock)| (*epoch, clock.as_ref(Some(self))))
    }

    /// Whether host functions have been put into streams that have not ended yet.
    pub fn host_functions_pending(&self) -> bool {
        !self.host_funcs.is_empty()
    }

    /// Epoch of the latest launch of an executable graph.
    pub fn graph_epoch(&self, exec: GraphExecId) -> Option<Epoch> {
        let last = &self.execs.get(&exec.0)?.last.as_ref()?.own;
        Some(Epoch { timeline: TimelineId(last.slot), time: last.time })
    }

    /// Sort of memory at an address, as far as the rules of order track it (blocks of a program's
    /// own allocator are not told from what they were cut from).
    pub fn memory_kind(&self, address: u64) -> Option<MemoryKind> {
        self.memory.find(address).map(|r| r.kind)
    }

    /// The policy in force.
    pub fn policy(&self) -> Policy {
        self.options.policy
    }

    /// Whether an epoch lies behind a wait for a value that nobody has been seen to write: then it
    /// is in the future of everything that may still release it.
    #[inline]
    pub(crate) fn in_future(&self, epoch: Epoch) -> bool {
        self.streams.slots.get(epoch.timeline.0 as usize).is_some_and(|s| epoch.time >= s.blocked_from)
    }
}

/// Whether a clock holds a snapshot already.
#[inline]
fn knows(time: u64, own: u32, clock: &crate::clock::Clock, from: &Snapshot, known: Known<'_>) -> bool {
    if !from.exact {
        return false;
    }
    let e = from.own;
    if e.slot == own {
        return e.time <= time;
    }
    known.times.get(e.slot as usize).is_some_and(|&t| e.time <= t) || clock.get(e.slot) >= e.time
}
