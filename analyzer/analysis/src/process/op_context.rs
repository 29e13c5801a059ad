//! The context of an op: when it acts, and which line of the program made it.
//!
//! Owns the plain data that is passed along with an op or a graph node, and the [`Site`] made from
//! it.

use detect::memory::{Cause, Overlap, Region, Site};
use trace::{Epoch, KernelId, Origin, StackId, StreamId};

/// When and from where an op, or a node of a graph, acts.
#[derive(Clone, Copy)]
pub(crate) struct OpContext {
    pub(crate) origin: Origin,
    pub(crate) epoch: Epoch,
    /// For a graph node: the stream and the call stack of the graph's launch, which its op does not
    /// name.
    pub(crate) graph: Option<(StreamId, StackId)>,
    /// Whether a condition decides that it acts at all: it is in a body of a conditional node.
    pub(crate) is_conditional: bool,
    /// Whether it is a kernel that may run beside the work it depends on, and never waits for it.
    pub(crate) overlap: Overlap,
    /// See [`Site::overlap_in_doubt`].
    pub(crate) overlap_in_doubt: bool,
    /// The NVTX region that the thread is in.
    pub(crate) region: Region,
}

impl OpContext {
    #[inline]
    pub(crate) fn site(&self, cause: Cause, stream: StreamId) -> Site {
        Site {
            stack: self.origin.stack,
            call: self.origin.call,
            cause,
            thread: self.origin.thread,
            stream: self.graph.map_or(stream, |(stream, _)| stream),
            kernel: KernelId::NONE,
            batch: 0,
            node: 0,
            launched: self.graph.map_or(StackId::NONE, |(_, stack)| stack),
            region: self.region,
            param: None,
            at: 0,
            measured: false,
            guessed: false,
            texels: false,
            conditional: self.is_conditional,
            overlap: self.overlap,
            overlap_in_doubt: self.overlap_in_doubt,
        }
    }
}
