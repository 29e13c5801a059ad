//! Atomics made of compare-and-swap loops: the load in front of the loop belongs to the atomic.
//!
//! `ptxas` makes such loops of `atom.add` for 16-bit floats, and programs write them for operations
//! that have no instruction. The load only gives the first value to compare. When another kernel
//! has changed that value since, the swap fails and returns the new one. Two such atomics do not
//! race with each other, so the load is not a plain read, and counts as an atomic here. A load
//! counts when its value, or bits of it, is what a swap of the same address compares. Towards all
//! other accesses the two behave as the swap alone does.

use super::build::Builder;
use super::node::{Kind, NodeId, Target};
use super::ssa::{Def, END};
use crate::ir::{AccessKind, Op, Reason, Src};
use std::collections::HashSet;

/// Definitions that are followed from one swap.
const MAX_STEPS: usize = 64;

/// A compare-and-swap: its access, and where it is.
pub(crate) struct CompareAndSwap {
    pub(crate) access: usize,
    pub(crate) block: u32,
    pub(crate) inst: u32,
}

/// Turns the loads that belong to swaps into atomics.
pub(crate) fn mark_cas_loads(builder: &mut Builder<'_>) {
    for swap in std::mem::take(&mut builder.swaps) {
        let Some(compared) = builder.ssa.f.blocks[swap.block as usize].insts[swap.inst as usize].srcs.first() else {
            continue;
        };
        let loads = loads_behind(builder, compared.src, swap.block, swap.inst);
        let (target, bytes) = (builder.g.accesses[swap.access].target.clone(), builder.g.accesses[swap.access].bytes);
        for n in 0..builder.g.accesses.len() {
            let a = &builder.g.accesses[n];
            let belongs = !a.kind.writes() && a.bytes <= bytes && loads.contains(&a.at);
            if belongs && same_target(builder, &a.target, &target) {
                builder.g.accesses[n].kind = AccessKind::Atomic;
            }
        }
    }
}

/// Where the loads are that a value may come from, unchanged.
fn loads_behind(builder: &mut Builder<'_>, value: Src, b: u32, i: u32) -> HashSet<u32> {
    let first = match value {
        Src::Pair(low, _) => Src::Var(low),
        other => other,
    };
    let mut work = vec![builder.ssa.source(first, b, i)];
    let mut seen = HashSet::new();
    let mut loads = HashSet::new();
    while let Some(d) = work.pop() {
        if !seen.insert(d) || seen.len() > MAX_STEPS {
            continue;
        }
        if builder.ssa.guard(d).is_some() {
            let old = builder.ssa.old(d);
            work.push(old);
        }
        match d {
            Def::Phi { var, b } => {
                let cfg = builder.ssa.cfg;
                for p in &cfg.preds[b as usize] {
                    let d = builder.ssa.read(var, p.0, END);
                    work.push(builder.ssa.strip(d));
                }
            }
            Def::Inst { b, i, part, .. } => {
                let Some(inst) = builder.ssa.inst(d) else { continue };
                match &inst.op {
                    Op::Unknown(Reason::Loaded) | Op::Loaded(_) => {
                        loads.insert(inst.at);
                    }
                    Op::Mov => {
                        if let Some(s) = inst.srcs.get(usize::from(part)) {
                            work.push(builder.ssa.source(s.src, b, i));
                        }
                    }
                    // A part of the word put into it: swaps of 16 bits are made of those of 32.
                    Op::Lop3 { .. } | Op::Prmt => {
                        work.extend(inst.srcs.iter().map(|s| builder.ssa.source(s.src, b, i)));
                    }
                    _ => {}
                }
            }
            Def::Leaf(_) | Def::Undef { .. } => {}
        }
    }
    loads
}

fn same_target(builder: &Builder<'_>, a: &Target, b: &Target) -> bool {
    matches!((a, b), (Target::Address(a), Target::Address(b)) if same_address(builder, *a, *b))
}

fn same_address(builder: &Builder<'_>, a: NodeId, b: NodeId) -> bool {
    if a == b {
        return true;
    }
    match (&builder.g.node(a).kind, &builder.g.node(b).kind) {
        (Kind::Lin(x, c), Kind::Lin(y, d)) => c == d && x == y,
        (Kind::ParamAddress(x), Kind::ParamAddress(y)) => x == y,
        (Kind::Param(x, w), Kind::Param(y, v)) => (x, w) == (y, v),
        (Kind::Symbol(x), Kind::Symbol(y)) => x == y,
        _ => false,
    }
}
