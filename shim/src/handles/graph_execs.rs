//! An executable graph, as the trace knows it.
//!
//! Owns its nodes as they were last sent into the trace, and which of them stand for a node of the
//! driver. Graphs are read and changed in `crate::ops::graphs`.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_sys::FnId;
use trace::{Dependency, GraphExecId, KernelId, Op, StackId, StreamId};

use crate::host::graph_copies::GraphHostWork;

/// One node, child graphs flattened.
#[derive(Clone)]
pub struct GraphNode {
    /// Nodes that come first.
    pub dependencies: Vec<Dependency>,
    /// Tag of its op; 0: none.
    pub tag: u16,
    /// Its op.
    pub body: Vec<u8>,
    /// Whether it runs.
    pub enabled: bool,
    /// Where it was captured or added.
    pub stack: StackId,
    /// The call that did it.
    pub call: FnId,
    /// The stream that it was captured on, if that is known.
    pub stream: StreamId,
    /// Of a host function of the graph that it was read from: the function, and its data.
    pub function: (usize, usize),
    /// The conditional node, the innermost one, in a body of which it is: its index in the trace.
    pub condition: Option<u32>,
    /// The nodes of the driver that it is, or is part of, from the inside out: the graph that each
    /// is in, by the order of reading, and its number if it was captured.
    pub captured: Vec<(u32, u32)>,
}

/// One executable graph.
pub struct GraphExec {
    /// Its id.
    pub id: GraphExecId,
    /// Its nodes as they were last sent into the trace.
    pub nodes: Vec<GraphNode>,
    /// The nodes that stand for a node of the graph that it was made from: first and count.
    pub by_handle: HashMap<u64, (usize, usize)>,
    /// What it does to the host's memory.
    pub host: Arc<GraphHostWork>,
}

impl GraphExec {
    /// What these nodes do to the host's memory.
    pub fn host_work(nodes: &[GraphNode]) -> Arc<GraphHostWork> {
        let ops = nodes.iter().map(|n| if n.enabled { Op::decode(n.tag, &n.body).ok() } else { None });
        Arc::new(GraphHostWork::of(&ops.collect::<Vec<_>>()))
    }

    /// Of a node by its handle, when it launches a kernel: its index in the trace, the kernel, grid
    /// and block.
    pub fn launch(&self, node: u64) -> Option<(u32, KernelId, [u32; 3], [u32; 3])> {
        let Some(&(index, 1)) = self.by_handle.get(&node) else { return None };
        let node = self.nodes.get(index).filter(|node| node.enabled)?;
        match Op::decode(node.tag, &node.body) {
            Ok(Op::Launch { kernel, shape, .. }) => Some((index as u32, kernel, shape.grid, shape.block)),
            _ => None,
        }
    }
}
