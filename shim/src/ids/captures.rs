//! Whether a stream is being captured, and the stacks of the nodes that its calls add.
//!
//! Owns the question to the driver, which is asked only while some stream is captured
//! ([`crate::handles::captures`]). What the nodes do is read from the finished graph when it is
//! instantiated (`crate::ops::graphs`).

use cuda_sys::*;

use crate::handles::tables::NodeOrigin;
use crate::observe::Cx;
use crate::real::driver::real;

impl Cx<'_> {
    /// Whether a stream is being captured. If so, the nodes that it depends on now (the one that
    /// this call has just added) are remembered with this call's stack.
    pub fn note_captured(&mut self, stream: CUstream) -> bool {
        let mut status = CU_STREAM_CAPTURE_STATUS_NONE;
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
        // form cannot describe. The first is not captured, the second is.
        if result == CUresult::ERROR_LOSSY_QUERY {
            return true;
        }
        if result != CUresult::SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE {
            return false;
        }
        if self.is_after()
            && count > 0
            && !nodes.is_null()
            && let Some(core) = self.core()
        {
            let stack = self.stack();
            let call = self.call;
            let stream = self.known_stream(stream);
            for index in 0..count {
                // SAFETY: the driver answered count nodes, valid until the next call on this
                // stream.
                let node = unsafe { *nodes.add(index) };
                let origin = NodeOrigin { stack, call, capture: id, stream, bodies: None };
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
}
