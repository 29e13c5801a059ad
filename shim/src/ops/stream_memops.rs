//! Stream memory operations.

use cuda_sys::*;
use trace::{Op, StreamId, WaitCompare};

use crate::observe::context::Cx;

fn write_op(stream: StreamId, address: u64, value: u64, width: u8, flags: u32) -> Op<'static> {
    const NO_MEMORY_BARRIER: u32 = 1;
    Op::WriteValue { stream, address, value, width, barrier: flags & NO_MEMORY_BARRIER == 0 }
}

fn wait_op(stream: StreamId, address: u64, value: u64, width: u8, flags: u32) -> Op<'static> {
    let compare = match flags & 3 {
        0 => WaitCompare::GreaterEqual,
        1 => WaitCompare::Equal,
        2 => WaitCompare::And,
        _ => WaitCompare::Nor,
    };
    Op::WaitValue { stream, address, value, width, compare }
}

fn write(cx: &mut Cx<'_>, stream: CUstream, address: u64, value: u64, width: u8, flags: u32) {
    if let Some(stream) = cx.working_stream(stream) {
        cx.log(&write_op(stream, address, value, width, flags));
    }
}

fn wait(cx: &mut Cx<'_>, stream: CUstream, address: u64, value: u64, width: u8, flags: u32) {
    if let Some(stream) = cx.working_stream(stream) {
        cx.log(&wait_op(stream, address, value, width, flags));
    }
}

macro_rules! value_ops {
    ($($name:ident($value:ty, $width:literal) $to:ident;)*) => {$(
        pub(crate) unsafe fn $name(
            cx: &mut Cx<'_>, stream: CUstream, addr: CUdeviceptr, value: $value, flags: c_uint,
        ) {
            $to(cx, stream, addr, value.into(), $width, flags);
        }
    )*};
}

value_ops! {
    cuStreamWaitValue32(u32, 4) wait;
    cuStreamWaitValue32_v2(u32, 4) wait;
    cuStreamWaitValue64(u64, 8) wait;
    cuStreamWaitValue64_v2(u64, 8) wait;
    cuStreamWriteValue32(u32, 4) write;
    cuStreamWriteValue32_v2(u32, 4) write;
    cuStreamWriteValue64(u64, 8) write;
    cuStreamWriteValue64_v2(u64, 8) write;
}

/// One operation of a batch.
pub(super) enum Member {
    /// A write or a wait.
    Op(Op<'static>),
    /// A barrier or a flush, which order no more than the array does.
    Nothing,
    /// Another kind.
    Unknown,
}

/// Reads one operation of a batch.
///
/// # Safety
/// `params` points to more than `index` descriptors that the driver has accepted.
pub(super) unsafe fn member(params: *const CUstreamBatchMemOpParams, index: usize, stream: StreamId) -> Member {
    // SAFETY: forwarded from the caller; the operation says which member is valid, and waits and
    // writes share their layout: operation, address, value, flags.
    let (operation, address, value, flags) = unsafe {
        let raw = params.add(index).cast::<u8>();
        (
            raw.cast::<u32>().read_unaligned(),
            raw.add(8).cast::<u64>().read_unaligned(),
            raw.add(16).cast::<u64>().read_unaligned(),
            raw.add(24).cast::<u32>().read_unaligned(),
        )
    };
    match operation {
        1 => Member::Op(wait_op(stream, address, value & 0xffff_ffff, 4, flags)),
        4 => Member::Op(wait_op(stream, address, value, 8, flags)),
        2 => Member::Op(write_op(stream, address, value & 0xffff_ffff, 4, flags)),
        5 => Member::Op(write_op(stream, address, value, 8, flags)),
        3 | 6 => Member::Nothing,
        _ => Member::Unknown,
    }
}

/// A batch runs in the order of its array (cuda.h, cuStreamBatchMemOp).
///
/// # Safety
/// `params` points to `count` descriptors that the driver has accepted.
unsafe fn batch(cx: &mut Cx<'_>, stream: CUstream, count: c_uint, params: *mut CUstreamBatchMemOpParams) {
    let Some(stream) = cx.working_stream(stream) else { return };
    for index in 0..count as usize {
        // SAFETY: forwarded from the caller.
        match unsafe { member(params, index, stream) } {
            Member::Op(op) => drop(cx.log(&op)),
            Member::Nothing => {}
            Member::Unknown => cx.not_modelled(),
        }
    }
}

pub(crate) unsafe fn cuStreamBatchMemOp(
    cx: &mut Cx<'_>,
    stream: CUstream,
    count: c_uint,
    param_array: *mut CUstreamBatchMemOpParams,
    _flags: c_uint,
) {
    // SAFETY: the call has accepted the array.
    unsafe { batch(cx, stream, count, param_array) };
}

pub(crate) unsafe fn cuStreamBatchMemOp_v2(
    cx: &mut Cx<'_>,
    stream: CUstream,
    count: c_uint,
    param_array: *mut CUstreamBatchMemOpParams,
    _flags: c_uint,
) {
    // SAFETY: the call has accepted the array.
    unsafe { batch(cx, stream, count, param_array) };
}
