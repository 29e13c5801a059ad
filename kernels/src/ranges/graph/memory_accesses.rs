//! Memory instructions as accesses of the graph: their addresses, their guards, and the stores to
//! local memory that loads may see.
//!
//! Owns which instructions count as accesses. Does not decide which bytes they touch (`extent`).

use super::build::Builder;
use super::node::{Access, Kind, LocalStore, NodeId, Target, Width};
use super::ssa::Def;
use crate::ir::{AccessKind, Addr, BlockId, Class, Combine, Inst, Mem, MemSpace, Op, Prefix, Reason, Src, SrcOperand};
use crate::ranges::graph::cas_loops::CompareAndSwap;
use smallvec::SmallVec;

impl Builder<'_> {
    pub(crate) fn access(&mut self, b: u32, i: u32, inst: &Inst, m: &Mem) {
        if m.space != MemSpace::Global {
            return;
        }
        let mut guard = inst.guard.map(|g| self.pred_operand(&g, b, i));
        // The predicate under which an instruction that executes touches memory at all.
        for o in inst.srcs.iter().filter(|_| m.kind == AccessKind::Read) {
            let p = self.pred_operand(o, b, i);
            guard = Some(match guard {
                Some(g) if self.const_of(p) != Some(0) => self.add(Kind::Combine(Combine::And, g, p), Width::Pred, b),
                _ => p,
            });
        }
        if let Some(n) = guard
            && self.const_of(n) == Some(0)
        {
            return;
        }
        let mut target = self.target(m, b, i);
        if let Some(g) = inst.guard {
            let d = self.ssa.source(g.src, b, i);
            let known = !matches!(d, Def::Leaf(_) | Def::Undef { .. });
            if known && guard.is_some_and(|n| self.chooses_by(&target, n)) {
                // Definitions under the same predicate happened: build the address with that known.
                self.given = Some((d, g.prefix == Prefix::Not));
                self.base = std::mem::take(&mut self.memo);
                target = self.target(m, b, i);
                self.memo = std::mem::take(&mut self.base);
                self.given = None;
            }
        }
        if m.kind == AccessKind::Atomic && !inst.srcs.is_empty() {
            self.swaps.push(CompareAndSwap { access: self.g.accesses.len(), block: b, inst: i });
        }
        let block = BlockId(b);
        self.g.accesses.push(Access { block, kind: m.kind, bytes: m.bytes, target, guard, at: inst.at });
    }

    /// Does the address choose by predicate `p` (or its negation) somewhere?
    pub(crate) fn chooses_by(&self, t: &Target, p: NodeId) -> bool {
        let strip = |mut n: NodeId| {
            while let Kind::Not(a) = self.g.node(n).kind {
                n = a;
            }
            n
        };
        let p = strip(p);
        let mut work = match t {
            Target::Address(n) | Target::TensorMap(n) | Target::Handle(n, _) => vec![*n],
            Target::Bulk(n, m) => vec![*n, *m],
            Target::Unknown(_) => return false,
        };
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(n) = work.pop() {
            if seen.insert(n) {
                if matches!(self.g.node(n).kind, Kind::Sel(c, ..) if strip(c) == p) {
                    return true;
                }
                work.extend(self.g.operands(n));
            }
        }
        false
    }

    pub(crate) fn target(&mut self, m: &Mem, b: u32, i: u32) -> Target {
        match &m.addr {
            Addr::Sum(parts, off) => Target::Address(self.sum64(parts, *off, b, i)),
            Addr::Bulk(parts, size) => {
                let a = self.sum64(parts, 0, b, i);
                Target::Bulk(a, self.operand32(size, b, i))
            }
            Addr::TensorMap(o) => Target::TensorMap(self.operand64(o, b, i)),
            Addr::Handle(o, s) => {
                let wide = !matches!(o.src, Src::Var(v) if self.ssa.f.class(v) == Class::W32);
                let n = if wide { self.operand64(o, b, i) } else { self.operand32(o, b, i) };
                Target::Handle(n, *s)
            }
            Addr::Unknown(r) => Target::Unknown(*r),
        }
    }

    pub(crate) fn sum64(&mut self, parts: &[SrcOperand], off: i64, b: u32, i: u32) -> NodeId {
        let t: SmallVec<[(NodeId, i64); 3]> = parts.iter().map(|o| (self.operand64(o, b, i), 1)).collect();
        self.lin(&t, off, Width::W64, b)
    }

    pub(crate) fn local_stores(&mut self) {
        if !self.has_local {
            return;
        }
        let (f, cfg) = (self.ssa.f, self.ssa.cfg);
        for blk in &cfg.rpo {
            for (i, inst) in f.blocks[blk.0 as usize].insts.iter().enumerate() {
                let Op::Mem(m) = &inst.op else { continue };
                if m.space != MemSpace::Local || m.kind == AccessKind::Read {
                    continue;
                }
                let (b, i) = (blk.0, i as u32);
                let addr = match &m.addr {
                    Addr::Sum(a, off) => self.local_address(a, *off, 0, b, i),
                    _ => self.opaque(Reason::Local, Width::W32, b),
                };
                let words: SmallVec<[NodeId; 4]> = inst.srcs.iter().map(|s| self.operand32(s, b, i)).collect();
                let pairs = inst
                    .srcs
                    .chunks_exact(2)
                    .map(|c| {
                        let l = self.ssa.source(c[0].src, b, i);
                        let h = self.ssa.source(c[1].src, b, i);
                        self.node64(l, h)
                    })
                    .collect();
                self.g.local_stores.push(LocalStore { addr, words, block: *blk, pairs, bytes: m.bytes });
            }
        }
    }
}
