//! The call site of an op, as it is found again in every pass over the same records.
//!
//! Owns what makes two ops one site: the call stack, the kernel, and the kind of op. Does not
//! resolve stacks to lines.

use crate::memory::{Access, Cause};
use trace::{KernelId, Op, StackId, StreamId};

/// The kind of an op, as far as sites are distinguished by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OpClass {
    /// A kernel launch.
    Launch,
    /// A copy.
    Copy,
    /// A fill.
    Set,
    /// A value written or waited for by a stream.
    Value,
    /// A stream-ordered allocation, or a block of a pool.
    Alloc,
    /// A free.
    Free,
    /// Contents are discarded.
    Discard,
    /// The launch of a graph.
    Graph,
    /// An event is recorded.
    Record,
    /// The host's own access.
    Host,
}

/// A call site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpSite {
    /// The call stack.
    pub stack: StackId,
    /// The kernel, of launches.
    pub kernel: KernelId,
    /// The kind of op.
    pub class: OpClass,
}

impl OpSite {
    /// The site of an op that was made with this stack, and the op's stream ([`StreamId::NONE`]
    /// for the host). `None`: an op that no wait can be placed at.
    pub fn of(op: &Op<'_>, stack: StackId) -> Option<(Self, StreamId)> {
        let mut launched = KernelId::NONE;
        let (class, stream) = match *op {
            Op::Launch { stream, kernel, .. } => {
                launched = kernel;
                (OpClass::Launch, stream)
            }
            Op::Copy { stream, .. } | Op::AttributedCopy { stream, .. } => (OpClass::Copy, stream),
            Op::Set { stream, .. } => (OpClass::Set, stream),
            Op::WriteValue { stream, .. } | Op::WaitValue { stream, .. } => (OpClass::Value, stream),
            Op::Alloc { stream, .. } => (OpClass::Alloc, stream),
            Op::Free { stream, .. } => (OpClass::Free, stream),
            Op::Prefetch { stream, .. } => (OpClass::Discard, stream),
            Op::GraphLaunch { stream, .. } => (OpClass::Graph, stream),
            Op::EventRecord { stream, .. } => (OpClass::Record, stream),
            Op::HostAccess { .. } | Op::HostTouch { .. } => (OpClass::Host, StreamId::NONE),
            Op::HostTransfer { request, .. } => (OpClass::Host, request),
            _ => return None,
        };
        Some((Self { stack, kernel: launched, class }, stream))
    }

    /// The site of the op that an access belongs to. For the node of a graph: of the launch of the
    /// graph.
    pub fn of_access(access: &Access) -> Self {
        if access.site.node > 0 {
            return Self { stack: access.site.launched, kernel: KernelId::NONE, class: OpClass::Graph };
        }
        Self::of_node(access)
    }

    /// The site of an access, for the node of a graph: of the node.
    pub fn of_node(access: &Access) -> Self {
        let site = &access.site;
        let class = match site.cause {
            Cause::Kernel => OpClass::Launch,
            Cause::Copy => OpClass::Copy,
            Cause::Set => OpClass::Set,
            Cause::Value => OpClass::Value,
            Cause::Alloc => OpClass::Alloc,
            Cause::Free => OpClass::Free,
            Cause::Discard => OpClass::Discard,
            Cause::Host | Cause::HostBetween | Cause::Message => OpClass::Host,
        };
        Self { stack: site.stack, kernel: site.kernel, class }
    }
}
