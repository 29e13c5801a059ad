//! Waits of the host: explicit synchronisation, queries, host functions, the end of a context.
//!
//! Owns what each scope covers. A wait covers what was enqueued before it began and takes effect
//! when it ends.

use trace::{ContextId, Epoch, EventId, HostFuncId, StreamId, StreamKind, SyncId, SyncScope, ThreadId};

use crate::clock::{Entry, NO_LINEAGE, TimelineSnapshot};
use crate::engine::Engine;
use crate::start_clock::{ClockSnapshot, ClockSource};
use crate::state::graph_exec::GraphFunction;
use crate::state::host::{Covered, Guarantee};

impl Engine {
    /// The host has seen this finish.
    pub(crate) fn acquire(&mut self, thread: ThreadId, what: &Covered, guarantee: Guarantee) {
        if self.threads.is_some() {
            return self.acquire_alone(thread, what, guarantee);
        }
        self.acquire_for_all(thread, what, guarantee);
    }

    /// One host thread of several has seen this finish.
    fn acquire_alone(&mut self, thread: ThreadId, what: &Covered, guarantee: Guarantee) {
        if !guarantee.by_policy {
            return;
        }
        let mut many = what.many.clone();
        let nothing = TimelineSnapshot::default();
        let snapshot = what.snapshot.as_ref().unwrap_or(&nothing);
        if let Some(threads) = self.threads.as_mut() {
            threads.acquire(thread, snapshot, &mut many, self.host.floor_ref());
        }
        if snapshot.clock.release_waits() {
            self.released_waits();
        }
        self.raise_common(thread);
    }

    /// All host threads have seen this finish.
    pub(crate) fn acquire_for_all(&mut self, thread: ThreadId, what: &Covered, guarantee: Guarantee) {
        self.host.acquire(thread, what, guarantee);
        let released = what.snapshot.as_ref().is_some_and(|s| s.clock.release_waits());
        if released {
            self.released_waits();
        }
        let floor = self.host.weakest().times.clone();
        if let Some(s) = &what.snapshot {
            self.streams.settle(s.own.slot, &floor);
        }
        for e in &what.many {
            self.streams.settle(e.slot, &floor);
        }
    }

    pub(crate) fn sync_begin(
        &mut self,
        thread: ThreadId,
        sync: SyncId,
        scope: SyncScope,
        stream: StreamId,
        event: EventId,
        context: ContextId,
    ) -> Epoch {
        let what = match scope {
            SyncScope::Stream => self.covered_by_stream(stream),
            SyncScope::Legacy => {
                if self.streams.find(stream).is_some() {
                    self.covered_by_stream(stream)
                } else {
                    self.streams
                        .find_context(context)
                        .map_or_else(Covered::default, |c| self.covered_by_legacy(c, None))
                }
            }
            SyncScope::Event => {
                let snapshot = self.events.get(&event.0).and_then(|e| e.current()).cloned();
                Covered { snapshot, ..Covered::default() }
            }
            SyncScope::Context => match self.streams.find_context(context) {
                Some(index) => {
                    let contexts = &self.streams.contexts;
                    self.covered_by_contexts(|i, _| i == index || contexts[i as usize].part_of == Some(index))
                }
                None => Covered::default(),
            },
            SyncScope::Device => self.covered_by_contexts(|_, _| true),
        };
        self.host.begin(thread, sync, what);
        self.host_op()
    }

    /// Waiting for a stream covers its work; for the legacy stream, also the blocking streams of
    /// its context (measured).
    pub(crate) fn covered_by_stream(&mut self, stream: StreamId) -> Covered {
        let slot = self.slot(stream);
        let s = &self.streams.slots[slot as usize];
        if self.is_legacy(slot) {
            let now = s.snapshot(slot);
            return self.covered_by_legacy(s.context, Some(now));
        }
        Covered { snapshot: Some(s.snapshot(slot)), ..Covered::default() }
    }

    /// The legacy stream, when there is one, and all that its next op would wait for.
    pub(crate) fn covered_by_legacy(&self, context: u32, legacy: Option<TimelineSnapshot>) -> Covered {
        let mut snapshot = legacy.unwrap_or_default();
        let floor = self.host.floor_ref();
        let mut many = Vec::new();
        for slot in self.streams.contexts[context as usize].unjoined.iter() {
            let s = &self.streams.slots[slot as usize];
            many.push(Entry { slot, time: s.time });
            snapshot.clock.join(&s.clock, snapshot.own.slot, floor);
        }
        Covered { snapshot: Some(snapshot), many, all_before: 0 }
    }

    /// All work of some contexts. No device and no context waits for requests of libraries.
    pub(crate) fn covered_by_contexts(&self, which: impl Fn(u32, Option<u32>) -> bool) -> Covered {
        let floor = self.host.floor_ref();
        let mut snapshot = TimelineSnapshot::default();
        let mut many = Vec::new();
        let mut everything = true;
        for (index, context) in self.streams.contexts.iter().enumerate() {
            if which(index as u32, context.device) && !context.is_host {
                many.extend(context.uncovered.iter().map(|slot| self.frontier(slot)));
            } else {
                everything &= context.uncovered.is_empty();
            }
        }
        for e in &many {
            let clock = &self.streams.slots[e.slot as usize].clock;
            // Clocks hold nothing but epochs of streams with work that is not covered: those of
            // these contexts are in `many` anyway.
            if !everything || clock.has_open_wait() {
                snapshot.clock.join(clock, NO_LINEAGE, floor);
            }
        }
        let all_before = if everything { self.host.time } else { 0 };
        Covered { snapshot: Some(snapshot), many, all_before }
    }

    pub(crate) fn frontier(&self, slot: u32) -> Entry {
        Entry { slot, time: self.streams.slots[slot as usize].time }
    }

    /// A query found the stream idle: as good as waiting for what was in it when the query began.
    /// For the legacy stream that includes the blocking streams; what they got during the query is
    /// then covered too.
    pub(crate) fn stream_idle(&mut self, thread: ThreadId, stream: StreamId, upto: u64) -> Epoch {
        let upto = if self.resumed { u64::MAX } else { upto };
        if let Some(slot) = self.streams.find(stream) {
            let s = &self.streams.slots[slot as usize];
            let at = s.snapshot_at(slot, upto);
            let what = if self.is_legacy(slot) {
                self.covered_by_legacy(s.context, Some(at))
            } else {
                Covered { snapshot: Some(at), ..Covered::default() }
            };
            self.acquire(thread, &what, Guarantee::ALWAYS);
        }
        self.host_op()
    }

    /// The host has seen a request of a library complete (MPI 4.1, 3.7.3: a wait, or
    /// a test that succeeds, "returns when the operation is complete").
    pub(crate) fn request_done(&mut self, thread: ThreadId, request: StreamId) -> Epoch {
        if let Some(slot) = self.streams.find(request) {
            let snapshot = Some(self.streams.slots[slot as usize].snapshot(slot));
            self.acquire(thread, &Covered { snapshot, ..Covered::default() }, Guarantee::ALWAYS);
            self.streams.destroy(request);
        }
        self.host_op()
    }

    /// Host functions run in stream order. What the host does inside is ordered as the function's
    /// epoch is.
    pub(crate) fn host_func_run(&mut self, thread: ThreadId, func: HostFuncId, done: bool) -> Epoch {
        let found = self.placed_function(func).map(|(epoch, clock)| (epoch, clock.clone()));
        if done {
            self.host_funcs.remove(&func.0);
        }
        let graph = self.graph_funcs.get_mut(&func.0);
        let in_graph = graph.is_some();
        graph.filter(|_| done).into_iter().for_each(GraphFunction::end);
        let Some((epoch, clock)) = found else { return self.host_op() };
        if self.options.host_functions_signal {
            // It may send its message at any time while it runs, and what was before it in the
            // stream has finished when it begins. XLA's callbacks wake the host so: `order/host`
            // has the case that was seen.
            let slot = epoch.timeline.0;
            let mut snapshot = self.streams.slots.get(slot as usize).map(|s| s.snapshot_at(slot, epoch.time));
            // The end of one node is not that of its graph.
            if let Some(snapshot) = snapshot.as_mut().filter(|_| !done || in_graph) {
                snapshot.own.time = snapshot.own.time.saturating_sub(1);
            }
            // How the driver's thread notifies the others is not followed: all of them know.
            self.acquire_for_all(
                thread,
                &Covered { snapshot, ..Covered::default() },
                Guarantee { by_policy: true, documented: false },
            );
        }
        self.start_in_host_func(epoch, clock)
    }

    /// A load or store inside a host function: ordered as the function is. Of one that is not known
    /// to be pending it is the host's.
    pub(crate) fn host_func_touch(&mut self, func: HostFuncId) -> Epoch {
        let Some((epoch, clock)) = self.placed_function(func) else { return self.host_op() };
        let clock = clock.clone();
        self.start_in_host_func(epoch, clock)
    }

    fn start_in_host_func(&mut self, epoch: Epoch, clock: ClockSnapshot) -> Epoch {
        self.start_snapshot = Some(clock);
        self.last.source = ClockSource::Snapshot;
        epoch
    }

    /// Whether a stream waits for the legacy stream and is waited for by it.
    pub(crate) fn is_legacy(&self, slot: u32) -> bool {
        self.streams.slots[slot as usize].kind == StreamKind::Legacy
    }

    /// A context is destroyed with all its work and memory: nothing of it runs afterwards.
    pub(crate) fn context_destroy(&mut self, context: ContextId, thread: ThreadId) -> Epoch {
        if let Some(index) = self.streams.find_context(context)
            && !context.is_none()
        {
            let what = self.covered_by_contexts(|i, _| i == index);
            self.acquire(thread, &what, Guarantee::ALWAYS);
        }
        self.streams.destroy_context(context);
        self.host_op()
    }
}
