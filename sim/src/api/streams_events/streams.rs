//! Streams, events' waits, captures, host functions and stream memory operations.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cuda_sys::*;

use crate::api::*;
use crate::handles::handle_of;
use crate::objects::event::EVENTS;
use crate::objects::graph::{GRAPHS, NODES};
use crate::objects::stream::{STREAMS, Stream, resolve};
use crate::objects::task::{HostFn, MemOp, Task, enqueue, enqueue_after};
use crate::sched;

fn stream_of(handle: CUstream, zero: crate::objects::stream::Zero) -> Result<Arc<Stream>, CUresult> {
    resolve(handle.bits(), zero)
}

/// What a stream callback gets.
struct Callback {
    call: unsafe extern "C" fn(CUstream, CUresult, *mut c_void),
    stream: CUstream,
    data: *mut c_void,
}

unsafe extern "C" fn call_back(data: *mut c_void) {
    // SAFETY: made from a box by `cuStreamAddCallback` and used once.
    let callback = unsafe { Box::from_raw(data.cast::<Callback>()) };
    // SAFETY: the program asked for exactly this call.
    unsafe { (callback.call)(callback.stream, CUresult::SUCCESS, callback.data) };
}

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

fn value_op(stream: CUstream, zero: crate::objects::stream::Zero, op: MemOp) -> Res {
    if let MemOp::Wait(at, _, size, _) | MemOp::Write(at, _, size) = op {
        check_value_address(at, size)?;
    }
    enqueue(&stream_of(stream, zero)?, Task::Memory(vec![op])).map(|_| ())
}

abi! {
    call fn [cuStreamCreate plain](_z, stream: *mut CUstream, flags: c_uint) {
        put(stream, CUstream::from_bits(Stream::create(flags, 0)?))
    }
    call fn [cuStreamCreateWithPriority plain](_z, stream: *mut CUstream, flags: c_uint, priority: c_int) {
        put(stream, CUstream::from_bits(Stream::create(flags, priority)?))
    }
    call fn [cuStreamDestroy plain, cuStreamDestroy_v2 plain](_z, stream: CUstream) {
        let stream = STREAMS.remove(stream.bits())?;
        stream.destroyed.store(true, Ordering::Release);
        sched::get().remove_stream(stream.id);
        Ok(())
    }
    call fn [cuStreamSynchronize legacy, cuStreamSynchronize_ptsz per_thread](zero, stream: CUstream) {
        let stream = stream_of(stream, zero)?;
        capture::refuse_wait(&stream)?;
        capture::refuse_unsafe()?;
        stream.synchronize()?;
        crate::memory::get().after_sync();
        Ok(())
    }
    call fn [cuStreamQuery legacy, cuStreamQuery_ptsz per_thread](zero, stream: CUstream) {
        let stream = stream_of(stream, zero)?;
        capture::refuse_wait(&stream)?;
        capture::refuse_unsafe()?;
        let scheduler = sched::get();
        if !scheduler.poll(&scheduler.pending_before(stream.id)) {
            return Err(CUresult::ERROR_NOT_READY);
        }
        stream.ctx.check()
    }
    call fn [cuStreamWaitEvent legacy, cuStreamWaitEvent_ptsz per_thread](
        zero, stream: CUstream, event: CUevent, flags: c_uint
    ) {
        let stream = stream_of(stream, zero)?;
        let event = EVENTS.get(event.bits())?;
        if flags & !CU_EVENT_WAIT_EXTERNAL != 0 {
            return Err(INVALID);
        }
        if flags & CU_EVENT_WAIT_EXTERNAL != 0 {
            if capture::of(&stream).is_none() {
                return Err(CUresult::ERROR_ILLEGAL_STATE);
            }
            return enqueue(&stream, Task::Wait(event)).map(|_| ());
        }
        if capture::wait(&stream, &event)? {
            return Ok(());
        }
        if let Some(is_done) = event.elsewhere() {
            capture::add(&stream, &Task::Empty)?;
            sched::get().submit(stream.id, sched::Work::Until(Box::new(is_done)), &[]);
            return Ok(());
        }
        enqueue_after(&stream, Task::Empty, &[event.last().op]).map(|_| ())
    }
    call fn [
        cuStreamGetCtx legacy, cuStreamGetCtx_ptsz per_thread
    ](zero, stream: CUstream, pctx: *mut CUcontext) {
        put(pctx, CUcontext::from_bits(handle_of(&stream_of(stream, zero)?.ctx)))
    }
    call fn [
        cuStreamGetCtx_v2 legacy, cuStreamGetCtx_v2_ptsz per_thread
    ](zero, stream: CUstream, pctx: *mut CUcontext, green: *mut CUgreenCtx) {
        let ctx = stream_of(stream, zero)?.ctx.clone();
        put_if(green, CUgreenCtx::NULL);
        put(pctx, CUcontext::from_bits(handle_of(&ctx)))
    }
    call fn [cuStreamGetDevice legacy, cuStreamGetDevice_ptsz per_thread](zero, stream: CUstream, dev: *mut CUdevice) {
        put(dev, stream_of(stream, zero)?.ctx.device as CUdevice)
    }
    call fn [cuStreamGetFlags legacy, cuStreamGetFlags_ptsz per_thread](zero, stream: CUstream, flags: *mut c_uint) {
        put(flags, stream_of(stream, zero)?.flags)
    }
    call fn [cuStreamGetId legacy, cuStreamGetId_ptsz per_thread](zero, stream: CUstream, id: *mut u64) {
        put(id, stream_of(stream, zero)?.number)
    }
    call fn [cuStreamGetPriority legacy, cuStreamGetPriority_ptsz per_thread](zero, stream: CUstream, priority: *mut c_int) {
        put(priority, stream_of(stream, zero)?.priority)
    }
    call fn [cuStreamSetAttribute legacy, cuStreamSetAttribute_ptsz per_thread](
        zero, stream: CUstream, attr: CUstreamAttrID, value: *const CUstreamAttrValue
    ) {
        let stream = stream_of(stream, zero)?;
        // SAFETY: the union is plain data of 64 bytes.
        let bytes = unsafe { std::mem::transmute::<CUstreamAttrValue, [u8; 64]>(get(value)?) };
        let mut attributes = stream.attributes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        attributes.retain(|(id, _)| *id != attr.0);
        attributes.push((attr.0, bytes));
        Ok(())
    }
    call fn [cuStreamGetAttribute legacy, cuStreamGetAttribute_ptsz per_thread](
        zero, stream: CUstream, attr: CUstreamAttrID, value: *mut CUstreamAttrValue
    ) {
        let stream = stream_of(stream, zero)?;
        if attr.0 > 64 {
            return Err(INVALID);
        }
        let attributes = stream.attributes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let bytes = attributes.iter().find(|(id, _)| *id == attr.0).map_or([0; 64], |(_, bytes)| *bytes);
        put(value.cast::<[u8; 64]>(), bytes)
    }
    call fn [cuStreamCopyAttributes legacy, cuStreamCopyAttributes_ptsz per_thread](zero, dst: CUstream, src: CUstream) {
        let (dst, src) = (stream_of(dst, zero)?, stream_of(src, zero)?);
        let copy = src.attributes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        *dst.attributes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = copy;
        Ok(())
    }
    call fn [cuStreamAttachMemAsync legacy, cuStreamAttachMemAsync_ptsz per_thread](
        zero, stream: CUstream, dptr: CUdeviceptr, length: usize, flags: c_uint
    ) {
        let stream = stream_of(stream, zero)?;
        let block = crate::memory::get().find(dptr).ok_or(INVALID)?;
        let whole = length == 0 || length as u64 == block.size;
        if !matches!(block.kind, crate::memory::Kind::Managed(_)) || !whole {
            return Err(INVALID);
        }
        enqueue(&stream, Task::Empty).map(|_| ())
    }

    call fn [cuStreamBeginCapture legacy, cuStreamBeginCapture_ptsz per_thread](zero, stream: CUstream) {
        capture::begin(&stream_of(stream, zero)?, CU_STREAM_CAPTURE_MODE_GLOBAL, None)
    }
    call fn [cuStreamBeginCapture_v2 legacy, cuStreamBeginCapture_v2_ptsz per_thread](
        zero, stream: CUstream, mode: CUstreamCaptureMode
    ) {
        capture::begin(&stream_of(stream, zero)?, mode, None)
    }
    call fn [cuStreamBeginCaptureToGraph legacy, cuStreamBeginCaptureToGraph_ptsz per_thread](
        zero, stream: CUstream, graph: CUgraph, dependencies: *const CUgraphNode,
        dependency_data: *const CUgraphEdgeData, num_dependencies: usize, mode: CUstreamCaptureMode
    ) {
        let graph = GRAPHS.valid(graph.bits())?;
        let deps = list(dependencies, num_dependencies)?;
        let deps = deps.iter().map(|node| NODES.valid(node.bits())).collect::<Result<Vec<_>, _>>()?;
        capture::begin(&stream_of(stream, zero)?, mode, Some((graph, deps)))
    }
    call fn [cuStreamEndCapture legacy, cuStreamEndCapture_ptsz per_thread](zero, stream: CUstream, graph: *mut CUgraph) {
        let ended = capture::end(&stream_of(stream, zero)?);
        if ended.is_err() {
            put_if(graph, CUgraph::NULL);
        }
        put(graph, CUgraph::from_bits(handle_of(&ended?)))
    }
    call fn [cuStreamIsCapturing legacy, cuStreamIsCapturing_ptsz per_thread](
        zero, stream: CUstream, status: *mut CUstreamCaptureStatus
    ) {
        let stream = stream_of(stream, zero)?;
        capture::refuse_question(&stream)?;
        put(status, status_of(&stream))
    }
    call fn [cuStreamGetCaptureInfo legacy, cuStreamGetCaptureInfo_ptsz per_thread](
        zero, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64
    ) {
        let stream = stream_of(stream, zero)?;
        put_if(id, capture::of(&stream).map_or(0, |capture| capture.shared.id));
        put(status, status_of(&stream))
    }
    call fn [cuStreamGetCaptureInfo_v2 legacy, cuStreamGetCaptureInfo_v2_ptsz per_thread](
        zero, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode, num_dependencies: *mut usize
    ) {
        capture_info(&stream_of(stream, zero)?, status, id, graph, dependencies, num_dependencies)
    }
    call fn [cuStreamGetCaptureInfo_v3 legacy, cuStreamGetCaptureInfo_v3_ptsz per_thread](
        zero, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode, edge_data: *mut *const CUgraphEdgeData, num_dependencies: *mut usize
    ) {
        put_if(edge_data, std::ptr::null());
        capture_info(&stream_of(stream, zero)?, status, id, graph, dependencies, num_dependencies)
    }
    call fn [cuStreamUpdateCaptureDependencies legacy, cuStreamUpdateCaptureDependencies_ptsz per_thread](
        zero, stream: CUstream, dependencies: *mut CUgraphNode, num_dependencies: usize, flags: c_uint
    ) {
        update_dependencies(&stream_of(stream, zero)?, list(dependencies, num_dependencies)?, flags)
    }
    call fn [cuStreamUpdateCaptureDependencies_v2 legacy, cuStreamUpdateCaptureDependencies_v2_ptsz per_thread](
        zero, stream: CUstream, dependencies: *mut CUgraphNode, dependency_data: *const CUgraphEdgeData,
        num_dependencies: usize, flags: c_uint
    ) {
        update_dependencies(&stream_of(stream, zero)?, list(dependencies, num_dependencies)?, flags)
    }
    call fn [cuThreadExchangeStreamCaptureMode plain](_z, mode: *mut CUstreamCaptureMode) {
        let new = get(mode)?;
        if new.0 > CU_STREAM_CAPTURE_MODE_RELAXED.0 {
            return Err(INVALID);
        }
        put(mode, thread::current().capture_mode.replace(new))
    }

    call fn [cuLaunchHostFunc legacy, cuLaunchHostFunc_ptsz per_thread](
        zero, stream: CUstream, callback: CUhostFn, user_data: *mut c_void
    ) {
        let host = HostFn { call: callback.ok_or(INVALID)?, data: user_data };
        enqueue(&stream_of(stream, zero)?, Task::Host(host)).map(|_| ())
    }
    call fn [cuLaunchHostFunc_v2 legacy, cuLaunchHostFunc_v2_ptsz per_thread](
        zero, stream: CUstream, callback: CUhostFn, user_data: *mut c_void, sync_mode: c_uint
    ) {
        let host = HostFn { call: callback.ok_or(INVALID)?, data: user_data };
        enqueue(&stream_of(stream, zero)?, Task::Host(host)).map(|_| ())
    }
    call fn [cuStreamAddCallback legacy, cuStreamAddCallback_ptsz per_thread](
        zero, stream: CUstream, callback: CUstreamCallback, user_data: *mut c_void, flags: c_uint
    ) {
        let target = stream_of(stream, zero)?;
        capture::refuse_wait(&target)?;
        if flags != 0 {
            return Err(INVALID);
        }
        let data = Box::into_raw(Box::new(Callback { call: callback.ok_or(INVALID)?, stream, data: user_data }));
        enqueue(&target, Task::Host(HostFn { call: call_back, data: data.cast() })).map(|_| ())
    }

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

fn status_of(stream: &Arc<Stream>) -> CUstreamCaptureStatus {
    match capture::of(stream) {
        None => CU_STREAM_CAPTURE_STATUS_NONE,
        Some(capture) if capture.shared.is_invalid() => CU_STREAM_CAPTURE_STATUS_INVALIDATED,
        Some(_) => CU_STREAM_CAPTURE_STATUS_ACTIVE,
    }
}

fn capture_info(
    stream: &Arc<Stream>,
    status: *mut CUstreamCaptureStatus,
    id: *mut u64,
    graph: *mut CUgraph,
    dependencies: *mut *const CUgraphNode,
    num_dependencies: *mut usize,
) -> Res {
    thread_local! {
        // The array stays readable until the thread's next call, as the interface promises.
        static LAST: std::cell::Cell<*mut Vec<CUgraphNode>> = const { std::cell::Cell::new(std::ptr::null_mut()) };
    }
    put(status, status_of(stream))?;
    let Some(capture) = capture::of(stream) else { return Ok(()) };
    put_if(id, capture.shared.id);
    put_if(graph, CUgraph::from_bits(handle_of(&capture.shared.graph)));
    let nodes: Vec<CUgraphNode> = capture.deps.iter().map(|node| CUgraphNode::from_bits(handle_of(node))).collect();
    put_if(num_dependencies, nodes.len());
    if !dependencies.is_null() {
        let last = LAST.get();
        let last = if last.is_null() {
            Box::leak(Box::new(nodes))
        } else {
            // SAFETY: leaked by an earlier call of this very thread.
            let last = unsafe { &mut *last };
            *last = nodes;
            last
        };
        LAST.set(last);
        put_if(dependencies, last.as_ptr());
    }
    Ok(())
}

fn update_dependencies(stream: &Arc<Stream>, nodes: Vec<CUgraphNode>, flags: c_uint) -> Res {
    let nodes = nodes.iter().map(|node| NODES.valid(node.bits())).collect::<Result<Vec<_>, _>>()?;
    let mut slot = stream.capture.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let capture = slot.as_mut().ok_or(CUresult::ERROR_ILLEGAL_STATE)?;
    match flags {
        0 => {
            for node in nodes {
                if !capture.deps.iter().any(|dep| Arc::ptr_eq(dep, &node)) {
                    capture.deps.push(node);
                }
            }
        }
        1 => capture.deps = nodes,
        _ => return Err(INVALID),
    }
    Ok(())
}
