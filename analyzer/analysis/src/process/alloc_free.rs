//! Allocations and frees: how the lifetime of memory begins and ends.
//!
//! Owns what an `Alloc` or a `Free` does: the new or ended lifetime, the accesses that a
//! stream-ordered allocation or any free stands for, and the watch over blocks that return to a
//! pool too early. Does not keep the lifetimes ([`detect::memory::Allocations`]).

use super::{Analysis, OpContext};
use detect::memory::{Allocation, AllocationId, Cause};
use detect::state::graphs::Graph;
use trace::{FreeKind, MemoryKind, Op, Origin, StreamId};

impl Analysis {
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
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one op, taken apart by the caller")]
    pub(super) fn alloc(
        &mut self,
        op: &Op<'_>,
        ptr: u64,
        size: u64,
        kind: MemoryKind,
        stream: StreamId,
        context: OpContext,
        node: Option<(&Graph, u32)>,
    ) {
        let Op::Alloc { context: cuda_context, .. } = *op else { return };
        let live = self.memory.root(ptr);
        // A module variable is announced whenever its address is queried, and a graph's memory at
        // each launch.
        let lasting = matches!(kind, MemoryKind::ModuleGlobal);
        if lasting && live.is_some_and(|a| a.size == size && a.kind == Some(kind)) {
            return;
        }
        // A graph that is launched again while its memory is still allocated frees it first
        // (cudaGraphInstantiateFlagAutoFreeOnLaunch; without the flag the launch fails).
        if kind == MemoryKind::GraphNode && live.is_some_and(|a| a.kind == Some(kind)) {
            self.free(ptr, FreeKind::Async, stream, context, node);
        }
        let mut info = Self::allocation(ptr, size, kind, &context.origin);
        (info.stream, info.context) = (stream, cuda_context);
        let id = self.memory.alloc(info);
        self.submissions.early_free.forget(ptr, ptr.saturating_add(size));
        if kind == MemoryKind::Block && self.submissions.early_free.watches(stream) {
            let site = context.site(Cause::Alloc, stream);
            let view = self.ordering.view_of_stream(stream);
            self.submissions.early_free.handed_out(size, &view, site, &mut self.races);
        }
        // Memory of these kinds exists once its stream reaches the allocation. Other memory exists
        // when the call returns.
        if matches!(kind, MemoryKind::Pool | MemoryKind::GraphNode) {
            let site = context.site(Cause::Alloc, stream);
            self.at(context, site, node).whole(ptr, size, id, Cause::Alloc);
        }
    }

    pub(super) fn free(
        &mut self,
        ptr: u64,
        kind: FreeKind,
        stream: StreamId,
        context: OpContext,
        node: Option<(&Graph, u32)>,
    ) {
        let stack = context.origin.stack;
        if kind == FreeKind::Block {
            if let Some((mut info, home)) = self.memory.block(ptr).filter(|(info, _)| !info.stream.is_none()) {
                // Some pools return a block to the stream that frees it, others to the stream that
                // owned it.
                info.stream = if stream.is_none() { info.stream } else { stream };
                let view = self.ordering.view_of_stream(info.stream);
                let site = context.site(Cause::Free, info.stream);
                self.submissions.early_free.freed(&info, home, &mut self.memory, &view, site);
            }
            self.memory.free_block(ptr, stack);
            return;
        }
        let Some(root) = self.memory.root(ptr).copied() else {
            self.memory.free_root(ptr, stack, false);
            return;
        };
        self.submissions.early_free.forget(ptr, root.end());
        let site = context.site(Cause::Free, stream);
        self.at(context, site, node).whole(ptr, root.size, root.id, Cause::Free);
        // Work enqueued later may still run before a free in stream order.
        let ghost = kind == FreeKind::Async || root.kind == Some(MemoryKind::Pool);
        self.memory.free_root(ptr, stack, ghost);
    }
}
