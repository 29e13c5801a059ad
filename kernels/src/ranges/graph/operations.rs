//! What one instruction computes, as a node.
//!
//! Owns the translation of 32-bit and 64-bit operations. Does not translate predicates
//! (`predicates`) or the two halves of a 64-bit value (`pairing`).

use super::build::Builder;
use super::node::{Kind, LaneChoice, NodeId, Width};
use super::ssa::Def;
use crate::ir::{
    AccessKind, Addr, Class, Inst, Mem, MemSpace, Op, Prefix, Pure, Reason, Rounding, Special, Src, SrcOperand,
};
use crate::ranges::graph::carries::{carry_source, sum_without_carries};
use crate::ranges::graph::memory_accesses::sum64;
use crate::ranges::graph::reciprocal_division::wide_high_product;
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

/// One destination of an instruction that is taken as executed.
struct Destination<'a> {
    inst: &'a Inst,
    /// Which of the destinations.
    part: u8,
    w: Width,
    /// Block and index of the instruction.
    b: u32,
    i: u32,
}

impl Destination<'_> {
    fn source(&self, k: usize) -> &SrcOperand {
        &self.inst.srcs[k]
    }

    /// A source in the width of the destination; zero where there is none.
    fn operand(&self, builder: &mut Builder<'_>, k: usize) -> NodeId {
        match self.inst.srcs.get(k) {
            Some(x) => builder.operand_w(x, self.w, self.b, self.i),
            None => builder.konst(0, self.w),
        }
    }

    fn operand32(&self, builder: &mut Builder<'_>, k: usize) -> NodeId {
        builder.operand32(self.source(k), self.b, self.i)
    }

    fn operand64(&self, builder: &mut Builder<'_>, k: usize) -> NodeId {
        builder.operand64(self.source(k), self.b, self.i)
    }

    /// Bytes of the destination.
    fn bytes(&self) -> u8 {
        if self.w == Width::W64 { 8 } else { 4 }
    }
}

fn computed(builder: &mut Builder<'_>, d: Def, w: Width) -> NodeId {
    let Def::Inst { b, i, part, .. } = d else { return builder.opaque(Reason::Instruction, w, 0) };
    let Some(inst) = builder.ssa.inst(d) else { return builder.opaque(Reason::Instruction, w, b) };
    let to = &Destination { inst, part, w, b, i };
    match inst.op {
        Op::Mov => builder.operand_w(to.source(usize::from(part)), w, b, i),
        Op::Add | Op::Mad | Op::MadWide { .. } | Op::Lea { .. } if part == 0 => sum(builder, to),
        Op::MulHi { signed } if part == 0 => high_product(builder, to, signed),
        Op::MadWideX => match wide_high_product(builder, inst, b, i) {
            Some(n) if w == Width::W64 => n,
            _ => builder.opaque(Reason::Instruction, w, b),
        },
        Op::LeaHi { shift, sx, x: false } => high_sum(builder, to, shift, sx),
        Op::AddX | Op::LeaHi { x: true, .. } | Op::MadX => lone_high(builder, d, b),
        Op::Funnel { right, hi, signed, wide, wraps } => {
            funnel(builder, &inst.srcs, Pure::Funnel { right, hi, signed, wide, wraps }, b, i)
        }
        Op::Shl => {
            let (x, n) = (to.operand(builder, 0), to.operand32(builder, 1));
            shl(builder, x, n, w, b)
        }
        Op::Shr { signed } => {
            let (x, n) = (to.operand(builder, 0), to.operand32(builder, 1));
            builder.add(Kind::Shr(signed, x, n), w, b)
        }
        Op::Lop3 { lut } if part == 0 => {
            let (x, y, z) = (to.operand(builder, 0), to.operand(builder, 1), to.operand(builder, 2));
            builder.add(Kind::Lop3(lut, x, y, z), w, b)
        }
        Op::MinMax { .. } | Op::Sel => choice(builder, to),
        Op::Abs => {
            let x = to.operand(builder, 0);
            builder.add(Kind::Abs(x), w, b)
        }
        Op::Div { signed } => {
            let (x, y) = (to.operand(builder, 0), to.operand(builder, 1));
            builder.add(Kind::Div(signed, x, y), w, b)
        }
        Op::Rem { signed } => {
            let (x, y) = (to.operand(builder, 0), to.operand(builder, 1));
            builder.add(Kind::Rem(signed, x, y), w, b)
        }
        Op::Ext { bits, signed } => ext(builder, to.source(0), bits, signed, w, b, i),
        Op::Pack => {
            let l = builder.ssa.source(to.source(0).src, b, i);
            let h = builder.ssa.source(to.source(1).src, b, i);
            builder.node64(l, h)
        }
        Op::Unpack => {
            let x = to.operand64(builder, 0);
            if part == 0 { builder.low(x, b) } else { builder.high(x, b) }
        }
        Op::Prmt => {
            let (x, y, z) = (to.operand(builder, 0), to.operand(builder, 1), to.operand(builder, 2));
            builder.add(Kind::Prmt(x, y, z), w, b)
        }
        Op::Shuffle { mode } => {
            let x = builder.operand_w(to.source(0), w, b, i);
            let (lane, within) = (to.operand32(builder, 1), to.operand32(builder, 2));
            builder.add(Kind::OtherLane(x, LaneChoice { mode, lane, within }), w, b)
        }
        Op::Pure(f) => {
            let of = [0, 1, 2].map(|k| match inst.srcs.get(k) {
                Some(o) if f.is_wide(k) => builder.operand64(o, b, i),
                Some(o) => builder.operand32(o, b, i),
                None => builder.konst(0, Width::W32),
            });
            pure(builder, f, of, w, b)
        }
        Op::Bounded { lo, hi } => builder.add(Kind::Bounded(lo, hi), w, b),
        Op::ParamIndexed { off, bytes, signed } => indexed_parameter(builder, to, off, bytes, signed),
        Op::Mem(ref m) => loaded(builder, to, m),
        Op::Loaded(off) => {
            if w != Width::W64 {
                return builder.opaque(Reason::Loaded, w, b);
            }
            let words = builder.ssa.f.class(inst.dsts[usize::from(part)]) != Class::W64;
            let addr = sum64(builder, &inst.srcs, off + if words { 4 } else { 8 } * i64::from(part), b, i);
            builder.add(Kind::Loaded(addr), w, b)
        }
        Op::Rcp | Op::IntToFloat { .. } => builder.opaque(Reason::Float, w, b),
        Op::Unknown(r) => builder.opaque(r, w, b),
        _ => builder.opaque(Reason::Instruction, w, b),
    }
}

/// A sum of multiples: additions, and products that are added to.
fn sum(builder: &mut Builder<'_>, to: &Destination<'_>) -> NodeId {
    let &Destination { w, b, .. } = to;
    match to.inst.op {
        Op::Mad => {
            let (x, y, z) = (to.operand(builder, 0), to.operand(builder, 1), to.operand(builder, 2));
            let p = product(builder, x, y, w, b);
            builder.lin(&[(p, 1), (z, 1)], 0, w, b)
        }
        Op::MadWide { signed } => {
            let (x, y, z) = (to.operand32(builder, 0), to.operand32(builder, 1), to.operand64(builder, 2));
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
        Op::Lea { shift } => {
            let (x, y) = (to.operand(builder, 0), to.operand(builder, 1));
            builder.lin(&[(x, 1i64.wrapping_shl(u32::from(shift))), (y, 1)], 0, w, b)
        }
        _ => {
            let t: SmallVec<[(NodeId, i64); 3]> =
                (0..to.inst.srcs.len()).map(|k| (to.operand(builder, k), 1)).collect();
            builder.lin(&t, 0, w, b)
        }
    }
}

/// The high word of a product. The addend is 64 bits wide: division by a constant or a prepared
/// divisor adds the dividend to the high word.
fn high_product(builder: &mut Builder<'_>, to: &Destination<'_>, signed: bool) -> NodeId {
    let &Destination { w, b, .. } = to;
    let (x, y) = (to.operand(builder, 0), to.operand(builder, 1));
    let z = match to.inst.srcs.get(2) {
        Some(z) if !z.is_imm(0) => to.operand64(builder, 2),
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

/// The high word of a shifted value, and a word added to it.
fn high_sum(builder: &mut Builder<'_>, to: &Destination<'_>, shift: u8, sx: bool) -> NodeId {
    let &Destination { b, i, .. } = to;
    let lo = to.operand32(builder, 0);
    let v = if sx {
        builder.extend(true, lo, b)
    } else {
        let l = builder.ssa.source(to.source(0).src, b, i);
        let h = builder.ssa.source(to.inst.srcs.get(2).map_or(Src::Imm(0), |x| x.src), b, i);
        if to.source(0).prefix == Prefix::None {
            builder.node64(l, h)
        } else {
            builder.opaque(Reason::Bits, Width::W64, b)
        }
    };
    let v = builder.lin(&[(v, 1i64.wrapping_shl(u32::from(shift)))], 0, Width::W64, b);
    let h = builder.high(v, b);
    let y = to.operand32(builder, 1);
    builder.lin(&[(h, 1), (y, 1)], 0, Width::W32, b)
}

/// One of two values by a predicate.
fn choice(builder: &mut Builder<'_>, to: &Destination<'_>) -> NodeId {
    let &Destination { w, b, i, .. } = to;
    if let Op::MinMax { signed } = to.inst.op {
        let (x, y) = (to.operand(builder, 0), to.operand(builder, 1));
        let p = builder.pred_operand(to.source(2), b, i);
        return match builder.const_of(p) {
            Some(c) => builder.add(Kind::MinMax(c != 0, signed, x, y), w, b),
            None => {
                let m = builder.add(Kind::MinMax(true, signed, x, y), w, b);
                let n = builder.add(Kind::MinMax(false, signed, x, y), w, b);
                builder.add(Kind::Sel(p, m, n), w, b)
            }
        };
    }
    let p = builder.pred_operand(to.source(2), b, i);
    let (x, y) = (to.operand(builder, 0), to.operand(builder, 1));
    match builder.const_of(p) {
        Some(0) => y,
        Some(_) => x,
        None => builder.add(Kind::Sel(p, x, y), w, b),
    }
}

/// A parameter at an offset that the code computes.
fn indexed_parameter(builder: &mut Builder<'_>, to: &Destination<'_>, off: i32, bytes: u8, signed: bool) -> NodeId {
    let &Destination { part, w, b, .. } = to;
    let idx = to.operand32(builder, 0);
    match builder.const_of(idx) {
        Some(c) if bytes >= 4 => {
            let at = i64::from(off) + i64::from(c as u32 as i32) + 4 * i64::from(part);
            match u16::try_from(at) {
                Ok(at) => builder.add(Kind::Param(at, to.bytes()), w, b),
                Err(_) => builder.opaque(Reason::Constant, w, b),
            }
        }
        _ if bytes >= 4 => builder.add(Kind::ParamIndexed(off + 4 * i32::from(part), to.bytes(), false, idx), w, b),
        _ => builder.add(Kind::ParamIndexed(off, bytes, signed, idx), w, b),
    }
}

/// The result of a memory access. Words of local memory, and of shared memory at a fixed address,
/// are followed to what was stored there.
fn loaded(builder: &mut Builder<'_>, to: &Destination<'_>, m: &Mem) -> NodeId {
    let &Destination { part, w, b, i, .. } = to;
    match (m.space, m.kind, &m.addr) {
        (MemSpace::Local, AccessKind::Read, Addr::Sum(a, off)) if m.bytes >= 4 => {
            let n = near_address(builder, a, *off, part, b, i);
            builder.has_local = true;
            builder.add(Kind::LocalLoad(n, to.bytes()), w, b)
        }
        (MemSpace::Shared, AccessKind::Read, Addr::Sum(parts, off)) if parts.is_empty() => {
            let at = off + 4 * i64::from(part);
            let Ok(at) = u32::try_from(at) else { return builder.opaque(Reason::Shared, w, b) };
            builder.has_shared = true;
            builder.add(Kind::SharedLoad(at, to.bytes()), w, b)
        }
        (MemSpace::Local, ..) => builder.opaque(Reason::Local, w, b),
        (MemSpace::Map(_), ..) => {
            let n = builder.opaque(Reason::Shared, w, b);
            builder.words.note((b, i), part, n);
            n
        }
        (MemSpace::Shared | MemSpace::Generic, ..) => builder.opaque(Reason::Shared, w, b),
        (_, kind, _) if kind.is_atomic() => builder.opaque(Reason::AtomicResult, w, b),
        _ => builder.opaque(Reason::Loaded, w, b),
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
    if let Some(axis) = cluster_index(builder, f, of[0]) {
        return builder.add(Kind::Special(Special::ClusterId(axis)), w, 0);
    }
    builder.add(Kind::Pure(f, of), w, b)
}

/// The axis along which a result is the index of the block's cluster: the whole part of a block's
/// index times the reciprocal that the driver passes (`ptxas` makes this of `%clusterid`).
fn cluster_index(builder: &Builder<'_>, f: Pure, product: NodeId) -> Option<u8> {
    let Pure::FloatToInt { signed: false, bits: 32, from_wide: false, round: Rounding::Zero, .. } = f else {
        return None;
    };
    let Kind::Pure(Pure::FloatMul { wide: false, .. }, [x, y, _]) = builder.g.node(product).kind else { return None };
    [(x, y), (y, x)].into_iter().find_map(|(index, reciprocal)| {
        let Kind::Special(Special::ClusterReciprocal(axis)) = builder.g.node(reciprocal).kind else { return None };
        let converted = Pure::IntToFloat { signed: false, from_wide: false, wide: false, round: Rounding::Nearest };
        let Kind::Pure(how, [block, ..]) = builder.g.node(index).kind else { return None };
        let is_own = how == converted && builder.g.node(block).kind == Kind::Special(Special::Ctaid(axis));
        is_own.then_some(axis)
    })
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
