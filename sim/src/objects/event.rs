//! Events: a snapshot of a stream, taken when the event is recorded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cuda_sys::{CU_EVENT_DISABLE_TIMING, CU_EVENT_INTERPROCESS, CUresult};

use crate::handles::Handles;
use crate::objects::capture::CapturedEvent;
use crate::objects::context::Context;
pub(crate) use crate::objects::ipc_event::IpcEventState;
use crate::sched::{self, OpId, Stamp};

/// All live events.
pub(crate) static EVENTS: Handles<Event> = Handles::new();

/// The last record of an event.
#[derive(Clone, Default)]
pub(crate) struct EventRecord {
    /// The point in the stream; "none" when never recorded, which counts as done.
    pub(crate) op: OpId,
    /// When the point was reached.
    pub(crate) stamp: Stamp,
    /// Set when the record was captured: the event then belongs to the capture.
    pub(crate) captured: Option<CapturedEvent>,
    /// Whether it was recorded at all.
    pub(crate) is_set: bool,
}

/// One event.
pub(crate) struct Event {
    /// The context it belongs to.
    pub(crate) ctx: Arc<Context>,
    /// `CU_EVENT_*`.
    pub(crate) flags: u32,
    /// Its last record.
    pub(crate) record: Mutex<EventRecord>,
    /// What other processes see of it (`CU_EVENT_INTERPROCESS`).
    pub(crate) shared: Option<Arc<IpcEventState>>,
}

impl Event {
    /// An event for a program.
    pub(crate) fn create(ctx: &Arc<Context>, flags: u32) -> usize {
        let shared = (flags & CU_EVENT_INTERPROCESS != 0).then(IpcEventState::create).flatten();
        EVENTS.insert(Arc::new(Event { ctx: ctx.clone(), flags, record: Mutex::default(), shared }))
    }

    /// An event that another process has made.
    pub(crate) fn open(ctx: &Arc<Context>, shared: Arc<IpcEventState>) -> usize {
        let flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
        EVENTS.insert(Arc::new(Event { ctx: ctx.clone(), flags, record: Mutex::default(), shared: Some(shared) }))
    }

    /// Whether the last record has happened, if another process made it.
    pub(crate) fn elsewhere(&self) -> Option<impl FnMut() -> bool + Send + 'static> {
        self.shared.clone().and_then(|shared| shared.last_elsewhere())
    }

    /// The last record.
    pub(crate) fn last(&self) -> EventRecord {
        self.record.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Replaces the last record. Waits that took the earlier one keep it.
    pub(crate) fn set(&self, record: EventRecord) {
        *self.record.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = record;
    }

    /// The last record for a call of the host about the event; refused when it belongs to a
    /// capture.
    pub(crate) fn for_host(&self) -> Result<EventRecord, CUresult> {
        let record = self.last();
        if record.captured.is_some() {
            return Err(CUresult::ERROR_CAPTURED_EVENT);
        }
        Ok(record)
    }

    /// Milliseconds between two records.
    pub(crate) fn elapsed(start: &Event, end: &Event) -> Result<f32, CUresult> {
        let (from, to) = (start.for_host()?, end.for_host()?);
        if (start.flags | end.flags) & CU_EVENT_DISABLE_TIMING != 0 || !from.is_set || !to.is_set {
            return Err(CUresult::ERROR_INVALID_HANDLE);
        }
        if !sched::get().poll(&[from.op, to.op]) {
            return Err(CUresult::ERROR_NOT_READY);
        }
        let at = |record: &EventRecord| record.stamp.load(Ordering::Acquire) as f64;
        Ok(((at(&to) - at(&from)) / 1e6) as f32)
    }

    /// A stamp for a new record.
    pub(crate) fn new_stamp() -> Stamp {
        Arc::new(AtomicU64::new(0))
    }
}
