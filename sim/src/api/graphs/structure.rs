//! Graphs as structures: creation, clones, queries, changes of edges, user objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_sys::*;

use crate::api::*;
use crate::handles::{Handles, handle_of};
use crate::objects::graph::{Edge, GRAPHS, Graph, NODES, Node, UserObject, is_plain, node_type};
use crate::objects::task::HostFn;

static OBJECTS: Handles<UserObject> = Handles::new();

/// Nodes from an array of handles.
pub(crate) fn nodes(from: *const CUgraphNode, count: usize) -> Result<Vec<Arc<Node>>, CUresult> {
    list(from, count)?.iter().map(|node| NODES.find(node.bits()).ok_or(INVALID)).collect()
}

/// Hands out an array and how long it is: as the interface says, the count alone when there is no
/// array.
fn put_nodes(to: *mut CUgraphNode, count: *mut usize, nodes: &[usize]) -> Res {
    if !to.is_null() {
        let room = get(count)?;
        for n in 0..room {
            put(to.wrapping_add(n), CUgraphNode::from_bits(nodes.get(n).copied().unwrap_or(0)))?;
        }
        return put(count, nodes.len().min(room));
    }
    put(count, nodes.len())
}

fn graph_of(node: &Node) -> Result<Arc<Graph>, CUresult> {
    node.graph.upgrade().ok_or(CUresult::ERROR_INVALID_HANDLE)
}

fn neighbours(node: CUgraphNode, before: bool) -> Result<Vec<usize>, CUresult> {
    let found = NODES.valid(node.bits())?;
    let me = node.bits();
    let edges = graph_of(&found)?.edges();
    Ok(edges
        .iter()
        .filter_map(|&(from, to)| match before {
            true => (to == me).then_some(from),
            false => (from == me).then_some(to),
        })
        .collect())
}

/// A list of nodes alone would lose the ports of edges that have some (cuda.h, cuGraphGetEdges).
fn refuse_loss(graph: &Graph, edges: impl IntoIterator<Item = Edge>) -> Res {
    let is_lossy = graph.has_data() && edges.into_iter().any(|edge| !is_plain(&graph.data_of(edge)));
    if is_lossy { Err(CUresult::ERROR_LOSSY_QUERY) } else { Ok(()) }
}

fn put_edges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, count: *mut usize) -> Res {
    let edges = GRAPHS.valid(graph.bits())?.edges();
    if from.is_null() && to.is_null() {
        return put(count, edges.len());
    }
    let room = get(count)?;
    let starts: Vec<usize> = edges.iter().map(|edge| edge.0).collect();
    let ends: Vec<usize> = edges.iter().map(|edge| edge.1).collect();
    put_nodes(from, count, &starts)?;
    put(count, room)?;
    put_nodes(to, count, &ends)
}

/// The data of edges, as far as there is room.
fn put_data(graph: &Graph, to: *mut CUgraphEdgeData, room: usize, edges: impl IntoIterator<Item = Edge>) {
    if !to.is_null() {
        for (n, edge) in edges.into_iter().take(room).enumerate() {
            put_if(to.wrapping_add(n), graph.data_of(edge));
        }
    }
}

/// The edges of a node to its neighbours.
fn edges_of(node: CUgraphNode, before: bool) -> Result<(Arc<Graph>, Vec<Edge>), CUresult> {
    let graph = graph_of(&*NODES.valid(node.bits())?)?;
    let me = node.bits();
    let edges = neighbours(node, before)?.into_iter().map(|other| if before { (other, me) } else { (me, other) });
    Ok((graph, edges.collect()))
}

fn change(
    graph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    add: bool,
) -> Res {
    let (from, to) = (list(from, count)?, list(to, count)?);
    let edges: Vec<Edge> = from.iter().zip(&to).map(|(from, to)| (from.bits(), to.bits())).collect();
    let data = if data.is_null() { vec![CUgraphEdgeData::zeroed(); count] } else { list(data, count)? };
    let graph = GRAPHS.valid(graph.bits())?;
    if !add && graph.has_memory_nodes() {
        return Err(CUresult::ERROR_NOT_SUPPORTED);
    }
    let pairs = || edges.iter().copied().zip(&data);
    if add {
        pairs().try_for_each(|(edge, data)| check_data(edge, data))?;
    } else if pairs().any(|(edge, data)| !is_same(&graph.data_of(edge), data)) {
        // "Edge data must match" (cuda.h, cuGraphRemoveDependencies).
        return Err(INVALID);
    }
    graph.change_edges(&edges, add)?;
    if add {
        pairs().for_each(|(edge, data)| graph.set_data(edge, *data));
    }
    Ok(())
}

fn is_same(a: &CUgraphEdgeData, b: &CUgraphEdgeData) -> bool {
    (a.from_port, a.to_port, a.type_) == (b.from_port, b.to_port, b.type_)
}

/// Ports are of kernels, and their edges lead to kernels (cuda.h, CUgraphKernelNodePort).
pub(super) fn check_data((from, to): Edge, data: &CUgraphEdgeData) -> Res {
    if is_plain(data) {
        return Ok(());
    }
    let is_kernel = |node: usize| Ok(node_type(&NODES.valid(node)?.task()) == CU_GRAPH_NODE_TYPE_KERNEL);
    let known = data.from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER && data.to_port == 0;
    if known && is_kernel(from)? && is_kernel(to)? { Ok(()) } else { Err(INVALID) }
}

abi! {
    call fn [cuGraphCreate plain](_z, graph: *mut CUgraph, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID);
        }
        put(graph, CUgraph::from_bits(handle_of(&Graph::create())))
    }
    call fn [cuGraphDestroy plain](_z, graph: CUgraph) {
        if GRAPHS.get(graph.bits())?.is_moved() {
            return Err(INVALID);
        }
        GRAPHS.remove(graph.bits())?.forget_nodes();
        Ok(())
    }
    call fn [cuGraphClone plain](_z, clone: *mut CUgraph, graph: CUgraph) {
        put(clone, CUgraph::from_bits(handle_of(&GRAPHS.valid(graph.bits())?.duplicate()?)))
    }
    call fn [cuGraphNodeFindInClone plain](_z, node: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph) {
        let nodes = GRAPHS.valid(clone.bits())?.nodes();
        let found = nodes.iter().find(|node| node.origin == Some(original.bits())).ok_or(INVALID)?;
        put(node, CUgraphNode::from_bits(handle_of(found)))
    }
    call fn [cuGraphGetNodes plain](_z, graph: CUgraph, out: *mut CUgraphNode, count: *mut usize) {
        let nodes: Vec<usize> = GRAPHS.valid(graph.bits())?.nodes().iter().map(handle_of).collect();
        put_nodes(out, count, &nodes)
    }
    call fn [cuGraphGetRootNodes plain](_z, graph: CUgraph, out: *mut CUgraphNode, count: *mut usize) {
        let graph = GRAPHS.valid(graph.bits())?;
        let edges = graph.edges();
        let nodes = graph.nodes();
        let roots: Vec<usize> =
            nodes.iter().map(handle_of).filter(|node| !edges.iter().any(|edge| edge.1 == *node)).collect();
        put_nodes(out, count, &roots)
    }
    call fn [cuGraphGetEdges plain](
        _z, graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, count: *mut usize
    ) {
        let of = GRAPHS.valid(graph.bits())?;
        if !(from.is_null() && to.is_null()) {
            refuse_loss(&of, of.edges())?;
        }
        put_edges(graph, from, to, count)
    }
    call fn [cuGraphGetEdges_v2 plain](
        _z, graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize
    ) {
        let of = GRAPHS.valid(graph.bits())?;
        if data.is_null() && !(from.is_null() && to.is_null()) {
            refuse_loss(&of, of.edges())?;
        }
        put_edges(graph, from, to, count)?;
        put_data(&of, data, get(count)?, of.edges());
        Ok(())
    }
    call fn [cuGraphNodeGetDependencies plain](_z, node: CUgraphNode, out: *mut CUgraphNode, count: *mut usize) {
        let (graph, edges) = edges_of(node, true)?;
        if !out.is_null() {
            refuse_loss(&graph, edges)?;
        }
        put_nodes(out, count, &neighbours(node, true)?)
    }
    call fn [cuGraphNodeGetDependencies_v2 plain](
        _z, node: CUgraphNode, out: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize
    ) {
        let (graph, edges) = edges_of(node, true)?;
        if data.is_null() && !out.is_null() {
            refuse_loss(&graph, edges.iter().copied())?;
        }
        put_nodes(out, count, &neighbours(node, true)?)?;
        put_data(&graph, data, get(count)?, edges);
        Ok(())
    }
    call fn [cuGraphNodeGetDependentNodes plain](_z, node: CUgraphNode, out: *mut CUgraphNode, count: *mut usize) {
        let (graph, edges) = edges_of(node, false)?;
        if !out.is_null() {
            refuse_loss(&graph, edges)?;
        }
        put_nodes(out, count, &neighbours(node, false)?)
    }
    call fn [cuGraphNodeGetDependentNodes_v2 plain](
        _z, node: CUgraphNode, out: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize
    ) {
        let (graph, edges) = edges_of(node, false)?;
        if data.is_null() && !out.is_null() {
            refuse_loss(&graph, edges.iter().copied())?;
        }
        put_nodes(out, count, &neighbours(node, false)?)?;
        put_data(&graph, data, get(count)?, edges);
        Ok(())
    }
    call fn [cuGraphNodeGetType plain](_z, node: CUgraphNode, kind: *mut CUgraphNodeType) {
        put(kind, node_type(&NODES.valid(node.bits())?.task()))
    }
    call fn [cuGraphAddDependencies plain](
        _z, graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, count: usize
    ) {
        change(graph, from, to, std::ptr::null(), count, true)
    }
    call fn [cuGraphAddDependencies_v2 plain](
        _z, graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, data: *const CUgraphEdgeData, count: usize
    ) {
        change(graph, from, to, data, count, true)
    }
    call fn [cuGraphRemoveDependencies plain](
        _z, graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, count: usize
    ) {
        change(graph, from, to, std::ptr::null(), count, false)
    }
    call fn [cuGraphRemoveDependencies_v2 plain](
        _z, graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, data: *const CUgraphEdgeData, count: usize
    ) {
        change(graph, from, to, data, count, false)
    }
    call fn [cuGraphDestroyNode plain](_z, node: CUgraphNode) {
        let node = NODES.valid(node.bits())?;
        let graph = graph_of(&node)?;
        if graph.has_memory_nodes() {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        graph.remove(&node);
        Ok(())
    }
    call fn [cuUserObjectCreate plain](
        _z, out: *mut CUuserObject, ptr: *mut c_void, destroy: CUhostFn, count: c_uint, flags: c_uint
    ) {
        if count == 0 {
            return Err(INVALID);
        }
        let destroy = HostFn { call: destroy.ok_or(INVALID)?, data: ptr };
        let object = Arc::new(UserObject { count: AtomicU64::new(u64::from(count)), destroy });
        put(out, CUuserObject::from_bits(OBJECTS.insert(object)))
    }
    call fn [cuUserObjectRetain plain](_z, object: CUuserObject, count: c_uint) {
        OBJECTS.get(object.bits())?.count.fetch_add(u64::from(count), Ordering::Relaxed);
        Ok(())
    }
    call fn [cuUserObjectRelease plain](_z, object: CUuserObject, count: c_uint) {
        release(object, count)
    }
    call fn [cuGraphRetainUserObject plain](
        _z, graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint
    ) {
        let graph = GRAPHS.valid(graph.bits())?;
        let held = OBJECTS.get(object.bits())?;
        let mut objects = graph.objects.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for _ in 0..count {
            objects.push(held.clone());
        }
        drop(objects);
        // `MOVE`: the program's own holds go over to the graph.
        if flags & CU_GRAPH_USER_OBJECT_MOVE != 0 { release(object, count) } else { Ok(()) }
    }
    call fn [cuGraphReleaseUserObject plain](_z, graph: CUgraph, object: CUuserObject, count: c_uint) {
        let graph = GRAPHS.valid(graph.bits())?;
        let mut objects = graph.objects.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for _ in 0..count {
            let at = objects.iter().position(|held| handle_of(held) == object.bits()).ok_or(INVALID)?;
            objects.remove(at);
        }
        Ok(())
    }
}

fn release(object: CUuserObject, count: c_uint) -> Res {
    let held = OBJECTS.get(object.bits())?;
    let left = held.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| now.checked_sub(u64::from(count)));
    if left.map_err(|_| INVALID)? == u64::from(count) {
        // The destructor runs when no graph holds it either.
        OBJECTS.remove(object.bits())?;
    }
    Ok(())
}
