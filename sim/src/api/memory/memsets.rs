//! Memory sets.

use cuda_sys::*;

use super::is_heap;
use crate::api::*;
use crate::memory::memcpy::Memset;
use crate::memory::{self, AllocationKind};
use crate::objects::stream::{DefaultStream, resolve};
use crate::objects::task::{Task, enqueue};
use crate::status;

/// A set, checked against the allocation that it is for.
pub(crate) fn checked(
    at: u64,
    pitch: usize,
    value: u32,
    size: u32,
    width: usize,
    height: usize,
) -> Result<Memset, CUresult> {
    let set = Memset { at, pitch: pitch as u64, value, size, width: width as u64, height: height as u64 };
    if !matches!(size, 1 | 2 | 4)
        || !at.is_multiple_of(u64::from(size))
        || (height > 1 && (pitch as u64) < set.width * u64::from(size))
    {
        return Err(INVALID);
    }
    if set.width == 0 || set.height == 0 {
        return Ok(set);
    }
    let block = memory::get().find(at).ok_or(INVALID)?;
    if is_heap(&block) {
        // An H100 answers success; what it does is not known.
        status::complain("a fill was given memory of the device's heap: CUDA lets only kernels use what they allocate");
        return Err(INVALID);
    }
    if block.kind != AllocationKind::Mapped && set.span() > block.end() - at {
        return Err(INVALID);
    }
    Ok(set)
}

fn set(zero: DefaultStream, stream: Option<CUstream>, set: Memset) -> Res {
    let target = resolve(stream.map_or(0, CUstream::bits), zero)?;
    if stream.is_none() {
        capture::refuse_unsafe()?;
    }
    if set.width == 0 || set.height == 0 {
        return Ok(());
    }
    let done = enqueue(&target, Task::Set(set))?;
    // Measured: the host waits for sets of its own memory only.
    let block = memory::get().find(set.at);
    let waits = block.is_some_and(|b| b.is_host() || b.sync_memops || matches!(b.kind, AllocationKind::Managed(_)));
    if stream.is_none() && waits { done.wait(&target.ctx) } else { Ok(()) }
}

abi! {
    call fn [cuMemsetD8_v2 legacy, cuMemsetD8_v2_ptds per_thread](zero, dst: CUdeviceptr, value: u8, n: usize) {
        set(zero, None, checked(dst, 0, u32::from(value), 1, n, 1)?)
    }
    call fn [cuMemsetD16_v2 legacy, cuMemsetD16_v2_ptds per_thread](zero, dst: CUdeviceptr, value: u16, n: usize) {
        set(zero, None, checked(dst, 0, u32::from(value), 2, n, 1)?)
    }
    call fn [cuMemsetD32_v2 legacy, cuMemsetD32_v2_ptds per_thread](zero, dst: CUdeviceptr, value: c_uint, n: usize) {
        set(zero, None, checked(dst, 0, value, 4, n, 1)?)
    }
    call fn [cuMemsetD2D8_v2 legacy, cuMemsetD2D8_v2_ptds per_thread](
        zero, dst: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize
    ) {
        set(zero, None, checked(dst, pitch, u32::from(value), 1, width, height)?)
    }
    call fn [cuMemsetD2D16_v2 legacy, cuMemsetD2D16_v2_ptds per_thread](
        zero, dst: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize
    ) {
        set(zero, None, checked(dst, pitch, u32::from(value), 2, width, height)?)
    }
    call fn [cuMemsetD2D32_v2 legacy, cuMemsetD2D32_v2_ptds per_thread](
        zero, dst: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize
    ) {
        set(zero, None, checked(dst, pitch, value, 4, width, height)?)
    }
    call fn [cuMemsetD8Async legacy, cuMemsetD8Async_ptsz per_thread](
        zero, dst: CUdeviceptr, value: u8, n: usize, stream: CUstream
    ) {
        set(zero, Some(stream), checked(dst, 0, u32::from(value), 1, n, 1)?)
    }
    call fn [cuMemsetD16Async legacy, cuMemsetD16Async_ptsz per_thread](
        zero, dst: CUdeviceptr, value: u16, n: usize, stream: CUstream
    ) {
        set(zero, Some(stream), checked(dst, 0, u32::from(value), 2, n, 1)?)
    }
    call fn [cuMemsetD32Async legacy, cuMemsetD32Async_ptsz per_thread](
        zero, dst: CUdeviceptr, value: c_uint, n: usize, stream: CUstream
    ) {
        set(zero, Some(stream), checked(dst, 0, value, 4, n, 1)?)
    }
    call fn [cuMemsetD2D8Async legacy, cuMemsetD2D8Async_ptsz per_thread](
        zero, dst: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize, stream: CUstream
    ) {
        set(zero, Some(stream), checked(dst, pitch, u32::from(value), 1, width, height)?)
    }
    call fn [cuMemsetD2D16Async legacy, cuMemsetD2D16Async_ptsz per_thread](
        zero, dst: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize, stream: CUstream
    ) {
        set(zero, Some(stream), checked(dst, pitch, u32::from(value), 2, width, height)?)
    }
    call fn [cuMemsetD2D32Async legacy, cuMemsetD2D32Async_ptsz per_thread](
        zero, dst: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize, stream: CUstream
    ) {
        set(zero, Some(stream), checked(dst, pitch, value, 4, width, height)?)
    }
}
