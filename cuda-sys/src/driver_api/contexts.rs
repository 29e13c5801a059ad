//! Rows of [`driver_api!`](crate::driver_api!): contexts, start-up and entry points.
//! How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_contexts {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_neutral! { {$($to)*} { $($rows)*

    both   fn cuInit(flags: c_uint) [plain cuInit] no_effect;
    after  fn cuDevicePrimaryCtxRetain(ctx: *mut CUcontext, dev: CUdevice) [plain cuDevicePrimaryCtxRetain];
    before fn cuDevicePrimaryCtxRelease_v2(dev: CUdevice)
        [plain cuDevicePrimaryCtxRelease, plain cuDevicePrimaryCtxRelease_v2] no_effect;
    after  fn cuDevicePrimaryCtxSetFlags_v2(dev: CUdevice, flags: c_uint)
        [plain cuDevicePrimaryCtxSetFlags, plain cuDevicePrimaryCtxSetFlags_v2];
    both   fn cuDevicePrimaryCtxReset_v2(dev: CUdevice)
        [plain cuDevicePrimaryCtxReset, plain cuDevicePrimaryCtxReset_v2];
    after  fn cuCtxCreate_v2(ctx: *mut CUcontext, flags: c_uint, dev: CUdevice)
        [plain cuCtxCreate, plain cuCtxCreate_v2];
    after  fn cuCtxCreate_v3(
        ctx: *mut CUcontext, params_array: *mut CUexecAffinityParam, num_params: c_int, flags: c_uint, dev: CUdevice
    ) [plain cuCtxCreate_v3];
    after  fn cuCtxCreate_v4(
        ctx: *mut CUcontext, ctx_create_params: *mut CUctxCreateParams, flags: c_uint, dev: CUdevice
    ) [plain cuCtxCreate_v4];
    both   fn cuCtxDestroy_v2(ctx: CUcontext) [plain cuCtxDestroy, plain cuCtxDestroy_v2];
    after  fn cuCtxPushCurrent_v2(ctx: CUcontext) [plain cuCtxPushCurrent, plain cuCtxPushCurrent_v2] no_effect;
    after  fn cuCtxPopCurrent_v2(ctx: *mut CUcontext) [plain cuCtxPopCurrent, plain cuCtxPopCurrent_v2] no_effect;
    after  fn cuCtxSetCurrent(ctx: CUcontext) [plain cuCtxSetCurrent] no_effect;
    after  fn cuCtxSetFlags(flags: c_uint) [plain cuCtxSetFlags];
    both   fn cuCtxSetLimit(limit: CUlimit, value: usize) [plain cuCtxSetLimit];
    after  fn cuCtxAttach(ctx: *mut CUcontext, flags: c_uint) [plain cuCtxAttach] no_effect;
    before fn cuCtxDetach(ctx: CUcontext) [plain cuCtxDetach] no_effect;
    after  fn cuGetProcAddress(symbol: *const c_char, entry_point: *mut *mut c_void, cuda_version: c_int, flags: u64)
        [plain cuGetProcAddress];
    after  fn cuGetProcAddress_v2(
        symbol: *const c_char, entry_point: *mut *mut c_void, cuda_version: c_int, flags: u64,
        symbol_status: *mut CUdriverProcAddressQueryResult
    ) [plain cuGetProcAddress_v2];
    after  fn cuGreenCtxCreate(ctx: *mut CUgreenCtx, desc: CUdevResourceDesc, dev: CUdevice, flags: c_uint)
        [plain cuGreenCtxCreate];
    both   fn cuGreenCtxDestroy(ctx: CUgreenCtx) [plain cuGreenCtxDestroy];
    after  fn cuCtxFromGreenCtx(context: *mut CUcontext, ctx: CUgreenCtx) [plain cuCtxFromGreenCtx];

    } } };
}
