//! Rows of the op table: captures and executable graphs.
//!
//! How to read a row, and how to add one: see the parent module.

macro_rules! graph_ops {
    ($($rows:tt)*) => { host_ops! { $($rows)*

    /// A stream began to be captured.
    128 CaptureBegin {
        /// The stream.
        stream: StreamId,
        /// The graph, by its handle when known.
        graph: GraphId,
    }
    /// A stream's capture ended.
    129 CaptureEnd {
        /// The stream.
        stream: StreamId,
        /// The graph.
        graph: GraphId,
    }
    /// An executable graph was made or made anew (update): its nodes follow as [`Op::GraphNode`].
    130 GraphExec {
        /// Its id.
        exec: GraphExecId,
        /// How many nodes follow.
        nodes: u32,
        /// Flags of the instantiation.
        flags: u32,
        /// The handle.
        handle: u64,
    }
    /// One node of an executable graph. Sent again with the same index when its parameters change.
    131 GraphNode {
        /// Whose node.
        exec: GraphExecId,
        /// Index in that graph.
        index: u32,
        /// Where the node was captured or added.
        stack: StackId,
        /// The call that made it.
        call: CallId,
        /// Enabled or disabled.
        enabled: bool,
        /// Nodes that come first.
        dependencies: List<'a, Dependency>,
        /// Tag of the op that the node does; 0 for none (empty nodes).
        tag: u16,
        /// The encoded op. Its stream is [`StreamId::NONE`].
        body: &'a [u8],
    }
    /// A node of an executable graph, told before, was captured on this stream.
    134 NodeCaptured {
        /// Whose node.
        exec: GraphExecId,
        /// Index in that graph.
        index: u32,
        /// The stream, while it was captured.
        stream: StreamId,
    }
    /// An executable graph goes away.
    132 GraphExecDestroy {
        /// Which.
        exec: GraphExecId,
    }
    /// An executable graph runs.
    133 GraphLaunch {
        /// The stream.
        stream: StreamId,
        /// Which.
        exec: GraphExecId,
    }

    } };
}
