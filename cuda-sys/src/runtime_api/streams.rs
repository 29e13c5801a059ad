//! Rows of [`runtime_api!`](crate::runtime_api!): streams, events, launches, graphs, registration
//! of code, entry points. How to read a row: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __runtime_api_streams {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__runtime_api_neutral! { {$($to)*} { $($rows)*

    name fn cudaDeviceReset() -> cudaError_t [plain cudaDeviceReset];
    name fn cudaDeviceSetLimit(limit: cudaLimit, value: usize) -> cudaError_t [plain cudaDeviceSetLimit];
    name fn cudaDeviceSynchronize() -> cudaError_t [plain cudaDeviceSynchronize];
    name fn cudaEventCreate(event: *mut cudaEvent_t) -> cudaError_t [plain cudaEventCreate];
    name fn cudaEventCreateWithFlags(event: *mut cudaEvent_t, flags: c_uint) -> cudaError_t
        [plain cudaEventCreateWithFlags];
    name fn cudaEventDestroy(event: cudaEvent_t) -> cudaError_t [plain cudaEventDestroy];
    name fn cudaEventElapsedTime(ms: *mut f32, start: cudaEvent_t, end: cudaEvent_t) -> cudaError_t
        [plain cudaEventElapsedTime];
    name fn cudaEventElapsedTime_v2(ms: *mut f32, start: cudaEvent_t, end: cudaEvent_t) -> cudaError_t
        [plain cudaEventElapsedTime_v2];
    name fn cudaEventQuery(event: cudaEvent_t) -> cudaError_t [plain cudaEventQuery];
    name fn cudaEventRecord(event: cudaEvent_t, stream: cudaStream_t) -> cudaError_t
        [legacy cudaEventRecord, per_thread cudaEventRecord_ptsz];
    name fn cudaEventRecordWithFlags(event: cudaEvent_t, stream: cudaStream_t, flags: c_uint) -> cudaError_t
        [legacy cudaEventRecordWithFlags, per_thread cudaEventRecordWithFlags_ptsz];
    name fn cudaEventSynchronize(event: cudaEvent_t) -> cudaError_t [plain cudaEventSynchronize];
    name fn cudaExecutionCtxRecordEvent(ctx: cudaExecutionContext_t, event: cudaEvent_t) -> cudaError_t
        [plain cudaExecutionCtxRecordEvent];
    name fn cudaExecutionCtxStreamCreate(
        stream: *mut cudaStream_t, ctx: cudaExecutionContext_t, flags: c_uint, priority: c_int
    ) -> cudaError_t [plain cudaExecutionCtxStreamCreate];
    name fn cudaExecutionCtxSynchronize(ctx: cudaExecutionContext_t) -> cudaError_t [plain cudaExecutionCtxSynchronize];
    name fn cudaExecutionCtxWaitEvent(ctx: cudaExecutionContext_t, event: cudaEvent_t) -> cudaError_t
        [plain cudaExecutionCtxWaitEvent];
    // Majors differ: this is the longest form; the words of the shorter ones pass through it
    // unchanged.
    name fn cudaGetDriverEntryPoint(
        symbol: *const c_char, func_ptr: *mut *mut c_void, flags: u64,
        driver_status: *mut cudaDriverEntryPointQueryResult
    ) -> cudaError_t [legacy cudaGetDriverEntryPoint, per_thread cudaGetDriverEntryPoint_ptsz];
    name fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char, func_ptr: *mut *mut c_void, cuda_version: c_uint, flags: u64,
        driver_status: *mut cudaDriverEntryPointQueryResult
    ) -> cudaError_t [legacy cudaGetDriverEntryPointByVersion, per_thread cudaGetDriverEntryPointByVersion_ptsz];
    name fn cudaGraphExecDestroy(graph_exec: cudaGraphExec_t) -> cudaError_t [plain cudaGraphExecDestroy];
    // Majors differ: this is the longest form; the words of the shorter ones pass through it
    // unchanged.
    name fn cudaGraphExecUpdate(
        graph_exec: cudaGraphExec_t, graph: cudaGraph_t, error_node_out: *mut cudaGraphNode_t,
        update_result_out: *mut cudaGraphExecUpdateResult
    ) -> cudaError_t [plain cudaGraphExecUpdate];
    // Majors differ: this is the longest form; the words of the shorter ones pass through it
    // unchanged.
    name fn cudaGraphInstantiate(
        graph_exec: *mut cudaGraphExec_t, graph: cudaGraph_t, error_node: *mut cudaGraphNode_t, log_buffer: *mut c_char,
        buffer_size: usize
    ) -> cudaError_t [plain cudaGraphInstantiate];
    name fn cudaGraphInstantiateWithFlags(
        graph_exec: *mut cudaGraphExec_t, graph: cudaGraph_t, flags: u64
    ) -> cudaError_t [plain cudaGraphInstantiateWithFlags];
    name fn cudaGraphInstantiateWithParams(
        graph_exec: *mut cudaGraphExec_t, graph: cudaGraph_t, instantiate_params: *mut cudaGraphInstantiateParams
    ) -> cudaError_t [legacy cudaGraphInstantiateWithParams, per_thread cudaGraphInstantiateWithParams_ptsz];
    name fn cudaGraphLaunch(graph_exec: cudaGraphExec_t, stream: cudaStream_t) -> cudaError_t
        [legacy cudaGraphLaunch, per_thread cudaGraphLaunch_ptsz];
    name fn cudaGraphUpload(graph_exec: cudaGraphExec_t, stream: cudaStream_t) -> cudaError_t
        [legacy cudaGraphUpload, per_thread cudaGraphUpload_ptsz];
    name fn cudaIpcOpenEventHandle(event: *mut cudaEvent_t, handle: cudaIpcEventHandle_t) -> cudaError_t
        [plain cudaIpcOpenEventHandle];
    name fn cudaLaunchCooperativeKernel(
        func: *const c_void, grid_dim: dim3, block_dim: dim3, args: *mut *mut c_void, shared_mem: usize,
        stream: cudaStream_t
    ) -> cudaError_t [legacy cudaLaunchCooperativeKernel, per_thread cudaLaunchCooperativeKernel_ptsz];
    name fn cudaLaunchCooperativeKernelMultiDevice(
        launch_params_list: *mut cudaLaunchParams, num_devices: c_uint, flags: c_uint
    ) -> cudaError_t [plain cudaLaunchCooperativeKernelMultiDevice];
    name fn cudaLaunchHostFunc(stream: cudaStream_t, callback: cudaHostFn_t, user_data: *mut c_void) -> cudaError_t
        [legacy cudaLaunchHostFunc, per_thread cudaLaunchHostFunc_ptsz];
    name fn cudaLaunchHostFunc_v2(
        stream: cudaStream_t, callback: cudaHostFn_t, user_data: *mut c_void, sync_mode: c_uint
    ) -> cudaError_t [legacy cudaLaunchHostFunc_v2, per_thread cudaLaunchHostFunc_v2_ptsz];
    name fn cudaLaunchKernel(
        func: *const c_void, grid_dim: dim3, block_dim: dim3, args: *mut *mut c_void, shared_mem: usize,
        stream: cudaStream_t
    ) -> cudaError_t [legacy cudaLaunchKernel, per_thread cudaLaunchKernel_ptsz];
    name fn cudaLaunchKernelExC(
        config: *const cudaLaunchConfig_t, func: *const c_void, args: *mut *mut c_void
    ) -> cudaError_t [legacy cudaLaunchKernelExC, per_thread cudaLaunchKernelExC_ptsz];
    name fn cudaSignalExternalSemaphoresAsync(
        ext_sem_array: *const cudaExternalSemaphore_t, params_array: *const cudaExternalSemaphoreSignalParams,
        num_ext_sems: c_uint, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaSignalExternalSemaphoresAsync, per_thread cudaSignalExternalSemaphoresAsync_ptsz];
    name fn cudaSignalExternalSemaphoresAsync_v2(
        ext_sem_array: *const cudaExternalSemaphore_t, params_array: *const cudaExternalSemaphoreSignalParams,
        num_ext_sems: c_uint, stream: cudaStream_t
    ) -> cudaError_t
        [legacy cudaSignalExternalSemaphoresAsync_v2, per_thread cudaSignalExternalSemaphoresAsync_v2_ptsz];
    name fn cudaStreamAddCallback(
        stream: cudaStream_t, callback: cudaStreamCallback_t, user_data: *mut c_void, flags: c_uint
    ) -> cudaError_t [legacy cudaStreamAddCallback, per_thread cudaStreamAddCallback_ptsz];
    name fn cudaStreamAttachMemAsync(
        stream: cudaStream_t, ptr: *mut c_void, length: usize, flags: c_uint
    ) -> cudaError_t [legacy cudaStreamAttachMemAsync, per_thread cudaStreamAttachMemAsync_ptsz];
    name fn cudaStreamBeginCapture(stream: cudaStream_t, mode: cudaStreamCaptureMode) -> cudaError_t
        [legacy cudaStreamBeginCapture, per_thread cudaStreamBeginCapture_ptsz];
    name fn cudaStreamBeginCaptureToGraph(
        stream: cudaStream_t, graph: cudaGraph_t, dependencies: *const cudaGraphNode_t,
        dependency_data: *const cudaGraphEdgeData, num_dependencies: usize, mode: cudaStreamCaptureMode
    ) -> cudaError_t [legacy cudaStreamBeginCaptureToGraph, per_thread cudaStreamBeginCaptureToGraph_ptsz];
    name fn cudaStreamCreate(stream: *mut cudaStream_t) -> cudaError_t [plain cudaStreamCreate];
    name fn cudaStreamCreateWithFlags(stream: *mut cudaStream_t, flags: c_uint) -> cudaError_t
        [plain cudaStreamCreateWithFlags];
    name fn cudaStreamCreateWithPriority(stream: *mut cudaStream_t, flags: c_uint, priority: c_int) -> cudaError_t
        [plain cudaStreamCreateWithPriority];
    name fn cudaStreamDestroy(stream: cudaStream_t) -> cudaError_t [plain cudaStreamDestroy];
    name fn cudaStreamEndCapture(stream: cudaStream_t, graph: *mut cudaGraph_t) -> cudaError_t
        [legacy cudaStreamEndCapture, per_thread cudaStreamEndCapture_ptsz];
    name fn cudaStreamQuery(stream: cudaStream_t) -> cudaError_t
        [legacy cudaStreamQuery, per_thread cudaStreamQuery_ptsz];
    name fn cudaStreamSynchronize(stream: cudaStream_t) -> cudaError_t
        [legacy cudaStreamSynchronize, per_thread cudaStreamSynchronize_ptsz];
    name fn cudaStreamWaitEvent(stream: cudaStream_t, event: cudaEvent_t, flags: c_uint) -> cudaError_t
        [legacy cudaStreamWaitEvent, per_thread cudaStreamWaitEvent_ptsz];
    name fn cudaThreadSynchronize() -> cudaError_t [plain cudaThreadSynchronize];
    name fn cudaWaitExternalSemaphoresAsync(
        ext_sem_array: *const cudaExternalSemaphore_t, params_array: *const cudaExternalSemaphoreWaitParams,
        num_ext_sems: c_uint, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaWaitExternalSemaphoresAsync, per_thread cudaWaitExternalSemaphoresAsync_ptsz];
    name fn cudaWaitExternalSemaphoresAsync_v2(
        ext_sem_array: *const cudaExternalSemaphore_t, params_array: *const cudaExternalSemaphoreWaitParams,
        num_ext_sems: c_uint, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaWaitExternalSemaphoresAsync_v2, per_thread cudaWaitExternalSemaphoresAsync_v2_ptsz];
    name fn __cudaRegisterFatBinary(fat_cubin: *mut c_void) -> *mut *mut c_void [plain __cudaRegisterFatBinary];
    name fn __cudaRegisterFatBinaryEnd(handle: *mut *mut c_void) -> () [plain __cudaRegisterFatBinaryEnd];
    name fn __cudaUnregisterFatBinary(handle: *mut *mut c_void) -> () [plain __cudaUnregisterFatBinary];
    name fn __cudaRegisterFunction(
        handle: *mut *mut c_void, host_function: *const c_char, device_function: *mut c_char,
        device_name: *const c_char, thread_limit: c_int, thread_id: *mut uint3, block_id: *mut uint3,
        block_dim: *mut dim3, grid_dim: *mut dim3, warp_size: *mut c_int
    ) -> () [plain __cudaRegisterFunction];
    name fn __cudaRegisterVar(
        handle: *mut *mut c_void, host_variable: *mut c_char, device_address: *mut c_char, device_name: *const c_char,
        external: c_int, size: usize, constant: c_int, global: c_int
    ) -> () [plain __cudaRegisterVar];
    name fn __cudaRegisterManagedVar(
        handle: *mut *mut c_void, host_variable: *mut *mut c_void, device_address: *mut c_char,
        device_name: *const c_char, external: c_int, size: usize, constant: c_int, global: c_int
    ) -> () [plain __cudaRegisterManagedVar];
    name fn __cudaInitModule(handle: *mut *mut c_void) -> c_char [plain __cudaInitModule];
    name fn __cudaPushCallConfiguration(
        grid_dim: dim3, block_dim: dim3, shared_mem: usize, stream: cudaStream_t
    ) -> c_uint [legacy __cudaPushCallConfiguration];
    name fn __cudaPopCallConfiguration(
        grid_dim: *mut dim3, block_dim: *mut dim3, shared_mem: *mut usize, stream: *mut c_void
    ) -> cudaError_t [plain __cudaPopCallConfiguration];
    name fn __cudaLaunchKernel(
        kernel: cudaKernel_t, grid_dim: dim3, block_dim: dim3, args: *mut *mut c_void, shared_mem: usize,
        stream: cudaStream_t
    ) -> cudaError_t [legacy __cudaLaunchKernel, per_thread __cudaLaunchKernel_ptsz];
    name fn __cudaGetKernel(kernel: *mut cudaKernel_t, host_function: *const c_void) -> cudaError_t
        [plain __cudaGetKernel];

    } } };
}
