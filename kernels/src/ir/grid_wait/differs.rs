//! In which values the threads of a warp, a block or a cluster may differ.
//!
//! Owns an upper bound: made of the thread's number, or of what is not followed. It is not asked
//! where in the code.

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Cmp, Inst, KernelIr, Op, Prefix, Special, Src, SrcOperand, Var};
use rustc_hash::FxHashSet;

/// The threads that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    Block,
    Cluster,
}

/// The variables that threads may have different values in.
pub(super) struct Differs {
    vars: FxHashSet<Var>,
    level: Option<Level>,
}

impl Differs {
    pub(super) fn new(f: &KernelIr, level: Level) -> Self {
        let mut differs = Self { vars: FxHashSet::default(), level: Some(level) };
        differs.follow(f, |differs, inst| match &inst.op {
            Op::Unknown(_) | Op::Mem(_) | Op::Loaded(_) | Op::Elect | Op::ClobberAll => true,
            _ => inst.srcs.iter().chain(&inst.guard).any(|o| differs.is(o)),
        });
        differs
    }

    /// Those that are made of some variables.
    pub(super) fn from(f: &KernelIr, vars: impl Iterator<Item = Var>) -> Self {
        let mut differs = Self { vars: vars.collect(), level: None };
        if !differs.vars.is_empty() {
            differs.follow(f, |differs, inst| inst.srcs.iter().chain(&inst.guard).any(|o| differs.is(o)));
        }
        differs
    }

    fn follow(&mut self, f: &KernelIr, made: impl Fn(&Self, &Inst) -> bool) {
        loop {
            let known = self.vars.len();
            for inst in f.blocks.iter().flat_map(|b| &b.insts) {
                if made(self, inst) {
                    self.vars.extend(inst.dsts.iter().copied());
                }
            }
            if self.vars.len() == known {
                return;
            }
        }
    }

    pub(super) fn is(&self, operand: &SrcOperand) -> bool {
        match operand.src {
            Src::Var(v) | Src::Zext(v) => self.vars.contains(&v),
            Src::Pair(low, high) => self.vars.contains(&low) || self.vars.contains(&high),
            Src::Special(Special::Tid(_) | Special::Lane) => self.level.is_some(),
            Src::Special(Special::Ctaid(_) | Special::ClusterRank | Special::ClusterCtaid(_)) => {
                self.level == Some(Level::Cluster)
            }
            _ => false,
        }
    }
}

/// Steps from a condition to what it is made of.
const MAX_STEPS: usize = 64;

/// Whether threads differ in a value at a place: where one instruction makes it, by what that makes
/// it of.
pub(super) struct DiffersAt<'a> {
    pub(super) whole: &'a KernelIr,
    pub(super) cfg: &'a Cfg,
    /// What threads of a block, or of a cluster, differ in.
    pub(super) known: &'a Differs,
    /// Only threads of one warp are compared. Rows of blocks are taken to be whole warps: see
    /// [`KernelIr::before_wait`].
    pub(super) in_warp: bool,
}

impl<'a> DiffersAt<'a> {
    /// Whether all of them have the same value of this at the end of a block.
    pub(super) fn agree(&self, o: &SrcOperand, at: BlockId) -> bool {
        self.agree_at(o, (at, usize::MAX), &mut 0)
    }

    /// The instruction that makes a variable, as it is before a place: in the block, or in those
    /// that lead to it alone.
    fn made(&self, v: Var, (mut at, mut end): (BlockId, usize)) -> Option<(&'a Inst, (BlockId, usize))> {
        for _ in 0..MAX_STEPS {
            let insts = &self.whole.blocks[at.0 as usize].insts;
            let upto = end.min(insts.len());
            if let Some(k) = insts[..upto].iter().rposition(|i| i.dsts.contains(&v)) {
                return insts[k].guard.is_none().then_some((&insts[k], (at, k)));
            }
            match self.cfg.preds[at.0 as usize][..] {
                [one] => (at, end) = (one, usize::MAX),
                _ => return None,
            }
        }
        None
    }

    /// Whether this is `threadIdx.x` there.
    fn is_index(&self, o: &SrcOperand, mut place: (BlockId, usize)) -> bool {
        let mut o = *o;
        for _ in 0..4 {
            match (o.prefix, o.src) {
                (Prefix::None, Src::Special(Special::Tid(0))) => return true,
                (Prefix::None, Src::Var(v) | Src::Zext(v)) => match self.made(v, place) {
                    Some((Inst { op: Op::Mov, srcs, .. }, at)) if srcs.len() == 1 => (o, place) = (srcs[0], at),
                    _ => return false,
                },
                _ => return false,
            }
        }
        false
    }

    fn agree_at(&self, o: &SrcOperand, place: (BlockId, usize), steps: &mut usize) -> bool {
        *steps += 1;
        if !self.known.is(o) {
            return true;
        }
        let (Src::Var(v) | Src::Zext(v)) = o.src else { return false };
        let Some((inst, at)) = self.made(v, place).filter(|_| *steps < MAX_STEPS) else { return false };
        match &inst.op {
            Op::Vote { .. } if self.in_warp => true,
            // All get what one lane has.
            Op::Shuffle { mode: 0 } if self.in_warp && matches!(inst.srcs[1].src, Src::Imm(_)) => true,
            Op::Shuffle { .. } if self.in_warp => false,
            Op::Unknown(_) | Op::Mem(_) | Op::Loaded(_) | Op::Elect | Op::ClobberAll => false,
            _ if self.in_warp && self.divides(inst, at) => true,
            _ => inst.srcs.iter().all(|o| self.agree_at(o, at, steps)),
        }
    }

    /// Whether all threads of 32 with neighbouring indices get the same result.
    fn divides(&self, inst: &Inst, at: (BlockId, usize)) -> bool {
        let is_index = |o: &SrcOperand| self.is_index(o, at);
        let number = |o: &SrcOperand| match (o.prefix, o.src) {
            (Prefix::None, Src::Imm(n)) => Some(n),
            _ => None,
        };
        match (&inst.op, &inst.srcs[..]) {
            (Op::Shr { .. }, [x, by]) => is_index(x) && number(by).is_some_and(|n| n >= 5),
            (Op::Funnel { right: true, hi: true, .. }, [_, by, x]) => is_index(x) && number(by).is_some_and(|n| n >= 5),
            (Op::Lop3 { lut: 0xc0 }, [x, mask, ..]) => {
                let coarse = |mask: &SrcOperand| number(mask).is_some_and(|n| n.is_multiple_of(32));
                is_index(x) && coarse(mask) || is_index(mask) && coarse(x)
            }
            (Op::Div { .. }, [x, by]) => is_index(x) && number(by).is_some_and(|n| n > 0 && n.is_multiple_of(32)),
            (Op::Cmp { cmp, wide: false, .. }, [x, y, rest @ ..]) => {
                let (cmp, n) = match (is_index(x), is_index(y)) {
                    (true, false) => (*cmp, number(y)),
                    (false, true) => (cmp.mirrored(), number(x)),
                    _ => return false,
                };
                let edge = n.and_then(|n| match cmp {
                    Cmp::Lt | Cmp::Ge => Some(n),
                    Cmp::Le | Cmp::Gt => Some(n + 1),
                    Cmp::Eq | Cmp::Ne => None,
                });
                edge.is_some_and(|edge| edge.is_multiple_of(32)) && rest.iter().all(|o| !self.known.is(o))
            }
            _ => false,
        }
    }
}
