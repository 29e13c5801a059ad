//! Streams, and what the special stream handles mean.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cuda_sys::{CU_STREAM_NON_BLOCKING, CUresult};

use crate::handles::Handles;
use crate::objects::capture::Capture;
use crate::objects::context::Context;
use crate::objects::overlap::LaunchOverlap;
use crate::objects::thread;
use crate::sched::{self, OpId, StreamId, StreamKind};

/// All streams that programs made.
pub(crate) static STREAMS: Handles<Stream> = Handles::new();

/// What stream 0 means to a function, by the symbol through which it was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// The legacy default stream.
    Legacy,
    /// The calling thread's default stream.
    PerThread,
}

/// One stream.
pub(crate) struct Stream {
    /// Its identity for the scheduler.
    pub id: StreamId,
    /// What `cuStreamGetId` answers.
    pub(crate) number: u64,
    /// The context it belongs to.
    pub(crate) ctx: Arc<Context>,
    /// How it takes part in the legacy stream's rule.
    pub kind: StreamKind,
    /// `CU_STREAM_*`.
    pub(crate) flags: u32,
    /// Clamped to the range that the device announces; a hint without effect.
    pub(crate) priority: i32,
    /// The capture under way.
    pub(crate) capture: Mutex<Option<Capture>>,
    /// Whether `cuStreamDestroy` was called.
    pub(crate) destroyed: AtomicBool,
    /// Attributes that were set (id and bytes): remembered, without effect.
    pub(crate) attributes: Mutex<Vec<(u32, [u8; 64])>>,
    /// The kernel that was launched last: another one may overlap it.
    last_launch: Mutex<Option<(OpId, Arc<LaunchOverlap>)>>,
}

impl Stream {
    /// A new stream of a context.
    pub(crate) fn new(ctx: &Arc<Context>, kind: StreamKind, flags: u32, priority: i32) -> Arc<Stream> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Stream {
            id: ctx.add_stream(kind),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            ctx: ctx.clone(),
            kind,
            flags,
            priority: priority.clamp(-5, 0),
            capture: Mutex::new(None),
            destroyed: AtomicBool::new(false),
            attributes: Mutex::default(),
            last_launch: Mutex::default(),
        })
    }

    /// A kernel was launched. `overlaps`: it may begin before the one in front of it has ended, if
    /// that is all it waits for.
    pub(crate) fn launched(&self, op: OpId, launch: Arc<LaunchOverlap>, overlaps: bool) {
        let mut last = self.last_launch.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((before, earlier)) = last.as_ref().filter(|_| overlaps)
            && sched::get().waits_for_one(op) == Some(*before)
        {
            earlier.overlapped_by(&launch);
        }
        *last = Some((op, launch));
    }

    /// A stream for a program, in the current context.
    pub(crate) fn create(flags: u32, priority: i32) -> Result<usize, CUresult> {
        if flags & !CU_STREAM_NON_BLOCKING != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let kind = if flags & CU_STREAM_NON_BLOCKING != 0 { StreamKind::NonBlocking } else { StreamKind::Blocking };
        Ok(STREAMS.insert(Stream::new(&thread::context()?, kind, flags, priority)))
    }

    /// Waits for everything that is in the stream now (and, for the legacy stream, for what it is
    /// ordered after).
    pub(crate) fn synchronize(&self) -> Result<(), CUresult> {
        let scheduler = sched::get();
        scheduler.wait(&scheduler.pending_before(self.id));
        self.ctx.check()
    }
}

/// The stream that a handle means in the current context.
pub(crate) fn resolve(handle: usize, zero: DefaultStream) -> Result<Arc<Stream>, CUresult> {
    match (handle, zero) {
        (0, DefaultStream::Legacy) | (1, _) => Ok(thread::context()?.legacy()),
        (0, DefaultStream::PerThread) | (2, _) => per_thread(),
        _ => {
            let stream = STREAMS.find(handle).ok_or(CUresult::ERROR_INVALID_HANDLE)?;
            stream.ctx.check()?;
            Ok(stream)
        }
    }
}

fn per_thread() -> Result<Arc<Stream>, CUresult> {
    let ctx = thread::context()?;
    let mut streams = thread::current().streams.borrow_mut();
    Ok(streams.entry(ctx.id).or_insert_with(|| Stream::new(&ctx, StreamKind::Blocking, 0, 0)).clone())
}
