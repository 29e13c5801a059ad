//! Execution contexts: a device's primary context, or a green one; the resources that they are made
//! of; and the driver's log.

use cuda_sys::*;

use crate::thread_state::{INVALID, Res};

/// What a handle is. The handles of green contexts are the driver's.
enum Execution {
    Device(CUcontext),
    Green(CUgreenCtx),
}

fn execution(handle: usize) -> Result<Execution, cudaError> {
    if handle == 0 {
        return Err(INVALID);
    }
    let (green, mut id) = (CUgreenCtx::from_bits(handle), 0);
    let is_green = cu!(cuGreenCtxGetId(green, &mut id)).is_ok();
    Ok(if is_green { Execution::Green(green) } else { Execution::Device(CUcontext::from_bits(handle)) })
}

/// The driver's context of a handle.
fn context(handle: usize) -> Result<CUcontext, cudaError> {
    match execution(handle)? {
        Execution::Device(ctx) => Ok(ctx),
        Execution::Green(green) => {
            let mut ctx = CUcontext::NULL;
            cu!(cuCtxFromGreenCtx(&mut ctx, green))?;
            Ok(ctx)
        }
    }
}

/// Calls with a context that is current meanwhile.
fn within(ctx: CUcontext, body: impl FnOnce() -> Res) -> Res {
    cu!(cuCtxPushCurrent_v2(ctx))?;
    let done = body();
    let mut own = CUcontext::NULL;
    cu!(cuCtxPopCurrent_v2(&mut own))?;
    done
}

rt! {
    ctx fn [cudaDeviceGetDevResource plain](_pt, device: c_int, to: *mut CUdevResource, kind: CUdevResourceType) {
        cu!(cuDeviceGetDevResource(device, to, kind))
    }
    ctx fn [cudaDevSmResourceSplitByCount plain](
        _pt, result: *mut CUdevResource, groups: *mut c_uint, input: *const CUdevResource,
        remaining: *mut CUdevResource, flags: c_uint, least: c_uint
    ) {
        cu!(cuDevSmResourceSplitByCount(result, groups, input, remaining, flags, least))
    }
    ctx fn [cudaDevSmResourceSplit plain](
        _pt, result: *mut CUdevResource, groups: c_uint, input: *const CUdevResource, remainder: *mut CUdevResource,
        flags: c_uint, params: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS
    ) {
        cu!(cuDevSmResourceSplit(result, groups, input, remainder, flags, params))
    }
    ctx fn [cudaDevResourceGenerateDesc plain](
        _pt, desc: *mut CUdevResourceDesc, resources: *mut CUdevResource, count: c_uint
    ) {
        cu!(cuDevResourceGenerateDesc(desc, resources, count))
    }
    ctx fn [cudaGreenCtxCreate plain](_pt, ctx: *mut CUgreenCtx, desc: CUdevResourceDesc, device: c_int, flags: c_uint) {
        // The runtime's own flags are reserved; the driver's one is required.
        cu!(cuGreenCtxCreate(ctx, desc, device, flags | CU_GREEN_CTX_DEFAULT_STREAM))
    }
    ctx fn [cudaDeviceGetExecutionCtx plain](_pt, ctx: *mut CUcontext, device: c_int) {
        if ctx.is_null() {
            return Err(INVALID);
        }
        let own = crate::thread_state::device();
        crate::thread_state::use_primary(device)?;
        let found = cu!(cuCtxGetCurrent(ctx));
        crate::thread_state::use_primary(own)?;
        found
    }
    ctx fn [cudaExecutionCtxDestroy plain](_pt, ctx: usize) {
        match execution(ctx)? {
            Execution::Green(green) => cu!(cuGreenCtxDestroy(green)),
            Execution::Device(_) => Err(INVALID),
        }
    }
    ctx fn [cudaExecutionCtxGetDevResource plain](_pt, ctx: usize, to: *mut CUdevResource, kind: CUdevResourceType) {
        match execution(ctx)? {
            Execution::Green(green) => cu!(cuGreenCtxGetDevResource(green, to, kind)),
            Execution::Device(ctx) => cu!(cuCtxGetDevResource(ctx, to, kind)),
        }
    }
    ctx fn [cudaExecutionCtxGetDevice plain](_pt, device: *mut c_int, ctx: usize) {
        cu!(cuCtxGetDevice_v2(device, context(ctx)?))
    }
    ctx fn [cudaExecutionCtxGetId plain](_pt, ctx: usize, id: *mut u64) {
        match execution(ctx)? {
            Execution::Green(green) => cu!(cuGreenCtxGetId(green, id)),
            Execution::Device(ctx) => cu!(cuCtxGetId(ctx, id)),
        }
    }
    ctx fn [cudaExecutionCtxStreamCreate plain](
        _pt, stream: *mut CUstream, ctx: usize, flags: c_uint, priority: c_int
    ) {
        match execution(ctx)? {
            Execution::Green(green) => cu!(cuGreenCtxStreamCreate(stream, green, CU_STREAM_NON_BLOCKING, priority)),
            Execution::Device(ctx) => within(ctx, || cu!(cuStreamCreateWithPriority(stream, flags, priority))),
        }
    }
    ctx fn [cudaExecutionCtxSynchronize plain](_pt, ctx: usize) {
        within(context(ctx)?, || cu!(cuCtxSynchronize @ 12000 ()))
    }
    ctx fn [cudaExecutionCtxRecordEvent plain](_pt, ctx: usize, event: CUevent) {
        match execution(ctx)? {
            Execution::Green(green) => cu!(cuGreenCtxRecordEvent(green, event)),
            Execution::Device(ctx) => cu!(cuCtxRecordEvent(ctx, event)),
        }
    }
    ctx fn [cudaExecutionCtxWaitEvent plain](_pt, ctx: usize, event: CUevent) {
        match execution(ctx)? {
            Execution::Green(green) => cu!(cuGreenCtxWaitEvent(green, event)),
            Execution::Device(ctx) => cu!(cuCtxWaitEvent(ctx, event)),
        }
    }
    ctx fn [cudaStreamGetDevResource legacy, cudaStreamGetDevResource_ptsz per_thread](
        pt, stream: CUstream, to: *mut CUdevResource, kind: CUdevResourceType
    ) {
        cu!(cuStreamGetDevResource, pt; (stream, to, kind))
    }
    bare fn [cudaLogsRegisterCallback plain](
        _pt, callback: CUlogsCallback, data: *mut c_void, handle: *mut CUlogsCallbackHandle
    ) {
        cu!(cuLogsRegisterCallback(callback, data, handle))
    }
    bare fn [cudaLogsUnregisterCallback plain](_pt, handle: CUlogsCallbackHandle) {
        cu!(cuLogsUnregisterCallback(handle))
    }
    bare fn [cudaLogsCurrent plain](_pt, iterator: *mut CUlogIterator, flags: c_uint) {
        cu!(cuLogsCurrent(iterator, flags))
    }
    bare fn [cudaLogsDumpToFile plain](_pt, iterator: *mut CUlogIterator, path: *const c_char, flags: c_uint) {
        cu!(cuLogsDumpToFile(iterator, path, flags))
    }
    bare fn [cudaLogsDumpToMemory plain](
        _pt, iterator: *mut CUlogIterator, buffer: *mut c_char, size: *mut usize, flags: c_uint
    ) {
        cu!(cuLogsDumpToMemory(iterator, buffer, size, flags))
    }
}
