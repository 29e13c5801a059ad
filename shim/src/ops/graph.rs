//! Graphs: what an executable graph does is read back from the driver when it is instantiated or updated.
//!
//! Reading the finished graph is exact however it was built (captured, added node by node, cloned). Owns the flattening of child
//! graphs and the ops of nodes; the order that follows is decided by the analyzer.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cuda_sys::*;
use trace::codec::List;
use trace::{
    ContextId, Dependency, Encoder, EventMode, FreeKind, GraphExecId, HostFuncId, MemoryKind, Op, PoolId, Region,
    StackId, StreamId,
};

use super::boxed::pair_3d;
use super::launches::Shape;
use crate::host::graph::HostWork;
use crate::observe::Cx;
use crate::real;

/// One executable graph.
pub struct Exec {
    /// Its id.
    pub id: GraphExecId,
    nodes: Vec<Node>,
    by_handle: HashMap<u64, usize>,
    /// What it does to the host's memory.
    pub host: Arc<HostWork>,
}

impl Exec {
    fn host_work(nodes: &[Node]) -> Arc<HostWork> {
        let ops = nodes.iter().map(|n| if n.enabled { Op::decode(n.tag, &n.body).ok() } else { None });
        Arc::new(HostWork::of(&ops.collect::<Vec<_>>()))
    }
}

/// One node, child graphs flattened.
#[derive(Clone)]
struct Node {
    dependencies: Vec<Dependency>,
    tag: u16,
    body: Vec<u8>,
    enabled: bool,
    stack: StackId,
    call: FnId,
}

/// What stands for "this has completed": the nodes that all must have.
type Completion = Vec<Dependency>;

#[derive(Default)]
struct Reading {
    nodes: Vec<Node>,
    by_handle: HashMap<u64, usize>,
}

fn encode(op: &Op<'_>) -> (u16, Vec<u8>) {
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

/// Nodes and edges of a graph as the driver lists them.
fn list(graph: CUgraph) -> Option<(Vec<CUgraphNode>, Vec<Edge>)> {
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
    fn read(&mut self, cx: &mut Cx<'_>, graph: CUgraph, entry: &[Dependency], depth: u32) -> Completion {
        let Some((nodes, edges)) = list(graph) else {
            cx.not_modelled();
            return entry.to_vec();
        };
        let mut waiting: HashMap<u64, usize> = HashMap::new();
        for (_, to, _) in &edges {
            *waiting.entry(to.0 as u64).or_default() += 1;
        }
        let mut completions: HashMap<u64, Completion> = HashMap::new();
        let mut has_successor: HashMap<u64, bool> = HashMap::new();
        // Among nodes that may come next, the one that was added first: so reports name pairs in the order of the program.
        let place: HashMap<u64, usize> = nodes.iter().enumerate().map(|(i, n)| (n.0 as u64, i)).collect();
        let is_ready = |(_, node): &(usize, &CUgraphNode)| !waiting.contains_key(&(node.0 as u64));
        let mut ready: BTreeSet<usize> = nodes.iter().enumerate().filter(is_ready).map(|(i, _)| i).collect();
        while let Some(first) = ready.pop_first() {
            let node = nodes[first];
            let key = node.0 as u64;
            let mut before: Vec<Dependency> = Vec::new();
            for (from, _, port) in edges.iter().filter(|(_, to, _)| *to == node) {
                for dependency in completions.get(&(from.0 as u64)).into_iter().flatten() {
                    before.push(Dependency { from: dependency.from, port: *port });
                }
            }
            if before.is_empty() {
                before = entry.to_vec();
            }
            let completion = self.read_node(cx, node, before, depth);
            completions.insert(key, completion);
            for (_, to, _) in edges.iter().filter(|(from, _, _)| *from == node) {
                has_successor.insert(key, true);
                if let Some(left) = waiting.get_mut(&(to.0 as u64)) {
                    *left -= 1;
                    if *left == 0 {
                        ready.extend(place.get(&(to.0 as u64)));
                    }
                }
            }
        }
        let leaves = nodes.iter().filter(|node| !has_successor.contains_key(&(node.0 as u64)));
        let end: Completion = leaves.filter_map(|node| completions.get(&(node.0 as u64))).flatten().copied().collect();
        if end.is_empty() { entry.to_vec() } else { end }
    }

    fn read_node(&mut self, cx: &mut Cx<'_>, node: CUgraphNode, before: Vec<Dependency>, depth: u32) -> Completion {
        let mut kind = CUgraphNodeType(0);
        let _ = real!(cuGraphNodeGetType(node => CUgraphNode, &raw mut kind => *mut CUgraphNodeType));
        if kind == CU_GRAPH_NODE_TYPE_GRAPH && depth < 16 {
            let mut child = CUgraph::NULL;
            let _ = real!(cuGraphChildGraphNodeGetGraph(node => CUgraphNode, &raw mut child => *mut CUgraph));
            return self.read(cx, child, &before, depth + 1);
        }
        let (tag, body) = node_op(cx, node, kind);
        let origin = cx.core().and_then(|core| core.handles.nodes.get(&(node.0 as u64)).map(|o| *o));
        let (stack, call) = origin.unwrap_or((StackId::NONE, cx.call));
        let index = self.nodes.len();
        self.by_handle.insert(node.0 as u64, index);
        self.nodes.push(Node { dependencies: before, tag, body, enabled: true, stack, call });
        vec![Dependency { from: index as u32, port: 0 }]
    }
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
            let event = cx.event(event);
            let mode = EventMode::Plain;
            encode(&if waits {
                Op::StreamWait { stream, event, mode }
            } else {
                Op::EventRecord { event, stream, mode }
            })
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
            // Semaphores, memory operations, conditional and batch nodes: they order as nodes do, but what they do is not told.
            let text = match kind {
                CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => "graph node: stream memory operations",
                CU_GRAPH_NODE_TYPE_CONDITIONAL => "graph node: conditional",
                _ => "graph node of another kind",
            };
            cx.define(&Op::Note { kind: trace::NoteKind::NotModelled, text: text.into(), count: 1 });
            nothing
        }
    }
}

fn kernel_op(cx: &mut Cx<'_>, p: &CUDA_KERNEL_NODE_PARAMS) -> (u16, Vec<u8>) {
    let function = if p.func.is_null() { CUfunction(p.kern.0) } else { p.func };
    let shape = Shape {
        grid: [p.gridDimX, p.gridDimY, p.gridDimZ],
        block: [p.blockDimX, p.blockDimY, p.blockDimZ],
        shared: p.sharedMemBytes,
        ..Shape::default()
    };
    let mut encoded = (0, Vec::new());
    // SAFETY: the driver has answered or accepted these parameters.
    unsafe {
        cx.with_launch(function, StreamId::NONE, shape, p.kernelParams, p.extra, |_, op| encoded = encode(op));
    }
    encoded
}

fn copy_op(cx: &mut Cx<'_>, p: &CUDA_MEMCPY3D) -> (u16, Vec<u8>) {
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

fn set_op(p: &CUDA_MEMSET_NODE_PARAMS) -> (u16, Vec<u8>) {
    let width = p.width as u64 * u64::from(p.elementSize);
    let dst = if p.height <= 1 {
        Region::linear(p.dst, width)
    } else {
        Region::pitched(p.dst, width, p.height as u32, p.pitch as u64)
    };
    encode(&Op::Set { stream: StreamId::NONE, dst, asynchronous: true })
}

impl Cx<'_> {
    /// An executable graph was made or made anew from a graph.
    fn instantiated(&mut self, exec: CUgraphExec, graph: CUgraph, flags: u32) {
        let Some(core) = self.core() else { return };
        let mut reading = Reading::default();
        reading.read(self, graph, &[], 0);
        let known = core.handles.execs.get(&(exec.0 as u64)).map(|e| e.id);
        let id = known.unwrap_or_else(|| core.handles.fresh_exec());
        let Reading { nodes, by_handle } = reading;
        self.log(&Op::GraphExec { exec: id, nodes: nodes.len() as u32, flags, handle: exec.0 as u64 });
        for (index, node) in nodes.iter().enumerate() {
            self.send_node(id, index, node);
        }
        let host = Exec::host_work(&nodes);
        core.handles.execs.insert(exec.0 as u64, Exec { id, nodes, by_handle, host });
    }

    fn send_node(&mut self, exec: GraphExecId, index: usize, node: &Node) {
        let Some(core) = self.core() else { return };
        if let Some(mut shared) = core.lock() {
            let call = shared.name(node.call);
            shared.define(&Op::GraphNode {
                exec,
                index: index as u32,
                stack: node.stack,
                call,
                enabled: node.enabled,
                dependencies: List::new(&node.dependencies),
                tag: node.tag,
                body: &node.body,
            });
        }
    }

    /// Changes one node of an executable graph.
    fn update_node(&mut self, exec: CUgraphExec, node: CUgraphNode, change: impl FnOnce(&mut Self, &mut Node)) {
        let Some(core) = self.core() else { return };
        let found = core.handles.execs.get(&(exec.0 as u64)).and_then(|e| {
            let index = *e.by_handle.get(&(node.0 as u64))?;
            Some((e.id, index, e.nodes.get(index)?.clone()))
        });
        let Some((id, index, mut updated)) = found else { return self.not_modelled() };
        change(self, &mut updated);
        updated.stack = self.stack();
        updated.call = self.call;
        self.send_node(id, index, &updated);
        if let Some(mut e) = core.handles.execs.get_mut(&(exec.0 as u64)) {
            e.nodes[index] = updated;
            e.host = Exec::host_work(&e.nodes);
        }
    }

    /// A node was added explicitly: its stack is remembered.
    pub(super) fn node_added(&mut self, node: *mut CUgraphNode) {
        let Some(core) = self.core() else { return };
        let origin = (self.stack(), self.call);
        // SAFETY: the call succeeded, so it has written the handle.
        core.handles.nodes.insert(unsafe { *node }.0 as u64, origin);
    }
}

pub(crate) unsafe fn cuGraphInstantiateWithFlags(
    cx: &mut Cx<'_>,
    graph_exec: *mut CUgraphExec,
    graph: CUgraph,
    flags: u64,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    cx.instantiated(unsafe { *graph_exec }, graph, flags as u32);
}

pub(crate) unsafe fn cuGraphInstantiateWithParams(
    cx: &mut Cx<'_>,
    graph_exec: *mut CUgraphExec,
    graph: CUgraph,
    instantiate_params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) {
    // SAFETY: the call succeeded: it has read the parameters and written the handle.
    let (exec, flags) = unsafe { (*graph_exec, (*instantiate_params).flags) };
    cx.instantiated(exec, graph, flags as u32);
}

pub(crate) unsafe fn cuGraphInstantiate_v2(
    cx: &mut Cx<'_>,
    graph_exec: *mut CUgraphExec,
    graph: CUgraph,
    _error_node: *mut CUgraphNode,
    _log_buffer: *mut c_char,
    _buffer_size: usize,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    cx.instantiated(unsafe { *graph_exec }, graph, 0);
}

pub(crate) unsafe fn cuGraphExecUpdate(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    graph: CUgraph,
    _error_node_out: *mut CUgraphNode,
    _update_result_out: *mut CUgraphExecUpdateResult,
) {
    cx.instantiated(graph_exec, graph, 0);
}

pub(crate) unsafe fn cuGraphExecUpdate_v2(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    graph: CUgraph,
    _result_info: *mut CUgraphExecUpdateResultInfo,
) {
    cx.instantiated(graph_exec, graph, 0);
}

pub(crate) unsafe fn cuGraphExecKernelNodeSetParams(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *const CUDA_KERNEL_NODE_PARAMS_v1,
) {
    // SAFETY: the call has accepted the parameters. The first version is a prefix of the second.
    let p = unsafe {
        let mut p = CUDA_KERNEL_NODE_PARAMS::zeroed();
        std::ptr::copy_nonoverlapping(node_params, (&raw mut p).cast(), 1);
        p
    };
    cx.update_node(graph_exec, node, |cx, node| (node.tag, node.body) = kernel_op(cx, &p));
}

pub(crate) unsafe fn cuGraphExecKernelNodeSetParams_v2(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *const CUDA_KERNEL_NODE_PARAMS,
) {
    // SAFETY: the call has accepted the parameters.
    let p = unsafe { *node_params };
    cx.update_node(graph_exec, node, |cx, node| (node.tag, node.body) = kernel_op(cx, &p));
}

pub(crate) unsafe fn cuGraphExecMemcpyNodeSetParams(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    copy_params: *const CUDA_MEMCPY3D,
    _ctx: CUcontext,
) {
    // SAFETY: the call has accepted the parameters.
    let p = unsafe { *copy_params };
    cx.update_node(graph_exec, node, |cx, node| (node.tag, node.body) = copy_op(cx, &p));
}

pub(crate) unsafe fn cuGraphExecMemsetNodeSetParams(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    memset_params: *const CUDA_MEMSET_NODE_PARAMS,
    _ctx: CUcontext,
) {
    // SAFETY: the call has accepted the parameters.
    let p = unsafe { *memset_params };
    cx.update_node(graph_exec, node, |_, node| (node.tag, node.body) = set_op(&p));
}

pub(crate) unsafe fn cuGraphExecHostNodeSetParams(
    _cx: &mut Cx<'_>,
    _graph_exec: CUgraphExec,
    _node: CUgraphNode,
    _node_params: *const CUDA_HOST_NODE_PARAMS,
) {
    // Another function at the same place: order and accesses as known are the same.
}

pub(crate) unsafe fn cuGraphExecNodeSetParams(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *mut CUgraphNodeParams,
) {
    // SAFETY: the call has accepted the parameters; the type says which member is valid, and version 3 of the kernel's and version 2
    // of the fill's begin as the ones read here.
    unsafe {
        let p = &*node_params;
        match p.type_ {
            CU_GRAPH_NODE_TYPE_KERNEL => {
                let p = std::ptr::from_ref(&p.anon1.kernel).cast();
                cuGraphExecKernelNodeSetParams_v2(cx, graph_exec, node, p);
            }
            CU_GRAPH_NODE_TYPE_MEMCPY => {
                let p = &raw const p.anon1.memcpy.copyParams;
                cuGraphExecMemcpyNodeSetParams(cx, graph_exec, node, p, CUcontext::NULL);
            }
            CU_GRAPH_NODE_TYPE_MEMSET => {
                let p = std::ptr::from_ref(&p.anon1.memset).cast();
                cuGraphExecMemsetNodeSetParams(cx, graph_exec, node, p, CUcontext::NULL);
            }
            CU_GRAPH_NODE_TYPE_HOST => {}
            _ => cx.not_modelled(),
        }
    }
}

pub(crate) unsafe fn cuGraphNodeSetEnabled(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    is_enabled: c_uint,
) {
    cx.update_node(graph_exec, node, |_, node| node.enabled = is_enabled != 0);
}

pub(crate) unsafe fn cuGraphExecDestroy(cx: &mut Cx<'_>, graph_exec: CUgraphExec) {
    let removed = cx.core().and_then(|core| core.handles.execs.remove(&(graph_exec.0 as u64)));
    if let Some((_, exec)) = removed {
        cx.log(&Op::GraphExecDestroy { exec: exec.id });
    }
}

pub(crate) unsafe fn cuGraphLaunch(cx: &mut Cx<'_>, graph_exec: CUgraphExec, stream: CUstream) {
    let exec = cx.core().and_then(|core| core.handles.execs.get(&(graph_exec.0 as u64)).map(|e| e.id));
    let Some(stream) = cx.working_stream(stream) else { return };
    match exec {
        Some(exec) => {
            let epoch = cx.log(&Op::GraphLaunch { stream, exec });
            cx.watch_graph(epoch, stream, graph_exec);
        }
        None => {
            cx.log(&Op::Opaque { stream });
            cx.not_modelled();
        }
    }
}
