//! Virtual memory management: physical memory mapped into addresses, and unmapped.
//!
//! Owns the ops of mappings. By which address the trace knows the memory is decided in
//! [`crate::handles::mappings`].

use cuda_sys::*;
use trace::{FreeKind, MemoryKind, Op, PoolId, StreamId};

use crate::handles::mappings::Unmapped;
use crate::ids::contexts::{context_id, current_context};
use crate::observe::Cx;

pub(crate) unsafe fn cuMemCreate(
    cx: &mut Cx<'_>,
    handle: *mut CUmemGenericAllocationHandle,
    size: usize,
    _prop: *const CUmemAllocationProp,
    _flags: u64,
) {
    if let Some(core) = cx.core() {
        // SAFETY: the call succeeded, so it has written the handle.
        core.handles.mappings.created(unsafe { *handle }, size as u64);
    }
}

pub(crate) unsafe fn cuMemMap(
    cx: &mut Cx<'_>,
    ptr: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    _flags: u64,
) {
    let Some(core) = cx.core() else { return };
    let context = current_context();
    let context = context_id(cx, context);
    let mapped = core.handles.mappings.map(handle, offset as u64, ptr, size as u64);
    if let Some((name, size)) = mapped.begins {
        cx.log(&Op::Alloc {
            ptr: name,
            size,
            kind: MemoryKind::Mapped,
            context,
            stream: StreamId::NONE,
            pool: PoolId::NONE,
            flags: 0,
        });
    }
    if let Some(target) = mapped.alias_of {
        cx.log(&Op::Alias { ptr, target, size: size as u64 });
    }
}

pub(crate) unsafe fn cuMemUnmap(cx: &mut Cx<'_>, ptr: CUdeviceptr, size: usize) {
    if cx.is_before() {
        let number = cx.ending();
        let Some(core) = cx.core() else { return };
        for gone in core.handles.mappings.unmap(ptr, size as u64, number) {
            cx.ends(match gone {
                Unmapped::Alias(ptr) => Op::Unalias { ptr },
                Unmapped::Memory(ptr) => Op::Free { ptr, kind: FreeKind::Unmap, stream: StreamId::NONE },
            });
        }
    } else if let Some(core) = cx.core() {
        core.handles.mappings.unmapped(cx.token, true);
    }
    cx.ended();
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
