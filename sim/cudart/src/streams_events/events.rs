//! Events.

use cuda_sys::*;

rt! {
    ctx fn [cudaEventCreate plain](_pt, out: *mut CUevent) { cu!(cuEventCreate(out, 0)) }
    ctx fn [cudaEventCreateWithFlags plain](_pt, out: *mut CUevent, flags: c_uint) { cu!(cuEventCreate(out, flags)) }
    ctx fn [cudaEventDestroy plain](_pt, event: CUevent) { cu!(cuEventDestroy_v2(event)) }
    ctx fn [cudaEventRecord legacy, cudaEventRecord_ptsz per_thread](pt, event: CUevent, stream: CUstream) {
        cu!(cuEventRecord, pt; (event, stream))
    }
    ctx fn [cudaEventRecordWithFlags legacy, cudaEventRecordWithFlags_ptsz per_thread](
        pt, event: CUevent, stream: CUstream, flags: c_uint
    ) {
        cu!(cuEventRecordWithFlags, pt; (event, stream, flags))
    }
    ctx fn [cudaEventQuery plain](_pt, event: CUevent) { cu!(cuEventQuery(event)) }
    ctx fn [cudaEventSynchronize plain](_pt, event: CUevent) { cu!(cuEventSynchronize(event)) }
    ctx fn [cudaEventElapsedTime plain, cudaEventElapsedTime_v2 plain](
        _pt, milliseconds: *mut f32, start: CUevent, end: CUevent
    ) {
        cu!(cuEventElapsedTime_v2(milliseconds, start, end))
    }
}
