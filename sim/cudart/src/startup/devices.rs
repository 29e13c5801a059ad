//! Devices, errors, versions, entry points.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, OnceLock};

use cuda_sys::*;

use crate::thread_state;
use crate::thread_state::{INVALID, Res, put};

fn device_exists(device: c_int) -> Res {
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count))?;
    if (0..count).contains(&device) { Ok(()) } else { Err(cudaErrorInvalidDevice) }
}

/// The name of a status, as a C string that lives for ever.
fn name(error: cudaError) -> Option<&'static CStr> {
    static NAMES: OnceLock<Mutex<HashMap<u32, &'static CStr>>> = OnceLock::new();
    let text = error.name()?;
    let mut names = NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    Some(names.entry(error.0).or_insert_with(|| {
        let text = CString::new(text).unwrap_or_default();
        Box::leak(text.into_boxed_c_str())
    }))
}

/// What a status means: the driver's text, except where only the runtime has the status.
fn describe(error: cudaError) -> &'static CStr {
    let own = match error {
        cudaErrorInvalidConfiguration => Some(c"invalid configuration argument"),
        cudaErrorInvalidPitchValue => Some(c"invalid pitch argument"),
        cudaErrorInvalidSymbol => Some(c"invalid device symbol"),
        cudaErrorInvalidMemcpyDirection => Some(c"invalid copy direction for memcpy"),
        cudaErrorInvalidChannelDescriptor => Some(c"invalid channel descriptor"),
        cudaErrorInsufficientDriver => Some(c"CUDA driver version is insufficient for CUDA runtime version"),
        cudaErrorMissingConfiguration => Some(c"__global__ function call is not configured"),
        cudaErrorInvalidDeviceFunction => Some(c"invalid device function"),
        _ => None,
    };
    if let Some(text) = own {
        return text;
    }
    let mut found: *const c_char = std::ptr::null();
    if cu!(cuGetErrorString(CUresult(error.0), &mut found)).is_ok() && !found.is_null() {
        // SAFETY: the driver's texts end with a zero and live for ever.
        return unsafe { CStr::from_ptr(found) };
    }
    match error {
        // Said without a driver too: this is what its absence is reported with.
        cudaSuccess => c"no error",
        cudaErrorNoDevice => c"no CUDA-capable device is detected",
        cudaErrorInitializationError => c"initialization error",
        _ => name(error).unwrap_or(UNKNOWN),
    }
}

const UNKNOWN: &CStr = c"unrecognized error code";

// SAFETY: the name and signature of the runtime's function.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(error: cudaError) -> *const c_char {
    describe(error).as_ptr()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(error: cudaError) -> *const c_char {
    name(error).unwrap_or(UNKNOWN).as_ptr()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> cudaError {
    thread_state::last_error(true)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> cudaError {
    thread_state::last_error(false)
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
    // SAFETY: the program's name, for which it vouches as it does towards NVIDIA's runtime.
    let (found, why) = unsafe { sim_driver_link::entry_point(name, version, flags) };
    if !status.is_null() {
        put(status, cudaDriverEntryPointQueryResult(why.0))?;
    }
    put(out, found.unwrap_or(std::ptr::null_mut()))
}

rt! {
    quiet fn [cudaRuntimeGetVersion plain](_pt, version: *mut c_int) {
        put(version, crate::version::number())
    }
    quiet fn [cudaDriverGetVersion plain](_pt, version: *mut c_int) {
        if sim_driver_link::exists() { cu!(cuDriverGetVersion(version)) } else { put(version, 0) }
    }
    bare fn [cudaGetDeviceCount plain](_pt, count: *mut c_int) { cu!(cuDeviceGetCount(count)) }
    bare fn [cudaGetDevice plain](_pt, device: *mut c_int) {
        let (mut ctx, mut now) = (CUcontext::NULL, 0);
        cu!(cuCtxGetCurrent(&mut ctx))?;
        if ctx.is_null() || cu!(cuCtxGetDevice(&mut now)).is_err() {
            return put(device, thread_state::device());
        }
        put(device, now)
    }
    bare fn [cudaSetDevice plain](_pt, device: c_int) {
        device_exists(device)?;
        thread_state::set_device(device);
        thread_state::use_primary(device)
    }
    bare fn [cudaInitDevice plain](_pt, device: c_int, device_flags: c_uint, flags: c_uint) {
        device_exists(device)?;
        thread_state::use_primary(device)
    }
    bare fn [cudaSetDeviceFlags plain](_pt, flags: c_uint) {
        if flags & !0xff != 0 {
            return Err(INVALID);
        }
        cu!(cuDevicePrimaryCtxSetFlags_v2(thread_state::device(), flags))
    }
    ctx fn [cudaGetDeviceFlags plain](_pt, flags: *mut c_uint) {
        let mut set = 0;
        cu!(cuCtxGetFlags(&mut set))?;
        // `cudaDeviceMapHost`: host memory can always be mapped.
        put(flags, set | 8)
    }
    bare fn [cudaSetValidDevices plain](_pt, devices: *mut c_int, count: c_int) { Ok(()) }
    bare fn [cudaChooseDevice plain](_pt, device: *mut c_int, prop: *const c_void) { put(device, 0) }
    ctx fn [cudaDeviceSynchronize plain](_pt) { cu!(cuCtxSynchronize @ 12000 ()) }
    bare fn [cudaDeviceReset plain](_pt) { thread_state::reset() }
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
        // Version 11 has no place for the status.
        let status = if crate::version::major() == 11 { std::ptr::null_mut() } else { status };
        entry(name, out, crate::version::number(), flags, pt, status)
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
