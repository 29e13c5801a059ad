//! Reads a finished graph back from the driver, when it is instantiated or updated.
//!
//! Reading the finished graph is exact however it was built (captured, added node by node, cloned).
//! Owns the order of the nodes and the flattening of child graphs, of the bodies of conditional
//! nodes and of lists of memory operations. What a single node does is in [`super::node_ops`],
//! where nodes come from in [`super::origins`], executables and their changes in [`super::execs`].
//! The order that follows from a graph is decided by the analyzer.

use std::collections::{BTreeSet, HashMap};

use cuda_sys::*;
use trace::{Dependency, Op, StackId, StreamId, tag};

use super::conditions::DefaultBody;
use super::node_ops::{EncodedOp, memory_operations, node_op};
use crate::handles::graph_execs::GraphNode;
use crate::observe::Cx;
use crate::ops::graphs::origins::{graph_bodies, node_number, node_origin};
use crate::real::driver::real;

/// What stands for "this has completed": the nodes that all must have.
type Completion = Vec<Dependency>;

/// A graph as it is read, node by node.
#[derive(Default)]
pub(crate) struct FlatGraph {
    /// All nodes, in an order that respects all dependencies.
    pub nodes: Vec<GraphNode>,
    /// The nodes that stand for a node of the driver: first and count.
    pub by_handle: HashMap<u64, (usize, usize)>,
    /// The host nodes: the driver's handle, and the place among the nodes.
    pub functions: Vec<(u64, usize)>,
    /// How many graphs have been begun: this one, and those inside nodes.
    parts: u32,
    /// The conditional node whose bodies are being read.
    condition: Option<u32>,
    /// Bodies of conditional nodes that run unless kernels set their conditions.
    pub default_bodies: Vec<DefaultBody>,
}

/// From, to, and the port of the first.
type Edge = (CUgraphNode, CUgraphNode, u32);

/// Nodes of a graph as the driver lists them: in the order in which they were added.
pub(crate) fn list_nodes(graph: CUgraph) -> Option<Vec<CUgraphNode>> {
    let mut count = 0_usize;
    let none = std::ptr::null_mut::<CUgraphNode>();
    let sized = real!(cuGraphGetNodes(graph => CUgraph, none => *mut CUgraphNode, &raw mut count => *mut usize));
    if sized != CUresult::SUCCESS {
        return None;
    }
    let mut nodes = vec![CUgraphNode::NULL; count];
    let _ = real!(cuGraphGetNodes(
        graph => CUgraph, nodes.as_mut_ptr() => *mut CUgraphNode, &raw mut count => *mut usize
    ));
    Some(nodes)
}

/// What a node is.
pub(crate) fn kind_of(node: CUgraphNode) -> CUgraphNodeType {
    let mut kind = CUgraphNodeType(0);
    let _ = real!(cuGraphNodeGetType(node => CUgraphNode, &raw mut kind => *mut CUgraphNodeType));
    kind
}

/// The graph inside a node.
pub(crate) fn child_of(node: CUgraphNode) -> CUgraph {
    let mut child = CUgraph::NULL;
    let _ = real!(cuGraphChildGraphNodeGetGraph(node => CUgraphNode, &raw mut child => *mut CUgraph));
    child
}

/// Nodes and edges of a graph.
fn list(graph: CUgraph) -> Option<(Vec<CUgraphNode>, Vec<Edge>)> {
    let nodes = list_nodes(graph)?;
    let none = std::ptr::null_mut::<CUgraphNode>();
    let mut edges = 0_usize;
    let no_data = std::ptr::null_mut::<CUgraphEdgeData>();
    let with_data = real!(cuGraphGetEdges_v2(
        graph => CUgraph, none => *mut CUgraphNode, none => *mut CUgraphNode, no_data => *mut CUgraphEdgeData,
        &raw mut edges => *mut usize
    )) == CUresult::SUCCESS;
    if !with_data {
        let _ = real!(cuGraphGetEdges(
            graph => CUgraph, none => *mut CUgraphNode, none => *mut CUgraphNode, &raw mut edges => *mut usize
        ));
    }
    let mut from = vec![CUgraphNode::NULL; edges];
    let mut to = vec![CUgraphNode::NULL; edges];
    let mut data = vec![CUgraphEdgeData::zeroed(); edges];
    if edges > 0 && with_data {
        let _ = real!(cuGraphGetEdges_v2(
            graph => CUgraph, from.as_mut_ptr() => *mut CUgraphNode, to.as_mut_ptr() => *mut CUgraphNode,
            data.as_mut_ptr() => *mut CUgraphEdgeData, &raw mut edges => *mut usize
        ));
    } else if edges > 0 {
        let _ = real!(cuGraphGetEdges(
            graph => CUgraph, from.as_mut_ptr() => *mut CUgraphNode, to.as_mut_ptr() => *mut CUgraphNode,
            &raw mut edges => *mut usize
        ));
    }
    let edges = from.into_iter().zip(to).zip(data).map(|((f, t), d)| (f, t, u32::from(d.from_port))).collect();
    Some((nodes, edges))
}

/// The function of a host node, and its data.
fn host_function_of(node: CUgraphNode) -> (usize, usize) {
    let mut p = CUDA_HOST_NODE_PARAMS::zeroed();
    let got = real!(cuGraphHostNodeGetParams(node => CUgraphNode, &raw mut p => *mut CUDA_HOST_NODE_PARAMS));
    if got == CUresult::SUCCESS { (p.fn_.map_or(0, |f| f as usize), p.userData as usize) } else { (0, 0) }
}

impl FlatGraph {
    /// Appends a graph whose roots come after `entry`; answers what its completion is.
    pub(super) fn read(&mut self, cx: &mut Cx<'_>, graph: CUgraph, entry: &[Dependency], depth: u32) -> Completion {
        let Some((nodes, edges)) = list(graph) else {
            cx.not_modelled();
            return entry.to_vec();
        };
        let part = self.parts;
        self.parts += 1;
        let mut before: HashMap<u64, Vec<(u64, u32)>> = HashMap::new();
        let mut after: HashMap<u64, Vec<u64>> = HashMap::new();
        for (from, to, port) in &edges {
            before.entry(to.0 as u64).or_default().push((from.0 as u64, *port));
            after.entry(from.0 as u64).or_default().push(to.0 as u64);
        }
        let mut waiting: HashMap<u64, usize> = before.iter().map(|(node, from)| (*node, from.len())).collect();
        let mut completions: HashMap<u64, Completion> = HashMap::new();
        // Among nodes that may come next, the one that was added first: so reports name pairs in
        // the order of the program.
        let place: HashMap<u64, usize> = nodes.iter().enumerate().map(|(i, n)| (n.0 as u64, i)).collect();
        let is_ready = |(_, node): &(usize, &CUgraphNode)| !waiting.contains_key(&(node.0 as u64));
        let mut ready: BTreeSet<usize> = nodes.iter().enumerate().filter(is_ready).map(|(i, _)| i).collect();
        while let Some(first) = ready.pop_first() {
            let node = nodes[first];
            let key = node.0 as u64;
            let mut comes_first: Vec<Dependency> = Vec::new();
            for (from, port) in before.get(&key).into_iter().flatten() {
                for dependency in completions.get(from).into_iter().flatten() {
                    comes_first.push(Dependency { from: dependency.from, port: *port });
                }
            }
            if comes_first.is_empty() {
                comes_first = entry.to_vec();
            }
            let start = self.nodes.len();
            let completion = self.read_node(cx, node, comes_first, depth);
            let number = node_number(cx, node);
            self.nodes[start..].iter_mut().for_each(|read| read.captured.push((part, number)));
            completions.insert(key, completion);
            for to in after.get(&key).into_iter().flatten() {
                if let Some(left) = waiting.get_mut(to) {
                    *left -= 1;
                    if *left == 0 {
                        ready.extend(place.get(to));
                    }
                }
            }
        }
        let leaves = nodes.iter().filter(|node| !after.contains_key(&(node.0 as u64)));
        let end: Completion = leaves.filter_map(|node| completions.get(&(node.0 as u64))).flatten().copied().collect();
        if end.is_empty() { entry.to_vec() } else { end }
    }

    fn read_node(&mut self, cx: &mut Cx<'_>, node: CUgraphNode, before: Vec<Dependency>, depth: u32) -> Completion {
        const DEEPEST: u32 = 16;
        let kind = kind_of(node);
        let start = self.nodes.len();
        let completion = match kind {
            CU_GRAPH_NODE_TYPE_GRAPH if depth < DEEPEST => self.read(cx, child_of(node), &before, depth + 1),
            CU_GRAPH_NODE_TYPE_CONDITIONAL
                if depth < DEEPEST
                    && let Some(bodies) = graph_bodies(cx, node) =>
            {
                // Any of the bodies may run, and in a loop one may run several times, one run after
                // the other: so they count as run once each, in their order.
                let first = self.add(cx, node, before, (0, Vec::new()));
                let around = self.condition.replace(start as u32);
                let mut completion = first;
                for (number, body) in bodies.graphs.iter().enumerate() {
                    let begin = self.nodes.len();
                    completion = self.read(cx, CUgraph(*body as *mut _), &completion, depth + 1);
                    if bodies.by_default == Some(number) {
                        let (node, range, handle) = (start as u32, begin..self.nodes.len(), bodies.handle);
                        self.default_bodies.push(DefaultBody { node, range, handle, around });
                    }
                }
                self.condition = around;
                completion
            }
            CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                let mut ops = memory_operations(cx, node).into_iter();
                let first = ops.next().unwrap_or_default();
                let first = self.add(cx, node, before, first);
                ops.fold(first, |entry, op| self.add(cx, node, entry, op))
            }
            _ => {
                let op = node_op(cx, node, kind);
                let added = self.add(cx, node, before, op);
                if kind == CU_GRAPH_NODE_TYPE_HOST
                    && let Some(read) = self.nodes.last_mut()
                {
                    read.function = host_function_of(node);
                    self.functions.push((node.0 as u64, start));
                }
                added
            }
        };
        self.by_handle.insert(node.0 as u64, (start, self.nodes.len() - start));
        completion
    }

    fn add(
        &mut self,
        cx: &Cx<'_>,
        node: CUgraphNode,
        dependencies: Vec<Dependency>,
        (tag, body): EncodedOp,
    ) -> Completion {
        let (stack, call, stream) = node_origin(cx, node).unwrap_or((StackId::NONE, cx.call, StreamId::NONE));
        let index = self.nodes.len();
        self.nodes.push(GraphNode {
            dependencies,
            tag,
            body,
            enabled: true,
            stack,
            call,
            stream,
            function: (0, 0),
            condition: self.condition,
            captured: Vec::new(),
        });
        vec![Dependency { from: index as u32, port: 0 }]
    }

    /// Values that one node writes and another one waits for order the two, without an edge.
    pub(super) fn join_values(&mut self) {
        let value = |node: &GraphNode| {
            Op::decode(node.tag, &node.body).ok().map(|op| match op {
                Op::WriteValue { address, .. } => (true, address),
                Op::WaitValue { address, .. } => (false, address),
                _ => (false, 0),
            })
        };
        let is_value = |node: &GraphNode| matches!(node.tag, tag::WriteValue | tag::WaitValue);
        let values: Vec<(usize, bool, u64)> = (self.nodes.iter().enumerate())
            .filter(|(_, node)| is_value(node))
            .filter_map(|(i, node)| value(node).map(|(writes, address)| (i, writes, address)))
            .collect();
        for &(wait, writes, address) in &values {
            // Nodes come in an order that respects all dependencies: an edge from an earlier to a
            // later one closes no circle.
            let writers = values.iter().filter(|(i, w, a)| !writes && *w && *a == address && *i < wait);
            for (writer, _, _) in writers {
                self.nodes[wait].dependencies.push(Dependency { from: *writer as u32, port: 0 });
            }
        }
    }
}
