//! Memory instructions as accesses of the graph: their addresses, their guards, and the stores to
//! local and shared memory that loads may see.
//!
//! Owns which instructions count as accesses. Does not decide which bytes they touch (`extent`).

use super::build::Builder;
use super::node::{Access, Kind, NodeId, StoredWords, Target, Width};
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
        if inst.guard.is_some() && guard.is_some_and(|n| self.chooses_by(&target, n)) {
            target = self.given_guard(inst, b, i, |bld| bld.target(m, b, i));
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
            Target::Passed(_) | Target::Unknown(_) => return false,
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
            Addr::Passed(arguments) => {
                self.has_local = true;
                let mut node = |o: &SrcOperand| match o.src {
                    Src::Var(v) if self.ssa.f.class(v) == Class::W32 => self.operand32(o, b, i),
                    _ => self.operand64(o, b, i),
                };
                Target::Passed(arguments.iter().map(&mut node).collect())
            }
            Addr::Unknown(r) => Target::Unknown(*r),
        }
    }

    pub(crate) fn sum64(&mut self, parts: &[SrcOperand], off: i64, b: u32, i: u32) -> NodeId {
        let t: SmallVec<[(NodeId, i64); 3]> = parts.iter().map(|o| (self.operand64(o, b, i), 1)).collect();
        self.lin(&t, off, Width::W64, b)
    }

    /// The stores that loads from local and shared memory may see.
    pub(crate) fn stores(&mut self) {
        if self.has_local {
            self.g.local_stores = self.stores_to(MemSpace::Local);
        }
        // The stored words may be loaded from there in turn.
        if self.has_shared {
            self.g.shared_stores = self.stores_to(MemSpace::Shared);
        }
    }

    /// What an instruction stores, and where.
    fn stored(&mut self, inst: &Inst, m: &Mem, b: u32, i: u32) -> StoredWords {
        let addr = match &m.addr {
            Addr::Sum(a, off) => self.near_address(a, *off, 0, b, i),
            _ => self.opaque(Reason::Local, Width::W32, b),
        };
        let words = inst.srcs.iter().map(|s| self.operand32(s, b, i)).collect();
        let pairs = inst
            .srcs
            .chunks_exact(2)
            .map(|c| {
                let l = self.ssa.source(c[0].src, b, i);
                let h = self.ssa.source(c[1].src, b, i);
                self.node64(l, h)
            })
            .collect();
        StoredWords { addr, words, block: BlockId(b), pairs, bytes: m.bytes }
    }

    /// Builds with the guard of an instruction known to be true: definitions under the same
    /// predicate happened.
    fn given_guard<T>(&mut self, inst: &Inst, b: u32, i: u32, build: impl FnOnce(&mut Self) -> T) -> T {
        let Some(g) = inst.guard else { return build(self) };
        let d = self.ssa.source(g.src, b, i);
        if matches!(d, Def::Leaf(_) | Def::Undef { .. }) {
            return build(self);
        }
        self.given = Some((d, g.prefix == Prefix::Not));
        self.base = std::mem::take(&mut self.memo);
        let built = build(self);
        self.memo = std::mem::take(&mut self.base);
        self.given = None;
        built
    }

    /// The 64-bit address of an access that was built already.
    fn access_at(&self, block: BlockId, at: u32, kind: AccessKind) -> Option<NodeId> {
        let found = self.g.accesses.iter().find(|a| a.block == block && a.at == at && a.kind == kind)?;
        match found.target {
            Target::Address(n) => Some(n),
            _ => None,
        }
    }

    fn stores_to(&mut self, space: MemSpace) -> Vec<StoredWords> {
        let (f, cfg) = (self.ssa.f, self.ssa.cfg);
        let mut stores = Vec::new();
        for blk in &cfg.rpo {
            for (i, inst) in f.blocks[blk.0 as usize].insts.iter().enumerate() {
                let Op::Mem(m) = &inst.op else { continue };
                let generic = space == MemSpace::Shared && m.space == MemSpace::Generic;
                if (m.space != space && !generic) || !m.kind.writes() {
                    continue;
                }
                let (b, i) = (blk.0, i as u32);
                let mut store = match space {
                    MemSpace::Shared => self.given_guard(inst, b, i, |bld| bld.stored(inst, m, b, i)),
                    _ => self.stored(inst, m, b, i),
                };
                if generic {
                    // As the access knows it.
                    store.addr = match self.access_at(*blk, inst.at, m.kind) {
                        Some(n) => n,
                        None => self.opaque(Reason::Shared, Width::W64, b),
                    };
                }
                stores.push(store);
            }
        }
        stores
    }
}
