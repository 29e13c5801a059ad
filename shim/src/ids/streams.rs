//! The id of a stream, with stream 0 and the special handles resolved.
//!
//! Owns which stream a handle means on this thread through the symbol that was called, and asking
//! the driver about streams that were made before the shim was there.

use cuda_sys::*;
use trace::{Op, StreamId, StreamKind, ThreadId};

use super::recall::recall;
use crate::ids::captures::working_or_captured;
use crate::ids::contexts::{context_id, current_context};
use crate::ids::destroyed::handle_destroyed;
use crate::log::core::Core;
use crate::observe::Cx;
use crate::real::driver::real;
use crate::runtime::handle_cache::{self, Remembered};

/// Whether stream 0 of this call means the calling thread's default stream.
fn zero_is_per_thread(cx: &Cx<'_>) -> bool {
    cx.stream0() == Stream0::PerThread
}

/// The id of a stream, with stream 0 and the special handles resolved.
#[unsafe(link_section = "streamsan_hot")]
pub fn stream_id(cx: &mut Cx<'_>, handle: CUstream) -> StreamId {
    let Some(core) = cx.core() else { return StreamId::NONE };
    match handle {
        CUstream::NULL if zero_is_per_thread(cx) => per_thread_stream(cx),
        CU_STREAM_PER_THREAD => per_thread_stream(cx),
        CUstream::NULL | CU_STREAM_LEGACY => {
            let context = current_context();
            legacy_stream(cx, context)
        }
        handle => {
            let key = handle.0 as u64;
            let known =
                recall(|l| &l.streams, Remembered::Streams, key, || core.handles.streams.get(&key).map(|id| id.0));
            known.map_or_else(|| unknown_stream(cx, handle), StreamId)
        }
    }
}

/// The id of a stream that has one already. The driver is not asked.
pub fn known_stream(cx: &mut Cx<'_>, handle: CUstream) -> StreamId {
    let Some(core) = cx.core() else { return StreamId::NONE };
    let per_thread = handle == CU_STREAM_PER_THREAD || (handle == CUstream::NULL && zero_is_per_thread(cx));
    if per_thread {
        let ThreadId(thread) = cx.thread();
        let key = (current_context().0 as u64, thread);
        return core.handles.per_thread.get(&key).map_or(StreamId::NONE, |id| *id);
    }
    core.handles.streams.get(&(handle.0 as u64)).map_or(StreamId::NONE, |id| StreamId(id.0))
}

/// The legacy default stream of a context.
#[unsafe(link_section = "streamsan_hot")]
pub fn legacy_stream(cx: &mut Cx<'_>, context: CUcontext) -> StreamId {
    let Some(core) = cx.core() else { return StreamId::NONE };
    let key = context.0 as u64;
    match recall(|l| &l.legacy, Remembered::Streams, key, || core.handles.legacy.get(&key).map(|id| id.0)) {
        Some(id) => StreamId(id),
        None => new_legacy_stream(cx, core, context),
    }
}

#[cold]
#[inline(never)]
fn new_legacy_stream(cx: &mut Cx<'_>, core: &'static Core, context: CUcontext) -> StreamId {
    let key = context.0 as u64;
    let context = context_id(cx, context);
    let mut made = false;
    let id = *core.handles.legacy.entry(key).or_insert_with(|| {
        made = true;
        StreamId(core.handles.next.stream.take())
    });
    if made {
        cx.log(&Op::StreamCreate { stream: id, context, kind: StreamKind::Legacy, priority: 0, handle: 1 });
    }
    id
}

fn per_thread_stream(cx: &mut Cx<'_>) -> StreamId {
    let Some(core) = cx.core() else { return StreamId::NONE };
    let ThreadId(thread) = cx.thread();
    let handle = current_context();
    let key = (handle.0 as u64, thread);
    if let Some(id) = core.handles.per_thread.get(&key) {
        return *id;
    }
    let context = context_id(cx, handle);
    let id = StreamId(core.handles.next.stream.take());
    // Only this thread asks for this key.
    core.handles.per_thread.insert(key, id);
    cx.log(&Op::StreamCreate { stream: id, context, kind: StreamKind::PerThread, priority: 0, handle: 2 });
    id
}

/// A stream that is used without having been seen made.
#[cold]
fn unknown_stream(cx: &mut Cx<'_>, handle: CUstream) -> StreamId {
    let (mut flags, mut priority, mut context) = (0_u32, 0_i32, CUcontext::NULL);
    let _ = real!(cuStreamGetFlags(handle => CUstream, &raw mut flags => *mut u32));
    let _ = real!(cuStreamGetPriority(handle => CUstream, &raw mut priority => *mut i32));
    if real!(cuStreamGetCtx(handle => CUstream, &raw mut context => *mut CUcontext)) != CUresult::SUCCESS {
        context = current_context();
    }
    define_stream(cx, handle, context, flags, priority)
}

/// A stream was made (or seen first): gives it an id.
pub fn define_stream(cx: &mut Cx<'_>, handle: CUstream, context: CUcontext, flags: u32, priority: i32) -> StreamId {
    let Some(core) = cx.core() else { return StreamId::NONE };
    let context = context_id(cx, context);
    let kind = if flags & CU_STREAM_NON_BLOCKING != 0 { StreamKind::NonBlocking } else { StreamKind::Blocking };
    let stream = StreamId(core.handles.next.stream.take());
    let key = handle.0 as u64;
    cx.log(&Op::StreamCreate { stream, context, kind, priority, handle: key });
    if core.handles.streams.insert(key, stream).is_some() {
        handle_cache::invalidate(Remembered::Streams, key);
    }
    stream
}

/// A stream goes away: its handle may come back.
pub fn forget_stream(cx: &mut Cx<'_>, handle: CUstream) -> Option<StreamId> {
    let key = handle.0 as u64;
    let stream = handle_destroyed(cx, |handles| &handles.streams, key, |stream| stream.0)?;
    handle_cache::invalidate(Remembered::Streams, key);
    Some(StreamId(stream))
}

/// The stream of a work op that really enters it now; `None` while the stream is being captured
/// (the op becomes a node of a graph, whose stack is remembered).
pub fn working_stream(cx: &mut Cx<'_>, handle: CUstream) -> Option<StreamId> {
    working_or_captured(cx, handle).ok()
}
