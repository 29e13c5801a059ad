//! Memory of other processes and of other APIs.
//!
//! Owns the keys by which processes recognise shared memory, and the work that has a place in a
//! stream but no modelled effect. External semaphores are in [`super::external_semaphores`].

use cuda_sys::*;
use trace::{FreeKind, Op, StreamId};

use super::memory::allocations::imported;
use crate::ids::streams::working_stream;
use crate::log::shared::record_time;
use crate::observe::Cx;

pub(crate) unsafe fn cuIpcOpenMemHandle_v2(
    cx: &mut Cx<'_>,
    dptr: *mut CUdeviceptr,
    handle: CUipcMemHandle,
    _flags: c_uint,
) {
    // SAFETY: the call succeeded, so it has written the address.
    let ptr = unsafe { *dptr };
    imported(cx, ptr, 0);
    shared(cx, ptr, bytes_of(&handle));
}

pub(crate) unsafe fn cuIpcGetMemHandle(cx: &mut Cx<'_>, handle: *mut CUipcMemHandle, ptr: CUdeviceptr) {
    // SAFETY: the call succeeded, so it has written the handle.
    shared(cx, ptr, bytes_of(unsafe { &*handle }));
}

/// The bytes of a handle between processes, which are the same in all of them.
pub(crate) fn bytes_of<T: Copy>(handle: &T) -> &[u8] {
    // SAFETY: CUDA's handles between processes are arrays of 64 bytes without padding, valid for as
    // long as the reference.
    unsafe { std::slice::from_raw_parts((&raw const *handle).cast(), size_of::<T>()) }
}

/// Other processes know this memory by `key`.
pub(crate) fn shared(cx: &mut Cx<'_>, ptr: u64, key: &[u8]) {
    record_time();
    cx.log(&Op::SharedMemory { ptr, key });
}

pub(crate) unsafe fn cuIpcCloseMemHandle(cx: &mut Cx<'_>, ptr: CUdeviceptr) {
    cx.ends(Op::Free { ptr, kind: FreeKind::Imported, stream: StreamId::NONE });
    cx.ended();
}

pub(crate) unsafe fn cuExternalMemoryGetMappedBuffer(
    cx: &mut Cx<'_>,
    dev_ptr: *mut CUdeviceptr,
    _ext_mem: CUexternalMemory,
    buffer_desc: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
) {
    // SAFETY: the call succeeded: it has read the descriptor and written the address.
    let (ptr, size) = unsafe { (*dev_ptr, (*buffer_desc).size) };
    imported(cx, ptr, size);
}

pub(crate) unsafe fn cuGraphicsResourceGetMappedPointer_v2(
    cx: &mut Cx<'_>,
    dev_ptr: *mut CUdeviceptr,
    size: *mut usize,
    _resource: CUgraphicsResource,
) {
    // SAFETY: the call succeeded, so it has written both.
    let (ptr, size) = unsafe { (*dev_ptr, *size as u64) };
    imported(cx, ptr, size);
}

/// Work of another API, or of a kind that is not modelled, that takes its place in a stream.
pub(crate) fn opaque_work(cx: &mut Cx<'_>, stream: CUstream) {
    // Work of the other API comes before what follows a map, and after what precedes an unmap: an
    // op in the stream.
    if let Some(stream) = working_stream(cx, stream) {
        cx.log(&Op::Opaque { stream });
    }
    cx.not_modelled();
}

pub(crate) unsafe fn cuGraphicsMapResources(
    cx: &mut Cx<'_>,
    _count: c_uint,
    _resources: *mut CUgraphicsResource,
    stream: CUstream,
) {
    opaque_work(cx, stream);
}

pub(crate) unsafe fn cuGraphicsUnmapResources(
    cx: &mut Cx<'_>,
    _count: c_uint,
    _resources: *mut CUgraphicsResource,
    stream: CUstream,
) {
    if cx.is_after() {
        opaque_work(cx, stream);
    }
}

macro_rules! opaque_rows {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) in $stream:ident;)*) => {$(
        pub(crate) unsafe fn $name(cx: &mut Cx<'_>, $($arg: $ty),*) {
            let _ = ($($arg,)*);
            opaque_work(cx, $stream);
        }
    )*};
}

opaque_rows! {
    fn cuMemBatchDecompressAsync(
        params_array: *mut CUmemDecompressParams, count: usize, flags: c_uint, error_index: *mut usize,
        stream: CUstream) in stream;
    fn cuFabricCpyBatchAsync(
        num_ops: usize, op_list: *mut CUDA_FABRIC_COPY_BATCH_OP, flags: u64, stream: CUstream) in stream;
    fn cuMemMapArrayAsync(map_info_list: *mut CUarrayMapInfo, count: c_uint, stream: CUstream) in stream;
    fn cuLaunchGridAsync(function: CUfunction, grid_width: c_int, grid_height: c_int, stream: CUstream) in stream;
}
