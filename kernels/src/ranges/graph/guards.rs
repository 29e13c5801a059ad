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

impl Builder<'_> {
    /// Is this guard decided by what is given?  `Some(true)`: the guarded instruction executes.
    fn decided(&mut self, guard: &SrcOperand, b: u32, i: u32) -> Option<bool> {
        let (p, not) = self.given?;
        let d = self.ssa.source(guard.src, b, i);
        (d == p && !matches!(d, Def::Leaf(_) | Def::Undef { .. })).then(|| (guard.prefix == Prefix::Not) == not)
    }

    /// Resolves guards that are decided by `given`, or constant. `Err`: a definition on the way
    /// whose guard is open, and the guard.
    pub(crate) fn settle(&mut self, mut d: Def) -> Result<Def, (Def, SrcOperand)> {
        for _ in 0..100 {
            let Some(g) = self.ssa.guard(d) else { return Ok(d) };
            let Def::Inst { b, i, .. } = d else { return Ok(d) };
            let decided = match g.src {
                Src::Imm(v) => Some((v != 0) == (g.prefix != Prefix::Not)),
                _ => self.decided(&g, b, i),
            };
            d = match decided {
                Some(true) => {
                    let r = d.raw();
                    self.ssa.strip(r)
                }
                Some(false) => self.ssa.old(d),
                None => return Err((d, g)),
            };
        }
        Ok(d)
    }

    /// The value of a definition that is another one's, or a choice between what its instruction
    /// makes and what was there before; `None`: it is what its instruction makes.
    pub(crate) fn settled(&mut self, d: Def, w: Width, value: fn(&mut Self, Def) -> NodeId) -> Option<NodeId> {
        match self.settle(d) {
            Ok(e) => (e != d).then(|| value(self, e)),
            // A move that surely happens leads to what is moved: its guard, and what was there
            // before it.
            Err((d, g)) => {
                let Def::Inst { b, i, .. } = d else { return None };
                let p = self.pred_operand(&g, b, i);
                let new = value(self, d.raw());
                let new = self.taken(new, p, true, TAKEN_DEPTH);
                let old = self.ssa.old(d);
                let old = value(self, old);
                let old = self.taken(old, p, false, TAKEN_DEPTH);
                Some(self.add(Kind::Sel(p, new, old), w, b))
            }
        }
    }

    /// A value where a predicate is known: what was chosen by the same predicate on the way is one
    /// of both. (Instructions that work together are often guarded alike.) The predicate is that of
    /// one definition, so both choices are about the same iteration.
    fn taken(&mut self, n: NodeId, p: NodeId, holds: bool, depth: u32) -> NodeId {
        if depth == 0 {
            return n;
        }
        let Node { kind, width, home } = self.g.node(n).clone();
        match kind {
            Kind::Sel(q, x, y) => match self.same_predicate(q, p) {
                Some(same) => self.taken(if same == holds { x } else { y }, p, holds, depth - 1),
                None => n,
            },
            Kind::Lin(terms, c) => {
                let known: SmallVec<[(NodeId, i64); 3]> =
                    terms.iter().map(|t| (self.taken(t.0, p, holds, depth - 1), t.1)).collect();
                if known == terms { n } else { self.lin(&known, c, width, home.0) }
            }
            _ => n,
        }
    }

    /// Whether two nodes are one predicate, or (`false`) one and its opposite.
    fn same_predicate(&self, mut p: NodeId, mut q: NodeId) -> Option<bool> {
        let mut same = true;
        for n in [&mut p, &mut q] {
            while let Kind::Not(x) = self.g.node(*n).kind {
                *n = x;
                same = !same;
            }
        }
        (p == q && !matches!(self.g.node(p).kind, Kind::Building)).then_some(same)
    }
}
