//! Copies, and which of them the host waits for, as `tests/gpu/programs/what_waits.cu` measured it.
//!
//! What a description of a copy means is in `copy_descriptors`.

use std::sync::Arc;

use cuda_sys::*;

use super::copy_descriptors::*;
use super::is_heap;
use crate::api::*;
use crate::memory::memcpy::{CopyEnd, Memcpy};
use crate::memory::{self, AllocationKind};
use crate::objects::stream::{DefaultStream, Stream, resolve};
use crate::objects::task::{Task, enqueue};
use crate::sched;
use crate::status;

/// What one end of a copy is, as far as waiting goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CopyMemory {
    /// Device, managed, mapped memory and arrays.
    Device,
    /// Memory of the host that the device can reach.
    Pinned,
    /// Any other memory of the host.
    Pageable,
}

fn place(side: &CopyEnd, width: u64, height: u64, depth: u64) -> Result<CopyMemory, CUresult> {
    if side.keep.is_some() {
        return Ok(CopyMemory::Device);
    }
    let memory = memory::get();
    let (at, len) = side.span(width, height, depth);
    match memory.find(at) {
        Some(block) => {
            if is_heap(&block) {
                status::say(
                    "a copy was given memory of the device's heap: CUDA lets only kernels use what they allocate",
                );
                return Err(INVALID);
            }
            if len > block.end() - at && block.kind != AllocationKind::Mapped {
                return Err(INVALID);
            }
            Ok(if block.is_host() { CopyMemory::Pinned } else { CopyMemory::Device })
        }
        // No program has memory above 2^56, whatever the processor.
        None if memory.space.contains(at) || at == 0 || at.saturating_add(len) > 1 << 56 => Err(INVALID),
        None => Ok(CopyMemory::Pageable),
    }
}

fn fails(_: crate::memory::address_space::UnmappedAddress) -> CUresult {
    INVALID
}

/// A copy in a stream.
pub(crate) fn copy_async(stream: &Arc<Stream>, copy: Memcpy) -> Res {
    if copy.bytes() == 0 {
        return Ok(());
    }
    let src = place(&copy.src, copy.width, copy.height, copy.depth)?;
    let dst = place(&copy.dst, copy.width, copy.height, copy.depth)?;
    if capture::of(stream).is_some() {
        return enqueue(stream, Task::Copy(Box::new(copy))).map(|_| ());
    }
    let memory = memory::get();
    match (src, dst) {
        (CopyMemory::Pageable, CopyMemory::Device) => {
            // Staged: the source has been read when the call returns, the destination is written in
            // stream order.
            let staged = Arc::new(copy.stage(memory.space).map_err(fails)?);
            enqueue(stream, Task::Staged(Box::new(copy), staged)).map(|_| ())
        }
        (CopyMemory::Device, CopyMemory::Pageable)
        | (CopyMemory::Pageable | CopyMemory::Pinned, CopyMemory::Pageable | CopyMemory::Pinned) => {
            enqueue(stream, Task::Copy(Box::new(copy)))?.wait(&stream.ctx)
        }
        (CopyMemory::Device, CopyMemory::Device | CopyMemory::Pinned) | (CopyMemory::Pinned, CopyMemory::Device) => {
            enqueue(stream, Task::Copy(Box::new(copy))).map(|_| ())
        }
    }
}

/// A copy that the host waits for, where CUDA does so.
fn copy_sync(zero: DefaultStream, copy: Memcpy) -> Res {
    let stream = resolve(0, zero)?;
    capture::refuse_unsafe()?;
    if copy.bytes() == 0 {
        return Ok(());
    }
    let src = place(&copy.src, copy.width, copy.height, copy.depth)?;
    let dst = place(&copy.dst, copy.width, copy.height, copy.depth)?;
    let memory = memory::get();
    match (src, dst) {
        (CopyMemory::Device, CopyMemory::Device) => {
            let marked = |side: &CopyEnd| memory.find(side.at).is_some_and(|block| block.sync_memops);
            let sync = marked(&copy.src) || marked(&copy.dst);
            let done = enqueue(&stream, Task::Copy(Box::new(copy)))?;
            if sync { done.wait(&stream.ctx) } else { Ok(()) }
        }
        (CopyMemory::Pageable, CopyMemory::Device) => {
            // The stream is waited for, the source staged; the write to the destination may still
            // be under way when the call returns.
            sched::get().wait(&sched::get().pending_before(stream.id));
            stream.ctx.check()?;
            let staged = Arc::new(copy.stage(memory.space).map_err(fails)?);
            enqueue(&stream, Task::Staged(Box::new(copy), staged)).map(|_| ())
        }
        _ => enqueue(&stream, Task::Copy(Box::new(copy)))?.wait(&stream.ctx),
    }
}

fn batch(stream: CUstream, zero: DefaultStream, copies: Vec<Memcpy>, orders: &[CUmemcpySrcAccessOrder]) -> Res {
    if stream.is_null() {
        return Err(INVALID);
    }
    let stream = resolve(stream.bits(), zero)?;
    if capture::of(&stream).is_some() {
        return enqueue(&stream, Task::Batch(copies)).map(|_| ());
    }
    // Unordered among themselves: each is a step of its own between two points of the stream. A
    // source that is read during the call is staged.
    let memory = memory::get();
    let mut plan = crate::objects::task::Plan::default();
    for (copy, order) in copies.into_iter().zip(orders) {
        let pageable = place(&copy.src, copy.width, copy.height, copy.depth)? == CopyMemory::Pageable;
        // A driver 580 waits for the stream before it reads such a source (measured on an H200,
        // tests/gpu/programs/batch_sources.h200.txt): earlier work may write there.
        if pageable && *order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM {
            sched::get().wait(&sched::get().pending_before(stream.id));
            stream.ctx.check()?;
        }
        let task = if pageable || *order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL {
            let staged = Arc::new(copy.stage(memory.space).map_err(fails)?);
            Task::Staged(Box::new(copy), staged)
        } else {
            Task::Copy(Box::new(copy))
        };
        plan.add(&stream.ctx, &task, &[]);
    }
    capture::add(&stream, &Task::Empty)?;
    plan.submit(stream.id, &[]);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn batch_1d(
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attrs: *mut CUmemcpyAttributes,
    attrs_idxs: *mut usize,
    num_attrs: usize,
    stream: CUstream,
    zero: DefaultStream,
) -> Res {
    let (dsts, srcs, sizes) = (list(dsts, count)?, list(srcs, count)?, list(sizes, count)?);
    let (attrs, firsts) = (list(attrs, num_attrs)?, list(attrs_idxs, num_attrs)?);
    if count == 0 || num_attrs == 0 || firsts.first() != Some(&0) {
        return Err(INVALID);
    }
    let order = |n: usize| {
        let which = firsts.iter().rposition(|&first| first <= n).unwrap_or(0);
        attrs[which].srcAccessOrder
    };
    let copies: Vec<Memcpy> = (0..count).map(|n| linear(dsts[n], srcs[n], sizes[n])).collect();
    for copy in &copies {
        place(&copy.src, copy.width, 1, 1)?;
        place(&copy.dst, copy.width, 1, 1)?;
    }
    batch(stream, zero, copies, &(0..count).map(order).collect::<Vec<_>>())
}

fn batch_3d(num_ops: usize, op_list: *mut CUDA_MEMCPY3D_BATCH_OP, stream: CUstream, zero: DefaultStream) -> Res {
    let ops = list(op_list, num_ops)?;
    let mut copies = Vec::with_capacity(ops.len());
    for op in &ops {
        let (mut src, from) = operand(&op.src, op.extent)?;
        let (mut dst, to) = operand(&op.dst, op.extent)?;
        // The extent counts texels of the arrays involved, bytes when there are none.
        let texel = from.max(to).max(1);
        for side in [&mut src, &mut dst] {
            if side.keep.is_none() {
                side.pitch *= texel;
                side.layer *= texel;
            }
        }
        let extent = op.extent;
        copies.push(checked(Memcpy {
            dst,
            src,
            width: extent.width as u64 * texel,
            height: extent.height as u64,
            depth: extent.depth as u64,
        })?);
    }
    batch(stream, zero, copies, &ops.iter().map(|op| op.srcAccessOrder).collect::<Vec<_>>())
}

abi! {
    call fn [cuMemcpy legacy, cuMemcpy_ptds per_thread](zero, dst: CUdeviceptr, src: CUdeviceptr, n: usize) {
        copy_sync(zero, linear(dst, src, n))
    }
    call fn [cuMemcpyHtoD_v2 legacy, cuMemcpyHtoD_v2_ptds per_thread](zero, dst: CUdeviceptr, src: *const c_void, n: usize) {
        copy_sync(zero, linear(dst, src as u64, n))
    }
    call fn [cuMemcpyDtoH_v2 legacy, cuMemcpyDtoH_v2_ptds per_thread](zero, dst: *mut c_void, src: CUdeviceptr, n: usize) {
        copy_sync(zero, linear(dst as u64, src, n))
    }
    call fn [cuMemcpyDtoD_v2 legacy, cuMemcpyDtoD_v2_ptds per_thread](zero, dst: CUdeviceptr, src: CUdeviceptr, n: usize) {
        copy_sync(zero, linear(dst, src, n))
    }
    call fn [cuMemcpyDtoA_v2 legacy, cuMemcpyDtoA_v2_ptds per_thread](
        zero, dst: CUarray, offset: usize, src: CUdeviceptr, n: usize
    ) {
        copy_sync(zero, sides(array_at(dst, offset)?, CopyEnd::linear(src), n)?)
    }
    call fn [cuMemcpyAtoD_v2 legacy, cuMemcpyAtoD_v2_ptds per_thread](
        zero, dst: CUdeviceptr, src: CUarray, offset: usize, n: usize
    ) {
        copy_sync(zero, sides(CopyEnd::linear(dst), array_at(src, offset)?, n)?)
    }
    call fn [cuMemcpyHtoA_v2 legacy, cuMemcpyHtoA_v2_ptds per_thread](
        zero, dst: CUarray, offset: usize, src: *const c_void, n: usize
    ) {
        copy_sync(zero, sides(array_at(dst, offset)?, CopyEnd::linear(src as u64), n)?)
    }
    call fn [cuMemcpyAtoH_v2 legacy, cuMemcpyAtoH_v2_ptds per_thread](
        zero, dst: *mut c_void, src: CUarray, offset: usize, n: usize
    ) {
        copy_sync(zero, sides(CopyEnd::linear(dst as u64), array_at(src, offset)?, n)?)
    }
    call fn [cuMemcpyAtoA_v2 legacy, cuMemcpyAtoA_v2_ptds per_thread](
        zero, dst: CUarray, dst_offset: usize, src: CUarray, src_offset: usize, n: usize
    ) {
        copy_sync(zero, sides(array_at(dst, dst_offset)?, array_at(src, src_offset)?, n)?)
    }
    call fn [cuMemcpyHtoAAsync_v2 legacy, cuMemcpyHtoAAsync_v2_ptsz per_thread](
        zero, dst: CUarray, offset: usize, src: *const c_void, n: usize, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, sides(array_at(dst, offset)?, CopyEnd::linear(src as u64), n)?)
    }
    call fn [cuMemcpyAtoHAsync_v2 legacy, cuMemcpyAtoHAsync_v2_ptsz per_thread](
        zero, dst: *mut c_void, src: CUarray, offset: usize, n: usize, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, sides(CopyEnd::linear(dst as u64), array_at(src, offset)?, n)?)
    }
    call fn [
        cuMemcpy2D_v2 legacy, cuMemcpy2D_v2_ptds per_thread,
        cuMemcpy2DUnaligned_v2 legacy, cuMemcpy2DUnaligned_v2_ptds per_thread,
    ](zero, copy: *const CUDA_MEMCPY2D) {
        copy_sync(zero, copy_2d(&get(copy)?)?)
    }
    call fn [cuMemcpy3D_v2 legacy, cuMemcpy3D_v2_ptds per_thread](zero, copy: *const CUDA_MEMCPY3D) {
        copy_sync(zero, copy_3d(&get(copy)?)?)
    }
    call fn [cuMemcpy3DPeer legacy, cuMemcpy3DPeer_ptds per_thread](zero, copy: *const CUDA_MEMCPY3D_PEER) {
        copy_sync(zero, copy_3d_peer(&get(copy)?)?)
    }
    call fn [cuMemcpyPeer legacy, cuMemcpyPeer_ptds per_thread](
        zero, dst: CUdeviceptr, dst_ctx: CUcontext, src: CUdeviceptr, src_ctx: CUcontext, n: usize
    ) {
        copy_sync(zero, linear(dst, src, n))
    }
    call fn [cuMemcpyAsync legacy, cuMemcpyAsync_ptsz per_thread](
        zero, dst: CUdeviceptr, src: CUdeviceptr, n: usize, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, linear(dst, src, n))
    }
    call fn [cuMemcpyHtoDAsync_v2 legacy, cuMemcpyHtoDAsync_v2_ptsz per_thread](
        zero, dst: CUdeviceptr, src: *const c_void, n: usize, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, linear(dst, src as u64, n))
    }
    call fn [cuMemcpyDtoHAsync_v2 legacy, cuMemcpyDtoHAsync_v2_ptsz per_thread](
        zero, dst: *mut c_void, src: CUdeviceptr, n: usize, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, linear(dst as u64, src, n))
    }
    call fn [cuMemcpyDtoDAsync_v2 legacy, cuMemcpyDtoDAsync_v2_ptsz per_thread](
        zero, dst: CUdeviceptr, src: CUdeviceptr, n: usize, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, linear(dst, src, n))
    }
    call fn [cuMemcpy2DAsync_v2 legacy, cuMemcpy2DAsync_v2_ptsz per_thread](
        zero, copy: *const CUDA_MEMCPY2D, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, copy_2d(&get(copy)?)?)
    }
    call fn [cuMemcpy3DAsync_v2 legacy, cuMemcpy3DAsync_v2_ptsz per_thread](
        zero, copy: *const CUDA_MEMCPY3D, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, copy_3d(&get(copy)?)?)
    }
    call fn [cuMemcpy3DPeerAsync legacy, cuMemcpy3DPeerAsync_ptsz per_thread](
        zero, copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, copy_3d_peer(&get(copy)?)?)
    }
    call fn [cuMemcpyPeerAsync legacy, cuMemcpyPeerAsync_ptsz per_thread](
        zero, dst: CUdeviceptr, dst_ctx: CUcontext, src: CUdeviceptr, src_ctx: CUcontext, n: usize, stream: CUstream
    ) {
        copy_async(&resolve(stream.bits(), zero)?, linear(dst, src, n))
    }
    call fn [cuMemcpyBatchAsync legacy, cuMemcpyBatchAsync_ptsz per_thread](
        zero, dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize,
        attrs: *mut CUmemcpyAttributes, attrs_idxs: *mut usize, num_attrs: usize, fail_idx: *mut usize, stream: CUstream
    ) {
        let done = batch_1d(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, stream, zero);
        if done.is_err() {
            put_if(fail_idx, usize::MAX);
        }
        done
    }
    call fn [cuMemcpyBatchAsync_v2 legacy, cuMemcpyBatchAsync_v2_ptsz per_thread](
        zero, dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize,
        attrs: *mut CUmemcpyAttributes, attrs_idxs: *mut usize, num_attrs: usize, stream: CUstream
    ) {
        batch_1d(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, stream, zero)
    }
    call fn [cuMemcpy3DBatchAsync legacy, cuMemcpy3DBatchAsync_ptsz per_thread](
        zero, num_ops: usize, op_list: *mut CUDA_MEMCPY3D_BATCH_OP, fail_idx: *mut usize, flags: u64, stream: CUstream
    ) {
        let done = batch_3d(num_ops, op_list, stream, zero);
        if done.is_err() {
            put_if(fail_idx, usize::MAX);
        }
        done
    }
    call fn [cuMemcpy3DBatchAsync_v2 legacy, cuMemcpy3DBatchAsync_v2_ptsz per_thread](
        zero, num_ops: usize, op_list: *mut CUDA_MEMCPY3D_BATCH_OP, flags: u64, stream: CUstream
    ) {
        batch_3d(num_ops, op_list, stream, zero)
    }
    call fn [cuMemcpyWithAttributesAsync legacy, cuMemcpyWithAttributesAsync_ptsz per_thread](
        zero, dst: CUdeviceptr, src: CUdeviceptr, n: usize, attr: *mut CUmemcpyAttributes, stream: CUstream
    ) {
        let order = get(attr)?.srcAccessOrder;
        batch(stream, zero, vec![linear(dst, src, n)], &[order])
    }
}
