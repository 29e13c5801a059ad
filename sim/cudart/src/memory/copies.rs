//! Copies of every shape.

use cuda_sys::*;

use crate::memory::arrays_textures::texel;
use crate::thread_state::{INVALID, Res, get};

/// Which driver function a copy of a range of bytes is, as NVIDIA's runtime picks it.
pub(crate) fn linear(pt: bool, dst: u64, src: u64, n: usize, kind: cudaMemcpyKind, stream: Option<CUstream>) -> Res {
    if n == 0 {
        return Ok(());
    }
    let (to_host, from_host) = (dst as *mut c_void, src as *const c_void);
    match (kind, stream) {
        (cudaMemcpyHostToDevice, None) => cu!(cuMemcpyHtoD_v2, pt; (dst, from_host, n)),
        (cudaMemcpyHostToDevice, Some(s)) => cu!(cuMemcpyHtoDAsync_v2, pt; (dst, from_host, n, s)),
        (cudaMemcpyDeviceToHost, None) => cu!(cuMemcpyDtoH_v2, pt; (to_host, src, n)),
        (cudaMemcpyDeviceToHost, Some(s)) => cu!(cuMemcpyDtoHAsync_v2, pt; (to_host, src, n, s)),
        (cudaMemcpyDeviceToDevice, None) => cu!(cuMemcpyDtoD_v2, pt; (dst, src, n)),
        (cudaMemcpyDeviceToDevice, Some(s)) => cu!(cuMemcpyDtoDAsync_v2, pt; (dst, src, n, s)),
        (cudaMemcpyHostToHost | cudaMemcpyDefault, None) => cu!(cuMemcpy, pt; (dst, src, n)),
        (cudaMemcpyHostToHost | cudaMemcpyDefault, Some(s)) => cu!(cuMemcpyAsync, pt; (dst, src, n, s)),
        _ => Err(cudaErrorInvalidMemcpyDirection),
    }
}

/// Memory types of source and destination.
fn types(kind: cudaMemcpyKind) -> Result<(CUmemorytype, CUmemorytype), cudaError> {
    Ok(match kind {
        cudaMemcpyHostToHost => (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST),
        cudaMemcpyHostToDevice => (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE),
        cudaMemcpyDeviceToHost => (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST),
        cudaMemcpyDeviceToDevice => (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE),
        cudaMemcpyDefault => (CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED),
        _ => return Err(cudaErrorInvalidMemcpyDirection),
    })
}

#[allow(clippy::too_many_arguments)]
fn plane(
    pt: bool,
    dst: u64,
    dst_pitch: usize,
    src: u64,
    src_pitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: Option<CUstream>,
) -> Res {
    if width == 0 || height == 0 {
        return Ok(());
    }
    if width > dst_pitch || width > src_pitch {
        return Err(cudaErrorInvalidPitchValue);
    }
    let (from, to) = types(kind)?;
    run_2d(
        pt,
        CUDA_MEMCPY2D {
            srcMemoryType: from,
            srcHost: src as *const c_void,
            srcDevice: src,
            srcPitch: src_pitch,
            dstMemoryType: to,
            dstHost: dst as *mut c_void,
            dstDevice: dst,
            dstPitch: dst_pitch,
            WidthInBytes: width,
            Height: height,
            ..CUDA_MEMCPY2D::zeroed()
        },
        stream,
    )
}

fn run_2d(pt: bool, copy: CUDA_MEMCPY2D, stream: Option<CUstream>) -> Res {
    match stream {
        None => cu!(cuMemcpy2DUnaligned_v2, pt; (&copy)),
        Some(stream) => cu!(cuMemcpy2DAsync_v2, pt; (&copy, stream)),
    }
}

/// The driver's description of a three-dimensional copy. Extents and positions count texels of an
/// array that takes part, bytes otherwise.
pub(crate) fn describe(p: &cudaMemcpy3DParms) -> Result<CUDA_MEMCPY3D, cudaError> {
    let (mut from, mut to) = types(p.kind)?;
    let unit = match (p.srcArray.is_null(), p.dstArray.is_null()) {
        (true, true) => 1,
        (false, _) => texel(p.srcArray)?,
        (true, false) => texel(p.dstArray)?,
    };
    if !p.srcArray.is_null() {
        from = CU_MEMORYTYPE_ARRAY;
    }
    if !p.dstArray.is_null() {
        to = CU_MEMORYTYPE_ARRAY;
    }
    let position = |array: CUarray, x: usize| if array.is_null() { x } else { x * unit };
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: position(p.srcArray, p.srcPos.x),
        srcY: p.srcPos.y,
        srcZ: p.srcPos.z,
        srcMemoryType: from,
        srcHost: p.srcPtr.ptr,
        srcDevice: p.srcPtr.ptr as u64,
        srcArray: p.srcArray,
        srcPitch: p.srcPtr.pitch,
        srcHeight: p.srcPtr.ysize,
        dstXInBytes: position(p.dstArray, p.dstPos.x),
        dstY: p.dstPos.y,
        dstZ: p.dstPos.z,
        dstMemoryType: to,
        dstHost: p.dstPtr.ptr,
        dstDevice: p.dstPtr.ptr as u64,
        dstArray: p.dstArray,
        dstPitch: p.dstPtr.pitch,
        dstHeight: p.dstPtr.ysize,
        WidthInBytes: p.extent.width * unit,
        Height: p.extent.height,
        Depth: p.extent.depth,
        ..CUDA_MEMCPY3D::zeroed()
    })
}

/// The description of a copy of a range of bytes, for graph nodes.
pub(crate) fn describe_linear(dst: u64, src: u64, n: usize, kind: cudaMemcpyKind) -> Result<CUDA_MEMCPY3D, cudaError> {
    let (from, to) = types(kind)?;
    Ok(CUDA_MEMCPY3D {
        srcMemoryType: from,
        srcHost: src as *const c_void,
        srcDevice: src,
        srcPitch: n,
        srcHeight: 1,
        dstMemoryType: to,
        dstHost: dst as *mut c_void,
        dstDevice: dst,
        dstPitch: n,
        dstHeight: 1,
        WidthInBytes: n,
        Height: 1,
        Depth: 1,
        ..CUDA_MEMCPY3D::zeroed()
    })
}

#[allow(clippy::too_many_arguments)]
fn to_array(
    pt: bool,
    array: CUarray,
    x: usize,
    y: usize,
    src: u64,
    pitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: Option<CUstream>,
) -> Res {
    let (from, _) = types(kind)?;
    run_2d(
        pt,
        CUDA_MEMCPY2D {
            srcMemoryType: from,
            srcHost: src as *const c_void,
            srcDevice: src,
            srcPitch: pitch,
            dstXInBytes: x,
            dstY: y,
            dstMemoryType: CU_MEMORYTYPE_ARRAY,
            dstArray: array,
            WidthInBytes: width,
            Height: height,
            ..CUDA_MEMCPY2D::zeroed()
        },
        stream,
    )
}

#[allow(clippy::too_many_arguments)]
fn from_array(
    pt: bool,
    dst: u64,
    pitch: usize,
    array: CUarray,
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: Option<CUstream>,
) -> Res {
    let (_, to) = types(kind)?;
    run_2d(
        pt,
        CUDA_MEMCPY2D {
            srcXInBytes: x,
            srcY: y,
            srcMemoryType: CU_MEMORYTYPE_ARRAY,
            srcArray: array,
            dstMemoryType: to,
            dstHost: dst as *mut c_void,
            dstDevice: dst,
            dstPitch: pitch,
            WidthInBytes: width,
            Height: height,
            ..CUDA_MEMCPY2D::zeroed()
        },
        stream,
    )
}

rt! {
    ctx fn [cudaMemcpy legacy, cudaMemcpy_ptds per_thread](
        pt, dst: *mut c_void, src: *const c_void, n: usize, kind: cudaMemcpyKind
    ) {
        linear(pt, dst as u64, src as u64, n, kind, None)
    }
    ctx fn [cudaMemcpyAsync legacy, cudaMemcpyAsync_ptsz per_thread](
        pt, dst: *mut c_void, src: *const c_void, n: usize, kind: cudaMemcpyKind, stream: CUstream
    ) {
        linear(pt, dst as u64, src as u64, n, kind, Some(stream))
    }
    ctx fn [cudaMemcpyPeer plain](
        pt, dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, n: usize
    ) {
        linear(pt, dst as u64, src as u64, n, cudaMemcpyDeviceToDevice, None)
    }
    ctx fn [cudaMemcpyPeerAsync plain](
        pt, dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, n: usize, stream: CUstream
    ) {
        linear(pt, dst as u64, src as u64, n, cudaMemcpyDeviceToDevice, Some(stream))
    }
    ctx fn [cudaMemcpy2D legacy, cudaMemcpy2D_ptds per_thread](
        pt, dst: *mut c_void, dst_pitch: usize, src: *const c_void, src_pitch: usize, width: usize, height: usize,
        kind: cudaMemcpyKind
    ) {
        plane(pt, dst as u64, dst_pitch, src as u64, src_pitch, width, height, kind, None)
    }
    ctx fn [cudaMemcpy2DAsync legacy, cudaMemcpy2DAsync_ptsz per_thread](
        pt, dst: *mut c_void, dst_pitch: usize, src: *const c_void, src_pitch: usize, width: usize, height: usize,
        kind: cudaMemcpyKind, stream: CUstream
    ) {
        plane(pt, dst as u64, dst_pitch, src as u64, src_pitch, width, height, kind, Some(stream))
    }
    ctx fn [cudaMemcpy3D legacy, cudaMemcpy3D_ptds per_thread](pt, p: *const cudaMemcpy3DParms) {
        cu!(cuMemcpy3D_v2, pt; (&describe(&get(p)?)?))
    }
    ctx fn [cudaMemcpy3DAsync legacy, cudaMemcpy3DAsync_ptsz per_thread](
        pt, p: *const cudaMemcpy3DParms, stream: CUstream
    ) {
        cu!(cuMemcpy3DAsync_v2, pt; (&describe(&get(p)?)?, stream))
    }
    ctx fn [cudaMemcpy2DToArray legacy, cudaMemcpy2DToArray_ptds per_thread](
        pt, array: CUarray, x: usize, y: usize, src: *const c_void, pitch: usize, width: usize, height: usize,
        kind: cudaMemcpyKind
    ) {
        to_array(pt, array, x, y, src as u64, pitch, width, height, kind, None)
    }
    ctx fn [cudaMemcpy2DToArrayAsync legacy, cudaMemcpy2DToArrayAsync_ptsz per_thread](
        pt, array: CUarray, x: usize, y: usize, src: *const c_void, pitch: usize, width: usize, height: usize,
        kind: cudaMemcpyKind, stream: CUstream
    ) {
        to_array(pt, array, x, y, src as u64, pitch, width, height, kind, Some(stream))
    }
    ctx fn [cudaMemcpyToArray legacy, cudaMemcpyToArray_ptds per_thread](
        pt, array: CUarray, x: usize, y: usize, src: *const c_void, n: usize, kind: cudaMemcpyKind
    ) {
        to_array(pt, array, x, y, src as u64, n, n, 1, kind, None)
    }
    ctx fn [cudaMemcpy2DFromArray legacy, cudaMemcpy2DFromArray_ptds per_thread](
        pt, dst: *mut c_void, pitch: usize, array: CUarray, x: usize, y: usize, width: usize, height: usize,
        kind: cudaMemcpyKind
    ) {
        from_array(pt, dst as u64, pitch, array, x, y, width, height, kind, None)
    }
    ctx fn [cudaMemcpy2DFromArrayAsync legacy, cudaMemcpy2DFromArrayAsync_ptsz per_thread](
        pt, dst: *mut c_void, pitch: usize, array: CUarray, x: usize, y: usize, width: usize, height: usize,
        kind: cudaMemcpyKind, stream: CUstream
    ) {
        from_array(pt, dst as u64, pitch, array, x, y, width, height, kind, Some(stream))
    }
    ctx fn [cudaMemcpyFromArray legacy, cudaMemcpyFromArray_ptds per_thread](
        pt, dst: *mut c_void, array: CUarray, x: usize, y: usize, n: usize, kind: cudaMemcpyKind
    ) {
        from_array(pt, dst as u64, n, array, x, y, n, 1, kind, None)
    }
    // Version 12 has one argument more, the place for the index of a copy that was refused.
    ctx fn [cudaMemcpyBatchAsync legacy, cudaMemcpyBatchAsync_ptsz per_thread](
        pt, dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize, attrs: *mut cudaMemcpyAttributes,
        firsts: *mut usize, num_attrs: usize, fail_or_stream: usize, stream: CUstream
    ) {
        let stream = if crate::version::major() >= 13 { CUstream::from_bits(fail_or_stream) } else { stream };
        cu!(cuMemcpyBatchAsync_v2, pt; (dsts, srcs, sizes, count, attrs.cast(), firsts, num_attrs, stream))
    }
    // As above.
    ctx fn [cudaMemcpy3DBatchAsync legacy, cudaMemcpy3DBatchAsync_ptsz per_thread](
        pt, count: usize, copies: *mut cudaMemcpy3DBatchOp, fail_or_flags: usize, flags_or_stream: usize,
        stream: CUstream
    ) {
        let (flags, stream) = match crate::version::major() >= 13 {
            true => (fail_or_flags, CUstream::from_bits(flags_or_stream)),
            false => (flags_or_stream, stream),
        };
        // The driver's description has the same layout.
        cu!(cuMemcpy3DBatchAsync_v2, pt; (count, copies.cast(), flags as u64, stream))
    }
    ctx fn [cudaMemcpyWithAttributesAsync legacy, cudaMemcpyWithAttributesAsync_ptsz per_thread](
        pt, dst: *mut c_void, src: *const c_void, size: usize, attr: *mut cudaMemcpyAttributes, stream: CUstream
    ) {
        cu!(cuMemcpyWithAttributesAsync, pt; (dst as u64, src as u64, size, attr.cast(), stream))
    }
}

/// A byte range inside a variable.
pub(crate) fn inside(at: u64, size: usize, offset: usize, n: usize) -> Result<u64, cudaError> {
    if offset.checked_add(n).is_none_or(|end| end > size) { Err(INVALID) } else { Ok(at + offset as u64) }
}
