//! Contexts and entry points.

use cuda_sys::*;
use trace::{ContextId, EventId, Op, StreamId, SyncScope};

use crate::intercept::doors;
use crate::observe::Cx;

pub(crate) unsafe fn cuGetProcAddress(
    cx: &mut Cx<'_>,
    _symbol: *const c_char,
    entry_point: *mut *mut c_void,
    _cuda_version: c_int,
    _flags: u64,
) {
    let crate::observe::Phase::After(result) = cx.phase else { return };
    // SAFETY: the call has just filled the out-pointer.
    unsafe { doors::substitute(result, entry_point) };
}

pub(crate) unsafe fn cuGetProcAddress_v2(
    cx: &mut Cx<'_>,
    _symbol: *const c_char,
    entry_point: *mut *mut c_void,
    _cuda_version: c_int,
    _flags: u64,
    _symbol_status: *mut CUdriverProcAddressQueryResult,
) {
    let crate::observe::Phase::After(result) = cx.phase else { return };
    // SAFETY: the call has just filled the out-pointer.
    unsafe { doors::substitute(result, entry_point) };
}

pub(crate) unsafe fn cuDevicePrimaryCtxRetain(cx: &mut Cx<'_>, ctx: *mut CUcontext, dev: CUdevice) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *ctx };
    cx.without_stack().context_on(handle, Some(dev));
}

pub(crate) unsafe fn cuCtxCreate_v2(cx: &mut Cx<'_>, ctx: *mut CUcontext, _flags: c_uint, dev: CUdevice) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *ctx };
    cx.context_on(handle, Some(dev));
}

pub(crate) unsafe fn cuCtxCreate_v3(
    cx: &mut Cx<'_>,
    ctx: *mut CUcontext,
    _params_array: *mut CUexecAffinityParam,
    _num_params: c_int,
    _flags: c_uint,
    dev: CUdevice,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *ctx };
    cx.context_on(handle, Some(dev));
}

pub(crate) unsafe fn cuCtxCreate_v4(
    cx: &mut Cx<'_>,
    ctx: *mut CUcontext,
    _ctx_create_params: *mut CUctxCreateParams,
    _flags: c_uint,
    dev: CUdevice,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *ctx };
    cx.context_on(handle, Some(dev));
}

pub(crate) unsafe fn cuCtxDestroy_v2(cx: &mut Cx<'_>, ctx: CUcontext) {
    if let Some(context) = cx.forget_context(ctx) {
        cx.log(&Op::ContextDestroy { context });
    }
    // Pinned memory goes with the context that it was made in.
    cx.host_memory_goes(0, u64::MAX);
}

pub(crate) unsafe fn cuDevicePrimaryCtxRelease_v2(cx: &mut Cx<'_>, _dev: CUdevice) {
    cx.host_memory_goes(0, u64::MAX);
}

pub(crate) unsafe fn cuDevicePrimaryCtxReset_v2(cx: &mut Cx<'_>, dev: CUdevice) {
    let mut context = CUcontext::NULL;
    // The primary context is asked for by retaining it, and released again: its reset follows anyway.
    if crate::real!(cuDevicePrimaryCtxRetain(&raw mut context => *mut CUcontext, dev => CUdevice)) == CUresult::SUCCESS
    {
        let _ = crate::real!(cuDevicePrimaryCtxRelease_v2(dev => CUdevice));
        if let Some(context) = cx.forget_context(context) {
            cx.log(&Op::ContextDestroy { context });
        }
        cx.host_memory_goes(0, u64::MAX);
    }
}

pub(crate) unsafe fn cuCtxSetLimit(cx: &mut Cx<'_>, limit: CUlimit, _value: usize) {
    // Measured: a new stack size waits for both blocking and non-blocking streams; other limits are promised nothing.
    const STACK_SIZE: u32 = 0;
    if limit.0 == STACK_SIZE {
        cx.synchronise(SyncScope::Device, StreamId::NONE, EventId::NONE, ContextId::NONE);
    }
}
