//! Rows of [`driver_api!`](crate::driver_api!): streams, events, captures, and calls that wait for
//! them. How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_streams {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_graphs! { {$($to)*} { $($rows)*

    both   fn cuFlushGPUDirectRDMAWrites(
        target: CUflushGPUDirectRDMAWritesTarget, scope: CUflushGPUDirectRDMAWritesScope
    ) [plain cuFlushGPUDirectRDMAWrites] no_effect;
    both   fn cuCtxSynchronize() [plain cuCtxSynchronize];
    both   fn cuCtxSynchronize_v2(ctx: CUcontext) [plain cuCtxSynchronize_v2];
    after  fn cuCtxRecordEvent(ctx: CUcontext, event: CUevent) [plain cuCtxRecordEvent];
    after  fn cuCtxWaitEvent(ctx: CUcontext, event: CUevent) [plain cuCtxWaitEvent];
    after  fn cuIpcGetEventHandle(handle: *mut CUipcEventHandle, event: CUevent) [plain cuIpcGetEventHandle];
    after  fn cuIpcOpenEventHandle(event: *mut CUevent, handle: CUipcEventHandle) [plain cuIpcOpenEventHandle]
        partly "ordered with the other processes of one `streamsan run`; within this process a wait waits for all that was enqueued here";
    after  fn cuStreamCreate(stream: *mut CUstream, flags: c_uint) [plain cuStreamCreate];
    after  fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int)
        [plain cuStreamCreateWithPriority];
    after  fn cuStreamBeginCaptureToCig(stream: CUstream, stream_cig_capture_params: *mut CUstreamCigCaptureParams)
        [legacy cuStreamBeginCaptureToCig, per_thread cuStreamBeginCaptureToCig_ptsz]
        partly "captured for another API";
    after  fn cuStreamEndCaptureToCig(stream: CUstream)
        [legacy cuStreamEndCaptureToCig, per_thread cuStreamEndCaptureToCig_ptsz];
    after  fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint)
        [legacy cuStreamWaitEvent, per_thread cuStreamWaitEvent_ptsz];
    after  fn cuStreamBeginCapture(stream: CUstream)
        [legacy cuStreamBeginCapture, per_thread cuStreamBeginCapture_ptsz];
    after  fn cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode)
        [legacy cuStreamBeginCapture_v2, per_thread cuStreamBeginCapture_v2_ptsz];
    after  fn cuStreamBeginRecaptureToGraph(
        stream: CUstream, mode: CUstreamCaptureMode, graph: CUgraph, callback_func: CUgraphRecaptureCallback,
        user_data: *mut c_void
    ) [legacy cuStreamBeginRecaptureToGraph, per_thread cuStreamBeginRecaptureToGraph_ptsz];
    after  fn cuStreamBeginCaptureToGraph(
        stream: CUstream, graph: CUgraph, dependencies: *const CUgraphNode, dependency_data: *const CUgraphEdgeData,
        num_dependencies: usize, mode: CUstreamCaptureMode
    ) [legacy cuStreamBeginCaptureToGraph, per_thread cuStreamBeginCaptureToGraph_ptsz];
    after  fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode)
        [plain cuThreadExchangeStreamCaptureMode] no_effect;
    after  fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph)
        [legacy cuStreamEndCapture, per_thread cuStreamEndCapture_ptsz];
    after  fn cuStreamIsCapturing(stream: CUstream, capture_status: *mut CUstreamCaptureStatus)
        [legacy cuStreamIsCapturing, per_thread cuStreamIsCapturing_ptsz] no_effect;
    after  fn cuStreamGetCaptureInfo(stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut u64)
        [legacy cuStreamGetCaptureInfo, per_thread cuStreamGetCaptureInfo_ptsz] no_effect;
    after  fn cuStreamGetCaptureInfo_v2(
        stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut u64, graph_out: *mut CUgraph,
        dependencies_out: *mut *const CUgraphNode, num_dependencies_out: *mut usize
    ) [legacy cuStreamGetCaptureInfo_v2, per_thread cuStreamGetCaptureInfo_v2_ptsz] no_effect;
    after  fn cuStreamGetCaptureInfo_v3(
        stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut u64, graph_out: *mut CUgraph,
        dependencies_out: *mut *const CUgraphNode, edge_data_out: *mut *const CUgraphEdgeData,
        num_dependencies_out: *mut usize
    ) [legacy cuStreamGetCaptureInfo_v3, per_thread cuStreamGetCaptureInfo_v3_ptsz] no_effect;
    after  fn cuStreamUpdateCaptureDependencies(
        stream: CUstream, dependencies: *mut CUgraphNode, num_dependencies: usize, flags: c_uint
    ) [legacy cuStreamUpdateCaptureDependencies, per_thread cuStreamUpdateCaptureDependencies_ptsz] no_effect;
    after  fn cuStreamUpdateCaptureDependencies_v2(
        stream: CUstream, dependencies: *mut CUgraphNode, dependency_data: *const CUgraphEdgeData,
        num_dependencies: usize, flags: c_uint
    ) [legacy cuStreamUpdateCaptureDependencies_v2, per_thread cuStreamUpdateCaptureDependencies_v2_ptsz] no_effect;
    after  fn cuStreamAttachMemAsync(stream: CUstream, ptr: CUdeviceptr, length: usize, flags: c_uint)
        [legacy cuStreamAttachMemAsync, per_thread cuStreamAttachMemAsync_ptsz];
    both   fn cuStreamQuery(stream: CUstream) [legacy cuStreamQuery, per_thread cuStreamQuery_ptsz];
    both   fn cuStreamSynchronize(stream: CUstream) [legacy cuStreamSynchronize, per_thread cuStreamSynchronize_ptsz];
    both   fn cuStreamDestroy_v2(stream: CUstream) [plain cuStreamDestroy, plain cuStreamDestroy_v2];
    after  fn cuStreamCopyAttributes(dst: CUstream, src: CUstream)
        [legacy cuStreamCopyAttributes, per_thread cuStreamCopyAttributes_ptsz] no_effect;
    after  fn cuStreamSetAttribute(stream: CUstream, attr: CUstreamAttrID, value: *const CUstreamAttrValue)
        [legacy cuStreamSetAttribute, per_thread cuStreamSetAttribute_ptsz] no_effect;
    after  fn cuEventCreate(event: *mut CUevent, flags: c_uint) [plain cuEventCreate];
    after  fn cuEventRecord(event: CUevent, stream: CUstream) [legacy cuEventRecord, per_thread cuEventRecord_ptsz];
    after  fn cuEventRecordWithFlags(event: CUevent, stream: CUstream, flags: c_uint)
        [legacy cuEventRecordWithFlags, per_thread cuEventRecordWithFlags_ptsz];
    both   fn cuEventQuery(event: CUevent) [plain cuEventQuery];
    both   fn cuEventSynchronize(event: CUevent) [plain cuEventSynchronize];
    both   fn cuEventDestroy_v2(event: CUevent) [plain cuEventDestroy, plain cuEventDestroy_v2];
    both   fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent)
        [plain cuEventElapsedTime, plain cuEventElapsedTime_v2];
    after  fn cuGreenCtxRecordEvent(ctx: CUgreenCtx, event: CUevent) [plain cuGreenCtxRecordEvent];
    after  fn cuGreenCtxWaitEvent(ctx: CUgreenCtx, event: CUevent) [plain cuGreenCtxWaitEvent];
    after  fn cuGreenCtxStreamCreate(stream: *mut CUstream, green_ctx: CUgreenCtx, flags: c_uint, priority: c_int)
        [plain cuGreenCtxStreamCreate];

    } } };
}
