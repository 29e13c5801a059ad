//! Executable graphs: made, updated, changed node by node, launched.
//!
//! Owns the changes to what is known of each executable ([`GraphExec`]). Graphs are read in
//! [`super::flatten`].

use cuda_sys::*;
use trace::codec::List;
use trace::{GraphExecId, Op};

use super::conditions;
use super::flatten::FlatGraph;
use super::node_ops::{EncodedOp, copy_op, encode, encode_memory_operations, event_op, kernel_op, set_op};
use crate::exact::{graph_launch, simulated_graph_launch};
use crate::handles::graph_execs::{GraphExec, GraphNode};
use crate::ids::destroyed::handle_destroyed;
use crate::ids::streams::working_stream;
use crate::observe::Cx;
use crate::observe::host_watch::watch_graph;
use crate::ops::host_functions;
use crate::real::driver::real;

/// An executable graph was made from a graph.
fn exec_instantiated(cx: &mut Cx<'_>, exec: CUgraphExec, graph: CUgraph, flags: u32) {
    let mut graph_read = read_graph(cx, graph);
    if host_functions::are_watched(cx) {
        see_functions(cx, exec, &mut graph_read);
    }
    keep_exec(cx, exec, graph_read, flags);
}

/// Has the host functions of a new executable run by way of the shim. An update gives them back
/// to the program: the graph whose nodes name them may be gone by then.
fn see_functions(cx: &Cx<'_>, exec: CUgraphExec, graph_read: &mut FlatGraph) {
    for &(handle, index) in &graph_read.functions {
        let Some(node) = graph_read.nodes.get_mut(index).filter(|node| node.function.0 != 0) else { continue };
        // SAFETY: the driver has answered this function.
        let function: CUhostFn =
            Some(unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(node.function.0) });
        let data = node.function.1 as *mut c_void;
        let op = host_functions::wrap_node(cx, exec, CUgraphNode(handle as *mut _), function, data);
        (node.tag, node.body) = encode(&op);
    }
}

fn read_graph(cx: &mut Cx<'_>, graph: CUgraph) -> FlatGraph {
    let mut graph_read = FlatGraph::default();
    graph_read.read(cx, graph, &[], 0);
    graph_read.join_values();
    conditions::settle(&mut graph_read.nodes, &graph_read.default_bodies);
    graph_read
}

fn keep_exec(cx: &mut Cx<'_>, exec: CUgraphExec, graph_read: FlatGraph, flags: u32) {
    let Some(core) = cx.core() else { return };
    let known = core.handles.execs.get(&(exec.0 as u64)).map(|e| e.id);
    let id = known.unwrap_or_else(|| core.handles.fresh_exec());
    let FlatGraph { nodes, by_handle, .. } = graph_read;
    cx.log(&Op::GraphExec { exec: id, nodes: nodes.len() as u32, flags, handle: exec.0 as u64 });
    let has_captured = nodes.iter().any(|node| node.captured.iter().any(|(_, number)| *number != 0));
    for (index, node) in nodes.iter().enumerate() {
        send_node(cx, id, index, node);
        let Some(mut shared) = core.lock() else { continue };
        let (exec, index) = (id, index as u32);
        if !node.stream.is_none() {
            shared.define(&Op::NodeCaptured { exec, index, stream: node.stream });
        }
        if let Some(condition) = node.condition {
            shared.define(&Op::NodeConditional { exec, index, condition });
        }
        for &(part, node) in node.captured.iter().filter(|_| has_captured) {
            shared.define(&Op::NodeOf { exec, index, part, node });
        }
    }
    let host = GraphExec::host_work(&nodes);
    core.handles.execs.insert(exec.0 as u64, GraphExec { id, nodes, by_handle, host });
}

/// An executable graph was changed to do what another graph of the same shape does. Single
/// nodes go on being named by the graph that it was made from, and what was disabled may still
/// be.
fn exec_updated(cx: &mut Cx<'_>, exec: CUgraphExec, graph: CUgraph) {
    graph_launch::changed();
    let Some(core) = cx.core() else { return };
    let mut graph_read = read_graph(cx, graph);
    let old = core.handles.execs.get(&(exec.0 as u64)).map(|e| (e.nodes.len(), e.by_handle.clone()));
    if let Some((_, by_handle)) = old.filter(|(count, _)| *count == graph_read.nodes.len()) {
        for (handle, (first, count)) in by_handle {
            let mut enabled: c_uint = 1;
            let answered = real!(cuGraphNodeGetEnabled(
                exec => CUgraphExec, CUgraphNode(handle as *mut _) => CUgraphNode, &raw mut enabled => *mut c_uint
            ));
            if answered == CUresult::SUCCESS && enabled == 0 {
                graph_read.nodes.iter_mut().skip(first).take(count).for_each(|node| node.enabled = false);
            }
            graph_read.by_handle.insert(handle, (first, count));
        }
    }
    keep_exec(cx, exec, graph_read, 0);
}

fn send_node(cx: &mut Cx<'_>, exec: GraphExecId, index: usize, node: &GraphNode) {
    let Some(core) = cx.core() else { return };
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

/// Changes the nodes that stand for one node of an executable graph. False from `change`: that
/// is not how it can be changed.
fn update_nodes(
    cx: &mut Cx<'_>,
    exec: CUgraphExec,
    node: CUgraphNode,
    change: impl FnOnce(&mut Cx<'_>, &mut [GraphNode]) -> bool,
) {
    let Some(core) = cx.core() else { return };
    let found = core.handles.execs.get(&(exec.0 as u64)).and_then(|e| {
        let &(first, count) = e.by_handle.get(&(node.0 as u64))?;
        Some((e.id, first, e.nodes.get(first..first + count)?.to_vec()))
    });
    let Some((id, first, mut nodes)) = found else { return cx.not_modelled() };
    let before: Vec<(u16, Vec<u8>, bool)> = nodes.iter().map(|n| (n.tag, n.body.clone(), n.enabled)).collect();
    if !change(cx, &mut nodes) {
        return cx.not_modelled();
    }
    for (index, (node, (tag, body, enabled))) in nodes.iter_mut().zip(before).enumerate() {
        if node.tag == tag && node.body == body && node.enabled == enabled {
            continue;
        }
        if node.tag != tag || node.body != body {
            (node.stack, node.call) = (cx.stack(), cx.call);
        }
        send_node(cx, id, first + index, node);
    }
    if let Some(mut e) = core.handles.execs.get_mut(&(exec.0 as u64)) {
        for (index, node) in nodes.into_iter().enumerate() {
            if let Some(known) = e.nodes.get_mut(first + index) {
                *known = node;
            }
        }
        e.host = GraphExec::host_work(&e.nodes);
    }
}

/// Gives a node of an executable graph another op.
fn update_node(cx: &mut Cx<'_>, exec: CUgraphExec, node: CUgraphNode, op: impl FnOnce(&mut Cx<'_>) -> EncodedOp) {
    update_nodes(cx, exec, node, |cx, nodes| {
        let Some(node) = nodes.first_mut() else { return false };
        (node.tag, node.body) = op(cx);
        true
    });
}

pub(crate) unsafe fn cuGraphInstantiateWithFlags(
    cx: &mut Cx<'_>,
    graph_exec: *mut CUgraphExec,
    graph: CUgraph,
    flags: u64,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    exec_instantiated(cx, unsafe { *graph_exec }, graph, flags as u32);
}

pub(crate) unsafe fn cuGraphInstantiateWithParams(
    cx: &mut Cx<'_>,
    graph_exec: *mut CUgraphExec,
    graph: CUgraph,
    instantiate_params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) {
    // SAFETY: the call succeeded: it has read the parameters and written the handle.
    let (exec, flags) = unsafe { (*graph_exec, (*instantiate_params).flags) };
    exec_instantiated(cx, exec, graph, flags as u32);
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
    exec_instantiated(cx, unsafe { *graph_exec }, graph, 0);
}

pub(crate) unsafe fn cuGraphExecUpdate(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    graph: CUgraph,
    _error_node_out: *mut CUgraphNode,
    _update_result_out: *mut CUgraphExecUpdateResult,
) {
    exec_updated(cx, graph_exec, graph);
}

pub(crate) unsafe fn cuGraphExecUpdate_v2(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    graph: CUgraph,
    _result_info: *mut CUgraphExecUpdateResultInfo,
) {
    exec_updated(cx, graph_exec, graph);
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
    graph_launch::changed();
    update_node(cx, graph_exec, node, |cx| kernel_op(cx, &p));
}

pub(crate) unsafe fn cuGraphExecKernelNodeSetParams_v2(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *const CUDA_KERNEL_NODE_PARAMS,
) {
    // SAFETY: the call has accepted the parameters.
    let p = unsafe { *node_params };
    graph_launch::changed();
    update_node(cx, graph_exec, node, |cx| kernel_op(cx, &p));
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
    update_node(cx, graph_exec, node, |cx| copy_op(cx, &p));
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
    update_node(cx, graph_exec, node, |_| set_op(&p));
}

pub(crate) unsafe fn cuGraphExecHostNodeSetParams(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *const CUDA_HOST_NODE_PARAMS,
) {
    // SAFETY: the call has accepted the parameters.
    let (function, data) = unsafe { ((*node_params).fn_, (*node_params).userData) };
    set_function(cx, graph_exec, node, function, data);
}

/// Another function at the same place. Order and accesses as known are the same, if nobody looks at
/// what it touches.
fn set_function(cx: &mut Cx<'_>, exec: CUgraphExec, node: CUgraphNode, function: CUhostFn, data: *mut c_void) {
    if host_functions::are_watched(cx) {
        update_node(cx, exec, node, |cx| encode(&host_functions::wrap_node(cx, exec, node, function, data)));
    }
}

pub(crate) unsafe fn cuGraphExecNodeSetParams(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *mut CUgraphNodeParams,
) {
    // SAFETY: the call has accepted the parameters; the type says which member is valid, and
    // version 3 of the kernel's and version 2 of the fill's begin as the ones read here.
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
            CU_GRAPH_NODE_TYPE_HOST => {
                let p = &p.anon1.host;
                set_function(cx, graph_exec, node, p.fn_, p.userData);
            }
            CU_GRAPH_NODE_TYPE_GRAPH => cuGraphExecChildGraphNodeSetParams(cx, graph_exec, node, p.anon1.graph.graph),
            CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                cuGraphExecEventRecordNodeSetEvent(cx, graph_exec, node, p.anon1.eventRecord.event);
            }
            CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                cuGraphExecEventWaitNodeSetEvent(cx, graph_exec, node, p.anon1.eventWait.event);
            }
            CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                let m = &p.anon1.memOp;
                set_memory_operations(cx, graph_exec, node, m.paramArray, m.count);
            }
            _ => cx.not_modelled(),
        }
    }
}

/// The child graph of a node does what another graph of the same shape does.
pub(crate) unsafe fn cuGraphExecChildGraphNodeSetParams(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    child_graph: CUgraph,
) {
    graph_launch::changed();
    update_nodes(cx, graph_exec, node, |cx, nodes| {
        let mut graph_read = FlatGraph::default();
        graph_read.read(cx, child_graph, &[], 1);
        if graph_read.nodes.len() != nodes.len() {
            return false;
        }
        for (node, new) in nodes.iter_mut().zip(graph_read.nodes) {
            (node.tag, node.body) = (new.tag, new.body);
        }
        true
    });
}

pub(crate) unsafe fn cuGraphExecEventRecordNodeSetEvent(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    event: CUevent,
) {
    update_node(cx, graph_exec, node, |cx| event_op(cx, event, false));
}

pub(crate) unsafe fn cuGraphExecEventWaitNodeSetEvent(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    event: CUevent,
) {
    update_node(cx, graph_exec, node, |cx| event_op(cx, event, true));
}

/// # Safety
/// `params` points to `count` descriptors that the driver has accepted.
unsafe fn set_memory_operations(
    cx: &mut Cx<'_>,
    exec: CUgraphExec,
    node: CUgraphNode,
    params: *const CUstreamBatchMemOpParams,
    count: c_uint,
) {
    update_nodes(cx, exec, node, |cx, nodes| {
        // SAFETY: forwarded from the caller.
        let ops = unsafe { encode_memory_operations(cx, params, count) };
        if ops.len().max(1) != nodes.len() {
            return false;
        }
        for (node, op) in nodes.iter_mut().zip(ops) {
            (node.tag, node.body) = op;
        }
        true
    });
}

pub(crate) unsafe fn cuGraphExecBatchMemOpNodeSetParams(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
) {
    // SAFETY: the call has accepted the parameters.
    unsafe {
        let p = &*node_params;
        set_memory_operations(cx, graph_exec, node, p.paramArray, p.count);
    }
}

pub(crate) unsafe fn cuGraphNodeSetEnabled(
    cx: &mut Cx<'_>,
    graph_exec: CUgraphExec,
    node: CUgraphNode,
    is_enabled: c_uint,
) {
    update_nodes(cx, graph_exec, node, |_, nodes| {
        nodes.iter_mut().for_each(|node| node.enabled = is_enabled != 0);
        true
    });
}

pub(crate) unsafe fn cuGraphExecDestroy(cx: &mut Cx<'_>, graph_exec: CUgraphExec) {
    if let Some(exec) = handle_destroyed(cx, |handles| &handles.execs, graph_exec.0 as u64, |exec| exec.id.0) {
        cx.log(&Op::GraphExecDestroy { exec: GraphExecId(exec) });
    }
}

/// A graph is about to be launched. With host functions that are looked at, it is logged now:
/// they may run before the call returns.
fn launch_comes(cx: &mut Cx<'_>, graph_exec: CUgraphExec, stream: CUstream) {
    if !host_functions::are_watched(cx) {
        return;
    }
    let known = cx.core().and_then(|core| {
        let exec = core.handles.execs.get(&(graph_exec.0 as u64))?;
        (!exec.host.seen.is_empty()).then_some(exec.id)
    });
    let Some(exec) = known else { return };
    if let Some(id) = working_stream(cx, stream) {
        let epoch = cx.log(&Op::GraphLaunch { stream: id, exec });
        watch_graph(cx, epoch, id, graph_exec);
        cx.token = epoch.time + 1;
    }
}

/// A launch that was logged has failed: its functions are over. The host counts as having seen
/// the work before it, which may hide a race of a program that goes on.
fn launch_failed(cx: &mut Cx<'_>, graph_exec: CUgraphExec) {
    let host = cx.core().and_then(|core| Some(core.handles.execs.get(&(graph_exec.0 as u64))?.host.clone()));
    for func in host.iter().flat_map(|host| &host.seen) {
        cx.log(&Op::HostFuncRun { func: *func, done: true });
    }
}

pub(crate) unsafe fn cuGraphLaunch(cx: &mut Cx<'_>, graph_exec: CUgraphExec, stream: CUstream) {
    if cx.is_before() {
        return launch_comes(cx, graph_exec, stream);
    }
    if cx.failure().is_some() {
        return launch_failed(cx, graph_exec);
    }
    let exec = cx.core().and_then(|core| core.handles.execs.get(&(graph_exec.0 as u64)).map(|e| e.id));
    let mut measured = graph_launch::launched(graph_exec.0.cast());
    let mut simulated = simulated_graph_launch::launched(graph_exec.0.cast());
    // Measured nodes would have had to be announced before the launch was logged.
    if cx.token != 0 {
        return;
    }
    let Some(id) = working_stream(cx, stream) else { return };
    match exec {
        Some(exec) => {
            if let (Some(launching), Some(core)) = (&mut measured, cx.core()) {
                let known = core.handles.execs.get(&(graph_exec.0 as u64));
                launching.announce(core, exec, |node| known.as_ref()?.launch(node));
            }
            if let (Some(launching), Some(core)) = (&mut simulated, cx.core()) {
                let known = core.handles.execs.get(&(graph_exec.0 as u64));
                launching.announce(core, exec, |node| known.as_ref()?.launch(node));
            }
            let epoch = cx.log(&Op::GraphLaunch { stream: id, exec });
            if let Some(launching) = &mut simulated {
                launching.submitted(epoch);
            }
            if let Some(launching) = &mut measured {
                launching.submitted(epoch, stream, cx.stream0() == Stream0::PerThread);
            }
            watch_graph(cx, epoch, id, graph_exec);
        }
        None => {
            cx.log(&Op::Opaque { stream: id });
            cx.not_modelled();
        }
    }
}
