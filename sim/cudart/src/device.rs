//! Devices, errors, versions, entry points.

use std::ffi::CStr;

use cuda_sys::*;

use crate::state::{self, INVALID, Res, put};

fn device_exists(device: c_int) -> Res {
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count))?;
    if (0..count).contains(&device) { Ok(()) } else { Err(cudaErrorInvalidDevice) }
}

/// The driver's text for a status, where the runtime has none of its own.
fn text(error: cudaError, name: bool) -> &'static CStr {
    let own: &[(cudaError, &CStr, &CStr)] = &[
        (cudaErrorMemoryAllocation, c"cudaErrorMemoryAllocation", c"out of memory"),
        (cudaErrorInvalidConfiguration, c"cudaErrorInvalidConfiguration", c"invalid configuration argument"),
        (cudaErrorInvalidPitchValue, c"cudaErrorInvalidPitchValue", c"invalid pitch argument"),
        (cudaErrorInvalidSymbol, c"cudaErrorInvalidSymbol", c"invalid device symbol"),
        (cudaErrorInvalidMemcpyDirection, c"cudaErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
        (cudaErrorInvalidChannelDescriptor, c"cudaErrorInvalidChannelDescriptor", c"invalid channel descriptor"),
        (
            cudaErrorInsufficientDriver,
            c"cudaErrorInsufficientDriver",
            c"CUDA driver version is insufficient for CUDA runtime version",
        ),
        (
            cudaErrorMissingConfiguration,
            c"cudaErrorMissingConfiguration",
            c"__global__ function call is not configured",
        ),
        (cudaErrorInvalidDeviceFunction, c"cudaErrorInvalidDeviceFunction", c"invalid device function"),
        (cudaSuccess, c"cudaSuccess", c"no error"),
        (cudaErrorInvalidValue, c"cudaErrorInvalidValue", c"invalid argument"),
        (cudaErrorInitializationError, c"cudaErrorInitializationError", c"initialization error"),
        (cudaErrorNoDevice, c"cudaErrorNoDevice", c"no CUDA-capable device is detected"),
        (cudaErrorInvalidDevice, c"cudaErrorInvalidDevice", c"invalid device ordinal"),
        (cudaErrorInvalidResourceHandle, c"cudaErrorInvalidResourceHandle", c"invalid resource handle"),
        (cudaErrorNotReady, c"cudaErrorNotReady", c"device not ready"),
        (cudaErrorIllegalAddress, c"cudaErrorIllegalAddress", c"an illegal memory access was encountered"),
        (cudaErrorLaunchFailure, c"cudaErrorLaunchFailure", c"unspecified launch failure"),
        (cudaErrorNotSupported, c"cudaErrorNotSupported", c"operation not supported"),
        (cudaErrorNotPermitted, c"cudaErrorNotPermitted", c"operation not permitted"),
        (cudaErrorUnknown, c"cudaErrorUnknown", c"unknown error"),
    ];
    if let Some((_, short, long)) = own.iter().find(|(known, ..)| *known == error) {
        return if name { short } else { long };
    }
    let mut found: *const c_char = std::ptr::null();
    let asked = match name {
        true => cu!(cuGetErrorName(CUresult(error.0), &mut found)),
        false => cu!(cuGetErrorString(CUresult(error.0), &mut found)),
    };
    if asked.is_err() || found.is_null() {
        return c"unrecognized error code";
    }
    // SAFETY: the driver's texts end with a zero and live for ever.
    unsafe { CStr::from_ptr(found) }
}

// SAFETY: the name and signature of the runtime's function.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(error: cudaError) -> *const c_char {
    text(error, false).as_ptr()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(error: cudaError) -> *const c_char {
    text(error, true).as_ptr()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> cudaError {
    state::last_error(true)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> cudaError {
    state::last_error(false)
}

fn entry(
    name: *const c_char,
    out: *mut *mut c_void,
    version: c_int,
    flags: u64,
    pt: bool,
    status: *mut cudaDriverEntryPointQueryResult,
) -> Res {
    // The default meaning of stream 0 is that of the symbol through which we were called.
    let flags = if flags == 0 && pt { 2 } else { flags };
    let (found, why) = crate::driver::entry_point(name, version, flags);
    if !status.is_null() {
        put(status, cudaDriverEntryPointQueryResult(why.0))?;
    }
    put(out, found.unwrap_or(std::ptr::null_mut()))
}

rt! {
    quiet fn [cudaRuntimeGetVersion plain](_pt, version: *mut c_int) {
        put(version, if crate::version::major() >= 13 { 13000 } else { 12090 })
    }
    quiet fn [cudaDriverGetVersion plain](_pt, version: *mut c_int) {
        if crate::driver::exists() { cu!(cuDriverGetVersion(version)) } else { put(version, 0) }
    }
    bare fn [cudaGetDeviceCount plain](_pt, count: *mut c_int) { cu!(cuDeviceGetCount(count)) }
    bare fn [cudaGetDevice plain](_pt, device: *mut c_int) {
        let (mut ctx, mut now) = (CUcontext::NULL, 0);
        cu!(cuCtxGetCurrent(&mut ctx))?;
        if ctx.is_null() || cu!(cuCtxGetDevice(&mut now)).is_err() {
            return put(device, state::device());
        }
        put(device, now)
    }
    bare fn [cudaSetDevice plain](_pt, device: c_int) {
        device_exists(device)?;
        state::set_device(device);
        state::use_primary(device)
    }
    bare fn [cudaInitDevice plain](_pt, device: c_int, device_flags: c_uint, flags: c_uint) {
        device_exists(device)?;
        state::use_primary(device)
    }
    bare fn [cudaSetDeviceFlags plain](_pt, flags: c_uint) {
        cu!(cuDevicePrimaryCtxSetFlags_v2(state::device(), flags))
    }
    ctx fn [cudaGetDeviceFlags plain](_pt, flags: *mut c_uint) { cu!(cuCtxGetFlags(flags)) }
    bare fn [cudaSetValidDevices plain](_pt, devices: *mut c_int, count: c_int) { Ok(()) }
    bare fn [cudaChooseDevice plain](_pt, device: *mut c_int, prop: *const c_void) { put(device, 0) }
    ctx fn [cudaDeviceSynchronize plain](_pt) { cu!(cuCtxSynchronize @ 12000 ()) }
    bare fn [cudaDeviceReset plain](_pt) { cu!(cuDevicePrimaryCtxReset_v2(state::device())) }
    bare fn [cudaDeviceGetAttribute plain](_pt, value: *mut c_int, attr: CUdevice_attribute, device: c_int) {
        cu!(cuDeviceGetAttribute(value, attr, device))
    }
    ctx fn [cudaDeviceGetLimit plain](_pt, value: *mut usize, limit: CUlimit) { cu!(cuCtxGetLimit(value, limit)) }
    ctx fn [cudaDeviceSetLimit plain](_pt, limit: CUlimit, value: usize) { cu!(cuCtxSetLimit(limit, value)) }
    ctx fn [cudaDeviceGetCacheConfig plain](_pt, config: *mut CUfunc_cache) { cu!(cuCtxGetCacheConfig(config)) }
    ctx fn [cudaDeviceSetCacheConfig plain](_pt, config: CUfunc_cache) { cu!(cuCtxSetCacheConfig(config)) }
    ctx fn [cudaDeviceGetSharedMemConfig plain](_pt, config: *mut CUsharedconfig) {
        cu!(cuCtxGetSharedMemConfig(config))
    }
    ctx fn [cudaDeviceSetSharedMemConfig plain](_pt, config: CUsharedconfig) { cu!(cuCtxSetSharedMemConfig(config)) }
    ctx fn [cudaDeviceGetStreamPriorityRange plain](_pt, least: *mut c_int, greatest: *mut c_int) {
        cu!(cuCtxGetStreamPriorityRange(least, greatest))
    }
    bare fn [cudaDeviceCanAccessPeer plain](_pt, can: *mut c_int, device: c_int, peer: c_int) {
        cu!(cuDeviceCanAccessPeer(can, device, peer))
    }
    ctx fn [cudaDeviceEnablePeerAccess plain](_pt, peer: c_int, flags: c_uint) {
        let (mut own, mut other) = (CUcontext::NULL, CUcontext::NULL);
        cu!(cuCtxGetCurrent(&mut own))?;
        device_exists(peer)?;
        cu!(cuDevicePrimaryCtxRetain(&mut other, peer))?;
        cu!(cuCtxSetCurrent(own))?;
        cu!(cuCtxEnablePeerAccess(other, flags))
    }
    ctx fn [cudaDeviceDisablePeerAccess plain](_pt, peer: c_int) {
        let mut other = CUcontext::NULL;
        device_exists(peer)?;
        cu!(cuDevicePrimaryCtxRetain(&mut other, peer))?;
        cu!(cuCtxDisablePeerAccess(other))
    }
    bare fn [cudaDeviceGetP2PAttribute plain](
        _pt, value: *mut c_int, attr: CUdevice_P2PAttribute, src: c_int, dst: c_int
    ) {
        cu!(cuDeviceGetP2PAttribute(value, attr, src, dst))
    }
    bare fn [cudaDeviceGetPCIBusId plain](_pt, id: *mut c_char, len: c_int, device: c_int) {
        cu!(cuDeviceGetPCIBusId(id, len, device))
    }
    bare fn [cudaDeviceGetByPCIBusId plain](_pt, device: *mut c_int, id: *const c_char) {
        cu!(cuDeviceGetByPCIBusId(device, id))
    }
    ctx fn [cudaCtxResetPersistingL2Cache plain](_pt) { cu!(cuCtxResetPersistingL2Cache()) }
    bare fn [cudaGetDriverEntryPoint legacy, cudaGetDriverEntryPoint_ptsz per_thread](
        pt, name: *const c_char, out: *mut *mut c_void, flags: u64, status: *mut cudaDriverEntryPointQueryResult
    ) {
        let version = if crate::version::major() >= 13 { 13000 } else { 12090 };
        entry(name, out, version, flags, pt, status)
    }
    bare fn [cudaGetDriverEntryPointByVersion legacy, cudaGetDriverEntryPointByVersion_ptsz per_thread](
        pt, name: *const c_char, out: *mut *mut c_void, version: c_uint, flags: u64,
        status: *mut cudaDriverEntryPointQueryResult
    ) {
        entry(name, out, c_int::try_from(version).map_err(|_| INVALID)?, flags, pt, status)
    }
    quiet fn [cudaProfilerStart plain](_pt) { Ok(()) }
    quiet fn [cudaProfilerStop plain](_pt) { Ok(()) }
}
