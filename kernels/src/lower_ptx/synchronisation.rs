//! What PTX instructions order, beside the accesses that they make: barriers, fences, arrivals at
//! `mbarrier` objects, programmatic dependent launch.
//!
//! Owns no accesses. The orders of atomic ones are in `memory_access`.

use super::Lower;
use super::arithmetic::has;
use crate::ir::{Class, Op, Reason, SrcOperand, Sync};
use device_code::ptx::{Instruction, OpcodeInfo};

/// Emits what an instruction orders.
pub(super) fn synchronisation<'m>(lower: &mut Lower<'m>, op: &'m OpcodeInfo, i: &'m Instruction) {
    if arrives(op) {
        lower.emit(Op::Sync(Sync::PhaseArrive), &[], &[]);
    }
    match op.parts[0].as_str() {
        "griddepcontrol" => {
            let sync = if has(op, "wait") { Sync::GridWait } else { Sync::GridTrigger };
            lower.emit(Op::Sync(sync), &[], &[]);
        }
        "bar" | "barrier" => {
            let sync = match (has(op, "warp"), has(op, "cluster"), has(op, "arrive")) {
                (true, ..) => Sync::WarpBarrier,
                (_, true, true) => Sync::ClusterArrive,
                (_, true, false) => Sync::ClusterWait,
                (_, _, true) => Sync::BarrierArrive,
                _ => Sync::Barrier,
            };
            // (A reduction names its result first.)
            let number = i.operands.get(usize::from(has(op, "red")));
            let number = number.filter(|_| matches!(sync, Sync::Barrier | Sync::BarrierArrive));
            let number: Vec<SrcOperand> = number.map(|o| lower.src(Some(o), Class::W32)).into_iter().collect();
            lower.emit(Op::Sync(sync), &number, &[]);
            if has(op, "red") {
                lower.give_up(i, Reason::CrossLane);
            }
        }
        "membar" | "fence" if orders_beyond_cluster(op) => lower.emit(Op::Sync(Sync::Fence), &[], &[]),
        _ => {}
    }
}

/// Whether an instruction, or a copy that it starts, may arrive at an `mbarrier` (PTX ISA,
/// "Parallel Synchronization and Communication Instructions: mbarrier", and the completion
/// mechanisms of asynchronous copies).
fn arrives(op: &OpcodeInfo) -> bool {
    let names = |part: &String| part == "mbarrier" || part.starts_with("mbarrier::");
    match op.parts[0].as_str() {
        "mbarrier" => has(op, "arrive") || has(op, "arrive_drop") || has(op, "complete_tx"),
        "st" | "red" => has(op, "async"),
        "tcgen05" => has(op, "commit"),
        _ => op.parts[1..].iter().any(names),
    }
}

/// Whether a fence orders accesses towards other kernels. (Those between proxies, and of barriers'
/// initialisation, order something else.)
fn orders_beyond_cluster(op: &OpcodeInfo) -> bool {
    let other = |part: &String| part.starts_with("proxy") || part.starts_with("mbarrier_init");
    let scopes = ["gl", "gpu", "sys"];
    !op.parts.iter().any(other) && scopes.iter().any(|scope| has(op, scope))
}
