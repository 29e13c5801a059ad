//! When and from where an op acts.

use crate::memory::{Cause, Site};
use crate::state::regions::Region;
use trace::{Epoch, KernelId, Origin, StackId, StreamId};

/// When and from where an op, or a node of a graph, acts.
#[derive(Clone, Copy)]
pub(super) struct OpContext {
    pub origin: Origin,
    pub epoch: Epoch,
    /// Of a node: the stream that its graph is launched in, which its op does not name, and where.
    pub graph: Option<(StreamId, StackId)>,
    /// The part of the program that the thread is in.
    pub region: Region,
}

impl OpContext {
    pub fn site(&self, cause: Cause, stream: StreamId) -> Site {
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
        }
    }
}
