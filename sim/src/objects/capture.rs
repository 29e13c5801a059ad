//! Stream capture: turns the calls on a stream into a graph.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Weak};

use cuda_sys::*;

use crate::handles::handle_of;
use crate::objects::event::{Event, EventRecord};
use crate::objects::graph::{Graph, Node, programmatic};
use crate::objects::stream::Stream;
use crate::objects::task::Task;
use crate::objects::thread;
use crate::sched::StreamKind;

/// What the streams of one capture share.
pub(crate) struct CaptureState {
    /// What `cuStreamGetCaptureInfo` answers.
    pub(crate) id: u64,
    /// What is being built.
    pub(crate) graph: Arc<Graph>,
    mode: CUstreamCaptureMode,
    thread: *const thread::Thread,
    /// The stream that the capture began on.
    pub(crate) origin: Weak<Stream>,
    invalid: AtomicBool,
    streams: Mutex<Vec<Weak<Stream>>>,
}

// SAFETY: the thread pointer is compared, never followed.
unsafe impl Send for CaptureState {}
// SAFETY: as above.
unsafe impl Sync for CaptureState {}

/// A stream's part in a capture.
#[derive(Clone)]
pub(crate) struct Capture {
    /// The capture.
    pub(crate) shared: Arc<CaptureState>,
    /// What the stream's next node comes after.
    pub(crate) deps: Vec<Arc<Node>>,
    /// The data of the edges from those, by handle, where they have any.
    pub(crate) data: HashMap<usize, CUgraphEdgeData>,
}

/// An event recorded in a capture.
#[derive(Clone)]
pub(crate) struct CapturedEvent {
    shared: Arc<CaptureState>,
    deps: Vec<Arc<Node>>,
    data: HashMap<usize, CUgraphEdgeData>,
}

static ACTIVE: Mutex<Vec<Arc<CaptureState>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl CaptureState {
    /// Whether something went wrong: the capture can only be ended.
    pub(crate) fn is_invalid(&self) -> bool {
        self.invalid.load(Ordering::Acquire)
    }

    fn invalidate(&self) {
        self.invalid.store(true, Ordering::Release);
    }
}

/// The stream's part in a capture, if it captures.
pub(crate) fn of(stream: &Stream) -> Option<Capture> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    lock(&stream.capture).clone()
}

/// Adds the task to the stream's capture; answers whether there is one.
pub(crate) fn add(stream: &Arc<Stream>, task: &Task) -> Result<bool, CUresult> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Ok(false);
    }
    let mut slot = lock(&stream.capture);
    let Some(capture) = slot.as_mut() else {
        drop(slot);
        if stream.kind == StreamKind::Legacy {
            refuse_legacy(stream)?;
        }
        return Ok(false);
    };
    if capture.shared.is_invalid() {
        return Err(CUresult::ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    let node = capture.shared.graph.add(task.clone(), &capture.deps)?;
    let data = std::mem::take(&mut capture.data);
    // Work that is no kernel waits for all of the kernel before it.
    if matches!(task, Task::Kernel(_)) {
        for (from, data) in data {
            capture.shared.graph.set_data((from, handle_of(&node)), data);
        }
    }
    capture.deps = vec![node];
    Ok(true)
}

/// The next kernel on the stream may begin before the kernel directly before it is over.
pub(crate) fn overlap_next(stream: &Stream) {
    if let Some(capture) = lock(&stream.capture).as_mut()
        && let [before] = &capture.deps[..]
        && matches!(before.task(), Task::Kernel(_))
    {
        capture.data.insert(handle_of(before), programmatic(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC));
    }
}

/// Work in the legacy stream would depend on blocking streams that capture: an error that breaks
/// their captures.
fn refuse_legacy(stream: &Arc<Stream>) -> Result<(), CUresult> {
    for shared in lock(&ACTIVE).iter() {
        let touches = lock(&shared.streams)
            .iter()
            .filter_map(Weak::upgrade)
            .any(|captured| captured.ctx.id == stream.ctx.id && captured.kind == StreamKind::Blocking);
        if touches {
            shared.invalidate();
            return Err(CUresult::ERROR_STREAM_CAPTURE_IMPLICIT);
        }
    }
    Ok(())
}

/// Whether a blocking stream of the legacy stream's context captures: what the legacy stream
/// does is undefined then. Asking does not disturb the capture.
pub(crate) fn refuse_question(stream: &Stream) -> Result<(), CUresult> {
    let blocks = |captured: &Arc<Stream>| captured.ctx.id == stream.ctx.id && captured.kind == StreamKind::Blocking;
    let captures =
        |shared: &Arc<CaptureState>| lock(&shared.streams).iter().filter_map(Weak::upgrade).any(|s| blocks(&s));
    if stream.kind == StreamKind::Legacy && COUNT.load(Ordering::Acquire) > 0 && lock(&ACTIVE).iter().any(captures) {
        return Err(CUresult::ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    Ok(())
}

/// Refuses a wait for everything while any stream captures, whatever the modes.
pub(crate) fn refuse_wait_for_all() -> Result<(), CUresult> {
    refuse_unsafe()?;
    match lock(&ACTIVE).iter().find(|shared| !shared.is_invalid()) {
        Some(shared) => {
            shared.invalidate();
            Err(CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED)
        }
        None => Ok(()),
    }
}

/// Refuses a call that may not happen while a stream captures (allocations, waits): which captures
/// count depends on their mode and on the thread's.
pub(crate) fn refuse_unsafe() -> Result<(), CUresult> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let me = thread::current();
    let mode = me.capture_mode.get();
    if mode == CU_STREAM_CAPTURE_MODE_RELAXED {
        return Ok(());
    }
    for shared in lock(&ACTIVE).iter() {
        let mine = std::ptr::eq(shared.thread, me);
        let counts = match shared.mode {
            CU_STREAM_CAPTURE_MODE_GLOBAL => mine || mode == CU_STREAM_CAPTURE_MODE_GLOBAL,
            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => mine,
            _ => false,
        };
        if counts && !shared.is_invalid() {
            shared.invalidate();
            return Err(CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    Ok(())
}

/// The stream's capture, if there is one, can only be ended from now on.
pub(crate) fn break_of(stream: &Stream) {
    if let Some(capture) = of(stream) {
        capture.shared.invalidate();
    }
}

/// Refuses a wait for a stream that captures.
pub(crate) fn refuse_wait(stream: &Stream) -> Result<(), CUresult> {
    match of(stream) {
        Some(capture) => {
            capture.shared.invalidate();
            Err(CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED)
        }
        None => Ok(()),
    }
}

/// An existing graph that a capture goes into, the nodes that it begins behind, and the data of the
/// edges to them.
pub(crate) type Behind = (Arc<Graph>, Vec<Arc<Node>>, HashMap<usize, CUgraphEdgeData>);

/// Begins a capture on a stream, into a new graph or behind nodes of an existing one.
pub(crate) fn begin(stream: &Arc<Stream>, mode: CUstreamCaptureMode, into: Option<Behind>) -> Result<(), CUresult> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if stream.kind == StreamKind::Legacy {
        return Err(CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if mode.0 > CU_STREAM_CAPTURE_MODE_RELAXED.0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let mut slot = lock(&stream.capture);
    if slot.is_some() {
        return Err(CUresult::ERROR_ILLEGAL_STATE);
    }
    let (graph, deps, data) = into.unwrap_or_else(|| (Graph::create(), Vec::new(), HashMap::new()));
    let shared = Arc::new(CaptureState {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        graph,
        mode,
        thread: thread::current(),
        origin: Arc::downgrade(stream),
        invalid: AtomicBool::new(false),
        streams: Mutex::new(vec![Arc::downgrade(stream)]),
    });
    *slot = Some(Capture { shared: shared.clone(), deps, data });
    lock(&ACTIVE).push(shared);
    COUNT.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Ends the capture that began on a stream.
pub(crate) fn end(stream: &Arc<Stream>) -> Result<Arc<Graph>, CUresult> {
    let capture = lock(&stream.capture).clone().ok_or(CUresult::ERROR_ILLEGAL_STATE)?;
    let shared = capture.shared;
    if !shared.origin.upgrade().is_some_and(|origin| Arc::ptr_eq(&origin, stream)) {
        shared.invalidate();
        return Err(CUresult::ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if shared.mode != CU_STREAM_CAPTURE_MODE_RELAXED && !std::ptr::eq(shared.thread, thread::current()) {
        return Err(CUresult::ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }
    let mut unjoined = false;
    for other in lock(&shared.streams).iter().filter_map(Weak::upgrade) {
        let part = lock(&other.capture).take();
        if let Some(part) = part.filter(|_| !Arc::ptr_eq(&other, stream)) {
            // Joined means: everything that this stream captured comes before what the origin would
            // do next.
            unjoined |= !part.deps.iter().all(|node| shared.graph.reaches(node, &capture.deps));
        }
    }
    let mut active = lock(&ACTIVE);
    active.retain(|other| !Arc::ptr_eq(other, &shared));
    COUNT.store(active.len(), Ordering::Release);
    drop(active);
    if shared.is_invalid() {
        let _ = crate::objects::graph::GRAPHS.remove(handle_of(&shared.graph));
        return Err(CUresult::ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    if unjoined {
        let _ = crate::objects::graph::GRAPHS.remove(handle_of(&shared.graph));
        return Err(CUresult::ERROR_STREAM_CAPTURE_UNJOINED);
    }
    Ok(shared.graph.clone())
}

/// Records an event in a capturing stream: it marks the nodes that the stream has got to.
pub(crate) fn record(event: &Event, capture: &Capture) -> Result<(), CUresult> {
    if capture.shared.is_invalid() {
        return Err(CUresult::ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    let (shared, deps, data) = (capture.shared.clone(), capture.deps.clone(), capture.data.clone());
    let captured = CapturedEvent { shared, deps, data };
    event.set(EventRecord { captured: Some(captured), is_set: true, ..EventRecord::default() });
    Ok(())
}

/// Makes a stream wait for an event. Returns whether a capture handled it.
pub(crate) fn wait(stream: &Arc<Stream>, event: &Event) -> Result<bool, CUresult> {
    let captured = event.last().captured;
    let mut slot = lock(&stream.capture);
    match (slot.as_mut(), captured) {
        (None, None) => Ok(false),
        (Some(capture), None) => {
            // Work outside the graph cannot be waited for inside it.
            if event.last().is_set {
                capture.shared.invalidate();
                return Err(CUresult::ERROR_STREAM_CAPTURE_ISOLATION);
            }
            Ok(true)
        }
        (Some(capture), Some(captured)) => {
            if !Arc::ptr_eq(&capture.shared, &captured.shared) {
                capture.shared.invalidate();
                captured.shared.invalidate();
                return Err(CUresult::ERROR_STREAM_CAPTURE_MERGE);
            }
            for node in captured.deps {
                let handle = handle_of(&node);
                if !capture.deps.iter().any(|dep| Arc::ptr_eq(dep, &node)) {
                    capture.data.extend(captured.data.get(&handle).map(|data| (handle, *data)));
                    capture.deps.push(node);
                } else if !captured.data.contains_key(&handle) {
                    // Now all of it is waited for.
                    capture.data.remove(&handle);
                }
            }
            Ok(true)
        }
        (None, Some(captured)) => {
            let active = lock(&ACTIVE).iter().any(|shared| Arc::ptr_eq(shared, &captured.shared));
            if !active {
                return Err(CUresult::ERROR_CAPTURED_EVENT);
            }
            if stream.kind == StreamKind::Legacy {
                captured.shared.invalidate();
                return Err(CUresult::ERROR_STREAM_CAPTURE_IMPLICIT);
            }
            lock(&captured.shared.streams).push(Arc::downgrade(stream));
            *slot = Some(Capture { shared: captured.shared, deps: captured.deps, data: captured.data });
            Ok(true)
        }
    }
}
