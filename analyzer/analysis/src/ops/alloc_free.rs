//! Allocations and frees: how the lifetime of memory begins and ends.
//!
//! Owns what an `Alloc` or a `Free` does: the new or ended lifetime, the accesses that a
//! stream-ordered allocation or any free stands for, and the watch over blocks that return to a
//! pool too early. Does not keep the lifetimes ([`detect::memory::Allocations`]).

use super::{at, stale_graphs};
use crate::process::op_context::OpContext;
use crate::process::state::ProcessState;
use detect::memory::{Allocation, AllocationId, Cause};
use detect::state::graphs::Graph;
use trace::{FreeKind, MemoryKind, Op, Origin, StreamId};

pub(super) fn allocation(ptr: u64, size: u64, kind: MemoryKind, origin: &Origin) -> Allocation {
    Allocation {
        id: AllocationId::NONE,
        ptr,
        size,
        kind: Some(kind),
        stack: origin.stack,
        call: origin.call,
        thread: origin.thread,
        stream: StreamId::NONE,
        context: trace::ContextId::NONE,
        freed: None,
        name: 0,
        levels: 0,
    }
}

#[expect(clippy::too_many_arguments, reason = "the fields of one op, taken apart by the caller")]
pub(super) fn alloc(
    state: &mut ProcessState,
    op: &Op<'_>,
    ptr: u64,
    size: u64,
    kind: MemoryKind,
    stream: StreamId,
    context: OpContext,
    node: Option<(&Graph, u32)>,
) {
    let Op::Alloc { context: cuda_context, .. } = *op else { return };
    let live = state.memory.root(ptr);
    // A module variable is announced whenever its address is queried, and a graph's memory at
    // each launch.
    let lasting = matches!(kind, MemoryKind::ModuleGlobal);
    if lasting && live.is_some_and(|a| a.size == size && a.kind == Some(kind)) {
        return;
    }
    // A graph that is launched again while its memory is still allocated frees it first
    // (cudaGraphInstantiateFlagAutoFreeOnLaunch; without the flag the launch fails).
    if kind == MemoryKind::GraphNode && live.is_some_and(|a| a.kind == Some(kind)) {
        free(state, ptr, FreeKind::Async, stream, context, node);
    }
    let mut info = allocation(ptr, size, kind, &context.origin);
    (info.stream, info.context) = (stream, cuda_context);
    let id = state.memory.alloc(info);
    state.submissions.early_free.forget(ptr, ptr.saturating_add(size));
    if kind == MemoryKind::Block && state.submissions.early_free.watches(stream) {
        let site = context.site(Cause::Alloc, stream);
        let view = state.ordering.view_of_stream(stream);
        state.submissions.early_free.handed_out(size, &view, site, &mut state.races);
    }
    // Memory of these kinds exists once its stream reaches the allocation. Other memory exists
    // when the call returns.
    if matches!(kind, MemoryKind::Pool | MemoryKind::GraphNode) {
        let site = context.site(Cause::Alloc, stream);
        at(state, context, site, node).whole(ptr, size, id, Cause::Alloc);
    }
}

pub(super) fn free(
    state: &mut ProcessState,
    ptr: u64,
    kind: FreeKind,
    stream: StreamId,
    context: OpContext,
    node: Option<(&Graph, u32)>,
) {
    let stack = context.origin.stack;
    if kind == FreeKind::Block {
        if let Some((mut info, home)) = state.memory.block(ptr).filter(|(info, _)| !info.stream.is_none()) {
            // Some pools return a block to the stream that frees it, others to the stream that
            // owned it.
            info.stream = if stream.is_none() { info.stream } else { stream };
            let view = state.ordering.view_of_stream(info.stream);
            let site = context.site(Cause::Free, info.stream);
            state.submissions.early_free.freed(&info, home, &mut state.memory, &view, site);
        }
        if state.stale_graphs.names_anything()
            && let Some((info, _)) = state.memory.block(ptr).filter(|(info, _)| info.kind == Some(MemoryKind::Block))
        {
            let site = context.site(Cause::Free, stream);
            // A block outside every root is a root of its own.
            let is_root = state.memory.root(ptr).is_some_and(|root| root.id == info.id);
            stale_graphs::freed(state, &info, site, context.epoch, is_root);
        }
        state.memory.free_block(ptr, stack);
        return;
    }
    let Some(root) = state.memory.root(ptr).copied() else {
        state.memory.free_root(ptr, stack, false);
        return;
    };
    state.submissions.early_free.forget(ptr, root.end());
    let site = context.site(Cause::Free, stream);
    at(state, context, site, node).whole(ptr, root.size, root.id, Cause::Free);
    stale_graphs::freed(state, &root, site, context.epoch, true);
    // Work enqueued later may still run before a free in stream order.
    let ghost = kind == FreeKind::Async || root.kind == Some(MemoryKind::Pool);
    state.memory.free_root(ptr, stack, ghost);
}
