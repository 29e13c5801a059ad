//! What the driver keeps for each host thread: its stack of contexts, its default streams, its
//! capture mode.
//!
//! The state is never destroyed: exit handlers and destructors of other thread-local data may still
//! call CUDA.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_sys::{CU_STREAM_CAPTURE_MODE_GLOBAL, CUresult, CUstreamCaptureMode};

use crate::objects::context::Context;
use crate::objects::stream::Stream;
use crate::sched::ContextId;

/// One host thread.
pub(crate) struct Thread {
    /// The current context is the last one.
    pub(crate) contexts: RefCell<Vec<Arc<Context>>>,
    /// The thread's default stream in each context.
    pub(crate) streams: RefCell<HashMap<ContextId, Arc<Stream>>>,
    /// Which calls are refused while captures are under way.
    pub(crate) capture_mode: Cell<CUstreamCaptureMode>,
    /// Whether a host function of a stream runs on this thread: CUDA calls are refused then.
    pub(crate) in_callback: Cell<bool>,
}

thread_local! {
    static THREAD: Cell<*const Thread> = const { Cell::new(std::ptr::null()) };
}

/// The calling thread's state.
pub(crate) fn current() -> &'static Thread {
    THREAD.with(|cell| {
        if cell.get().is_null() {
            cell.set(Box::leak(Box::new(Thread {
                contexts: RefCell::default(),
                streams: RefCell::default(),
                capture_mode: Cell::new(CU_STREAM_CAPTURE_MODE_GLOBAL),
                in_callback: Cell::new(false),
            })));
        }
        // SAFETY: made from a leaked box by this very thread.
        unsafe { &*cell.get() }
    })
}

/// The current context; refused when there is none or when it is broken.
pub(crate) fn context() -> Result<Arc<Context>, CUresult> {
    let ctx = current().contexts.borrow().last().cloned().ok_or(CUresult::ERROR_INVALID_CONTEXT)?;
    if ctx.is_destroyed() {
        return Err(CUresult::ERROR_CONTEXT_IS_DESTROYED);
    }
    ctx.check()?;
    Ok(ctx)
}

/// Set in a child process: the device did not come along.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process is a fork of one that used the device.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Sees to it that a forked child notices.
pub(crate) fn watch_forks() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler only stores to an atomic.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}
