//! Recognises 32-bit unsigned division by reciprocal (I2F.RP, MUFU.RCP, F2I, two high products, two
//! corrections), and replaces the second correction by the exact quotient or remainder.
//!
//! Compilers emit this idiom for `/` and `%` by a value that they do not know. Its corrected result
//! is exact for every divisor but zero. For a divisor that may be zero the evaluation answers
//! unknown. Optimised code corrects under a guard; unoptimised code (`-G`, `-Xptxas -O0`) chooses
//! between the number and the corrected one, and multiplies and subtracts by two instructions.
//!
//! Owns, too, the high half of a product of two 64-bit numbers, which is made of four products of
//! words: divisions by a divisor that was prepared on the host (`FastDivmod`) begin with it.

use super::build::Builder;
use super::node::{Kind, NodeId, Width};
use super::ssa::Def;
use crate::ir::{Inst, Op, Prefix, Pure, Src, SrcOperand};
use crate::ranges::graph::pairing::executed;
use smallvec::SmallVec;

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

/// The high half of a product of two 64-bit numbers, where an instruction adds the carries of the
/// three lower products of their words to the highest one: `xh * yh + (mixed >> 32) + carry`, with
/// `mixed = xl * yh + xh * yl` in 65 bits, and the carry of `(xl * yl >> 32) + low word of mixed`.
pub(crate) fn wide_high_product(builder: &mut Builder<'_>, inst: &Inst, b: u32, i: u32) -> Option<NodeId> {
    let [x, y, above, carry] = &inst.srcs[..] else { return None };
    let highest = [word(builder, x, b, i)?, word(builder, y, b, i)?];
    let [from_mixed, top] = words(builder, above, b, i)?;
    let mixed = product_of(builder, from_mixed, 1)?;
    if carried(builder, top)? != mixed.carry() {
        return None;
    }
    let sum = carry_of(builder, carry, b, i)?;
    let (inst, at, k) = executed(builder, sum)?;
    let summands: SmallVec<[Def; 3]> =
        inst.srcs.iter().filter(|s| !s.is_imm(0)).map(|s| word(builder, s, at, k)).collect::<Option<_>>()?;
    let (Op::Add, [one, other]) = (&inst.op, &summands[..]) else { return None };
    let low = [(*one, *other), (*other, *one)].into_iter().find_map(|(low, middle)| {
        let is_mixed = product_of(builder, middle, 0)?.product == mixed.product;
        is_mixed.then(|| product_of(builder, low, 1)).flatten()
    })?;
    let [first, second] = words(builder, &mixed.addend, mixed.at.0, mixed.at.1)?;
    let inner = product_of(builder, first, 0)?;
    if product_of(builder, second, 1)?.product != inner.product || !low.addend.is_imm(0) || !inner.addend.is_imm(0) {
        return None;
    }
    let same = |a: [Def; 2], b: [Def; 2]| a == b || a == [b[1], b[0]];
    let [xh, yh] = highest;
    let [one, other] = low.factors;
    let (xl, yl) = [(one, other), (other, one)].into_iter().find(|(xl, yl)| {
        let (cross, across) = ([xh, *yl], [*xl, yh]);
        same(inner.factors, cross) && same(mixed.factors, across)
            || same(inner.factors, across) && same(mixed.factors, cross)
    })?;
    let (x, y) = (builder.node64(xl, xh), builder.node64(yl, yh));
    Some(builder.add(Kind::MulHi(false, x, y), Width::W64, b))
}

/// An unsigned product of two words and what is added to it.
struct WideProduct {
    product: Def,
    factors: [Def; 2],
    addend: SrcOperand,
    /// Block and index of the instruction.
    at: (u32, u32),
}

impl WideProduct {
    /// Whether the sum has more than 64 bits.
    fn carry(&self) -> Def {
        match self.product {
            Def::Inst { b, i, raw, .. } => Def::Inst { b, i, part: 1, raw },
            d => d,
        }
    }
}

/// The product of which a definition is one word.
fn product_of(builder: &mut Builder<'_>, d: Def, half: u8) -> Option<WideProduct> {
    let (inst, b, i) = executed(builder, d).filter(|(inst, ..)| inst.op == Op::Unpack && d.part() == half)?;
    let product = builder.ssa.source(inst.srcs[0].src, b, i);
    let (inst, b, i) = executed(builder, product)?;
    let ([x, y, addend], Op::MadWide { signed: false }) = (&inst.srcs[..], &inst.op) else { return None };
    let factors = [word(builder, x, b, i)?, word(builder, y, b, i)?];
    Some(WideProduct { product, factors, addend: *addend, at: (b, i) })
}

/// What an operand of one word is.
fn word(builder: &mut Builder<'_>, s: &SrcOperand, b: u32, i: u32) -> Option<Def> {
    (s.prefix == Prefix::None).then(|| builder.ssa.source(s.src, b, i))
}

/// What the two words of an operand are.
fn words(builder: &mut Builder<'_>, s: &SrcOperand, b: u32, i: u32) -> Option<[Def; 2]> {
    let (Src::Pair(low, high), Prefix::None) = (s.src, s.prefix) else { return None };
    Some([low, high].map(|v| builder.ssa.source(Src::Var(v), b, i)))
}

/// The instruction whose carry an operand is.
fn carry_of(builder: &mut Builder<'_>, s: &SrcOperand, b: u32, i: u32) -> Option<Def> {
    word(builder, s, b, i).filter(|d| matches!(d, Def::Inst { part: 1.., .. }))
}

/// The carry that a word is made of alone.
fn carried(builder: &mut Builder<'_>, d: Def) -> Option<Def> {
    let (inst, b, i) = executed(builder, d).filter(|(inst, ..)| inst.op == Op::AddX && d.part() == 0)?;
    let (words, carries) = inst.srcs.split_at_checked(3)?;
    let carries: SmallVec<[&SrcOperand; 2]> = carries.iter().filter(|s| !s.is_imm(0)).collect();
    let [carry] = carries[..] else { return None };
    if words.iter().any(|s| !s.is_imm(0) || s.prefix != Prefix::None) {
        return None;
    }
    carry_of(builder, carry, b, i)
}
