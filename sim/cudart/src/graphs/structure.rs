//! Graphs: creation, nodes of one kind each, instantiation, launches. Versions 12 and 13 take
//! different arguments at some places; `version` tells the two forms apart.

use cuda_sys::*;

use crate::kernels::registration::{kernel_or_handle, variable};
use crate::memory::copies::{describe, describe_linear, inside};
use crate::thread_state::{Res, get, put};

fn context() -> Result<CUcontext, cudaError> {
    let mut ctx = CUcontext::NULL;
    cu!(cuCtxGetCurrent(&mut ctx))?;
    Ok(ctx)
}

fn kernel_params(p: *const cudaKernelNodeParams) -> Result<CUDA_KERNEL_NODE_PARAMS, cudaError> {
    let p = get(p)?;
    // The driver takes a kernel where it asks for a function, here as in launches; the field `kern`
    // is its own.
    let handle = kernel_or_handle(p.func)?;
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: CUfunction::NULL,
        kern: CUkernel::from_bits(handle.bits()),
        ctx: CUcontext::NULL,
        gridDimX: p.gridDim.x,
        gridDimY: p.gridDim.y,
        gridDimZ: p.gridDim.z,
        blockDimX: p.blockDim.x,
        blockDimY: p.blockDim.y,
        blockDimZ: p.blockDim.z,
        sharedMemBytes: p.sharedMemBytes,
        kernelParams: p.kernelParams,
        extra: p.extra,
    })
}

fn set_params(p: *const cudaMemsetParams) -> Result<CUDA_MEMSET_NODE_PARAMS, cudaError> {
    let p = get(p)?;
    Ok(CUDA_MEMSET_NODE_PARAMS {
        dst: p.dst as u64,
        pitch: p.pitch,
        value: p.value,
        elementSize: p.elementSize,
        width: p.width,
        height: p.height,
    })
}

fn change_edges(
    graph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    (data, count): (*const CUgraphEdgeData, usize),
    add: bool,
) -> Res {
    match add {
        true => cu!(cuGraphAddDependencies_v2(graph, from, to, data, count)),
        false => cu!(cuGraphRemoveDependencies_v2(graph, from, to, data, count)),
    }
}

/// The data of edges and how many they are, as this version's functions are called.
fn data_and_count(data_or_count: usize, count: usize) -> (*const CUgraphEdgeData, usize) {
    match crate::version::major() >= 13 {
        true => (data_or_count as *const _, count),
        false => (std::ptr::null(), data_or_count),
    }
}

type Nodes = *const CUgraphNode;

rt! {
    ctx fn [cudaGraphCreate plain](_pt, graph: *mut CUgraph, flags: c_uint) { cu!(cuGraphCreate(graph, flags)) }
    ctx fn [cudaGraphDestroy plain](_pt, graph: CUgraph) { cu!(cuGraphDestroy(graph)) }
    ctx fn [cudaGraphClone plain](_pt, clone: *mut CUgraph, graph: CUgraph) { cu!(cuGraphClone(clone, graph)) }
    ctx fn [cudaGraphDestroyNode plain](_pt, node: CUgraphNode) { cu!(cuGraphDestroyNode(node)) }
    ctx fn [cudaGraphAddKernelNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, p: *const cudaKernelNodeParams
    ) {
        cu!(cuGraphAddKernelNode_v2(out, graph, deps, n, &kernel_params(p)?))
    }
    ctx fn [cudaGraphKernelNodeSetParams plain](_pt, node: CUgraphNode, p: *const cudaKernelNodeParams) {
        cu!(cuGraphKernelNodeSetParams_v2(node, &kernel_params(p)?))
    }
    ctx fn [cudaGraphExecKernelNodeSetParams plain](
        _pt, exec: CUgraphExec, node: CUgraphNode, p: *const cudaKernelNodeParams
    ) {
        cu!(cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel_params(p)?))
    }
    ctx fn [cudaGraphKernelNodeGetParams plain](_pt, node: CUgraphNode, out: *mut cudaKernelNodeParams) {
        let mut p = CUDA_KERNEL_NODE_PARAMS::zeroed();
        cu!(cuGraphKernelNodeGetParams_v2(node, &mut p))?;
        let func = if p.kern.is_null() { p.func.bits() } else { p.kern.bits() };
        put(out, cudaKernelNodeParams {
            func: func as *mut c_void,
            gridDim: dim3 { x: p.gridDimX, y: p.gridDimY, z: p.gridDimZ },
            blockDim: dim3 { x: p.blockDimX, y: p.blockDimY, z: p.blockDimZ },
            sharedMemBytes: p.sharedMemBytes, kernelParams: p.kernelParams, extra: p.extra,
        })
    }
    ctx fn [cudaGraphKernelNodeSetAttribute plain](
        _pt, node: CUgraphNode, attr: CUlaunchAttributeID, value: *const CUlaunchAttributeValue
    ) {
        cu!(cuGraphKernelNodeSetAttribute(node, attr, value))
    }
    ctx fn [cudaGraphKernelNodeGetAttribute plain](
        _pt, node: CUgraphNode, attr: CUlaunchAttributeID, value: *mut CUlaunchAttributeValue
    ) {
        cu!(cuGraphKernelNodeGetAttribute(node, attr, value))
    }
    ctx fn [cudaGraphAddMemcpyNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, p: *const cudaMemcpy3DParms
    ) {
        cu!(cuGraphAddMemcpyNode(out, graph, deps, n, &describe(&get(p)?)?, context()?))
    }
    ctx fn [cudaGraphAddMemcpyNode1D plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, dst: *mut c_void, src: *const c_void,
        size: usize, kind: cudaMemcpyKind
    ) {
        let copy = describe_linear(dst as u64, src as u64, size, kind)?;
        cu!(cuGraphAddMemcpyNode(out, graph, deps, n, &copy, context()?))
    }
    ctx fn [cudaGraphAddMemcpyNodeToSymbol plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, symbol: *const c_void, src: *const c_void,
        size: usize, offset: usize, kind: cudaMemcpyKind
    ) {
        let (at, room) = variable(symbol)?;
        let copy = describe_linear(inside(at, room, offset, size)?, src as u64, size, kind)?;
        cu!(cuGraphAddMemcpyNode(out, graph, deps, n, &copy, context()?))
    }
    ctx fn [cudaGraphAddMemcpyNodeFromSymbol plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, dst: *mut c_void, symbol: *const c_void,
        size: usize, offset: usize, kind: cudaMemcpyKind
    ) {
        let (at, room) = variable(symbol)?;
        let copy = describe_linear(dst as u64, inside(at, room, offset, size)?, size, kind)?;
        cu!(cuGraphAddMemcpyNode(out, graph, deps, n, &copy, context()?))
    }
    ctx fn [cudaGraphMemcpyNodeSetParams plain](_pt, node: CUgraphNode, p: *const cudaMemcpy3DParms) {
        cu!(cuGraphMemcpyNodeSetParams(node, &describe(&get(p)?)?))
    }
    ctx fn [cudaGraphMemcpyNodeSetParams1D plain](
        _pt, node: CUgraphNode, dst: *mut c_void, src: *const c_void, size: usize, kind: cudaMemcpyKind
    ) {
        cu!(cuGraphMemcpyNodeSetParams(node, &describe_linear(dst as u64, src as u64, size, kind)?))
    }
    ctx fn [cudaGraphExecMemcpyNodeSetParams plain](
        _pt, exec: CUgraphExec, node: CUgraphNode, p: *const cudaMemcpy3DParms
    ) {
        cu!(cuGraphExecMemcpyNodeSetParams(exec, node, &describe(&get(p)?)?, context()?))
    }
    ctx fn [cudaGraphExecMemcpyNodeSetParams1D plain](
        _pt, exec: CUgraphExec, node: CUgraphNode, dst: *mut c_void, src: *const c_void, size: usize,
        kind: cudaMemcpyKind
    ) {
        let copy = describe_linear(dst as u64, src as u64, size, kind)?;
        cu!(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context()?))
    }
    ctx fn [cudaGraphAddMemsetNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, p: *const cudaMemsetParams
    ) {
        cu!(cuGraphAddMemsetNode(out, graph, deps, n, &set_params(p)?, context()?))
    }
    ctx fn [cudaGraphMemsetNodeSetParams plain](_pt, node: CUgraphNode, p: *const cudaMemsetParams) {
        cu!(cuGraphMemsetNodeSetParams(node, &set_params(p)?))
    }
    ctx fn [cudaGraphMemsetNodeGetParams plain](_pt, node: CUgraphNode, out: *mut cudaMemsetParams) {
        // One layout on both levels.
        cu!(cuGraphMemsetNodeGetParams(node, out.cast()))
    }
    ctx fn [cudaGraphExecMemsetNodeSetParams plain](
        _pt, exec: CUgraphExec, node: CUgraphNode, p: *const cudaMemsetParams
    ) {
        cu!(cuGraphExecMemsetNodeSetParams(exec, node, &set_params(p)?, context()?))
    }
    ctx fn [cudaGraphAddHostNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, p: *const CUDA_HOST_NODE_PARAMS
    ) {
        cu!(cuGraphAddHostNode(out, graph, deps, n, p))
    }
    ctx fn [cudaGraphHostNodeSetParams plain](_pt, node: CUgraphNode, p: *const CUDA_HOST_NODE_PARAMS) {
        cu!(cuGraphHostNodeSetParams(node, p))
    }
    ctx fn [cudaGraphHostNodeGetParams plain](_pt, node: CUgraphNode, p: *mut CUDA_HOST_NODE_PARAMS) {
        cu!(cuGraphHostNodeGetParams(node, p))
    }
    ctx fn [cudaGraphExecHostNodeSetParams plain](
        _pt, exec: CUgraphExec, node: CUgraphNode, p: *const CUDA_HOST_NODE_PARAMS
    ) {
        cu!(cuGraphExecHostNodeSetParams(exec, node, p))
    }
    ctx fn [cudaGraphAddChildGraphNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, child: CUgraph
    ) {
        cu!(cuGraphAddChildGraphNode(out, graph, deps, n, child))
    }
    ctx fn [cudaGraphChildGraphNodeGetGraph plain](_pt, node: CUgraphNode, graph: *mut CUgraph) {
        cu!(cuGraphChildGraphNodeGetGraph(node, graph))
    }
    ctx fn [cudaGraphExecChildGraphNodeSetParams plain](
        _pt, exec: CUgraphExec, node: CUgraphNode, child: CUgraph
    ) {
        cu!(cuGraphExecChildGraphNodeSetParams(exec, node, child))
    }
    ctx fn [cudaGraphAddEmptyNode plain](_pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize) {
        cu!(cuGraphAddEmptyNode(out, graph, deps, n))
    }
    ctx fn [cudaGraphAddEventRecordNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, event: CUevent
    ) {
        cu!(cuGraphAddEventRecordNode(out, graph, deps, n, event))
    }
    ctx fn [cudaGraphAddEventWaitNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, event: CUevent
    ) {
        cu!(cuGraphAddEventWaitNode(out, graph, deps, n, event))
    }
    ctx fn [cudaGraphExecEventRecordNodeSetEvent plain](
        _pt, exec: CUgraphExec, node: CUgraphNode, event: CUevent
    ) {
        cu!(cuGraphExecEventRecordNodeSetEvent(exec, node, event))
    }
    ctx fn [cudaGraphExecEventWaitNodeSetEvent plain](_pt, exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        cu!(cuGraphExecEventWaitNodeSetEvent(exec, node, event))
    }
    ctx fn [cudaGraphAddMemAllocNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, p: *mut CUDA_MEM_ALLOC_NODE_PARAMS
    ) {
        cu!(cuGraphAddMemAllocNode(out, graph, deps, n, p))
    }
    ctx fn [cudaGraphAddMemFreeNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: Nodes, n: usize, at: *mut c_void
    ) {
        cu!(cuGraphAddMemFreeNode(out, graph, deps, n, at as u64))
    }
    // Version 12: (graph, from, to, count); version 13: (graph, from, to, edge data, count).
    ctx fn [cudaGraphAddDependencies plain](
        _pt, graph: CUgraph, from: Nodes, to: Nodes, data_or_count: usize, count: usize
    ) {
        change_edges(graph, from, to, data_and_count(data_or_count, count), true)
    }
    ctx fn [cudaGraphAddDependencies_v2 plain](
        _pt, graph: CUgraph, from: Nodes, to: Nodes, data: *const CUgraphEdgeData, count: usize
    ) {
        change_edges(graph, from, to, (data, count), true)
    }
    ctx fn [cudaGraphRemoveDependencies plain](
        _pt, graph: CUgraph, from: Nodes, to: Nodes, data_or_count: usize, count: usize
    ) {
        change_edges(graph, from, to, data_and_count(data_or_count, count), false)
    }
    ctx fn [cudaGraphGetNodes plain](_pt, graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        cu!(cuGraphGetNodes(graph, nodes, count))
    }
    ctx fn [cudaGraphGetRootNodes plain](_pt, graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        cu!(cuGraphGetRootNodes(graph, nodes, count))
    }
    ctx fn [cudaGraphGetEdges plain](
        _pt, graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, data_or_count: *mut c_void, count: *mut usize
    ) {
        let (data, count) = match crate::version::major() >= 13 {
            true => (data_or_count.cast(), count),
            false => (std::ptr::null_mut(), data_or_count.cast()),
        };
        cu!(cuGraphGetEdges_v2(graph, from, to, data, count))
    }
    ctx fn [cudaGraphNodeGetType plain](_pt, node: CUgraphNode, kind: *mut CUgraphNodeType) {
        cu!(cuGraphNodeGetType(node, kind))
    }
    ctx fn [cudaGraphNodeFindInClone plain](_pt, out: *mut CUgraphNode, node: CUgraphNode, clone: CUgraph) {
        cu!(cuGraphNodeFindInClone(out, node, clone))
    }
    ctx fn [cudaGraphNodeSetEnabled plain](_pt, exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        cu!(cuGraphNodeSetEnabled(exec, node, enabled))
    }
    ctx fn [cudaGraphNodeGetEnabled plain](_pt, exec: CUgraphExec, node: CUgraphNode, enabled: *mut c_uint) {
        cu!(cuGraphNodeGetEnabled(exec, node, enabled))
    }
    // Version 11: (exec, graph, node in error, log, bytes of the log).
    ctx fn [cudaGraphInstantiate plain](
        _pt, exec: *mut CUgraphExec, graph: CUgraph, node_or_flags: usize, log: *mut c_char, bytes: usize
    ) {
        if crate::version::major() >= 12 {
            return cu!(cuGraphInstantiateWithFlags(exec, graph, node_or_flags as u64));
        }
        if node_or_flags != 0 {
            put(node_or_flags as *mut CUgraphNode, CUgraphNode::NULL)?;
        }
        if !log.is_null() && bytes > 0 {
            put(log, 0)?;
        }
        cu!(cuGraphInstantiateWithFlags(exec, graph, 0))
    }
    ctx fn [cudaGraphInstantiateWithFlags plain](_pt, exec: *mut CUgraphExec, graph: CUgraph, flags: u64) {
        cu!(cuGraphInstantiateWithFlags(exec, graph, flags))
    }
    ctx fn [cudaGraphInstantiateWithParams legacy, cudaGraphInstantiateWithParams_ptsz per_thread](
        pt, exec: *mut CUgraphExec, graph: CUgraph, params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS
    ) {
        cu!(cuGraphInstantiateWithParams, pt; (exec, graph, params))
    }
    ctx fn [cudaGraphExecGetFlags plain](_pt, exec: CUgraphExec, flags: *mut u64) {
        cu!(cuGraphExecGetFlags(exec, flags))
    }
    ctx fn [cudaGraphExecDestroy plain](_pt, exec: CUgraphExec) { cu!(cuGraphExecDestroy(exec)) }
    // Version 11: (exec, graph, node in error, result).
    ctx fn [cudaGraphExecUpdate plain](
        _pt, exec: CUgraphExec, graph: CUgraph, node_or_info: *mut c_void, why: *mut CUgraphExecUpdateResult
    ) {
        if crate::version::major() >= 12 {
            return cu!(cuGraphExecUpdate_v2(exec, graph, node_or_info.cast()));
        }
        let mut info = CUgraphExecUpdateResultInfo::zeroed();
        let updated = cu!(cuGraphExecUpdate_v2(exec, graph, &mut info));
        put(node_or_info.cast(), info.errorNode)?;
        put(why, info.result)?;
        updated
    }
    ctx fn [cudaGraphLaunch legacy, cudaGraphLaunch_ptsz per_thread](pt, exec: CUgraphExec, stream: CUstream) {
        cu!(cuGraphLaunch, pt; (exec, stream))
    }
    ctx fn [cudaGraphUpload legacy, cudaGraphUpload_ptsz per_thread](pt, exec: CUgraphExec, stream: CUstream) {
        cu!(cuGraphUpload, pt; (exec, stream))
    }
    ctx fn [cudaUserObjectCreate plain](
        _pt, out: *mut CUuserObject, ptr: *mut c_void, destroy: CUhostFn, count: c_uint, flags: c_uint
    ) {
        cu!(cuUserObjectCreate(out, ptr, destroy, count, flags))
    }
    ctx fn [cudaUserObjectRetain plain](_pt, object: CUuserObject, count: c_uint) {
        cu!(cuUserObjectRetain(object, count))
    }
    ctx fn [cudaUserObjectRelease plain](_pt, object: CUuserObject, count: c_uint) {
        cu!(cuUserObjectRelease(object, count))
    }
    ctx fn [cudaGraphRetainUserObject plain](
        _pt, graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint
    ) {
        cu!(cuGraphRetainUserObject(graph, object, count, flags))
    }
    ctx fn [cudaGraphReleaseUserObject plain](_pt, graph: CUgraph, object: CUuserObject, count: c_uint) {
        cu!(cuGraphReleaseUserObject(graph, object, count))
    }
}
