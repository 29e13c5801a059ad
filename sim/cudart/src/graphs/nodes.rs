//! Graph nodes of any kind by one struct (`cudaGraphNodeParams`), and queries of nodes.

use cuda_sys::*;

use crate::kernels::registration::kernel_or_handle;
use crate::memory::copies::describe;
use crate::thread_state::{INVALID, Res, get, put};

/// The driver's form of a node's parameters. Both structs have the same size, and what is not a
/// kernel or a copy the same layout; the runtime's own types differ from the driver's in these two.
fn node_params(p: *const CUgraphNodeParams) -> Result<CUgraphNodeParams, cudaError> {
    let mut params = get(p)?;
    let mut ctx = CUcontext::NULL;
    cu!(cuCtxGetCurrent(&mut ctx))?;
    // SAFETY: the type says which member of the union is in use; all are plain data.
    unsafe {
        match params.type_ {
            CU_GRAPH_NODE_TYPE_KERNEL => {
                // The runtime's struct begins like the driver's, with a symbol or handle in the
                // place of the function.
                let kernel = &mut params.anon1.kernel;
                let handle = kernel_or_handle(kernel.func.bits() as *const c_void)?;
                kernel.func = CUfunction::NULL;
                kernel.kern = CUkernel::from_bits(handle.bits());
                kernel.ctx = CUcontext::NULL;
            }
            CU_GRAPH_NODE_TYPE_MEMCPY => {
                // `flags` and three reserved words, then the copy.
                let copy: cudaMemcpy3DParms =
                    (&raw const params.anon1).cast::<u8>().add(16).cast::<cudaMemcpy3DParms>().read();
                let mut own = CUgraphNodeParams_anon1 { reserved1: [0; 29] };
                own.memcpy.copyCtx = ctx;
                own.memcpy.copyParams = describe(&copy)?;
                params.anon1 = own;
            }
            CU_GRAPH_NODE_TYPE_MEMSET => params.anon1.memset.ctx = ctx,
            CU_GRAPH_NODE_TYPE_CONDITIONAL => params.anon1.conditional.ctx = ctx,
            _ => {}
        }
    }
    Ok(params)
}

fn add(
    out: *mut CUgraphNode,
    graph: CUgraph,
    deps: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    p: *mut CUgraphNodeParams,
) -> Res {
    let mut params = node_params(p)?;
    cu!(cuGraphAddNode_v3(out, graph, deps, data, count, &mut params))?;
    if params.type_ == CU_GRAPH_NODE_TYPE_MEM_ALLOC {
        // It says where the memory will be.
        put(p, params)?;
    }
    if params.type_ == CU_GRAPH_NODE_TYPE_CONDITIONAL {
        // And where the bodies are.
        // SAFETY: the type says which member is in use; the driver has just read and written it.
        unsafe { (*p).anon1.conditional.phGraph_out = params.anon1.conditional.phGraph_out };
    }
    Ok(())
}

/// A function that lists nodes: `(node, nodes, count)` in version 12, `(node, nodes, edge data,
/// count)` in version 13.
type Lists = (*mut CUgraphEdgeData, *mut usize);

fn lists(data_or_count: *mut c_void, count: *mut usize) -> Lists {
    match crate::version::major() >= 13 {
        true => (data_or_count.cast(), count),
        false => (std::ptr::null_mut(), data_or_count.cast()),
    }
}

rt! {
    // Version 12: (node, graph, dependencies, count, params); version 13: edge data before the
    // count.
    ctx fn [cudaGraphAddNode plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, data_or_count: usize,
        count_or_params: usize, params: *mut CUgraphNodeParams
    ) {
        match crate::version::major() >= 13 {
            true => add(out, graph, deps, data_or_count as *const _, count_or_params, params),
            false => add(out, graph, deps, std::ptr::null(), data_or_count, count_or_params as *mut _),
        }
    }
    ctx fn [cudaGraphAddNode_v2 plain](
        _pt, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, data: *const CUgraphEdgeData,
        count: usize, params: *mut CUgraphNodeParams
    ) {
        add(out, graph, deps, data, count, params)
    }
    ctx fn [cudaGraphConditionalHandleCreate plain](
        _pt, out: *mut CUgraphConditionalHandle, graph: CUgraph, default: c_uint, flags: c_uint
    ) {
        let mut ctx = CUcontext::NULL;
        cu!(cuCtxGetCurrent(&mut ctx))?;
        cu!(cuGraphConditionalHandleCreate(out, graph, ctx, default, flags))
    }
    ctx fn [cudaGraphNodeSetParams plain](_pt, node: CUgraphNode, p: *mut CUgraphNodeParams) {
        cu!(cuGraphNodeSetParams_v2(node, &mut node_params(p)?))
    }
    ctx fn [cudaGraphExecNodeSetParams plain](
        _pt, exec: CUgraphExec, node: CUgraphNode, p: *mut CUgraphNodeParams
    ) {
        cu!(cuGraphExecNodeSetParams(exec, node, &mut node_params(p)?))
    }
    ctx fn [cudaGraphNodeGetDependencies plain](
        _pt, node: CUgraphNode, nodes: *mut CUgraphNode, data_or_count: *mut c_void, count: *mut usize
    ) {
        let (data, count) = lists(data_or_count, count);
        cu!(cuGraphNodeGetDependencies_v2(node, nodes, data, count))
    }
    ctx fn [cudaGraphNodeGetDependencies_v2 plain](
        _pt, node: CUgraphNode, nodes: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize
    ) {
        cu!(cuGraphNodeGetDependencies_v2(node, nodes, data, count))
    }
    ctx fn [cudaGraphNodeGetDependentNodes plain](
        _pt, node: CUgraphNode, nodes: *mut CUgraphNode, data_or_count: *mut c_void, count: *mut usize
    ) {
        let (data, count) = lists(data_or_count, count);
        cu!(cuGraphNodeGetDependentNodes_v2(node, nodes, data, count))
    }
    ctx fn [cudaGraphNodeGetDependentNodes_v2 plain](
        _pt, node: CUgraphNode, nodes: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize
    ) {
        cu!(cuGraphNodeGetDependentNodes_v2(node, nodes, data, count))
    }
    ctx fn [cudaGraphGetEdges_v2 plain](
        _pt, graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, data: *mut CUgraphEdgeData,
        count: *mut usize
    ) {
        cu!(cuGraphGetEdges_v2(graph, from, to, data, count))
    }
    ctx fn [cudaGraphEventRecordNodeGetEvent plain](_pt, node: CUgraphNode, event: *mut CUevent) {
        cu!(cuGraphEventRecordNodeGetEvent(node, event))
    }
    ctx fn [cudaGraphEventRecordNodeSetEvent plain](_pt, node: CUgraphNode, event: CUevent) {
        cu!(cuGraphEventRecordNodeSetEvent(node, event))
    }
    ctx fn [cudaGraphEventWaitNodeGetEvent plain](_pt, node: CUgraphNode, event: *mut CUevent) {
        cu!(cuGraphEventWaitNodeGetEvent(node, event))
    }
    ctx fn [cudaGraphEventWaitNodeSetEvent plain](_pt, node: CUgraphNode, event: CUevent) {
        cu!(cuGraphEventWaitNodeSetEvent(node, event))
    }
    ctx fn [cudaGraphMemAllocNodeGetParams plain](_pt, node: CUgraphNode, p: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        cu!(cuGraphMemAllocNodeGetParams(node, p))
    }
    ctx fn [cudaGraphMemFreeNodeGetParams plain](_pt, node: CUgraphNode, at: *mut c_void) {
        if at.is_null() { Err(INVALID) } else { cu!(cuGraphMemFreeNodeGetParams(node, at.cast())) }
    }
}
