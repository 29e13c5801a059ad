//! Streams and captures.

use cuda_sys::*;

/// What a stream callback of the runtime's kind gets, which has a status of the runtime's type: the
/// same number.
type Callback = Option<unsafe extern "C" fn(CUstream, CUresult, *mut c_void)>;

rt! {
    ctx fn [cudaStreamCreate plain](_pt, out: *mut CUstream) { cu!(cuStreamCreate(out, 0)) }
    ctx fn [cudaStreamCreateWithFlags plain](_pt, out: *mut CUstream, flags: c_uint) {
        cu!(cuStreamCreate(out, flags))
    }
    ctx fn [cudaStreamCreateWithPriority plain](_pt, out: *mut CUstream, flags: c_uint, priority: c_int) {
        cu!(cuStreamCreateWithPriority(out, flags, priority))
    }
    ctx fn [cudaStreamDestroy plain](_pt, stream: CUstream) { cu!(cuStreamDestroy_v2(stream)) }
    ctx fn [cudaStreamSynchronize legacy, cudaStreamSynchronize_ptsz per_thread](pt, stream: CUstream) {
        cu!(cuStreamSynchronize, pt; (stream))
    }
    ctx fn [cudaStreamQuery legacy, cudaStreamQuery_ptsz per_thread](pt, stream: CUstream) {
        cu!(cuStreamQuery, pt; (stream))
    }
    ctx fn [cudaStreamWaitEvent legacy, cudaStreamWaitEvent_ptsz per_thread](
        pt, stream: CUstream, event: CUevent, flags: c_uint
    ) {
        cu!(cuStreamWaitEvent, pt; (stream, event, flags))
    }
    ctx fn [cudaStreamGetFlags legacy, cudaStreamGetFlags_ptsz per_thread](pt, stream: CUstream, flags: *mut c_uint) {
        cu!(cuStreamGetFlags, pt; (stream, flags))
    }
    ctx fn [cudaStreamGetId legacy, cudaStreamGetId_ptsz per_thread](pt, stream: CUstream, id: *mut u64) {
        cu!(cuStreamGetId, pt; (stream, id))
    }
    ctx fn [cudaStreamGetPriority legacy, cudaStreamGetPriority_ptsz per_thread](
        pt, stream: CUstream, priority: *mut c_int
    ) {
        cu!(cuStreamGetPriority, pt; (stream, priority))
    }
    ctx fn [cudaStreamGetDevice legacy, cudaStreamGetDevice_ptsz per_thread](pt, stream: CUstream, device: *mut c_int) {
        cu!(cuStreamGetDevice, pt; (stream, device))
    }
    ctx fn [cudaStreamSetAttribute legacy, cudaStreamSetAttribute_ptsz per_thread](
        pt, stream: CUstream, attr: CUlaunchAttributeID, value: *const CUlaunchAttributeValue
    ) {
        cu!(cuStreamSetAttribute, pt; (stream, attr, value))
    }
    ctx fn [cudaStreamGetAttribute legacy, cudaStreamGetAttribute_ptsz per_thread](
        pt, stream: CUstream, attr: CUlaunchAttributeID, value: *mut CUlaunchAttributeValue
    ) {
        cu!(cuStreamGetAttribute, pt; (stream, attr, value))
    }
    ctx fn [cudaStreamCopyAttributes legacy, cudaStreamCopyAttributes_ptsz per_thread](pt, dst: CUstream, src: CUstream) {
        cu!(cuStreamCopyAttributes, pt; (dst, src))
    }
    ctx fn [cudaStreamAttachMemAsync legacy, cudaStreamAttachMemAsync_ptsz per_thread](
        pt, stream: CUstream, at: *mut c_void, size: usize, flags: c_uint
    ) {
        cu!(cuStreamAttachMemAsync, pt; (stream, at as u64, size, flags))
    }
    ctx fn [cudaStreamAddCallback legacy, cudaStreamAddCallback_ptsz per_thread](
        pt, stream: CUstream, callback: Callback, data: *mut c_void, flags: c_uint
    ) {
        cu!(cuStreamAddCallback, pt; (stream, callback, data, flags))
    }
    ctx fn [cudaStreamBeginCapture legacy, cudaStreamBeginCapture_ptsz per_thread](
        pt, stream: CUstream, mode: CUstreamCaptureMode
    ) {
        cu!(cuStreamBeginCapture_v2, pt; (stream, mode))
    }
    ctx fn [cudaStreamBeginCaptureToGraph legacy, cudaStreamBeginCaptureToGraph_ptsz per_thread](
        pt, stream: CUstream, graph: CUgraph, deps: *const CUgraphNode, data: *const CUgraphEdgeData, n: usize,
        mode: CUstreamCaptureMode
    ) {
        cu!(cuStreamBeginCaptureToGraph, pt; (stream, graph, deps, data, n, mode))
    }
    ctx fn [cudaStreamEndCapture legacy, cudaStreamEndCapture_ptsz per_thread](
        pt, stream: CUstream, graph: *mut CUgraph
    ) {
        cu!(cuStreamEndCapture, pt; (stream, graph))
    }
    ctx fn [cudaStreamIsCapturing legacy, cudaStreamIsCapturing_ptsz per_thread](
        pt, stream: CUstream, status: *mut CUstreamCaptureStatus
    ) {
        cu!(cuStreamIsCapturing, pt; (stream, status))
    }
    // Version 12 has the form without edge data, 11 ends behind the identifier.
    ctx fn [
        cudaStreamGetCaptureInfo legacy, cudaStreamGetCaptureInfo_ptsz per_thread,
    ](
        pt, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        deps: *mut *const CUgraphNode, data_or_count: *mut c_void, count: *mut usize
    ) {
        if crate::version::major() >= 13 {
            return cu!(cuStreamGetCaptureInfo_v3, pt; (stream, status, id, graph, deps, data_or_count.cast(), count));
        }
        let none = std::ptr::null_mut::<c_void>();
        if crate::version::major() == 11 {
            let (graph, deps, count) = (none.cast(), none.cast(), none.cast());
            return cu!(cuStreamGetCaptureInfo_v3, pt; (stream, status, id, graph, deps, none.cast(), count));
        }
        cu!(cuStreamGetCaptureInfo_v3, pt; (stream, status, id, graph, deps, none.cast(), data_or_count.cast()))
    }
    ctx fn [cudaStreamGetCaptureInfo_v2 legacy, cudaStreamGetCaptureInfo_v2_ptsz per_thread](
        pt, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        deps: *mut *const CUgraphNode, count: *mut usize
    ) {
        cu!(cuStreamGetCaptureInfo_v3, pt; (stream, status, id, graph, deps, std::ptr::null_mut(), count))
    }
    ctx fn [cudaStreamGetCaptureInfo_v3 legacy, cudaStreamGetCaptureInfo_v3_ptsz per_thread](
        pt, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        deps: *mut *const CUgraphNode, data: *mut *const CUgraphEdgeData, count: *mut usize
    ) {
        cu!(cuStreamGetCaptureInfo_v3, pt; (stream, status, id, graph, deps, data, count))
    }
    ctx fn [cudaStreamUpdateCaptureDependencies legacy, cudaStreamUpdateCaptureDependencies_ptsz per_thread](
        pt, stream: CUstream, deps: *mut CUgraphNode, data_or_count: usize, count_or_flags: usize, flags: c_uint
    ) {
        let none = std::ptr::null();
        if crate::version::major() >= 13 {
            let data = std::ptr::with_exposed_provenance::<CUgraphEdgeData>(data_or_count);
            return cu!(cuStreamUpdateCaptureDependencies_v2, pt; (stream, deps, data, count_or_flags, flags));
        }
        cu!(cuStreamUpdateCaptureDependencies_v2, pt; (stream, deps, none, data_or_count, count_or_flags as c_uint))
    }
    ctx fn [cudaStreamUpdateCaptureDependencies_v2 legacy, cudaStreamUpdateCaptureDependencies_v2_ptsz per_thread](
        pt, stream: CUstream, deps: *mut CUgraphNode, data: *const CUgraphEdgeData, count: usize, flags: c_uint
    ) {
        cu!(cuStreamUpdateCaptureDependencies_v2, pt; (stream, deps, data, count, flags))
    }
    bare fn [cudaThreadExchangeStreamCaptureMode plain](_pt, mode: *mut CUstreamCaptureMode) {
        cu!(cuThreadExchangeStreamCaptureMode(mode))
    }
}
