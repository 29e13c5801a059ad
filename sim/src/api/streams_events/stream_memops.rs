//! Stream memory operations: values in memory that streams write and wait for.

use cuda_sys::*;

use crate::api::streams_events::streams::stream_of;
use crate::api::*;
use crate::objects::task::{MemOp, Task, enqueue};

fn mem_ops(list: &[CUstreamBatchMemOpParams]) -> Result<Vec<MemOp>, CUresult> {
    let mut ops = Vec::with_capacity(list.len());
    for params in list {
        // SAFETY: every member of the union begins with the operation, and all are plain numbers.
        let op = unsafe {
            match params.operation {
                CU_STREAM_MEM_OP_WAIT_VALUE_32 => MemOp::Wait(
                    params.waitValue.address,
                    u64::from(params.waitValue.anon1.value),
                    4,
                    params.waitValue.flags,
                ),
                CU_STREAM_MEM_OP_WAIT_VALUE_64 => {
                    MemOp::Wait(params.waitValue.address, params.waitValue.anon1.value64, 8, params.waitValue.flags)
                }
                CU_STREAM_MEM_OP_WRITE_VALUE_32 => {
                    MemOp::Write(params.writeValue.address, u64::from(params.writeValue.anon1.value), 4)
                }
                CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
                    MemOp::Write(params.writeValue.address, params.writeValue.anon1.value64, 8)
                }
                CU_STREAM_MEM_OP_BARRIER | CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => MemOp::Barrier,
                CU_STREAM_MEM_OP_ATOMIC_REDUCTION => {
                    let reduction = params.atomicReduction;
                    let size = if reduction.dataType == CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 { 8 } else { 4 };
                    MemOp::Reduce(reduction.address, reduction.value, size, reduction.reductionOp)
                }
                _ => return Err(INVALID),
            }
        };
        if let MemOp::Wait(at, _, size, _) | MemOp::Write(at, _, size) | MemOp::Reduce(at, _, size, _) = op {
            check_value_address(at, size)?;
        }
        ops.push(op);
    }
    Ok(ops)
}

fn check_value_address(at: u64, size: u32) -> Res {
    let known = crate::memory::get().find(at).is_some();
    if known && at.is_multiple_of(u64::from(size)) { Ok(()) } else { Err(INVALID) }
}

/// Checked operations for a graph node.
pub(crate) fn batch_task(list: &[CUstreamBatchMemOpParams]) -> Result<Task, CUresult> {
    Ok(Task::Memory(mem_ops(list)?))
}

fn no_flags_but(flags: c_uint, known: c_uint) -> Res {
    if flags & !known != 0 { Err(INVALID) } else { Ok(()) }
}

fn value_op(stream: CUstream, zero: crate::objects::stream::DefaultStream, op: MemOp) -> Res {
    if let MemOp::Wait(at, _, size, _) | MemOp::Write(at, _, size) = op {
        check_value_address(at, size)?;
    }
    enqueue(&stream_of(stream, zero)?, Task::Memory(vec![op])).map(|_| ())
}

abi! {
    call fn [
        cuStreamWriteValue32 legacy, cuStreamWriteValue32_ptsz per_thread,
        cuStreamWriteValue32_v2 legacy, cuStreamWriteValue32_v2_ptsz per_thread,
    ](zero, stream: CUstream, addr: CUdeviceptr, value: u32, flags: c_uint) {
        no_flags_but(flags, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)?;
        value_op(stream, zero, MemOp::Write(addr, u64::from(value), 4))
    }
    call fn [
        cuStreamWriteValue64 legacy, cuStreamWriteValue64_ptsz per_thread,
        cuStreamWriteValue64_v2 legacy, cuStreamWriteValue64_v2_ptsz per_thread,
    ](zero, stream: CUstream, addr: CUdeviceptr, value: u64, flags: c_uint) {
        no_flags_but(flags, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)?;
        value_op(stream, zero, MemOp::Write(addr, value, 8))
    }
    call fn [
        cuStreamWaitValue32 legacy, cuStreamWaitValue32_ptsz per_thread,
        cuStreamWaitValue32_v2 legacy, cuStreamWaitValue32_v2_ptsz per_thread,
    ](zero, stream: CUstream, addr: CUdeviceptr, value: u32, flags: c_uint) {
        no_flags_but(flags, CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH)?;
        value_op(stream, zero, MemOp::Wait(addr, u64::from(value), 4, flags))
    }
    call fn [
        cuStreamWaitValue64 legacy, cuStreamWaitValue64_ptsz per_thread,
        cuStreamWaitValue64_v2 legacy, cuStreamWaitValue64_v2_ptsz per_thread,
    ](zero, stream: CUstream, addr: CUdeviceptr, value: u64, flags: c_uint) {
        no_flags_but(flags, CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH)?;
        value_op(stream, zero, MemOp::Wait(addr, value, 8, flags))
    }
    call fn [
        cuStreamBatchMemOp legacy, cuStreamBatchMemOp_ptsz per_thread,
        cuStreamBatchMemOp_v2 legacy, cuStreamBatchMemOp_v2_ptsz per_thread,
    ](zero, stream: CUstream, count: c_uint, params: *mut CUstreamBatchMemOpParams, flags: c_uint) {
        // At most 256 of them, says CUDA.
        if count > 256 {
            return Err(INVALID);
        }
        let task = batch_task(&list(params, count as usize)?)?;
        enqueue(&stream_of(stream, zero)?, task).map(|_| ())
    }
}
