//! The tables of all contexts: which are in use, which are free, and the stream of ours that they
//! are read on.
//!
//! Owns their number. The content of a table is in [`super::device_table`]. Callbacks of the API
//! take the pool's lock while the driver holds its own, so nothing here calls the driver with the
//! lock held.

use cuda_sys::{CU_STREAM_NON_BLOCKING, CUcontext, CUresult, CUstream, c_uint};

use super::device_table::{DeviceTable, STAGE};
use super::sanitizer_api::{SanitizerApi, StreamHandle};
use crate::real::driver::real;
use crate::runtime::lock::Lock;

/// Tables of one context, at most: launches that may be in flight with exact ranges.
const TABLES: usize = 8;

/// Tables that may be given up in one context (launches that failed, or that no hook saw) before
/// there are no new ones.
const LOSSES: usize = 8;

/// What a launch can have.
pub(super) enum TableOffer {
    /// An empty table.
    Free(DeviceTable),
    /// Nothing: all are in use.
    None,
    /// It is the context's first: a table is to be made in the callback, where the launch's stream
    /// is waited for.
    First,
}

/// What is missing for the next launch.
#[derive(PartialEq, Eq)]
pub(super) enum TableNeed {
    /// A table is free.
    Nothing,
    /// Tables are being emptied: they are free when the stream has got there.
    Cleaning,
    /// A table is to be made.
    Table,
    /// No more are made: one must come free.
    Patience,
}

/// A context with patched code.
struct PatchedContext {
    context: CUcontext,
    tables: usize,
    lost: usize,
    /// Our stream in it; null before it is made.
    stream: StreamHandle,
    /// Tables that our stream is emptying.
    cleaning: Vec<DeviceTable>,
    stages: Vec<HostStage>,
}

/// Pinned host memory of a context, that tables are fetched into.
pub(super) struct HostStage(*mut u64);

impl HostStage {
    /// Allocates; `None` when there is no memory.
    pub(super) fn new(api: &SanitizerApi, context: CUcontext) -> Option<Self> {
        let mut at = std::ptr::null_mut();
        // SAFETY: out-pointer to a local.
        let answer = unsafe { (api.alloc_host)(context, &raw mut at, STAGE) };
        (answer == 0 && !at.is_null()).then_some(Self(at.cast()))
    }

    /// The memory.
    pub(super) fn words(&mut self) -> &mut [u64] {
        // SAFETY: it has as many bytes, is aligned to pages, and lives as long as its context,
        // which is current; any bytes are valid.
        unsafe { std::slice::from_raw_parts_mut(self.0, STAGE / 8) }
    }
}

/// All tables that no launch is being made with.
#[derive(Default)]
pub(super) struct TablePool {
    free: Vec<DeviceTable>,
    /// Tables of launches that have not been seen to finish.
    pub pending: Vec<DeviceTable>,
    contexts: Vec<PatchedContext>,
}

// SAFETY: handles of the driver, valid on every thread.
unsafe impl Send for TablePool {}

impl TablePool {
    fn context(&mut self, context: CUcontext) -> &mut PatchedContext {
        let at = self.contexts.iter().position(|c| c.context == context).unwrap_or_else(|| {
            self.contexts.push(PatchedContext {
                context,
                tables: 0,
                lost: 0,
                stream: std::ptr::null_mut(),
                cleaning: Vec::new(),
                stages: Vec::new(),
            });
            self.contexts.len() - 1
        });
        &mut self.contexts[at]
    }

    /// What a launch in this context can have.
    pub(super) fn take(&mut self, context: CUcontext) -> TableOffer {
        if let Some(at) = self.free.iter().position(|t| t.context == context) {
            return TableOffer::Free(self.free.swap_remove(at));
        }
        let known = self.context(context);
        if known.tables > 0 {
            return TableOffer::None;
        }
        known.tables = 1;
        TableOffer::First
    }

    /// What must be done so that the next launch in this context finds a table.
    pub(super) fn need(&mut self, context: CUcontext) -> TableNeed {
        if self.free.iter().any(|t| t.context == context) {
            return TableNeed::Nothing;
        }
        let known = self.context(context);
        if !known.cleaning.is_empty() {
            return TableNeed::Cleaning;
        }
        if known.tables >= TABLES {
            return TableNeed::Patience;
        }
        known.tables += 1;
        TableNeed::Table
    }

    /// A new table that [`TablePool::need`] asked for; `None` when there is no memory for it, so
    /// that those that are there must do.
    pub(super) fn provide(&mut self, context: CUcontext, table: Option<DeviceTable>) {
        match table {
            Some(table) => self.free.push(table),
            None => self.context(context).tables = TABLES,
        }
    }

    /// A table is empty and unused again.
    pub(super) fn give_back(&mut self, table: DeviceTable) {
        self.free.push(table);
    }

    /// Tables that are being emptied by what our stream has been given so far.
    pub(super) fn take_cleaning(&mut self, context: CUcontext) -> Vec<DeviceTable> {
        std::mem::take(&mut self.context(context).cleaning)
    }

    /// A table is being emptied, by way of our stream.
    pub(super) fn clean(&mut self, table: DeviceTable) {
        self.context(table.context).cleaning.push(table);
    }

    /// Memory to fetch into, if any is at hand.
    pub(super) fn take_stage(&mut self, context: CUcontext) -> Option<HostStage> {
        self.context(context).stages.pop()
    }

    /// The memory is not used any more.
    pub(super) fn give_stage(&mut self, context: CUcontext, stage: HostStage) {
        self.context(context).stages.push(stage);
    }

    /// A table is left to a launch whose end is unknown.
    pub(super) fn give_up(&mut self, context: CUcontext) {
        let known = self.context(context);
        if known.lost < LOSSES {
            known.lost += 1;
            known.tables = known.tables.saturating_sub(1).max(1);
        }
    }

    /// A context goes away, and its tables with it: those whose launches were never seen to finish.
    pub(super) fn forget(&mut self, context: CUcontext) -> Vec<DeviceTable> {
        self.free.retain(|t| t.context != context);
        self.contexts.retain(|c| c.context != context);
        let (lost, kept) = std::mem::take(&mut self.pending).into_iter().partition(|t| t.context == context);
        self.pending = kept;
        lost
    }
}

/// Our stream in a context, which is current. Made when first asked for.
pub(super) fn stream(pool: &Lock<TablePool>, api: &SanitizerApi, context: CUcontext) -> Option<StreamHandle> {
    let known = pool.lock().ok()?.context(context).stream;
    if !known.is_null() {
        return Some(known);
    }
    let mut made = CUstream::NULL;
    if real!(cuStreamCreate(&raw mut made => *mut CUstream, CU_STREAM_NON_BLOCKING => c_uint)) != CUresult::SUCCESS {
        return None;
    }
    let mut handle: StreamHandle = std::ptr::null_mut();
    // SAFETY: the stream was just made in this context; the out-pointer is to a local.
    let answer = unsafe { (api.stream_handle)(context, made, &raw mut handle) };
    if answer != 0 || handle.is_null() {
        return None;
    }
    // When two threads make one each, both are good.
    pool.lock().ok()?.context(context).stream = handle;
    Some(handle)
}

/// Does something in a context; `None` when it can not be made current.
pub(super) fn within<R>(context: CUcontext, run: impl FnOnce() -> R) -> Option<R> {
    let mut current = CUcontext::NULL;
    let _ = real!(cuCtxGetCurrent(&raw mut current => *mut CUcontext));
    let foreign = current != context;
    if foreign && real!(cuCtxPushCurrent_v2(context => CUcontext)) != CUresult::SUCCESS {
        return None;
    }
    let result = run();
    if foreign {
        let mut popped = CUcontext::NULL;
        let _ = real!(cuCtxPopCurrent_v2(&raw mut popped => *mut CUcontext));
    }
    Some(result)
}
