//! Streams: creation, waiting, queries, attributes, and waits for events.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cuda_sys::*;

use crate::api::*;
use crate::handles::handle_of;
use crate::objects::context::{Context, GREEN_CONTEXTS, GreenContext};
use crate::objects::event::EVENTS;
use crate::objects::stream::{STREAMS, Stream, resolve};
use crate::objects::task::{Task, enqueue, enqueue_after};
use crate::sched;

pub(super) fn stream_of(
    handle: CUstream,
    zero: crate::objects::stream::DefaultStream,
) -> Result<Arc<Stream>, CUresult> {
    resolve(handle.bits(), zero)
}

/// The green context of a context's streams, null for other contexts.
fn green_of(ctx: &Context) -> CUgreenCtx {
    GreenContext::of(ctx).map_or(CUgreenCtx::NULL, |green| CUgreenCtx::from_bits(handle_of(&green)))
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
        // As an H200 answered, what is no event breaks the capture.
        let event = EVENTS.get(event.bits()).inspect_err(|_| capture::break_of(&stream))?;
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
        put_if(green, green_of(&ctx));
        put(pctx, CUcontext::from_bits(handle_of(&ctx)))
    }
    call fn [cuStreamGetGreenCtx plain](_z, stream: CUstream, green: *mut CUgreenCtx) {
        put(green, green_of(&stream_of(stream, crate::objects::stream::DefaultStream::Legacy)?.ctx))
    }
    call fn [cuGreenCtxStreamCreate plain](
        _z, stream: *mut CUstream, green: CUgreenCtx, flags: c_uint, priority: c_int
    ) {
        // Streams of green contexts are non-blocking (cuda.h, `cuGreenCtxStreamCreate`).
        if flags != CU_STREAM_NON_BLOCKING || stream.is_null() {
            return Err(INVALID);
        }
        let ctx = GREEN_CONTEXTS.get(green.bits())?.ctx.clone();
        ctx.check()?;
        let made = Stream::new(&ctx, sched::StreamKind::NonBlocking, flags, priority);
        put(stream, CUstream::from_bits(STREAMS.insert(made)))
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
        if !matches!(block.kind, crate::memory::AllocationKind::Managed(_)) || !whole {
            return Err(INVALID);
        }
        enqueue(&stream, Task::Empty).map(|_| ())
    }
}
