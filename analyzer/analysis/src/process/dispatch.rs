//! What each op does: to memory, to the tables of names, to the order on the host.
//!
//! Owns the dispatch from an op to the part that implements it, and the walk over the nodes of a
//! launched graph. Does not decide which bytes an op touches: that is [`detect::accesses`].

use super::{Analysis, OpContext};
use detect::accesses::Work;
use detect::launches::effects::Launch;
use detect::memory::Object;
use detect::memory::{AccessKind, Allocation, Cause, Site};
use detect::state::graphs::Graph;
use detect::state::streams::Stream;
use trace::launch_flags::{INSIDE_LIBRARY, PARAMS_UNKNOWN};
use trace::{ContextId, Epoch, MemoryKind, Op, Origin, StreamId, StreamKind};

impl Analysis {
    pub(super) fn act(&mut self, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
        if matches!(op, Op::Copy { .. } | Op::AttributedCopy { .. } | Op::GraphLaunch { .. }) {
            self.latest.insert(origin.thread, epoch);
        }
        match *op {
            Op::Checking { on } => {
                // Writes made while checking is off are not seen.
                self.memory.contents.forget_all();
                self.submissions.staged_copy = None;
                self.paused = !on;
            }
            Op::RangePush { .. }
            | Op::RangePop {}
            | Op::RangeStart { .. }
            | Op::RangeEnd { .. }
            | Op::DomainPush { .. }
            | Op::DomainPop { .. } => self.submissions.regions.apply(op, origin.thread),
            Op::Launch { .. }
            | Op::Copy { .. }
            | Op::AttributedCopy { .. }
            | Op::Set { .. }
            | Op::WriteValue { .. }
            | Op::Prefetch { .. }
            | Op::HostTransfer { .. }
            | Op::GraphLaunch { .. }
                if self.paused =>
            {
                self.coverage.paused += 1;
            }
            Op::Launch { .. }
            | Op::Copy { .. }
            | Op::AttributedCopy { .. }
            | Op::Set { .. }
            | Op::WriteValue { .. }
            | Op::Prefetch { .. }
            | Op::HostTransfer { .. } => {
                self.memory.escapes.begin(origin.thread, &self.memory.strays);
                self.work(op, self.submissions.context(origin, epoch), None);
                self.memory.escapes.end();
                self.memory.contents.forget_fleeting();
            }
            Op::GraphLaunch { stream, exec } => self.launch_graph(stream, exec, origin, epoch),
            Op::Alloc { .. } | Op::Free { .. } => self.work(op, self.submissions.context(origin, epoch), None),
            Op::ContextCreate { .. } => {
                self.names.define(op);
            }
            Op::ContextDestroy { context } => self.memory.destroy_context(context, origin.stack),
            Op::StreamCreate { stream, context, kind, handle, .. } => {
                let (stack, thread) = (origin.stack, origin.thread);
                self.streams.create(Stream { id: stream, kind, context, stack, thread, handle, taken: None });
            }
            Op::RequestStart { request: id } => {
                let (stack, thread, context) = (origin.stack, origin.thread, ContextId::REQUESTS);
                let kind = StreamKind::NonBlocking;
                self.streams.create(Stream { id, kind, context, stack, thread, handle: 0, taken: None });
            }
            Op::RequestDone { request } => self.streams.destroy(request),
            Op::Failed { result, stream } => {
                let ordering = &self.ordering;
                let is_capture = result == detect::faults::UNJOINED;
                let capture = is_capture.then(|| self.captures.take_unjoined(origin.thread)).flatten();
                self.submissions.faults.failed(result, stream, origin, capture, |epoch| ordering.host_saw(epoch));
            }
            Op::StreamTaken { stream } => self.streams.taken(stream, origin.stack),
            Op::StreamName { stream, name } => self.streams.name(stream, &name.lossy()),
            Op::StreamDestroy { stream } => self.streams.destroy(stream),
            Op::EventRecord { event, stream, .. } => self.streams.record(event, stream, epoch, origin.stack),
            Op::StreamWait { stream, event, .. } => self.streams.wait(stream, event, origin.stack),
            Op::OrderFailed { result, stream, records, .. } => self.streams.failed(stream, records, result, origin),
            Op::EventReached { record, .. } => self.streams.reached(origin.thread, record, origin.stack),
            Op::EventDestroy { event } => self.streams.destroy_event(event),
            Op::Contents { ptr, bytes } => {
                let staged = std::mem::take(&mut self.submissions.staged_copy);
                let pinned =
                    matches!(self.memory.root_kind(ptr), Some(MemoryKind::PinnedHost | MemoryKind::RegisteredHost));
                if pinned || staged == Some((origin.thread, ptr)) {
                    Work::learn(&mut self.memory, bytes, ptr);
                }
            }
            Op::Alias { ptr, target, size } => self.memory.alias(ptr, target, size),
            Op::Unalias { ptr } => {
                self.memory.unalias(ptr);
            }
            Op::MemoryName { ptr, name, heap } => {
                let (name, heap) = (name.lossy(), heap.lossy());
                let both = [&*name, &*heap].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
                self.memory.name(ptr, &both.join(" in "));
            }
            Op::Global { ptr, size, image, name } => {
                let info = Self::allocation(ptr, size, MemoryKind::ModuleGlobal, origin);
                self.memory.name_global(image, &name.lossy(), info);
            }
            Op::ArrayCreate { array, size, .. } => {
                let info = Allocation { kind: None, ..Self::allocation(0, size, MemoryKind::Device, origin) };
                self.memory.array(array, info);
            }
            Op::ArrayAt { array, address } => self.memory.array_at(array, address),
            Op::ArrayDestroy { array } => {
                let view = self.ordering.view(epoch, None);
                let site = self.submissions.context(origin, epoch).site(Cause::Free, StreamId::NONE);
                Work::new(&mut self.memory, view, site, &mut self.races, self.options.pedantic).whole_array(array);
                self.memory.destroy_array(array);
            }
            Op::ObjectCreate { object, region, writable } => self.memory.object(object, Object { region, writable }),
            Op::ObjectDestroy { object } => self.memory.destroy_object(object),
            // Its clock may be behind a wait that is forgotten by the time it runs.
            Op::HostFunc { .. } if self.gaps.are_doubtful() => {}
            Op::HostFunc { func, .. } => self.touches.function_enqueued(func, self.ordering.times()),
            Op::HostFuncRun { func, done: true } => {
                let unknown = self.touches.function_ended(func, &self.ordering);
                self.races.extend(unknown);
            }
            Op::HostThreads {} => self.has_host_edges = true,
            Op::GraphExec { exec, nodes, .. } => self.graphs.define(exec, nodes),
            Op::GraphNode { .. } => {
                let (code, names) = (&mut self.code, &self.names);
                let arch = names.arch(trace::ContextId::NONE);
                // A kernel is not looked at before the device is known, because that is cached.
                let coverage = &mut self.coverage;
                let waits = |kernel| {
                    coverage.count_overlap(arch);
                    !order::has_programmatic_launches(arch) || code.waits(kernel, names.kernel(kernel), arch)
                };
                let known = self.graphs.node(op, waits);
                self.coverage.damaged += u64::from(!known);
            }
            Op::NodeOf { exec, index, part, node } => self.graphs.node_of(exec, index, part, node),
            Op::NodeConditional { exec, index, .. } => self.graphs.node_conditional(exec, index),
            Op::CaptureStart { .. }
            | Op::CaptureRecord { .. }
            | Op::CaptureWait { .. }
            | Op::CaptureNode { .. }
            | Op::CaptureChanged { .. }
            | Op::CaptureDone { .. } => {
                self.memory.escapes.capture(op, origin.thread);
                self.captures.apply(op, origin);
            }
            Op::NodeCaptured { exec, index, stream } => self.graphs.node_captured(exec, index, stream),
            Op::GraphExecDestroy { exec } => self.graphs.destroy(exec),
            Op::HostWatch { .. } => self.watch(op, origin),
            Op::HostAccess { .. } => self.host_access(op, origin, epoch),
            Op::HostTouch { .. } => self.host_touch(op, origin, epoch),
            Op::HostWatched { ptr } => self.memory.watched(ptr),
            _ => {}
        }
    }

    /// An op that touches memory, by itself or as a node of a graph.
    pub(super) fn work(&mut self, op: &Op<'_>, context: OpContext, node: Option<(&Graph, u32)>) {
        self.submissions.staged_copy = None;
        match *op {
            Op::Launch { stream, kernel, shape, params } => {
                if shape.flags & INSIDE_LIBRARY != 0 {
                    // The op of the library itself says what is touched.
                    self.coverage.launches += 1;
                    self.coverage.launches_exact += 1;
                    return;
                }
                if shape.flags & PARAMS_UNKNOWN != 0 {
                    self.coverage.launches += 1;
                    self.coverage.launch_unknown("the parameters are not known");
                    self.memory.strays.anywhere();
                    return;
                }
                self.launch(stream, kernel, &Launch { shape, params }, context, node);
            }
            Op::Copy { stream, ref dst, ref src, dst_space, src_space, batch, .. }
            | Op::AttributedCopy { stream, ref dst, ref src, dst_space, src_space, batch, .. } => {
                self.coverage.memory_ops += 1;
                let site = Site { batch, ..context.site(Cause::Copy, stream) };
                let staged = node.is_none() && self.ordering.source_is_read();
                match self.ordering.view_of_source(context.epoch).filter(|_| node.is_none()) {
                    Some(view) => {
                        Work::new(&mut self.memory, view, site, &mut self.races, self.options.pedantic)
                            .source(src, src_space, staged);
                        self.at(context, site, node).target(dst, dst_space);
                    }
                    None => self.at(context, site, node).copy(dst, src, (dst_space, src_space), staged),
                }
                // Only pageable memory is read before the call returns. Pinned memory may still
                // change.
                let pageable = node.is_none() && self.memory.locate(src.start).is_none();
                self.submissions.staged_copy = pageable.then_some((context.origin.thread, dst.start));
            }
            Op::Set { stream, ref dst, .. } => {
                self.coverage.memory_ops += 1;
                let site = context.site(Cause::Set, stream);
                let kind = AccessKind::Write;
                self.at(context, site, node).region(dst, kind, trace::Space::Unified, true);
            }
            Op::HostTransfer { request, ref region, reads, writes, exact } => {
                self.coverage.memory_ops += 1;
                let site = context.site(Cause::Message, request);
                for (_, kind) in
                    [(reads, AccessKind::Read), (writes, AccessKind::Write)].iter().filter(|(does, _)| *does)
                {
                    self.at(context, site, node).transfer(region, *kind, exact, !request.is_none());
                }
            }
            Op::WriteValue { stream, address, width, .. } => {
                let site = context.site(Cause::Value, stream);
                self.at(context, site, node).value(address, width);
            }
            Op::Prefetch { stream, ref region, discard: true } => {
                let site = context.site(Cause::Discard, stream);
                let kind = AccessKind::Write;
                self.at(context, site, node).region(region, kind, trace::Space::Device, false);
            }
            Op::Alloc { ptr, size, kind, stream, .. } => self.alloc(op, ptr, size, kind, stream, context, node),
            Op::Free { ptr, kind, stream } => self.free(ptr, kind, stream, context, node),
            _ => {}
        }
    }

    pub(super) fn at<'a>(&'a mut self, context: OpContext, site: Site, node: Option<(&'a Graph, u32)>) -> Work<'a, 'a> {
        let view = self.ordering.view(context.epoch, node);
        let site = Site { node: node.map_or(0, |(_, i)| i + 1), ..site };
        let supposed = self.confirm.as_mut().map(|c| &mut c.supposed);
        Work::new(&mut self.memory, view, site, &mut self.races, self.options.pedantic).suppose(supposed)
    }

    pub(super) fn launch_graph(&mut self, stream: StreamId, exec: trace::GraphExecId, origin: &Origin, epoch: Epoch) {
        self.coverage.graph_launches += 1;
        let Some(mut graph) = self.graphs.take(exec) else {
            *self.coverage.unobserved.entry("launch of a graph that was never seen".to_string()).or_default() += 1;
            return;
        };
        if self.replan.is_some() {
            self.replan_graph(&mut graph);
        }
        if self.assumed.is_some() {
            self.assume_graph(exec, &mut graph);
        }
        let launched = origin.stack;
        for &index in graph.sequence() {
            let Some(node) = graph.node(index) else { continue };
            let Some(op) = node.op() else { continue };
            if let Op::HostFunc { func, address, .. } = op {
                self.watches.graph_signals(epoch);
                // Of the others it is not said when they run.
                if address != 0 && !self.gaps.any() {
                    self.touches.function_launched(func, (exec, index), self.ordering.times());
                }
            }
            let origin = Origin { stack: node.stack, call: node.call, ..*origin };
            let context = OpContext {
                graph: Some((stream, launched)),
                is_conditional: node.is_conditional,
                ..self.submissions.context(&origin, epoch)
            };
            if self.options.hints {
                self.hints.event_node(&op, stream, node.stack, &self.ordering.view(epoch, None));
            }
            let watched = !self.memory.escapes.is_idle();
            if watched {
                self.memory.escapes.node(node.parts().iter().map(|(_, number)| *number));
            }
            self.work(&op, context, Some((&graph, index)));
            if watched {
                self.memory.escapes.node(std::iter::empty());
            }
        }
        if !self.memory.escapes.is_idle() {
            let has = |number: &u32| graph.numbers().any(|of| of == *number);
            self.memory.escapes.launched(|nodes| nodes.iter().any(has));
        }
        self.graphs.put(exec, graph);
    }
}
