//! 64-bit sums made of two words: which high word adds the carry of which low word.
//!
//! Owns carries and the forms of addition. `pairing` decides when they are tried.

use super::build::Builder;
use super::node::{Kind, NodeId, Width};
use super::ssa::Def;
use crate::ir::{Inst, Op, Prefix, Src, SrcOperand};
use crate::ranges::graph::pairing::{executed, is_sign_of, whole};
use smallvec::SmallVec;

/// An operand of one half: prefix and definition.
type Half = (Prefix, Def);

/// The low half whose carry a high half adds; every carry it adds must come from there.
pub(crate) fn carry_source(builder: &mut Builder<'_>, d: Def) -> Option<Def> {
    match carry_sources(builder, d)?[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// The low halves whose carries a high half adds.
pub(crate) fn carry_sources(builder: &mut Builder<'_>, d: Def) -> Option<SmallVec<[Def; 2]>> {
    let Def::Inst { b, i, .. } = d else { return None };
    let inst = builder.ssa.inst(d)?;
    let carries: SmallVec<[SrcOperand; 2]> = match inst.op {
        Op::AddX | Op::MadX => inst.srcs.iter().skip(3).copied().collect(),
        Op::LeaHi { x: true, .. } => inst.srcs.iter().skip(3).copied().collect(),
        _ => return None,
    };
    let mut from: SmallVec<[Def; 2]> = SmallVec::new();
    for c in carries {
        if c.is_imm(0) {
            continue;
        }
        if c.prefix != Prefix::None {
            return None;
        }
        let p = builder.ssa.source(c.src, b, i);
        if !matches!(p, Def::Inst { part: 1.., .. }) || builder.ssa.guard(p).is_some_and(|_| !same_guard(builder, p, d))
        {
            return None;
        }
        let w = whole(p);
        if !from.contains(&w) {
            from.push(w);
        }
    }
    Some(from)
}

/// Is a low half a sum of nothing, or of one word? Then there is no carry.
fn never_carries(builder: &mut Builder<'_>, d: Def) -> bool {
    let Def::Inst { b, i, .. } = d else { return false };
    let Some(inst) = builder.ssa.inst(d) else { return false };
    let plain = inst.srcs.iter().all(|o| o.prefix == Prefix::None);
    let some = inst.srcs.iter().filter(|o| builder.ssa.source(o.src, b, i) != Def::ZERO).count();
    matches!(inst.op, Op::Add) && plain && some <= 1
}

/// A high half as a sum of words, when no carry that it adds ever happens.
pub(crate) fn sum_without_carries(builder: &mut Builder<'_>, d: Def, b: u32) -> Option<NodeId> {
    let Def::Inst { b: at, i, part: 0, .. } = d else { return None };
    let inst = builder.ssa.inst(d)?;
    let carries = carry_sources(builder, d)?;
    if !matches!(inst.op, Op::AddX) || inst.srcs.iter().any(|o| o.prefix != Prefix::None) {
        return None;
    }
    if carries.is_empty() || !carries.iter().all(|c| never_carries(builder, *c)) {
        return None;
    }
    let terms: SmallVec<[(NodeId, i64); 4]> =
        inst.srcs.iter().take(3).map(|o| (builder.operand32(o, at, i), 1)).collect();
    Some(builder.lin(&terms, 0, Width::W32, b))
}

/// The summands of a low half whose carries a high half adds: when it adds those of several low
/// halves, one is a sum of another one, and all carries together belong to the sum of what goes
/// into them.
pub(crate) fn low_summands(builder: &mut Builder<'_>, lo: Def, hi: Def) -> Option<SmallVec<[Half; 3]>> {
    let mut carries = carry_sources(builder, hi)?;
    let mut out: SmallVec<[Half; 3]> = SmallVec::new();
    let mut work: SmallVec<[Half; 4]> = SmallVec::from_slice(&[(Prefix::None, lo)]);
    while let Some((prefix, d)) = work.pop() {
        let expand = (prefix == Prefix::None).then(|| carries.iter().position(|c| *c == whole(d))).flatten();
        let Some(k) = expand else {
            out.push((prefix, d));
            continue;
        };
        carries.remove(k);
        let (inst, b, i) = executed(builder, d)?;
        if !matches!(inst.op, Op::Add) || d.part() != 0 {
            return None;
        }
        for o in &inst.srcs {
            work.push((o.prefix, builder.ssa.source(o.src, b, i)));
        }
    }
    out.retain(|x| x.1 != Def::ZERO);
    out.reverse();
    (carries.is_empty() && out.len() <= 4).then_some(out)
}

/// Are two instructions under the very same guard?
pub(crate) fn same_guard(builder: &mut Builder<'_>, a: Def, c: Def) -> bool {
    let (Some(x), Some(y)) = (builder.ssa.inst(a).and_then(|i| i.guard), builder.ssa.inst(c).and_then(|i| i.guard))
    else {
        return false;
    };
    let (Def::Inst { b: xb, i: xi, .. }, Def::Inst { b: yb, i: yi, .. }) = (a, c) else { return false };
    x.prefix == y.prefix && builder.ssa.source(x.src, xb, xi) == builder.ssa.source(y.src, yb, yi)
}

/// IADD3 / IADD3.X.
pub(crate) fn sum(builder: &mut Builder<'_>, lo: Def, h: &Inst, hi: Def, hat: (u32, u32)) -> Option<NodeId> {
    if !carry_sources(builder, hi)?.contains(&whole(lo)) {
        return None;
    }
    let take =
        |builder: &mut Builder<'_>, o: &SrcOperand, at: (u32, u32)| (o.prefix, builder.ssa.source(o.src, at.0, at.1));
    let ls = low_summands(builder, lo, hi)?;
    let mut hs: SmallVec<[Half; 3]> = h
        .srcs
        .iter()
        .take(3)
        .map(|o| take(builder, o, hat))
        .filter(|x| x.1 != Def::ZERO || x.0 == Prefix::Not)
        .collect();
    while hs.len() < ls.len() {
        hs.push((Prefix::None, Def::ZERO));
    }
    let mut best: Option<(i32, SmallVec<[usize; 3]>)> = None;
    for perm in permutations(hs.len(), ls.len()) {
        let mut score = 0;
        for (k, x) in ls.iter().enumerate() {
            let y = hs[perm[k]];
            let fits = match x.0 {
                Prefix::None => y.0 == Prefix::None,
                Prefix::Neg => y.0 == Prefix::Not || y.1.imm32() == Some(u32::MAX),
                _ => false,
            };
            score += if fits { fit(builder, x.1, y.1) } else { -20 };
        }
        let left = (0..hs.len()).filter(|k| !perm.contains(k)).any(|k| hs[k].1.imm().is_none());
        score -= i32::from(left);
        if best.as_ref().is_none_or(|b| score > b.0) {
            best = Some((score, perm));
        }
    }
    let (score, perm) = best?;
    if score < 0 {
        return None;
    }
    let home = hat.0;
    let mut terms: SmallVec<[(NodeId, i64); 4]> = SmallVec::new();
    for (k, x) in ls.iter().enumerate() {
        let y = hs[perm[k]];
        match (x.0, y.0) {
            (Prefix::None, Prefix::None) => terms.push((builder.node64(x.1, y.1), 1)),
            (Prefix::Neg, Prefix::Not) => terms.push((builder.node64(x.1, y.1), -1)),
            (Prefix::Neg, Prefix::None) => terms.push((builder.node64(x.1, Def::ZERO), -1)),
            _ => return None,
        }
    }
    for (k, y) in hs.iter().enumerate() {
        if perm.contains(&k) || y.1 == Def::ZERO {
            continue;
        }
        if y.0 != Prefix::None {
            return None;
        }
        let n = builder.node32(y.1);
        terms.push((builder.add(Kind::High(n), Width::W64, home), 1));
    }
    // -x is ~x + 1 over both words: the +1 of each negated low word is its carry.
    Some(builder.lin(&terms, 0, Width::W64, home))
}

/// How well two words fit as halves of one value.
pub(crate) fn fit(builder: &mut Builder<'_>, lo: Def, hi: Def) -> i32 {
    if hi == Def::ZERO {
        return 2;
    }
    match (lo, hi) {
        (Def::Leaf(Src::Imm(_)), Def::Leaf(Src::Imm(_))) => 4,
        (Def::Leaf(Src::Param { off: a, .. }), Def::Leaf(Src::Param { off: b, .. })) => {
            if u32::from(b) == u32::from(a) + 4 { 6 } else { -2 }
        }
        (Def::Leaf(Src::Driver(a)), Def::Leaf(Src::Driver(b))) if a.abs_diff(b) == 4 => 6,
        (Def::Leaf(Src::SymbolHalf(a, false)), Def::Leaf(Src::SymbolHalf(b, true))) if a == b => 6,
        (Def::Leaf(Src::Constant(a)), Def::Leaf(Src::Constant(b))) if a.checked_add(4) == Some(b) => 6,
        (Def::Phi { b, .. }, Def::Phi { b: c, .. }) if b == c => 4,
        (Def::Inst { .. }, Def::Inst { .. }) => {
            if lo.same_inst(hi) {
                return if Some(hi.part()) == lo.part().checked_add(1) { 6 } else { 0 };
            }
            if is_sign_of(builder, hi, lo) {
                return 6;
            }
            if let Some(c) = carry_sources(builder, hi).filter(|c| !c.is_empty()) {
                return if c.contains(&whole(lo)) { 6 } else { 0 };
            }
            let (Some(l), Some(h)) = (builder.ssa.inst(lo), builder.ssa.inst(hi)) else { return 0 };
            match (&l.op, &h.op) {
                (Op::Sel, Op::Sel) | (Op::Lop3 { .. }, Op::Lop3 { .. }) => 4,
                (_, Op::Funnel { wide: true, .. }) => 4,
                _ if l.guard.is_some() && l.guard == h.guard => 4,
                _ => 1,
            }
        }
        _ => 0,
    }
}

/// IADD3 with a sign-extended 32-bit operand: its high word is `LEA.HI.X.SX32 .., 1`, the word
/// of sign bits.
pub(crate) fn sum_with_sign(
    builder: &mut Builder<'_>,
    l: &Inst,
    lo: Def,
    lat: (u32, u32),
    h: &Inst,
    hi: Def,
    hat: (u32, u32),
) -> Option<NodeId> {
    if carry_source(builder, hi) != Some(whole(lo))
        || h.srcs[0].prefix != Prefix::None
        || h.srcs[1].prefix != Prefix::None
    {
        return None;
    }
    let a = builder.ssa.source(h.srcs[0].src, hat.0, hat.1);
    let mut ls: SmallVec<[Half; 3]> = SmallVec::new();
    for o in &l.srcs {
        let d = builder.ssa.source(o.src, lat.0, lat.1);
        if d != Def::ZERO {
            ls.push((o.prefix, d));
        }
    }
    let k = ls.iter().position(|x| *x == (Prefix::None, a))?;
    ls.remove(k);
    if ls.len() > 1 || ls.iter().any(|x| x.0 != Prefix::None) {
        return None;
    }
    let n = builder.node32(a);
    let n = builder.extend(true, n, hat.0);
    let other = ls.first().map_or(Def::ZERO, |x| x.1);
    let top = builder.ssa.source(h.srcs[1].src, hat.0, hat.1);
    let m = builder.node64(other, top);
    Some(builder.lin(&[(n, 1), (m, 1)], 0, Width::W64, hat.0))
}

/// IADD3 / LEA.HI.X.SX32: the low word of the scaled index was made elsewhere. The sum is that
/// of the low words, and of the high words 2^32 times. Which high word goes with which low one
/// only decides how well it is understood.
#[allow(clippy::too_many_arguments)]
pub(crate) fn sum_with_scaled_sign(
    builder: &mut Builder<'_>,
    l: &Inst,
    lo: Def,
    lat: (u32, u32),
    h: &Inst,
    hi: Def,
    hat: (u32, u32),
    shift: u8,
) -> Option<NodeId> {
    if carry_source(builder, hi) != Some(whole(lo))
        || h.srcs[0].prefix != Prefix::None
        || h.srcs[1].prefix != Prefix::None
    {
        return None;
    }
    let mut lows: SmallVec<[Def; 3]> = SmallVec::new();
    for o in &l.srcs {
        let d = builder.ssa.source(o.src, lat.0, lat.1);
        if o.prefix != Prefix::None {
            return None;
        }
        if d != Def::ZERO {
            lows.push(d);
        }
    }
    // Three numbers have two carries.
    if lows.len() > 2 {
        return None;
    }
    let top = builder.ssa.source(h.srcs[1].src, hat.0, hat.1);
    let mate = (0..lows.len()).max_by_key(|k| fit(builder, lows[*k], top))?;
    let mate = lows.remove(mate);
    let mut terms: SmallVec<[(NodeId, i64); 4]> = SmallVec::new();
    terms.push((builder.node64(mate, top), 1));
    for d in lows {
        let n = builder.node32(d);
        terms.push((builder.extend(false, n, hat.0), 1));
    }
    let index = builder.ssa.source(h.srcs[0].src, hat.0, hat.1);
    let index = builder.node32(index);
    let index = builder.extend(true, index, hat.0);
    let scaled = builder.lin(&[(index, 1i64.wrapping_shl(u32::from(shift)))], 0, Width::W64, hat.0);
    let word = builder.high(scaled, hat.0);
    terms.push((builder.add(Kind::High(word), Width::W64, hat.0), 1));
    Some(builder.lin(&terms, 0, Width::W64, hat.0))
}

/// LEA / LEA.HI: `(index << shift) + base`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn scaled(
    builder: &mut Builder<'_>,
    index: &SrcOperand,
    lat: (u32, u32),
    h: &Inst,
    hat: (u32, u32),
    shift: u8,
    sx: bool,
    base: NodeId,
) -> Option<NodeId> {
    let low = builder.ssa.source(index.src, lat.0, lat.1);
    if index.prefix != Prefix::None
        || h.srcs[0].prefix != Prefix::None
        || builder.ssa.source(h.srcs[0].src, hat.0, hat.1) != low
    {
        return None;
    }
    let idx = if sx {
        let n = builder.node32(low);
        builder.extend(true, n, hat.0)
    } else {
        let top = h.srcs.get(2)?;
        if top.prefix != Prefix::None {
            return None;
        }
        let top = builder.ssa.source(top.src, hat.0, hat.1);
        builder.node64(low, top)
    };
    Some(builder.lin(&[(idx, 1i64.wrapping_shl(u32::from(shift))), (base, 1)], 0, Width::W64, hat.0))
}

/// LEA / IADD3.X or IMAD.X: `(index << shift) + base`, where the high word of the scaled index
/// was made elsewhere, or is zero.
///
/// Whichever high word goes with which low one, the sum is the same; the choice only decides
/// how well it is understood.
#[allow(clippy::too_many_arguments)]
pub(crate) fn scaled_sum(
    builder: &mut Builder<'_>,
    l: &Inst,
    lo: Def,
    lat: (u32, u32),
    h: &Inst,
    hi: Def,
    hat: (u32, u32),
    shift: u8,
) -> Option<NodeId> {
    if carry_source(builder, hi) != Some(whole(lo)) || l.srcs[1].prefix != Prefix::None {
        return None;
    }
    let index = builder.ssa.source(l.srcs[0].src, lat.0, lat.1);
    let base = builder.ssa.source(l.srcs[1].src, lat.0, lat.1);
    if l.srcs[0].prefix == Prefix::Neg {
        return scaled_difference(builder, index, base, h, hat, shift);
    }
    if l.srcs[0].prefix != Prefix::None {
        return None;
    }
    let mut tops: SmallVec<[Def; 3]> = SmallVec::new();
    for s in h.srcs.iter().take(3) {
        let d = builder.ssa.source(s.src, hat.0, hat.1);
        if s.prefix != Prefix::None {
            return None;
        }
        if d != Def::ZERO {
            tops.push(d);
        }
    }
    let scale = 1i64.wrapping_shl(u32::from(shift));
    let shifted = tops.iter().position(|d| is_top_of(builder, *d, index, shift));
    let mut terms: SmallVec<[(NodeId, i64); 4]> = SmallVec::new();
    match shifted {
        Some(k) => {
            let top = tops.remove(k);
            let (f, b, i) = executed(builder, top)?;
            let word = builder.ssa.source(f.srcs[2].src, b, i);
            terms.push((builder.node64(index, word), scale));
        }
        None => {
            let n = builder.node32(index);
            let n = builder.lin(&[(n, scale)], 0, Width::W32, hat.0);
            terms.push((builder.extend(false, n, hat.0), 1));
        }
    }
    let mate = (0..tops.len()).max_by_key(|k| fit(builder, base, tops[*k]));
    let mate = mate.map_or(Def::ZERO, |k| tops.remove(k));
    terms.push((builder.node64(base, mate), 1));
    for d in tops {
        let n = builder.node32(d);
        terms.push((builder.add(Kind::High(n), Width::W64, hat.0), 1));
    }
    Some(builder.lin(&terms, 0, Width::W64, hat.0))
}

/// The same for `base - (index << shift)`: the low word is a LEA of the negated index, and the
/// high word adds the complement of the scaled index's high word. As with IADD3, the one that
/// makes a negative of a complement is in the carry.
fn scaled_difference(
    builder: &mut Builder<'_>,
    index: Def,
    base: Def,
    h: &Inst,
    hat: (u32, u32),
    shift: u8,
) -> Option<NodeId> {
    let (mut scaled, mut mate) = (None, None);
    for s in h.srcs.iter().take(3) {
        let d = builder.ssa.source(s.src, hat.0, hat.1);
        let place = match s.prefix {
            Prefix::Not => &mut scaled,
            Prefix::None if d == Def::ZERO => continue,
            Prefix::None => &mut mate,
            _ => return None,
        };
        if place.replace(d).is_some() {
            return None;
        }
    }
    let top = scaled.filter(|d| is_top_of(builder, *d, index, shift))?;
    let (f, b, i) = executed(builder, top)?;
    let word = builder.ssa.source(f.srcs[2].src, b, i);
    let index = builder.node64(index, word);
    let base = builder.node64(base, mate.unwrap_or(Def::ZERO));
    Some(builder.lin(&[(base, 1), (index, -(1i64.wrapping_shl(u32::from(shift))))], 0, Width::W64, hat.0))
}

/// Is `d` the high word of a 64-bit number with low word `low`, shifted left?
pub(crate) fn is_top_of(builder: &mut Builder<'_>, d: Def, low: Def, shift: u8) -> bool {
    let Some((inst, b, i)) = executed(builder, d) else { return false };
    matches!(inst.op, Op::Funnel { right: false, hi: true, .. })
        && inst.srcs[1].is_imm(u64::from(shift))
        && inst.srcs[0].prefix == Prefix::None
        && inst.srcs[2].prefix == Prefix::None
        && builder.ssa.source(inst.srcs[0].src, b, i) == low
}

/// All ways to pick `k` of `n` indices in order.
fn permutations(n: usize, k: usize) -> Vec<SmallVec<[usize; 3]>> {
    let mut out = vec![SmallVec::<[usize; 3]>::new()];
    for _ in 0..k {
        out = out
            .into_iter()
            .flat_map(|p| {
                (0..n)
                    .filter(|i| !p.contains(i))
                    .map(|i| {
                        let mut q = p.clone();
                        q.push(i);
                        q
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    out
}
