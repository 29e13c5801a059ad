//! Plain, managed and host memory, and how much memory there is.

use cuda_sys::*;

use crate::api::*;
use crate::memory::{self, AllocationKind, graph_memory};
use crate::objects::stream::resolve;
use crate::objects::task::{Task, enqueue};
use crate::sched;

fn alloc(size: usize) -> Result<u64, CUresult> {
    let ctx = thread::context()?;
    if size == 0 {
        return Err(INVALID);
    }
    memory::get().alloc_device(ctx.owner().id, ctx.device, size as u64, memory::ALIGN, AllocationKind::Device)
}

fn alloc_host(size: usize, flags: u32) -> Result<u64, CUresult> {
    let ctx = thread::context()?;
    if size == 0 || flags & !(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED) != 0
    {
        return Err(INVALID);
    }
    memory::get().alloc_host(
        ctx.owner().id,
        ctx.device,
        size as u64,
        AllocationKind::Host(flags | CU_MEMHOSTALLOC_DEVICEMAP),
    )
}

/// Measured: frees of plain and host memory wait for all work of all streams.
fn wait_for_all() {
    let scheduler = sched::get();
    scheduler.wait(&scheduler.all_tails());
}

fn prefetch(dev_ptr: CUdeviceptr, count: usize, stream: CUstream, zero: crate::objects::stream::DefaultStream) -> Res {
    let block = memory::get().find(dev_ptr).ok_or(INVALID)?;
    if count == 0 || !matches!(block.kind, AllocationKind::Managed(_)) || count as u64 > block.end() - dev_ptr {
        return Err(INVALID);
    }
    // All memory is in one place: the prefetch is a point in the stream.
    enqueue(&resolve(stream.bits(), zero)?, Task::Empty).map(|_| ())
}

/// Checks where batches of prefetches go: all memory is in one place.
fn check_locations(
    count: usize,
    locations: *const CUmemLocation,
    firsts: *const usize,
    num_locations: usize,
    flags: u64,
) -> Res {
    let (locations, firsts) = (list(locations, num_locations)?, list(firsts, num_locations)?);
    let known = [CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA];
    let is_known = |location: &CUmemLocation| known.contains(&location.type_);
    let is_ordered = firsts.windows(2).all(|pair| pair[0] < pair[1]);
    let is_right = firsts.first() == Some(&0) && is_ordered && firsts.iter().all(|&first| first < count);
    if flags != 0 || !is_right || !locations.iter().all(is_known) { Err(INVALID) } else { Ok(()) }
}

/// A batch of prefetches or discards. A discarded range keeps its bytes here: what a program reads
/// of it is undefined (cuda.h, `cuMemDiscardBatchAsync`).
fn batch(
    dptrs: *const CUdeviceptr,
    sizes: *const usize,
    count: usize,
    stream: CUstream,
    zero: crate::objects::stream::DefaultStream,
) -> Res {
    if count == 0 || stream.is_null() {
        return Err(INVALID);
    }
    for (at, size) in list(dptrs, count)?.into_iter().zip(list(sizes, count)?) {
        prefetch(at, size, stream, zero)?;
    }
    Ok(())
}

fn advise(dev_ptr: CUdeviceptr, count: usize) -> Res {
    let block = memory::get().find(dev_ptr).ok_or(INVALID)?;
    if !matches!(block.kind, AllocationKind::Managed(_)) || count as u64 > block.end() - dev_ptr {
        return Err(INVALID);
    }
    Ok(())
}

abi! {
    uncaptured fn [cuMemAlloc_v2 plain](_z, dptr: *mut CUdeviceptr, size: usize) {
        put(dptr, alloc(size)?)
    }
    uncaptured fn [cuMemAllocPitch_v2 plain](
        _z, dptr: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element: c_uint
    ) {
        if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(INVALID);
        }
        let row = width.checked_next_multiple_of(512).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        put(dptr, alloc(row.checked_mul(height).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?)?)?;
        put(pitch, row)
    }
    uncaptured fn [cuMemFree_v2 plain](_z, dptr: CUdeviceptr) {
        if dptr == 0 {
            return Ok(());
        }
        let memory = memory::get();
        let block = memory.find(dptr).filter(|block| block.at == dptr).ok_or(INVALID)?;
        match block.kind {
            AllocationKind::Pool(_) => {
                // Returns at once. The program may not use the memory any more, so it is free
                // behind all that is under way.
                let block = memory.take_pool_block(dptr).ok_or(INVALID)?;
                let stream = resolve(1, crate::objects::stream::DefaultStream::Legacy)?;
                let op = sched::get().join(None, &sched::get().all_tails());
                memory.give_pool(&block, stream.id, op);
                Ok(())
            }
            AllocationKind::Ipc if memory.is_pooled_elsewhere(dptr) => {
                wait_for_all();
                memory.close(dptr)
            }
            // The memory stays the graph's; its next launch may allocate it again.
            AllocationKind::Graph => graph_memory::free(dptr),
            AllocationKind::Device => {
                wait_for_all();
                memory.free_device(dptr)
            }
            AllocationKind::Managed(_) => {
                wait_for_all();
                memory.free_host(dptr, true)
            }
            _ => Err(INVALID),
        }
    }
    uncaptured fn [cuMemAllocHost_v2 plain](_z, pp: *mut *mut c_void, size: usize) {
        put(pp, alloc_host(size, 0)? as *mut c_void)
    }
    uncaptured fn [cuMemHostAlloc plain](_z, pp: *mut *mut c_void, size: usize, flags: c_uint) {
        put(pp, alloc_host(size, flags)? as *mut c_void)
    }
    uncaptured fn [cuMemFreeHost plain](_z, p: *mut c_void) {
        if p.is_null() {
            return Ok(());
        }
        let memory = memory::get();
        let known = memory.find(p as u64).is_some_and(|b| b.at == p as u64 && matches!(b.kind, AllocationKind::Host(_)));
        if !known {
            return Err(INVALID);
        }
        wait_for_all();
        memory.free_host(p as u64, false)
    }
    call fn [cuMemHostRegister plain, cuMemHostRegister_v2 plain](_z, p: *mut c_void, size: usize, flags: c_uint) {
        let ctx = thread::context()?;
        if p.is_null() || size == 0 || flags & !0xf != 0 {
            return Err(INVALID);
        }
        // All memory that the host registers is mapped too.
        memory::get().register(ctx.owner().id, ctx.device, p as u64, size as u64, flags | CU_MEMHOSTREGISTER_DEVICEMAP)
    }
    uncaptured fn [cuMemHostUnregister plain](_z, p: *mut c_void) {
        wait_for_all();
        memory::get().unregister(p as u64)
    }
    call fn [cuMemHostGetDevicePointer_v2 plain](_z, pdptr: *mut CUdeviceptr, p: *mut c_void, flags: c_uint) {
        let block = memory::get().find(p as u64).ok_or(INVALID)?;
        if !block.is_host() || flags != 0 {
            return Err(INVALID);
        }
        put(pdptr, p as u64)
    }
    call fn [cuMemHostGetFlags plain](_z, flags: *mut c_uint, p: *mut c_void) {
        match memory::get().find(p as u64).ok_or(INVALID)?.kind {
            AllocationKind::Host(set) | AllocationKind::Registered(set) => put(flags, set),
            _ => Err(INVALID),
        }
    }
    uncaptured fn [cuMemAllocManaged plain](_z, dptr: *mut CUdeviceptr, size: usize, flags: c_uint) {
        let ctx = thread::context()?;
        if size == 0 || !matches!(flags, 1 | 2) {
            return Err(INVALID);
        }
        put(dptr, memory::get().alloc_host(ctx.owner().id, ctx.device, size as u64, AllocationKind::Managed(flags))?)
    }
    call fn [cuMemGetInfo plain](_z, free: *mut usize, total: *mut usize) {
        let (left, all) = memory::get().info(thread::context()?.device);
        put_if(free, left as usize);
        put_if(total, all as usize);
        Ok(())
    }
    call fn [cuMemGetInfo_v2 plain](_z, free: *mut usize, total: *mut usize) {
        let (left, all) = memory::get().info(thread::context()?.device);
        put_if(free, left as usize);
        put_if(total, all as usize);
        Ok(())
    }
    call fn [cuMemPrefetchAsync legacy, cuMemPrefetchAsync_ptsz per_thread](
        zero, dev_ptr: CUdeviceptr, count: usize, dev: CUdevice, stream: CUstream
    ) {
        prefetch(dev_ptr, count, stream, zero)
    }
    call fn [cuMemPrefetchAsync_v2 legacy, cuMemPrefetchAsync_v2_ptsz per_thread](
        zero, dev_ptr: CUdeviceptr, count: usize, location: CUmemLocation, flags: c_uint, stream: CUstream
    ) {
        prefetch(dev_ptr, count, stream, zero)
    }
    call fn [cuMemAdvise plain](_z, dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, dev: CUdevice) {
        advise(dev_ptr, count)
    }
    call fn [cuMemAdvise_v2 plain](
        _z, dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, location: CUmemLocation
    ) {
        advise(dev_ptr, count)
    }
    call fn [cuMemPrefetchBatchAsync legacy, cuMemPrefetchBatchAsync_ptsz per_thread](
        zero, dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, locations: *mut CUmemLocation,
        firsts: *mut usize, num_locations: usize, flags: u64, stream: CUstream
    ) {
        check_locations(count, locations, firsts, num_locations, flags)?;
        batch(dptrs, sizes, count, stream, zero)
    }
    call fn [cuMemDiscardBatchAsync legacy, cuMemDiscardBatchAsync_ptsz per_thread](
        zero, dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, flags: u64, stream: CUstream
    ) {
        if flags != 0 {
            return Err(INVALID);
        }
        batch(dptrs, sizes, count, stream, zero)
    }
    call fn [cuMemDiscardAndPrefetchBatchAsync legacy, cuMemDiscardAndPrefetchBatchAsync_ptsz per_thread](
        zero, dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, locations: *mut CUmemLocation,
        firsts: *mut usize, num_locations: usize, flags: u64, stream: CUstream
    ) {
        check_locations(count, locations, firsts, num_locations, flags)?;
        batch(dptrs, sizes, count, stream, zero)
    }
}
