//! Virtual memory management: physical memory mapped into addresses, and unmapped.
//!
//! Owns the ops of mappings, and of memory that processes pass to each other as descriptors or
//! fabric handles. By which address the trace knows the memory is decided in
//! [`crate::handles::mappings`].

use cuda_sys::*;
use trace::{FreeKind, MemoryKind, Op, PoolId, StreamId};

use super::super::interop::shared;
use crate::handles::descriptor_marks::Mark;
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

/// A handle of a multicast object may have been one of memory: it stands for that no more.
pub(crate) unsafe fn cuMulticastCreate(
    cx: &mut Cx<'_>,
    mc_handle: *mut CUmemGenericAllocationHandle,
    _prop: *const CUmulticastObjectProp,
) {
    if let Some(core) = cx.core() {
        // SAFETY: the call succeeded, so it has written the handle.
        core.handles.mappings.created(unsafe { *mc_handle }, 0);
    }
}

pub(crate) unsafe fn cuMemRetainAllocationHandle(
    cx: &mut Cx<'_>,
    handle: *mut CUmemGenericAllocationHandle,
    addr: *mut c_void,
) {
    if let Some(core) = cx.core() {
        // SAFETY: the call succeeded, so it has written the handle.
        core.handles.mappings.retained(unsafe { *handle }, addr as u64);
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
            kind: if mapped.imported { MemoryKind::Imported } else { MemoryKind::Mapped },
            context,
            stream: StreamId::NONE,
            pool: PoolId::NONE,
            flags: 0,
        });
        for key in &mapped.keys {
            shared(cx, name, key);
        }
    }
    if let Some(target) = mapped.alias_of {
        cx.log(&Op::Alias { ptr, target, size: size as u64 });
    }
}

/// The bytes by which a fabric handle names memory on all machines of a fabric.
fn fabric_key(handle: &CUmemFabricHandle) -> Vec<u8> {
    [trace::PHYSICAL_KEY, &handle.data].concat()
}

pub(crate) unsafe fn cuMemExportToShareableHandle(
    cx: &mut Cx<'_>,
    shareable_handle: *mut c_void,
    handle: CUmemGenericAllocationHandle,
    handle_type: CUmemAllocationHandleType,
    _flags: u64,
) {
    let Some(core) = cx.core() else { return };
    let exported = match handle_type {
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => {
            // SAFETY: the call succeeded, so it has written a descriptor.
            let file = unsafe { *shareable_handle.cast::<c_int>() };
            let exported = core.handles.mappings.exported(handle);
            exported.filter(|exported| exported.mark.is_some_and(|mark| mark.put(file)))
        }
        CU_MEM_HANDLE_TYPE_FABRIC => {
            // SAFETY: the call succeeded, so it has written a handle of this type.
            let key = fabric_key(unsafe { &*shareable_handle.cast::<CUmemFabricHandle>() });
            Some(core.handles.mappings.exported_by(handle, key))
        }
        _ => None,
    };
    match exported {
        Some(exported) => {
            if let Some(name) = exported.name {
                shared(cx, name, &exported.key);
            }
        }
        None => cx.not_modelled(),
    }
}

pub(crate) unsafe fn cuMemImportFromShareableHandle(
    cx: &mut Cx<'_>,
    handle: *mut CUmemGenericAllocationHandle,
    os_handle: *mut c_void,
    sh_handle_type: CUmemAllocationHandleType,
) {
    let Some(core) = cx.core() else { return };
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *handle };
    let found = match sh_handle_type {
        // The descriptor is passed in the pointer's place.
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => Mark::of(os_handle as c_int).map(|mark| (mark.key(), Some(mark))),
        // SAFETY: the call succeeded, so it has read a handle of this type.
        CU_MEM_HANDLE_TYPE_FABRIC => Some((fabric_key(unsafe { &*os_handle.cast::<CUmemFabricHandle>() }), None)),
        _ => None,
    };
    match found {
        Some((key, mark)) => core.handles.mappings.imported(handle, key, mark),
        None => {
            core.handles.mappings.unmatched(handle);
            cx.not_modelled();
        }
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
