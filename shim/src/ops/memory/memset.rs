//! Fills (`cuMemset*`), linear and pitched.
//!
//! Owns the region that each of them writes, and what it leaves there. Fills of graphs are in
//! [`crate::ops::graphs::node_ops`].

use cuda_sys::*;
use trace::{Op, Region};

use crate::ids::streams::working_stream;
use crate::ids::variables::find_variable;
use crate::observe::Cx;
use crate::observe::host_watch::uses_region;

#[unsafe(link_section = "streamsan_hot")]
fn log_memset(cx: &mut Cx<'_>, dst: Region, (value, element): (u32, u8), stream: CUstream, asynchronous: bool) {
    if cx.is_before() {
        return;
    }
    find_variable(cx, dst.start);
    if let Some(stream) = working_stream(cx, stream) {
        let epoch = cx.log_both(&Op::Set { stream, dst, asynchronous }, &Op::Filled { dst, value, element });
        uses_region(cx, epoch, &dst, true);
    }
}

macro_rules! linear {
    ($($name:ident($ptr:ty, $value:ty, $count:ty, $size:literal $(, $stream:ident)?);)*) => {$(
        pub(crate) unsafe fn $name(
            cx: &mut Cx<'_>, dst_device: $ptr, value: $value, n: $count $(, $stream: CUstream)?
        ) {
            let (stream, asynchronous) = linear!(@stream $($stream)?);
            let dst = Region::linear(dst_device.into(), (n as u64).saturating_mul($size));
            log_memset(cx, dst, (value.into(), $size), stream, asynchronous);
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
            cx: &mut Cx<'_>, dst_device: $ptr, dst_pitch: $count, value: $value, width: $count, height: $count
            $(, $stream: CUstream)?
        ) {
            let (stream, asynchronous) = linear!(@stream $($stream)?);
            let width = (width as u64).saturating_mul($size);
            let region = Region::pitched(dst_device.into(), width, height as u32, dst_pitch as u64);
            log_memset(cx, region, (value.into(), $size), stream, asynchronous);
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
