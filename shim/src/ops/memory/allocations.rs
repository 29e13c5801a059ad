//! Allocation and release of memory: plain, pitched, managed, host, registered, stream-ordered.
//!
//! Owns the ops of allocations and frees, and of memory pools. Virtual memory management is in
//! [`super::virtual_memory`], arrays in [`super::arrays`].

use cuda_sys::*;
use trace::{FreeKind, MemoryKind, Op, PoolId, StreamId};

use crate::host::in_place::InPlaceKind;
use crate::ids::arrays_pools::{forget_pool, pool_id};
use crate::ids::contexts::{context_id, current_context};
use crate::ids::streams::working_stream;
use crate::observe::Cx;
use crate::observe::host_watch::{host_memory_comes, host_memory_freed, host_memory_goes, pinned_range};
use crate::real::driver::real;

fn allocated(cx: &mut Cx<'_>, ptr: u64, size: u64, kind: MemoryKind, flags: u32) {
    cx.with_caller();
    let context = current_context();
    let context = context_id(cx, context);
    cx.log(&Op::Alloc { ptr, size, kind, context, stream: StreamId::NONE, pool: PoolId::NONE, flags });
    match kind {
        MemoryKind::Managed => host_memory_comes(cx, ptr, size, InPlaceKind::Managed),
        MemoryKind::PinnedHost => host_memory_comes(cx, ptr, size, InPlaceKind::Pinned),
        MemoryKind::RegisteredHost if flags & CU_MEMHOSTREGISTER_IOMEMORY == 0 => {
            host_memory_comes(cx, ptr, size, InPlaceKind::Registered)
        }
        _ => {}
    }
}

fn allocated_in_stream(cx: &mut Cx<'_>, ptr: u64, size: u64, pool: PoolId, stream: CUstream) {
    if let Some(stream) = working_stream(cx, stream) {
        let context = current_context();
        let context = context_id(cx, context);
        cx.log(&Op::Alloc { ptr, size, kind: MemoryKind::Pool, context, stream, pool, flags: 0 });
    }
}

/// A free counts if it succeeds ([`crate::log::endings`]). What the shim does with the pages
/// of the memory ends before the call.
fn freed(cx: &mut Cx<'_>, ptr: u64, kind: FreeKind) {
    if cx.is_before() && ptr != 0 {
        let host = matches!(kind, FreeKind::Host | FreeKind::Unregister);
        let range = if host { pinned_range(cx, ptr) } else { None };
        cx.ends(Op::Free { ptr, kind, stream: StreamId::NONE });
        host_memory_freed(cx, ptr);
        if let Some((start, end)) = range {
            host_memory_goes(cx, start, end);
        }
    }
    cx.ended();
}

pub(crate) unsafe fn cuMemAlloc(cx: &mut Cx<'_>, ptr: *mut CUdeviceptr_v1, byte_size: c_uint) {
    // SAFETY: the call succeeded, so it has written the address.
    let ptr = unsafe { *ptr };
    allocated(cx, u64::from(ptr), u64::from(byte_size), MemoryKind::Device, 0);
}

pub(crate) unsafe fn cuMemAlloc_v2(cx: &mut Cx<'_>, ptr: *mut CUdeviceptr, byte_size: usize) {
    // SAFETY: the call succeeded, so it has written the address.
    allocated(cx, unsafe { *ptr }, byte_size as u64, MemoryKind::Device, 0);
}

pub(crate) unsafe fn cuMemAllocPitch(
    cx: &mut Cx<'_>,
    ptr: *mut CUdeviceptr_v1,
    pitch: *mut c_uint,
    _width_in_bytes: c_uint,
    height: c_uint,
    _element_size_bytes: c_uint,
) {
    // SAFETY: the call succeeded, so it has written both.
    let (ptr, pitch) = unsafe { (u64::from(*ptr), u64::from(*pitch)) };
    allocated(cx, ptr, pitch * u64::from(height), MemoryKind::Device, 0);
}

pub(crate) unsafe fn cuMemAllocPitch_v2(
    cx: &mut Cx<'_>,
    ptr: *mut CUdeviceptr,
    pitch: *mut usize,
    _width_in_bytes: usize,
    height: usize,
    _element_size_bytes: c_uint,
) {
    // SAFETY: the call succeeded, so it has written both.
    let (ptr, pitch) = unsafe { (*ptr, *pitch as u64) };
    allocated(cx, ptr, pitch.saturating_mul(height as u64), MemoryKind::Device, 0);
}

pub(crate) unsafe fn cuMemFree(cx: &mut Cx<'_>, ptr: CUdeviceptr_v1) {
    freed(cx, u64::from(ptr), FreeKind::Plain);
}

pub(crate) unsafe fn cuMemFree_v2(cx: &mut Cx<'_>, ptr: CUdeviceptr) {
    freed(cx, ptr, FreeKind::Plain);
}

pub(crate) unsafe fn cuMemAllocHost(cx: &mut Cx<'_>, pointer_out: *mut *mut c_void, byte_size: c_uint) {
    // SAFETY: the call succeeded, so it has written the address.
    allocated(cx, unsafe { *pointer_out } as u64, u64::from(byte_size), MemoryKind::PinnedHost, 0);
}

pub(crate) unsafe fn cuMemAllocHost_v2(cx: &mut Cx<'_>, pointer_out: *mut *mut c_void, byte_size: usize) {
    // SAFETY: the call succeeded, so it has written the address.
    allocated(cx, unsafe { *pointer_out } as u64, byte_size as u64, MemoryKind::PinnedHost, 0);
}

pub(crate) unsafe fn cuMemHostAlloc(cx: &mut Cx<'_>, pointer_out: *mut *mut c_void, byte_size: usize, flags: c_uint) {
    // SAFETY: the call succeeded, so it has written the address.
    allocated(cx, unsafe { *pointer_out } as u64, byte_size as u64, MemoryKind::PinnedHost, flags);
}

pub(crate) unsafe fn cuMemFreeHost(cx: &mut Cx<'_>, pointer: *mut c_void) {
    freed(cx, pointer as u64, FreeKind::Host);
}

pub(crate) unsafe fn cuMemAllocManaged(cx: &mut Cx<'_>, ptr: *mut CUdeviceptr, byte_size: usize, flags: c_uint) {
    // SAFETY: the call succeeded, so it has written the address.
    allocated(cx, unsafe { *ptr }, byte_size as u64, MemoryKind::Managed, flags);
}

pub(crate) unsafe fn cuMemHostRegister_v2(cx: &mut Cx<'_>, pointer: *mut c_void, byte_size: usize, flags: c_uint) {
    allocated(cx, pointer as u64, byte_size as u64, MemoryKind::RegisteredHost, flags);
}

pub(crate) unsafe fn cuMemHostUnregister(cx: &mut Cx<'_>, pointer: *mut c_void) {
    freed(cx, pointer as u64, FreeKind::Unregister);
}

fn host_alias(cx: &mut Cx<'_>, ptr: u64, pointer: *mut c_void) {
    // With unified addressing both are the same; an alias is news only when they differ.
    if ptr != pointer as u64 {
        let mut size = 0_usize;
        let mut base = 0_u64;
        let _ = real!(cuMemGetAddressRange_v2(
            &raw mut base => *mut u64, &raw mut size => *mut usize, ptr => u64
        ));
        let size = (size as u64).saturating_sub(ptr.saturating_sub(base));
        cx.log(&Op::Alias { ptr, target: pointer as u64, size });
    }
}

pub(crate) unsafe fn cuMemHostGetDevicePointer(
    cx: &mut Cx<'_>,
    dptr: *mut CUdeviceptr_v1,
    pointer: *mut c_void,
    _flags: c_uint,
) {
    // SAFETY: the call succeeded, so it has written the address.
    host_alias(cx, u64::from(unsafe { *dptr }), pointer);
}

pub(crate) unsafe fn cuMemHostGetDevicePointer_v2(
    cx: &mut Cx<'_>,
    dptr: *mut CUdeviceptr,
    pointer: *mut c_void,
    _flags: c_uint,
) {
    // SAFETY: the call succeeded, so it has written the address.
    host_alias(cx, unsafe { *dptr }, pointer);
}

pub(crate) unsafe fn cuMemAllocAsync(cx: &mut Cx<'_>, ptr: *mut CUdeviceptr, byte_size: usize, stream: CUstream) {
    // SAFETY: the call succeeded, so it has written the address.
    allocated_in_stream(cx, unsafe { *ptr }, byte_size as u64, PoolId::NONE, stream);
}

pub(crate) unsafe fn cuMemAllocFromPoolAsync(
    cx: &mut Cx<'_>,
    ptr: *mut CUdeviceptr,
    byte_size: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) {
    let pool = pool_id(cx, pool);
    // SAFETY: the call succeeded, so it has written the address.
    allocated_in_stream(cx, unsafe { *ptr }, byte_size as u64, pool, stream);
}

pub(crate) unsafe fn cuMemFreeAsync(cx: &mut Cx<'_>, ptr: CUdeviceptr, stream: CUstream) {
    // While a stream is being captured the free becomes a node, which exists only after the call:
    // it is read with the graph.
    if cx.is_before()
        && ptr != 0
        && let Some(stream) = working_stream(cx, stream)
    {
        cx.ends(Op::Free { ptr, kind: FreeKind::Async, stream });
    }
    cx.ended();
}

pub(crate) unsafe fn cuMemPoolDestroy(cx: &mut Cx<'_>, pool: CUmemoryPool) {
    forget_pool(cx, pool);
}

/// Memory that another process or API owns: its size is asked for.
pub(crate) fn imported(cx: &mut Cx<'_>, ptr: u64, size: u64) {
    let (mut base, mut len) = (ptr, size as usize);
    if size == 0 {
        let _ = real!(cuMemGetAddressRange_v2(
            &raw mut base => *mut u64, &raw mut len => *mut usize, ptr => u64
        ));
    }
    allocated(cx, base, len as u64, MemoryKind::Imported, 0);
}

pub(crate) unsafe fn cuPointerSetAttribute(
    cx: &mut Cx<'_>,
    value: *const c_void,
    attribute: CUpointer_attribute,
    ptr: CUdeviceptr,
) {
    if attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && !value.is_null() {
        // SAFETY: this attribute's value is an int, which the call has just read.
        let on = unsafe { *value.cast::<c_int>() } != 0;
        cx.log(&Op::SyncMemops { ptr, on });
    }
}

pub(crate) unsafe fn cuDeviceSetMemPool(_cx: &mut Cx<'_>, _dev: CUdevice, _pool: CUmemoryPool) {}
pub(crate) unsafe fn cuMemPoolTrimTo(_cx: &mut Cx<'_>, _pool: CUmemoryPool, _min_bytes_to_keep: usize) {}
pub(crate) unsafe fn cuMemPoolSetAttribute(
    _cx: &mut Cx<'_>,
    _pool: CUmemoryPool,
    _attr: CUmemPool_attribute,
    _value: *mut c_void,
) {
}
pub(crate) unsafe fn cuMemPoolSetAccess(
    _cx: &mut Cx<'_>,
    _pool: CUmemoryPool,
    _map: *const CUmemAccessDesc,
    _count: usize,
) {
}
pub(crate) unsafe fn cuMemPoolCreate(_cx: &mut Cx<'_>, _pool: *mut CUmemoryPool, _pool_props: *const CUmemPoolProps) {}
pub(crate) unsafe fn cuMemSetMemPool(
    _cx: &mut Cx<'_>,
    _location: *mut CUmemLocation,
    _kind: CUmemAllocationType,
    _pool: CUmemoryPool,
) {
}
