//! Which ops synchronise, and what an op is without that.
//!
//! Owns the kinds of synchronisation that can be left out. Queries are none of them: a program acts
//! on the answer, so without the call it would be another program. What each kind orders is decided
//! in the crate `order`.

use order::Policy;
use order::policy::{HostWait, MemoryClass};
use trace::{CallId, MemoryKind, Op, Record, Region, Space, StackId, StreamId, SyncScope};

/// A kind of synchronisation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SyncKind {
    /// A stream waits for an event.
    StreamWait,
    /// A captured stream waits for an event, or a node of a graph does for one of outside.
    CapturedWait,
    /// A context waits for an event.
    ContextWait,
    /// The host waits for an event.
    EventSync,
    /// The host waits for a stream.
    StreamSync,
    /// The host waits for a context or a device.
    DeviceSync,
    /// A copy that the host waits for.
    Copy,
    /// A fill that the host waits for.
    Set,
    /// An event that a pool records before it takes a block back, and waits for before it hands
    /// the block out again (`record_stream`). Not found by [`SyncKind::of`], which sees one op;
    /// nor are captured waits that are edges of a graph.
    RecordStream,
}

impl SyncKind {
    /// The word for it, as `--without` takes it (all but `record-stream`).
    pub fn word(self) -> &'static str {
        match self {
            Self::StreamWait => "stream-wait",
            Self::CapturedWait => "captured-wait",
            Self::ContextWait => "context-wait",
            Self::EventSync => "event-sync",
            Self::StreamSync => "stream-sync",
            Self::DeviceSync => "device-sync",
            Self::Copy => "blocking-copy",
            Self::Set => "blocking-set",
            Self::RecordStream => "record-stream",
        }
    }

    /// The kind of an op, if it synchronises. `memory`: the kind of the memory at an address.
    pub(crate) fn of(op: &Op<'_>, policy: Policy, memory: impl Fn(u64) -> Option<MemoryKind>) -> Option<Self> {
        Some(match *op {
            Op::StreamWait { .. } => Self::StreamWait,
            Op::GraphNode { tag: trace::tag::StreamWait, enabled: true, .. } => Self::CapturedWait,
            Op::ContextWait { .. } => Self::ContextWait,
            Op::SyncBegin { scope, .. } => match scope {
                SyncScope::Stream | SyncScope::Legacy => Self::StreamSync,
                SyncScope::Event => Self::EventSync,
                SyncScope::Context | SyncScope::Device => Self::DeviceSync,
            },
            Op::Copy { ref dst, ref src, dst_space, src_space, asynchronous, .. } => {
                let (to, from) = (class(dst, dst_space, &memory), class(src, src_space, &memory));
                let is_host = |class| matches!(class, MemoryClass::Pinned | MemoryClass::Pageable);
                let rule = order::policy::copy(asynchronous, to, from, false);
                if rule.wait(policy) == HostWait::Nothing || (is_host(to) && is_host(from)) {
                    return None;
                }
                Self::Copy
            }
            Op::Set { ref dst, asynchronous, .. } => {
                let rule = order::policy::set(asynchronous, class(dst, Space::Device, &memory), false);
                if rule.wait(policy) == HostWait::Nothing {
                    return None;
                }
                Self::Set
            }
            _ => return None,
        })
    }
}

/// The class of the memory of a region.
pub(crate) fn class(region: &Region, space: Space, memory: impl Fn(u64) -> Option<MemoryKind>) -> MemoryClass {
    if region.array.is_none() { MemoryClass::of(space, memory(region.start)) } else { MemoryClass::Device }
}

/// A synchronisation in the program: where, and of which kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SyncSite {
    /// The call stack.
    pub stack: StackId,
    /// The kind.
    pub kind: SyncKind,
}

/// The call stack of what an op does, and the call.
pub(crate) fn made_by(record: &Record<'_>) -> (StackId, CallId) {
    match record.op {
        // Where the node was captured or added, not where the graph was instantiated.
        Op::GraphNode { stack, call, .. } => (stack, call),
        _ => (record.origin.stack, record.origin.call),
    }
}

/// What the order gets of a copy or a fill that the host does not wait for. `None`: the op does
/// nothing but synchronise.
pub fn unblocked<'a>(op: &Op<'a>) -> Option<Op<'a>> {
    match *op {
        // A copy to pageable memory blocks under any name, so its side is passed off as a device's.
        Op::Copy { stream, dst, src, dst_space, src_space, batch, .. } => {
            let dst_space = if dst_space == Space::Array { dst_space } else { Space::Device };
            Some(Op::Copy { stream, dst, src, dst_space, src_space, asynchronous: true, batch })
        }
        Op::Set { stream, dst, .. } => Some(Op::Set { stream, dst, asynchronous: true }),
        Op::GraphNode { exec, index, stack, call, dependencies, tag, body, .. } => {
            Some(Op::GraphNode { exec, index, stack, call, enabled: false, dependencies, tag, body })
        }
        _ => None,
    }
}

/// The field of an op that names its stream.
pub(crate) fn stream_mut<'o>(op: &'o mut Op<'_>) -> Option<&'o mut StreamId> {
    match op {
        Op::EventRecord { stream, .. }
        | Op::StreamWait { stream, .. }
        | Op::SyncBegin { stream, .. }
        | Op::StreamIdle { stream, .. }
        | Op::Alloc { stream, .. }
        | Op::Free { stream, .. }
        | Op::Copy { stream, .. }
        | Op::AttributedCopy { stream, .. }
        | Op::Set { stream, .. }
        | Op::Launch { stream, .. }
        | Op::GraphLaunch { stream, .. }
        | Op::HostFunc { stream, .. }
        | Op::WriteValue { stream, .. }
        | Op::WaitValue { stream, .. }
        | Op::Prefetch { stream, .. }
        | Op::Opaque { stream }
        | Op::SemaphoreSignal { stream, .. }
        | Op::SemaphoreWait { stream, .. }
        | Op::StreamTaken { stream }
        | Op::Failed { stream, .. }
        | Op::HostWatch { stream, .. } => (!stream.is_none()).then_some(stream),
        _ => None,
    }
}

/// The stream of an op.
pub(crate) fn stream_of(op: &Op<'_>) -> Option<StreamId> {
    stream_mut(&mut { *op }).copied()
}
