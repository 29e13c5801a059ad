//! Where the nodes of graphs come from: the calls that captured or added them, and the graphs
//! inside conditional nodes.
//!
//! Owns what is kept of a node beyond what the driver answers. A copy of a graph (a clone, the
//! graph inside a child node) has nodes of its own, which inherit what is known of the originals.

use cuda_sys::*;
use trace::{StackId, StreamId};

use super::conditions::bodies_of;
use super::flatten::{child_of, kind_of, list_nodes};
use crate::handles::tables::{Bodies, NodeOrigin};
use crate::observe::Cx;

/// Where a node was captured or added, by which call, and on which stream it was captured.
pub(crate) fn node_origin(cx: &Cx<'_>, node: CUgraphNode) -> Option<(StackId, FnId, StreamId)> {
    cx.core()?.handles.nodes.get(&(node.0 as u64)).map(|o| (o.stack, o.call, o.stream))
}

/// The number of a node that was captured; 0 for other nodes.
pub(crate) fn node_number(cx: &Cx<'_>, node: CUgraphNode) -> u32 {
    cx.core().and_then(|core| Some(core.handles.nodes.get(&(node.0 as u64))?.number)).unwrap_or_default()
}

/// The graphs inside a conditional node.
pub(crate) fn graph_bodies(cx: &Cx<'_>, node: CUgraphNode) -> Option<Bodies> {
    cx.core()?.handles.nodes.get(&(node.0 as u64)).and_then(|o| o.bodies.clone())
}

/// A node was added explicitly: its stack is remembered.
pub(crate) fn node_added(cx: &mut Cx<'_>, node: *mut CUgraphNode) {
    let Some(core) = cx.core() else { return };
    let (stack, call) = (cx.stack(), cx.call);
    let origin = NodeOrigin { stack, call, capture: 0, stream: StreamId::NONE, number: 0, bodies: None };
    // SAFETY: the call succeeded, so it has written the handle.
    core.handles.nodes.insert(unsafe { *node }.0 as u64, origin);
}

/// A node was added whose parameters say what it is.
///
/// # Safety
/// Both point to what the call has accepted and filled in.
unsafe fn node_of_any_kind_added(cx: &mut Cx<'_>, node: *mut CUgraphNode, params: *const CUgraphNodeParams) {
    node_added(cx, node);
    // SAFETY: forwarded from the caller; the type says which member is valid.
    let (node, params) = unsafe { (*node, &*params) };
    match params.type_ {
        CU_GRAPH_NODE_TYPE_CONDITIONAL => {
            // SAFETY: as above; the driver has filled in size graphs.
            let (p, graphs) = unsafe {
                let p = params.anon1.conditional;
                if p.phGraph_out.is_null() {
                    return;
                }
                (p, std::slice::from_raw_parts(p.phGraph_out, p.size as usize))
            };
            let bodies = bodies_of(cx, &p, graphs);
            if let Some(core) = cx.core()
                && let Some(mut origin) = core.handles.nodes.get_mut(&(node.0 as u64))
            {
                origin.bodies = Some(bodies);
            }
        }
        // SAFETY: as above.
        CU_GRAPH_NODE_TYPE_GRAPH => inherit_nodes(cx, unsafe { params.anon1.graph.graph }, child_of(node), 0),
        _ => {}
    }
}

/// The nodes of a copy come from where those of the original come from. The driver lists both
/// in the same order.
fn inherit_nodes(cx: &mut Cx<'_>, original: CUgraph, copy: CUgraph, depth: u32) {
    let (Some(core), Some(from), Some(to)) = (cx.core(), list_nodes(original), list_nodes(copy)) else { return };
    let kinds = |nodes: &[CUgraphNode]| nodes.iter().map(|node| kind_of(*node).0).collect::<Vec<_>>();
    if kinds(&from) != kinds(&to) || depth > 16 {
        return;
    }
    for (from, to) in from.into_iter().zip(to) {
        // The bodies of a copied conditional node are copies too, and the driver does
        // not say their handles.
        let origin = core.handles.nodes.get(&(from.0 as u64)).map(|o| NodeOrigin { bodies: None, ..o.clone() });
        if let Some(origin) = origin {
            core.handles.nodes.insert(to.0 as u64, origin);
        }
        if kind_of(from) == CU_GRAPH_NODE_TYPE_GRAPH {
            inherit_nodes(cx, child_of(from), child_of(to), depth + 1);
        }
    }
}

/// The handles of a graph's nodes may come back as others.
fn forget_nodes(cx: &mut Cx<'_>, graph: CUgraph, depth: u32) {
    let (Some(core), Some(nodes)) = (cx.core(), list_nodes(graph)) else { return };
    for node in nodes {
        if core.handles.nodes.remove(&(node.0 as u64)).is_some()
            && depth < 16
            && kind_of(node) == CU_GRAPH_NODE_TYPE_GRAPH
        {
            forget_nodes(cx, child_of(node), depth + 1);
        }
    }
}

pub(crate) unsafe fn cuGraphAddChildGraphNode(
    cx: &mut Cx<'_>,
    graph_node: *mut CUgraphNode,
    _graph: CUgraph,
    _dependencies: *const CUgraphNode,
    _num_dependencies: usize,
    child_graph: CUgraph,
) {
    node_added(cx, graph_node);
    // SAFETY: the call succeeded, so it has written the handle.
    inherit_nodes(cx, child_graph, child_of(unsafe { *graph_node }), 0);
}

pub(crate) unsafe fn cuGraphAddNode(
    cx: &mut Cx<'_>,
    graph_node: *mut CUgraphNode,
    _graph: CUgraph,
    _dependencies: *const CUgraphNode,
    _num_dependencies: usize,
    node_params: *mut CUgraphNodeParams,
) {
    // SAFETY: the call succeeded: it has read and filled in both.
    unsafe { node_of_any_kind_added(cx, graph_node, node_params) };
}

pub(crate) unsafe fn cuGraphAddNode_v3(
    cx: &mut Cx<'_>,
    graph_node: *mut CUgraphNode,
    _graph: CUgraph,
    _dependencies: *const CUgraphNode,
    _dependency_data: *const CUgraphEdgeData,
    _num_dependencies: usize,
    node_params: *mut CUgraphNodeParams,
) {
    // SAFETY: the call succeeded: it has read and filled in both.
    unsafe { node_of_any_kind_added(cx, graph_node, node_params) };
}

pub(crate) unsafe fn cuGraphClone(cx: &mut Cx<'_>, graph_clone: *mut CUgraph, original_graph: CUgraph) {
    // SAFETY: the call succeeded, so it has written the handle.
    inherit_nodes(cx, original_graph, unsafe { *graph_clone }, 0);
}

pub(crate) unsafe fn cuGraphDestroyNode(cx: &mut Cx<'_>, node: CUgraphNode) {
    if let Some(core) = cx.core() {
        core.handles.nodes.remove(&(node.0 as u64));
    }
}

pub(crate) unsafe fn cuGraphDestroy(cx: &mut Cx<'_>, graph: CUgraph) {
    forget_nodes(cx, graph, 0);
}
