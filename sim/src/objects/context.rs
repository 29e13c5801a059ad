//! Contexts: they hold streams, modules and allocations together, and a failing kernel breaks one
//! as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use cuda_sys::*;

use crate::config;
use crate::handles::Handles;
use crate::objects::stream::Stream;
use crate::sched::{self, ContextId, OpId, StreamId, StreamKind};

/// All live contexts.
pub(crate) static CONTEXTS: Handles<Context> = Handles::new();

/// One context.
pub(crate) struct Context {
    /// Its identity for the scheduler.
    pub(crate) id: ContextId,
    /// The device it is on.
    pub(crate) device: u32,
    /// Whether it is its device's primary context.
    pub(crate) primary: bool,
    /// The flags it was made with (`CU_CTX_*`).
    pub(crate) flags: AtomicU32,
    /// Limits that were set (`cuCtxSetLimit`), by number; zero is "not set".
    pub(crate) limits: [AtomicU64; 16],
    /// `cuCtxSetCacheConfig` and `cuCtxSetSharedMemConfig`: remembered, without effect.
    pub(crate) cache_config: AtomicU32,
    /// See `cache_config`.
    pub(crate) shared_config: AtomicU32,
    /// Devices whose memory was made accessible, one bit each.
    pub(crate) peers: AtomicU32,
    /// The context that it is a part of, if it is a green one's.
    pub(crate) whole: Option<Arc<Context>>,
    parts: Mutex<Vec<ContextId>>,
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
    pub(crate) fn limit(&self, limit: CUlimit) -> Option<u64> {
        let default = default_limit(limit)?;
        let set = self.limits.get(limit.0 as usize)?.load(Ordering::Relaxed);
        Some(if set == 0 { default } else { set })
    }

    /// A new context on a device.
    pub(crate) fn new(device: u32, primary: bool, flags: u32) -> Arc<Context> {
        Self::made(device, primary, flags, None)
    }

    /// A new context for a green one, whose work a wait for the whole waits for, too (cuda.h,
    /// `cuCtxSynchronize`).
    pub(crate) fn part_of(whole: &Arc<Context>) -> Arc<Context> {
        let part = Self::made(whole.device, false, whole.flags.load(Ordering::Relaxed), Some(whole.clone()));
        whole.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(part.id);
        part
    }

    fn made(device: u32, primary: bool, flags: u32, whole: Option<Arc<Context>>) -> Arc<Context> {
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
            whole,
            parts: Mutex::default(),
            legacy: OnceLock::new(),
            error: AtomicU32::new(0),
            destroyed: AtomicBool::new(false),
        });
        CONTEXTS.insert(ctx.clone());
        ctx
    }

    /// The context's legacy default stream.
    pub(crate) fn legacy(self: &Arc<Context>) -> Arc<Stream> {
        self.legacy.get_or_init(|| Stream::new(self, StreamKind::Legacy, 0, 0)).clone()
    }

    /// What the context broke of, if it is broken: every later call fails with the same status.
    pub(crate) fn check(&self) -> Result<(), CUresult> {
        match self.owner().error.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(CUresult(error)),
        }
    }

    /// The context that memory and modules belong to: a green one has none of its own.
    pub(crate) fn owner(&self) -> &Context {
        self.whole.as_deref().unwrap_or(self)
    }

    /// The unfinished last operations of all its streams, those of green contexts among them.
    pub(crate) fn tails(&self) -> Vec<OpId> {
        let scheduler = sched::get();
        let mut tails = scheduler.context_tails(self.id);
        for &part in self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
            tails.extend(scheduler.context_tails(part));
        }
        tails
    }

    /// Breaks the context. The first reason stays.
    pub(crate) fn fail(&self, error: CUresult) {
        let _ = self.owner().error.compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether `cuCtxDestroy` or the last release of a primary context has ended it.
    pub(crate) fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    /// Waits for all work of the context.
    pub(crate) fn synchronize(&self) -> Result<(), CUresult> {
        sched::get().wait(&self.tails());
        self.check()
    }

    /// Waits for all work, then ends the context and all that belongs to it.
    pub(crate) fn destroy(&self) {
        let scheduler = sched::get();
        scheduler.wait(&self.tails());
        for part in CONTEXTS.all().into_iter().filter(|ctx| ctx.owner().id == self.id && ctx.id != self.id) {
            part.destroy();
        }
        if let Some(whole) = &self.whole {
            whole.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).retain(|part| *part != self.id);
        }
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
    pub(crate) fn add_stream(&self, kind: StreamKind) -> StreamId {
        sched::get().add_stream(self.id, kind)
    }
}

/// All live green contexts.
pub(crate) static GREEN_CONTEXTS: Handles<GreenContext> = Handles::new();
/// All descriptors of resources, which have no end in the interface.
pub(crate) static DESCRIPTORS: Handles<Descriptor> = Handles::new();

/// Resources for a green context.
#[derive(Clone, Copy)]
pub(crate) struct Descriptor {
    /// How many multiprocessors.
    pub(crate) multiprocessors: u32,
}

/// A green context: streams for a share of a device. Which multiprocessors run a kernel is not
/// simulated; memory and modules are the primary context's.
pub(crate) struct GreenContext {
    /// The context of its streams.
    pub(crate) ctx: Arc<Context>,
    /// What it was made of.
    pub(crate) share: Descriptor,
}

impl GreenContext {
    /// Makes one of a device's primary context, which it retains.
    pub(crate) fn create(device: u32, share: Descriptor) -> Result<usize, CUresult> {
        let primary = retain_primary(device)?;
        Ok(GREEN_CONTEXTS.insert(Arc::new(GreenContext { ctx: Context::part_of(&primary), share })))
    }

    /// The green context whose streams a context holds.
    pub(crate) fn of(ctx: &Context) -> Option<Arc<GreenContext>> {
        GREEN_CONTEXTS.all().into_iter().find(|green| green.ctx.id == ctx.id)
    }
}

/// A device's primary context and how often it was retained.
#[derive(Default)]
pub(crate) struct Primary {
    /// `None` until retained.
    pub(crate) ctx: Option<Arc<Context>>,
    /// Retains minus releases.
    pub(crate) count: u32,
    /// Flags for the next time it is made.
    pub(crate) flags: u32,
    /// A reset came after a kernel had failed.
    pub(crate) lost: bool,
}

/// The primary context of a device.
pub(crate) fn primary(device: u32) -> Result<&'static Mutex<Primary>, CUresult> {
    static PRIMARIES: [Mutex<Primary>; 8] =
        [const { Mutex::new(Primary { ctx: None, count: 0, flags: 0, lost: false }) }; 8];
    if device >= config::get_or_default().devices {
        return Err(CUresult::ERROR_INVALID_DEVICE);
    }
    Ok(&PRIMARIES[device as usize])
}

/// Retains a device's primary context, making it if need be.
pub(crate) fn retain_primary(device: u32) -> Result<Arc<Context>, CUresult> {
    let mut primary = primary(device)?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if primary.lost {
        return Err(CUresult::ERROR_DEVICE_UNAVAILABLE);
    }
    primary.count += 1;
    let flags = primary.flags;
    Ok(primary.ctx.get_or_insert_with(|| Context::new(device, true, flags)).clone())
}
