//! Executable graphs: instantiation, changes, launches.

use cuda_sys::*;

use crate::api::graphs::nodes::{any_task, child_task, context, host_task, set_task, widen};
use crate::api::kernels::launches::node_task as kernel_task;
use crate::api::*;
use crate::handles::handle_of;
use crate::objects::event::EVENTS;
use crate::objects::graph::{GRAPHS, NODES};
use crate::objects::graph_exec::{GRAPH_EXECS, GraphExec};
use crate::objects::stream::resolve;
use crate::objects::task::Task;

fn instantiate(out: *mut CUgraphExec, graph: CUgraph, flags: u64) -> Res {
    if flags & u64::from(CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0 {
        return Err(CUresult::ERROR_NOT_SUPPORTED);
    }
    let graph = GRAPHS.valid(graph.bits())?;
    if graph.is_moved() {
        return Err(INVALID);
    }
    let exec = GraphExec::create(&thread::context()?, &graph, flags)?;
    put(out, CUgraphExec::from_bits(handle_of(&exec)))
}

fn set(exec: CUgraphExec, node: CUgraphNode, task: Task) -> Res {
    NODES.find(node.bits()).ok_or(INVALID)?;
    GRAPH_EXECS.valid(exec.bits())?.set(node.bits(), task)
}

fn update(exec: CUgraphExec, graph: CUgraph) -> Result<(), (CUresult, CUgraphExecUpdateResult, usize)> {
    let outer = |error| (error, CU_GRAPH_EXEC_UPDATE_ERROR, 0);
    let graph = GRAPHS.valid(graph.bits()).map_err(outer)?;
    let exec = GRAPH_EXECS.valid(exec.bits()).map_err(outer)?;
    if graph.is_moved() {
        return Err(outer(INVALID));
    }
    exec.update(&graph).map_err(|(why, node)| (CUresult::ERROR_GRAPH_EXEC_UPDATE_FAILURE, why, node))
}

abi! {
    call fn [cuGraphInstantiate plain, cuGraphInstantiate_v2 plain](
        _z, out: *mut CUgraphExec, graph: CUgraph, error_node: *mut CUgraphNode, log: *mut c_char, len: usize
    ) {
        put_if(error_node, CUgraphNode::NULL);
        instantiate(out, graph, 0)
    }
    call fn [cuGraphInstantiateWithFlags plain](_z, out: *mut CUgraphExec, graph: CUgraph, flags: u64) {
        instantiate(out, graph, flags)
    }
    call fn [cuGraphInstantiateWithParams legacy, cuGraphInstantiateWithParams_ptsz per_thread](
        zero, out: *mut CUgraphExec, graph: CUgraph, params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS
    ) {
        let mut p = get(params)?;
        let done = instantiate(out, graph, p.flags);
        p.hErrNode_out = CUgraphNode::NULL;
        p.result_out = match done {
            Ok(()) => CUDA_GRAPH_INSTANTIATE_SUCCESS,
            Err(INVALID) => CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
            Err(_) => CUDA_GRAPH_INSTANTIATE_ERROR,
        };
        put(params, p)?;
        done
    }
    call fn [cuGraphExecDestroy plain](_z, exec: CUgraphExec) {
        GRAPH_EXECS.remove(exec.bits()).map(|_| ())
    }
    call fn [cuGraphLaunch legacy, cuGraphLaunch_ptsz per_thread](zero, exec: CUgraphExec, stream: CUstream) {
        GRAPH_EXECS.valid(exec.bits())?.launch(&resolve(stream.bits(), zero)?)
    }
    call fn [cuGraphUpload legacy, cuGraphUpload_ptsz per_thread](zero, exec: CUgraphExec, stream: CUstream) {
        let exec = GRAPH_EXECS.valid(exec.bits())?;
        resolve(stream.bits(), zero)?;
        exec.upload();
        Ok(())
    }
    call fn [cuGraphExecGetFlags plain](_z, exec: CUgraphExec, flags: *mut u64) {
        put(flags, GRAPH_EXECS.valid(exec.bits())?.flags)
    }
    call fn [cuGraphExecUpdate plain](
        _z, exec: CUgraphExec, graph: CUgraph, node: *mut CUgraphNode, result: *mut CUgraphExecUpdateResult
    ) {
        let done = update(exec, graph);
        put_if(node, CUgraphNode::from_bits(done.err().map_or(0, |(_, _, node)| node)));
        put_if(result, done.err().map_or(CU_GRAPH_EXEC_UPDATE_SUCCESS, |(_, why, _)| why));
        done.map_err(|(error, ..)| error)
    }
    call fn [cuGraphExecUpdate_v2 plain](
        _z, exec: CUgraphExec, graph: CUgraph, info: *mut CUgraphExecUpdateResultInfo
    ) {
        let done = update(exec, graph);
        put_if(info, CUgraphExecUpdateResultInfo {
            result: done.err().map_or(CU_GRAPH_EXEC_UPDATE_SUCCESS, |(_, why, _)| why),
            errorNode: CUgraphNode::from_bits(done.err().map_or(0, |(_, _, node)| node)),
            errorFromNode: CUgraphNode::NULL,
        });
        done.map_err(|(error, ..)| error)
    }
    call fn [cuGraphExecKernelNodeSetParams plain](
        _z, exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v1
    ) {
        set(exec, node, kernel_task(&widen(&get(params)?), &thread::context()?)?)
    }
    call fn [cuGraphExecKernelNodeSetParams_v2 plain](
        _z, exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS
    ) {
        let params = get(params)?;
        set(exec, node, kernel_task(&params, &context(params.ctx)?)?)
    }
    call fn [cuGraphExecMemcpyNodeSetParams plain](
        _z, exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_MEMCPY3D, ctx: CUcontext
    ) {
        set(exec, node, crate::api::memory::copy_descriptors::copy_node(&get(params)?, &context(ctx)?)?)
    }
    call fn [cuGraphExecMemsetNodeSetParams plain](
        _z, exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext
    ) {
        context(ctx)?;
        set(exec, node, set_task(&get(params)?)?)
    }
    call fn [cuGraphExecHostNodeSetParams plain](
        _z, exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS
    ) {
        set(exec, node, host_task(&get(params)?)?)
    }
    call fn [cuGraphExecChildGraphNodeSetParams plain](_z, exec: CUgraphExec, node: CUgraphNode, child: CUgraph) {
        set(exec, node, child_task(child)?)
    }
    call fn [cuGraphExecEventRecordNodeSetEvent plain](_z, exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        set(exec, node, Task::Record(EVENTS.get(event.bits())?))
    }
    call fn [cuGraphExecEventWaitNodeSetEvent plain](_z, exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        set(exec, node, Task::Wait(EVENTS.get(event.bits())?))
    }
    call fn [cuGraphExecBatchMemOpNodeSetParams plain](
        _z, exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS
    ) {
        let params = get(params)?;
        set(exec, node, crate::api::streams_events::stream_memops::batch_task(&list(params.paramArray, params.count as usize)?)?)
    }
    call fn [cuGraphExecNodeSetParams plain](
        _z, exec: CUgraphExec, node: CUgraphNode, params: *mut CUgraphNodeParams
    ) {
        set(exec, node, any_task(params)?)
    }
    call fn [cuGraphNodeSetEnabled plain](_z, exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        let exec = GRAPH_EXECS.valid(exec.bits())?;
        let mut nodes = exec.nodes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let found = nodes.iter_mut().find(|n| n.source == node.bits()).ok_or(INVALID)?;
        if !matches!(found.task, Task::Kernel(_) | Task::Copy(_) | Task::Set(_)) {
            return Err(INVALID);
        }
        found.enabled = enabled != 0;
        Ok(())
    }
    call fn [cuGraphNodeGetEnabled plain](_z, exec: CUgraphExec, node: CUgraphNode, enabled: *mut c_uint) {
        let exec = GRAPH_EXECS.valid(exec.bits())?;
        let nodes = exec.nodes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let found = nodes.iter().find(|n| n.source == node.bits()).ok_or(INVALID)?;
        put(enabled, c_uint::from(found.enabled))
    }
}
