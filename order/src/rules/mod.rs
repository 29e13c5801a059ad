//! CUDA's rules of order, op by op.
//!
//! Owns what each op does to the clocks. Each rule names where it comes from: the programming guide
//! and `cuda.h` unless another source is given. What calls wait for beside that is in
//! [`crate::policy`].
//!
//! This file hands each op to its rule. The rules are methods of [`Engine`], so one may use
//! another: a graph launch joins events (`events`) and values (`stream_memops`), and copies, frees
//! and host functions acquire for the host (`host_sync`).

mod alloc_free;
mod copies;
mod events;
mod gap;
mod graphs;
mod host_sync;
mod host_threads;
mod stream_memops;

use trace::{ContextId, Epoch, Op, StreamKind, ThreadId, WaitCompare};

use crate::engine::Engine;
use crate::rules::stream_memops::semaphore_address;
use crate::state::host::{Covered, Guarantee};
use crate::state::left_values::LeftBytes;
use crate::state::sync_vars::Condition;

impl Engine {
    /// Applies any op but those that [`Engine::apply`] handles itself.
    pub(crate) fn apply_other(&mut self, op: &Op<'_>, thread: ThreadId) -> Epoch {
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
                self.events.entry(event.0).or_default().created = true;
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
                    self.acquire(thread, &covered, Guarantee::ALWAYS);
                }
                self.host_op()
            }
            Op::StreamIdle { stream, upto } => self.stream_idle(thread, stream, upto),
            Op::EventReached { event, record } => {
                let known = self.events.get(&event.0);
                let latest = self.resumed && known.is_some_and(|e| !e.created);
                let snapshot = known.and_then(|e| if latest { e.current() } else { e.of_record(record) }).cloned();
                if snapshot.is_some() {
                    self.acquire(thread, &Covered { snapshot, ..Covered::default() }, Guarantee::ALWAYS);
                }
                self.host_op()
            }
            Op::Alloc { ptr, size, kind, context, stream, .. } => self.alloc(ptr, size, kind, context, stream),
            Op::Free { ptr, kind, stream } => self.free(thread, ptr, kind, stream),
            Op::ArrayDestroy { .. } => self.free_array(thread),
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
                self.copy(thread, stream, (dst, dst_space), (src, src_space), asynchronous, batch)
            }
            Op::AttributedCopy { stream, dst, src, dst_space, src_space, batch, source } => {
                self.attributed_copy(thread, stream, (dst, dst_space), (src, src_space), batch, source)
            }
            Op::Set { stream, dst, asynchronous } => self.set(thread, stream, dst, asynchronous),
            Op::Filled { dst, value, element } => {
                self.bytes_known(thread, dst.start, LeftBytes::Pattern { value, element });
                self.host_op()
            }
            Op::Contents { ptr, bytes } => {
                self.bytes_known(thread, ptr, LeftBytes::Listed(bytes));
                self.host_op()
            }
            Op::Launch { stream, .. } | Op::Prefetch { stream, .. } | Op::Opaque { stream } => self.stream_op(stream),
            Op::HostFunc { stream, func, .. } => {
                let epoch = self.stream_op(stream);
                let kept = self.start_clock().snapshot();
                self.host_funcs.insert(func.0, (epoch, kept));
                epoch
            }
            Op::HostFuncRun { func, done } => self.host_func_run(thread, func, done),
            Op::HostTouch { func, .. } if !func.is_none() => self.host_func_touch(func),
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
            Op::RequestStart { request } => {
                self.create_stream(request, ContextId::REQUESTS, StreamKind::NonBlocking);
                self.host_op()
            }
            Op::HostTransfer { request, .. } if !request.is_none() => self.stream_op(request),
            Op::RequestDone { request } => self.request_done(thread, request),
            Op::Gap { resumed } => self.gap(resumed),
            Op::HostEdge { object, acquire, start } => self.host_edge(object, acquire, start),
            // Captured streams make nodes, not work. Arrays, objects and ops yet to come order
            // nothing.
            _ => self.host_op(),
        }
    }
}
