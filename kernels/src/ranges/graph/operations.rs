//! What one instruction computes, as a node.
//!
//! Owns the translation of 32-bit and 64-bit operations. Does not translate predicates
//! (`predicates`) or the two halves of a 64-bit value (`pairing`).

use super::build::Builder;
use super::node::{Kind, LaneChoice, NodeId, Width};
use super::ssa::Def;
use crate::ir::{Addr, Class, Mem, MemSpace, Op, Prefix, Pure, Reason, Src, SrcOperand};
use crate::ranges::graph::carries::{carry_source, sum_without_carries};
use crate::ranges::graph::memory_accesses::sum64;
use smallvec::SmallVec;

/// Value of an instruction taken as executed.
pub(crate) fn body(builder: &mut Builder<'_>, d: Def, w: Width) -> NodeId {
    let n = computed(builder, d, w);
    note(builder, d, n);
    n
}

/// Remembers which instruction makes a value that is not followed.
pub(crate) fn note(builder: &mut Builder<'_>, d: Def, n: NodeId) {
    if matches!(builder.g.node(n).kind, Kind::Opaque(_) | Kind::Loaded(_) | Kind::Bounded(..))
        && let Some(inst) = builder.ssa.inst(d)
    {
        builder.g.made_at.entry(n).or_insert(inst.at);
    }
}

fn computed(builder: &mut Builder<'_>, d: Def, w: Width) -> NodeId {
    let Def::Inst { b, i, part, .. } = d else { return builder.opaque(Reason::Instruction, w, 0) };
    let Some(inst) = builder.ssa.inst(d) else { return builder.opaque(Reason::Instruction, w, b) };
    let s: SmallVec<[SrcOperand; 4]> = inst.srcs.clone();
    let o = |builder: &mut Builder<'_>, k: usize| match s.get(k) {
        Some(x) => builder.operand_w(x, w, b, i),
        None => builder.konst(0, w),
    };
    match inst.op {
        Op::Mov => builder.operand_w(&s[part as usize], w, b, i),
        Op::Add if part == 0 => {
            let t: SmallVec<[(NodeId, i64); 3]> = (0..s.len()).map(|k| (o(builder, k), 1)).collect();
            builder.lin(&t, 0, w, b)
        }
        Op::Mad if part == 0 => {
            let (x, y, z) = (o(builder, 0), o(builder, 1), o(builder, 2));
            let p = product(builder, x, y, w, b);
            builder.lin(&[(p, 1), (z, 1)], 0, w, b)
        }
        Op::MadWide { signed } if part == 0 => {
            let x = builder.operand32(&s[0], b, i);
            let y = builder.operand32(&s[1], b, i);
            let z = builder.operand64(&s[2], b, i);
            let p = match (builder.const_of(x), builder.const_of(y)) {
                (_, Some(c)) => {
                    let x = builder.extend(signed, x, b);
                    builder.lin(&[(x, widen(signed, c))], 0, Width::W64, b)
                }
                (Some(c), _) => {
                    let y = builder.extend(signed, y, b);
                    builder.lin(&[(y, widen(signed, c))], 0, Width::W64, b)
                }
                _ => builder.add(Kind::MulWide(signed, x, y), Width::W64, b),
            };
            builder.lin(&[(p, 1), (z, 1)], 0, Width::W64, b)
        }
        Op::MulHi { signed } if part == 0 => {
            let (x, y) = (o(builder, 0), o(builder, 1));
            // The addend is 64 bits wide: division by a constant or a prepared divisor adds the
            // dividend to the high word.
            let z = match s.get(2) {
                Some(z) if !z.is_imm(0) => builder.operand64(z, b, i),
                _ => builder.konst(0, Width::W64),
            };
            if builder.const_of(z) == Some(0) {
                builder.add(Kind::MulHi(signed, x, y), w, b)
            } else if w == Width::W32 {
                let p = builder.add(Kind::MulWide(signed, x, y), Width::W64, b);
                let sum = builder.lin(&[(p, 1), (z, 1)], 0, Width::W64, b);
                builder.add(Kind::Hi(sum), w, b)
            } else {
                builder.opaque(Reason::Bits, w, b)
            }
        }
        Op::Lea { shift } if part == 0 => {
            let (x, y) = (o(builder, 0), o(builder, 1));
            builder.lin(&[(x, 1i64.wrapping_shl(u32::from(shift))), (y, 1)], 0, w, b)
        }
        Op::LeaHi { shift, sx, x: false } => {
            let lo = builder.operand32(&s[0], b, i);
            let v = if sx {
                builder.extend(true, lo, b)
            } else {
                let l = builder.ssa.source(s[0].src, b, i);
                let h = builder.ssa.source(s.get(2).map_or(Src::Imm(0), |x| x.src), b, i);
                if s[0].prefix == Prefix::None {
                    builder.node64(l, h)
                } else {
                    builder.opaque(Reason::Bits, Width::W64, b)
                }
            };
            let v = builder.lin(&[(v, 1i64.wrapping_shl(u32::from(shift)))], 0, Width::W64, b);
            let h = builder.high(v, b);
            let y = builder.operand32(&s[1], b, i);
            builder.lin(&[(h, 1), (y, 1)], 0, Width::W32, b)
        }
        Op::AddX | Op::LeaHi { x: true, .. } | Op::MadX => lone_high(builder, d, b),
        Op::Funnel { right, hi, signed, wide, wraps } => {
            funnel(builder, &s, Pure::Funnel { right, hi, signed, wide, wraps }, b, i)
        }
        Op::Shl => {
            let x = o(builder, 0);
            let n = builder.operand32(&s[1], b, i);
            shl(builder, x, n, w, b)
        }
        Op::Shr { signed } => {
            let x = o(builder, 0);
            let n = builder.operand32(&s[1], b, i);
            builder.add(Kind::Shr(signed, x, n), w, b)
        }
        Op::Lop3 { lut } if part == 0 => {
            let (x, y, z) = (o(builder, 0), o(builder, 1), o(builder, 2));
            builder.add(Kind::Lop3(lut, x, y, z), w, b)
        }
        Op::MinMax { signed } => {
            let (x, y) = (o(builder, 0), o(builder, 1));
            let p = builder.pred_operand(&s[2], b, i);
            match builder.const_of(p) {
                Some(c) => builder.add(Kind::MinMax(c != 0, signed, x, y), w, b),
                None => {
                    let m = builder.add(Kind::MinMax(true, signed, x, y), w, b);
                    let n = builder.add(Kind::MinMax(false, signed, x, y), w, b);
                    builder.add(Kind::Sel(p, m, n), w, b)
                }
            }
        }
        Op::Abs => {
            let x = o(builder, 0);
            builder.add(Kind::Abs(x), w, b)
        }
        Op::Sel => {
            let p = builder.pred_operand(&s[2], b, i);
            let (x, y) = (o(builder, 0), o(builder, 1));
            match builder.const_of(p) {
                Some(0) => y,
                Some(_) => x,
                None => builder.add(Kind::Sel(p, x, y), w, b),
            }
        }
        Op::Div { signed } => {
            let (x, y) = (o(builder, 0), o(builder, 1));
            builder.add(Kind::Div(signed, x, y), w, b)
        }
        Op::Rem { signed } => {
            let (x, y) = (o(builder, 0), o(builder, 1));
            builder.add(Kind::Rem(signed, x, y), w, b)
        }
        Op::Ext { bits, signed } => ext(builder, &s[0], bits, signed, w, b, i),
        Op::Pack => {
            if let (Src::Var(l), Src::Var(h), Prefix::None, Prefix::None) =
                (s[0].src, s[1].src, s[0].prefix, s[1].prefix)
            {
                let (l, h) = (builder.ssa.source(Src::Var(l), b, i), builder.ssa.source(Src::Var(h), b, i));
                return builder.node64(l, h);
            }
            let l = builder.ssa.source(s[0].src, b, i);
            let h = builder.ssa.source(s[1].src, b, i);
            builder.node64(l, h)
        }
        Op::Unpack => {
            let x = builder.operand64(&s[0], b, i);
            if part == 0 { builder.low(x, b) } else { builder.high(x, b) }
        }
        Op::Prmt => {
            let (x, y, z) = (o(builder, 0), o(builder, 1), o(builder, 2));
            builder.add(Kind::Prmt(x, y, z), w, b)
        }
        Op::Shuffle { mode } => {
            let x = builder.operand_w(&s[0], w, b, i);
            let (lane, within) = (builder.operand32(&s[1], b, i), builder.operand32(&s[2], b, i));
            builder.add(Kind::OtherLane(x, LaneChoice { mode, lane, within }), w, b)
        }
        Op::Pure(f) => {
            let of = [0, 1, 2].map(|k| match s.get(k) {
                Some(o) if f.is_wide(k) => builder.operand64(o, b, i),
                Some(o) => builder.operand32(o, b, i),
                None => builder.konst(0, Width::W32),
            });
            pure(builder, f, of, w, b)
        }
        Op::Bounded { lo, hi } => builder.add(Kind::Bounded(lo, hi), w, b),
        Op::ParamIndexed { off, bytes, signed } => {
            let idx = builder.operand32(&s[0], b, i);
            match builder.const_of(idx) {
                Some(c) if bytes >= 4 => {
                    let at = i64::from(off) + i64::from(c as u32 as i32) + 4 * i64::from(part);
                    let k = if w == Width::W64 { 8 } else { 4 };
                    match u16::try_from(at) {
                        Ok(at) => builder.add(Kind::Param(at, k), w, b),
                        Err(_) => builder.opaque(Reason::Constant, w, b),
                    }
                }
                _ if bytes >= 4 => {
                    let k = if w == Width::W64 { 8 } else { 4 };
                    builder.add(Kind::ParamIndexed(off + 4 * i32::from(part), k, false, idx), w, b)
                }
                _ => builder.add(Kind::ParamIndexed(off, bytes, signed, idx), w, b),
            }
        }
        Op::Mem(Mem {
            space: MemSpace::Local,
            kind: crate::ir::AccessKind::Read,
            bytes,
            addr: Addr::Sum(ref a, off),
        }) if bytes >= 4 => {
            let n = near_address(builder, a, off, part, b, i);
            builder.has_local = true;
            builder.add(Kind::LocalLoad(n, if w == Width::W64 { 8 } else { 4 }), w, b)
        }
        Op::Mem(Mem {
            space: MemSpace::Shared,
            kind: crate::ir::AccessKind::Read,
            addr: Addr::Sum(ref parts, off),
            ..
        }) if parts.is_empty() => {
            let at = off + 4 * i64::from(part);
            let Ok(at) = u32::try_from(at) else { return builder.opaque(Reason::Shared, w, b) };
            builder.has_shared = true;
            builder.add(Kind::SharedLoad(at, if w == Width::W64 { 8 } else { 4 }), w, b)
        }
        Op::Loaded(off) => {
            let words = builder.ssa.f.class(inst.dsts[usize::from(part)]) != Class::W64;
            if w != Width::W64 {
                return builder.opaque(Reason::Loaded, w, b);
            }
            let addr = sum64(builder, &s, off + if words { 4 } else { 8 } * i64::from(part), b, i);
            builder.add(Kind::Loaded(addr), w, b)
        }
        Op::Mem(ref m) => {
            let r = match (m.space, m.kind) {
                (MemSpace::Local, _) => Reason::Local,
                (MemSpace::Shared | MemSpace::Generic, _) => Reason::Shared,
                (_, kind) if kind.is_atomic() => Reason::AtomicResult,
                _ => Reason::Loaded,
            };
            builder.opaque(r, w, b)
        }
        Op::Rcp | Op::IntToFloat { .. } => builder.opaque(Reason::Float, w, b),
        Op::Unknown(r) => builder.opaque(r, w, b),
        _ => builder.opaque(Reason::Instruction, w, b),
    }
}

/// A function of numbers, worked out where they are known.
fn pure(builder: &mut Builder<'_>, f: Pure, of: [NodeId; 3], w: Width, b: u32) -> NodeId {
    let known = of.map(|n| builder.const_of(n));
    if let [Some(x), Some(y), Some(z)] = known
        && let Some(result) = f.apply([x, y, z])
    {
        return builder.konst(result, w);
    }
    builder.add(Kind::Pure(f, of), w, b)
}

pub(crate) fn near_address(builder: &mut Builder<'_>, a: &[SrcOperand], off: i64, part: u8, b: u32, i: u32) -> NodeId {
    let t: SmallVec<[(NodeId, i64); 3]> = a.iter().map(|x| (builder.operand32(x, b, i), 1)).collect();
    builder.lin(&t, off + 4 * i64::from(part), Width::W32, b)
}

pub(crate) fn ext(
    builder: &mut Builder<'_>,
    s: &SrcOperand,
    bits: u8,
    signed: bool,
    w: Width,
    b: u32,
    i: u32,
) -> NodeId {
    // The source is read in its own class; 64 bits out of 32 is an extension, 32 out of 64 a
    // truncation.
    let wide_src = match s.src {
        Src::Var(v) => builder.ssa.f.class(v) == Class::W64,
        Src::Pair(..) | Src::Zext(_) => true,
        Src::Param { bytes, .. } => bytes == 8,
        Src::Imm(_) => w == Width::W64,
        _ => false,
    };
    let low = if wide_src {
        let x = builder.operand64(s, b, i);
        if bits >= 64 && w == Width::W64 {
            return x;
        }
        builder.low(x, b)
    } else {
        builder.operand32(s, b, i)
    };
    let low = if bits < 32 { builder.add(Kind::Ext(bits, signed, low), Width::W32, b) } else { low };
    if w == Width::W64 { builder.extend(signed, low, b) } else { low }
}

pub(crate) fn product(builder: &mut Builder<'_>, x: NodeId, y: NodeId, w: Width, b: u32) -> NodeId {
    match (builder.const_of(x), builder.const_of(y)) {
        (_, Some(c)) => builder.lin(&[(x, coefficient(c, w))], 0, w, b),
        (Some(c), _) => builder.lin(&[(y, coefficient(c, w))], 0, w, b),
        _ => builder.add(Kind::Mul(x, y), w, b),
    }
}

pub(crate) fn shl(builder: &mut Builder<'_>, x: NodeId, n: NodeId, w: Width, b: u32) -> NodeId {
    match builder.const_of(n) {
        Some(c) if c >= u64::from(w.bits()) => builder.konst(0, w),
        Some(c) => builder.lin(&[(x, 1i64.wrapping_shl(c as u32))], 0, w, b),
        None => builder.add(Kind::Shl(x, n), w, b),
    }
}

pub(crate) fn funnel(builder: &mut Builder<'_>, s: &[SrcOperand], shift: Pure, b: u32, i: u32) -> NodeId {
    let Pure::Funnel { right, hi, signed, wide, wraps } = shift else {
        return builder.opaque(Reason::Bits, Width::W32, b);
    };
    let n = builder.operand32(&s[1], b, i);
    let zero_hi = s[2].is_imm(0);
    let zero_lo = s[0].is_imm(0);
    let known = builder.const_of(n).is_some();
    if !known && (wraps || wide) {
        let (low, high) = (builder.operand32(&s[0], b, i), builder.operand32(&s[2], b, i));
        return pure(builder, shift, [low, high, n], Width::W32, b);
    }
    if !right && !hi {
        // The low word of a left shift is a plain shift of s0.
        let x = builder.operand32(&s[0], b, i);
        return shl(builder, x, n, Width::W32, b);
    }
    if right && hi && zero_lo && !wide {
        let x = builder.operand32(&s[2], b, i);
        return builder.add(Kind::Shr(signed, x, n), Width::W32, b);
    }
    if right && !hi && zero_hi && !wide && !signed {
        let x = builder.operand32(&s[0], b, i);
        return builder.add(Kind::Shr(false, x, n), Width::W32, b);
    }
    // Through 64 bits.
    let Some(c) = builder.const_of(n) else {
        let (low, high) = (builder.operand32(&s[0], b, i), builder.operand32(&s[2], b, i));
        return pure(builder, shift, [low, high, n], Width::W32, b);
    };
    if s[0].prefix != Prefix::None || s[2].prefix != Prefix::None || c >= 64 || (!wide && c >= 32) {
        return builder.opaque(Reason::Bits, Width::W32, b);
    }
    let l = builder.ssa.source(s[0].src, b, i);
    let h = builder.ssa.source(s[2].src, b, i);
    let v = builder.node64(l, h);
    let v = if right {
        add_shr(builder, signed && hi, v, c, b)
    } else {
        builder.lin(&[(v, 1i64.wrapping_shl(c as u32))], 0, Width::W64, b)
    };
    if hi { builder.high(v, b) } else { builder.low(v, b) }
}

pub(crate) fn add_shr(builder: &mut Builder<'_>, signed: bool, v: NodeId, c: u64, b: u32) -> NodeId {
    let n = builder.konst(c, Width::W32);
    builder.add(Kind::Shr(signed, v, n), Width::W64, b)
}

/// A high word used on its own: only when it pairs with the low word its carry comes from.
pub(crate) fn lone_high(builder: &mut Builder<'_>, d: Def, b: u32) -> NodeId {
    if let Some(n) = sum_without_carries(builder, d, b) {
        return n;
    }
    let Some(lo) = carry_source(builder, d) else { return builder.opaque(Reason::Pairing, Width::W32, b) };
    let n = builder.node64(lo, d.raw());
    match builder.g.node(n).kind {
        Kind::Pack(..) | Kind::Opaque(_) => builder.opaque(Reason::Pairing, Width::W32, b),
        _ => builder.high(n, b),
    }
}

fn widen(signed: bool, c: u64) -> i64 {
    if signed { i64::from(c as u32 as i32) } else { i64::from(c as u32) }
}

fn coefficient(c: u64, w: Width) -> i64 {
    if w == Width::W32 { i64::from(c as u32 as i32) } else { c as i64 }
}
