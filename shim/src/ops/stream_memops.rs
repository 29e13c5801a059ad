//! Stream memory operations: writes of values and waits for them, single and in batches.
//!
//! Owns reading the descriptors of a batch, which nodes of graphs use too ([`super::graphs`]).

use cuda_sys::*;
use trace::{Op, StreamId, WaitCompare};

use crate::ids::streams::working_stream;
use crate::observe::Cx;

fn write_op(stream: StreamId, address: u64, value: u64, width: u8, flags: u32) -> Op<'static> {
    Op::WriteValue { stream, address, value, width, barrier: flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER == 0 }
}

fn wait_op(stream: StreamId, address: u64, value: u64, width: u8, flags: u32) -> Op<'static> {
    // The comparisons are numbered from 0; NOR is the last one.
    let compare = match flags & CU_STREAM_WAIT_VALUE_NOR {
        CU_STREAM_WAIT_VALUE_GEQ => WaitCompare::GreaterEqual,
        CU_STREAM_WAIT_VALUE_EQ => WaitCompare::Equal,
        CU_STREAM_WAIT_VALUE_AND => WaitCompare::And,
        _ => WaitCompare::Nor,
    };
    Op::WaitValue { stream, address, value, width, compare }
}

fn write(cx: &mut Cx<'_>, stream: CUstream, address: u64, value: u64, width: u8, flags: u32) {
    if let Some(stream) = working_stream(cx, stream) {
        cx.log(&write_op(stream, address, value, width, flags));
    }
}

fn wait(cx: &mut Cx<'_>, stream: CUstream, address: u64, value: u64, width: u8, flags: u32) {
    if let Some(stream) = working_stream(cx, stream) {
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
pub(crate) enum BatchMember {
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
pub(crate) unsafe fn batch_member(
    params: *const CUstreamBatchMemOpParams,
    index: usize,
    stream: StreamId,
) -> BatchMember {
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
    match CUstreamBatchMemOpType(operation) {
        CU_STREAM_MEM_OP_WAIT_VALUE_32 => BatchMember::Op(wait_op(stream, address, value & 0xffff_ffff, 4, flags)),
        CU_STREAM_MEM_OP_WAIT_VALUE_64 => BatchMember::Op(wait_op(stream, address, value, 8, flags)),
        CU_STREAM_MEM_OP_WRITE_VALUE_32 => BatchMember::Op(write_op(stream, address, value & 0xffff_ffff, 4, flags)),
        CU_STREAM_MEM_OP_WRITE_VALUE_64 => BatchMember::Op(write_op(stream, address, value, 8, flags)),
        CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES | CU_STREAM_MEM_OP_BARRIER => BatchMember::Nothing,
        _ => BatchMember::Unknown,
    }
}

/// A batch runs in the order of its array (cuda.h, cuStreamBatchMemOp).
///
/// # Safety
/// `params` points to `count` descriptors that the driver has accepted.
unsafe fn batch(cx: &mut Cx<'_>, stream: CUstream, count: c_uint, params: *mut CUstreamBatchMemOpParams) {
    let Some(stream) = working_stream(cx, stream) else { return };
    for index in 0..count as usize {
        // SAFETY: forwarded from the caller.
        match unsafe { batch_member(params, index, stream) } {
            BatchMember::Op(op) => drop(cx.log(&op)),
            BatchMember::Nothing => {}
            BatchMember::Unknown => cx.not_modelled(),
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
