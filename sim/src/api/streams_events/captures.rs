//! Stream capture: its beginning, its end, and questions about it. What a capture does is in
//! [`crate::objects::capture`].

use std::collections::HashMap;
use std::sync::Arc;

use cuda_sys::*;

use crate::api::streams_events::streams::stream_of;
use crate::api::*;
use crate::handles::handle_of;
use crate::objects::graph::{GRAPHS, NODES, Node, is_plain};
use crate::objects::stream::Stream;

abi! {
    call fn [cuStreamBeginCapture legacy, cuStreamBeginCapture_ptsz per_thread](zero, stream: CUstream) {
        capture::begin(&stream_of(stream, zero)?, CU_STREAM_CAPTURE_MODE_GLOBAL, None)
    }
    call fn [cuStreamBeginCapture_v2 legacy, cuStreamBeginCapture_v2_ptsz per_thread](
        zero, stream: CUstream, mode: CUstreamCaptureMode
    ) {
        capture::begin(&stream_of(stream, zero)?, mode, None)
    }
    call fn [cuStreamBeginCaptureToGraph legacy, cuStreamBeginCaptureToGraph_ptsz per_thread](
        zero, stream: CUstream, graph: CUgraph, dependencies: *const CUgraphNode,
        dependency_data: *const CUgraphEdgeData, num_dependencies: usize, mode: CUstreamCaptureMode
    ) {
        let graph = GRAPHS.valid(graph.bits())?;
        let deps = list(dependencies, num_dependencies)?;
        let data = data_of(&deps, dependency_data)?;
        let deps = deps.iter().map(|node| NODES.valid(node.bits())).collect::<Result<Vec<_>, _>>()?;
        capture::begin(&stream_of(stream, zero)?, mode, Some((graph, deps, data)))
    }
    call fn [cuStreamEndCapture legacy, cuStreamEndCapture_ptsz per_thread](zero, stream: CUstream, graph: *mut CUgraph) {
        let ended = capture::end(&stream_of(stream, zero)?);
        if ended.is_err() {
            put_if(graph, CUgraph::NULL);
        }
        let ended = ended?;
        if graph.is_null() {
            // An H200 answered success: the capture is over, and nothing holds its graph.
            GRAPHS.remove(handle_of(&ended))?.forget_nodes();
            return Ok(());
        }
        put(graph, CUgraph::from_bits(handle_of(&ended)))
    }
    call fn [cuStreamIsCapturing legacy, cuStreamIsCapturing_ptsz per_thread](
        zero, stream: CUstream, status: *mut CUstreamCaptureStatus
    ) {
        let stream = stream_of(stream, zero)?;
        capture::refuse_question(&stream)?;
        put(status, status_of(&stream))
    }
    call fn [cuStreamGetCaptureInfo legacy, cuStreamGetCaptureInfo_ptsz per_thread](
        zero, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64
    ) {
        let stream = stream_of(stream, zero)?;
        put_if(id, capture::of(&stream).map_or(0, |capture| capture.shared.id));
        put(status, status_of(&stream))
    }
    call fn [cuStreamGetCaptureInfo_v2 legacy, cuStreamGetCaptureInfo_v2_ptsz per_thread](
        zero, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode, num_dependencies: *mut usize
    ) {
        let stream = stream_of(stream, zero)?;
        if !dependencies.is_null() && capture::of(&stream).is_some_and(|capture| !capture.data.is_empty()) {
            return Err(CUresult::ERROR_LOSSY_QUERY);
        }
        capture_info(&stream, status, id, graph, dependencies, num_dependencies)
    }
    call fn [cuStreamGetCaptureInfo_v3 legacy, cuStreamGetCaptureInfo_v3_ptsz per_thread](
        zero, stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode, edge_data: *mut *const CUgraphEdgeData, num_dependencies: *mut usize
    ) {
        let stream = stream_of(stream, zero)?;
        put_if(edge_data, std::ptr::null());
        if let Some(capture) = capture::of(&stream).filter(|capture| !capture.data.is_empty()) {
            if edge_data.is_null() && !dependencies.is_null() {
                return Err(CUresult::ERROR_LOSSY_QUERY);
            }
            put_if(edge_data, kept_data(&capture));
        }
        capture_info(&stream, status, id, graph, dependencies, num_dependencies)
    }
    call fn [cuStreamUpdateCaptureDependencies legacy, cuStreamUpdateCaptureDependencies_ptsz per_thread](
        zero, stream: CUstream, dependencies: *mut CUgraphNode, num_dependencies: usize, flags: c_uint
    ) {
        let nodes = list(dependencies, num_dependencies)?;
        update_dependencies(&stream_of(stream, zero)?, nodes, HashMap::new(), flags)
    }
    call fn [cuStreamUpdateCaptureDependencies_v2 legacy, cuStreamUpdateCaptureDependencies_v2_ptsz per_thread](
        zero, stream: CUstream, dependencies: *mut CUgraphNode, dependency_data: *const CUgraphEdgeData,
        num_dependencies: usize, flags: c_uint
    ) {
        let nodes = list(dependencies, num_dependencies)?;
        let data = data_of(&nodes, dependency_data)?;
        update_dependencies(&stream_of(stream, zero)?, nodes, data, flags)
    }
    call fn [cuThreadExchangeStreamCaptureMode plain](_z, mode: *mut CUstreamCaptureMode) {
        let new = get(mode)?;
        if new.0 > CU_STREAM_CAPTURE_MODE_RELAXED.0 {
            return Err(INVALID);
        }
        put(mode, thread::current().capture_mode.replace(new))
    }
}

fn status_of(stream: &Arc<Stream>) -> CUstreamCaptureStatus {
    match capture::of(stream) {
        None => CU_STREAM_CAPTURE_STATUS_NONE,
        Some(capture) if capture.shared.is_invalid() => CU_STREAM_CAPTURE_STATUS_INVALIDATED,
        Some(_) => CU_STREAM_CAPTURE_STATUS_ACTIVE,
    }
}

fn capture_info(
    stream: &Arc<Stream>,
    status: *mut CUstreamCaptureStatus,
    id: *mut u64,
    graph: *mut CUgraph,
    dependencies: *mut *const CUgraphNode,
    num_dependencies: *mut usize,
) -> Res {
    thread_local! {
        // The array stays readable until the thread's next call, as the interface promises.
        static LAST: std::cell::Cell<*mut Vec<CUgraphNode>> = const { std::cell::Cell::new(std::ptr::null_mut()) };
    }
    put(status, status_of(stream))?;
    let Some(capture) = capture::of(stream) else { return Ok(()) };
    put_if(id, capture.shared.id);
    put_if(graph, CUgraph::from_bits(handle_of(&capture.shared.graph)));
    let nodes: Vec<CUgraphNode> = capture.deps.iter().map(|node| CUgraphNode::from_bits(handle_of(node))).collect();
    put_if(num_dependencies, nodes.len());
    if !dependencies.is_null() {
        let last = LAST.get();
        let last = if last.is_null() {
            Box::leak(Box::new(nodes))
        } else {
            // SAFETY: leaked by an earlier call of this very thread.
            let last = unsafe { &mut *last };
            *last = nodes;
            last
        };
        LAST.set(last);
        put_if(dependencies, last.as_ptr());
    }
    Ok(())
}

/// The data of edges from nodes, where they have any; none: a null pointer.
fn data_of(nodes: &[CUgraphNode], data: *const CUgraphEdgeData) -> Result<HashMap<usize, CUgraphEdgeData>, CUresult> {
    let data = if data.is_null() { Vec::new() } else { list(data, nodes.len())? };
    let pairs = nodes.iter().map(|node| node.bits()).zip(data);
    Ok(pairs.filter(|(_, data)| !is_plain(data)).collect())
}

/// The data of the edges from what the stream's next node comes after. It stays readable until the
/// thread asks again.
fn kept_data(capture: &capture::Capture) -> *const CUgraphEdgeData {
    thread_local! {
        static LAST: std::cell::RefCell<Vec<CUgraphEdgeData>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let of = |node: &Arc<Node>| capture.data.get(&handle_of(node)).copied().unwrap_or_default();
    LAST.with_borrow_mut(|last| {
        *last = capture.deps.iter().map(of).collect();
        last.as_ptr()
    })
}

fn update_dependencies(
    stream: &Arc<Stream>,
    nodes: Vec<CUgraphNode>,
    data: HashMap<usize, CUgraphEdgeData>,
    flags: c_uint,
) -> Res {
    let nodes = nodes.iter().map(|node| NODES.valid(node.bits())).collect::<Result<Vec<_>, _>>()?;
    let mut slot = stream.capture.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let capture = slot.as_mut().ok_or(CUresult::ERROR_ILLEGAL_STATE)?;
    match flags {
        0 => {
            capture.data.extend(data);
            for node in nodes {
                if !capture.deps.iter().any(|dep| Arc::ptr_eq(dep, &node)) {
                    capture.deps.push(node);
                }
            }
        }
        1 => (capture.deps, capture.data) = (nodes, data),
        _ => return Err(INVALID),
    }
    Ok(())
}
