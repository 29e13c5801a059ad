//! Plain, managed and host memory, sets, and attributes of addresses.

use cuda_sys::*;

use crate::thread_state::{INVALID, Res, put};

fn set(pt: bool, at: u64, pitch: usize, value: c_int, width: usize, height: usize, stream: Option<CUstream>) -> Res {
    let value = value as u8;
    if width == 0 || height == 0 {
        return Ok(());
    }
    match (stream, height) {
        (None, 1) => cu!(cuMemsetD8_v2, pt; (at, value, width)),
        (None, _) => cu!(cuMemsetD2D8_v2, pt; (at, pitch, value, width, height)),
        (Some(stream), 1) => cu!(cuMemsetD8Async, pt; (at, value, width, stream)),
        (Some(stream), _) => cu!(cuMemsetD2D8Async, pt; (at, pitch, value, width, height, stream)),
    }
}

fn set_3d(pt: bool, ptr: cudaPitchedPtr, value: c_int, extent: cudaExtent, stream: Option<CUstream>) -> Res {
    for z in 0..extent.depth {
        let layer = ptr.ptr as u64 + (z * ptr.pitch * ptr.ysize) as u64;
        // The plain form for one row would ignore the pitch, which does not matter then.
        set(pt, layer, ptr.pitch, value, extent.width, extent.height, stream)?;
    }
    Ok(())
}

/// Memory rows so long that every one begins aligned.
fn pitched(width: usize, rows: usize) -> Result<(u64, usize), cudaError> {
    let (mut at, mut pitch) = (0, 0);
    cu!(cuMemAllocPitch_v2(&mut at, &mut pitch, width, rows, 4))?;
    Ok((at, pitch))
}

rt! {
    ctx fn [cudaIpcGetMemHandle plain](_pt, handle: *mut CUipcMemHandle, at: *mut c_void) {
        cu!(cuIpcGetMemHandle(handle, at as u64))
    }
    ctx fn [cudaIpcOpenMemHandle plain](_pt, at: *mut *mut c_void, handle: CUipcMemHandle, flags: c_uint) {
        cu!(cuIpcOpenMemHandle_v2(at.cast(), handle, flags))
    }
    ctx fn [cudaIpcCloseMemHandle plain](_pt, at: *mut c_void) { cu!(cuIpcCloseMemHandle(at as u64)) }
    ctx fn [cudaIpcGetEventHandle plain](_pt, handle: *mut CUipcEventHandle, event: CUevent) {
        cu!(cuIpcGetEventHandle(handle, event))
    }
    ctx fn [cudaIpcOpenEventHandle plain](_pt, event: *mut CUevent, handle: CUipcEventHandle) {
        cu!(cuIpcOpenEventHandle(event, handle))
    }
    ctx fn [cudaMalloc plain](_pt, out: *mut *mut c_void, size: usize) {
        if size == 0 {
            return put(out, std::ptr::null_mut());
        }
        let mut at = 0;
        cu!(cuMemAlloc_v2(&mut at, size))?;
        put(out, at as *mut c_void)
    }
    ctx fn [cudaFree plain](_pt, at: *mut c_void) {
        if at.is_null() {
            // Nothing to do, but a broken context says so here too.
            let mut device = 0;
            return cu!(cuCtxGetDevice @ 12000 (&mut device));
        }
        cu!(cuMemFree_v2(at as u64))
    }
    ctx fn [cudaMallocHost plain](_pt, out: *mut *mut c_void, size: usize) {
        if size == 0 {
            return put(out, std::ptr::null_mut());
        }
        cu!(cuMemHostAlloc(out, size, 0))
    }
    ctx fn [cudaHostAlloc plain](_pt, out: *mut *mut c_void, size: usize, flags: c_uint) {
        if size == 0 {
            return put(out, std::ptr::null_mut());
        }
        cu!(cuMemHostAlloc(out, size, flags))
    }
    ctx fn [cudaFreeHost plain](_pt, at: *mut c_void) {
        if at.is_null() { Ok(()) } else { cu!(cuMemFreeHost(at)) }
    }
    ctx fn [cudaHostRegister plain](_pt, at: *mut c_void, size: usize, flags: c_uint) {
        cu!(cuMemHostRegister_v2(at, size, flags))
    }
    ctx fn [cudaHostUnregister plain](_pt, at: *mut c_void) { cu!(cuMemHostUnregister(at)) }
    ctx fn [cudaHostGetDevicePointer plain](_pt, out: *mut *mut c_void, at: *mut c_void, flags: c_uint) {
        cu!(cuMemHostGetDevicePointer_v2(out.cast(), at, flags))
    }
    ctx fn [cudaHostGetFlags plain](_pt, flags: *mut c_uint, at: *mut c_void) { cu!(cuMemHostGetFlags(flags, at)) }
    ctx fn [cudaMallocManaged plain](_pt, out: *mut *mut c_void, size: usize, flags: c_uint) {
        if size == 0 {
            return put(out, std::ptr::null_mut());
        }
        cu!(cuMemAllocManaged(out.cast(), size, flags))
    }
    ctx fn [cudaMallocPitch plain](_pt, out: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) {
        if width == 0 || height == 0 {
            put(pitch, 0)?;
            return put(out, std::ptr::null_mut());
        }
        let (at, row) = pitched(width, height)?;
        put(pitch, row)?;
        put(out, at as *mut c_void)
    }
    ctx fn [cudaMalloc3D plain](_pt, out: *mut cudaPitchedPtr, extent: cudaExtent) {
        let (at, pitch) = pitched(extent.width, extent.height.checked_mul(extent.depth).ok_or(INVALID)?)?;
        put(out, cudaPitchedPtr { ptr: at as *mut c_void, pitch, xsize: extent.width, ysize: extent.height })
    }
    ctx fn [cudaMemGetInfo plain](_pt, free: *mut usize, total: *mut usize) { cu!(cuMemGetInfo_v2(free, total)) }
    ctx fn [cudaMemset legacy, cudaMemset_ptds per_thread](pt, at: *mut c_void, value: c_int, size: usize) {
        set(pt, at as u64, 0, value, size, 1, None)
    }
    ctx fn [cudaMemsetAsync legacy, cudaMemsetAsync_ptsz per_thread](
        pt, at: *mut c_void, value: c_int, size: usize, stream: CUstream
    ) {
        set(pt, at as u64, 0, value, size, 1, Some(stream))
    }
    ctx fn [cudaMemset2D legacy, cudaMemset2D_ptds per_thread](
        pt, at: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize
    ) {
        set(pt, at as u64, pitch, value, width, height, None)
    }
    ctx fn [cudaMemset2DAsync legacy, cudaMemset2DAsync_ptsz per_thread](
        pt, at: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: CUstream
    ) {
        set(pt, at as u64, pitch, value, width, height, Some(stream))
    }
    ctx fn [cudaMemset3D legacy, cudaMemset3D_ptds per_thread](
        pt, at: cudaPitchedPtr, value: c_int, extent: cudaExtent
    ) {
        set_3d(pt, at, value, extent, None)
    }
    ctx fn [cudaMemset3DAsync legacy, cudaMemset3DAsync_ptsz per_thread](
        pt, at: cudaPitchedPtr, value: c_int, extent: cudaExtent, stream: CUstream
    ) {
        set_3d(pt, at, value, extent, Some(stream))
    }
    ctx fn [cudaPointerGetAttributes plain](_pt, out: *mut cudaPointerAttributes, at: *const c_void) {
        let mut kind = CUmemorytype(0);
        let (mut device, mut on_device, mut on_host, mut managed) = (-2 as c_int, 0u64, 0u64, 0 as c_int);
        let mut attributes = [
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
            CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        ];
        let mut values: [*mut c_void; 5] = [
            (&raw mut kind).cast(), (&raw mut device).cast(), (&raw mut on_device).cast(), (&raw mut on_host).cast(),
            (&raw mut managed).cast(),
        ];
        cu!(cuPointerGetAttributes(5, attributes.as_mut_ptr(), values.as_mut_ptr(), at as u64))?;
        let kind = match kind {
            _ if managed != 0 => cudaMemoryTypeManaged,
            CU_MEMORYTYPE_HOST => cudaMemoryTypeHost,
            CU_MEMORYTYPE_DEVICE => cudaMemoryTypeDevice,
            _ => cudaMemoryTypeUnregistered,
        };
        let known = kind != cudaMemoryTypeUnregistered;
        let full = cudaPointerAttributes {
            type_: kind,
            device: if known { device } else { -2 },
            devicePointer: on_device as *mut c_void,
            hostPointer: if known { on_host as *mut c_void } else { at.cast_mut() },
            ..cudaPointerAttributes::zeroed()
        };
        if crate::version::major() >= 13 {
            return put(out, full);
        }
        // Version 12 ends behind these fields.
        put(out.cast::<cudaPointerAttributes_v12>(), cudaPointerAttributes_v12 {
            type_: full.type_, device: full.device, devicePointer: full.devicePointer, hostPointer: full.hostPointer,
        })
    }
    // Version 12 has (pointer, size, device, stream): the device is where the location's first half
    // is, the stream where the flags are.
    ctx fn [cudaMemPrefetchAsync legacy, cudaMemPrefetchAsync_ptsz per_thread](
        pt, at: *const c_void, size: usize, location: CUmemLocation, flags: usize, stream: CUstream
    ) {
        if crate::version::major() >= 13 {
            return cu!(cuMemPrefetchAsync_v2, pt; (at as u64, size, location, flags as c_uint, stream));
        }
        let location = location_of(location.type_.0 as c_int);
        cu!(cuMemPrefetchAsync_v2, pt; (at as u64, size, location, 0, CUstream::from_bits(flags)))
    }
    ctx fn [cudaMemPrefetchBatchAsync legacy, cudaMemPrefetchBatchAsync_ptsz per_thread](
        pt, ranges: *mut u64, sizes: *mut usize, count: usize, locations: *mut CUmemLocation, firsts: *mut usize,
        num_locations: usize, flags: u64, stream: CUstream
    ) {
        cu!(cuMemPrefetchBatchAsync, pt; (ranges, sizes, count, locations, firsts, num_locations, flags, stream))
    }
    ctx fn [cudaMemDiscardBatchAsync legacy, cudaMemDiscardBatchAsync_ptsz per_thread](
        pt, ranges: *mut u64, sizes: *mut usize, count: usize, flags: u64, stream: CUstream
    ) {
        cu!(cuMemDiscardBatchAsync, pt; (ranges, sizes, count, flags, stream))
    }
    ctx fn [cudaMemDiscardAndPrefetchBatchAsync legacy, cudaMemDiscardAndPrefetchBatchAsync_ptsz per_thread](
        pt, ranges: *mut u64, sizes: *mut usize, count: usize, locations: *mut CUmemLocation, firsts: *mut usize,
        num_locations: usize, flags: u64, stream: CUstream
    ) {
        cu!(cuMemDiscardAndPrefetchBatchAsync, pt; (ranges, sizes, count, locations, firsts, num_locations, flags, stream))
    }
    ctx fn [cudaMemAdvise plain](_pt, at: *const c_void, size: usize, advice: CUmem_advise, location: CUmemLocation) {
        let old = crate::version::major() < 13;
        let location = if old { location_of(location.type_.0 as c_int) } else { location };
        cu!(cuMemAdvise_v2(at as u64, size, advice, location))
    }
}

/// The location that a device number meant in version 12; -1 was the host.
fn location_of(device: c_int) -> CUmemLocation {
    let type_ = if device < 0 { CU_MEM_LOCATION_TYPE_HOST } else { CU_MEM_LOCATION_TYPE_DEVICE };
    CUmemLocation { type_, id: device.max(0) }
}
