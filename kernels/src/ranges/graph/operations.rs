//! What one instruction computes, as a node.
//!
//! Owns the translation of 32-bit and 64-bit operations. Does not translate predicates
//! (`predicates`) or the two halves of a 64-bit value (`pairing`).

use super::build::Builder;
use super::node::{Kind, LaneChoice, NodeId, Width};
use super::ssa::Def;
use crate::ir::{Addr, Class, Mem, MemSpace, Op, Prefix, Pure, Reason, Src, SrcOperand};
use smallvec::SmallVec;

impl Builder<'_> {
    /// Value of an instruction taken as executed.
    pub(crate) fn body(&mut self, d: Def, w: Width) -> NodeId {
        let n = self.computed(d, w);
        self.note(d, n);
        n
    }

    /// Remembers which instruction makes a value that is not followed.
    pub(crate) fn note(&mut self, d: Def, n: NodeId) {
        if matches!(self.g.node(n).kind, Kind::Opaque(_) | Kind::Loaded(_) | Kind::Bounded(..))
            && let Some(inst) = self.ssa.inst(d)
        {
            self.g.made_at.entry(n).or_insert(inst.at);
        }
    }

    fn computed(&mut self, d: Def, w: Width) -> NodeId {
        let Def::Inst { b, i, part, .. } = d else { return self.opaque(Reason::Instruction, w, 0) };
        let Some(inst) = self.ssa.inst(d) else { return self.opaque(Reason::Instruction, w, b) };
        let s: SmallVec<[SrcOperand; 4]> = inst.srcs.clone();
        let o = |bld: &mut Self, k: usize| match s.get(k) {
            Some(x) => bld.operand_w(x, w, b, i),
            None => bld.konst(0, w),
        };
        match inst.op {
            Op::Mov => self.operand_w(&s[part as usize], w, b, i),
            Op::Add if part == 0 => {
                let t: SmallVec<[(NodeId, i64); 3]> = (0..s.len()).map(|k| (o(self, k), 1)).collect();
                self.lin(&t, 0, w, b)
            }
            Op::Mad if part == 0 => {
                let (x, y, z) = (o(self, 0), o(self, 1), o(self, 2));
                let p = self.product(x, y, w, b);
                self.lin(&[(p, 1), (z, 1)], 0, w, b)
            }
            Op::MadWide { signed } if part == 0 => {
                let x = self.operand32(&s[0], b, i);
                let y = self.operand32(&s[1], b, i);
                let z = self.operand64(&s[2], b, i);
                let p = match (self.const_of(x), self.const_of(y)) {
                    (_, Some(c)) => {
                        let x = self.extend(signed, x, b);
                        self.lin(&[(x, widen(signed, c))], 0, Width::W64, b)
                    }
                    (Some(c), _) => {
                        let y = self.extend(signed, y, b);
                        self.lin(&[(y, widen(signed, c))], 0, Width::W64, b)
                    }
                    _ => self.add(Kind::MulWide(signed, x, y), Width::W64, b),
                };
                self.lin(&[(p, 1), (z, 1)], 0, Width::W64, b)
            }
            Op::MulHi { signed } if part == 0 => {
                let (x, y) = (o(self, 0), o(self, 1));
                // The addend is 64 bits wide: division by a constant or a prepared divisor adds the
                // dividend to the high word.
                let z = match s.get(2) {
                    Some(z) if !z.is_imm(0) => self.operand64(z, b, i),
                    _ => self.konst(0, Width::W64),
                };
                if self.const_of(z) == Some(0) {
                    self.add(Kind::MulHi(signed, x, y), w, b)
                } else if w == Width::W32 {
                    let p = self.add(Kind::MulWide(signed, x, y), Width::W64, b);
                    let sum = self.lin(&[(p, 1), (z, 1)], 0, Width::W64, b);
                    self.add(Kind::Hi(sum), w, b)
                } else {
                    self.opaque(Reason::Bits, w, b)
                }
            }
            Op::Lea { shift } if part == 0 => {
                let (x, y) = (o(self, 0), o(self, 1));
                self.lin(&[(x, 1i64.wrapping_shl(u32::from(shift))), (y, 1)], 0, w, b)
            }
            Op::LeaHi { shift, sx, x: false } => {
                let lo = self.operand32(&s[0], b, i);
                let v = if sx {
                    self.extend(true, lo, b)
                } else {
                    let l = self.ssa.source(s[0].src, b, i);
                    let h = self.ssa.source(s.get(2).map_or(Src::Imm(0), |x| x.src), b, i);
                    if s[0].prefix == Prefix::None {
                        self.node64(l, h)
                    } else {
                        self.opaque(Reason::Bits, Width::W64, b)
                    }
                };
                let v = self.lin(&[(v, 1i64.wrapping_shl(u32::from(shift)))], 0, Width::W64, b);
                let h = self.high(v, b);
                let y = self.operand32(&s[1], b, i);
                self.lin(&[(h, 1), (y, 1)], 0, Width::W32, b)
            }
            Op::AddX | Op::LeaHi { x: true, .. } | Op::MadX => self.lone_high(d, b),
            Op::Funnel { right, hi, signed, wide, wraps } => {
                self.funnel(&s, Pure::Funnel { right, hi, signed, wide, wraps }, b, i)
            }
            Op::Shl => {
                let x = o(self, 0);
                let n = self.operand32(&s[1], b, i);
                self.shl(x, n, w, b)
            }
            Op::Shr { signed } => {
                let x = o(self, 0);
                let n = self.operand32(&s[1], b, i);
                self.add(Kind::Shr(signed, x, n), w, b)
            }
            Op::Lop3 { lut } if part == 0 => {
                let (x, y, z) = (o(self, 0), o(self, 1), o(self, 2));
                self.add(Kind::Lop3(lut, x, y, z), w, b)
            }
            Op::MinMax { signed } => {
                let (x, y) = (o(self, 0), o(self, 1));
                let p = self.pred_operand(&s[2], b, i);
                match self.const_of(p) {
                    Some(c) => self.add(Kind::MinMax(c != 0, signed, x, y), w, b),
                    None => {
                        let m = self.add(Kind::MinMax(true, signed, x, y), w, b);
                        let n = self.add(Kind::MinMax(false, signed, x, y), w, b);
                        self.add(Kind::Sel(p, m, n), w, b)
                    }
                }
            }
            Op::Abs => {
                let x = o(self, 0);
                self.add(Kind::Abs(x), w, b)
            }
            Op::Sel => {
                let p = self.pred_operand(&s[2], b, i);
                let (x, y) = (o(self, 0), o(self, 1));
                match self.const_of(p) {
                    Some(0) => y,
                    Some(_) => x,
                    None => self.add(Kind::Sel(p, x, y), w, b),
                }
            }
            Op::Div { signed } => {
                let (x, y) = (o(self, 0), o(self, 1));
                self.add(Kind::Div(signed, x, y), w, b)
            }
            Op::Rem { signed } => {
                let (x, y) = (o(self, 0), o(self, 1));
                self.add(Kind::Rem(signed, x, y), w, b)
            }
            Op::Ext { bits, signed } => self.ext(&s[0], bits, signed, w, b, i),
            Op::Pack => {
                if let (Src::Var(l), Src::Var(h), Prefix::None, Prefix::None) =
                    (s[0].src, s[1].src, s[0].prefix, s[1].prefix)
                {
                    let (l, h) = (self.ssa.source(Src::Var(l), b, i), self.ssa.source(Src::Var(h), b, i));
                    return self.node64(l, h);
                }
                let l = self.ssa.source(s[0].src, b, i);
                let h = self.ssa.source(s[1].src, b, i);
                self.node64(l, h)
            }
            Op::Unpack => {
                let x = self.operand64(&s[0], b, i);
                if part == 0 { self.low(x, b) } else { self.high(x, b) }
            }
            Op::Prmt => {
                let (x, y, z) = (o(self, 0), o(self, 1), o(self, 2));
                self.add(Kind::Prmt(x, y, z), w, b)
            }
            Op::Shuffle { mode } => {
                let x = self.operand_w(&s[0], w, b, i);
                let (lane, within) = (self.operand32(&s[1], b, i), self.operand32(&s[2], b, i));
                self.add(Kind::OtherLane(x, LaneChoice { mode, lane, within }), w, b)
            }
            Op::Pure(f) => {
                let of = [0, 1, 2].map(|k| match s.get(k) {
                    Some(o) if f.is_wide(k) => self.operand64(o, b, i),
                    Some(o) => self.operand32(o, b, i),
                    None => self.konst(0, Width::W32),
                });
                self.pure(f, of, w, b)
            }
            Op::Bounded { lo, hi } => self.add(Kind::Bounded(lo, hi), w, b),
            Op::ParamIndexed { off, bytes, signed } => {
                let idx = self.operand32(&s[0], b, i);
                match self.const_of(idx) {
                    Some(c) if bytes >= 4 => {
                        let at = i64::from(off) + i64::from(c as u32 as i32) + 4 * i64::from(part);
                        let k = if w == Width::W64 { 8 } else { 4 };
                        match u16::try_from(at) {
                            Ok(at) => self.add(Kind::Param(at, k), w, b),
                            Err(_) => self.opaque(Reason::Constant, w, b),
                        }
                    }
                    _ if bytes >= 4 => {
                        let k = if w == Width::W64 { 8 } else { 4 };
                        self.add(Kind::ParamIndexed(off + 4 * i32::from(part), k, false, idx), w, b)
                    }
                    _ => self.add(Kind::ParamIndexed(off, bytes, signed, idx), w, b),
                }
            }
            Op::Mem(Mem {
                space: MemSpace::Local,
                kind: crate::ir::AccessKind::Read,
                bytes,
                addr: Addr::Sum(ref a, off),
            }) if bytes >= 4 => {
                let n = self.near_address(a, off, part, b, i);
                self.has_local = true;
                self.add(Kind::LocalLoad(n, if w == Width::W64 { 8 } else { 4 }), w, b)
            }
            Op::Mem(Mem {
                space: MemSpace::Shared,
                kind: crate::ir::AccessKind::Read,
                addr: Addr::Sum(ref parts, off),
                ..
            }) if parts.is_empty() => {
                let at = off + 4 * i64::from(part);
                let Ok(at) = u32::try_from(at) else { return self.opaque(Reason::Shared, w, b) };
                self.has_shared = true;
                self.add(Kind::SharedLoad(at, if w == Width::W64 { 8 } else { 4 }), w, b)
            }
            Op::Loaded(off) => {
                let words = self.ssa.f.class(inst.dsts[usize::from(part)]) != Class::W64;
                if w != Width::W64 {
                    return self.opaque(Reason::Loaded, w, b);
                }
                let addr = self.sum64(&s, off + if words { 4 } else { 8 } * i64::from(part), b, i);
                self.add(Kind::Loaded(addr), w, b)
            }
            Op::Mem(ref m) => {
                let r = match (m.space, m.kind) {
                    (MemSpace::Local, _) => Reason::Local,
                    (MemSpace::Shared | MemSpace::Generic, _) => Reason::Shared,
                    (_, kind) if kind.is_atomic() => Reason::AtomicResult,
                    _ => Reason::Loaded,
                };
                self.opaque(r, w, b)
            }
            Op::Rcp | Op::IntToFloat { .. } => self.opaque(Reason::Float, w, b),
            Op::Unknown(r) => self.opaque(r, w, b),
            _ => self.opaque(Reason::Instruction, w, b),
        }
    }

    /// A function of numbers, worked out where they are known.
    fn pure(&mut self, f: Pure, of: [NodeId; 3], w: Width, b: u32) -> NodeId {
        let known = of.map(|n| self.const_of(n));
        if let [Some(x), Some(y), Some(z)] = known
            && let Some(result) = f.apply([x, y, z])
        {
            return self.konst(result, w);
        }
        self.add(Kind::Pure(f, of), w, b)
    }

    pub(crate) fn near_address(&mut self, a: &[SrcOperand], off: i64, part: u8, b: u32, i: u32) -> NodeId {
        let t: SmallVec<[(NodeId, i64); 3]> = a.iter().map(|x| (self.operand32(x, b, i), 1)).collect();
        self.lin(&t, off + 4 * i64::from(part), Width::W32, b)
    }

    pub(crate) fn ext(&mut self, s: &SrcOperand, bits: u8, signed: bool, w: Width, b: u32, i: u32) -> NodeId {
        // The source is read in its own class; 64 bits out of 32 is an extension, 32 out of 64 a
        // truncation.
        let wide_src = match s.src {
            Src::Var(v) => self.ssa.f.class(v) == Class::W64,
            Src::Pair(..) | Src::Zext(_) => true,
            Src::Param { bytes, .. } => bytes == 8,
            Src::Imm(_) => w == Width::W64,
            _ => false,
        };
        let low = if wide_src {
            let x = self.operand64(s, b, i);
            if bits >= 64 && w == Width::W64 {
                return x;
            }
            self.low(x, b)
        } else {
            self.operand32(s, b, i)
        };
        let low = if bits < 32 { self.add(Kind::Ext(bits, signed, low), Width::W32, b) } else { low };
        if w == Width::W64 { self.extend(signed, low, b) } else { low }
    }

    pub(crate) fn product(&mut self, x: NodeId, y: NodeId, w: Width, b: u32) -> NodeId {
        match (self.const_of(x), self.const_of(y)) {
            (_, Some(c)) => self.lin(&[(x, coefficient(c, w))], 0, w, b),
            (Some(c), _) => self.lin(&[(y, coefficient(c, w))], 0, w, b),
            _ => self.add(Kind::Mul(x, y), w, b),
        }
    }

    pub(crate) fn shl(&mut self, x: NodeId, n: NodeId, w: Width, b: u32) -> NodeId {
        match self.const_of(n) {
            Some(c) if c >= u64::from(w.bits()) => self.konst(0, w),
            Some(c) => self.lin(&[(x, 1i64.wrapping_shl(c as u32))], 0, w, b),
            None => self.add(Kind::Shl(x, n), w, b),
        }
    }

    pub(crate) fn funnel(&mut self, s: &[SrcOperand], shift: Pure, b: u32, i: u32) -> NodeId {
        let Pure::Funnel { right, hi, signed, wide, wraps } = shift else {
            return self.opaque(Reason::Bits, Width::W32, b);
        };
        let n = self.operand32(&s[1], b, i);
        let zero_hi = s[2].is_imm(0);
        let zero_lo = s[0].is_imm(0);
        let known = self.const_of(n).is_some();
        if !known && (wraps || wide) {
            let (low, high) = (self.operand32(&s[0], b, i), self.operand32(&s[2], b, i));
            return self.pure(shift, [low, high, n], Width::W32, b);
        }
        if !right && !hi {
            // The low word of a left shift is a plain shift of s0.
            let x = self.operand32(&s[0], b, i);
            return self.shl(x, n, Width::W32, b);
        }
        if right && hi && zero_lo && !wide {
            let x = self.operand32(&s[2], b, i);
            return self.add(Kind::Shr(signed, x, n), Width::W32, b);
        }
        if right && !hi && zero_hi && !wide && !signed {
            let x = self.operand32(&s[0], b, i);
            return self.add(Kind::Shr(false, x, n), Width::W32, b);
        }
        // Through 64 bits.
        let Some(c) = self.const_of(n) else {
            let (low, high) = (self.operand32(&s[0], b, i), self.operand32(&s[2], b, i));
            return self.pure(shift, [low, high, n], Width::W32, b);
        };
        if s[0].prefix != Prefix::None || s[2].prefix != Prefix::None || c >= 64 || (!wide && c >= 32) {
            return self.opaque(Reason::Bits, Width::W32, b);
        }
        let l = self.ssa.source(s[0].src, b, i);
        let h = self.ssa.source(s[2].src, b, i);
        let v = self.node64(l, h);
        let v = if right {
            self.add_shr(signed && hi, v, c, b)
        } else {
            self.lin(&[(v, 1i64.wrapping_shl(c as u32))], 0, Width::W64, b)
        };
        if hi { self.high(v, b) } else { self.low(v, b) }
    }

    pub(crate) fn add_shr(&mut self, signed: bool, v: NodeId, c: u64, b: u32) -> NodeId {
        let n = self.konst(c, Width::W32);
        self.add(Kind::Shr(signed, v, n), Width::W64, b)
    }

    /// A high word used on its own: only when it pairs with the low word its carry comes from.
    pub(crate) fn lone_high(&mut self, d: Def, b: u32) -> NodeId {
        if let Some(n) = self.sum_without_carries(d, b) {
            return n;
        }
        let Some(lo) = self.carry_source(d) else { return self.opaque(Reason::Pairing, Width::W32, b) };
        let n = self.node64(lo, d.raw());
        match self.g.node(n).kind {
            Kind::Pack(..) | Kind::Opaque(_) => self.opaque(Reason::Pairing, Width::W32, b),
            _ => self.high(n, b),
        }
    }
}

fn widen(signed: bool, c: u64) -> i64 {
    if signed { i64::from(c as u32 as i32) } else { i64::from(c as u32) }
}

fn coefficient(c: u64, w: Width) -> i64 {
    if w == Width::W32 { i64::from(c as u32 as i32) } else { c as i64 }
}
