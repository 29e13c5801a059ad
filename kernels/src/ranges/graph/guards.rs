//! What a predicate decides of a value: whether a guarded instruction executes, and which of two
//! values is there afterwards.
//!
//! Owns guards and the choices that they make. What the instruction itself makes is in
//! `operations`; how predicates become nodes is in `predicates`.

use super::build::Builder;
use super::node::{Kind, Node, NodeId, Width};
use super::ssa::Def;
use crate::ir::{Prefix, Src, SrcOperand};
use smallvec::SmallVec;

/// Operations that are followed back to a choice by the same predicate.
const TAKEN_DEPTH: u32 = 4;

/// Is this guard decided by what is given?  `Some(true)`: the guarded instruction executes.
fn decided(builder: &mut Builder<'_>, guard: &SrcOperand, b: u32, i: u32) -> Option<bool> {
    let (p, not) = builder.given?;
    let d = builder.ssa.source(guard.src, b, i);
    (d == p && !matches!(d, Def::Leaf(_) | Def::Undef { .. })).then(|| (guard.prefix == Prefix::Not) == not)
}

/// Resolves guards that are decided by `given`, or constant. `Err`: a definition on the way
/// whose guard is open, and the guard.
pub(crate) fn settle(builder: &mut Builder<'_>, mut d: Def) -> Result<Def, (Def, SrcOperand)> {
    for _ in 0..100 {
        let Some(g) = builder.ssa.guard(d) else { return Ok(d) };
        let Def::Inst { b, i, .. } = d else { return Ok(d) };
        let decided = match g.src {
            Src::Imm(v) => Some((v != 0) == (g.prefix != Prefix::Not)),
            _ => decided(builder, &g, b, i),
        };
        d = match decided {
            Some(true) => {
                let r = d.raw();
                builder.ssa.strip(r)
            }
            Some(false) => builder.ssa.old(d),
            None => return Err((d, g)),
        };
    }
    Ok(d)
}

/// The value of a definition that is another one's, or a choice between what its instruction
/// makes and what was there before; `None`: it is what its instruction makes.
pub(crate) fn settled(
    builder: &mut Builder<'_>,
    d: Def,
    w: Width,
    value: fn(&mut Builder<'_>, Def) -> NodeId,
) -> Option<NodeId> {
    match settle(builder, d) {
        Ok(e) => (e != d).then(|| value(builder, e)),
        // A move that surely happens leads to what is moved: its guard, and what was there
        // before it.
        Err((d, g)) => {
            let Def::Inst { b, i, .. } = d else { return None };
            let p = builder.pred_operand(&g, b, i);
            let new = value(builder, d.raw());
            let new = taken(builder, new, p, true, TAKEN_DEPTH);
            let old = builder.ssa.old(d);
            let old = value(builder, old);
            let old = taken(builder, old, p, false, TAKEN_DEPTH);
            Some(builder.add(Kind::Sel(p, new, old), w, b))
        }
    }
}

/// A value where a predicate is known: what was chosen by the same predicate on the way is one
/// of both. (Instructions that work together are often guarded alike.) The predicate is that of
/// one definition, so both choices are about the same iteration.
fn taken(builder: &mut Builder<'_>, n: NodeId, p: NodeId, holds: bool, depth: u32) -> NodeId {
    if depth == 0 {
        return n;
    }
    let Node { kind, width, home } = builder.g.node(n).clone();
    match kind {
        Kind::Sel(q, x, y) => match same_predicate(builder, q, p) {
            Some(same) => taken(builder, if same == holds { x } else { y }, p, holds, depth - 1),
            None => n,
        },
        Kind::Lin(terms, c) => {
            let known: SmallVec<[(NodeId, i64); 3]> =
                terms.iter().map(|t| (taken(builder, t.0, p, holds, depth - 1), t.1)).collect();
            if known == terms { n } else { builder.lin(&known, c, width, home.0) }
        }
        _ => n,
    }
}

/// Whether two nodes are one predicate, or (`false`) one and its opposite.
fn same_predicate(builder: &Builder<'_>, mut p: NodeId, mut q: NodeId) -> Option<bool> {
    let mut same = true;
    for n in [&mut p, &mut q] {
        while let Kind::Not(x) = builder.g.node(*n).kind {
            *n = x;
            same = !same;
        }
    }
    (p == q && !matches!(builder.g.node(p).kind, Kind::Building)).then_some(same)
}
