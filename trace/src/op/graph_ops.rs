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
    /// An executable graph was made or updated: its nodes follow as [`Op::GraphNode`].
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
    /// A stream began to be captured, or to add to a graph.
    135 CaptureStart {
        /// The capture.
        capture: CaptureId,
        /// The stream that it began on.
        stream: StreamId,
    }
    /// An event was recorded on a captured stream: it stands for the nodes that the stream has got
    /// to.
    136 CaptureRecord {
        /// The capture.
        capture: CaptureId,
        /// The event.
        event: EventId,
        /// The stream.
        stream: StreamId,
    }
    /// A captured stream waited for an event. A stream that was not captured is from then on.
    137 CaptureWait {
        /// The capture.
        capture: CaptureId,
        /// The stream that waits.
        stream: StreamId,
        /// The event.
        event: EventId,
    }
    /// A call on a captured stream made a node, behind those that the stream had got to.
    138 CaptureNode {
        /// The capture.
        capture: CaptureId,
        /// The stream.
        stream: StreamId,
        /// The node's number. It is unique in the process.
        node: u32,
    }
    /// A capture has ended, and there is a graph.
    139 CaptureDone {
        /// The stream that it began on.
        stream: StreamId,
    }
    /// Something that the trace does not describe has changed what the nodes of a capture come
    /// after.
    140 CaptureChanged {
        /// The capture.
        capture: CaptureId,
    }
    /// A node of an executable graph, told before, is this node of a graph, or part of it. Sent
    /// from the inside out, for all nodes of a graph with captured nodes.
    141 NodeOf {
        /// Whose node.
        exec: GraphExecId,
        /// Index in that graph.
        index: u32,
        /// Which of the graphs in that graph (it and its child graphs, in the order of reading) the
        /// captured node is in.
        part: u32,
        /// The number of that node; 0: it was not captured.
        node: u32,
    }
    /// A node of an executable graph, told before, is in a body of a conditional node: the value of
    /// a condition decides at each launch whether it runs.
    142 NodeConditional {
        /// Whose node.
        exec: GraphExecId,
        /// Index in that graph.
        index: u32,
        /// Index of the conditional node, the innermost one.
        condition: u32,
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
