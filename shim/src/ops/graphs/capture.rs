//! Stream capture: while a stream is captured its calls make nodes of a graph, not work.
//!
//! Owns where captures begin and end. Whether one stream is captured, and with which nodes, is
//! asked in [`crate::ids::captures`]; what the nodes do is read from the finished graph when it is
//! instantiated ([`super::flatten`]).

use cuda_sys::*;
use trace::Op;

use crate::handles::captures;
use crate::ids::captures::{capture_begun, capture_changed};
use crate::ids::streams::known_stream;
use crate::observe::Cx;

pub(crate) unsafe fn cuStreamBeginCapture(cx: &mut Cx<'_>, stream: CUstream) {
    captures::begun();
    capture_begun(cx, stream, true);
}

pub(crate) unsafe fn cuStreamBeginCapture_v2(cx: &mut Cx<'_>, stream: CUstream, _mode: CUstreamCaptureMode) {
    captures::begun();
    capture_begun(cx, stream, true);
}

pub(crate) unsafe fn cuStreamBeginCaptureToGraph(
    cx: &mut Cx<'_>,
    stream: CUstream,
    _graph: CUgraph,
    _dependencies: *const CUgraphNode,
    _dependency_data: *const CUgraphEdgeData,
    num_dependencies: usize,
    _mode: CUstreamCaptureMode,
) {
    captures::begun();
    capture_begun(cx, stream, num_dependencies == 0);
}

pub(crate) unsafe fn cuStreamBeginRecaptureToGraph(
    cx: &mut Cx<'_>,
    stream: CUstream,
    _mode: CUstreamCaptureMode,
    _graph: CUgraph,
    _callback_func: CUgraphRecaptureCallback,
    _user_data: *mut c_void,
) {
    captures::begun();
    capture_begun(cx, stream, false);
}

pub(crate) unsafe fn cuStreamBeginCaptureToCig(
    cx: &mut Cx<'_>,
    _stream: CUstream,
    _stream_cig_capture_params: *mut CUstreamCigCaptureParams,
) {
    captures::begun();
    cx.not_modelled();
}

pub(crate) unsafe fn cuStreamEndCapture(cx: &mut Cx<'_>, stream: CUstream, _graph: *mut CUgraph) {
    captures::ended();
    let stream = known_stream(cx, stream);
    cx.without_stack().log(&Op::CaptureDone { stream });
}

pub(crate) unsafe fn cuStreamUpdateCaptureDependencies(
    cx: &mut Cx<'_>,
    stream: CUstream,
    _dependencies: *mut CUgraphNode,
    _num_dependencies: usize,
    _flags: c_uint,
) {
    capture_changed(cx, stream);
}

pub(crate) unsafe fn cuStreamUpdateCaptureDependencies_v2(
    cx: &mut Cx<'_>,
    stream: CUstream,
    _dependencies: *mut CUgraphNode,
    _dependency_data: *const CUgraphEdgeData,
    _num_dependencies: usize,
    _flags: c_uint,
) {
    capture_changed(cx, stream);
}

pub(crate) unsafe fn cuStreamEndCaptureToCig(_cx: &mut Cx<'_>, _stream: CUstream) {
    captures::ended();
}
