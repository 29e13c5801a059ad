//! Signatures of the functions that are only forwarded (`skip` rows of `cuda.h`). The wrappers need
//! none, but a caller of such a function, or a simulation of it, does. Symbols with the suffixes
//! `_ptsz` and `_ptds` have the signature of the name without.

/// Calls the macro `$callback` with rows `fn name(arguments);`, one for each version of each
/// skipped function.
#[macro_export]
macro_rules! driver_signatures {
    ($callback:ident $(, $($extra:tt)*)?) => { $callback! { $($($extra)*)?

    fn cuArray3DGetDescriptor(array_descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR_v1, array: CUarray);
    fn cuArray3DGetDescriptor_v2(array_descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR, array: CUarray);
    fn cuArrayGetDescriptor(array_descriptor: *mut CUDA_ARRAY_DESCRIPTOR_v1, array: CUarray);
    fn cuArrayGetDescriptor_v2(array_descriptor: *mut CUDA_ARRAY_DESCRIPTOR, array: CUarray);
    fn cuArrayGetMemoryRequirements(
        memory_requirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, array: CUarray, device: CUdevice
    );
    fn cuArrayGetSparseProperties(sparse_properties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, array: CUarray);
    fn cuCheckpointOperationComplete(handle: CUcheckpointOperationHandle);
    fn cuCheckpointProcessCheckpoint(pid: c_int, args: *mut CUcheckpointCheckpointArgs);
    fn cuCheckpointProcessGetRestoreThreadId(pid: c_int, tid: *mut c_int);
    fn cuCheckpointProcessGetState(pid: c_int, state: *mut CUprocessState);
    fn cuCheckpointProcessLock(pid: c_int, args: *mut CUcheckpointLockArgs);
    fn cuCheckpointProcessRestore(pid: c_int, args: *mut CUcheckpointRestoreArgs);
    fn cuCheckpointProcessUnlock(pid: c_int, args: *mut CUcheckpointUnlockArgs);
    fn cuCoredumpDeregisterCompleteCallback(callback: CUcoredumpCallbackHandle);
    fn cuCoredumpDeregisterStartCallback(callback: CUcoredumpCallbackHandle);
    fn cuCoredumpGetAttribute(attrib: CUcoredumpSettings, value: *mut c_void, size: *mut usize);
    fn cuCoredumpGetAttributeGlobal(attrib: CUcoredumpSettings, value: *mut c_void, size: *mut usize);
    fn cuCoredumpRegisterCompleteCallback(
        callback: CUcoredumpStatusCallback, user_data: *mut c_void, callback_out: *mut CUcoredumpCallbackHandle
    );
    fn cuCoredumpRegisterStartCallback(
        callback: CUcoredumpStatusCallback, user_data: *mut c_void, callback_out: *mut CUcoredumpCallbackHandle
    );
    fn cuCoredumpSetAttribute(attrib: CUcoredumpSettings, value: *mut c_void, size: *mut usize);
    fn cuCoredumpSetAttributeGlobal(attrib: CUcoredumpSettings, value: *mut c_void, size: *mut usize);
    fn cuCtxDisablePeerAccess(peer_context: CUcontext);
    fn cuCtxEnablePeerAccess(peer_context: CUcontext, flags: c_uint);
    fn cuCtxGetApiVersion(ctx: CUcontext, version: *mut c_uint);
    fn cuCtxGetCacheConfig(pconfig: *mut CUfunc_cache);
    fn cuCtxGetCurrent(ctx: *mut CUcontext);
    fn cuCtxGetDevResource(ctx: CUcontext, resource: *mut CUdevResource, kind: CUdevResourceType);
    fn cuCtxGetDevice(device: *mut CUdevice);
    fn cuCtxGetDevice_v2(device: *mut CUdevice, ctx: CUcontext);
    fn cuCtxGetExecAffinity(exec_affinity: *mut CUexecAffinityParam, kind: CUexecAffinityType);
    fn cuCtxGetFlags(flags: *mut c_uint);
    fn cuCtxGetId(ctx: CUcontext, ctx_id: *mut u64);
    fn cuCtxGetLimit(pvalue: *mut usize, limit: CUlimit);
    fn cuCtxGetSharedMemConfig(config: *mut CUsharedconfig);
    fn cuCtxGetStreamPriorityRange(least_priority: *mut c_int, greatest_priority: *mut c_int);
    fn cuCtxResetPersistingL2Cache();
    fn cuCtxSetCacheConfig(config: CUfunc_cache);
    fn cuCtxSetSharedMemConfig(config: CUsharedconfig);
    fn cuDevResourceGenerateDesc(desc: *mut CUdevResourceDesc, resources: *mut CUdevResource, nb_resources: c_uint);
    fn cuDevSmResourceSplit(
        result: *mut CUdevResource, nb_groups: c_uint, input: *const CUdevResource, remainder: *mut CUdevResource,
        flags: c_uint, group_params: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS
    );
    fn cuDevSmResourceSplitByCount(
        result: *mut CUdevResource, nb_groups: *mut c_uint, input: *const CUdevResource, remainder: *mut CUdevResource,
        flags: c_uint, min_count: c_uint
    );
    fn cuDeviceCanAccessPeer(can_access_peer: *mut c_int, dev: CUdevice, peer_dev: CUdevice);
    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, dev: CUdevice);
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    fn cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice);
    fn cuDeviceGetByPCIBusId(dev: *mut CUdevice, pci_bus_id: *const c_char);
    fn cuDeviceGetCliqueCount(count: *mut usize, dev: CUdevice);
    fn cuDeviceGetCliqueInfo(clique_info: *mut CUcliqueInfo, count: *mut usize, dev: CUdevice);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGetDefaultMemPool(pool_out: *mut CUmemoryPool, dev: CUdevice);
    fn cuDeviceGetDevResource(device: CUdevice, resource: *mut CUdevResource, kind: CUdevResourceType);
    fn cuDeviceGetExecAffinitySupport(pi: *mut c_int, kind: CUexecAffinityType, dev: CUdevice);
    fn cuDeviceGetFabricClusterUuid(uuid: *mut CUuuid, dev: CUdevice);
    fn cuDeviceGetGraphMemAttribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void);
    fn cuDeviceGetHostAtomicCapabilities(
        capabilities: *mut c_uint, operations: *const CUatomicOperation, count: c_uint, dev: CUdevice
    );
    fn cuDeviceGetLuid(luid: *mut c_char, device_node_mask: *mut c_uint, dev: CUdevice);
    fn cuDeviceGetMemPool(pool: *mut CUmemoryPool, dev: CUdevice);
    fn cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice);
    fn cuDeviceGetNvSciSyncAttributes(nv_sci_sync_attr_list: *mut c_void, dev: CUdevice, flags: c_int);
    fn cuDeviceGetP2PAtomicCapabilities(
        capabilities: *mut c_uint, operations: *const CUatomicOperation, count: c_uint, src_device: CUdevice,
        dst_device: CUdevice
    );
    fn cuDeviceGetP2PAttribute(
        value: *mut c_int, attrib: CUdevice_P2PAttribute, src_device: CUdevice, dst_device: CUdevice
    );
    fn cuDeviceGetPCIBusId(pci_bus_id: *mut c_char, len: c_int, dev: CUdevice);
    fn cuDeviceGetProperties(prop: *mut CUdevprop, dev: CUdevice);
    fn cuDeviceGetTexture1DLinearMaxWidth(
        max_width_in_elements: *mut usize, format: CUarray_format, num_channels: c_uint, dev: CUdevice
    );
    fn cuDeviceGetUuid(uuid: *mut CUuuid, dev: CUdevice);
    fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, dev: CUdevice);
    fn cuDevicePrimaryCtxGetState(dev: CUdevice, flags: *mut c_uint, active: *mut c_int);
    fn cuDeviceRegisterAsyncNotification(
        device: CUdevice, callback_func: CUasyncCallback, user_data: *mut c_void, callback: *mut CUasyncCallbackHandle
    );
    fn cuDeviceTotalMem(bytes: *mut c_uint, dev: CUdevice);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice);
    fn cuDeviceUnregisterAsyncNotification(device: CUdevice, callback: CUasyncCallbackHandle);
    fn cuDriverGetVersion(driver_version: *mut c_int);
    fn cuFuncGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, function: CUfunction);
    fn cuFuncGetName(name: *mut *const c_char, function: CUfunction);
    fn cuFuncGetParamCount(func: CUfunction, param_count: *mut usize);
    fn cuFuncGetParamInfo(func: CUfunction, param_index: usize, param_offset: *mut usize, param_size: *mut usize);
    fn cuFuncIsLoaded(state: *mut CUfunctionLoadingState, function: CUfunction);
    fn cuFuncLoad(function: CUfunction);
    fn cuFuncSetAttribute(function: CUfunction, attrib: CUfunction_attribute, value: c_int);
    fn cuFuncSetCacheConfig(function: CUfunction, config: CUfunc_cache);
    fn cuFuncSetSharedMemConfig(function: CUfunction, config: CUsharedconfig);
    fn cuGetErrorName(error: CUresult, str: *mut *const c_char);
    fn cuGetErrorString(error: CUresult, str: *mut *const c_char);
    fn cuGetExportTable(export_table: *mut *const c_void, export_table_id: *const CUuuid);
    fn cuGraphBatchMemOpNodeGetParams(node: CUgraphNode, node_params_out: *mut CUDA_BATCH_MEM_OP_NODE_PARAMS);
    fn cuGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph);
    fn cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint);
    fn cuGraphEventRecordNodeGetEvent(node: CUgraphNode, event_out: *mut CUevent);
    fn cuGraphEventWaitNodeGetEvent(node: CUgraphNode, event_out: *mut CUevent);
    fn cuGraphExecGetFlags(graph_exec: CUgraphExec, flags: *mut u64);
    fn cuGraphExecGetId(graph_exec: CUgraphExec, graph_id: *mut c_uint);
    fn cuGraphExternalSemaphoresSignalNodeGetParams(
        node: CUgraphNode, params_out: *mut CUDA_EXT_SEM_SIGNAL_NODE_PARAMS
    );
    fn cuGraphExternalSemaphoresWaitNodeGetParams(node: CUgraphNode, params_out: *mut CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    fn cuGraphGetEdges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, num_edges: *mut usize);
    fn cuGraphGetEdges_v2(
        graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, edge_data: *mut CUgraphEdgeData,
        num_edges: *mut usize
    );
    fn cuGraphGetId(graph: CUgraph, graph_id: *mut c_uint);
    fn cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, num_nodes: *mut usize);
    fn cuGraphGetRootNodes(graph: CUgraph, root_nodes: *mut CUgraphNode, num_root_nodes: *mut usize);
    fn cuGraphKernelNodeGetAttribute(
        node: CUgraphNode, attr: CUkernelNodeAttrID, value_out: *mut CUkernelNodeAttrValue
    );
    fn cuGraphKernelNodeGetParams(node: CUgraphNode, node_params: *mut CUDA_KERNEL_NODE_PARAMS_v1);
    fn cuGraphKernelNodeGetParams_v2(node: CUgraphNode, node_params: *mut CUDA_KERNEL_NODE_PARAMS);
    fn cuGraphMemAllocNodeGetParams(node: CUgraphNode, params_out: *mut CUDA_MEM_ALLOC_NODE_PARAMS);
    fn cuGraphMemFreeNodeGetParams(node: CUgraphNode, dptr_out: *mut CUdeviceptr);
    fn cuGraphMemcpyNodeGetParams(node: CUgraphNode, node_params: *mut CUDA_MEMCPY3D);
    fn cuGraphMemsetNodeGetParams(node: CUgraphNode, node_params: *mut CUDA_MEMSET_NODE_PARAMS);
    fn cuGraphNodeGetContainingGraph(node: CUgraphNode, graph: *mut CUgraph);
    fn cuGraphNodeGetDependencies(node: CUgraphNode, dependencies: *mut CUgraphNode, num_dependencies: *mut usize);
    fn cuGraphNodeGetDependencies_v2(
        node: CUgraphNode, dependencies: *mut CUgraphNode, edge_data: *mut CUgraphEdgeData,
        num_dependencies: *mut usize
    );
    fn cuGraphNodeGetDependentNodes(
        node: CUgraphNode, dependent_nodes: *mut CUgraphNode, num_dependent_nodes: *mut usize
    );
    fn cuGraphNodeGetDependentNodes_v2(
        node: CUgraphNode, dependent_nodes: *mut CUgraphNode, edge_data: *mut CUgraphEdgeData,
        num_dependent_nodes: *mut usize
    );
    fn cuGraphNodeGetEnabled(graph_exec: CUgraphExec, node: CUgraphNode, is_enabled: *mut c_uint);
    fn cuGraphNodeGetLocalId(node: CUgraphNode, node_id: *mut c_uint);
    fn cuGraphNodeGetToolsId(node: CUgraphNode, tools_node_id: *mut u64);
    fn cuGraphNodeGetType(node: CUgraphNode, kind: *mut CUgraphNodeType);
    fn cuGraphicsResourceSetMapFlags(resource: CUgraphicsResource, flags: c_uint);
    fn cuGraphicsResourceSetMapFlags_v2(resource: CUgraphicsResource, flags: c_uint);
    fn cuGreenCtxGetDevResource(ctx: CUgreenCtx, resource: *mut CUdevResource, kind: CUdevResourceType);
    fn cuGreenCtxGetId(green_ctx: CUgreenCtx, green_ctx_id: *mut u64);
    fn cuKernelGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, kernel: CUkernel, dev: CUdevice);
    fn cuKernelGetLibrary(lib: *mut CUlibrary, kernel: CUkernel);
    fn cuKernelGetName(name: *mut *const c_char, function: CUkernel);
    fn cuKernelGetParamCount(kernel: CUkernel, param_count: *mut usize);
    fn cuKernelGetParamInfo(kernel: CUkernel, param_index: usize, param_offset: *mut usize, param_size: *mut usize);
    fn cuKernelSetAttribute(attrib: CUfunction_attribute, val: c_int, kernel: CUkernel, dev: CUdevice);
    fn cuKernelSetCacheConfig(kernel: CUkernel, config: CUfunc_cache, dev: CUdevice);
    fn cuLibraryGetKernelCount(count: *mut c_uint, library: CUlibrary);
    fn cuLogicalEndpointGetLimits(bind_alignment: *mut u64, max_size: *mut u64, prop: *const CUlogicalEndpointProp);
    fn cuLogicalEndpointQuery(le_id: CUlogicalEndpointId, count: u32, query_status: *mut c_int);
    fn cuLogsCurrent(iterator_out: *mut CUlogIterator, flags: c_uint);
    fn cuLogsDumpToFile(iterator: *mut CUlogIterator, path_to_file: *const c_char, flags: c_uint);
    fn cuLogsDumpToMemory(iterator: *mut CUlogIterator, buffer: *mut c_char, size: *mut usize, flags: c_uint);
    fn cuLogsRegisterCallback(
        callback_func: CUlogsCallback, user_data: *mut c_void, callback_out: *mut CUlogsCallbackHandle
    );
    fn cuLogsUnregisterCallback(callback: CUlogsCallbackHandle);
    fn cuMemGetAccess(flags: *mut u64, location: *const CUmemLocation, ptr: CUdeviceptr);
    fn cuMemGetAddressRange(pbase: *mut CUdeviceptr_v1, psize: *mut c_uint, ptr: CUdeviceptr_v1);
    fn cuMemGetAddressRange_v2(pbase: *mut CUdeviceptr, psize: *mut usize, ptr: CUdeviceptr);
    fn cuMemGetAllocationGranularity(
        granularity: *mut usize, prop: *const CUmemAllocationProp, option: CUmemAllocationGranularity_flags
    );
    fn cuMemGetAllocationPropertiesFromHandle(prop: *mut CUmemAllocationProp, handle: CUmemGenericAllocationHandle);
    fn cuMemGetDefaultMemPool(pool_out: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType);
    fn cuMemGetInfo(free: *mut c_uint, total: *mut c_uint);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemGetLocationInfo(
        ptr: CUdeviceptr, size: usize, summary_granularity: usize, sampling_granularity: usize,
        location_out: *mut CUmemLocation
    );
    fn cuMemGetMemPool(pool: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType);
    fn cuMemHostGetFlags(flags: *mut c_uint, pointer: *mut c_void);
    fn cuMemPoolGetAccess(flags: *mut CUmemAccess_flags, mem_pool: CUmemoryPool, location: *mut CUmemLocation);
    fn cuMemPoolGetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void);
    fn cuMemRangeGetAttribute(
        data: *mut c_void, data_size: usize, attribute: CUmem_range_attribute, dev_ptr: CUdeviceptr, count: usize
    );
    fn cuMemRangeGetAttributes(
        data: *mut *mut c_void, data_sizes: *mut usize, attributes: *mut CUmem_range_attribute, num_attributes: usize,
        dev_ptr: CUdeviceptr, count: usize
    );
    fn cuMipmappedArrayGetMemoryRequirements(
        memory_requirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, mipmap: CUmipmappedArray, device: CUdevice
    );
    fn cuMipmappedArrayGetSparseProperties(
        sparse_properties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, mipmap: CUmipmappedArray
    );
    fn cuModuleGetFunctionCount(count: *mut c_uint, module: CUmodule);
    fn cuModuleGetLoadingMode(mode: *mut CUmoduleLoadingMode);
    fn cuMulticastGetGranularity(
        granularity: *mut usize, prop: *const CUmulticastObjectProp, option: CUmulticastGranularity_flags
    );
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        dynamic_smem_size: *mut usize, func: CUfunction, num_blocks: c_int, block_size: c_int
    );
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        num_blocks: *mut c_int, func: CUfunction, block_size: c_int, dynamic_s_mem_size: usize
    );
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        num_blocks: *mut c_int, func: CUfunction, block_size: c_int, dynamic_s_mem_size: usize, flags: c_uint
    );
    fn cuOccupancyMaxActiveClusters(num_clusters: *mut c_int, func: CUfunction, config: *const CUlaunchConfig);
    fn cuOccupancyMaxPotentialBlockSize(
        min_grid_size: *mut c_int, block_size: *mut c_int, func: CUfunction,
        block_size_to_dynamic_s_mem_size: CUoccupancyB2DSize, dynamic_s_mem_size: usize, block_size_limit: c_int
    );
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        min_grid_size: *mut c_int, block_size: *mut c_int, func: CUfunction,
        block_size_to_dynamic_s_mem_size: CUoccupancyB2DSize, dynamic_s_mem_size: usize, block_size_limit: c_int,
        flags: c_uint
    );
    fn cuOccupancyMaxPotentialClusterSize(cluster_size: *mut c_int, func: CUfunction, config: *const CUlaunchConfig);
    fn cuPointerGetAttribute(data: *mut c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr);
    fn cuPointerGetAttributes(
        num_attributes: c_uint, attributes: *mut CUpointer_attribute, data: *mut *mut c_void, ptr: CUdeviceptr
    );
    fn cuStreamGetAttribute(stream: CUstream, attr: CUstreamAttrID, value_out: *mut CUstreamAttrValue);
    fn cuStreamGetCtx(stream: CUstream, ctx: *mut CUcontext);
    fn cuStreamGetCtx_v2(stream: CUstream, ctx: *mut CUcontext, green_ctx: *mut CUgreenCtx);
    fn cuStreamGetDevResource(stream: CUstream, resource: *mut CUdevResource, kind: CUdevResourceType);
    fn cuStreamGetDevice(stream: CUstream, device: *mut CUdevice);
    fn cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    fn cuStreamGetGreenCtx(stream: CUstream, ctx: *mut CUgreenCtx);
    fn cuStreamGetId(stream: CUstream, stream_id: *mut u64);
    fn cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    fn cuSurfObjectGetResourceDesc(res_desc: *mut CUDA_RESOURCE_DESC, surf_object: CUsurfObject);
    fn cuSurfRefGetArray(array: *mut CUarray, surf_ref: CUsurfref);
    fn cuTensorMapSetAllocationClass(
        tensor_map: *mut CUtensorMap, alloc_class: CUtensorMapAllocClass, out_alloc_class: *mut CUtensorMapAllocClass
    );
    fn cuTexObjectGetResourceDesc(res_desc: *mut CUDA_RESOURCE_DESC, tex_object: CUtexObject);
    fn cuTexObjectGetResourceViewDesc(res_view_desc: *mut CUDA_RESOURCE_VIEW_DESC, tex_object: CUtexObject);
    fn cuTexObjectGetTextureDesc(tex_desc: *mut CUDA_TEXTURE_DESC, tex_object: CUtexObject);
    fn cuTexRefGetAddress(dptr: *mut CUdeviceptr_v1, tex_ref: CUtexref);
    fn cuTexRefGetAddress_v2(dptr: *mut CUdeviceptr, tex_ref: CUtexref);
    fn cuTexRefGetAddressMode(pam: *mut CUaddress_mode, tex_ref: CUtexref, dim: c_int);
    fn cuTexRefGetArray(array: *mut CUarray, tex_ref: CUtexref);
    fn cuTexRefGetBorderColor(border_color: *mut f32, tex_ref: CUtexref);
    fn cuTexRefGetFilterMode(pfm: *mut CUfilter_mode, tex_ref: CUtexref);
    fn cuTexRefGetFlags(flags: *mut c_uint, tex_ref: CUtexref);
    fn cuTexRefGetFormat(format: *mut CUarray_format, num_channels: *mut c_int, tex_ref: CUtexref);
    fn cuTexRefGetMaxAnisotropy(pmax_aniso: *mut c_int, tex_ref: CUtexref);
    fn cuTexRefGetMipmapFilterMode(pfm: *mut CUfilter_mode, tex_ref: CUtexref);
    fn cuTexRefGetMipmapLevelBias(pbias: *mut f32, tex_ref: CUtexref);
    fn cuTexRefGetMipmapLevelClamp(
        pmin_mipmap_level_clamp: *mut f32, pmax_mipmap_level_clamp: *mut f32, tex_ref: CUtexref
    );
    fn cuTexRefGetMipmappedArray(mipmapped_array: *mut CUmipmappedArray, tex_ref: CUtexref);
    fn cuTexRefSetAddressMode(tex_ref: CUtexref, dim: c_int, am: CUaddress_mode);
    fn cuTexRefSetBorderColor(tex_ref: CUtexref, border_color: *mut f32);
    fn cuTexRefSetFilterMode(tex_ref: CUtexref, fm: CUfilter_mode);
    fn cuTexRefSetFlags(tex_ref: CUtexref, flags: c_uint);
    fn cuTexRefSetFormat(tex_ref: CUtexref, fmt: CUarray_format, num_packed_components: c_int);
    fn cuTexRefSetMaxAnisotropy(tex_ref: CUtexref, max_aniso: c_uint);
    fn cuTexRefSetMipmapFilterMode(tex_ref: CUtexref, fm: CUfilter_mode);
    fn cuTexRefSetMipmapLevelBias(tex_ref: CUtexref, bias: f32);
    fn cuTexRefSetMipmapLevelClamp(tex_ref: CUtexref, min_mipmap_level_clamp: f32, max_mipmap_level_clamp: f32);

    } };
}
