//! Graphs: what an executable graph does is read back from the driver when it is instantiated or
//! updated.
//!
//! Reading the finished graph is exact however it was built (captured, added node by node, cloned).
//! Owns the flattening of child graphs, of the bodies of conditional nodes and of lists of memory
//! operations, and the ops of nodes; executables and their changes are in [`crate::ops::graphs::execs`],
//! where nodes come from in [`crate::ops::graphs::origins`], and the order that follows is decided by the
//! analyzer.

use std::collections::{BTreeSet, HashMap};

use cuda_sys::*;
use trace::{
    ContextId, Dependency, Encoder, EventMode, FreeKind, HostFuncId, LaunchShape, MemoryKind, Op, PoolId, Region,
    StackId, StreamId,
};

use crate::observe::context::Cx;
use crate::ops::copies::strided::pair_3d;
use crate::ops::stream_memops::{Member, member};
use crate::real;

/// One node, child graphs flattened.
#[derive(Clone)]
pub(crate) struct Node {
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
}

/// What stands for "this has completed": the nodes that all must have.
type Completion = Vec<Dependency>;

/// A graph as it is read, node by node.
#[derive(Default)]
pub(crate) struct Reading {
    /// All nodes, in an order that respects all dependencies.
    pub nodes: Vec<Node>,
    /// The nodes that stand for a node of the driver: first and count.
    pub by_handle: HashMap<u64, (usize, usize)>,
}

pub(crate) fn encode(op: &Op<'_>) -> (u16, Vec<u8>) {
    let params = if let Op::Launch { params, .. } = op { params.len() } else { 0 };
    let mut body = vec![0; 256 + params];
    let mut to = Encoder::new(&mut body);
    op.encode(&mut to);
    let len = to.finish().unwrap_or(0);
    body.truncate(len);
    (op.tag(), body)
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

impl Reading {
    /// Appends a graph whose roots come after `entry`; answers what its completion is.
    pub fn read(&mut self, cx: &mut Cx<'_>, graph: CUgraph, entry: &[Dependency], depth: u32) -> Completion {
        let Some((nodes, edges)) = list(graph) else {
            cx.not_modelled();
            return entry.to_vec();
        };
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
            let completion = self.read_node(cx, node, comes_first, depth);
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
            CU_GRAPH_NODE_TYPE_CONDITIONAL if depth < DEEPEST && cx.bodies(node).is_some() => {
                // Any of the bodies may run, and in a loop one may run several times, one run after
                // the other: so they count as run once each, in their order.
                let first = self.add(cx, node, before, (0, Vec::new()));
                let bodies = cx.bodies(node).unwrap_or_default();
                bodies.into_iter().fold(first, |entry, body| self.read(cx, CUgraph(body as *mut _), &entry, depth + 1))
            }
            CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                let mut ops = memory_operations(cx, node).into_iter();
                let first = ops.next().unwrap_or_default();
                let first = self.add(cx, node, before, first);
                ops.fold(first, |entry, op| self.add(cx, node, entry, op))
            }
            _ => {
                let op = node_op(cx, node, kind);
                self.add(cx, node, before, op)
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
        (tag, body): (u16, Vec<u8>),
    ) -> Completion {
        let (stack, call) = cx.origin(node).unwrap_or((StackId::NONE, cx.call));
        let index = self.nodes.len();
        self.nodes.push(Node { dependencies, tag, body, enabled: true, stack, call });
        vec![Dependency { from: index as u32, port: 0 }]
    }

    /// Values that one node writes and another one waits for order the two, without an edge.
    pub fn join_values(&mut self) {
        let value = |node: &Node| {
            Op::decode(node.tag, &node.body).ok().map(|op| match op {
                Op::WriteValue { address, .. } => (true, address),
                Op::WaitValue { address, .. } => (false, address),
                _ => (false, 0),
            })
        };
        let is_value = |node: &Node| matches!(node.tag, WRITE_VALUE | WAIT_VALUE);
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

const WRITE_VALUE: u16 = 101;
const WAIT_VALUE: u16 = 102;

/// The memory operations of a node, in the order in which they run.
fn memory_operations(cx: &mut Cx<'_>, node: CUgraphNode) -> Vec<(u16, Vec<u8>)> {
    let mut p = CUDA_BATCH_MEM_OP_NODE_PARAMS::zeroed();
    let got = real!(cuGraphBatchMemOpNodeGetParams(
        node => CUgraphNode, &raw mut p => *mut CUDA_BATCH_MEM_OP_NODE_PARAMS
    ));
    if got != CUresult::SUCCESS || p.paramArray.is_null() {
        cx.define(&not_modelled("graph node: stream memory operations"));
        return Vec::new();
    }
    // SAFETY: the driver answered count operations.
    unsafe { encode_memory_operations(cx, p.paramArray, p.count) }
}

/// Encodes memory operations, one op each.
///
/// # Safety
/// `params` points to `count` descriptors that the driver has given or accepted.
pub(crate) unsafe fn encode_memory_operations(
    cx: &mut Cx<'_>,
    params: *const CUstreamBatchMemOpParams,
    count: c_uint,
) -> Vec<(u16, Vec<u8>)> {
    let mut ops = Vec::new();
    for index in 0..count as usize {
        // SAFETY: forwarded from the caller.
        match unsafe { member(params, index, StreamId::NONE) } {
            Member::Op(op) => ops.push(encode(&op)),
            Member::Nothing => {}
            Member::Unknown => cx.define(&not_modelled("graph node: a stream memory operation of another kind")),
        }
    }
    ops
}

fn not_modelled(text: &'static str) -> Op<'static> {
    Op::Note { kind: trace::NoteKind::NotModelled, text: text.into(), count: 1 }
}

/// What a node does, encoded; tag 0 for nothing.
fn node_op(cx: &mut Cx<'_>, node: CUgraphNode, kind: CUgraphNodeType) -> (u16, Vec<u8>) {
    let nothing = (0, Vec::new());
    let stream = StreamId::NONE;
    match kind {
        CU_GRAPH_NODE_TYPE_KERNEL => {
            let mut p = CUDA_KERNEL_NODE_PARAMS::zeroed();
            let got = real!(cuGraphKernelNodeGetParams_v2(
                node => CUgraphNode, &raw mut p => *mut CUDA_KERNEL_NODE_PARAMS
            ));
            if got != CUresult::SUCCESS { nothing } else { kernel_op(cx, &p) }
        }
        CU_GRAPH_NODE_TYPE_MEMCPY => {
            let mut p = CUDA_MEMCPY3D::zeroed();
            let got = real!(cuGraphMemcpyNodeGetParams(node => CUgraphNode, &raw mut p => *mut CUDA_MEMCPY3D));
            if got != CUresult::SUCCESS { nothing } else { copy_op(cx, &p) }
        }
        CU_GRAPH_NODE_TYPE_MEMSET => {
            let mut p = CUDA_MEMSET_NODE_PARAMS::zeroed();
            let got = real!(cuGraphMemsetNodeGetParams(
                node => CUgraphNode, &raw mut p => *mut CUDA_MEMSET_NODE_PARAMS
            ));
            if got != CUresult::SUCCESS { nothing } else { set_op(&p) }
        }
        CU_GRAPH_NODE_TYPE_HOST => {
            let func = HostFuncId(cx.core().map_or(0, |core| core.handles.fresh()));
            encode(&Op::HostFunc { stream, func, address: 0 })
        }
        CU_GRAPH_NODE_TYPE_WAIT_EVENT | CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
            let mut event = CUevent::NULL;
            let waits = kind == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
            let _ = if waits {
                real!(cuGraphEventWaitNodeGetEvent(node => CUgraphNode, &raw mut event => *mut CUevent))
            } else {
                real!(cuGraphEventRecordNodeGetEvent(node => CUgraphNode, &raw mut event => *mut CUevent))
            };
            event_op(cx, event, waits)
        }
        CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
            let mut p = CUDA_MEM_ALLOC_NODE_PARAMS::zeroed();
            let _ = real!(cuGraphMemAllocNodeGetParams(
                node => CUgraphNode, &raw mut p => *mut CUDA_MEM_ALLOC_NODE_PARAMS
            ));
            let (kind, context, pool) = (MemoryKind::GraphNode, ContextId::NONE, PoolId::NONE);
            encode(&Op::Alloc { ptr: p.dptr, size: p.bytesize as u64, kind, context, stream, pool, flags: 0 })
        }
        CU_GRAPH_NODE_TYPE_MEM_FREE => {
            let mut ptr: CUdeviceptr = 0;
            let _ = real!(cuGraphMemFreeNodeGetParams(node => CUgraphNode, &raw mut ptr => *mut CUdeviceptr));
            encode(&Op::Free { ptr, kind: FreeKind::Async, stream })
        }
        CU_GRAPH_NODE_TYPE_EMPTY => nothing,
        _ => {
            // They order as nodes do, but what they do is not told.
            cx.define(&not_modelled(match kind {
                CU_GRAPH_NODE_TYPE_CONDITIONAL => "graph node: conditional",
                CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL | CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => {
                    "graph node: external semaphores"
                }
                CU_GRAPH_NODE_TYPE_MEMCPY_BATCH => "graph node: batch of copies",
                _ => "graph node of another kind",
            }));
            nothing
        }
    }
}

/// What an event node does.
pub(crate) fn event_op(cx: &mut Cx<'_>, event: CUevent, waits: bool) -> (u16, Vec<u8>) {
    let (event, stream, mode) = (cx.event(event), StreamId::NONE, EventMode::Plain);
    encode(&if waits { Op::StreamWait { stream, event, mode } } else { Op::EventRecord { event, stream, mode } })
}

pub(crate) fn kernel_op(cx: &mut Cx<'_>, p: &CUDA_KERNEL_NODE_PARAMS) -> (u16, Vec<u8>) {
    let function = if p.func.is_null() { CUfunction(p.kern.0) } else { p.func };
    let shape = LaunchShape {
        grid: [p.gridDimX, p.gridDimY, p.gridDimZ],
        block: [p.blockDimX, p.blockDimY, p.blockDimZ],
        shared: p.sharedMemBytes,
        ..LaunchShape::default()
    };
    let mut encoded = (0, Vec::new());
    // SAFETY: the driver has answered or accepted these parameters.
    unsafe {
        cx.with_launch(function, StreamId::NONE, shape, p.kernelParams, p.extra, |_, op| encoded = encode(op));
    }
    encoded
}

pub(crate) fn copy_op(cx: &mut Cx<'_>, p: &CUDA_MEMCPY3D) -> (u16, Vec<u8>) {
    let (dst, src) = pair_3d(cx, p);
    encode(&Op::Copy {
        stream: StreamId::NONE,
        dst: dst.region,
        src: src.region,
        dst_space: dst.space,
        src_space: src.space,
        asynchronous: true,
        batch: 0,
    })
}

pub(crate) fn set_op(p: &CUDA_MEMSET_NODE_PARAMS) -> (u16, Vec<u8>) {
    let width = p.width as u64 * u64::from(p.elementSize);
    let dst = if p.height <= 1 {
        Region::linear(p.dst, width)
    } else {
        Region::pitched(p.dst, width, p.height as u32, p.pitch as u64)
    };
    encode(&Op::Set { stream: StreamId::NONE, dst, asynchronous: true })
}
