//! Events: creation, records, queries, elapsed time.

use cuda_sys::*;

use crate::api::*;
use crate::objects::context::{CONTEXTS, Context, GREEN_CONTEXTS};
use crate::objects::event::{EVENTS, Event, EventRecord};
use crate::objects::stream::{DefaultStream, STREAMS, resolve};
use crate::objects::task::{Task, enqueue, enqueue_after};
use crate::sched::{self, Work};

fn record(event: CUevent, stream: CUstream, zero: DefaultStream, flags: c_uint) -> Res {
    let stream = resolve(stream.bits(), zero)?;
    let event = EVENTS.get(event.bits())?;
    if event.ctx.owner().id != stream.ctx.owner().id {
        return Err(CUresult::ERROR_INVALID_HANDLE);
    }
    if flags & !CU_EVENT_RECORD_EXTERNAL != 0 {
        return Err(INVALID);
    }
    let captured = capture::of(&stream);
    if flags & CU_EVENT_RECORD_EXTERNAL != 0 {
        return match captured {
            Some(_) => enqueue(&stream, Task::Record(event)).map(|_| ()),
            None => Err(CUresult::ERROR_ILLEGAL_STATE),
        };
    }
    if let Some(part) = captured {
        return capture::record(&event, &part);
    }
    capture::add(&stream, &Task::Empty)?;
    let stamp = Event::new_stamp();
    let work = match event.shared.clone() {
        None => Work::Point(Some(stamp.clone())),
        Some(shared) => {
            let number = shared.begin();
            Work::Expand(Box::new(move || {
                shared.finish(number);
                None
            }))
        }
    };
    let op = sched::get().submit(stream.id, work, &[]);
    event.set(EventRecord { op, stamp, captured: None, is_set: true });
    Ok(())
}

/// Records what all streams of a context have been given so far.
fn record_of(ctx: &Context, event: CUevent) -> Res {
    let event = EVENTS.get(event.bits())?;
    let stamp = Event::new_stamp();
    let op = sched::get().join(Some(stamp.clone()), &ctx.tails());
    event.set(EventRecord { op, stamp, captured: None, is_set: true });
    Ok(())
}

/// What the streams of a context are given from now on waits for an event.
fn wait_in(ctx: &Context, event: CUevent) -> Res {
    let op = EVENTS.get(event.bits())?.last().op;
    let streams = STREAMS.all().into_iter().filter(|stream| stream.ctx.owner().id == ctx.id || stream.ctx.id == ctx.id);
    for stream in streams {
        enqueue_after(&stream, Task::Empty, &[op])?;
    }
    Ok(())
}

abi! {
    call fn [cuEventCreate plain](_z, event: *mut CUevent, flags: c_uint) {
        if flags & !(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS) != 0 {
            return Err(INVALID);
        }
        if flags & CU_EVENT_INTERPROCESS != 0 && flags & CU_EVENT_DISABLE_TIMING == 0 {
            return Err(INVALID);
        }
        put(event, CUevent::from_bits(Event::create(&thread::context()?, flags)))
    }
    call fn [cuEventDestroy plain, cuEventDestroy_v2 plain](_z, event: CUevent) {
        EVENTS.remove(event.bits()).map(|_| ())
    }
    call fn [cuEventRecord legacy, cuEventRecord_ptsz per_thread](zero, event: CUevent, stream: CUstream) {
        record(event, stream, zero, 0)
    }
    call fn [cuEventRecordWithFlags legacy, cuEventRecordWithFlags_ptsz per_thread](
        zero, event: CUevent, stream: CUstream, flags: c_uint
    ) {
        record(event, stream, zero, flags)
    }
    call fn [cuEventQuery plain](_z, event: CUevent) {
        let event = EVENTS.get(event.bits())?;
        capture::refuse_unsafe()?;
        let there = event.elsewhere().is_none_or(|mut is_done| is_done());
        if !sched::get().poll(&[event.for_host()?.op]) || !there {
            return Err(CUresult::ERROR_NOT_READY);
        }
        event.ctx.check()
    }
    call fn [cuEventSynchronize plain](_z, event: CUevent) {
        let event = EVENTS.get(event.bits())?;
        capture::refuse_unsafe()?;
        let mut op = event.for_host()?.op;
        if let Some(is_done) = event.elsewhere() {
            op = sched::get().until(Box::new(is_done));
        }
        sched::get().wait(&[op]);
        crate::memory::get().after_sync();
        event.ctx.check()
    }
    call fn [cuEventElapsedTime plain, cuEventElapsedTime_v2 plain](
        _z, milliseconds: *mut f32, start: CUevent, end: CUevent
    ) {
        put(milliseconds, Event::elapsed(&*EVENTS.get(start.bits())?, &*EVENTS.get(end.bits())?)?)
    }
    call fn [cuCtxRecordEvent plain](_z, ctx: CUcontext, event: CUevent) {
        record_of(&*CONTEXTS.get(ctx.bits())?, event)
    }
    call fn [cuCtxWaitEvent plain](_z, ctx: CUcontext, event: CUevent) {
        wait_in(&*CONTEXTS.get(ctx.bits())?, event)
    }
    call fn [cuGreenCtxRecordEvent plain](_z, ctx: CUgreenCtx, event: CUevent) {
        record_of(&GREEN_CONTEXTS.get(ctx.bits())?.ctx, event)
    }
    call fn [cuGreenCtxWaitEvent plain](_z, ctx: CUgreenCtx, event: CUevent) {
        wait_in(&GREEN_CONTEXTS.get(ctx.bits())?.ctx, event)
    }
}
