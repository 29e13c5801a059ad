//! `cuInit`, contexts, primary contexts, and limits.

use std::sync::atomic::Ordering;

use cuda_sys::*;

use crate::api::*;
use crate::handles::handle_of;
use crate::objects::context::{CONTEXTS, Context, primary, retain_primary};
use crate::{config, memory};

pub(super) fn device(dev: CUdevice) -> Result<u32, CUresult> {
    let dev = u32::try_from(dev).map_err(|_| CUresult::ERROR_INVALID_DEVICE)?;
    if dev < config::get_or_default().devices { Ok(dev) } else { Err(CUresult::ERROR_INVALID_DEVICE) }
}

fn create(pctx: *mut CUcontext, flags: c_uint, dev: CUdevice) -> Res {
    if pctx.is_null() || flags & !0xff != 0 {
        return Err(INVALID);
    }
    let ctx = Context::new(device(dev)?, false, flags);
    thread::current().contexts.borrow_mut().push(ctx.clone());
    put(pctx, CUcontext::from_bits(handle_of(&ctx)))
}

/// The context meant by a handle, null for the current one.
fn context_or_current(ctx: CUcontext) -> Result<std::sync::Arc<Context>, CUresult> {
    if ctx.is_null() { thread::context() } else { CONTEXTS.find(ctx.bits()).ok_or(CUresult::ERROR_INVALID_CONTEXT) }
}

/// Why there is no such limit: no device has it, or this one does not.
fn no_limit(limit: CUlimit) -> CUresult {
    if limit.0 <= CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH.0 { CUresult::ERROR_UNSUPPORTED_LIMIT } else { INVALID }
}

/// Gives a device's primary context back, which ends it where nobody else holds it.
pub(super) fn release(device: u32) -> Res {
    let mut primary = primary(device)?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if primary.count == 0 {
        return Err(CUresult::ERROR_INVALID_CONTEXT);
    }
    primary.count -= 1;
    if primary.count == 0
        && let Some(ctx) = primary.ctx.take()
    {
        ctx.destroy();
    }
    Ok(())
}

abi! {
    free fn [cuInit plain](_z, flags: c_uint) {
        if thread::is_forked() && INITIALISED.load(Ordering::Acquire) {
            return Err(CUresult::ERROR_NOT_INITIALIZED);
        }
        if flags != 0 {
            return Err(INVALID);
        }
        let config = config::get().map_err(|_| CUresult::ERROR_UNKNOWN)?;
        if config.devices == 0 {
            return Err(CUresult::ERROR_NO_DEVICE);
        }
        if memory::try_get().is_none() {
            crate::status::complain("the system grants no address space (ulimit -v?)");
            return Err(CUresult::ERROR_OUT_OF_MEMORY);
        }
        thread::watch_forks();
        crate::memory::result_digests::start();
        INITIALISED.store(true, Ordering::Release);
        Ok(())
    }
    call fn [cuDevicePrimaryCtxRetain plain](_z, pctx: *mut CUcontext, dev: CUdevice) {
        put(pctx, CUcontext::from_bits(handle_of(&retain_primary(device(dev)?)?)))
    }
    call fn [cuDevicePrimaryCtxRelease plain, cuDevicePrimaryCtxRelease_v2 plain](_z, dev: CUdevice) {
        release(device(dev)?)
    }
    call fn [cuDevicePrimaryCtxReset plain, cuDevicePrimaryCtxReset_v2 plain](_z, dev: CUdevice) {
        let mut primary = primary(device(dev)?)?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(ctx) = primary.ctx.take() {
            // What a kernel broke stays broken as long as the process lives.
            primary.lost |= ctx.check().is_err();
            ctx.destroy();
        }
        Ok(())
    }
    call fn [cuDevicePrimaryCtxSetFlags plain, cuDevicePrimaryCtxSetFlags_v2 plain](_z, dev: CUdevice, flags: c_uint) {
        let mut primary = primary(device(dev)?)?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if flags & !0xff != 0 {
            return Err(INVALID);
        }
        primary.flags = flags;
        if let Some(ctx) = &primary.ctx {
            ctx.flags.store(flags, Ordering::Relaxed);
        }
        Ok(())
    }
    call fn [cuDevicePrimaryCtxGetState plain](_z, dev: CUdevice, flags: *mut c_uint, active: *mut c_int) {
        let primary = primary(device(dev)?)?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        put(flags, primary.flags)?;
        put(active, c_int::from(primary.ctx.is_some()))
    }
    call fn [cuCtxCreate plain, cuCtxCreate_v2 plain](_z, pctx: *mut CUcontext, flags: c_uint, dev: CUdevice) {
        create(pctx, flags, dev)
    }
    call fn [cuCtxCreate_v3 plain](
        _z, pctx: *mut CUcontext, params: *mut CUexecAffinityParam, num_params: c_int, flags: c_uint, dev: CUdevice
    ) {
        if num_params != 0 {
            return Err(CUresult::ERROR_UNSUPPORTED_EXEC_AFFINITY);
        }
        create(pctx, flags, dev)
    }
    call fn [cuCtxCreate_v4 plain](
        _z, pctx: *mut CUcontext, params: *mut CUctxCreateParams, flags: c_uint, dev: CUdevice
    ) {
        if !params.is_null() {
            let params = get(params)?;
            if params.numExecAffinityParams != 0 || !params.cigParams.is_null() {
                return Err(CUresult::ERROR_NOT_SUPPORTED);
            }
        }
        create(pctx, flags, dev)
    }
    call fn [cuCtxDestroy plain, cuCtxDestroy_v2 plain](_z, ctx: CUcontext) {
        if ctx.is_null() {
            return Err(INVALID);
        }
        let ctx = CONTEXTS.find(ctx.bits()).ok_or(CUresult::ERROR_INVALID_CONTEXT)?;
        if ctx.primary {
            return Err(CUresult::ERROR_INVALID_CONTEXT);
        }
        let mut stack = thread::current().contexts.borrow_mut();
        if stack.last().is_some_and(|top| top.id == ctx.id) {
            stack.pop();
        }
        ctx.destroy();
        Ok(())
    }
    call fn [cuCtxSetCurrent plain](_z, ctx: CUcontext) {
        let mut stack = thread::current().contexts.borrow_mut();
        if ctx.is_null() {
            stack.pop();
            return Ok(());
        }
        let ctx = CONTEXTS.find(ctx.bits()).ok_or(CUresult::ERROR_INVALID_CONTEXT)?;
        stack.pop();
        stack.push(ctx);
        Ok(())
    }
    call fn [cuCtxPushCurrent plain, cuCtxPushCurrent_v2 plain](_z, ctx: CUcontext) {
        if ctx.is_null() {
            return Err(INVALID);
        }
        let ctx = CONTEXTS.find(ctx.bits()).ok_or(CUresult::ERROR_INVALID_CONTEXT)?;
        thread::current().contexts.borrow_mut().push(ctx);
        Ok(())
    }
    call fn [cuCtxPopCurrent plain, cuCtxPopCurrent_v2 plain](_z, pctx: *mut CUcontext) {
        let ctx = thread::current().contexts.borrow_mut().pop().ok_or(CUresult::ERROR_INVALID_CONTEXT)?;
        put_if(pctx, CUcontext::from_bits(handle_of(&ctx)));
        Ok(())
    }
    call fn [cuCtxGetCurrent plain](_z, pctx: *mut CUcontext) {
        let stack = thread::current().contexts.borrow();
        put(pctx, stack.last().map_or(CUcontext::NULL, |ctx| CUcontext::from_bits(handle_of(ctx))))
    }
    call fn [cuCtxGetDevice plain](_z, dev: *mut CUdevice) {
        put(dev, thread::context()?.device as CUdevice)
    }
    call fn [cuCtxGetDevice_v2 plain](_z, dev: *mut CUdevice, ctx: CUcontext) {
        put(dev, context_or_current(ctx)?.device as CUdevice)
    }
    call fn [cuCtxGetId plain](_z, ctx: CUcontext, id: *mut u64) {
        put(id, context_or_current(ctx)?.id.0)
    }
    call fn [cuCtxGetFlags plain](_z, flags: *mut c_uint) {
        put(flags, thread::context()?.flags.load(Ordering::Relaxed))
    }
    call fn [cuCtxSetFlags plain](_z, flags: c_uint) {
        thread::context()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }
    call fn [cuCtxGetApiVersion plain](_z, ctx: CUcontext, version: *mut c_uint) {
        context_or_current(ctx)?;
        put(version, 3020)
    }
    call fn [cuCtxGetStreamPriorityRange plain](_z, least: *mut c_int, greatest: *mut c_int) {
        thread::context()?;
        put_if(least, 0);
        put_if(greatest, -5);
        Ok(())
    }
    call fn [cuCtxGetCacheConfig plain](_z, config: *mut CUfunc_cache) {
        put(config, CUfunc_cache(thread::context()?.cache_config.load(Ordering::Relaxed)))
    }
    call fn [cuCtxSetCacheConfig plain](_z, config: CUfunc_cache) {
        thread::context()?.cache_config.store(config.0, Ordering::Relaxed);
        Ok(())
    }
    call fn [cuCtxGetSharedMemConfig plain](_z, config: *mut CUsharedconfig) {
        put(config, CUsharedconfig(thread::context()?.shared_config.load(Ordering::Relaxed)))
    }
    call fn [cuCtxSetSharedMemConfig plain](_z, config: CUsharedconfig) {
        thread::context()?.shared_config.store(config.0, Ordering::Relaxed);
        Ok(())
    }
    call fn [cuCtxResetPersistingL2Cache plain](_z) {
        thread::context().map(|_| ())
    }
    call fn [cuCtxGetLimit plain](_z, value: *mut usize, limit: CUlimit) {
        let limited = thread::context()?.limit(limit);
        put(value, limited.ok_or_else(|| no_limit(limit))? as usize)
    }
    uncaptured fn [cuCtxSetLimit plain](_z, limit: CUlimit, value: usize) {
        let ctx = thread::context()?;
        ctx.limit(limit).ok_or_else(|| no_limit(limit))?;
        // As much stack as a thread can have.
        if limit == CU_LIMIT_STACK_SIZE && value > 512 << 10 {
            return Err(INVALID);
        }
        if limit == CU_LIMIT_STACK_SIZE {
            // Measured: changing the stack size waits for all streams.
            ctx.synchronize()?;
        }
        ctx.limits[limit.0 as usize].store(value as u64, Ordering::Relaxed);
        Ok(())
    }
    uncaptured fn [cuCtxSynchronize plain](_z) {
        capture::refuse_wait_for_all()?;
        thread::context()?.synchronize()?;
        memory::get().after_sync();
        Ok(())
    }
    uncaptured fn [cuCtxSynchronize_v2 plain](_z, ctx: CUcontext) {
        capture::refuse_wait_for_all()?;
        context_or_current(ctx)?.synchronize()?;
        memory::get().after_sync();
        Ok(())
    }
    call fn [cuCtxEnablePeerAccess plain](_z, peer: CUcontext, flags: c_uint) {
        let ctx = thread::context()?;
        let peer = CONTEXTS.find(peer.bits()).ok_or(CUresult::ERROR_INVALID_CONTEXT)?;
        if flags != 0 {
            return Err(INVALID);
        }
        if peer.device == ctx.device {
            return Err(CUresult::ERROR_PEER_ACCESS_UNSUPPORTED);
        }
        // One address space for all devices: every device reaches every byte anyway.
        let before = ctx.peers.fetch_or(1 << peer.device, Ordering::Relaxed);
        if before >> peer.device & 1 == 1 { Err(CUresult::ERROR_PEER_ACCESS_ALREADY_ENABLED) } else { Ok(()) }
    }
    call fn [cuCtxDisablePeerAccess plain](_z, peer: CUcontext) {
        let ctx = thread::context()?;
        let peer = CONTEXTS.find(peer.bits()).ok_or(CUresult::ERROR_INVALID_CONTEXT)?;
        let before = ctx.peers.fetch_and(!(1 << peer.device), Ordering::Relaxed);
        if before >> peer.device & 1 == 0 { Err(CUresult::ERROR_PEER_ACCESS_NOT_ENABLED) } else { Ok(()) }
    }
    call fn [cuProfilerStart plain](_z) { Ok(()) }
    call fn [cuProfilerStop plain](_z) { Ok(()) }
}
