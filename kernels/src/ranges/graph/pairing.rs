//! The pairing table: which 64-bit value two 32-bit words are the halves of.
//!
//! Matching is structural. It compares reaching definitions before any arithmetic. A high word
//! belongs to a low word only in three cases: its carry predicate was made by the instruction of
//! that low word, both words come out of one 64-bit instruction, or the operation is bitwise. What
//! matches nothing becomes [`Kind::Pack`], which the evaluation treats as unknown unless the high
//! word is a constant.

use super::build::Builder;
use super::node::{Kind, LaneChoice, NodeId, Width};
use super::ssa::{Def, END};
use crate::ir::{Inst, Op, Prefix, Special, Src, SrcOperand};
use crate::ranges::graph::carries::{carry_source, fit, scaled, scaled_sum, sum, sum_with_scaled_sign, sum_with_sign};
use crate::ranges::graph::guards::settle;
use crate::ranges::graph::operations::{add_shr, body, product};
use smallvec::SmallVec;

/// Sums followed from a low word to the instruction that made it.
const MAX_STEPS: usize = 16;

/// The 64-bit node of two stripped definitions.
pub(crate) fn pair(builder: &mut Builder<'_>, lo: Def, hi: Def) -> NodeId {
    let home = home(lo).max(home(hi));
    if let Some(n) = leaves(builder, lo, hi) {
        return n;
    }
    if hi == Def::ZERO {
        let n = builder.node32(lo);
        return builder.extend(false, n, home);
    }
    if let Some(c) = lo.imm32()
        && !matches!(hi, Def::Leaf(_))
    {
        let h = builder.node32(hi);
        return constant_below(builder, c.into(), h, home);
    }
    if let (Def::Phi { b, .. }, Def::Phi { b: c, .. }) = (lo, hi)
        && b == c
    {
        return pair_phi(builder, lo, hi, b);
    }
    if is_sign_of(builder, hi, lo) {
        let n = builder.node32(lo);
        return builder.extend(true, n, home);
    }
    if let Some(n) = guarded(builder, lo, hi) {
        return n;
    }
    if let Some(n) = instructions(builder, lo, hi) {
        return n;
    }
    // One half is a join, the other is not: rebuild the pair per path.
    for d in [lo, hi] {
        if let Def::Phi { b, .. } = d
            && builder.ssa.cfg.loop_of_header[b as usize].is_none()
            && builder.depth < 200
        {
            return pair_phi(builder, lo, hi, b);
        }
    }
    let (l, h) = (builder.node32(lo), builder.node32(hi));
    if let Some(c) = builder.const_of(l) {
        return constant_below(builder, c, h, home);
    }
    builder.add(Kind::Pack(l, h), Width::W64, home)
}

/// A constant low word leaves the high word as it is.
fn constant_below(builder: &mut Builder<'_>, lo: u64, hi: NodeId, home: u32) -> NodeId {
    let high = builder.add(Kind::High(hi), Width::W64, home);
    builder.lin(&[(high, 1)], (lo & 0xffff_ffff) as i64, Width::W64, home)
}

fn leaves(builder: &mut Builder<'_>, lo: Def, hi: Def) -> Option<NodeId> {
    let (Def::Leaf(l), Def::Leaf(h)) = (lo, hi) else { return None };
    Some(match (l, h) {
        (Src::Imm(l), Src::Imm(h)) => builder.konst((h << 32) | (l & 0xffff_ffff), Width::W64),
        (Src::Param { off: a, bytes: 4 }, Src::Param { off: b, bytes: 4 }) if b == a + 4 => {
            builder.add(Kind::Param(a, 8), Width::W64, 0)
        }
        (Src::Driver(a), Src::Driver(b)) if a.abs_diff(b) == 4 => {
            builder.add(Kind::Special(Special::DriverBase(a)), Width::W64, 0)
        }
        (Src::Constant(a), Src::Constant(b)) if a.checked_add(4) == Some(b) => builder.constant_word(a),
        (Src::SymbolHalf(a, false), Src::SymbolHalf(b, true)) if a == b => builder.add(Kind::Symbol(a), Width::W64, 0),
        (Src::ParamAddressHalf(a, false), Src::ParamAddressHalf(b, true)) if a == b => {
            builder.add(Kind::ParamAddress(a), Width::W64, 0)
        }
        _ => return None,
    })
}

fn pair_phi(builder: &mut Builder<'_>, lo: Def, hi: Def, b: u32) -> NodeId {
    let n = builder.add(Kind::Building, Width::W64, b);
    builder.memo64(lo, hi, n);
    let at = |builder: &mut Builder<'_>, d: Def, p: u32| match d {
        Def::Phi { var, b: c } if c == b => builder.ssa.read(var, p, END),
        d => d,
    };
    builder.fill_phi(n, b, &mut |builder, p| {
        let l = at(builder, lo, p);
        let h = at(builder, hi, p);
        builder.node64(l, h)
    })
}

/// Is `hi` the word of sign bits of `lo`?
pub(crate) fn is_sign_of(builder: &mut Builder<'_>, hi: Def, lo: Def) -> bool {
    let Some((inst, b, i)) = executed(builder, hi) else { return false };
    let (value, amount) = match inst.op {
        Op::Funnel { right: true, hi: true, signed: true, wide: false, .. } => (2, 1),
        Op::Shr { signed: true } => (0, 1),
        _ => return false,
    };
    let (v, n) = (inst.srcs[value], inst.srcs[amount]);
    n.is_imm(31) && v.prefix == Prefix::None && builder.ssa.source(v.src, b, i) == lo
}

/// The instruction of a definition whose guard is decided.
pub(crate) fn executed<'a>(builder: &Builder<'a>, d: Def) -> Option<(&'a Inst, u32, u32)> {
    let Def::Inst { b, i, .. } = d else { return None };
    if builder.ssa.guard(d).is_some() {
        return None;
    }
    let f: &'a crate::ir::KernelIr = builder.ssa.f;
    Some((&f.blocks[b as usize].insts[i as usize], b, i))
}

fn guarded(builder: &mut Builder<'_>, lo: Def, hi: Def) -> Option<NodeId> {
    let (l, h) = (settle(builder, lo), settle(builder, hi));
    if let (Ok(l), Ok(h)) = (&l, &h) {
        return (*l != lo || *h != hi).then(|| builder.node64(*l, *h));
    }
    if builder.depth > 400 {
        return None;
    }
    let (d, g) = match (&l, &h) {
        (Err(open), _) | (_, Err(open)) => *open,
        _ => return None,
    };
    let Def::Inst { b, i, .. } = d else { return None };
    let key = (g.prefix, builder.ssa.source(g.src, b, i));
    // The other half may be under the same predicate, or its complement, or none of it.
    let mut side = |state: &Result<Def, (Def, SrcOperand)>, value: bool| -> Def {
        match *state {
            Ok(y) => y,
            Err((x, g2)) => {
                let Def::Inst { b, i, .. } = x else { return x };
                let k2 = (g2.prefix, builder.ssa.source(g2.src, b, i));
                if k2.1 != key.1 {
                    x
                } else if (k2.0 == key.0) == value {
                    let r = x.raw();
                    builder.ssa.strip(r)
                } else {
                    builder.ssa.old(x)
                }
            }
        }
    };
    let (l1, h1) = (side(&l, true), side(&h, true));
    let (l0, h0) = (side(&l, false), side(&h, false));
    let p = builder.pred_operand(&g, b, i);
    let new = builder.node64(l1, h1);
    let old = builder.node64(l0, h0);
    Some(builder.add(Kind::Sel(p, new, old), Width::W64, b))
}

fn instructions(builder: &mut Builder<'_>, lo: Def, hi: Def) -> Option<NodeId> {
    let (h, hb, hi_i) = executed(builder, hi)?;
    let hpart = hi.part();
    if let Op::Funnel { right: false, hi: true, .. } = h.op {
        return shift_left(builder, lo, h, hb, hi_i);
    }
    let (l, lb, li) = executed(builder, lo)?;
    if lo.same_inst(hi) {
        return match (&l.op, lo.part(), hpart) {
            (Op::Unpack, 0, 1) => Some(builder.operand64(&l.srcs[0], lb, li)),
            (Op::ParamIndexed { .. } | Op::Mem(_) | Op::Loaded(_), p, q) if q == p + 1 => {
                Some(body(builder, lo, Width::W64))
            }
            _ => None,
        };
    }
    match (&l.op, &h.op) {
        (Op::Add, Op::AddX) => sum(builder, lo, h, hi, (hb, hi_i)),
        (Op::Add, Op::LeaHi { shift, sx: true, x }) => {
            let found = if *shift == 1 { sum_with_sign(builder, l, lo, (lb, li), h, hi, (hb, hi_i)) } else { None };
            if found.is_some() || !*x {
                return found;
            }
            sum_with_scaled_sign(builder, l, lo, (lb, li), h, hi, (hb, hi_i), *shift)
        }
        (Op::Lea { shift: a }, Op::LeaHi { shift: c, sx, x }) if a == c => {
            if *x && carry_source(builder, hi) != Some(whole(lo)) {
                return None;
            }
            if !*x && !l.srcs[1].is_imm(0) {
                return None;
            }
            if l.srcs[1].prefix != Prefix::None || h.srcs[1].prefix != Prefix::None {
                return None;
            }
            let base = halves(builder, &l.srcs[1], (lb, li), &h.srcs[1], (hb, hi_i));
            scaled(builder, &l.srcs[0], (lb, li), h, (hb, hi_i), *a, *sx, base)
        }
        (Op::Lea { shift }, Op::AddX) => scaled_sum(builder, l, lo, (lb, li), h, hi, (hb, hi_i), *shift),
        (Op::Shuffle { mode: a }, Op::Shuffle { mode: c }) if a == c && lb == hb => {
            other_lane(builder, l, (lb, li), h, (hb, hi_i))
        }
        (Op::Sel, Op::Sel) => select(builder, l, (lb, li), h, (hb, hi_i)),
        (Op::Lop3 { lut: a }, Op::Lop3 { lut: c }) if a == c => {
            let a = *a;
            let mut v = SmallVec::<[NodeId; 3]>::new();
            for k in 0..3 {
                let (x, y) = (l.srcs.get(k).copied(), h.srcs.get(k).copied());
                v.push(match (x, y) {
                    (Some(x), Some(y)) if x.prefix == Prefix::None && y.prefix == Prefix::None => {
                        halves(builder, &x, (lb, li), &y, (hb, hi_i))
                    }
                    (None, None) => builder.konst(0, Width::W64),
                    _ => return None,
                });
            }
            Some(builder.add(Kind::Lop3(a, v[0], v[1], v[2]), Width::W64, hb))
        }
        (Op::Lop3 { lut: 0xc0 }, _) => aligned(builder, l, (lb, li), hi),
        (Op::Funnel { right: true, hi: false, wide: true, .. }, Op::Funnel { right: true, hi: true, signed, .. }) => {
            let n = builder.operand32(&l.srcs[1], lb, li);
            let m = builder.operand32(&h.srcs[1], hb, hi_i);
            let c = builder.const_of(n).filter(|c| *c < 32 && builder.const_of(m) == Some(*c))?;
            let top = builder.ssa.source(l.srcs[2].src, lb, li);
            if builder.ssa.source(h.srcs[2].src, hb, hi_i) != top || l.srcs[2].prefix != Prefix::None {
                return None;
            }
            let low = builder.ssa.source(l.srcs[0].src, lb, li);
            let v = builder.node64(low, top);
            Some(add_shr(builder, *signed, v, c, hb))
        }
        (Op::Add, Op::Unpack) if hpart == 1 => low_plus(builder, l, (lb, li), h, hi, (hb, hi_i)),
        (Op::Unpack, Op::Add | Op::Mad) if lo.part() == 0 => high_plus(builder, l, lo, (lb, li), h, (hb, hi_i)),
        _ => None,
    }
}

/// The 64-bit value of corresponding operands of two halves.
fn halves(
    builder: &mut Builder<'_>,
    l: &SrcOperand,
    (lb, li): (u32, u32),
    h: &SrcOperand,
    (hb, hi): (u32, u32),
) -> NodeId {
    let a = builder.ssa.source(l.src, lb, li);
    let b = builder.ssa.source(h.src, hb, hi);
    builder.node64(a, b)
}

/// SHFL / SHFL of both halves from one lane.
fn other_lane(builder: &mut Builder<'_>, l: &Inst, lat: (u32, u32), h: &Inst, hat: (u32, u32)) -> Option<NodeId> {
    let same = |k: usize| {
        let (a, c) = (l.srcs[k], h.srcs[k]);
        a.prefix == c.prefix && builder.ssa.source(a.src, lat.0, lat.1) == builder.ssa.source(c.src, hat.0, hat.1)
    };
    if l.srcs[0].prefix != Prefix::None || h.srcs[0].prefix != Prefix::None || !(1..3).all(same) {
        return None;
    }
    let Op::Shuffle { mode } = l.op else { return None };
    let v = halves(builder, &l.srcs[0], lat, &h.srcs[0], hat);
    let lane = builder.operand32(&l.srcs[1], lat.0, lat.1);
    let within = builder.operand32(&l.srcs[2], lat.0, lat.1);
    Some(builder.add(Kind::OtherLane(v, LaneChoice { mode, lane, within }), Width::W64, hat.0))
}

/// SHF.L / SHF.L.U64.HI.
fn shift_left(builder: &mut Builder<'_>, lo: Def, h: &Inst, hb: u32, hi: u32) -> Option<NodeId> {
    let amount = builder.operand32(&h.srcs[1], hb, hi);
    let c = builder.const_of(amount).filter(|c| *c < 32)? as u32;
    if h.srcs[0].prefix != Prefix::None || h.srcs[2].prefix != Prefix::None {
        return None;
    }
    let x = builder.ssa.source(h.srcs[0].src, hb, hi);
    let y = builder.ssa.source(h.srcs[2].src, hb, hi);
    // The low word must be the same shift of the same word.
    let (l, lb, li) = executed(builder, lo)?;
    if l.srcs.is_empty() || l.srcs[0].prefix != Prefix::None || builder.ssa.source(l.srcs[0].src, lb, li) != x {
        return None;
    }
    let same = match l.op {
        Op::Funnel { right: false, hi: false, .. } | Op::Shl => {
            let n = builder.operand32(&l.srcs[1], lb, li);
            builder.const_of(n) == Some(u64::from(c))
        }
        Op::Mad => l.srcs[1].is_imm(1 << c) && l.srcs[2].is_imm(0),
        Op::Lea { shift } => u32::from(shift) == c && l.srcs[1].is_imm(0),
        Op::Add => c == 1 && l.srcs.len() >= 2 && l.srcs[0] == l.srcs[1] && l.srcs[2..].iter().all(|s| s.is_imm(0)),
        _ => false,
    };
    if !same {
        return None;
    }
    let v = builder.node64(x, y);
    Some(builder.lin(&[(v, 1i64 << c)], 0, Width::W64, hb))
}

/// SEL / SEL with one predicate.
fn select(builder: &mut Builder<'_>, l: &Inst, lat: (u32, u32), h: &Inst, hat: (u32, u32)) -> Option<NodeId> {
    let p = builder.ssa.source(l.srcs[2].src, lat.0, lat.1);
    let q = builder.ssa.source(h.srcs[2].src, hat.0, hat.1);
    if p != q || l.srcs[..2].iter().chain(&h.srcs[..2]).any(|s| s.prefix != Prefix::None) {
        return None;
    }
    let same = l.srcs[2].prefix == h.srcs[2].prefix;
    let (t, e) = if same { (0, 1) } else { (1, 0) };
    let c = builder.pred_operand(&l.srcs[2], lat.0, lat.1);
    let x = halves(builder, &l.srcs[0], lat, &h.srcs[t], hat);
    let y = halves(builder, &l.srcs[1], lat, &h.srcs[e], hat);
    Some(match builder.const_of(c) {
        Some(0) => y,
        Some(_) => x,
        None => builder.add(Kind::Sel(c, x, y), Width::W64, hat.0),
    })
}

/// Low word masked by `-2^k`, high word kept: rounding down.
fn aligned(builder: &mut Builder<'_>, l: &Inst, lat: (u32, u32), hi: Def) -> Option<NodeId> {
    for (x, c) in [(0, 1), (1, 0)] {
        let (x, c) = (l.srcs[x], l.srcs[c]);
        if x.prefix != Prefix::None || c.prefix != Prefix::None {
            continue;
        }
        let m = builder.ssa.source(c.src, lat.0, lat.1);
        let Some(mask) = m.imm32() else { continue };
        let a = builder.ssa.source(x.src, lat.0, lat.1);
        if mask >> 31 == 0 || fit(builder, a, hi) < 4 {
            continue;
        }
        let v = builder.node64(a, hi);
        let m = builder.konst(u64::from(mask) | 0xffff_ffff_0000_0000, Width::W64);
        let z = builder.konst(0, Width::W64);
        return Some(builder.add(Kind::Lop3(0xc0, v, m, z), Width::W64, lat.0));
    }
    None
}

/// Low word of a parameter's address plus constants, one by one, with the high word left as it
/// is: the bank of parameters lies aligned, so that no address in it carries. (cuBLAS steps
/// from one tensor map to the next like this.)
fn low_plus(
    builder: &mut Builder<'_>,
    l: &Inst,
    lat: (u32, u32),
    h: &Inst,
    hi: Def,
    hat: (u32, u32),
) -> Option<NodeId> {
    let (mut step, mut mate, mut sum, mut at) = (0i64, false, l, lat);
    for _ in 0..MAX_STEPS {
        let mut before = None;
        for o in &sum.srcs {
            let d = builder.ssa.source(o.src, at.0, at.1);
            match (d.imm32(), d) {
                (Some(c), _) if o.prefix == Prefix::None => step += i64::from(c as i32),
                (_, Def::Inst { part: 0, .. }) if o.prefix == Prefix::None && before.is_none() => before = Some(d),
                _ => return None,
            }
        }
        let before = before?;
        mate = before.same_inst(hi);
        if mate {
            break;
        }
        let (inst, b, i) = executed(builder, before)?;
        if !matches!(inst.op, Op::Add) {
            return None;
        }
        (sum, at) = (inst, (b, i));
    }
    let v = builder.operand64(&h.srcs[0], hat.0, hat.1);
    let mut base = v;
    while let Kind::Lin(t, _) = &builder.g.node(base).kind
        && let [(n, 1)] = t[..]
    {
        base = n;
    }
    let near = step.unsigned_abs() < 1 << 16 && matches!(builder.g.node(base).kind, Kind::ParamAddress(_));
    (mate && near).then(|| builder.lin(&[(v, 1)], step, Width::W64, lat.0))
}

/// High word of a 64-bit result plus something: that something times 2^32 is added.
fn high_plus(
    builder: &mut Builder<'_>,
    l: &Inst,
    lo: Def,
    lat: (u32, u32),
    h: &Inst,
    hat: (u32, u32),
) -> Option<NodeId> {
    let Def::Inst { b, i, .. } = lo else { return None };
    let is_mate = |builder: &mut Builder<'_>, o: &SrcOperand| {
        o.prefix == Prefix::None
            && matches!(builder.ssa.source(o.src, hat.0, hat.1), Def::Inst { b: c, i: j, part: 1, .. } if c == b && j == i)
    };
    let rest = match h.op {
        Op::Add => {
            let k = (0..h.srcs.len()).find(|k| is_mate(builder, &h.srcs[*k]))?;
            let t: SmallVec<[(NodeId, i64); 3]> = (0..h.srcs.len())
                .filter(|j| *j != k)
                .map(|j| (builder.operand32(&h.srcs[j], hat.0, hat.1), 1))
                .collect();
            builder.lin(&t, 0, Width::W32, hat.0)
        }
        Op::Mad if is_mate(builder, &h.srcs[2]) => {
            let x = builder.operand32(&h.srcs[0], hat.0, hat.1);
            let y = builder.operand32(&h.srcs[1], hat.0, hat.1);
            product(builder, x, y, Width::W32, hat.0)
        }
        _ => return None,
    };
    let v = builder.operand64(&l.srcs[0], lat.0, lat.1);
    let r = builder.add(Kind::High(rest), Width::W64, hat.0);
    Some(builder.lin(&[(v, 1), (r, 1)], 0, Width::W64, hat.0))
}

/// The result part of the instruction of a definition (its guard aside).
pub(crate) fn whole(d: Def) -> Def {
    match d {
        Def::Inst { b, i, .. } => Def::Inst { b, i, part: 0, raw: true },
        d => d,
    }
}

fn home(d: Def) -> u32 {
    match d {
        Def::Inst { b, .. } | Def::Phi { b, .. } => b,
        _ => 0,
    }
}
