//! Rows of [`driver_api!`](crate::driver_api!): graphs: building, changing, instantiating,
//! launching. How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_graphs {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_memory! { {$($to)*} { $($rows)*

    after  fn cuGraphCreate(graph: *mut CUgraph, flags: c_uint) [plain cuGraphCreate] no_effect;
    after  fn cuGraphAddKernelNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        node_params: *const CUDA_KERNEL_NODE_PARAMS_v1
    ) [plain cuGraphAddKernelNode];
    after  fn cuGraphAddKernelNode_v2(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        node_params: *const CUDA_KERNEL_NODE_PARAMS
    ) [plain cuGraphAddKernelNode_v2];
    after  fn cuGraphKernelNodeSetParams(node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS_v1)
        [plain cuGraphKernelNodeSetParams] no_effect;
    after  fn cuGraphKernelNodeSetParams_v2(node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS)
        [plain cuGraphKernelNodeSetParams_v2] no_effect;
    after  fn cuGraphAddMemcpyNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        copy_params: *const CUDA_MEMCPY3D, ctx: CUcontext
    ) [plain cuGraphAddMemcpyNode];
    after  fn cuGraphMemcpyNodeSetParams(node: CUgraphNode, node_params: *const CUDA_MEMCPY3D)
        [plain cuGraphMemcpyNodeSetParams] no_effect;
    after  fn cuGraphAddMemsetNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        memset_params: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext
    ) [plain cuGraphAddMemsetNode];
    after  fn cuGraphMemsetNodeSetParams(node: CUgraphNode, node_params: *const CUDA_MEMSET_NODE_PARAMS)
        [plain cuGraphMemsetNodeSetParams] no_effect;
    after  fn cuGraphAddHostNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        node_params: *const CUDA_HOST_NODE_PARAMS
    ) [plain cuGraphAddHostNode];
    after  fn cuGraphHostNodeGetParams(node: CUgraphNode, node_params: *mut CUDA_HOST_NODE_PARAMS)
        [plain cuGraphHostNodeGetParams] no_effect;
    after  fn cuGraphHostNodeSetParams(node: CUgraphNode, node_params: *const CUDA_HOST_NODE_PARAMS)
        [plain cuGraphHostNodeSetParams] no_effect;
    after  fn cuGraphAddChildGraphNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        child_graph: CUgraph
    ) [plain cuGraphAddChildGraphNode];
    after  fn cuGraphAddEmptyNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize
    ) [plain cuGraphAddEmptyNode];
    after  fn cuGraphAddEventRecordNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        event: CUevent
    ) [plain cuGraphAddEventRecordNode];
    after  fn cuGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent) [plain cuGraphEventRecordNodeSetEvent] no_effect;
    after  fn cuGraphAddEventWaitNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        event: CUevent
    ) [plain cuGraphAddEventWaitNode];
    after  fn cuGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent) [plain cuGraphEventWaitNodeSetEvent] no_effect;
    after  fn cuGraphAddExternalSemaphoresSignalNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        node_params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS
    ) [plain cuGraphAddExternalSemaphoresSignalNode];
    after  fn cuGraphExternalSemaphoresSignalNodeSetParams(
        node: CUgraphNode, node_params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS
    ) [plain cuGraphExternalSemaphoresSignalNodeSetParams] no_effect;
    after  fn cuGraphAddExternalSemaphoresWaitNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        node_params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS
    ) [plain cuGraphAddExternalSemaphoresWaitNode];
    after  fn cuGraphExternalSemaphoresWaitNodeSetParams(
        node: CUgraphNode, node_params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS
    ) [plain cuGraphExternalSemaphoresWaitNodeSetParams] no_effect;
    after  fn cuGraphAddBatchMemOpNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        node_params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS
    ) [plain cuGraphAddBatchMemOpNode];
    after  fn cuGraphBatchMemOpNodeSetParams(node: CUgraphNode, node_params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS)
        [plain cuGraphBatchMemOpNodeSetParams] no_effect;
    after  fn cuGraphExecBatchMemOpNodeSetParams(
        graph_exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS
    ) [plain cuGraphExecBatchMemOpNodeSetParams];
    after  fn cuGraphAddMemAllocNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        node_params: *mut CUDA_MEM_ALLOC_NODE_PARAMS
    ) [plain cuGraphAddMemAllocNode];
    after  fn cuGraphAddMemFreeNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        ptr: CUdeviceptr
    ) [plain cuGraphAddMemFreeNode];
    after  fn cuDeviceGraphMemTrim(device: CUdevice) [plain cuDeviceGraphMemTrim] no_effect;
    after  fn cuDeviceSetGraphMemAttribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void)
        [plain cuDeviceSetGraphMemAttribute] no_effect;
    after  fn cuGraphClone(graph_clone: *mut CUgraph, original_graph: CUgraph) [plain cuGraphClone];
    after  fn cuGraphNodeFindInClone(node: *mut CUgraphNode, original_node: CUgraphNode, cloned_graph: CUgraph)
        [plain cuGraphNodeFindInClone] no_effect;
    after  fn cuGraphAddDependencies(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, num_dependencies: usize
    ) [plain cuGraphAddDependencies] no_effect;
    after  fn cuGraphAddDependencies_v2(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edge_data: *const CUgraphEdgeData,
        num_dependencies: usize
    ) [plain cuGraphAddDependencies_v2] no_effect;
    after  fn cuGraphRemoveDependencies(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, num_dependencies: usize
    ) [plain cuGraphRemoveDependencies] no_effect;
    after  fn cuGraphRemoveDependencies_v2(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edge_data: *const CUgraphEdgeData,
        num_dependencies: usize
    ) [plain cuGraphRemoveDependencies_v2] no_effect;
    before fn cuGraphDestroyNode(node: CUgraphNode) [plain cuGraphDestroyNode];
    after  fn cuGraphInstantiateWithFlags(graph_exec: *mut CUgraphExec, graph: CUgraph, flags: u64)
        [plain cuGraphInstantiateWithFlags];
    after  fn cuGraphInstantiateWithParams(
        graph_exec: *mut CUgraphExec, graph: CUgraph, instantiate_params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS
    ) [legacy cuGraphInstantiateWithParams, per_thread cuGraphInstantiateWithParams_ptsz];
    after  fn cuGraphExecKernelNodeSetParams(
        graph_exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS_v1
    ) [plain cuGraphExecKernelNodeSetParams];
    after  fn cuGraphExecKernelNodeSetParams_v2(
        graph_exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS
    ) [plain cuGraphExecKernelNodeSetParams_v2];
    after  fn cuGraphExecMemcpyNodeSetParams(
        graph_exec: CUgraphExec, node: CUgraphNode, copy_params: *const CUDA_MEMCPY3D, ctx: CUcontext
    ) [plain cuGraphExecMemcpyNodeSetParams];
    after  fn cuGraphExecMemsetNodeSetParams(
        graph_exec: CUgraphExec, node: CUgraphNode, memset_params: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext
    ) [plain cuGraphExecMemsetNodeSetParams];
    after  fn cuGraphExecHostNodeSetParams(
        graph_exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_HOST_NODE_PARAMS
    ) [plain cuGraphExecHostNodeSetParams] no_effect;
    after  fn cuGraphExecChildGraphNodeSetParams(graph_exec: CUgraphExec, node: CUgraphNode, child_graph: CUgraph)
        [plain cuGraphExecChildGraphNodeSetParams];
    after  fn cuGraphExecEventRecordNodeSetEvent(graph_exec: CUgraphExec, node: CUgraphNode, event: CUevent)
        [plain cuGraphExecEventRecordNodeSetEvent];
    after  fn cuGraphExecEventWaitNodeSetEvent(graph_exec: CUgraphExec, node: CUgraphNode, event: CUevent)
        [plain cuGraphExecEventWaitNodeSetEvent];
    after  fn cuGraphExecExternalSemaphoresSignalNodeSetParams(
        graph_exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS
    ) [plain cuGraphExecExternalSemaphoresSignalNodeSetParams] not_modelled;
    after  fn cuGraphExecExternalSemaphoresWaitNodeSetParams(
        graph_exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS
    ) [plain cuGraphExecExternalSemaphoresWaitNodeSetParams] not_modelled;
    after  fn cuGraphNodeSetEnabled(graph_exec: CUgraphExec, node: CUgraphNode, is_enabled: c_uint)
        [plain cuGraphNodeSetEnabled];
    after  fn cuGraphUpload(graph_exec: CUgraphExec, stream: CUstream)
        [legacy cuGraphUpload, per_thread cuGraphUpload_ptsz] no_effect;
    both   fn cuGraphLaunch(graph_exec: CUgraphExec, stream: CUstream)
        [legacy cuGraphLaunch, per_thread cuGraphLaunch_ptsz];
    both   fn cuGraphExecDestroy(graph_exec: CUgraphExec) [plain cuGraphExecDestroy];
    before fn cuGraphDestroy(graph: CUgraph) [plain cuGraphDestroy];
    after  fn cuGraphExecUpdate(
        graph_exec: CUgraphExec, graph: CUgraph, error_node_out: *mut CUgraphNode,
        update_result_out: *mut CUgraphExecUpdateResult
    ) [plain cuGraphExecUpdate];
    after  fn cuGraphExecUpdate_v2(
        graph_exec: CUgraphExec, graph: CUgraph, result_info: *mut CUgraphExecUpdateResultInfo
    ) [plain cuGraphExecUpdate_v2];
    after  fn cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode)
        [plain cuGraphKernelNodeCopyAttributes] no_effect;
    after  fn cuGraphKernelNodeSetAttribute(
        node: CUgraphNode, attr: CUkernelNodeAttrID, value: *const CUkernelNodeAttrValue
    ) [plain cuGraphKernelNodeSetAttribute] no_effect;
    after  fn cuUserObjectCreate(
        object_out: *mut CUuserObject, ptr: *mut c_void, destroy: CUhostFn, initial_refcount: c_uint, flags: c_uint
    ) [plain cuUserObjectCreate] no_effect;
    after  fn cuUserObjectRetain(object: CUuserObject, count: c_uint) [plain cuUserObjectRetain] no_effect;
    before fn cuUserObjectRelease(object: CUuserObject, count: c_uint) [plain cuUserObjectRelease] no_effect;
    after  fn cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint)
        [plain cuGraphRetainUserObject] no_effect;
    before fn cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint)
        [plain cuGraphReleaseUserObject] no_effect;
    after  fn cuGraphAddNode(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
        node_params: *mut CUgraphNodeParams
    ) [plain cuGraphAddNode];
    after  fn cuGraphAddNode_v3(
        graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        dependency_data: *const CUgraphEdgeData, num_dependencies: usize, node_params: *mut CUgraphNodeParams
    ) [plain cuGraphAddNode_v2, plain cuGraphAddNode_v3];
    after  fn cuGraphNodeSetParams_v2(node: CUgraphNode, node_params: *mut CUgraphNodeParams)
        [plain cuGraphNodeSetParams, plain cuGraphNodeSetParams_v2] no_effect;
    after  fn cuGraphNodeGetParams(node: CUgraphNode, node_params: *mut CUgraphNodeParams) [plain cuGraphNodeGetParams] no_effect;
    after  fn cuGraphExecNodeSetParams(graph_exec: CUgraphExec, node: CUgraphNode, node_params: *mut CUgraphNodeParams)
        [plain cuGraphExecNodeSetParams];
    after  fn cuGraphConditionalHandleCreate(
        handle_out: *mut CUgraphConditionalHandle, graph: CUgraph, ctx: CUcontext, default_launch_value: c_uint,
        flags: c_uint
    ) [plain cuGraphConditionalHandleCreate];
    after  fn cuGraphInstantiate_v2(
        graph_exec: *mut CUgraphExec, graph: CUgraph, error_node: *mut CUgraphNode, log_buffer: *mut c_char,
        buffer_size: usize
    ) [plain cuGraphInstantiate, plain cuGraphInstantiate_v2];

    } } };
}
