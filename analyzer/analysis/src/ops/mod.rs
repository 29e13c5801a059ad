//! What each op does: to memory, to the tables of streams and graphs, to the order on the host.
//!
//! Owns the dispatch from an op to the part that implements it, and the walk over the nodes of a
//! launched graph: `launch` handles kernels, `alloc_free` allocations and frees, `host_access` and
//! `host_touch` loads and stores of the host, `host_messages` what these may have told it, `inside`
//! what was found inside kernels, `stale_graphs` graphs that name memory which has ended. An op
//! that touches memory is compared with the remembered accesses. Does not decide which bytes an op
//! touches: that is [`detect::accesses`].
//!
//! Every function takes the [`ProcessState`] that it changes, and the [`ProcessFacts`] if it looks
//! up names or code. None of them knows the mode of the analysis.

mod alloc_free;
mod host_access;
mod host_messages;
mod host_touch;
mod inside;
pub(crate) mod launch;
mod stale_graphs;

use crate::process::facts::ProcessFacts;
use crate::process::op_context::OpContext;
use crate::process::state::ProcessState;
use detect::accesses::Work;
use detect::launches::dependence::Dependence;
use detect::launches::effects::Launch;
use detect::memory::Object;
use detect::memory::{AccessKind, Allocation, Cause, Site};
use detect::state::graphs::Graph;
use detect::state::streams::Stream;
use trace::launch_flags::{INSIDE_LIBRARY, PARAMS_UNKNOWN};
use trace::{ContextId, Epoch, MemoryKind, Op, Origin, StreamId, StreamKind};

/// Applies an op that has its place in the order.
pub(crate) fn act(state: &mut ProcessState, facts: &mut ProcessFacts, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
    if matches!(op, Op::Copy { .. } | Op::AttributedCopy { .. } | Op::GraphLaunch { .. }) {
        state.latest.insert(origin.thread, epoch);
    }
    match *op {
        Op::Checking { on } => {
            // Writes made while checking is off are not seen.
            state.memory.contents.forget_all();
            state.submissions.staged_copy = None;
            state.paused = !on;
        }
        Op::RangePush { .. }
        | Op::RangePop {}
        | Op::RangeStart { .. }
        | Op::RangeEnd { .. }
        | Op::DomainPush { .. }
        | Op::DomainPop { .. } => state.submissions.regions.apply(op, origin.thread),
        Op::Launch { .. }
        | Op::Copy { .. }
        | Op::AttributedCopy { .. }
        | Op::Set { .. }
        | Op::WriteValue { .. }
        | Op::Prefetch { .. }
        | Op::HostTransfer { .. }
        | Op::GraphLaunch { .. }
            if state.paused =>
        {
            state.coverage.paused += 1;
        }
        Op::Launch { .. }
        | Op::Copy { .. }
        | Op::AttributedCopy { .. }
        | Op::Set { .. }
        | Op::WriteValue { .. }
        | Op::Prefetch { .. }
        | Op::HostTransfer { .. } => {
            state.memory.escapes.begin(origin.thread, &state.memory.strays);
            {
                let context = state.submissions.context(origin, epoch);
                work(state, facts, op, context, None);
            };
            if matches!(op, Op::HostTransfer { .. }) {
                host_touch::host_transfer(state, facts);
            }
            state.memory.escapes.end();
            state.memory.contents.forget_fleeting();
        }
        Op::GraphLaunch { stream, exec } => launch_graph(state, facts, stream, exec, origin, epoch),
        Op::Alloc { .. } | Op::Free { .. } => {
            let context = state.submissions.context(origin, epoch);
            work(state, facts, op, context, None);
        }
        Op::ContextCreate { .. } => {
            facts.names.define(op);
        }
        Op::ContextDestroy { context } => state.memory.destroy_context(context, origin.stack),
        Op::StreamCreate { stream, context, kind, handle, .. } => {
            let (stack, thread) = (origin.stack, origin.thread);
            state.streams.create(Stream { id: stream, kind, context, stack, thread, handle, taken: None });
        }
        Op::RequestStart { request: id } => {
            let (stack, thread, context) = (origin.stack, origin.thread, ContextId::REQUESTS);
            let kind = StreamKind::NonBlocking;
            state.streams.create(Stream { id, kind, context, stack, thread, handle: 0, taken: None });
        }
        Op::RequestDone { request } => state.streams.destroy(request),
        Op::Failed { result, stream } => {
            let ordering = &state.ordering;
            let is_capture = result == detect::faults::UNJOINED;
            let capture = is_capture.then(|| state.captures.take_unjoined(origin.thread)).flatten();
            state.submissions.faults.failed(result, stream, origin, capture, |epoch| ordering.host_saw(epoch));
        }
        Op::StreamTaken { stream } => state.streams.taken(stream, origin.stack),
        Op::StreamName { stream, name } => state.streams.name(stream, &name.lossy()),
        Op::StreamDestroy { stream } => state.streams.destroy(stream),
        Op::EventRecord { event, stream, .. } => state.streams.record(event, stream, epoch, origin.stack),
        Op::StreamWait { stream, event, .. } => state.streams.wait(stream, event, origin.stack),
        Op::OrderFailed { result, stream, records, .. } => state.streams.failed(stream, records, result, origin),
        Op::EventReached { record, .. } => state.streams.reached(origin.thread, record, origin.stack),
        Op::EventDestroy { event } => state.streams.destroy_event(event),
        Op::Contents { ptr, bytes } => {
            let staged = std::mem::take(&mut state.submissions.staged_copy);
            let pinned =
                matches!(state.memory.root_kind(ptr), Some(MemoryKind::PinnedHost | MemoryKind::RegisteredHost));
            if pinned || staged == Some((origin.thread, ptr)) {
                Work::learn(&mut state.memory, bytes, ptr);
            }
        }
        Op::Alias { ptr, target, size } => state.memory.alias(ptr, target, size),
        Op::Unalias { ptr } => {
            state.memory.unalias(ptr);
        }
        Op::MemoryName { ptr, name, heap } => {
            let (name, heap) = (name.lossy(), heap.lossy());
            let both = [&*name, &*heap].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            state.memory.name(ptr, &both.join(" in "));
        }
        Op::Global { ptr, size, image, name } => {
            let info = alloc_free::allocation(ptr, size, MemoryKind::ModuleGlobal, origin);
            state.memory.name_global(image, &name.lossy(), info);
        }
        Op::ArrayCreate { array, size, .. } => {
            let info = Allocation { kind: None, ..alloc_free::allocation(0, size, MemoryKind::Device, origin) };
            state.memory.array(array, info);
        }
        Op::ArrayAt { array, address } => state.memory.array_at(array, address),
        Op::ArrayLevels { array, ends } => state.memory.array_levels(array, ends.iter().collect()),
        Op::ArrayDestroy { array } => {
            let view = state.ordering.view(epoch, None);
            let site = state.submissions.context(origin, epoch).site(Cause::Free, StreamId::NONE);
            Work::new(&mut state.memory, view, site, &mut state.races, state.options.judging.pedantic)
                .whole_array(array);
            if let Some(info) = state.memory.array_info(array).copied() {
                stale_graphs::freed(state, &info, site, epoch, false);
            }
            state.memory.destroy_array(array);
        }
        Op::ObjectCreate { object, region, writable } => state.memory.object(object, Object { region, writable }),
        Op::TensorMap { .. } => state.memory.tensor_maps.record(op, origin.stack),
        Op::ObjectDestroy { object } => state.memory.destroy_object(object),
        // Its clock may be behind a wait that is forgotten by the time it runs.
        Op::HostFunc { .. } if state.gaps.are_doubtful() => {}
        Op::HostFunc { func, .. } => state.touches.function_enqueued(func, state.ordering.times()),
        Op::HostFuncRun { func, done: true } => {
            let unknown = state.touches.function_ended(func, &state.ordering);
            state.races.extend(unknown);
        }
        Op::HostThreads {} => state.has_host_edges = true,
        Op::GraphExec { exec, nodes, .. } => {
            state.graphs.define(exec, nodes);
            state.stale_graphs.define(exec, origin.stack);
        }
        Op::GraphNode { tag, dependencies, .. } => {
            stale_graphs::node_told(state, facts, op);
            let (code, names) = (&mut facts.code, &facts.names);
            let arch = names.arch(trace::ContextId::NONE);
            if tag == trace::tag::Launch && dependencies.iter().any(|d| d.port != 0) {
                state.coverage.count_overlap(arch);
            }
            // A kernel is not looked at before the device is known, because that is cached.
            let dependence = |kernel, launch: &Launch<'_>| match order::has_programmatic_launches(arch) {
                true => code.dependence_in((kernel, names.kernel(kernel), arch), launch),
                false => Dependence::ORDERED,
            };
            let known = state.graphs.node(op, dependence);
            state.coverage.damaged += u64::from(!known);
        }
        Op::NodeOf { exec, index, part, node } => state.graphs.node_of(exec, index, part, node),
        Op::NodeConditional { exec, index, .. } => state.graphs.node_conditional(exec, index),
        Op::CaptureStart { .. }
        | Op::CaptureRecord { .. }
        | Op::CaptureWait { .. }
        | Op::CaptureNode { .. }
        | Op::CaptureChanged { .. }
        | Op::CaptureDone { .. } => {
            state.memory.escapes.capture(op, origin.thread);
            state.stale_graphs.capture(op, &state.memory);
            state.captures.apply(op, origin);
        }
        Op::NodeCaptured { exec, index, stream } => state.graphs.node_captured(exec, index, stream),
        Op::GraphExecDestroy { exec } => {
            state.graphs.destroy(exec);
            state.stale_graphs.destroy(exec);
        }
        Op::HostWatch { .. } => host_access::watch(state, op, origin),
        Op::HostAccess { .. } => host_access::host_access(state, op, origin, epoch),
        Op::WaitsMet { watch } => state.watches.waits_met(watch),
        Op::HostLook { start, end } => host_messages::look(state, start, end),
        Op::HostTouch { .. } => host_touch::host_touch(state, facts, op, origin, epoch),
        Op::HostWatched { ptr } => state.memory.watched(ptr),
        _ => {}
    }
}

/// An op that touches memory, by itself or as a node of a graph.
fn work(
    state: &mut ProcessState,
    facts: &mut ProcessFacts,
    op: &Op<'_>,
    context: OpContext,
    node: Option<(&Graph, u32)>,
) {
    state.submissions.staged_copy = None;
    match *op {
        Op::Launch { stream, kernel, shape, params } => {
            // It needs neither parameters nor code.
            let number = node.map_or(0, |(_, index)| index + 1);
            inside::take(state, facts, context.origin.epoch, number, || Site {
                kernel,
                node: number,
                ..context.site(Cause::Kernel, stream)
            });
            if shape.flags & INSIDE_LIBRARY != 0 {
                // The op of the library itself says what is touched.
                state.coverage.launches += 1;
                state.coverage.launches_exact += 1;
                return;
            }
            if shape.flags & PARAMS_UNKNOWN != 0 {
                state.coverage.launches += 1;
                state.coverage.launch_unknown("the parameters are not known");
                state.memory.strays.anywhere();
                return;
            }
            launch::launch(state, facts, stream, kernel, &Launch { shape, params }, context, node);
        }
        Op::Copy { stream, ref dst, ref src, dst_space, src_space, batch, .. }
        | Op::AttributedCopy { stream, ref dst, ref src, dst_space, src_space, batch, .. } => {
            state.coverage.memory_ops += 1;
            let site = Site { batch, ..context.site(Cause::Copy, stream) };
            let staged = node.is_none() && state.ordering.source_is_read();
            match state.ordering.view_of_source(context.epoch).filter(|_| node.is_none()) {
                Some(view) => {
                    Work::new(&mut state.memory, view, site, &mut state.races, state.options.judging.pedantic)
                        .source(src, src_space, staged);
                    at(state, context, site, node).target(dst, dst_space);
                }
                None => at(state, context, site, node).copy(dst, src, (dst_space, src_space), staged),
            }
            // Only pageable memory is read before the call returns. Pinned memory may still
            // change.
            let pageable = node.is_none() && state.memory.locate(src.start).is_none();
            state.submissions.staged_copy = pageable.then_some((context.origin.thread, dst.start));
        }
        Op::Set { stream, ref dst, .. } => {
            state.coverage.memory_ops += 1;
            let site = context.site(Cause::Set, stream);
            let kind = AccessKind::Write;
            at(state, context, site, node).region(dst, kind, trace::Space::Unified, true);
        }
        Op::HostTransfer { request, ref region, reads, writes, exact } => {
            state.coverage.memory_ops += 1;
            let site = context.site(Cause::Message, request);
            for (_, kind) in [(reads, AccessKind::Read), (writes, AccessKind::Write)].iter().filter(|(does, _)| *does) {
                at(state, context, site, node).transfer(region, *kind, exact, !request.is_none());
            }
        }
        Op::WriteValue { stream, address, width, .. } => {
            let site = context.site(Cause::Value, stream);
            at(state, context, site, node).value(address, width);
        }
        Op::Prefetch { stream, ref region, discard: true } => {
            let site = context.site(Cause::Discard, stream);
            let kind = AccessKind::Write;
            at(state, context, site, node).region(region, kind, trace::Space::Device, false);
        }
        Op::Alloc { ptr, size, kind, stream, .. } => {
            alloc_free::alloc(state, op, ptr, size, kind, stream, context, node)
        }
        Op::Free { ptr, kind, stream } => alloc_free::free(state, ptr, kind, stream, context, node),
        _ => {}
    }
}

/// The recorder of the accesses of an op.
fn at<'a>(state: &'a mut ProcessState, context: OpContext, site: Site, node: Option<(&'a Graph, u32)>) -> Work<'a, 'a> {
    let view = state.ordering.view(context.epoch, node);
    let site = Site { node: node.map_or(0, |(_, i)| i + 1), ..site };
    let supposed = state.exact.supposed();
    Work::new(&mut state.memory, view, site, &mut state.races, state.options.judging.pedantic).suppose(supposed)
}

/// Applies the nodes of a graph.
fn launch_graph(
    state: &mut ProcessState,
    facts: &mut ProcessFacts,
    stream: StreamId,
    exec: trace::GraphExecId,
    origin: &Origin,
    epoch: Epoch,
) {
    state.coverage.graph_launches += 1;
    let Some(graph) = state.graphs.take(exec) else {
        *state.coverage.unobserved.entry("launch of a graph that was never seen".to_string()).or_default() += 1;
        return;
    };
    stale_graphs::launched(state, facts, &graph, (stream, exec), origin, epoch);
    let launched = origin.stack;
    for &index in graph.sequence() {
        let Some(node) = graph.node(index) else { continue };
        let Some(op) = node.op() else { continue };
        if let Op::HostFunc { func, address, .. } = op {
            // Of the others it is not said when they run.
            let is_told = address != 0 && !state.gaps.any();
            state.watches.graph_signals(epoch, &graph, index, is_told.then_some(func));
            if is_told {
                state.touches.function_launched(func, (exec, index), state.ordering.times());
            }
        }
        let origin = Origin { stack: node.stack, call: node.call, ..*origin };
        let own = state.ordering.begin_node(exec, index, epoch);
        let context = OpContext {
            graph: Some((stream, launched)),
            is_conditional: node.is_conditional,
            ..state.submissions.context(&origin, own)
        };
        let watched = !state.memory.escapes.is_idle();
        if watched {
            state.memory.escapes.node(node.parts().iter().map(|(_, number)| *number));
        }
        work(state, facts, &op, context, Some((&graph, index)));
        if watched {
            state.memory.escapes.node(std::iter::empty());
        }
    }
    state.ordering.end_nodes(exec);
    if !state.memory.escapes.is_idle() {
        let has = |number: &u32| graph.numbers().any(|of| of == *number);
        state.memory.escapes.launched(|nodes| nodes.iter().any(has));
    }
    state.graphs.put(exec, graph);
}
