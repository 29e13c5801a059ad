//! Does a kernel touch the same bytes in every launch that agrees in shape and parameters?
//!
//! Owns that one question. Only if the answer is yes may ranges that were measured once stand for
//! later launches. An address, a guard or a branch that depends on anything but the launch (a
//! loaded value, shared memory, another lane, a clock) makes the ranges depend on data.
//!
//! The answer is a taint analysis over variables, flow-sensitive and conservative. What comes out
//! of memory is tainted, and so is every result whose sources the front ends do not name
//! ([`Op::Unknown`]). Where a tainted condition decides, everything up to the point where both ways
//! meet again is *controlled*: what is defined there is tainted, and an access there depends on
//! data. A wait for a flag (a loop that touches nothing) controls only itself, so that barriers do
//! no harm. "No" is always safe; "yes" must never be wrong.

use crate::ir::cfg::Cfg;
use crate::ir::{Addr, Inst, KernelIr, MemSpace, Op, Src, SrcOperand, Term, Var};

/// Variables, as bits.
type Set = Vec<u64>;

fn has(set: &Set, v: Var) -> bool {
    set.get(v.0 as usize / 64).is_some_and(|word| word >> (v.0 % 64) & 1 != 0)
}

fn put(set: &mut Set, v: Var, on: bool) {
    if let Some(word) = set.get_mut(v.0 as usize / 64) {
        let bit = 1_u64 << (v.0 % 64);
        *word = if on { *word | bit } else { *word & !bit };
    }
}

struct Taint<'a> {
    f: &'a KernelIr,
    cfg: &'a Cfg,
    /// What is tainted where each block begins.
    entry: Vec<Set>,
    controlled: Vec<bool>,
}

/// Whether every global access of the kernel is decided by the launch alone. Accesses through
/// tensor maps, textures and surfaces do not count: they are not measured either.
pub(crate) fn is_launch_invariant(f: &KernelIr, cfg: &Cfg) -> bool {
    if cfg.irreducible || f.blocks.iter().flat_map(|b| &b.insts).any(|i| i.op == Op::ClobberAll) {
        return false;
    }
    let (blocks, words) = (f.blocks.len(), f.vars.len().div_ceil(64));
    let mut taint = Taint { f, cfg, entry: vec![vec![0; words]; blocks], controlled: vec![false; blocks] };
    loop {
        taint.flow();
        if !taint.control() {
            break;
        }
    }
    cfg.rpo.iter().all(|b| taint.is_decided(b.0 as usize))
}

impl Taint<'_> {
    /// Follows all blocks until nothing changes.
    fn flow(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for b in &self.cfg.rpo {
                let exit = self.exit(b.0 as usize);
                for s in &self.cfg.succs[b.0 as usize] {
                    for (to, from) in self.entry[s.0 as usize].iter_mut().zip(&exit) {
                        changed |= from & !*to != 0;
                        *to |= from;
                    }
                }
            }
        }
    }

    fn exit(&self, b: usize) -> Set {
        let mut set = self.entry[b].clone();
        for inst in &self.f.blocks[b].insts {
            step(&mut set, inst, self.controlled[b]);
        }
        set
    }

    /// Marks what tainted conditions decide. False: nothing new.
    fn control(&mut self) -> bool {
        let mut new = false;
        for b in &self.cfg.rpo {
            let data = match &self.f.blocks[b.0 as usize].term {
                Term::Branch { cond, .. } => tainted(&self.exit(b.0 as usize), cond),
                Term::Switch(_) => true,
                Term::Jump(_) | Term::Exit => false,
            };
            if !data {
                continue;
            }
            let meet = self.cfg.ipdom[b.0 as usize];
            let mut work: Vec<_> = self.cfg.succs[b.0 as usize].to_vec();
            let mut seen = vec![false; self.f.blocks.len()];
            while let Some(at) = work.pop() {
                if Some(at) == meet || std::mem::replace(&mut seen[at.0 as usize], true) {
                    continue;
                }
                new |= !std::mem::replace(&mut self.controlled[at.0 as usize], true);
                work.extend(self.cfg.succs[at.0 as usize].iter().copied());
            }
        }
        new
    }

    /// Whether the launch decides every global access of a block.
    fn is_decided(&self, b: usize) -> bool {
        let mut set = self.entry[b].clone();
        for inst in &self.f.blocks[b].insts {
            if let Op::Mem(m) = &inst.op
                && m.space == MemSpace::Global
            {
                let data = |parts: &[SrcOperand]| parts.iter().any(|p| tainted(&set, p));
                let unseen = matches!(m.addr, Addr::TensorMap(..) | Addr::Handle(..));
                let address = match &m.addr {
                    Addr::Sum(parts, _) => data(parts),
                    Addr::Bulk(parts, size) => data(parts) || tainted(&set, size),
                    Addr::TensorMap(..) | Addr::Handle(..) => false,
                    Addr::Passed(_) | Addr::Unknown(_) => true,
                };
                let guard = inst.guard.is_some_and(|g| tainted(&set, &g));
                if !unseen && (self.controlled[b] || address || guard) {
                    return false;
                }
            }
            step(&mut set, inst, self.controlled[b]);
        }
        true
    }
}

fn tainted(set: &Set, operand: &SrcOperand) -> bool {
    match operand.src {
        Src::Var(v) | Src::Zext(v) => has(set, v),
        Src::Pair(a, b) => has(set, a) || has(set, b),
        Src::Driver(_) | Src::Constant(_) => true,
        Src::Imm(_)
        | Src::Param { .. }
        | Src::Special(_)
        | Src::Symbol(_)
        | Src::SymbolHalf(..)
        | Src::ParamAddress(_)
        | Src::ParamAddressHalf(..) => false,
    }
}

fn step(set: &mut Set, inst: &Inst, controlled: bool) {
    let data = match inst.op {
        Op::Mem(_) | Op::Loaded(_) | Op::Unknown(_) | Op::Bounded { .. } | Op::ClobberAll => true,
        _ => controlled || inst.srcs.iter().chain(&inst.guard).any(|s| tainted(set, s)),
    };
    for d in inst.dsts.iter().filter(|d| **d != Var::NONE) {
        // Under a guard the old value may stay.
        let on = data || inst.guard.is_some() && has(set, *d);
        put(set, *d, on);
    }
}
