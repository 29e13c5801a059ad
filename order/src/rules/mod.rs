//! CUDA's rules of order, op by op.
//!
//! Owns what each op does to the clocks. Each rule names where it comes from: the programming guide
//! and `cuda.h` unless another source is given. What calls wait for beside that is in
//! [`crate::policy`].
//!
//! This file hands each op to its rule ([`Engine::apply`]). A rule is a function that takes the
//! engine, and one may use another: a graph launch joins events (`events`) and values
//! (`stream_memops`), and copies, frees and host functions acquire for the host (`host_sync`).

mod alloc_free;
mod copies;
mod events;
mod gap;
mod graphs;
mod host_sync;
mod stream_memops;

use trace::{
    ContextId, Epoch, FreeKind, KernelId, LaunchShape, MemoryKind, Op, StreamId, StreamKind, ThreadId, WaitCompare,
};

use crate::condition::Condition;
use crate::engine::Engine;
use crate::rules::alloc_free::{alloc, free, free_array};
use crate::rules::copies::{attributed_copy, bytes_known, copy, fill};
use crate::rules::events::{context_record, context_wait, event_reached, event_record_op, stream_wait};
use crate::rules::gap::gap;
use crate::rules::graphs::{graph_exec, graph_exec_destroy, graph_launch, graph_node};
use crate::rules::host_sync::{
    acquire, context_destroy, host_func_run, host_func_touch, request_done, stream_idle, sync_begin,
};
use crate::rules::stream_memops::semaphore_address;
use crate::state::host::Guarantee;
use crate::state::last_kernel::{Began, LastKernel, Overlap};
use crate::state::left_values::LeftBytes;

impl Engine {
    /// Applies one op, made by host thread `thread`. Answers the op's epoch: of its stream for ops
    /// of a stream, of the host for all others. Definitions change nothing here: devices come by
    /// [`Engine::define_device`].
    ///
    /// Ops must come in the order of the calls; ops on one stream in the order in which they were
    /// enqueued.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn apply(&mut self, op: &Op<'_>, thread: ThreadId) -> Epoch {
        if self.threads.is_some() {
            self.enter_thread(op, thread);
        }
        match *op {
            Op::Launch { stream, kernel, shape: LaunchShape { flags, .. }, .. } => {
                let overlaps = flags & trace::launch_flags::PROGRAMMATIC_SERIALIZATION != 0;
                self.launch(stream, kernel, overlaps.then(Overlap::default))
            }
            // What a program's own allocator does says nothing of order, and it does much of it.
            Op::Alloc { kind: MemoryKind::Block, .. } | Op::Free { kind: FreeKind::Block, .. } => {
                self.tick();
                self.host_op()
            }
            // Libraries make an event for each wait: these four are most of what they do beside
            // launches.
            Op::EventCreate { event, .. } => {
                self.tick();
                self.events.entry(event.0).or_default().created = true;
                self.host_op()
            }
            Op::EventDestroy { event } => {
                self.tick();
                self.events.remove(&event.0);
                self.host_op()
            }
            Op::EventRecord { event, stream, mode } => {
                self.tick();
                event_record_op(self, event, stream, mode)
            }
            Op::StreamWait { stream, event, .. } => {
                self.tick();
                stream_wait(self, stream, event)
            }
            _ => self.apply_other(op, thread),
        }
    }

    /// Applies a launch that does not overlap its predecessor, whatever its flags say.
    ///
    /// [`Engine::apply`] takes a launch with [`trace::launch_flags::PROGRAMMATIC_SERIALIZATION`] as
    /// one by a kernel that never waits, where the device has programmatic dependent launch;
    /// [`Engine::apply_overlapping_launch`] knows better.
    pub fn apply_plain_launch(&mut self, stream: StreamId, kernel: KernelId, thread: ThreadId) -> Epoch {
        self.enter_launch(stream, thread);
        self.launch(stream, kernel, None)
    }

    /// Applies a launch whose attributes say that it may overlap its predecessor, by a kernel of
    /// which is known whether it waits. (Of any other [`Engine::apply`] takes it that it never
    /// does.)
    pub fn apply_overlapping_launch(
        &mut self,
        stream: StreamId,
        kernel: KernelId,
        thread: ThreadId,
        overlap: Overlap,
    ) -> Epoch {
        self.enter_launch(stream, thread);
        self.launch(stream, kernel, Some(overlap))
    }

    /// Whether the next launch of a stream comes behind the wait for an event that a kernel fires
    /// before it ends.
    #[inline]
    pub fn is_behind_fired(&self, stream: StreamId) -> bool {
        !self.behind_fired.is_empty()
            && self.streams.find(stream).is_some_and(|slot| self.behind_fired.contains_key(&slot))
    }

    /// Says of the kernel that such a launch is of whether it waits (`griddepcontrol.wait`): then
    /// it is ordered behind the end of the kernel that fired the event (cuda.h,
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`: "dependent launches can choose to wait on the
    /// dependency using the programmatic sync"). What it does before its wait counts as behind it,
    /// too, which errs towards order.
    pub fn launch_behind_fired(&mut self, stream: StreamId, waits: bool) {
        let slot = self.slot(stream);
        if let Some(end) = self.behind_fired.remove(&slot).filter(|_| waits) {
            let floor = self.host.floor_ref();
            Engine::join_stream(&mut self.streams.slots[slot as usize], slot, &end, floor);
        }
    }

    #[cold]
    pub(crate) fn overlapping_launch(&mut self, slot: u32, kernel: KernelId, overlap: Overlap) -> Epoch {
        let s = &self.streams.slots[slot as usize];
        let all = Began::after(s.time);
        // The programmatic dependency is on a kernel directly before; anything in between is waited
        // for as usual.
        let began = if s.kernel_start.is_some() { s.kernel.opened(overlap.before) } else { all };
        let start = if overlap.waits { all } else { began };
        let epoch = self.advance(slot, start.upto);
        self.last.also = start.also;
        self.early_launch = (overlap.waits && began != all).then_some((epoch, began));
        let s = &mut self.streams.slots[slot as usize];
        s.kernel_start = Some(start.upto);
        s.kernel = LastKernel { kernel, time: epoch.time, began, waits: overlap.waits };
        epoch
    }

    pub(crate) fn enter_launch(&mut self, stream: StreamId, thread: ThreadId) {
        if self.threads.is_some() {
            self.enter_thread(&Op::Opaque { stream }, thread);
        }
    }

    /// Applies any op but those that [`Engine::apply`] handles itself. Out of line: its code is
    /// three pages, which would lie among that of the usual path.
    #[inline(never)]
    fn apply_other(&mut self, op: &Op<'_>, thread: ThreadId) -> Epoch {
        if op.is_definition() {
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
            Op::ContextDestroy { context } => context_destroy(self, context, thread),
            Op::StreamCreate { stream, context, kind, .. } => {
                self.create_stream(stream, context, kind);
                self.host_op()
            }
            // "The call returns at once": no synchronisation, pending work goes on.
            Op::StreamDestroy { stream } => {
                self.streams.destroy(stream);
                self.host_op()
            }
            Op::ContextRecord { event, context } | Op::OthersRecord { event, context } => {
                context_record(self, event, context)
            }
            Op::ContextWait { context, event } => context_wait(self, context, event),
            Op::SyncBegin { sync, scope, stream, event, context } => {
                sync_begin(self, thread, sync, scope, stream, event, context)
            }
            Op::SyncEnd { sync } => {
                if let Some(covered) = self.host.end(thread, sync) {
                    acquire(self, thread, &covered, Guarantee::ALWAYS);
                }
                self.host_op()
            }
            Op::StreamIdle { stream, upto } => stream_idle(self, thread, stream, upto),
            Op::EventReached { event, record } => event_reached(self, thread, event, record),
            Op::Alloc { ptr, size, kind, context, stream, .. } => alloc(self, ptr, size, kind, context, stream),
            Op::Free { ptr, kind, stream } => free(self, thread, ptr, kind, stream),
            Op::ArrayDestroy { .. } => free_array(self, thread),
            Op::Alias { ptr, target, size } => {
                self.allocations.alias(ptr, target, size);
                self.host_op()
            }
            Op::Unalias { ptr } => {
                self.allocations.unalias(ptr);
                self.host_op()
            }
            Op::SyncMemops { ptr, on } => {
                self.allocations.set_sync_memops(ptr, on);
                self.host_op()
            }
            Op::Copy { stream, dst, src, dst_space, src_space, asynchronous, batch } => {
                copy(self, thread, stream, (dst, dst_space), (src, src_space), asynchronous, batch)
            }
            Op::AttributedCopy { stream, dst, src, dst_space, src_space, batch, source } => {
                attributed_copy(self, thread, stream, (dst, dst_space), (src, src_space), batch, source)
            }
            Op::Set { stream, dst, asynchronous } => fill(self, thread, stream, dst, asynchronous),
            Op::Filled { dst, value, element } => {
                bytes_known(self, thread, dst.start, LeftBytes::Pattern { value, element });
                self.host_op()
            }
            Op::Contents { ptr, bytes } => {
                bytes_known(self, thread, ptr, LeftBytes::Listed(bytes));
                self.host_op()
            }
            Op::Launch { stream, .. } | Op::Prefetch { stream, .. } | Op::Opaque { stream } => self.stream_op(stream),
            Op::HostFunc { stream, func, .. } => {
                let epoch = self.stream_op(stream);
                let kept = self.start_clock().snapshot();
                self.host_funcs.insert(func.0, (epoch, kept));
                epoch
            }
            Op::HostFuncRun { func, done } => host_func_run(self, thread, func, done),
            Op::HostTouch { func, .. } if !func.is_none() => host_func_touch(self, func),
            Op::WriteValue { stream, address, value, width, barrier } => {
                let epoch = self.stream_op(stream);
                let now = self.streams.slots[epoch.timeline.0 as usize].snapshot(epoch.timeline.0);
                if self.sync_vars.write_value((address, width), value, barrier, now, self.host.floor_ref()) {
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
                let now = self.streams.slots[epoch.timeline.0 as usize].snapshot(epoch.timeline.0);
                if self.sync_vars.write(semaphore_address(semaphore), Some(value), true, now, self.host.floor_ref()) {
                    self.released_waits();
                }
                epoch
            }
            Op::SemaphoreWait { stream, semaphore, value } => {
                let condition = Condition { compare: WaitCompare::GreaterEqual, value, width: 8 };
                self.wait_value(stream, semaphore_address(semaphore), condition)
            }
            Op::GraphExec { exec, .. } => {
                graph_exec(self, exec);
                self.host_op()
            }
            Op::GraphNode { exec, index, enabled, dependencies, tag, body, .. } => {
                graph_node(self, exec, index, enabled, (tag, body), dependencies.iter());
                self.host_op()
            }
            Op::GraphExecDestroy { exec } => {
                graph_exec_destroy(self, exec);
                self.host_op()
            }
            Op::GraphLaunch { stream, exec } => graph_launch(self, stream, exec),
            Op::HostThreads {} => {
                if self.options.host_threads && self.threads.is_none() {
                    self.threads = Some(Box::default());
                    self.enter_thread(op, thread);
                }
                self.host_op()
            }
            Op::RequestStart { request } => {
                self.create_stream(request, ContextId::REQUESTS, StreamKind::NonBlocking);
                self.host_op()
            }
            Op::HostTransfer { request, .. } if !request.is_none() => self.stream_op(request),
            Op::RequestDone { request } => request_done(self, thread, request),
            Op::Gap { resumed } => gap(self, resumed),
            Op::HostEdge { object, acquire, start } => self.host_edge(object, acquire, start),
            // Captured streams make nodes, not work. Arrays, objects and ops yet to come order
            // nothing.
            _ => self.host_op(),
        }
    }
}
