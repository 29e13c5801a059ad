//! Stream capture: while a stream is captured its calls make nodes of a graph, not work.
//!
//! Owns the question whether a stream is captured, and the stacks of nodes. What the nodes do is
//! read from the finished graph when it is instantiated ([`crate::ops::graphs::flatten`]).

use std::sync::atomic::Ordering;

use cuda_sys::*;

use crate::handles::tables::{CAPTURES, NodeOrigin};
use crate::observe::context::Cx;
use crate::real;

impl Cx<'_> {
    /// Whether a stream is being captured. If so, the nodes that it depends on now (the one that
    /// this call has just added) are remembered with this call's stack.
    pub fn note_captured(&mut self, stream: CUstream) -> bool {
        let mut status = CUstreamCaptureStatus(0);
        let mut id = 0_u64;
        let mut graph = CUgraph::NULL;
        let mut nodes: *const CUgraphNode = std::ptr::null();
        let mut count = 0_usize;
        let per_thread = self.stream0() == Stream0::PerThread;
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
        // form can not tell. The first is not captured, the second is.
        const LOSSY_QUERY: CUresult = CUresult(910);
        if result == LOSSY_QUERY {
            return true;
        }
        if result != CUresult::SUCCESS || status.0 == 0 {
            return false;
        }
        if self.is_after()
            && count > 0
            && !nodes.is_null()
            && let Some(core) = self.core()
        {
            let stack = self.stack();
            let call = self.call;
            for index in 0..count {
                // SAFETY: the driver answered count nodes, valid until the next call on this
                // stream.
                let node = unsafe { *nodes.add(index) };
                let origin = NodeOrigin { stack, call, capture: id, bodies: None };
                // Of several nodes none is new: a call that adds one leaves the stream depending on
                // that one alone. A node known from another capture is an old one whose handle came
                // back.
                let mut known = core.handles.nodes.entry(node.0 as u64).or_insert_with(|| origin.clone());
                if count == 1 && known.capture != 0 && known.capture != id {
                    *known = origin;
                }
            }
        }
        true
    }

    fn capture_began(&mut self) {
        CAPTURES.fetch_add(1, Ordering::AcqRel);
    }
}

pub(crate) unsafe fn cuStreamBeginCapture(cx: &mut Cx<'_>, _stream: CUstream) {
    cx.capture_began();
}

pub(crate) unsafe fn cuStreamBeginCapture_v2(cx: &mut Cx<'_>, _stream: CUstream, _mode: CUstreamCaptureMode) {
    cx.capture_began();
}

pub(crate) unsafe fn cuStreamBeginCaptureToGraph(
    cx: &mut Cx<'_>,
    _stream: CUstream,
    _graph: CUgraph,
    _dependencies: *const CUgraphNode,
    _dependency_data: *const CUgraphEdgeData,
    _num_dependencies: usize,
    _mode: CUstreamCaptureMode,
) {
    cx.capture_began();
}

pub(crate) unsafe fn cuStreamBeginRecaptureToGraph(
    cx: &mut Cx<'_>,
    _stream: CUstream,
    _mode: CUstreamCaptureMode,
    _graph: CUgraph,
    _callback_func: CUgraphRecaptureCallback,
    _user_data: *mut c_void,
) {
    cx.capture_began();
}

pub(crate) unsafe fn cuStreamBeginCaptureToCig(
    cx: &mut Cx<'_>,
    _stream: CUstream,
    _stream_cig_capture_params: *mut CUstreamCigCaptureParams,
) {
    cx.capture_began();
    cx.not_modelled();
}

fn ended() {
    let _ = CAPTURES.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
}

pub(crate) unsafe fn cuStreamEndCapture(_cx: &mut Cx<'_>, _stream: CUstream, _graph: *mut CUgraph) {
    ended();
}

pub(crate) unsafe fn cuStreamEndCaptureToCig(_cx: &mut Cx<'_>, _stream: CUstream) {
    ended();
}
