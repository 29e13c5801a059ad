//! What moves or gives up memory without changing a byte that anyone may read: prefetch, discard,
//! advice.
//!
//! Owns the ops of prefetches. Advice makes no op.

use cuda_sys::*;
use trace::{Op, Region};

use crate::ids::streams::working_stream;
use crate::observe::Cx;

fn log_prefetch(cx: &mut Cx<'_>, region: Region, discard: bool, stream: CUstream) {
    if let Some(stream) = working_stream(cx, stream) {
        cx.log(&Op::Prefetch { stream, region, discard });
    }
}

pub(crate) unsafe fn cuMemPrefetchAsync(
    cx: &mut Cx<'_>,
    dev_ptr: CUdeviceptr,
    count: usize,
    _dst_device: CUdevice,
    stream: CUstream,
) {
    log_prefetch(cx, Region::linear(dev_ptr, count as u64), false, stream);
}

pub(crate) unsafe fn cuMemPrefetchAsync_v2(
    cx: &mut Cx<'_>,
    dev_ptr: CUdeviceptr,
    count: usize,
    _location: CUmemLocation,
    _flags: c_uint,
    stream: CUstream,
) {
    log_prefetch(cx, Region::linear(dev_ptr, count as u64), false, stream);
}

fn each_range(
    cx: &mut Cx<'_>,
    dptrs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    discard: bool,
    stream: CUstream,
) {
    if dptrs.is_null() || sizes.is_null() {
        return;
    }
    for index in 0..count {
        // SAFETY: the call has just read count entries of both arrays.
        let (ptr, len) = unsafe { (*dptrs.add(index), *sizes.add(index) as u64) };
        log_prefetch(cx, Region::linear(ptr, len), discard, stream);
    }
}

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub(crate) unsafe fn cuMemPrefetchBatchAsync(
    cx: &mut Cx<'_>,
    dptrs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    _prefetch_locs: *mut CUmemLocation,
    _prefetch_loc_idxs: *mut usize,
    _num_prefetch_locs: usize,
    _flags: u64,
    stream: CUstream,
) {
    each_range(cx, dptrs, sizes, count, false, stream);
}

pub(crate) unsafe fn cuMemDiscardBatchAsync(
    cx: &mut Cx<'_>,
    dptrs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    _flags: u64,
    stream: CUstream,
) {
    each_range(cx, dptrs, sizes, count, true, stream);
}

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub(crate) unsafe fn cuMemDiscardAndPrefetchBatchAsync(
    cx: &mut Cx<'_>,
    dptrs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    _prefetch_locs: *mut CUmemLocation,
    _prefetch_loc_idxs: *mut usize,
    _num_prefetch_locs: usize,
    _flags: u64,
    stream: CUstream,
) {
    each_range(cx, dptrs, sizes, count, true, stream);
}

pub(crate) unsafe fn cuMemAdvise(
    _cx: &mut Cx<'_>,
    _dev_ptr: CUdeviceptr,
    _count: usize,
    _advice: CUmem_advise,
    _device: CUdevice,
) {
}

pub(crate) unsafe fn cuMemAdvise_v2(
    _cx: &mut Cx<'_>,
    _dev_ptr: CUdeviceptr,
    _count: usize,
    _advice: CUmem_advise,
    _location: CUmemLocation,
) {
}
