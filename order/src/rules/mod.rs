//! CUDA's rules of order, op by op.
//!
//! Owns what each op does to the clocks. Each rule names where it comes from: the programming guide
//! and `cuda.h` unless another source is given; what calls wait for beside that is in
//! [`crate::policy`].

pub(crate) mod copies;
pub(crate) mod graphs;
pub(crate) mod host_sync;

use trace::{
    Epoch, EventId, EventMode, HostFuncId, Op, SourceOrder, StreamId, StreamKind, ThreadId, TimelineId, WaitCompare,
};

use crate::clock::{Entry, Snapshot};
use crate::engine::Engine;
use crate::start_clock::View;
use crate::state::host::{Covered, Holds};
use crate::state::sync_vars::{Answer, Condition};

/// Where the value of an external semaphore is kept: beyond all memory.
fn semaphore_address(semaphore: u32) -> u64 {
    1 << 63 | u64::from(semaphore)
}

impl Engine {
    pub(crate) fn apply_other(&mut self, op: &Op<'_>, thread: ThreadId) -> Epoch {
        if op.tag() < 32 {
            return self.host_epoch();
        }
        self.tick();
        match *op {
            Op::ContextCreate { context, device, .. } => {
                let context = self.streams.context(context);
                self.streams.contexts[context as usize].device = Some(device);
                self.host_op()
            }
            Op::ContextPart { context, whole } => {
                let (part, whole) = (self.streams.context(context), self.streams.context(whole));
                self.streams.contexts[part as usize].part_of = (part != whole).then_some(whole);
                self.host_op()
            }
            Op::ContextSyncMemops { context, on } => {
                let context = self.streams.context(context);
                self.streams.contexts[context as usize].sync_memops = on;
                self.host_op()
            }
            Op::ContextDestroy { context } => self.context_destroy(context, thread),
            Op::StreamCreate { stream, context, kind, .. } => {
                self.create_stream(stream, context, kind);
                self.host_op()
            }
            // "The call returns at once": no synchronisation, pending work goes on.
            Op::StreamDestroy { stream } => {
                self.streams.destroy(stream);
                self.host_op()
            }
            Op::EventCreate { event, .. } => {
                self.events.entry(event.0).or_default();
                self.host_op()
            }
            Op::EventDestroy { event } => {
                self.events.remove(&event.0);
                self.host_op()
            }
            Op::EventRecord { event, stream, mode } => self.event_record_op(event, stream, mode),
            Op::StreamWait { stream, event, .. } => self.stream_wait(stream, event),
            Op::ContextRecord { event, context } | Op::OthersRecord { event, context } => {
                self.context_record(event, context)
            }
            Op::ContextWait { context, event } => self.context_wait(context, event),
            Op::SyncBegin { sync, scope, stream, event, context } => {
                self.sync_begin(thread, sync, scope, stream, event, context)
            }
            Op::SyncEnd { sync } => {
                if let Some(covered) = self.host.end(thread, sync) {
                    self.acquire(thread, &covered, Holds::ALWAYS);
                }
                self.host_op()
            }
            Op::StreamIdle { stream, upto } => self.stream_idle(thread, stream, upto),
            Op::EventReached { event, record } => {
                let snapshot = self.events.get(&event.0).and_then(|e| e.of_record(record)).cloned();
                if snapshot.is_some() {
                    self.acquire(thread, &Covered { snapshot, ..Covered::default() }, Holds::ALWAYS);
                }
                self.host_op()
            }
            Op::Alloc { ptr, size, kind, context, stream, .. } => self.alloc(ptr, size, kind, context, stream),
            Op::Free { ptr, kind, stream } => self.free(thread, ptr, kind, stream),
            Op::Alias { ptr, target, size } => {
                self.memory.alias(ptr, target, size);
                self.host_op()
            }
            Op::SyncMemops { ptr, on } => {
                self.memory.set_sync_memops(ptr, on);
                self.host_op()
            }
            Op::Copy { stream, dst, src, dst_space, src_space, asynchronous, batch } => {
                self.copy(thread, stream, (dst, dst_space), (src, src_space), asynchronous, batch)
            }
            Op::AttributedCopy { stream, dst, src, dst_space, src_space, batch, source } => {
                let epoch = self.copy(thread, stream, (dst, dst_space), (src, src_space), true, batch);
                // cuda.h, CUmemcpySrcAccessOrder: "out of stream order", but over when the call
                // returns. A source read at any time is taken to be read with the rest of the copy,
                // which is the latest that it can be.
                self.last_source = (source == SourceOrder::DuringCall).then(|| self.host_epoch());
                epoch
            }
            Op::Set { stream, dst, asynchronous } => self.set(thread, stream, dst, asynchronous),
            Op::Launch { stream, .. } | Op::Prefetch { stream, .. } | Op::Opaque { stream } => self.stream_op(stream),
            Op::HostFunc { stream, func, .. } => {
                let epoch = self.stream_op(stream);
                let kept = self.start_clock().keep();
                self.host_funcs.insert(func.0, (epoch, kept));
                epoch
            }
            Op::HostFuncRun { func, done } => self.host_func_run(thread, func, done),
            Op::WriteValue { stream, address, value, barrier, .. } => {
                let epoch = self.stream_op(stream);
                let now = self.streams.slots[epoch.timeline.0 as usize].now(epoch.timeline.0);
                if self.values.write(address, Some(value), barrier, now, self.host.known()) {
                    self.released_waits();
                }
                epoch
            }
            Op::WaitValue { stream, address, value, width, compare } => {
                self.wait_value(stream, address, Condition { compare, value, width })
            }
            // External semaphores are values outside of memory; signals make earlier memory
            // visible, as writes with a barrier do.
            Op::SemaphoreSignal { stream, semaphore, value } => {
                let epoch = self.stream_op(stream);
                let now = self.streams.slots[epoch.timeline.0 as usize].now(epoch.timeline.0);
                if self.values.write(semaphore_address(semaphore), Some(value), true, now, self.host.known()) {
                    self.released_waits();
                }
                epoch
            }
            Op::SemaphoreWait { stream, semaphore, value } => {
                let condition = Condition { compare: WaitCompare::GreaterEqual, value, width: 8 };
                self.wait_value(stream, semaphore_address(semaphore), condition)
            }
            Op::GraphExec { exec, .. } => {
                self.graph_exec(exec);
                self.host_op()
            }
            Op::GraphNode { exec, index, enabled, tag, body, .. } => {
                self.graph_node(exec, index, enabled, tag, body);
                self.host_op()
            }
            Op::GraphExecDestroy { exec } => {
                self.execs.remove(&exec.0);
                self.host_op()
            }
            Op::GraphLaunch { stream, exec } => self.graph_launch(stream, exec),
            Op::HostThreads {} => {
                if self.options.host_threads && self.threads.is_none() {
                    self.threads = Some(Box::default());
                    self.enter_thread(op, thread);
                }
                self.host_op()
            }
            Op::HostEdge { object, acquire, start } => self.host_edge(object, acquire, start),
            // Captured streams make nodes, not work. Arrays, objects and ops yet to come order
            // nothing.
            _ => self.host_op(),
        }
    }

    /// An event captures "the contents of the stream at the time of the call"; recording again
    /// replaces the snapshot. An event fired by a kernel (programmatic, launch completion) says no
    /// more than that the kernel has started.
    #[unsafe(link_section = "streamsan_hot")]
    fn event_record_op(&mut self, event: EventId, stream: StreamId, mode: EventMode) -> Epoch {
        match mode {
            EventMode::Plain | EventMode::External => {
                let epoch = self.stream_op(stream);
                let slot = epoch.timeline.0;
                let now = self.streams.slots[slot as usize].now(slot);
                self.events.entry(event.0).or_default().set(now);
                epoch
            }
            EventMode::Programmatic | EventMode::LaunchCompletion => {
                let slot = self.slot(stream);
                let s = &self.streams.slots[slot as usize];
                let time = s.kernel_start.unwrap_or(s.time);
                let snapshot = Snapshot { own: Entry { slot, time }, clock: s.clock.clone(), exact: false };
                self.events.entry(event.0).or_default().set(snapshot);
                Epoch { timeline: TimelineId(slot), time: s.time }
            }
        }
    }

    /// `cuStreamWaitEvent`. A wait for an event that was never recorded ("the empty set") is
    /// nothing at all, not even an action of the legacy stream: measured on an H200
    /// (`tests/gpu/what_waits.cu`), a record on one blocking stream does not wait for another one
    /// across it. Its epoch is the stream's as it was.
    #[unsafe(link_section = "streamsan_hot")]
    fn stream_wait(&mut self, stream: StreamId, event: EventId) -> Epoch {
        let recorded = self.events.get(&event.0).is_some_and(|e| e.current().is_some());
        if !recorded {
            let slot = self.slot(stream);
            self.host_op();
            let s = &mut self.streams.slots[slot as usize];
            // Whether a kernel may still overlap one on the far side of such a wait was not
            // measured.
            s.kernel_start = None;
            return Epoch { timeline: TimelineId(slot), time: s.time };
        }
        let slot = self.begin(stream);
        self.join_event(slot, event);
        let upto = self.streams.slots[slot as usize].time;
        self.advance(slot, upto)
    }

    /// A clock takes in what the event captured last; an event never recorded is no order.
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn join_event(&mut self, slot: u32, event: EventId) {
        let known = self.host.known();
        let s = &mut self.streams.slots[slot as usize];
        if let Some(snapshot) = self.events.get(&event.0).and_then(|e| e.current()) {
            Self::join_stream(s, slot, snapshot, known);
        }
    }

    /// Host functions run in stream order. What the host does inside is ordered as the function's
    /// epoch is.
    fn host_func_run(&mut self, thread: ThreadId, func: HostFuncId, done: bool) -> Epoch {
        let found = if done { self.host_funcs.remove(&func.0) } else { self.host_funcs.get(&func.0).cloned() };
        let Some((epoch, clock)) = found else { return self.host_op() };
        if done && self.options.host_functions_signal {
            let slot = epoch.timeline.0;
            let snapshot = self.streams.slots.get(slot as usize).map(|s| s.at(slot, epoch.time));
            // How the driver's thread tells the others is not followed: all of them know.
            self.acquire_for_all(
                thread,
                &Covered { snapshot, ..Covered::default() },
                Holds { by_policy: true, promised: false },
            );
        }
        self.kept = Some(clock);
        self.last.view = View::Kept;
        epoch
    }

    fn wait_value(&mut self, stream: StreamId, address: u64, condition: Condition) -> Epoch {
        let slot = self.begin(stream);
        let known = self.host.known();
        let s = &mut self.streams.slots[slot as usize];
        match self.values.wait(address, condition, s.time, &s.clock, slot, known) {
            Answer::After(clock) => {
                s.keep_past();
                s.clock.join(&clock, slot, known);
                let upto = s.time;
                self.advance(slot, upto)
            }
            Answer::Open(wait) => {
                let upto = s.time;
                // The wait itself is not behind itself, and it touches its flag only when it is
                // released.
                s.keep_past();
                s.clock.put_behind(wait);
                self.advance(slot, upto)
            }
        }
    }

    /// Some open wait was released: streams behind it learn by what.
    #[cold]
    pub(crate) fn released_waits(&mut self) {
        let known = self.host.known();
        for (slot, s) in self.streams.slots.iter_mut().enumerate().skip(1) {
            if s.clock.is_behind() {
                s.clock.refresh(slot as u32, known);
                if !s.clock.is_behind() {
                    s.blocked_from = u64::MAX;
                }
            }
        }
    }

    /// Whether a stream waits for the legacy stream and is waited for by it.
    pub(crate) fn is_legacy(&self, slot: u32) -> bool {
        self.streams.slots[slot as usize].kind == StreamKind::Legacy
    }
}
