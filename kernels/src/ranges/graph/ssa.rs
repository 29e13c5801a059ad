//! Reaching definitions: which definition of a variable reaches a point. SSA is built lazily,
//! backwards from the use, after Braun et al., "Simple and Efficient Construction of Static Single
//! Assignment Form".
//!
//! Owns definitions only; `build` turns them into values.

use crate::ir::cfg::Cfg;
use crate::ir::{Cmp, Combine, Inst, KernelIr, Op, Prefix, Reason, Src, SrcOperand, Var};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Position after the last instruction of a block.
pub(crate) const END: u32 = u32::MAX;

/// A reaching definition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Def {
    /// Destination `part` of an instruction; `raw`: taken as executed, its guard is decided
    /// elsewhere.
    Inst { b: u32, i: u32, part: u8, raw: bool },
    /// Join of a variable at a block.
    Phi { var: Var, b: u32 },
    /// SrcOperand that is no variable.
    Leaf(Src),
    /// No definition known: `var` as it is at this place (two different ones never look the same).
    Undef { why: Reason, var: Var, b: u32, i: u32 },
}

impl Def {
    pub(crate) const ZERO: Def = Def::Leaf(Src::Imm(0));

    pub(crate) fn imm(self) -> Option<u64> {
        match self {
            Def::Leaf(Src::Imm(v)) => Some(v),
            _ => None,
        }
    }
    /// The constant as a 32-bit word.
    pub(crate) fn imm32(self) -> Option<u32> {
        self.imm().map(|v| v as u32)
    }
    /// Same instruction, guard taken as decided.
    pub(crate) fn raw(self) -> Def {
        match self {
            Def::Inst { b, i, part, .. } => Def::Inst { b, i, part, raw: true },
            d => d,
        }
    }
    pub(crate) fn same_inst(self, o: Def) -> bool {
        matches!((self, o), (Def::Inst { b, i, .. }, Def::Inst { b: c, i: j, .. }) if b == c && i == j)
    }
    pub(crate) fn part(self) -> u8 {
        match self {
            Def::Inst { part, .. } => part,
            _ => 0,
        }
    }
}

/// Where a block defines each variable: (instruction, part), ascending.
type BlockDefs = FxHashMap<Var, SmallVec<[(u32, u8); 2]>>;

/// Reaching definitions of one function.
pub(crate) struct Ssa<'a> {
    pub(crate) f: &'a KernelIr,
    pub(crate) cfg: &'a Cfg,
    /// Per block: variable -> (instruction, part), ascending.
    defs: Vec<BlockDefs>,
    /// Per block: instructions that define everything.
    clobbers: Vec<SmallVec<[u32; 1]>>,
    /// Per loop: variables defined inside; `None` when everything may be.
    loop_defs: Vec<Option<FxHashSet<Var>>>,
    memo: FxHashMap<(Var, u32), Def>,
    busy: FxHashSet<(Var, u32)>,
}

impl<'a> Ssa<'a> {
    pub(crate) fn new(f: &'a KernelIr, cfg: &'a Cfg) -> Self {
        let mut defs = Vec::with_capacity(f.blocks.len());
        let mut clobbers = Vec::with_capacity(f.blocks.len());
        for b in &f.blocks {
            let mut m: BlockDefs = FxHashMap::default();
            let mut c = SmallVec::new();
            for (i, inst) in b.insts.iter().enumerate() {
                if inst.op == Op::ClobberAll {
                    c.push(i as u32);
                }
                for (p, d) in inst.dsts.iter().enumerate() {
                    if *d != Var::NONE {
                        m.entry(*d).or_default().push((i as u32, p as u8));
                    }
                }
            }
            defs.push(m);
            clobbers.push(c);
        }
        let loop_defs = cfg
            .loops
            .iter()
            .map(|l| {
                let mut set = FxHashSet::default();
                for (b, inside) in l.members.iter().enumerate() {
                    if *inside {
                        if !clobbers[b].is_empty() {
                            return None;
                        }
                        set.extend(defs[b].keys().copied());
                    }
                }
                Some(set)
            })
            .collect();
        Ssa { f, cfg, defs, clobbers, loop_defs, memo: FxHashMap::default(), busy: FxHashSet::default() }
    }

    /// The instruction of an `Inst` definition.
    pub(crate) fn inst(&self, d: Def) -> Option<&'a Inst> {
        match d {
            Def::Inst { b, i, .. } => Some(&self.f.blocks[b as usize].insts[i as usize]),
            _ => None,
        }
    }

    /// The guard that still decides whether the definition happens.
    pub(crate) fn guard(&self, d: Def) -> Option<SrcOperand> {
        match d {
            Def::Inst { raw: false, .. } => self.inst(d)?.guard,
            _ => None,
        }
    }

    /// The definition of `var` that reaches instruction `i` of block `b`.
    pub(crate) fn read(&mut self, var: Var, b: u32, i: u32) -> Def {
        let (mut b, mut i) = (b, i);
        loop {
            let found = self.defs[b as usize].get(&var).and_then(|v| v.iter().rev().find(|d| d.0 < i).copied());
            let clob = self.clobbers[b as usize].iter().rev().find(|c| **c < i).copied();
            match (found, clob) {
                (Some(d), c) if c.is_none_or(|c| c <= d.0) => return Def::Inst { b, i: d.0, part: d.1, raw: false },
                (_, Some(c)) => return Def::Undef { why: Reason::Call, var, b, i: c },
                _ => {}
            }
            let preds = &self.cfg.preds[b as usize];
            if b != 0 && preds.len() == 1 && self.cfg.loop_of_header[b as usize].is_none() {
                b = preds[0].0;
                i = END;
                continue;
            }
            return self.read_in(var, b);
        }
    }

    fn read_in(&mut self, var: Var, b: u32) -> Def {
        if let Some(d) = self.memo.get(&(var, b)) {
            return *d;
        }
        let cfg = self.cfg;
        if cfg.preds[b as usize].is_empty() || (b == 0 && cfg.header_loop(crate::ir::BlockId(0)).is_none()) {
            return Def::Undef { why: Reason::Undefined, var, b, i: 0 };
        }
        if b == 0 {
            return Def::Undef { why: Reason::Irreducible, var, b, i: 0 };
        }
        // Around a cycle that no loop header breaks: a join, which may turn out to have one arm
        // only.
        let here = Def::Phi { var, b };
        if self.busy.contains(&(var, b)) {
            return here;
        }
        let outer = cfg.outer_preds(crate::ir::BlockId(b));
        let d = match cfg.loop_of_header[b as usize] {
            Some(l) if self.loop_defs[l as usize].as_ref().is_none_or(|s| s.contains(&var)) => Def::Phi { var, b },
            _ => {
                self.busy.insert((var, b));
                let mut one: Option<Def> = None;
                let mut many = false;
                for p in outer {
                    let d = self.read(var, p.0, END);
                    let d = self.strip(d);
                    match one {
                        _ if d == here => {}
                        None => one = Some(d),
                        Some(o) if o != d => {
                            many = true;
                            break;
                        }
                        _ => {}
                    }
                }
                self.busy.remove(&(var, b));
                match one {
                    Some(d) if !many => d,
                    _ => Def::Phi { var, b },
                }
            }
        };
        self.memo.insert((var, b), d);
        d
    }

    /// The predicate that a comparison takes back: `(p ? bit : 0) != 0` is `p`. (Compilers put
    /// predicates by when they run out of them.)
    fn put_by(&mut self, inst: &Inst, b: u32, i: u32) -> Option<Def> {
        let Op::Cmp { cmp: Cmp::Ne, wide: false, combine: Combine::And, .. } = inst.op else { return None };
        let [word, zero, with] = &inst.srcs[..] else { return None };
        if !zero.is_imm(0) || !with.is_imm(1) || word.prefix != Prefix::None {
            return None;
        }
        let Def::Inst { b, i, part: 0, .. } = self.source(word.src, b, i) else { return None };
        let inst = &self.f.blocks[b as usize].insts[i as usize];
        let ([set, clear, p], Op::Sel, None) = (&inst.srcs[..], &inst.op, inst.guard) else { return None };
        let bit = matches!(set.src, Src::Imm(1..)) && set.prefix == Prefix::None && clear.is_imm(0);
        (bit && p.prefix == Prefix::None && matches!(p.src, Src::Var(_))).then(|| self.source(p.src, b, i))
    }

    /// Follows moves, and predicates that were put by.
    pub(crate) fn strip(&mut self, mut d: Def) -> Def {
        for _ in 0..500 {
            let Def::Inst { b, i, part, .. } = d else { return d };
            let Some(inst) = self.inst(d) else { return d };
            if part == 0
                && self.guard(d).is_none()
                && let Some(p) = self.put_by(inst, b, i)
            {
                d = p;
                continue;
            }
            if inst.op != Op::Mov || self.guard(d).is_some() {
                return d;
            }
            let Some(s) = inst.srcs.get(part as usize) else { return d };
            if s.prefix != Prefix::None {
                return d;
            }
            d = match s.src {
                Src::Var(v) => {
                    let dst = inst.dsts[part as usize];
                    if self.f.class(v) != self.f.class(dst) {
                        return d;
                    }
                    self.read(v, b, i)
                }
                Src::Pair(..) | Src::Zext(_) => return d,
                s => Def::Leaf(s),
            };
        }
        d
    }

    /// The definition an operand names, without its prefix, moves followed.
    pub(crate) fn source(&mut self, s: Src, b: u32, i: u32) -> Def {
        match s {
            Src::Var(v) => {
                let d = self.read(v, b, i);
                self.strip(d)
            }
            s => Def::Leaf(s),
        }
    }

    /// What a variable held before a guarded instruction.
    pub(crate) fn old(&mut self, d: Def) -> Def {
        let Def::Inst { b, i, part, .. } = d else { return d };
        let var = self.f.blocks[b as usize].insts[i as usize].dsts[part as usize];
        let o = self.read(var, b, i);
        self.strip(o)
    }
}
