//! Virtual memory management: physical memory mapped into addresses, and unmapped.
//!
//! Owns the ops of mappings. Which of two mappings names the memory is decided in
//! [`crate::handles::mappings`].

use cuda_sys::*;
use trace::{FreeKind, MemoryKind, Op, PoolId, StreamId};

use crate::observe::Cx;

pub(crate) unsafe fn cuMemMap(
    cx: &mut Cx<'_>,
    ptr: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    _flags: u64,
) {
    let Some(core) = cx.core() else { return };
    let context = cx.current_context();
    let context = cx.context(context);
    // Two mappings of one handle are one memory: the later one is an alias of the first that is
    // still there.
    let first = core.handles.mappings.map(handle, offset as u64, ptr, size as u64);
    if let Some(target) = first {
        cx.log(&Op::Alias { ptr, target, size: size as u64 });
    } else {
        cx.log(&Op::Alloc {
            ptr,
            size: size as u64,
            kind: MemoryKind::Mapped,
            context,
            stream: StreamId::NONE,
            pool: PoolId::NONE,
            flags: 0,
        });
    }
}

pub(crate) unsafe fn cuMemUnmap(cx: &mut Cx<'_>, ptr: CUdeviceptr, size: usize) {
    if cx.is_before()
        && let Some(core) = cx.core()
    {
        for start in core.handles.mappings.unmap(ptr, size as u64) {
            cx.log(&Op::Free { ptr: start, kind: FreeKind::Unmap, stream: StreamId::NONE });
        }
    }
}

pub(crate) unsafe fn cuMemSetAccess(
    cx: &mut Cx<'_>,
    _ptr: CUdeviceptr,
    _size: usize,
    _desc: *const CUmemAccessDesc,
    _count: usize,
) {
    // cuda.h tags it as synchronising; what it waits for was not measured, so it orders nothing
    // here.
    let _ = cx;
}
