//! Stream capture: while a stream is captured its calls make nodes of a graph, not work.
//!
//! Owns where captures begin and end. Whether one stream is captured, and with which nodes, is
//! asked in [`crate::ids::captures`]; what the nodes do is read from the finished graph when it is
//! instantiated ([`super::flatten`]).

use cuda_sys::*;

use crate::handles::captures;
use crate::observe::Cx;

pub(crate) unsafe fn cuStreamBeginCapture(_cx: &mut Cx<'_>, _stream: CUstream) {
    captures::begun();
}

pub(crate) unsafe fn cuStreamBeginCapture_v2(_cx: &mut Cx<'_>, _stream: CUstream, _mode: CUstreamCaptureMode) {
    captures::begun();
}

pub(crate) unsafe fn cuStreamBeginCaptureToGraph(
    _cx: &mut Cx<'_>,
    _stream: CUstream,
    _graph: CUgraph,
    _dependencies: *const CUgraphNode,
    _dependency_data: *const CUgraphEdgeData,
    _num_dependencies: usize,
    _mode: CUstreamCaptureMode,
) {
    captures::begun();
}

pub(crate) unsafe fn cuStreamBeginRecaptureToGraph(
    _cx: &mut Cx<'_>,
    _stream: CUstream,
    _mode: CUstreamCaptureMode,
    _graph: CUgraph,
    _callback_func: CUgraphRecaptureCallback,
    _user_data: *mut c_void,
) {
    captures::begun();
}

pub(crate) unsafe fn cuStreamBeginCaptureToCig(
    cx: &mut Cx<'_>,
    _stream: CUstream,
    _stream_cig_capture_params: *mut CUstreamCigCaptureParams,
) {
    captures::begun();
    cx.not_modelled();
}

pub(crate) unsafe fn cuStreamEndCapture(_cx: &mut Cx<'_>, _stream: CUstream, _graph: *mut CUgraph) {
    captures::ended();
}

pub(crate) unsafe fn cuStreamEndCaptureToCig(_cx: &mut Cx<'_>, _stream: CUstream) {
    captures::ended();
}
