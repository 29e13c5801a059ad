//! Stream-ordered memory and its pools.

use std::sync::Arc;

use cuda_sys::*;

use crate::api::*;
use crate::config;
use crate::handles::handle_of;
use crate::memory::pool::{POOLS, Pool, Sharing, current_of, default_of};
use crate::memory::{self, AllocationKind, graph_memory, ipc};
use crate::objects::stream::{Stream, resolve};
use crate::objects::task::{Enqueued, Task, enqueue, enqueue_after};
use crate::sched;

fn device(dev: c_int) -> Result<u32, CUresult> {
    let dev = u32::try_from(dev).map_err(|_| CUresult::ERROR_INVALID_DEVICE)?;
    if dev < config::get_or_default().devices { Ok(dev) } else { Err(CUresult::ERROR_INVALID_DEVICE) }
}

fn current(dev: u32) -> Arc<Pool> {
    let slot = current_of(dev).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    slot.clone().unwrap_or_else(|| default_of(dev))
}

fn alloc(pool: &Arc<Pool>, stream: &Arc<Stream>, size: usize) -> Result<u64, CUresult> {
    let memory = memory::get();
    if let Some(capture) = capture::of(stream) {
        // A graph's memory has its address from the beginning; nothing else gets it while the graph
        // lives.
        let at = capture.shared.graph.allocate(&stream.ctx, stream.ctx.device, size as u64)?;
        enqueue(stream, Task::Alloc(at, size as u64))?;
        return Ok(at);
    }
    let now = sched::get().pending_before(stream.id);
    let (at, after) = pool.alloc(memory, stream.ctx.owner().id, stream.id, &now, size as u64)?;
    enqueue_after(stream, Task::Alloc(at, size as u64), &after)?;
    Ok(at)
}

/// Allocates and hands out the address. Without a place for the address nothing is allocated; zero
/// bytes give no memory.
fn give(dptr: *mut CUdeviceptr, pool: &Arc<Pool>, stream: &Arc<Stream>, size: usize) -> Res {
    put(dptr, 0)?;
    if size == 0 {
        return Ok(());
    }
    put(dptr, alloc(pool, stream, size)?)
}

fn free(at: u64, stream: &Arc<Stream>) -> Res {
    if at == 0 {
        return Ok(());
    }
    let memory = memory::get();
    if let Some(capture) = capture::of(stream) {
        // Only what a graph allocates can be freed by one.
        let task = capture.shared.graph.freeing(at, &capture.deps)?;
        return enqueue(stream, task).map(|_| ());
    }
    let block = memory.find(at).filter(|block| block.at == at).ok_or(INVALID)?;
    match block.kind {
        AllocationKind::Graph => {
            graph_memory::free(at)?;
            enqueue(stream, Task::Free(at)).map(|_| ())
        }
        AllocationKind::Pool(_) => {
            let block = memory.take_pool_block(at).ok_or(INVALID)?;
            match enqueue(stream, Task::End(block))? {
                Enqueued::Op(op) => memory.give_pool(&block, stream.id, op),
                Enqueued::Captured => {}
            }
            Ok(())
        }
        AllocationKind::Ipc if memory.is_pooled_elsewhere(at) => {
            sched::get().wait(&sched::get().all_tails());
            memory.close(at)
        }
        AllocationKind::Device => {
            // Plain memory may be freed in stream order too, but only after everything else: the
            // host waits.
            sched::get().wait(&sched::get().all_tails());
            memory.free_device(at)
        }
        _ => Err(INVALID),
    }
}

fn flag(value: *mut c_void) -> Result<bool, CUresult> {
    Ok(get(value.cast::<c_int>())? != 0)
}

abi! {
    call fn [cuMemAllocAsync legacy, cuMemAllocAsync_ptsz per_thread](
        zero, dptr: *mut CUdeviceptr, size: usize, stream: CUstream
    ) {
        let stream = resolve(stream.bits(), zero)?;
        give(dptr, &current(stream.ctx.device), &stream, size)
    }
    call fn [cuMemAllocFromPoolAsync legacy, cuMemAllocFromPoolAsync_ptsz per_thread](
        zero, dptr: *mut CUdeviceptr, size: usize, pool: CUmemoryPool, stream: CUstream
    ) {
        give(dptr, &POOLS.valid(pool.bits())?, &resolve(stream.bits(), zero)?, size)
    }
    call fn [cuMemFreeAsync legacy, cuMemFreeAsync_ptsz per_thread](zero, dptr: CUdeviceptr, stream: CUstream) {
        free(dptr, &resolve(stream.bits(), zero)?)
    }
    call fn [cuDeviceGetDefaultMemPool plain](_z, pool: *mut CUmemoryPool, dev: CUdevice) {
        put(pool, CUmemoryPool::from_bits(handle_of(&default_of(device(dev)?))))
    }
    call fn [cuDeviceGetMemPool plain](_z, pool: *mut CUmemoryPool, dev: CUdevice) {
        put(pool, CUmemoryPool::from_bits(handle_of(&current(device(dev)?))))
    }
    call fn [cuDeviceSetMemPool plain](_z, dev: CUdevice, pool: CUmemoryPool) {
        let pool = POOLS.get(pool.bits())?;
        if pool.device != device(dev)? || pool.host {
            return Err(INVALID);
        }
        *current_of(pool.device).lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(pool.clone());
        Ok(())
    }
    call fn [cuDeviceGetGraphMemAttribute plain](
        _z, dev: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void
    ) {
        put(value.cast(), graph_memory::attribute(device(dev)?, attr)?)
    }
    call fn [cuDeviceSetGraphMemAttribute plain](
        _z, dev: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void
    ) {
        graph_memory::reset(device(dev)?, attr, get(value.cast::<u64>())?)
    }
    call fn [cuDeviceGraphMemTrim plain](_z, dev: CUdevice) {
        graph_memory::trim(device(dev)?);
        Ok(())
    }
    call fn [cuMemPoolCreate plain](_z, pool: *mut CUmemoryPool, props: *const CUmemPoolProps) {
        let props = get(props)?;
        let types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0;
        if props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        if props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props.handleTypes.0 & !types != 0 {
            return Err(INVALID);
        }
        if props.location.type_ != CU_MEM_LOCATION_TYPE_DEVICE {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        let sharing = if props.handleTypes.0 & types != 0 { Sharing::Exportable } else { Sharing::Private };
        let device = device(props.location.id).map_err(|_| INVALID)?;
        let made = Pool::create(device, false, false, props.maxSize as u64, sharing);
        put(pool, CUmemoryPool::from_bits(handle_of(&made)))
    }
    call fn [cuMemPoolDestroy plain](_z, pool: CUmemoryPool) {
        let found = POOLS.get(pool.bits())?;
        if found.default {
            return Err(INVALID);
        }
        let mut current = current_of(found.device).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if current.as_ref().is_some_and(|pool| Arc::ptr_eq(pool, &found)) {
            *current = None;
        }
        drop(current);
        found.trim(memory::get(), 0);
        POOLS.remove(pool.bits()).map(|_| ())
    }
    call fn [cuMemPoolExportToShareableHandle plain](
        _z, out: *mut c_void, pool: CUmemoryPool, kind: CUmemAllocationHandleType, flags: u64
    ) {
        if kind != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        if flags != 0 || out.is_null() {
            return Err(INVALID);
        }
        let found = POOLS.get(pool.bits())?;
        put(out.cast(), ipc::export_pool(&found)?)
    }
    call fn [cuMemPoolImportFromShareableHandle plain](
        _z, pool: *mut CUmemoryPool, handle: *mut c_void, kind: CUmemAllocationHandleType, flags: u64
    ) {
        if kind != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        if flags != 0 || pool.is_null() {
            return Err(INVALID);
        }
        // The descriptor is passed in the pointer's place.
        let made = ipc::import_pool(c_int::try_from(handle as usize).map_err(|_| INVALID)?)?;
        put(pool, CUmemoryPool::from_bits(handle_of(&made)))
    }
    call fn [cuMemPoolExportPointer plain](_z, out: *mut CUmemPoolPtrExportData, ptr: CUdeviceptr) {
        put(out, CUmemPoolPtrExportData { reserved: memory::get().export_pooled(ptr)? })
    }
    call fn [cuMemPoolImportPointer plain](
        _z, out: *mut CUdeviceptr, pool: CUmemoryPool, data: *mut CUmemPoolPtrExportData
    ) {
        let ctx = thread::context()?;
        let pool = POOLS.get(pool.bits())?;
        put(out, memory::get().import_pooled(ctx.owner().id, &pool, &get(data)?.reserved)?)
    }
    call fn [cuMemPoolTrimTo plain](_z, pool: CUmemoryPool, keep: usize) {
        POOLS.get(pool.bits())?.trim(memory::get(), keep as u64);
        Ok(())
    }
    call fn [cuMemPoolSetAccess plain](_z, pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize) {
        POOLS.get(pool.bits())?;
        for access in list(map, count)? {
            if access.location.type_ == CU_MEM_LOCATION_TYPE_DEVICE {
                device(access.location.id)?;
            }
        }
        Ok(())
    }
    call fn [cuMemPoolGetAccess plain](
        _z, flags: *mut CUmemAccess_flags, pool: CUmemoryPool, location: *mut CUmemLocation
    ) {
        POOLS.get(pool.bits())?;
        get(location)?;
        put(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    }
    call fn [cuMemPoolSetAttribute plain](_z, pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) {
        let pool = POOLS.get(pool.bits())?;
        let mut state = pool.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match attr {
            CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => state.follow_events = flag(value)?,
            CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => state.opportunistic = flag(value)?,
            CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => state.internal = flag(value)?,
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => state.threshold = get(value.cast::<u64>())?,
            // They can only be set back.
            CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH | CU_MEMPOOL_ATTR_USED_MEM_HIGH if get(value.cast::<u64>())? != 0 => {
                return Err(INVALID);
            }
            CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => state.reserved.1 = state.reserved.0,
            CU_MEMPOOL_ATTR_USED_MEM_HIGH => state.used.1 = state.used.0,
            _ => return Err(INVALID),
        }
        Ok(())
    }
    call fn [cuMemPoolGetAttribute plain](_z, pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) {
        let pool = POOLS.get(pool.bits())?;
        let state = pool.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match attr {
            CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => put(value.cast(), c_int::from(state.follow_events)),
            CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => put(value.cast(), c_int::from(state.opportunistic)),
            CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => put(value.cast(), c_int::from(state.internal)),
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => put(value.cast(), state.threshold),
            CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT => put(value.cast(), state.reserved.0),
            CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => put(value.cast(), state.reserved.1),
            CU_MEMPOOL_ATTR_USED_MEM_CURRENT => put(value.cast(), state.used.0),
            CU_MEMPOOL_ATTR_USED_MEM_HIGH => put(value.cast(), state.used.1),
            _ => Err(INVALID),
        }
    }
}
