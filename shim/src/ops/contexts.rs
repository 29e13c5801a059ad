//! Contexts: made, shared, reset, destroyed; green contexts; limits that synchronise.
//!
//! Owns the ops that say which contexts there are. What a wait for a context covers is decided by
//! `order`.

use cuda_sys::*;
use trace::{ContextId, EventId, Op, StreamId, SyncScope};

use crate::ids::contexts::{context_id, context_on, current_context, forget_context, same_context};
use crate::observe::Cx;
use crate::observe::host_watch::host_memory_goes;
use crate::ops::modules::forget_kernels;
use crate::ops::streams::synchronise;
use crate::real::driver::real;

pub(crate) unsafe fn cuDevicePrimaryCtxRetain(cx: &mut Cx<'_>, ctx: *mut CUcontext, dev: CUdevice) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *ctx };
    context_on(cx.without_stack(), handle, Some(dev));
}

fn context_made(cx: &mut Cx<'_>, handle: CUcontext, flags: c_uint, device: CUdevice) {
    let context = context_on(cx, handle, Some(device));
    if flags & CU_CTX_SYNC_MEMOPS != 0 {
        cx.log(&Op::ContextSyncMemops { context, on: true });
    }
}

/// The primary context of a device, if there is one now.
fn primary_context(device: CUdevice) -> Option<CUcontext> {
    let (mut flags, mut active) = (0_u32, 0_i32);
    let asked = real!(cuDevicePrimaryCtxGetState(
        device => CUdevice, &raw mut flags => *mut c_uint, &raw mut active => *mut c_int
    ));
    if asked != CUresult::SUCCESS || active == 0 {
        return None;
    }
    let mut context = CUcontext::NULL;
    // It is asked for by retaining it, and released again: it has another holder.
    let retained = real!(cuDevicePrimaryCtxRetain(&raw mut context => *mut CUcontext, device => CUdevice));
    if retained != CUresult::SUCCESS {
        return None;
    }
    let _ = real!(cuDevicePrimaryCtxRelease_v2(device => CUdevice));
    Some(context)
}

pub(crate) unsafe fn cuCtxSetFlags(cx: &mut Cx<'_>, flags: c_uint) {
    let current = current_context();
    let context = context_id(cx, current);
    cx.log(&Op::ContextSyncMemops { context, on: flags & CU_CTX_SYNC_MEMOPS != 0 });
}

pub(crate) unsafe fn cuDevicePrimaryCtxSetFlags_v2(cx: &mut Cx<'_>, dev: CUdevice, flags: c_uint) {
    // One that is not active yet is looked at when it is first seen.
    if let Some(handle) = primary_context(dev) {
        let context = context_on(cx, handle, Some(dev));
        cx.log(&Op::ContextSyncMemops { context, on: flags & CU_CTX_SYNC_MEMOPS != 0 });
    }
}

// A green context is a context of its own whose work a wait for the primary context waits for too
// (cuda.h, cuCtxSynchronize).

pub(crate) unsafe fn cuGreenCtxCreate(
    cx: &mut Cx<'_>,
    ctx: *mut CUgreenCtx,
    _desc: CUdevResourceDesc,
    dev: CUdevice,
    _flags: c_uint,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = CUcontext(unsafe { *ctx }.0.cast());
    let context = context_on(cx, handle, Some(dev));
    if let Some(primary) = primary_context(dev) {
        let whole = context_on(cx, primary, Some(dev));
        cx.log(&Op::ContextPart { context, whole });
    }
}

pub(crate) unsafe fn cuCtxFromGreenCtx(cx: &mut Cx<'_>, context: *mut CUcontext, ctx: CUgreenCtx) {
    // SAFETY: the call succeeded, so it has written the handle.
    let other = unsafe { *context };
    same_context(cx, CUcontext(ctx.0.cast()), other);
}

pub(crate) unsafe fn cuGreenCtxDestroy(cx: &mut Cx<'_>, ctx: CUgreenCtx) {
    // What it promises of pending work is not said; its memory belongs to the primary context and
    // stays. Counted as a wait.
    if let Some(context) = forget_context(cx, CUcontext(ctx.0.cast())) {
        let Some(core) = cx.core() else { return };
        let sync = trace::SyncId(core.handles.fresh());
        let (scope, stream, event) = (SyncScope::Context, StreamId::NONE, EventId::NONE);
        cx.log(&Op::SyncBegin { sync, scope, stream, event, context });
        cx.log(&Op::SyncEnd { sync });
    }
}

pub(crate) unsafe fn cuCtxCreate_v2(cx: &mut Cx<'_>, ctx: *mut CUcontext, flags: c_uint, dev: CUdevice) {
    // SAFETY: the call succeeded, so it has written the handle.
    context_made(cx, unsafe { *ctx }, flags, dev);
}

pub(crate) unsafe fn cuCtxCreate_v3(
    cx: &mut Cx<'_>,
    ctx: *mut CUcontext,
    _params_array: *mut CUexecAffinityParam,
    _num_params: c_int,
    flags: c_uint,
    dev: CUdevice,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    context_made(cx, unsafe { *ctx }, flags, dev);
}

pub(crate) unsafe fn cuCtxCreate_v4(
    cx: &mut Cx<'_>,
    ctx: *mut CUcontext,
    _ctx_create_params: *mut CUctxCreateParams,
    flags: c_uint,
    dev: CUdevice,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    context_made(cx, unsafe { *ctx }, flags, dev);
}

pub(crate) unsafe fn cuCtxDestroy_v2(cx: &mut Cx<'_>, ctx: CUcontext) {
    if let Some(context) = forget_context(cx, ctx) {
        cx.log(&Op::ContextDestroy { context });
    }
    if cx.is_after() {
        return forget_kernels(cx);
    }
    // Pinned memory goes with the context that it was made in.
    host_memory_goes(cx, 0, u64::MAX);
}

pub(crate) unsafe fn cuDevicePrimaryCtxRelease_v2(cx: &mut Cx<'_>, _dev: CUdevice) {
    host_memory_goes(cx, 0, u64::MAX);
}

pub(crate) unsafe fn cuDevicePrimaryCtxReset_v2(cx: &mut Cx<'_>, dev: CUdevice) {
    // After the call the driver would make a new one, if it were asked.
    let handle = if cx.is_before() { primary_context(dev) } else { Some(CUcontext::NULL) };
    let Some(handle) = handle else { return };
    if let Some(context) = forget_context(cx, handle) {
        cx.log(&Op::ContextDestroy { context });
        forget_kernels(cx);
    } else if cx.token != 0 {
        host_memory_goes(cx, 0, u64::MAX);
    }
}

pub(crate) unsafe fn cuCtxSetLimit(cx: &mut Cx<'_>, limit: CUlimit, _value: usize) {
    // Measured: a new stack size waits for both blocking and non-blocking streams; other limits are
    // promised nothing.
    if limit == CU_LIMIT_STACK_SIZE {
        synchronise(cx, SyncScope::Device, StreamId::NONE, EventId::NONE, ContextId::NONE);
    }
}
