//! Whether a stream is being captured, and the stacks of the nodes that its calls add.
//!
//! Owns the question to the driver, which is asked only while some stream is captured
//! ([`crate::handles::captures`]). What the nodes do is read from the finished graph when it is
//! instantiated (`crate::ops::graphs`). What made each node come after which other ones is logged
//! as it happens: the finished graph does not say.

use cuda_sys::*;
use trace::{CaptureId, Op, StreamId};

use crate::handles::tables::NodeOrigin;
use crate::ids::events::event_id;
use crate::ids::streams::{known_stream, stream_id};
use crate::observe::Cx;
use crate::real::driver::real;

/// What a call on a captured stream meets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StreamNow {
    /// The stream is not captured.
    Works,
    /// It is, in this capture; none: the driver does not say in which.
    Captured(CaptureId),
}

/// Whether a stream is being captured. If so, the nodes that it depends on now (the one that
/// this call has just added) are remembered with this call's stack.
pub fn note_captured(cx: &mut Cx<'_>, stream: CUstream) -> StreamNow {
    let mut status = CU_STREAM_CAPTURE_STATUS_NONE;
    let mut id = 0_u64;
    let mut graph = CUgraph::NULL;
    let mut nodes: *const CUgraphNode = std::ptr::null();
    let mut count = 0_usize;
    let per_thread = cx.stream0() == Stream0::PerThread;
    macro_rules! ask {
            ($symbol:ident) => {
                real!($symbol(
                    stream => CUstream, &raw mut status => *mut CUstreamCaptureStatus, &raw mut id => *mut u64,
                    &raw mut graph => *mut CUgraph, &raw mut nodes => *mut *const CUgraphNode,
                    &raw mut count => *mut usize
                ))
            };
        }
    let mut edges: *const CUgraphEdgeData = std::ptr::null();
    macro_rules! ask_with_edges {
            ($symbol:ident) => {
                real!($symbol(
                    stream => CUstream, &raw mut status => *mut CUstreamCaptureStatus, &raw mut id => *mut u64,
                    &raw mut graph => *mut CUgraph, &raw mut nodes => *mut *const CUgraphNode,
                    &raw mut edges => *mut *const CUgraphEdgeData, &raw mut count => *mut usize
                ))
            };
        }
    let mut result = if per_thread {
        ask_with_edges!(cuStreamGetCaptureInfo_v3_ptsz)
    } else {
        ask_with_edges!(cuStreamGetCaptureInfo_v3)
    };
    if result == CUresult::ERROR_NOT_FOUND {
        result = if per_thread { ask!(cuStreamGetCaptureInfo_v2_ptsz) } else { ask!(cuStreamGetCaptureInfo_v2) };
    }
    // An error means: the legacy stream while another stream is captured, or edges that this
    // form cannot describe. The first is not captured, the second is.
    if result == CUresult::ERROR_LOSSY_QUERY {
        return StreamNow::Captured(CaptureId::NONE);
    }
    if result != CUresult::SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE {
        return StreamNow::Works;
    }
    if cx.is_after()
        && count > 0
        && !nodes.is_null()
        && let Some(core) = cx.core()
    {
        let stack = cx.stack();
        let call = cx.call;
        let on = known_stream(cx, stream);
        let mut made = None;
        for index in 0..count {
            // SAFETY: the driver answered count nodes, valid until the next call on this
            // stream.
            let node = unsafe { *nodes.add(index) };
            let origin = NodeOrigin { stack, call, capture: id, stream: on, number: 0, bodies: None };
            // Of several nodes none is new: a call that adds one leaves the stream depending on
            // that one alone. A node known from another capture is an old one whose handle came
            // back.
            let mut is_new = false;
            let mut known = core.handles.nodes.entry(node.0 as u64).or_insert_with(|| {
                is_new = true;
                origin.clone()
            });
            if count == 1 && known.capture != 0 && known.capture != id {
                is_new = true;
                *known = origin;
            }
            if is_new && count == 1 {
                known.number = core.handles.fresh();
                made = Some(known.number);
            }
        }
        if let Some(node) = made {
            let capture = CaptureId(id);
            log_captured(cx, capture, on, &Op::CaptureNode { capture, stream: on, node });
        }
    }
    StreamNow::Captured(CaptureId(id))
}

/// A wait of a captured stream, which may be captured by it.
pub fn captured_wait(cx: &mut Cx<'_>, capture: CaptureId, stream: CUstream, event: CUevent) {
    let (stream, event) = (known_stream(cx, stream), event_id(cx, event));
    log_captured(cx, capture, stream, &Op::CaptureWait { capture, stream, event });
}

/// An event is recorded on a captured stream.
pub fn captured_record(cx: &mut Cx<'_>, capture: CaptureId, stream: CUstream, event: CUevent) {
    let (stream, event) = (known_stream(cx, stream), event_id(cx, event));
    log_captured(cx, capture, stream, &Op::CaptureRecord { capture, event, stream });
}

/// A stream has begun to be captured. `is_plain`: into a graph of its own.
pub fn capture_begun(cx: &mut Cx<'_>, handle: CUstream, is_plain: bool) {
    if let StreamNow::Captured(capture) = note_captured(cx, handle) {
        let stream = known_stream(cx, handle);
        log_captured(cx, capture, stream, &Op::CaptureStart { capture, stream });
        if !is_plain {
            log_captured(cx, capture, stream, &Op::CaptureChanged { capture });
        }
    }
}

/// What the nodes of a captured stream come after was changed by hand.
pub fn capture_changed(cx: &mut Cx<'_>, handle: CUstream) {
    if let StreamNow::Captured(capture) = note_captured(cx, handle) {
        let stream = known_stream(cx, handle);
        log_captured(cx, capture, stream, &Op::CaptureChanged { capture });
    }
}

/// Logs what happens to a capture. The driver is asked nothing about a stream that captures, so
/// one that was made before the shim was there has no name: then the capture is not described.
fn log_captured(cx: &mut Cx<'_>, capture: CaptureId, stream: StreamId, op: &Op<'_>) {
    if !capture.is_none() && cx.is_after() {
        let changed = Op::CaptureChanged { capture };
        cx.log(if stream.is_none() { &changed } else { op });
    }
}

/// The stream of a call, if the stream is not captured; otherwise the capture.
pub fn working_or_captured(cx: &mut Cx<'_>, handle: CUstream) -> Result<StreamId, CaptureId> {
    if crate::handles::captures::any()
        && let StreamNow::Captured(capture) = note_captured(cx, handle)
    {
        return Err(capture);
    }
    Ok(stream_id(cx, handle))
}
