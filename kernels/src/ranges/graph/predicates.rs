//! Predicates as nodes: comparisons of words and of pairs of words, logic, and guarded definitions.
//!
//! Owns how predicate nodes are made. What they mean in a launch is decided by
//! `eval/conditions.rs`.

use super::build::Builder;
use super::node::{Kind, NodeId, Target, Width};
use super::provenance::origins;
use super::ssa::{Def, END};
use crate::ir::{Class, Cmp, Combine, Op, Prefix, Reason, Src, SrcOperand, Var, Window};

impl Builder<'_> {
    /// Predicate of a definition.
    pub(crate) fn pred(&mut self, d: Def) -> NodeId {
        let d = self.ssa.strip(d);
        if let Some((p, not)) = self.given
            && p == d
            && !matches!(d, Def::Leaf(_) | Def::Undef { .. })
        {
            return self.konst(u64::from(!not), Width::Pred);
        }
        if let Some(n) = self.memo.pred.get(&d) {
            return *n;
        }
        if let Some(n) = self.across_iterations(d, |b| b.pred(d)) {
            return n;
        }
        let n = self.deeper(Width::Pred, |b| b.pred_new(d));
        self.memo.pred.insert(d, n);
        n
    }

    pub(crate) fn pred_new(&mut self, d: Def) -> NodeId {
        match d {
            Def::Undef { why, b, .. } => self.undefined(d, why, Width::Pred, b),
            Def::Leaf(Src::Imm(v)) => self.konst(u64::from(v != 0), Width::Pred),
            Def::Leaf(_) => self.opaque(Reason::Instruction, Width::Pred, 0),
            Def::Phi { var, b } => self.phi(d, b, Width::Pred, |bld, p| {
                let x = bld.ssa.read(var, p, END);
                bld.pred(x)
            }),
            Def::Inst { .. } => {
                if let Some(n) = self.settled(d, Width::Pred, Self::pred) {
                    return n;
                }
                let n = self.pred_body(d);
                self.note(d, n);
                n
            }
        }
    }

    pub(crate) fn pred_body(&mut self, d: Def) -> NodeId {
        let Def::Inst { b, i, part, .. } = d else { return self.opaque(Reason::Instruction, Width::Pred, 0) };
        let Some(inst) = self.ssa.inst(d) else { return self.opaque(Reason::Instruction, Width::Pred, b) };
        let s = &inst.srcs;
        match inst.op {
            Op::Mov => self.pred_operand(&s[part as usize], b, i),
            Op::Cmp { cmp, signed, wide, combine } => {
                let w = if wide { Width::W64 } else { Width::W32 };
                let x = self.operand_w(&s[0], w, b, i);
                let y = self.operand_w(&s[1], w, b, i);
                self.combine(cmp, signed, x, y, combine, &s[2], part, b, i)
            }
            Op::FloatCmp { cmp, wide, flush, combine } => {
                let w = if wide { Width::W64 } else { Width::W32 };
                let x = self.operand_w(&s[0], w, b, i);
                let y = self.operand_w(&s[1], w, b, i);
                let c = self.add(Kind::FloatCmp(cmp, flush, x, y), Width::Pred, b);
                self.combined(c, combine, &s[2], part, b, i)
            }
            Op::CmpX { cmp, signed, combine } => match self.wide_compare(cmp, &s[0], &s[1], &s[3], b, i) {
                Some((x, y)) => self.combine(cmp, signed, x, y, combine, &s[2], part, b, i),
                None => self.opaque(Reason::Pairing, Width::Pred, b),
            },
            Op::PLut { lut0, lut1 } => {
                let a = [0, 1, 2].map(|k| match s.get(k) {
                    Some(o) => self.pred_operand(o, b, i),
                    None => self.konst(0, Width::Pred),
                });
                self.add(Kind::PLut(if part == 0 { lut0 } else { lut1 }, a), Width::Pred, b)
            }
            Op::Lop3 { .. } if part == 1 => {
                let lo = Def::Inst { b, i, part: 0, raw: true };
                let w = if inst.dsts[0] != Var::NONE && self.ssa.f.class(inst.dsts[0]) == Class::W64 {
                    Width::W64
                } else {
                    Width::W32
                };
                let n = self.body(lo, w);
                self.add(Kind::NonZero(n), Width::Pred, b)
            }
            Op::Sel => {
                let p = self.pred_operand(&s[2], b, i);
                let x = self.pred_operand(&s[0], b, i);
                let y = self.pred_operand(&s[1], b, i);
                self.add(Kind::Sel(p, x, y), Width::Pred, b)
            }
            Op::LiesIn { window, off } => {
                let s = s.clone();
                let address = self.sum64(&s, off, b, i);
                self.lies_in(window, address, b)
            }
            Op::Unknown(r) => self.opaque(r, Width::Pred, b),
            Op::Mem(_) => self.opaque(Reason::Loaded, Width::Pred, b),
            _ => self.opaque(Reason::Instruction, Width::Pred, b),
        }
    }

    /// What is passed to a kernel and the address of a variable point into global memory: nobody
    /// else has an address in the shared or local memory of the thread that asks. (Compilers ask
    /// because atomics on 64 bits, and libcu++ because those on local variables, need another way
    /// there.)
    fn lies_in(&mut self, window: Window, address: NodeId, b: u32) -> NodeId {
        let from = origins(&self.g, &self.ssa.f.params, &Target::Address(address));
        if from.has_base() && from.unknown.is_none() && !from.window {
            self.konst(u64::from(window == Window::Neither), Width::Pred)
        } else {
            self.opaque(Reason::Window, Width::Pred, b)
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn combine(
        &mut self,
        cmp: Cmp,
        signed: bool,
        x: NodeId,
        y: NodeId,
        how: Combine,
        with: &SrcOperand,
        part: u8,
        b: u32,
        i: u32,
    ) -> NodeId {
        let c = self.add(Kind::Cmp(cmp, signed, x, y), Width::Pred, b);
        self.combined(c, how, with, part, b, i)
    }

    /// A comparison (or, as second result, its opposite) combined with another predicate.
    fn combined(&mut self, mut c: NodeId, how: Combine, with: &SrcOperand, part: u8, b: u32, i: u32) -> NodeId {
        if part == 1 {
            c = self.not(c, b);
        }
        let p = self.pred_operand(with, b, i);
        match (how, self.const_of(p)) {
            (Combine::And, Some(1)) | (Combine::Or | Combine::Xor, Some(0)) => c,
            (Combine::And, Some(_)) => self.konst(0, Width::Pred),
            (Combine::Or, Some(_)) => self.konst(1, Width::Pred),
            (Combine::Xor, Some(_)) => self.not(c, b),
            (_, None) => self.add(Kind::Combine(how, c, p), Width::Pred, b),
        }
    }

    /// Operands of a 64-bit comparison whose low words were compared by the instruction that
    /// defined `low`.
    pub(crate) fn wide_compare(
        &mut self,
        high: Cmp,
        x: &SrcOperand,
        y: &SrcOperand,
        low: &SrcOperand,
        b: u32,
        i: u32,
    ) -> Option<(NodeId, NodeId)> {
        if low.prefix != Prefix::None {
            return None;
        }
        let d = self.ssa.source(low.src, b, i);
        let Def::Inst { b: lb, i: li, part: 0, .. } = d else { return None };
        if self.ssa.guard(d).is_some() {
            return None;
        }
        let inst = self.ssa.inst(d)?;
        let Op::Cmp { cmp, signed: false, wide: false, combine: Combine::And } = inst.op else { return None };
        if !inst.srcs.get(2).is_none_or(|with| with.src == Src::Imm(1) && with.prefix == Prefix::None) {
            return None;
        }
        // `y <= x` of the low words may stand below `x >= y` of the high ones: the compiler swaps
        // as it likes.
        let swapped = match () {
            () if cmp == high => false,
            () if cmp == high.mirrored() => true,
            () => return None,
        };
        let mut out = [NodeId(0); 2];
        for (k, hi) in [x, y].into_iter().enumerate() {
            let lo = inst.srcs[if swapped { 1 - k } else { k }];
            if lo.prefix != Prefix::None || hi.prefix != Prefix::None {
                return None;
            }
            let l = self.ssa.source(lo.src, lb, li);
            let h = self.ssa.source(hi.src, b, i);
            out[k] = self.node64(l, h);
        }
        Some((out[0], out[1]))
    }
}
