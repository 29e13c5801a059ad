//! Memory pools that processes pass to each other as descriptors, and the pointers into them.
//!
//! Owns the keys of such pointers. The 64 bytes that carry a pointer name it within its pool, and
//! pools of two processes may give out the same bytes. So a key is made of both: the mark of the
//! pool's descriptor ([`crate::handles::descriptor_marks`]) and these bytes.

use cuda_sys::*;

use super::super::interop::{bytes_of, shared};
use super::allocations::imported;
use crate::handles::descriptor_marks::Mark;
use crate::observe::Cx;
use crate::real::driver::real;

/// The mark of a pool of this process: the one that it has, or a new one.
fn mark_of(cx: &mut Cx<'_>, pool: CUmemoryPool) -> Option<Mark> {
    let marks = &cx.core()?.handles.pool_marks;
    let known = marks.get(&(pool.0 as u64)).map(|mark| *mark);
    known.or_else(|| Mark::fresh(1)).map(|mark| *marks.entry(pool.0 as u64).or_insert(mark))
}

/// What processes know a pointer into a pool by.
fn key(mark: Mark, data: &CUmemPoolPtrExportData) -> Vec<u8> {
    [b"pooled".as_slice(), &mark.bytes(), bytes_of(data)].concat()
}

pub(crate) unsafe fn cuMemPoolExportToShareableHandle(
    cx: &mut Cx<'_>,
    handle_out: *mut c_void,
    pool: CUmemoryPool,
    handle_type: CUmemAllocationHandleType,
    _flags: u64,
) {
    let is_file = handle_type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    // SAFETY: the call succeeded, so it has written a descriptor if one was asked for.
    let done = is_file && mark_of(cx, pool).is_some_and(|mark| mark.put(unsafe { *handle_out.cast::<c_int>() }));
    if !done {
        cx.not_modelled();
    }
}

pub(crate) unsafe fn cuMemPoolImportFromShareableHandle(
    cx: &mut Cx<'_>,
    pool_out: *mut CUmemoryPool,
    handle: *mut c_void,
    handle_type: CUmemAllocationHandleType,
    _flags: u64,
) {
    let Some(core) = cx.core() else { return };
    // SAFETY: the call succeeded, so it has written the pool.
    let pool = unsafe { *pool_out }.0 as u64;
    let is_file = handle_type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    // The descriptor is passed in the pointer's place.
    match is_file.then(|| Mark::of(handle as c_int)).flatten() {
        Some(mark) => {
            core.handles.pool_marks.insert(pool, mark);
        }
        None => {
            core.handles.pool_marks.remove(&pool);
            cx.not_modelled();
        }
    }
}

pub(crate) unsafe fn cuMemPoolExportPointer(
    cx: &mut Cx<'_>,
    share_data_out: *mut CUmemPoolPtrExportData,
    ptr: CUdeviceptr,
) {
    let mut pool = CUmemoryPool::from_bits(0);
    let answer = real!(cuPointerGetAttribute(
        (&raw mut pool).cast() => *mut c_void, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => CUpointer_attribute,
        ptr => CUdeviceptr
    ));
    let is_known = answer == CUresult::SUCCESS && pool.bits() != 0;
    match is_known.then(|| mark_of(cx, pool)).flatten() {
        // SAFETY: the call succeeded, so it has written the data.
        Some(mark) => shared(cx, ptr, &key(mark, unsafe { &*share_data_out })),
        None => cx.not_modelled(),
    }
}

pub(crate) unsafe fn cuMemPoolImportPointer(
    cx: &mut Cx<'_>,
    ptr_out: *mut CUdeviceptr,
    pool: CUmemoryPool,
    share_data: *mut CUmemPoolPtrExportData,
) {
    // SAFETY: the call succeeded, so it has written the address and read the data.
    let (ptr, data) = unsafe { (*ptr_out, &*share_data) };
    imported(cx, ptr, 0);
    let mark = cx.core().and_then(|core| core.handles.pool_marks.get(&(pool.0 as u64)).map(|mark| *mark));
    match mark {
        Some(mark) => shared(cx, ptr, &key(mark, data)),
        None => cx.not_modelled(),
    }
}
