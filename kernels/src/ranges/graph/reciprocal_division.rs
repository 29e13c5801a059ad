//! Recognises 32-bit unsigned division by reciprocal (I2F.RP, MUFU.RCP, F2I, two high products, two
//! corrections), and replaces the second correction by the exact quotient or remainder.
//!
//! Compilers emit this idiom for `/` and `%` by a value that they do not know. Its corrected result
//! is exact for every divisor but zero. For a divisor that may be zero the evaluation answers
//! unknown. Optimised code corrects under a guard; unoptimised code (`-G`, `-Xptxas -O0`) chooses
//! between the number and the corrected one, and multiplies and subtracts by two instructions.

use super::build::Builder;
use super::node::{Kind, NodeId, Width};
use super::ssa::Def;
use crate::ir::{Inst, Op, Prefix, Pure, Src};

impl Builder<'_> {
    /// The exact result when `d` is the second correction.
    pub(crate) fn division(&mut self, d: Def) -> Option<NodeId> {
        let Def::Inst { b, .. } = d else { return None };
        let first = self.corrected(d)?;
        let base = self.corrected(first)?;
        let (inst, bb, bi) = self.executed(base)?;
        let (quotient, dividend, divisor) = match inst.op {
            Op::MulHi { .. } => {
                let (a, v) = self.estimate(base)?;
                (true, a, v)
            }
            Op::Mad => {
                // a - q * b: one factor is the estimate, perhaps negated by an instruction of its
                // own.
                let mut found = None;
                for s in &inst.srcs[..2] {
                    let x = self.ssa.source(s.src, bb, bi);
                    found = found.or_else(|| self.estimate(x)).or_else(|| self.negated_estimate(x));
                }
                let (a, v) = found?;
                let minuend = self.ssa.source(inst.srcs[2].src, bb, bi);
                if inst.srcs[2].prefix != Prefix::None || minuend != a {
                    return None;
                }
                (false, a, v)
            }
            Op::Add => {
                let (a, product) = self.difference(inst, bb, bi)?;
                let (inst, bb, bi) = self.executed(product)?;
                let is_product = matches!(inst.op, Op::Mad) && inst.srcs[2].is_imm(0);
                let factors = inst.srcs.iter().take(2).filter(|s| is_product && s.prefix == Prefix::None);
                let mut found = None;
                for s in factors {
                    let x = self.ssa.source(s.src, bb, bi);
                    found = found.or_else(|| self.estimate(x));
                }
                let (dividend, divisor) = found?;
                if dividend != a {
                    return None;
                }
                (false, dividend, divisor)
            }
            _ => return None,
        };
        for c in [d, first] {
            if !self.correction_step(c, quotient, divisor) {
                return None;
            }
        }
        let x = self.node32(dividend);
        let y = self.node32(divisor);
        let kind = if quotient { Kind::Div(false, x, y) } else { Kind::Rem(false, x, y) };
        Some(self.add(kind, Width::W32, b))
    }

    /// Minuend and subtrahend.
    fn difference(&mut self, inst: &Inst, b: u32, i: u32) -> Option<(Def, Def)> {
        let (mut minuend, mut subtrahend) = (None, None);
        for s in &inst.srcs {
            let x = self.ssa.source(s.src, b, i);
            let place = match s.prefix {
                _ if x == Def::ZERO => continue,
                Prefix::None => &mut minuend,
                Prefix::Neg => &mut subtrahend,
                _ => return None,
            };
            if place.replace(x).is_some() {
                return None;
            }
        }
        Some((minuend?, subtrahend?))
    }

    /// The corrected number and the number itself, of an instruction that chooses one of them.
    fn choice(&mut self, d: Def) -> Option<(Def, Def)> {
        let (inst, b, i) = self.executed(d)?;
        let ([yes, no, _], Op::Sel) = (&inst.srcs[..], &inst.op) else { return None };
        if [yes, no].iter().any(|s| s.prefix != Prefix::None) {
            return None;
        }
        let (yes, no) = (self.ssa.source(yes.src, b, i), self.ssa.source(no.src, b, i));
        let mut adds_to = |sum: Def, x: Def| {
            let Some((inst, b, i)) = self.executed(sum) else { return false };
            matches!(inst.op, Op::Add)
                && inst.srcs.iter().any(|s| s.prefix == Prefix::None && self.ssa.source(s.src, b, i) == x)
        };
        match (adds_to(yes, no), adds_to(no, yes)) {
            (true, false) => Some((yes, no)),
            (false, true) => Some((no, yes)),
            _ => None,
        }
    }

    /// The value before a correction: under a guard, or one of two.
    fn corrected(&mut self, d: Def) -> Option<Def> {
        if let Some((_, before)) = self.choice(d) {
            return Some(before);
        }
        self.ssa.guard(d)?;
        match self.ssa.inst(d)?.op {
            Op::Add | Op::Mad => Some(self.ssa.old(d)),
            _ => None,
        }
    }

    /// Is the correction `q + 1` (or `r - divisor`) of what was there before?
    fn correction_step(&mut self, d: Def, quotient: bool, divisor: Def) -> bool {
        let (d, before) = match self.choice(d) {
            Some(choice) => choice,
            None => (d, self.ssa.old(d)),
        };
        let Def::Inst { b, i, .. } = d else { return false };
        let Some(inst) = self.ssa.inst(d) else { return false };
        let mut seen = (false, false);
        let srcs: Vec<_> = match inst.op {
            Op::Add => inst.srcs.to_vec(),
            Op::Mad if inst.srcs[1].is_imm(1) => vec![inst.srcs[0], inst.srcs[2]],
            _ => return false,
        };
        for s in srcs {
            let x = self.ssa.source(s.src, b, i);
            match s.prefix {
                Prefix::None if x == before => seen.0 = true,
                Prefix::None if quotient && x.imm32() == Some(1) => seen.1 = true,
                Prefix::Neg if !quotient && x == divisor => seen.1 = true,
                Prefix::None if x == Def::ZERO => {}
                _ => return false,
            }
        }
        seen == (true, true)
    }

    /// `high(reciprocal * a)`: dividend and divisor.
    fn estimate(&mut self, d: Def) -> Option<(Def, Def)> {
        let (inst, b, i) = self.executed(d)?;
        if !matches!(inst.op, Op::MulHi { signed: false }) {
            return None;
        }
        for (r, a) in [(0, 1), (1, 0)] {
            let x = self.ssa.source(inst.srcs[r].src, b, i);
            let Some((ri, ..)) = self.executed(x) else { continue };
            if matches!(ri.op, Op::MulHi { signed: false } | Op::Add)
                && let Some(v) = self.reciprocal(x, 8)
            {
                return Some((self.ssa.source(inst.srcs[a].src, b, i), v));
            }
        }
        None
    }

    /// `-q` of an estimate `q`.
    fn negated_estimate(&mut self, d: Def) -> Option<(Def, Def)> {
        let (inst, b, i) = self.executed(d)?;
        if !matches!(inst.op, Op::Add) {
            return None;
        }
        inst.srcs.iter().find_map(|s| {
            (s.prefix == Prefix::Neg && matches!(s.src, Src::Var(_))).then_some(())?;
            let x = self.ssa.source(s.src, b, i);
            self.estimate(x)
        })
    }

    /// The number whose reciprocal the chain ending in `d` computes.
    fn reciprocal(&mut self, d: Def, depth: u32) -> Option<Def> {
        let (inst, b, i) = self.executed(d)?;
        if depth == 0 || inst.srcs.is_empty() {
            return None;
        }
        let first = self.ssa.source(inst.srcs[0].src, b, i);
        match inst.op {
            Op::Rcp => {
                let (conv, cb, ci) = self.executed(first)?;
                matches!(conv.op, Op::IntToFloat { up: true }).then(|| self.ssa.source(conv.srcs[0].src, cb, ci))
            }
            Op::Pure(Pure::FloatToInt { .. }) | Op::Add | Op::MulHi { signed: false } => {
                let second = inst.srcs.get(1).map(|s| self.ssa.source(s.src, b, i));
                self.reciprocal(first, depth - 1).or_else(|| second.and_then(|s| self.reciprocal(s, depth - 1)))
            }
            _ => None,
        }
    }
}
