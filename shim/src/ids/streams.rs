//! The id of a stream, with stream 0 and the special handles resolved.
//!
//! Owns which stream a handle means on this thread through the symbol that was called, and asking
//! the driver about streams that were made before the shim was there.

use cuda_sys::*;
use trace::{Op, StreamId, StreamKind, ThreadId};

use super::recall::recall;
use crate::log::core::Core;
use crate::observe::Cx;
use crate::real::driver::real;
use crate::runtime::handle_cache;

impl Cx<'_> {
    /// Whether stream 0 of this call means the calling thread's default stream.
    fn zero_is_per_thread(&self) -> bool {
        self.stream0() == Stream0::PerThread
    }

    /// The id of a stream, with stream 0 and the special handles resolved.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn stream(&mut self, handle: CUstream) -> StreamId {
        let Some(core) = self.core() else { return StreamId::NONE };
        match handle {
            CUstream::NULL if self.zero_is_per_thread() => self.per_thread_stream(),
            CU_STREAM_PER_THREAD => self.per_thread_stream(),
            CUstream::NULL | CU_STREAM_LEGACY => {
                let context = self.current_context();
                self.legacy_stream(context)
            }
            handle => {
                let key = handle.0 as u64;
                let known = recall(|l| &l.streams, key, || core.handles.streams.get(&key).map(|id| id.0));
                known.map_or_else(|| self.unknown_stream(handle), StreamId)
            }
        }
    }

    /// The id of a stream that has one already. The driver is not asked.
    pub fn known_stream(&mut self, handle: CUstream) -> StreamId {
        let Some(core) = self.core() else { return StreamId::NONE };
        let per_thread = handle == CU_STREAM_PER_THREAD || (handle == CUstream::NULL && self.zero_is_per_thread());
        if per_thread {
            let ThreadId(thread) = self.thread();
            let key = (self.current_context().0 as u64, thread);
            return core.handles.per_thread.get(&key).map_or(StreamId::NONE, |id| *id);
        }
        core.handles.streams.get(&(handle.0 as u64)).map_or(StreamId::NONE, |id| StreamId(id.0))
    }

    /// The legacy default stream of a context.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn legacy_stream(&mut self, context: CUcontext) -> StreamId {
        let Some(core) = self.core() else { return StreamId::NONE };
        let key = context.0 as u64;
        match recall(|l| &l.legacy, key, || core.handles.legacy.get(&key).map(|id| id.0)) {
            Some(id) => StreamId(id),
            None => self.new_legacy_stream(core, context),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_legacy_stream(&mut self, core: &'static Core, context: CUcontext) -> StreamId {
        let key = context.0 as u64;
        let context = self.context(context);
        let mut made = false;
        let id = *core.handles.legacy.entry(key).or_insert_with(|| {
            made = true;
            StreamId(core.handles.next.stream.take())
        });
        if made {
            self.log(&Op::StreamCreate { stream: id, context, kind: StreamKind::Legacy, priority: 0, handle: 1 });
        }
        id
    }

    fn per_thread_stream(&mut self) -> StreamId {
        let Some(core) = self.core() else { return StreamId::NONE };
        let ThreadId(thread) = self.thread();
        let handle = self.current_context();
        let key = (handle.0 as u64, thread);
        if let Some(id) = core.handles.per_thread.get(&key) {
            return *id;
        }
        let context = self.context(handle);
        let id = StreamId(core.handles.next.stream.take());
        // Only this thread asks for this key.
        core.handles.per_thread.insert(key, id);
        self.log(&Op::StreamCreate { stream: id, context, kind: StreamKind::PerThread, priority: 0, handle: 2 });
        id
    }

    /// A stream that is used without having been seen made.
    #[cold]
    fn unknown_stream(&mut self, handle: CUstream) -> StreamId {
        let (mut flags, mut priority, mut context) = (0_u32, 0_i32, CUcontext::NULL);
        let _ = real!(cuStreamGetFlags(handle => CUstream, &raw mut flags => *mut u32));
        let _ = real!(cuStreamGetPriority(handle => CUstream, &raw mut priority => *mut i32));
        if real!(cuStreamGetCtx(handle => CUstream, &raw mut context => *mut CUcontext)) != CUresult::SUCCESS {
            context = self.current_context();
        }
        self.define_stream(handle, context, flags, priority)
    }

    /// A stream was made (or seen first): gives it an id.
    pub fn define_stream(&mut self, handle: CUstream, context: CUcontext, flags: u32, priority: i32) -> StreamId {
        let Some(core) = self.core() else { return StreamId::NONE };
        let context = self.context(context);
        let kind = if flags & CU_STREAM_NON_BLOCKING != 0 { StreamKind::NonBlocking } else { StreamKind::Blocking };
        let stream = StreamId(core.handles.next.stream.take());
        let key = handle.0 as u64;
        self.log(&Op::StreamCreate { stream, context, kind, priority, handle: key });
        if core.handles.streams.insert(key, stream).is_some() {
            handle_cache::invalidate();
        }
        stream
    }

    /// A stream goes away: its handle may come back.
    pub fn forget_stream(&mut self, handle: CUstream) -> Option<StreamId> {
        self.destroyed(|handles| &handles.streams, handle.0 as u64, |stream| stream.0).map(StreamId)
    }

    /// The stream of a work op that really enters it now; `None` while the stream is being captured
    /// (the op becomes a node of a graph, whose stack is remembered).
    pub fn working_stream(&mut self, handle: CUstream) -> Option<StreamId> {
        self.working_or_captured(handle).ok()
    }
}
