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
use crate::ranges::graph::pairing::executed;

/// The exact result when `d` is the second correction.
pub(crate) fn division(builder: &mut Builder<'_>, d: Def) -> Option<NodeId> {
    let Def::Inst { b, .. } = d else { return None };
    let first = corrected(builder, d)?;
    let base = corrected(builder, first)?;
    let (inst, bb, bi) = executed(builder, base)?;
    let (quotient, dividend, divisor) = match inst.op {
        Op::MulHi { .. } => {
            let (a, v) = estimate(builder, base)?;
            (true, a, v)
        }
        Op::Mad => {
            // a - q * b: one factor is the estimate, perhaps negated by an instruction of its
            // own.
            let mut found = None;
            for s in &inst.srcs[..2] {
                let x = builder.ssa.source(s.src, bb, bi);
                found = found.or_else(|| estimate(builder, x)).or_else(|| negated_estimate(builder, x));
            }
            let (a, v) = found?;
            let minuend = builder.ssa.source(inst.srcs[2].src, bb, bi);
            if inst.srcs[2].prefix != Prefix::None || minuend != a {
                return None;
            }
            (false, a, v)
        }
        Op::Add => {
            let (a, product) = difference(builder, inst, bb, bi)?;
            let (inst, bb, bi) = executed(builder, product)?;
            let is_product = matches!(inst.op, Op::Mad) && inst.srcs[2].is_imm(0);
            let factors = inst.srcs.iter().take(2).filter(|s| is_product && s.prefix == Prefix::None);
            let mut found = None;
            for s in factors {
                let x = builder.ssa.source(s.src, bb, bi);
                found = found.or_else(|| estimate(builder, x));
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
        if !correction_step(builder, c, quotient, divisor) {
            return None;
        }
    }
    let x = builder.node32(dividend);
    let y = builder.node32(divisor);
    let kind = if quotient { Kind::Div(false, x, y) } else { Kind::Rem(false, x, y) };
    Some(builder.add(kind, Width::W32, b))
}

/// Minuend and subtrahend.
fn difference(builder: &mut Builder<'_>, inst: &Inst, b: u32, i: u32) -> Option<(Def, Def)> {
    let (mut minuend, mut subtrahend) = (None, None);
    for s in &inst.srcs {
        let x = builder.ssa.source(s.src, b, i);
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
fn choice(builder: &mut Builder<'_>, d: Def) -> Option<(Def, Def)> {
    let (inst, b, i) = executed(builder, d)?;
    let ([yes, no, _], Op::Sel) = (&inst.srcs[..], &inst.op) else { return None };
    if [yes, no].iter().any(|s| s.prefix != Prefix::None) {
        return None;
    }
    let (yes, no) = (builder.ssa.source(yes.src, b, i), builder.ssa.source(no.src, b, i));
    let mut adds_to = |sum: Def, x: Def| {
        let Some((inst, b, i)) = executed(builder, sum) else { return false };
        matches!(inst.op, Op::Add)
            && inst.srcs.iter().any(|s| s.prefix == Prefix::None && builder.ssa.source(s.src, b, i) == x)
    };
    match (adds_to(yes, no), adds_to(no, yes)) {
        (true, false) => Some((yes, no)),
        (false, true) => Some((no, yes)),
        _ => None,
    }
}

/// The value before a correction: under a guard, or one of two.
fn corrected(builder: &mut Builder<'_>, d: Def) -> Option<Def> {
    if let Some((_, before)) = choice(builder, d) {
        return Some(before);
    }
    builder.ssa.guard(d)?;
    match builder.ssa.inst(d)?.op {
        Op::Add | Op::Mad => Some(builder.ssa.old(d)),
        _ => None,
    }
}

/// Is the correction `q + 1` (or `r - divisor`) of what was there before?
fn correction_step(builder: &mut Builder<'_>, d: Def, quotient: bool, divisor: Def) -> bool {
    let (d, before) = match choice(builder, d) {
        Some(choice) => choice,
        None => (d, builder.ssa.old(d)),
    };
    let Def::Inst { b, i, .. } = d else { return false };
    let Some(inst) = builder.ssa.inst(d) else { return false };
    let mut seen = (false, false);
    let srcs: Vec<_> = match inst.op {
        Op::Add => inst.srcs.to_vec(),
        Op::Mad if inst.srcs[1].is_imm(1) => vec![inst.srcs[0], inst.srcs[2]],
        _ => return false,
    };
    for s in srcs {
        let x = builder.ssa.source(s.src, b, i);
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
fn estimate(builder: &mut Builder<'_>, d: Def) -> Option<(Def, Def)> {
    let (inst, b, i) = executed(builder, d)?;
    if !matches!(inst.op, Op::MulHi { signed: false }) {
        return None;
    }
    for (r, a) in [(0, 1), (1, 0)] {
        let x = builder.ssa.source(inst.srcs[r].src, b, i);
        let Some((ri, ..)) = executed(builder, x) else { continue };
        if matches!(ri.op, Op::MulHi { signed: false } | Op::Add)
            && let Some(v) = reciprocal(builder, x, 8)
        {
            return Some((builder.ssa.source(inst.srcs[a].src, b, i), v));
        }
    }
    None
}

/// `-q` of an estimate `q`.
fn negated_estimate(builder: &mut Builder<'_>, d: Def) -> Option<(Def, Def)> {
    let (inst, b, i) = executed(builder, d)?;
    if !matches!(inst.op, Op::Add) {
        return None;
    }
    inst.srcs.iter().find_map(|s| {
        (s.prefix == Prefix::Neg && matches!(s.src, Src::Var(_))).then_some(())?;
        let x = builder.ssa.source(s.src, b, i);
        estimate(builder, x)
    })
}

/// The number whose reciprocal the chain ending in `d` computes.
fn reciprocal(builder: &mut Builder<'_>, d: Def, depth: u32) -> Option<Def> {
    let (inst, b, i) = executed(builder, d)?;
    if depth == 0 || inst.srcs.is_empty() {
        return None;
    }
    let first = builder.ssa.source(inst.srcs[0].src, b, i);
    match inst.op {
        Op::Rcp => {
            let (conv, cb, ci) = executed(builder, first)?;
            matches!(conv.op, Op::IntToFloat { up: true }).then(|| builder.ssa.source(conv.srcs[0].src, cb, ci))
        }
        Op::Pure(Pure::FloatToInt { .. }) | Op::Add | Op::MulHi { signed: false } => {
            let second = inst.srcs.get(1).map(|s| builder.ssa.source(s.src, b, i));
            reciprocal(builder, first, depth - 1).or_else(|| second.and_then(|s| reciprocal(builder, s, depth - 1)))
        }
        _ => None,
    }
}
