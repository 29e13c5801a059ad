//! Copies of one contiguous range, and between a range and an array.
//!
//! Owns the two sides of each of these functions. The op is made in [`super::copy`].

use cuda_sys::*;
use trace::{Region, SourceOrder, Space};

use super::batched::source_order;
use super::copy::{CopySide, unified};
use crate::ids::arrays_pools::array_of;
use crate::observe::Cx;
use crate::ops::copies::copy::{attributed_copy, log_copy};

/// Bytes of an array of one row: the only arrays that these functions take.
fn in_array(cx: &mut Cx<'_>, array: CUarray, offset: u64, len: u64) -> CopySide {
    let array = array_of(cx, array);
    let start = array.level.unwrap_or(0).saturating_add(offset);
    CopySide { region: Region { array: array.id, ..Region::linear(start, len) }, space: Space::Array }
}

fn host(pointer: *const c_void, len: u64) -> CopySide {
    CopySide::linear(pointer as u64, len, Space::Host)
}

fn device(ptr: u64, len: u64) -> CopySide {
    CopySide::linear(ptr, len, Space::Device)
}

pub(crate) unsafe fn cuMemcpy(cx: &mut Cx<'_>, dst: CUdeviceptr, src: CUdeviceptr, byte_count: usize) {
    let len = byte_count as u64;
    log_copy(cx, unified(dst, len), unified(src, len), CUstream::NULL, false);
}

pub(crate) unsafe fn cuMemcpyAsync(
    cx: &mut Cx<'_>,
    dst: CUdeviceptr,
    src: CUdeviceptr,
    byte_count: usize,
    stream: CUstream,
) {
    let len = byte_count as u64;
    log_copy(cx, unified(dst, len), unified(src, len), stream, true);
}

pub(crate) unsafe fn cuMemcpyWithAttributesAsync(
    cx: &mut Cx<'_>,
    dst: CUdeviceptr,
    src: CUdeviceptr,
    size: usize,
    attr: *mut CUmemcpyAttributes,
    stream: CUstream,
) {
    let len = size as u64;
    // SAFETY: the call has accepted the attributes, if there are any.
    let order = unsafe { attr.as_ref() }.map_or(SourceOrder::Stream, |a| source_order(a.srcAccessOrder));
    attributed_copy(cx, unified(dst, len), unified(src, len), stream, 0, order);
}

pub(crate) unsafe fn cuMemcpyPeer(
    cx: &mut Cx<'_>,
    dst_device: CUdeviceptr,
    _dst_context: CUcontext,
    src_device: CUdeviceptr,
    _src_context: CUcontext,
    byte_count: usize,
) {
    let len = byte_count as u64;
    log_copy(cx, device(dst_device, len), device(src_device, len), CUstream::NULL, false);
}

pub(crate) unsafe fn cuMemcpyPeerAsync(
    cx: &mut Cx<'_>,
    dst_device: CUdeviceptr,
    _dst_context: CUcontext,
    src_device: CUdeviceptr,
    _src_context: CUcontext,
    byte_count: usize,
    stream: CUstream,
) {
    let len = byte_count as u64;
    log_copy(cx, device(dst_device, len), device(src_device, len), stream, true);
}

macro_rules! linear {
    ($($name:ident($dst:ident: $dst_ty:ty => $to:ident, $src:ident: $src_ty:ty => $from:ident, $count:ty $(, $stream:ident)?);)*) => {$(
        pub(crate) unsafe fn $name(cx: &mut Cx<'_>, $dst: $dst_ty, $src: $src_ty, byte_count: $count $(, $stream: CUstream)?) {
            let len = byte_count as u64;
            let (to, from) = ($to(linear!(@u64 $dst_ty, $dst), len), $from(linear!(@u64 $src_ty, $src), len));
            let (stream, asynchronous) = linear!(@stream $($stream)?);
            log_copy(cx, to, from, stream, asynchronous);
        }
    )*};
    (@u64 CUdeviceptr_v1, $value:ident) => { u64::from($value) };
    (@u64 $other:ty, $value:ident) => { $value };
    (@stream) => { (CUstream::NULL, false) };
    (@stream $stream:ident) => { ($stream, true) };
}

linear! {
    cuMemcpyHtoD(dst_device: CUdeviceptr_v1 => device_v1, src_host: *const c_void => host, c_uint);
    cuMemcpyHtoD_v2(dst_device: CUdeviceptr => device, src_host: *const c_void => host, usize);
    cuMemcpyHtoDAsync(dst_device: CUdeviceptr_v1 => device_v1, src_host: *const c_void => host, c_uint, stream);
    cuMemcpyHtoDAsync_v2(dst_device: CUdeviceptr => device, src_host: *const c_void => host, usize, stream);
    cuMemcpyDtoH(dst_host: *mut c_void => host_mut, src_device: CUdeviceptr_v1 => device_v1, c_uint);
    cuMemcpyDtoH_v2(dst_host: *mut c_void => host_mut, src_device: CUdeviceptr => device, usize);
    cuMemcpyDtoHAsync(dst_host: *mut c_void => host_mut, src_device: CUdeviceptr_v1 => device_v1, c_uint, stream);
    cuMemcpyDtoHAsync_v2(dst_host: *mut c_void => host_mut, src_device: CUdeviceptr => device, usize, stream);
    cuMemcpyDtoD(dst_device: CUdeviceptr_v1 => device_v1, src_device: CUdeviceptr_v1 => device_v1, c_uint);
    cuMemcpyDtoD_v2(dst_device: CUdeviceptr => device, src_device: CUdeviceptr => device, usize);
    cuMemcpyDtoDAsync(dst_device: CUdeviceptr_v1 => device_v1, src_device: CUdeviceptr_v1 => device_v1, c_uint, stream);
    cuMemcpyDtoDAsync_v2(dst_device: CUdeviceptr => device, src_device: CUdeviceptr => device, usize, stream);
}

fn device_v1(ptr: CUdeviceptr_v1, len: u64) -> CopySide {
    device(u64::from(ptr), len)
}

fn host_mut(pointer: *mut c_void, len: u64) -> CopySide {
    host(pointer, len)
}

macro_rules! with_array {
    ($($name:ident, $size:ty: ($($arg:ident: $ty:ty),*) to $to:ident($($to_arg:ident),*) from $from:ident($($from_arg:ident),*) $($stream:ident)?;)*) => {$(
        pub(crate) unsafe fn $name(cx: &mut Cx<'_>, $($arg: $ty,)* byte_count: $size $(, $stream: CUstream)?) {
            let len = byte_count as u64;
            let to = with_array!(@side cx, len, $to($($to_arg),*));
            let from = with_array!(@side cx, len, $from($($from_arg),*));
            let (stream, asynchronous) = linear!(@stream $($stream)?);
            log_copy(cx, to, from, stream, asynchronous);
        }
    )*};
    (@side $cx:ident, $len:ident, array($array:ident, $offset:ident)) => { in_array($cx, $array, $offset as u64, $len) };
    (@side $cx:ident, $len:ident, $side:ident($ptr:ident)) => { $side($ptr, $len) };
}

with_array! {
    cuMemcpyDtoA, c_uint: (dst_array: CUarray, dst_offset: c_uint, src_device: CUdeviceptr_v1)
        to array(dst_array, dst_offset) from device_v1(src_device);
    cuMemcpyDtoA_v2, usize: (dst_array: CUarray, dst_offset: usize, src_device: CUdeviceptr)
        to array(dst_array, dst_offset) from device(src_device);
    cuMemcpyAtoD, c_uint: (dst_device: CUdeviceptr_v1, src_array: CUarray, src_offset: c_uint)
        to device_v1(dst_device) from array(src_array, src_offset);
    cuMemcpyAtoD_v2, usize: (dst_device: CUdeviceptr, src_array: CUarray, src_offset: usize)
        to device(dst_device) from array(src_array, src_offset);
    cuMemcpyHtoA, c_uint: (dst_array: CUarray, dst_offset: c_uint, src_host: *const c_void)
        to array(dst_array, dst_offset) from host(src_host);
    cuMemcpyHtoA_v2, usize: (dst_array: CUarray, dst_offset: usize, src_host: *const c_void)
        to array(dst_array, dst_offset) from host(src_host);
    cuMemcpyHtoAAsync, c_uint: (dst_array: CUarray, dst_offset: c_uint, src_host: *const c_void)
        to array(dst_array, dst_offset) from host(src_host) stream;
    cuMemcpyHtoAAsync_v2, usize: (dst_array: CUarray, dst_offset: usize, src_host: *const c_void)
        to array(dst_array, dst_offset) from host(src_host) stream;
    cuMemcpyAtoH, c_uint: (dst_host: *mut c_void, src_array: CUarray, src_offset: c_uint)
        to host_mut(dst_host) from array(src_array, src_offset);
    cuMemcpyAtoH_v2, usize: (dst_host: *mut c_void, src_array: CUarray, src_offset: usize)
        to host_mut(dst_host) from array(src_array, src_offset);
    cuMemcpyAtoHAsync, c_uint: (dst_host: *mut c_void, src_array: CUarray, src_offset: c_uint)
        to host_mut(dst_host) from array(src_array, src_offset) stream;
    cuMemcpyAtoHAsync_v2, usize: (dst_host: *mut c_void, src_array: CUarray, src_offset: usize)
        to host_mut(dst_host) from array(src_array, src_offset) stream;
    cuMemcpyAtoA, c_uint: (dst_array: CUarray, dst_offset: c_uint, src_array: CUarray, src_offset: c_uint)
        to array(dst_array, dst_offset) from array(src_array, src_offset);
    cuMemcpyAtoA_v2, usize: (dst_array: CUarray, dst_offset: usize, src_array: CUarray, src_offset: usize)
        to array(dst_array, dst_offset) from array(src_array, src_offset);
}
