//! Contexts: they hold streams, modules and allocations together, and a failing kernel breaks one
//! as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use cuda_sys::*;

use crate::config;
use crate::handles::Handles;
use crate::objects::stream::Stream;
use crate::sched::{self, ContextId, StreamId, StreamKind};

/// All live contexts.
pub static CONTEXTS: Handles<Context> = Handles::new();

/// One context.
pub struct Context {
    /// Its identity for the scheduler.
    pub id: ContextId,
    /// The device it is on.
    pub device: u32,
    /// Whether it is its device's primary context.
    pub primary: bool,
    /// The flags it was made with (`CU_CTX_*`).
    pub flags: AtomicU32,
    /// Limits that were set (`cuCtxSetLimit`), by number; zero is "not set".
    pub limits: [AtomicU64; 16],
    /// `cuCtxSetCacheConfig` and `cuCtxSetSharedMemConfig`: remembered, without effect.
    pub cache_config: AtomicU32,
    /// See `cache_config`.
    pub shared_config: AtomicU32,
    /// Devices whose memory was made accessible, one bit each.
    pub peers: AtomicU32,
    legacy: OnceLock<Arc<Stream>>,
    error: AtomicU32,
    destroyed: AtomicBool,
}

/// Default values of limits, by number; `None` where the device has no such limit.
fn default_limit(limit: CUlimit) -> Option<u64> {
    Some(match limit {
        CU_LIMIT_STACK_SIZE => 1024,
        CU_LIMIT_PRINTF_FIFO_SIZE => 7 << 20,
        CU_LIMIT_MALLOC_HEAP_SIZE => 8 << 20,
        CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => 2048,
        CU_LIMIT_MAX_L2_FETCH_GRANULARITY => 64,
        CU_LIMIT_PERSISTING_L2_CACHE_SIZE => 0,
        _ => return None,
    })
}

impl Context {
    /// The value of a limit; `None` where the device has no such limit.
    pub fn limit(&self, limit: CUlimit) -> Option<u64> {
        let default = default_limit(limit)?;
        let set = self.limits.get(limit.0 as usize)?.load(Ordering::Relaxed);
        Some(if set == 0 { default } else { set })
    }

    /// A new context on a device.
    pub fn new(device: u32, primary: bool, flags: u32) -> Arc<Context> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let ctx = Arc::new(Context {
            id: ContextId(NEXT.fetch_add(1, Ordering::Relaxed)),
            device,
            primary,
            flags: AtomicU32::new(flags),
            limits: Default::default(),
            cache_config: AtomicU32::new(0),
            shared_config: AtomicU32::new(0),
            peers: AtomicU32::new(0),
            legacy: OnceLock::new(),
            error: AtomicU32::new(0),
            destroyed: AtomicBool::new(false),
        });
        CONTEXTS.insert(ctx.clone());
        ctx
    }

    /// The context's legacy default stream.
    pub fn legacy(self: &Arc<Context>) -> Arc<Stream> {
        self.legacy.get_or_init(|| Stream::new(self, StreamKind::Legacy, 0, 0)).clone()
    }

    /// What the context broke of, if it is broken: every later call fails with the same status.
    pub fn check(&self) -> Result<(), CUresult> {
        match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(CUresult(error)),
        }
    }

    /// Breaks the context. The first reason stays.
    pub fn fail(&self, error: CUresult) {
        let _ = self.error.compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether `cuCtxDestroy` or the last release of a primary context has ended it.
    pub fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    /// Waits for all work of the context.
    pub fn synchronize(&self) -> Result<(), CUresult> {
        let scheduler = sched::get();
        scheduler.wait(&scheduler.context_tails(self.id));
        self.check()
    }

    /// Waits for all work, then ends the context and all that belongs to it.
    pub fn destroy(&self) {
        let scheduler = sched::get();
        scheduler.wait(&scheduler.context_tails(self.id));
        self.destroyed.store(true, Ordering::Release);
        crate::objects::stream::STREAMS.retain(|stream| {
            let mine = stream.ctx.id == self.id;
            if mine {
                scheduler.remove_stream(stream.id);
            }
            !mine
        });
        crate::memory::get().forget_context(self.id);
        CONTEXTS.retain(|ctx| ctx.id != self.id);
    }

    /// Makes a stream of the context known to the scheduler.
    pub fn add_stream(&self, kind: StreamKind) -> StreamId {
        sched::get().add_stream(self.id, kind)
    }
}

/// A device's primary context and how often it was retained.
#[derive(Default)]
pub struct Primary {
    /// `None` until retained.
    pub ctx: Option<Arc<Context>>,
    /// Retains minus releases.
    pub count: u32,
    /// Flags for the next time it is made.
    pub flags: u32,
    /// A reset came after a kernel had failed.
    pub lost: bool,
}

/// The primary context of a device.
pub fn primary(device: u32) -> Result<&'static Mutex<Primary>, CUresult> {
    static PRIMARIES: [Mutex<Primary>; 8] =
        [const { Mutex::new(Primary { ctx: None, count: 0, flags: 0, lost: false }) }; 8];
    if device >= config::get_or_default().devices {
        return Err(CUresult::ERROR_INVALID_DEVICE);
    }
    Ok(&PRIMARIES[device as usize])
}

/// Retains a device's primary context, making it if need be.
pub fn retain_primary(device: u32) -> Result<Arc<Context>, CUresult> {
    let mut primary = primary(device)?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if primary.lost {
        return Err(CUresult::ERROR_DEVICE_UNAVAILABLE);
    }
    primary.count += 1;
    let flags = primary.flags;
    Ok(primary.ctx.get_or_insert_with(|| Context::new(device, true, flags)).clone())
}
