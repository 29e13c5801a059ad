//! Nodes of graphs: adding them, reading and changing what they do.

use std::sync::Arc;

use cuda_sys::*;

use crate::api::graphs::structure::nodes;
use crate::api::kernels::launches::node_task as kernel_task;
use crate::api::*;
use crate::handles::handle_of;
use crate::objects::conditional;
use crate::objects::conditional::Conditional;
use crate::objects::context::{CONTEXTS, Context};
use crate::objects::event::EVENTS;
use crate::objects::graph::{GRAPHS, Graph, NODES, Node, node_type};
use crate::objects::task::{HostFn, Task};

/// The context named, or the current one.
pub(crate) fn context(ctx: CUcontext) -> Result<Arc<Context>, CUresult> {
    if ctx.is_null() { thread::context() } else { CONTEXTS.find(ctx.bits()).ok_or(CUresult::ERROR_INVALID_CONTEXT) }
}

fn add(out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, count: usize, task: Task) -> Res {
    if out.is_null() {
        return Err(INVALID);
    }
    let graph = GRAPHS.valid(graph.bits())?;
    let node = graph.add(task, &nodes(deps, count)?)?;
    put(out, CUgraphNode::from_bits(handle_of(&node)))
}

/// Replaces what a node does; its kind must stay.
fn set(node: CUgraphNode, task: Task) -> Res {
    let node = NODES.valid(node.bits())?;
    let mut slot = node.task.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if node_type(&slot) != node_type(&task) {
        return Err(INVALID);
    }
    *slot = task;
    Ok(())
}

pub(crate) fn set_task(p: &CUDA_MEMSET_NODE_PARAMS) -> Result<Task, CUresult> {
    Ok(Task::Set(crate::api::memory::memsets::checked(p.dst, p.pitch, p.value, p.elementSize, p.width, p.height)?))
}

pub(crate) fn host_task(p: &CUDA_HOST_NODE_PARAMS) -> Result<Task, CUresult> {
    Ok(Task::Host(HostFn { call: p.fn_.ok_or(INVALID)?, data: p.userData }))
}

pub(crate) fn widen(p: &CUDA_KERNEL_NODE_PARAMS_v1) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: p.func,
        gridDimX: p.gridDimX,
        gridDimY: p.gridDimY,
        gridDimZ: p.gridDimZ,
        blockDimX: p.blockDimX,
        blockDimY: p.blockDimY,
        blockDimZ: p.blockDimZ,
        sharedMemBytes: p.sharedMemBytes,
        kernelParams: p.kernelParams,
        extra: p.extra,
        kern: CUkernel::NULL,
        ctx: CUcontext::NULL,
    }
}

/// A copy of a graph for a child node, which owns it.
pub(crate) fn child_task(graph: CUgraph) -> Result<Task, CUresult> {
    let graph = GRAPHS.valid(graph.bits())?;
    if graph.is_moved() {
        return Err(INVALID);
    }
    Ok(Task::Child(graph.duplicate()?))
}

/// A child node that owns a graph, or a copy of it.
fn add_child(
    out: *mut CUgraphNode,
    graph: CUgraph,
    deps: *const CUgraphNode,
    count: usize,
    p: &CUDA_CHILD_GRAPH_NODE_PARAMS,
) -> Res {
    match p.ownership {
        CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => add(out, graph, deps, count, child_task(p.graph)?),
        CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => {
            let parent = GRAPHS.valid(graph.bits())?;
            // What is wrong with the rest must leave the graph its owner's.
            nodes(deps, count)?;
            if out.is_null() {
                return Err(INVALID);
            }
            add(out, graph, deps, count, GRAPHS.valid(p.graph.bits())?.move_into(&parent)?)
        }
        _ => Err(INVALID),
    }
}

fn add_alloc(
    out: *mut CUgraphNode,
    graph: CUgraph,
    deps: *const CUgraphNode,
    count: usize,
    p: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
) -> Res {
    let mut params = get(p)?;
    let location = params.poolProps.location;
    if out.is_null() || location.type_ != CU_MEM_LOCATION_TYPE_DEVICE || params.bytesize == 0 {
        return Err(INVALID);
    }
    let size = params.bytesize as u64;
    params.dptr = GRAPHS.valid(graph.bits())?.allocate(&*thread::context()?, location.id as u32, size)?;
    put(p, params)?;
    add(out, graph, deps, count, Task::Alloc(params.dptr, size))
}

fn add_free(out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, count: usize, dptr: CUdeviceptr) -> Res {
    let task = GRAPHS.valid(graph.bits())?.freeing(dptr, &nodes(deps, count)?)?;
    add(out, graph, deps, count, task)
}

/// A conditional node with empty bodies, whose handles go into the parameters.
fn conditional(p: *mut CUDA_CONDITIONAL_NODE_PARAMS) -> Result<Task, CUresult> {
    let mut params = get(p)?;
    let most = match params.type_ {
        CU_GRAPH_COND_TYPE_IF => 2,
        CU_GRAPH_COND_TYPE_WHILE => 1,
        CU_GRAPH_COND_TYPE_SWITCH => c_uint::MAX,
        _ => return Err(INVALID),
    };
    if params.size == 0 || params.size > most {
        return Err(INVALID);
    }
    let condition = conditional::find(params.handle).ok_or(INVALID)?;
    let bodies: Vec<Arc<Graph>> = (0..params.size).map(|_| Graph::create()).collect();
    // The array belongs to the driver and has no end in the interface: it stays.
    let handles: Vec<CUgraph> = bodies.iter().map(|body| CUgraph::from_bits(handle_of(body))).collect();
    params.phGraph_out = handles.leak().as_mut_ptr();
    put(p, params)?;
    Ok(Task::Conditional(Arc::new(Conditional { condition, kind: params.type_, bodies })))
}

/// The task that the general form of parameters describes.
pub(crate) fn any_task(p: *mut CUgraphNodeParams) -> Result<Task, CUresult> {
    let params = get(p)?;
    // SAFETY: the type says which member of the union is in use; all are plain data.
    unsafe {
        let u = params.anon1;
        match params.type_ {
            CU_GRAPH_NODE_TYPE_EMPTY => Ok(Task::Empty),
            CU_GRAPH_NODE_TYPE_KERNEL => {
                let k = u.kernel;
                let v2 = CUDA_KERNEL_NODE_PARAMS {
                    func: k.func,
                    gridDimX: k.gridDimX,
                    gridDimY: k.gridDimY,
                    gridDimZ: k.gridDimZ,
                    blockDimX: k.blockDimX,
                    blockDimY: k.blockDimY,
                    blockDimZ: k.blockDimZ,
                    sharedMemBytes: k.sharedMemBytes,
                    kernelParams: k.kernelParams,
                    extra: k.extra,
                    kern: k.kern,
                    ctx: k.ctx,
                };
                kernel_task(&v2, &context(k.ctx)?)
            }
            CU_GRAPH_NODE_TYPE_MEMCPY => {
                crate::api::memory::copy_descriptors::copy_node(&u.memcpy.copyParams, &context(u.memcpy.copyCtx)?)
            }
            CU_GRAPH_NODE_TYPE_MEMSET => {
                let m = u.memset;
                set_task(&CUDA_MEMSET_NODE_PARAMS {
                    dst: m.dst,
                    pitch: m.pitch,
                    value: m.value,
                    elementSize: m.elementSize,
                    width: m.width,
                    height: m.height,
                })
            }
            CU_GRAPH_NODE_TYPE_HOST => host_task(&CUDA_HOST_NODE_PARAMS { fn_: u.host.fn_, userData: u.host.userData }),
            CU_GRAPH_NODE_TYPE_GRAPH => child_task(u.graph.graph),
            CU_GRAPH_NODE_TYPE_WAIT_EVENT => Ok(Task::Wait(EVENTS.get(u.eventWait.event.bits())?)),
            CU_GRAPH_NODE_TYPE_EVENT_RECORD => Ok(Task::Record(EVENTS.get(u.eventRecord.event.bits())?)),
            // Nodes that allocate and free belong to their graph: `add_any`.
            CU_GRAPH_NODE_TYPE_MEM_ALLOC | CU_GRAPH_NODE_TYPE_MEM_FREE => Err(INVALID),
            CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => crate::api::streams_events::stream_memops::batch_task(&list(
                u.memOp.paramArray,
                u.memOp.count as usize,
            )?),
            CU_GRAPH_NODE_TYPE_CONDITIONAL => conditional((&raw mut (*p).anon1.conditional).cast()),
            kind => {
                crate::status::complain(&format!("graph nodes of {kind:?} are not simulated"));
                Err(CUresult::ERROR_NOT_SUPPORTED)
            }
        }
    }
}

fn add_any(
    out: *mut CUgraphNode,
    graph: CUgraph,
    deps: *const CUgraphNode,
    count: usize,
    p: *mut CUgraphNodeParams,
) -> Res {
    let params = get(p)?;
    match params.type_ {
        // SAFETY: the type says that this member of the union is in use, as plain data.
        CU_GRAPH_NODE_TYPE_MEM_ALLOC => unsafe {
            add_alloc(out, graph, deps, count, (&raw mut (*p).anon1.alloc).cast())
        },
        // SAFETY: as above.
        CU_GRAPH_NODE_TYPE_MEM_FREE => add_free(out, graph, deps, count, unsafe { params.anon1.free.dptr }),
        // SAFETY: as above.
        CU_GRAPH_NODE_TYPE_GRAPH => add_child(out, graph, deps, count, unsafe { &params.anon1.graph }),
        _ => add(out, graph, deps, count, any_task(p)?),
    }
}

fn task_of(node: CUgraphNode) -> Result<(Arc<Node>, Task), CUresult> {
    let node = NODES.valid(node.bits())?;
    let task = node.task();
    Ok((node, task))
}

/// Parameters of a kernel node. The pointers stay valid until they are asked for again for any node
/// by this thread.
fn kernel_params(node: CUgraphNode) -> Result<CUDA_KERNEL_NODE_PARAMS, CUresult> {
    thread_local! {
        static LAST: std::cell::Cell<*mut (Vec<u64>, Vec<*mut c_void>)> = const { std::cell::Cell::new(std::ptr::null_mut()) };
    }
    let (_, Task::Kernel(kernel)) = task_of(node)? else { return Err(INVALID) };
    let launch = &kernel.launch;
    let mut block = vec![0u64; launch.params.len().div_ceil(8).max(1)];
    // SAFETY: the words have room for all bytes of the block.
    unsafe {
        std::ptr::copy_nonoverlapping(launch.params.as_ptr(), block.as_mut_ptr().cast(), launch.params.len());
    }
    let base = block.as_mut_ptr().cast::<u8>();
    let pointers = kernel.function.params.iter().map(|param| base.wrapping_add(param.offset).cast()).collect();
    let fresh = Box::into_raw(Box::new((block, pointers)));
    let old = LAST.replace(fresh);
    if !old.is_null() {
        // SAFETY: made by an earlier call of this very thread, and replaced just now.
        drop(unsafe { Box::from_raw(old) });
    }
    // SAFETY: made just now, freed by this thread only.
    let kept = unsafe { &mut *fresh };
    let from_library = kernel.function.kernel.as_ref().and_then(std::sync::Weak::upgrade);
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: CUfunction::from_bits(handle_of(&kernel.function)),
        gridDimX: launch.grid[0],
        gridDimY: launch.grid[1],
        gridDimZ: launch.grid[2],
        blockDimX: launch.block[0],
        blockDimY: launch.block[1],
        blockDimZ: launch.block[2],
        sharedMemBytes: launch.shared,
        kernelParams: kept.1.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: from_library.map_or(CUkernel::NULL, |kernel| CUkernel::from_bits(handle_of(&kernel))),
        ctx: CUcontext::NULL,
    })
}

fn child_graph(node: CUgraphNode) -> Result<Arc<Graph>, CUresult> {
    match task_of(node)?.1 {
        Task::Child(graph) => Ok(graph),
        _ => Err(INVALID),
    }
}

abi! {
    call fn [cuGraphAddKernelNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1
    ) {
        add(out, graph, deps, n, kernel_task(&widen(&get(params)?), &thread::context()?)?)
    }
    call fn [cuGraphAddKernelNode_v2 plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS
    ) {
        let params = get(params)?;
        add(out, graph, deps, n, kernel_task(&params, &context(params.ctx)?)?)
    }
    call fn [cuGraphAddMemcpyNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize, params: *const CUDA_MEMCPY3D,
        ctx: CUcontext
    ) {
        add(out, graph, deps, n, crate::api::memory::copy_descriptors::copy_node(&get(params)?, &context(ctx)?)?)
    }
    call fn [cuGraphAddMemsetNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext
    ) {
        context(ctx)?;
        add(out, graph, deps, n, set_task(&get(params)?)?)
    }
    call fn [cuGraphAddHostNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize,
        params: *const CUDA_HOST_NODE_PARAMS
    ) {
        add(out, graph, deps, n, host_task(&get(params)?)?)
    }
    call fn [cuGraphAddChildGraphNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize, child: CUgraph
    ) {
        add(out, graph, deps, n, child_task(child)?)
    }
    call fn [cuGraphAddEmptyNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize
    ) {
        add(out, graph, deps, n, Task::Empty)
    }
    call fn [cuGraphAddEventRecordNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize, event: CUevent
    ) {
        add(out, graph, deps, n, Task::Record(EVENTS.get(event.bits())?))
    }
    call fn [cuGraphAddEventWaitNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize, event: CUevent
    ) {
        add(out, graph, deps, n, Task::Wait(EVENTS.get(event.bits())?))
    }
    call fn [cuGraphAddBatchMemOpNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS
    ) {
        let params = get(params)?;
        add(out, graph, deps, n, crate::api::streams_events::stream_memops::batch_task(&list(params.paramArray, params.count as usize)?)?)
    }
    call fn [cuGraphAddMemAllocNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS
    ) {
        add_alloc(out, graph, deps, n, params)
    }
    call fn [cuGraphAddMemFreeNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize, dptr: CUdeviceptr
    ) {
        add_free(out, graph, deps, n, dptr)
    }
    call fn [cuGraphAddNode plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, n: usize, params: *mut CUgraphNodeParams
    ) {
        add_any(out, graph, deps, n, params)
    }
    call fn [cuGraphAddNode_v2 plain, cuGraphAddNode_v3 plain](
        _z, out: *mut CUgraphNode, graph: CUgraph, deps: *const CUgraphNode, data: *const CUgraphEdgeData, n: usize,
        params: *mut CUgraphNodeParams
    ) {
        let (from, data) = (list(deps, n)?, if data.is_null() { Vec::new() } else { list(data, n)? });
        add_any(out, graph, deps, n, params)?;
        let (graph, node) = (GRAPHS.valid(graph.bits())?, get(out)?.bits());
        for (from, data) in from.iter().zip(&data) {
            let edge = (from.bits(), node);
            if let Err(refused) = super::structure::check_data(edge, data) {
                graph.remove(&NODES.valid(node)?);
                return Err(refused);
            }
            graph.set_data(edge, *data);
        }
        Ok(())
    }
    call fn [cuGraphConditionalHandleCreate plain](
        _z, out: *mut CUgraphConditionalHandle, graph: CUgraph, ctx: CUcontext, default: c_uint, flags: c_uint
    ) {
        if flags & !CU_GRAPH_COND_ASSIGN_DEFAULT != 0 {
            return Err(INVALID);
        }
        context(ctx)?;
        let graph = GRAPHS.valid(graph.bits())?;
        put(out, conditional::create(&graph, (flags & CU_GRAPH_COND_ASSIGN_DEFAULT != 0).then_some(default)))
    }
    call fn [cuGraphNodeSetParams plain, cuGraphNodeSetParams_v2 plain](
        _z, node: CUgraphNode, params: *mut CUgraphNodeParams
    ) {
        set(node, any_task(params)?)
    }

    call fn [cuGraphKernelNodeSetParams plain](_z, node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v1) {
        set(node, kernel_task(&widen(&get(params)?), &thread::context()?)?)
    }
    call fn [cuGraphKernelNodeSetParams_v2 plain](_z, node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS) {
        let params = get(params)?;
        set(node, kernel_task(&params, &context(params.ctx)?)?)
    }
    call fn [cuGraphKernelNodeGetParams plain](_z, node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS_v1) {
        let p = kernel_params(node)?;
        put(params, CUDA_KERNEL_NODE_PARAMS_v1 {
            func: p.func, gridDimX: p.gridDimX, gridDimY: p.gridDimY, gridDimZ: p.gridDimZ, blockDimX: p.blockDimX,
            blockDimY: p.blockDimY, blockDimZ: p.blockDimZ, sharedMemBytes: p.sharedMemBytes,
            kernelParams: p.kernelParams, extra: p.extra,
        })
    }
    call fn [cuGraphKernelNodeGetParams_v2 plain](_z, node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS) {
        put(params, kernel_params(node)?)
    }
    call fn [cuGraphKernelNodeSetAttribute plain](
        _z, node: CUgraphNode, attr: CUkernelNodeAttrID, value: *const CUkernelNodeAttrValue
    ) {
        let (node, task) = task_of(node)?;
        let value = get(value)?;
        let Task::Kernel(mut kernel) = task else { return Err(INVALID) };
        if attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE {
            // SAFETY: the id says which member of the union is in use.
            kernel.launch.cooperative = unsafe { value.cooperative } != 0;
            *node.task.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Task::Kernel(kernel);
        }
        // SAFETY: the union is plain data of 64 bytes.
        let bytes = unsafe { std::mem::transmute::<CUkernelNodeAttrValue, [u8; 64]>(value) };
        let mut attributes = node.attributes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        attributes.retain(|(id, _)| *id != attr.0);
        attributes.push((attr.0, bytes));
        Ok(())
    }
    call fn [cuGraphKernelNodeGetAttribute plain](
        _z, node: CUgraphNode, attr: CUkernelNodeAttrID, value: *mut CUkernelNodeAttrValue
    ) {
        let (node, task) = task_of(node)?;
        if !matches!(task, Task::Kernel(_)) {
            return Err(INVALID);
        }
        let attributes = node.attributes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let bytes = attributes.iter().find(|(id, _)| *id == attr.0).map_or([0; 64], |(_, bytes)| *bytes);
        put(value.cast::<[u8; 64]>(), bytes)
    }
    call fn [cuGraphMemcpyNodeSetParams plain](_z, node: CUgraphNode, params: *const CUDA_MEMCPY3D) {
        set(node, crate::api::memory::copy_descriptors::copy_node(&get(params)?, &thread::context()?)?)
    }
    call fn [cuGraphMemcpyNodeGetParams plain](_z, node: CUgraphNode, params: *mut CUDA_MEMCPY3D) {
        let (_, Task::Copy(copy)) = task_of(node)? else { return Err(INVALID) };
        let mut p = CUDA_MEMCPY3D::zeroed();
        (p.WidthInBytes, p.Height, p.Depth) = (copy.width as usize, copy.height as usize, copy.depth as usize);
        (p.srcMemoryType, p.dstMemoryType) = (CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED);
        (p.srcDevice, p.srcPitch) = (copy.src.at, copy.src.pitch as usize);
        (p.dstDevice, p.dstPitch) = (copy.dst.at, copy.dst.pitch as usize);
        p.srcHeight = copy.src.layer.checked_div(copy.src.pitch).unwrap_or(0) as usize;
        p.dstHeight = copy.dst.layer.checked_div(copy.dst.pitch).unwrap_or(0) as usize;
        put(params, p)
    }
    call fn [cuGraphMemsetNodeSetParams plain](_z, node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS) {
        set(node, set_task(&get(params)?)?)
    }
    call fn [cuGraphMemsetNodeGetParams plain](_z, node: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS) {
        let (_, Task::Set(set)) = task_of(node)? else { return Err(INVALID) };
        put(params, CUDA_MEMSET_NODE_PARAMS {
            dst: set.at, pitch: set.pitch as usize, value: set.value, elementSize: set.size, width: set.width as usize,
            height: set.height as usize,
        })
    }
    call fn [cuGraphHostNodeSetParams plain](_z, node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS) {
        set(node, host_task(&get(params)?)?)
    }
    call fn [cuGraphHostNodeGetParams plain](_z, node: CUgraphNode, params: *mut CUDA_HOST_NODE_PARAMS) {
        let (_, Task::Host(host)) = task_of(node)? else { return Err(INVALID) };
        put(params, CUDA_HOST_NODE_PARAMS { fn_: Some(host.call), userData: host.data })
    }
    call fn [cuGraphChildGraphNodeGetGraph plain](_z, node: CUgraphNode, graph: *mut CUgraph) {
        put(graph, CUgraph::from_bits(handle_of(&child_graph(node)?)))
    }
    call fn [cuGraphEventRecordNodeGetEvent plain](_z, node: CUgraphNode, event: *mut CUevent) {
        let (_, Task::Record(found)) = task_of(node)? else { return Err(INVALID) };
        put(event, CUevent::from_bits(handle_of(&found)))
    }
    call fn [cuGraphEventRecordNodeSetEvent plain](_z, node: CUgraphNode, event: CUevent) {
        set(node, Task::Record(EVENTS.get(event.bits())?))
    }
    call fn [cuGraphEventWaitNodeGetEvent plain](_z, node: CUgraphNode, event: *mut CUevent) {
        let (_, Task::Wait(found)) = task_of(node)? else { return Err(INVALID) };
        put(event, CUevent::from_bits(handle_of(&found)))
    }
    call fn [cuGraphEventWaitNodeSetEvent plain](_z, node: CUgraphNode, event: CUevent) {
        set(node, Task::Wait(EVENTS.get(event.bits())?))
    }
    call fn [cuGraphMemAllocNodeGetParams plain](_z, node: CUgraphNode, params: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        let (_, Task::Alloc(at, size)) = task_of(node)? else { return Err(INVALID) };
        put(params, CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: size as usize, dptr: at, ..CUDA_MEM_ALLOC_NODE_PARAMS::zeroed() })
    }
    call fn [cuGraphMemFreeNodeGetParams plain](_z, node: CUgraphNode, dptr: *mut CUdeviceptr) {
        let (_, Task::Free(at)) = task_of(node)? else { return Err(INVALID) };
        put(dptr, at)
    }
}
