//! The questions that an engine answers: clocks, epochs, timelines.
//!
//! Does not change the engine, but for [`Engine::prepare_stream`].

use trace::{Epoch, EventId, GraphExecId, HostFuncId, KernelId, MemoryKind, Region, Space, StreamId, TimelineId};

use crate::condition::AwaitedWord;
use crate::engine::Engine;
use crate::policy::MemoryClass;
use crate::start_clock::{ClockRef, ClockSnapshot, ClockSource, FastClock, OpStart};

/// An answer of [`Engine::awaits_host_function`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaits {
    /// No function that is pending or running comes before it.
    No,
    /// Its stream waits for one by now; whether it did when the op was enqueued is not known.
    Maybe,
    /// One comes before it.
    Yes,
}

impl Engine {
    /// Time of a stream now: the value to pass back in [`trace::Op::StreamIdle`]'s `upto`. 0 for a
    /// stream never seen.
    pub fn stream_time(&self, stream: StreamId) -> u64 {
        self.streams.find(stream).map_or(0, |slot| self.streams.slots[slot as usize].time)
    }

    /// The kernel that the next launch of a stream may overlap, if there is one.
    pub fn kernel_before(&self, stream: StreamId) -> Option<KernelId> {
        let s = &self.streams.slots[self.streams.find(stream)? as usize];
        s.kernel_start.map(|_| s.kernel.kernel)
    }

    /// The clock of what a launch does before it waits for its predecessors, if it may overlap
    /// them. `epoch`: that of the launch, which was the op applied last.
    pub fn early_launch(&self, epoch: Epoch) -> Option<ClockRef<'_>> {
        let (_, began) = self.early_launch.filter(|(of, _)| *of == epoch)?;
        let start = OpStart { own_upto: began.upto, also: began.also, ..self.last };
        Some(ClockRef::of_start(&self.host, &self.streams, start))
    }

    /// Number of an event's latest record: the value to pass back in [`trace::Op::EventReached`]'s
    /// `record`. 0: never recorded.
    pub fn event_record(&self, event: EventId) -> u64 {
        self.events.get(&event.0).map_or(0, |e| e.record)
    }

    /// The timeline that a living stream's ops are on.
    pub fn timeline(&self, stream: StreamId) -> Option<TimelineId> {
        self.streams.find(stream).map(TimelineId)
    }

    /// What an event's latest record covers. `None`: never recorded.
    pub fn event_clock(&self, event: EventId) -> Option<ClockSnapshot> {
        let snapshot = self.events.get(&event.0).and_then(|e| e.current())?;
        let start = OpStart { own: snapshot.own.slot, own_upto: snapshot.own.time, ..OpStart::default() };
        Some(ClockRef::of_clock(&self.host, &self.streams, start, &snapshot.clock).snapshot())
    }

    /// The time of each timeline now, by its number; the host's is at 0.
    pub fn times(&self) -> Vec<u64> {
        let mut times: Vec<u64> = self.streams.slots.iter().map(|stream| stream.time).collect();
        times[0] = self.host.time;
        times
    }

    /// The stream that lives on a timeline, or lived there last.
    pub fn stream_on(&self, timeline: TimelineId) -> Option<StreamId> {
        let slot = timeline.0 as usize;
        if slot == 0 { None } else { self.streams.slots.get(slot).map(|s| s.id) }
    }

    /// Number of timelines in use (for statistics): streams that live, and dead ones whose work
    /// that has not been waited for.
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

    /// How often the host has acquired that something finished: while this stands still, so does
    /// what [`Engine::host_covers`] says.
    #[inline]
    pub fn host_changes(&self) -> u64 {
        self.host.changes
    }

    /// The clock at which the op applied last starts: all that it covers has finished before the op
    /// begins. Valid until the next op; [`ClockRef::snapshot`] makes it last.
    #[inline]
    pub fn start_clock(&self) -> ClockRef<'_> {
        match &self.start_snapshot {
            Some(kept) if self.last.source == ClockSource::Snapshot => kept.as_ref(Some(&self.streams)),
            _ => ClockRef::of_start(&self.host, &self.streams, self.last),
        }
    }

    /// What [`Engine::start_clock`] answers most questions with.
    #[inline]
    pub fn fast_start_clock(&self) -> FastClock<'_> {
        match self.last.source {
            ClockSource::Stream => {
                FastClock::of(self.last, &self.host.floor.times, &self.streams.slots[self.last.own as usize].clock)
            }
            ClockSource::Host | ClockSource::Snapshot => self.start_clock().fast(),
        }
    }

    /// Lets a stream take in what an op of it would wait for if it were enqueued now;
    /// [`Engine::stream_clock`] gives that clock.
    pub fn prepare_stream(&mut self, stream: StreamId) {
        self.begin(stream);
    }

    /// The clock at which an op of this stream would start if it were enqueued now, as of the
    /// latest [`Engine::prepare_stream`].
    pub fn stream_clock(&self, stream: StreamId) -> ClockRef<'_> {
        let Some(slot) = self.streams.find(stream) else { return self.host_clock() };
        let s = &self.streams.slots[slot as usize];
        let start = OpStart {
            own: slot,
            own_upto: s.time,
            host_upto: self.host.time,
            source: ClockSource::Stream,
            blocked: s.clock.has_open_wait() || s.blocked_from != u64::MAX,
            ..OpStart::default()
        };
        ClockRef::of_start(&self.host, &self.streams, start)
    }

    /// The words that work at the end of this timeline waits for, of which nothing seen has written
    /// the values. What an earlier op of the timeline waits for is among them, unless that was
    /// released meanwhile.
    pub fn awaited_words(&self, timeline: TimelineId) -> impl Iterator<Item = AwaitedWord> {
        self.streams.slots.get(timeline.0 as usize).into_iter().flat_map(|s| s.clock.awaited_words())
    }

    /// The clock of the host now, for loads and stores of the host.
    #[inline]
    pub fn host_clock(&self) -> ClockRef<'_> {
        if let Some(t) = self.threads.as_ref().and_then(|threads| threads.get(self.thread)) {
            let start = OpStart {
                own: t.slot,
                own_upto: t.time,
                host_upto: self.host.time,
                source: ClockSource::Snapshot,
                ..OpStart::default()
            };
            return ClockRef::of_clock(&self.host, &self.streams, start, &t.clock);
        }
        ClockRef::of_host(&self.host, &self.streams)
    }

    /// When the copy applied last reads its source, if not with the rest of it: the host stages
    /// pageable sources during the call. The read is then ordered by [`Engine::host_clock`].
    pub fn source_epoch(&self) -> Option<Epoch> {
        self.last_source
    }

    /// Whether this is memory of the host that CUDA does not know.
    pub fn is_pageable(&self, region: &Region, space: Space) -> bool {
        let range = self.allocations.find(region.start).filter(|_| region.array.is_none());
        region.array.is_none() && MemoryClass::of(space, range.map(|r| r.kind)) == MemoryClass::Pageable
    }

    /// The clock at which a copy's source may be read first, if that is before the rest of the
    /// copy: what the host knew when it was called. `epoch`: that of the copy, which was the op
    /// applied last.
    pub fn early_source(&self, epoch: Epoch) -> Option<ClockRef<'_>> {
        let (_, known) = self.early_source.as_ref().filter(|(of, _)| *of == epoch)?;
        Some(known.as_ref(Some(&self.streams)))
    }

    /// The clock that a host function in stream order runs at, and its epoch, while it is pending
    /// or running.
    pub fn host_function(&self, func: HostFuncId) -> Option<(Epoch, ClockRef<'_>)> {
        let (epoch, clock) = self.placed_function(func)?;
        Some((epoch, clock.as_ref(Some(&self.streams))))
    }

    /// A host function that is pending in a stream, or runs in a graph.
    pub(crate) fn placed_function(&self, func: HostFuncId) -> Option<(Epoch, &ClockSnapshot)> {
        let of_graph = || self.graph_funcs.get(&func.0)?.running().map(|(_, epoch, clock)| (*epoch, clock));
        self.host_funcs.get(&func.0).map(|(epoch, clock)| (*epoch, clock)).or_else(of_graph)
    }

    /// Whether host functions have been put into streams that have not ended yet.
    pub fn host_functions_pending(&self) -> bool {
        !self.host_funcs.is_empty()
    }

    /// Whether an op is behind a host function that has not returned, other than `except`. Such an
    /// op has not begun.
    pub fn awaits_host_function(&self, epoch: Epoch, except: HostFuncId) -> Awaits {
        let mut found = Awaits::No;
        for (_, (func, _)) in self.host_funcs.iter().filter(|(id, _)| **id != except.0) {
            if func.timeline == epoch.timeline {
                if func.time < epoch.time {
                    return Awaits::Yes;
                }
            } else if self.stream_on(epoch.timeline).is_some_and(|stream| self.stream_clock(stream).covers(*func)) {
                found = Awaits::Maybe;
            }
        }
        found
    }

    /// The host functions that [`Engine::awaits_host_function`] means.
    pub fn host_functions_before(&self, epoch: Epoch) -> Vec<HostFuncId> {
        let is_before = |func: Epoch| match func.timeline == epoch.timeline {
            true => func.time < epoch.time,
            false => self.stream_on(epoch.timeline).is_some_and(|stream| self.stream_clock(stream).covers(func)),
        };
        let before = self.host_funcs.iter().filter(|(_, (func, _))| is_before(*func));
        before.map(|(id, _)| HostFuncId(*id)).collect()
    }

    /// Whether nothing orders an op behind a host function that has not returned. Only of an op
    /// that was enqueued later.
    pub fn runs_beside_function(&self, func: HostFuncId, epoch: Epoch) -> bool {
        let Some((function, _)) = self.host_funcs.get(&func.0) else { return false };
        // What its stream has waited for since the op counts, too.
        let stream = self.stream_on(epoch.timeline).filter(|_| function.timeline != epoch.timeline);
        stream.is_some_and(|stream| !self.stream_clock(stream).covers(*function))
    }

    /// Whether the host has seen all work of all streams finish: what it touches now races with
    /// none of it.
    pub fn host_knows_all(&self) -> bool {
        self.streams.contexts.iter().all(|context| context.uncovered.is_empty())
    }

    /// Epoch of a node in the latest launch of its executable graph, if that is not the epoch of
    /// the launch.
    pub fn node_epoch(&self, exec: GraphExecId, index: u32) -> Option<Epoch> {
        Some(self.execs.get(&exec.0)?.part_of(index)?.epoch(self))
    }

    /// A node of the graph launched last comes next: [`Engine::start_clock`] answers for it. Its
    /// epoch, if that is not the epoch of the launch.
    pub fn begin_node(&mut self, exec: GraphExecId, index: u32) -> Option<Epoch> {
        let part = *self.execs.get(&exec.0)?.part_of(index)?;
        self.last = part.start;
        Some(part.epoch(self))
    }

    /// No node comes any more: [`Engine::start_clock`] answers for the launch as a whole.
    pub fn end_nodes(&mut self, exec: GraphExecId) {
        if let Some(known) = self.execs.get(&exec.0).filter(|known| !known.parts.is_empty()) {
            self.last = known.start;
        }
    }

    /// Whether two epochs are of nodes of one launch.
    pub fn is_same_launch(&self, one: Epoch, other: Epoch) -> bool {
        one == other || self.launch_of(one).is_some_and(|launch| Some(launch) == self.launch_of(other))
    }

    /// The launch whose nodes have this epoch, if these are nodes of a graph with parts: the
    /// executable graph, and the number of the launch.
    fn launch_of(&self, epoch: Epoch) -> Option<(u32, u64)> {
        let exec = *self.graph_parts.get(&epoch.timeline.0)?;
        let part = self.execs.get(&exec)?.parts.iter().find(|part| part.slot == epoch.timeline.0)?;
        Some((exec, epoch.time.wrapping_sub(part.first)))
    }

    /// The epoch on its stream of the work at an epoch: of nodes of the latest launch of a graph
    /// with parts that of the launch, and else the epoch itself.
    pub fn stream_epoch(&self, epoch: Epoch) -> Epoch {
        let latest = || {
            let known = self.execs.get(self.graph_parts.get(&epoch.timeline.0)?)?;
            let is_latest = self.streams.slots[epoch.timeline.0 as usize].time == epoch.time;
            let own = known.last.as_ref().filter(|_| is_latest)?.own;
            Some(Epoch { timeline: TimelineId(own.slot), time: own.time })
        };
        latest().unwrap_or(epoch)
    }

    /// Epoch of the latest launch of an executable graph.
    pub fn graph_epoch(&self, exec: GraphExecId) -> Option<Epoch> {
        let last = &self.execs.get(&exec.0)?.last.as_ref()?.own;
        Some(Epoch { timeline: TimelineId(last.slot), time: last.time })
    }

    /// Kind of memory at an address, as far as the rules of order track it (blocks of a program's
    /// own allocator count as what they were cut from).
    pub fn memory_kind(&self, address: u64) -> Option<MemoryKind> {
        self.allocations.find(address).map(|r| r.kind)
    }

    /// One past the last address of the live memory that begins at an address.
    pub fn memory_end(&self, address: u64) -> Option<u64> {
        self.allocations.find(address).map(|r| r.end)
    }
}
