//! Launches of graphs that name memory which has ended: from a suspect to a finding.
//!
//! Owns which addresses a node names, and asks the code of kernels what they do with them. The
//! lifetimes are kept in [`detect::stale_graphs`], the rule is [`detect::stale_graphs::judge`].

use crate::process::facts::ProcessFacts;
use crate::process::op_context::OpContext;
use crate::process::state::ProcessState;
use detect::launches::effects::{Launch, candidate_pointers};
use detect::memory::{Access, Allocation, AllocationId, Exclusion, Overlap, Site};
use detect::stale_graphs::{Ended, NodePlace, RawStale, Suspect, judge};
use detect::state::graphs::{Graph, Node};
use smallvec::SmallVec;
use trace::launch_flags::{INSIDE_LIBRARY, PARAMS_UNKNOWN};
use trace::{ArrayId, Epoch, GraphExecId, KernelId, MemoryKind, Op, Origin, Region, Space, StreamId};

/// The addresses that a node keeps, or the offsets in an array.
type Addresses = SmallVec<[(NodePlace, u64, ArrayId); 8]>;

/// A node of an executable graph is told. Call it before the node is known.
pub(super) fn node_told(state: &mut ProcessState, facts: &ProcessFacts, op: &Op<'_>) {
    let Op::GraphNode { exec, index, enabled, tag, body, .. } = *op else { return };
    let known = state.graphs.find(exec, index);
    let is_same = known.is_some_and(|node| node.does(tag, body) && node.is_enabled() != enabled);
    let addresses = match Op::decode(tag, body) {
        Ok(op) => addresses(&op, facts),
        Err(_) => Addresses::new(),
    };
    state.stale_graphs.node((exec, index), is_same, addresses.into_iter(), &state.memory);
}

fn addresses(op: &Op<'_>, facts: &ProcessFacts) -> Addresses {
    let side = |place, region: &Region, space: Space| {
        let is_known = space != Space::Array || !region.array.is_none();
        (is_known && !region.is_empty()).then_some((place, region.start, region.array))
    };
    match *op {
        Op::Launch { kernel, shape, params, .. } if shape.flags & (PARAMS_UNKNOWN | INSIDE_LIBRARY) == 0 => {
            let words = candidate_pointers(params, facts.names.kernel(kernel));
            words.map(|(offset, value)| (NodePlace::Param(offset), value, ArrayId::NONE)).collect()
        }
        Op::Copy { ref dst, ref src, dst_space, src_space, .. }
        | Op::AttributedCopy { ref dst, ref src, dst_space, src_space, .. } => {
            let sides = [side(NodePlace::Target, dst, dst_space), side(NodePlace::Source, src, src_space)];
            sides.into_iter().flatten().collect()
        }
        Op::Set { ref dst, .. } => side(NodePlace::Target, dst, Space::Unified).into_iter().collect(),
        Op::WriteValue { address, .. } | Op::WaitValue { address, .. } => {
            std::iter::once((NodePlace::Value, address, ArrayId::NONE)).collect()
        }
        _ => Addresses::new(),
    }
}

/// Memory is freed. `is_root`: it comes from CUDA.
pub(super) fn freed(state: &mut ProcessState, memory: &Allocation, site: Site, epoch: Epoch, is_root: bool) {
    state.stale_graphs.freed(Ended { memory: *memory, site, epoch }, is_root);
}

/// A graph is launched: which of its nodes name memory that has ended.
pub(super) fn launched(
    state: &mut ProcessState,
    facts: &mut ProcessFacts,
    graph: &Graph,
    (stream, exec): (StreamId, GraphExecId),
    origin: &Origin,
    epoch: Epoch,
) {
    let mut suspects = state.stale_graphs.take(exec);
    if suspects.is_empty() {
        return;
    }
    for suspect in &mut suspects {
        let Some((node, op)) = graph.node(suspect.node).and_then(|node| Some((node, node.op()?))) else { continue };
        let now = judge::now_at(suspect, &state.memory);
        let there = now.map_or(AllocationId::NONE, |now| now.id);
        // What is missing of the trace may be what made it right.
        if state.gaps.any() || state.stale_graphs.came_again(suspect, there) {
            continue;
        }
        let context = OpContext {
            origin: Origin { stack: node.stack, call: node.call, ..*origin },
            epoch,
            graph: Some((stream, origin.stack)),
            is_conditional: node.is_conditional,
            overlap: Overlap::No,
            overlap_in_doubt: false,
            region: state.submissions.regions.current(origin.thread),
        };
        // Where a device reaches all memory of the host, unregistering takes nothing away.
        let is_reached = state.system_memory && suspect.ended.memory.kind == Some(MemoryKind::RegisteredHost);
        let raw = match is_reached || is_own(graph, suspect) {
            true => None,
            false => finding(state, facts, (&op, suspect, now), &context, exec),
        };
        state.stale_graphs.judged(suspect, there, raw);
    }
    state.stale_graphs.put(exec, suspects);
}

/// Whether the graph itself allocates what is at an address.
fn is_own(graph: &Graph, suspect: &Suspect) -> bool {
    graph.nodes().iter().filter_map(Node::op).any(|op| match op {
        Op::Alloc { ptr, size, .. } => (ptr..ptr.saturating_add(size)).contains(&suspect.address),
        _ => false,
    })
}

fn finding(
    state: &mut ProcessState,
    facts: &mut ProcessFacts,
    (op, suspect, now): (&Op<'_>, &Suspect, Option<Allocation>),
    context: &OpContext,
    exec: GraphExecId,
) -> Option<RawStale> {
    let (touched, kernel) = match *op {
        Op::Launch { stream, kernel, shape, params } => {
            let launch = Launch { shape, params };
            let mut key = facts.code.key(kernel, &launch);
            let stream = context.graph.map_or(stream, |(stream, _)| stream);
            let arch = facts.arch(&state.streams, stream);
            let (def, maps) = (facts.names.kernel(kernel), &state.memory.tensor_maps);
            let known = facts.code.evaluate(&mut key, def, arch, &launch, maps);
            (judge::of_kernel(&known, suspect)?, kernel)
        }
        _ => (judge::of_call(op, suspect)?, KernelId::NONE),
    };
    let (confidence, weakness) = judge::grade(&touched, suspect, now.as_ref(), context.is_conditional)?;
    let site = Site {
        kernel,
        node: suspect.node + 1,
        param: match suspect.place {
            NodePlace::Param(offset) => Some(offset),
            _ => None,
        },
        at: touched.at,
        guessed: touched.guessed,
        ..context.site(touched.cause, StreamId::NONE)
    };
    let (kind, extent, allocation) = (touched.kind, touched.extent, suspect.ended.memory.id);
    let access = Access { epoch: context.epoch, kind, extent, allocation, site, exclusion: Exclusion::NONE };
    let (place, ended, instantiated) = (suspect.place, *suspect.ended, state.stale_graphs.instantiated(exec));
    Some(RawStale { access, place, ended, now, confidence, weakness, instantiated, count: 1 })
}
