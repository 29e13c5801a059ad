//! Fills, and what moves or gives up memory without changing a byte that anyone may read (prefetch,
//! discard).

use cuda_sys::*;
use trace::{Op, Region};

use crate::observe::context::Cx;

impl Cx<'_> {
    fn set(&mut self, dst: Region, stream: CUstream, asynchronous: bool) {
        if self.is_before() {
            return;
        }
        self.find_variable(dst.start);
        if let Some(stream) = self.working_stream(stream) {
            self.log(&Op::Set { stream, dst, asynchronous });
        }
    }

    fn prefetch(&mut self, region: Region, discard: bool, stream: CUstream) {
        if let Some(stream) = self.working_stream(stream) {
            self.log(&Op::Prefetch { stream, region, discard });
        }
    }
}

macro_rules! linear {
    ($($name:ident($ptr:ty, $value:ty, $count:ty, $size:literal $(, $stream:ident)?);)*) => {$(
        pub(crate) unsafe fn $name(
            cx: &mut Cx<'_>, dst_device: $ptr, _value: $value, n: $count $(, $stream: CUstream)?
        ) {
            let (stream, asynchronous) = linear!(@stream $($stream)?);
            cx.set(Region::linear(dst_device.into(), (n as u64).saturating_mul($size)), stream, asynchronous);
        }
    )*};
    (@stream) => { (CUstream::NULL, false) };
    (@stream $stream:ident) => { ($stream, true) };
}

linear! {
    cuMemsetD8(CUdeviceptr_v1, u8, c_uint, 1);
    cuMemsetD8_v2(CUdeviceptr, u8, usize, 1);
    cuMemsetD16(CUdeviceptr_v1, u16, c_uint, 2);
    cuMemsetD16_v2(CUdeviceptr, u16, usize, 2);
    cuMemsetD32(CUdeviceptr_v1, c_uint, c_uint, 4);
    cuMemsetD32_v2(CUdeviceptr, c_uint, usize, 4);
    cuMemsetD8Async(CUdeviceptr, u8, usize, 1, stream);
    cuMemsetD16Async(CUdeviceptr, u16, usize, 2, stream);
    cuMemsetD32Async(CUdeviceptr, c_uint, usize, 4, stream);
}

macro_rules! pitched {
    ($($name:ident($ptr:ty, $value:ty, $count:ty, $size:literal $(, $stream:ident)?);)*) => {$(
        pub(crate) unsafe fn $name(
            cx: &mut Cx<'_>, dst_device: $ptr, dst_pitch: $count, _value: $value, width: $count, height: $count
            $(, $stream: CUstream)?
        ) {
            let (stream, asynchronous) = linear!(@stream $($stream)?);
            let width = (width as u64).saturating_mul($size);
            let region = Region::pitched(dst_device.into(), width, height as u32, dst_pitch as u64);
            cx.set(region, stream, asynchronous);
        }
    )*};
}

pitched! {
    cuMemsetD2D8(CUdeviceptr_v1, u8, c_uint, 1);
    cuMemsetD2D8_v2(CUdeviceptr, u8, usize, 1);
    cuMemsetD2D16(CUdeviceptr_v1, u16, c_uint, 2);
    cuMemsetD2D16_v2(CUdeviceptr, u16, usize, 2);
    cuMemsetD2D32(CUdeviceptr_v1, c_uint, c_uint, 4);
    cuMemsetD2D32_v2(CUdeviceptr, c_uint, usize, 4);
    cuMemsetD2D8Async(CUdeviceptr, u8, usize, 1, stream);
    cuMemsetD2D16Async(CUdeviceptr, u16, usize, 2, stream);
    cuMemsetD2D32Async(CUdeviceptr, c_uint, usize, 4, stream);
}

pub(crate) unsafe fn cuMemPrefetchAsync(
    cx: &mut Cx<'_>,
    dev_ptr: CUdeviceptr,
    count: usize,
    _dst_device: CUdevice,
    stream: CUstream,
) {
    cx.prefetch(Region::linear(dev_ptr, count as u64), false, stream);
}

pub(crate) unsafe fn cuMemPrefetchAsync_v2(
    cx: &mut Cx<'_>,
    dev_ptr: CUdeviceptr,
    count: usize,
    _location: CUmemLocation,
    _flags: c_uint,
    stream: CUstream,
) {
    cx.prefetch(Region::linear(dev_ptr, count as u64), false, stream);
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
        cx.prefetch(Region::linear(ptr, len), discard, stream);
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
