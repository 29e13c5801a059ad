//! Which bodies of conditional nodes surely run.
//!
//! Owns the values that handles of conditions have by default, and the search for bodies that these
//! values let run whatever kernels do. A body counts as such if its condition has a default value
//! (`cudaGraphCondAssignDefault`), no kernel comes before the node, and no kernel of the graph has
//! the handle among its parameters: `cudaGraphSetConditional` is then called by nobody (CUDA
//! Programming Guide, "Conditional Graph Nodes"). Bodies of loops never count: somebody must end
//! the loop.
//!
//! The driver counts handles from 1 in each graph (driver 580.159), and a node does not tell the
//! graph of its handle. So a value counts only while all graphs of the process agree on it.

use std::ffi::c_uint;
use std::ops::Range;

use cuda_sys::*;
use trace::{Op, tag};

use crate::handles::graph_execs::GraphNode;
use crate::handles::tables::Bodies;
use crate::observe::Cx;

/// A body that runs unless a kernel sets its condition.
pub(crate) struct DefaultBody {
    /// The conditional node, by its number among the nodes read.
    pub node: u32,
    /// Its nodes.
    pub range: Range<usize>,
    /// The handle of its condition.
    pub handle: u64,
    /// The condition that the conditional node is under itself.
    pub around: Option<u32>,
}

/// The graphs inside a conditional node.
pub(crate) fn bodies_of(cx: &Cx<'_>, p: &CUDA_CONDITIONAL_NODE_PARAMS, graphs: &[CUgraph]) -> Bodies {
    let default = cx.core().and_then(|core| core.handles.conditions.get(&p.handle).and_then(|value| *value));
    let by_default = default.and_then(|value| match p.type_ {
        CU_GRAPH_COND_TYPE_IF if value != 0 => Some(0),
        CU_GRAPH_COND_TYPE_IF => Some(1),
        CU_GRAPH_COND_TYPE_SWITCH => Some(value as usize),
        _ => None,
    });
    Bodies { graphs: graphs.iter().map(|graph| graph.0 as u64).collect(), handle: p.handle, by_default }
}

/// Takes the condition away from the nodes of bodies that surely run.
pub(crate) fn settle(nodes: &mut [GraphNode], bodies: &[DefaultBody]) {
    for body in bodies {
        let given = |node: &GraphNode| match Op::decode(node.tag, &node.body) {
            Ok(Op::Launch { params, .. }) => params.chunks(8).any(|word| word == body.handle.to_le_bytes()),
            _ => false,
        };
        if nodes.iter().any(given) || comes_after_a_kernel(nodes, body.node) {
            continue;
        }
        for node in &mut nodes[body.range.clone()] {
            if node.condition == Some(body.node) {
                node.condition = body.around;
            }
        }
    }
}

fn comes_after_a_kernel(nodes: &[GraphNode], node: u32) -> bool {
    let mut seen = vec![false; nodes.len()];
    let mut work = vec![node];
    while let Some(at) = work.pop() {
        let Some(found) = nodes.get(at as usize) else { continue };
        if std::mem::replace(&mut seen[at as usize], true) {
            continue;
        }
        if found.tag == tag::Launch {
            return true;
        }
        work.extend(found.dependencies.iter().map(|dependency| dependency.from));
    }
    false
}

pub(crate) unsafe fn cuGraphConditionalHandleCreate(
    cx: &mut Cx<'_>,
    handle_out: *mut CUgraphConditionalHandle,
    _graph: CUgraph,
    _ctx: CUcontext,
    default_launch_value: c_uint,
    flags: c_uint,
) {
    let Some(core) = cx.core() else { return };
    // SAFETY: the call succeeded, so it has written the handle.
    let handle = unsafe { *handle_out };
    let default = (flags & CU_GRAPH_COND_ASSIGN_DEFAULT != 0).then_some(default_launch_value);
    let mut known = core.handles.conditions.entry(handle).or_insert(default);
    if *known != default {
        *known = None;
    }
}
