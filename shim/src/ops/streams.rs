//! Streams, events, and the calls that wait for them or ask about them.
//!
//! Owns the two halves of a wait, before and after the real call. What a wait orders is decided by
//! `order`.

use cuda_sys::*;
use trace::{ContextId, EventId, EventMode, Op, StreamId, SyncId, SyncScope};

use super::interop::bytes_of;
use crate::ids::captures::{captured_record, captured_wait, working_or_captured};
use crate::ids::contexts::{context_id, current_context};
use crate::ids::events::{any_shared, define_event, event_id, forget_event, note_shared};
use crate::ids::streams::{define_stream, forget_stream, known_stream, stream_id, working_stream};
use crate::observe::Cx;

pub(crate) unsafe fn cuStreamCreate(cx: &mut Cx<'_>, stream: *mut CUstream, flags: c_uint) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *stream };
    let context = current_context();
    define_stream(cx, handle, context, flags, 0);
}

pub(crate) unsafe fn cuStreamCreateWithPriority(
    cx: &mut Cx<'_>,
    stream: *mut CUstream,
    flags: c_uint,
    priority: c_int,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *stream };
    let context = current_context();
    define_stream(cx, handle, context, flags, priority);
}

pub(crate) unsafe fn cuGreenCtxStreamCreate(
    cx: &mut Cx<'_>,
    stream: *mut CUstream,
    green_ctx: CUgreenCtx,
    _flags: c_uint,
    priority: c_int,
) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *stream };
    // Streams of green contexts are always non-blocking (cuda.h, cuGreenCtxStreamCreate).
    define_stream(cx, handle, CUcontext(green_ctx.0.cast()), CU_STREAM_NON_BLOCKING, priority);
}

pub(crate) unsafe fn cuStreamDestroy_v2(cx: &mut Cx<'_>, stream: CUstream) {
    if let Some(stream) = forget_stream(cx, stream) {
        cx.log(&Op::StreamDestroy { stream });
    }
}

#[unsafe(link_section = "streamsan_hot")]
pub(crate) unsafe fn cuStreamWaitEvent(cx: &mut Cx<'_>, stream: CUstream, event: CUevent, flags: c_uint) {
    if let Some(result) = cx.failure() {
        return did_not_order(cx, result, stream, event, false);
    }
    let is_external = flags & CU_EVENT_WAIT_EXTERNAL != 0;
    match working_or_captured(cx, stream) {
        Ok(stream) => {
            let event = event_with_others(cx, event);
            let mode = if is_external { EventMode::External } else { EventMode::Plain };
            cx.log(&Op::StreamWait { stream, event, mode });
        }
        // An external one is a node.
        Err(capture) if !is_external => captured_wait(cx, capture, stream, event),
        Err(_) => {}
    }
}

/// A record or a wait has failed. Its handles may be of nothing: the driver is not asked.
#[cold]
fn did_not_order(cx: &mut Cx<'_>, result: CUresult, stream: CUstream, event: CUevent, records: bool) {
    let known = cx.core().and_then(|core| core.handles.events.get(&(event.0 as u64)).map(|id| *id));
    let (event, stream) = (known.unwrap_or(EventId::NONE), known_stream(cx, stream));
    cx.log(&Op::OrderFailed { result: result.0, event, stream, records });
}

/// Another process has or gets this event.
fn share_event(cx: &mut Cx<'_>, handle: CUevent, key: &[u8]) {
    if let Some(core) = cx.core() {
        core.handles.shared_events.insert(handle.0 as u64, ());
        note_shared();
        crate::log::shared::record_time();
        let event = event_id(cx, handle);
        cx.without_stack().log(&Op::SharedEvent { event, key });
    }
}

/// The id of an event that is about to be waited for. What another process had waited for when
/// it recorded the event is not seen: it may be all that was enqueued here, so that counts as
/// recorded.
fn event_with_others(cx: &mut Cx<'_>, handle: CUevent) -> EventId {
    let event = event_id(cx, handle);
    if any_shared() && cx.core().is_some_and(|core| core.handles.shared_events.contains_key(&(handle.0 as u64))) {
        let current = current_context();
        let context = context_id(cx, current);
        cx.log(&Op::OthersRecord { event, context });
    }
    event
}

#[unsafe(link_section = "streamsan_hot")]
pub(crate) unsafe fn cuEventCreate(cx: &mut Cx<'_>, event: *mut CUevent, flags: c_uint) {
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *event };
    define_event(cx.without_stack(), handle, flags);
}

#[unsafe(link_section = "streamsan_hot")]
pub(crate) unsafe fn cuEventDestroy_v2(cx: &mut Cx<'_>, event: CUevent) {
    if let Some(event) = forget_event(cx.without_stack(), event) {
        cx.log(&Op::EventDestroy { event });
    }
}

#[unsafe(link_section = "streamsan_hot")]
pub(crate) unsafe fn cuEventRecord(cx: &mut Cx<'_>, event: CUevent, stream: CUstream) {
    if let Some(result) = cx.failure() {
        return did_not_order(cx, result, stream, event, true);
    }
    match working_or_captured(cx, stream) {
        Ok(stream) => {
            let event = event_id(cx, event);
            cx.log(&Op::EventRecord { event, stream, mode: EventMode::Plain });
        }
        Err(capture) => captured_record(cx, capture, stream, event),
    }
}

pub(crate) unsafe fn cuEventRecordWithFlags(cx: &mut Cx<'_>, event: CUevent, stream: CUstream, flags: c_uint) {
    if let Some(result) = cx.failure() {
        return did_not_order(cx, result, stream, event, true);
    }
    let is_external = flags & CU_EVENT_RECORD_EXTERNAL != 0;
    match working_or_captured(cx, stream) {
        Ok(stream) => {
            let event = event_id(cx, event);
            let mode = if is_external { EventMode::External } else { EventMode::Plain };
            cx.log(&Op::EventRecord { event, stream, mode });
        }
        // An external one is a node.
        Err(capture) if !is_external => captured_record(cx, capture, stream, event),
        Err(_) => {}
    }
}

pub(crate) unsafe fn cuCtxRecordEvent(cx: &mut Cx<'_>, ctx: CUcontext, event: CUevent) {
    let (context, event) = (context_id(cx, ctx), event_id(cx, event));
    cx.log(&Op::ContextRecord { event, context });
}

pub(crate) unsafe fn cuCtxWaitEvent(cx: &mut Cx<'_>, ctx: CUcontext, event: CUevent) {
    let (context, event) = (context_id(cx, ctx), event_id(cx, event));
    cx.log(&Op::ContextWait { context, event });
}

pub(crate) unsafe fn cuGreenCtxRecordEvent(cx: &mut Cx<'_>, ctx: CUgreenCtx, event: CUevent) {
    let (context, event) = (context_id(cx, CUcontext(ctx.0.cast())), event_id(cx, event));
    cx.log(&Op::ContextRecord { event, context });
}

pub(crate) unsafe fn cuGreenCtxWaitEvent(cx: &mut Cx<'_>, ctx: CUgreenCtx, event: CUevent) {
    let (context, event) = (context_id(cx, CUcontext(ctx.0.cast())), event_id(cx, event));
    cx.log(&Op::ContextWait { context, event });
}

/// The two halves of a call that waits: what was enqueued before it began is covered once it
/// returns.
pub(crate) fn synchronise(cx: &mut Cx<'_>, scope: SyncScope, stream: StreamId, event: EventId, context: ContextId) {
    let Some(core) = cx.core() else { return };
    if cx.is_before() {
        let sync = SyncId(core.handles.fresh());
        cx.log(&Op::SyncBegin { sync, scope, stream, event, context });
        cx.token = u64::from(sync.0);
    } else if cx.token != 0 {
        let sync = SyncId(cx.token as u32);
        cx.without_stack().log(&Op::SyncEnd { sync });
    }
}

pub(crate) unsafe fn cuStreamSynchronize(cx: &mut Cx<'_>, stream: CUstream) {
    let stream = if cx.is_before() { stream_id(cx, stream) } else { StreamId::NONE };
    synchronise(cx, SyncScope::Stream, stream, EventId::NONE, ContextId::NONE);
}

pub(crate) unsafe fn cuEventSynchronize(cx: &mut Cx<'_>, event: CUevent) {
    let event = if cx.is_before() { event_with_others(cx, event) } else { EventId::NONE };
    synchronise(cx, SyncScope::Event, StreamId::NONE, event, ContextId::NONE);
}

pub(crate) unsafe fn cuCtxSynchronize(cx: &mut Cx<'_>) {
    let context = if cx.is_before() {
        let current = current_context();
        context_id(cx, current)
    } else {
        ContextId::NONE
    };
    synchronise(cx, SyncScope::Context, StreamId::NONE, EventId::NONE, context);
}

pub(crate) unsafe fn cuCtxSynchronize_v2(cx: &mut Cx<'_>, ctx: CUcontext) {
    let context = if cx.is_before() { context_id(cx, ctx) } else { ContextId::NONE };
    synchronise(cx, SyncScope::Context, StreamId::NONE, EventId::NONE, context);
}

// Queries are polled by the million: the first half only looks at a number, and an answer of "not
// ready" leaves no trace.

pub(crate) unsafe fn cuStreamQuery(cx: &mut Cx<'_>, stream: CUstream) {
    let stream = stream_id(cx, stream);
    if cx.is_before() {
        let time = cx.core().and_then(|core| Some(core.lock()?.engine.stream_time(stream)));
        cx.token = time.map_or(0, |t| t + 1);
    } else if cx.token != 0 {
        let upto = cx.token - 1;
        cx.without_stack().log(&Op::StreamIdle { stream, upto });
    }
}

fn event_query(cx: &mut Cx<'_>, event: CUevent) {
    // An answer about an event that was never recorded is worth its place: reports name it.
    let for_nothing = cx.token == 1;
    let event = match (cx.is_before(), for_nothing) {
        (true, _) => event_id(cx, event),
        (false, true) => event_with_others(cx, event),
        (false, false) => event_with_others(cx.without_stack(), event),
    };
    if cx.is_before() {
        let record = cx.core().and_then(|core| Some(core.lock()?.engine.event_record(event)));
        cx.token = record.map_or(0, |r| r + 1);
    } else if cx.token != 0 {
        let record = cx.token - 1;
        cx.log(&Op::EventReached { event, record });
    }
}

pub(crate) unsafe fn cuEventQuery(cx: &mut Cx<'_>, event: CUevent) {
    event_query(cx, event);
}

pub(crate) unsafe fn cuEventElapsedTime_v2(cx: &mut Cx<'_>, _milliseconds: *mut f32, start: CUevent, end: CUevent) {
    // Success means that both records have completed. Of the start only the record that is current
    // now is known; recording it again meanwhile, from another thread, would spoil the measurement.
    event_query(cx, end);
    if cx.is_after() && start != end {
        let event = event_id(cx, start);
        let record = cx.core().and_then(|core| Some(core.lock()?.engine.event_record(event))).unwrap_or(0);
        cx.without_stack().log(&Op::EventReached { event, record });
    }
}

pub(crate) unsafe fn cuStreamAttachMemAsync(
    cx: &mut Cx<'_>,
    stream: CUstream,
    ptr: CUdeviceptr,
    length: usize,
    _flags: c_uint,
) {
    if let Some(stream) = working_stream(cx, stream) {
        let region = trace::Region::linear(ptr, length as u64);
        cx.log(&Op::Prefetch { stream, region, discard: false });
    }
}

pub(crate) unsafe fn cuIpcGetEventHandle(cx: &mut Cx<'_>, handle: *mut CUipcEventHandle, event: CUevent) {
    // SAFETY: the call succeeded, so it has written the handle.
    let key = unsafe { &*handle };
    share_event(cx, event, bytes_of(key));
}

pub(crate) unsafe fn cuIpcOpenEventHandle(cx: &mut Cx<'_>, event: *mut CUevent, handle: CUipcEventHandle) {
    // SAFETY: the call succeeded, so it has written the event.
    let event = unsafe { *event };
    define_event(cx, event, 0);
    share_event(cx, event, bytes_of(&handle));
}

pub(crate) unsafe fn cuFlushGPUDirectRDMAWrites(
    _cx: &mut Cx<'_>,
    _target: CUflushGPUDirectRDMAWritesTarget,
    _scope: CUflushGPUDirectRDMAWritesScope,
) {
    // Orders writes of other devices on the bus, not work of streams.
}

pub(crate) unsafe fn cuStreamCopyAttributes(_cx: &mut Cx<'_>, _dst: CUstream, _src: CUstream) {}

pub(crate) unsafe fn cuStreamSetAttribute(
    _cx: &mut Cx<'_>,
    _stream: CUstream,
    _attr: CUstreamAttrID,
    _value: *const CUstreamAttrValue,
) {
}
