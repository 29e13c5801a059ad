//! The instruction family of `cvt`.

use device_code::ptx::{Operand, Type};

use super::{Op, bits};
use crate::compile::function::{Result, Scope};
use crate::exec::per_lane::{LaneFn, each, op1, op2, op2x, op3};
use crate::float::float16::{Brain, Half, Small};
use crate::float::{eight, *};
use crate::operations::build;
use crate::operations::operands;
use crate::program::{Inst, Next, Sem};
use crate::warp::Warp;

/// Bit of the constant: round to an integer in the float's own format, or on the way to an integer.
pub(crate) const INTEGER: u64 = 16;
/// Bit of the constant: results below zero become zero.
pub(crate) const RELU: u64 = 32;
/// Bit of the constant: what is too large becomes the largest finite number.
const FINITE: u64 = 64;

fn flags(op: Op<'_>) -> u64 {
    let mode = op.parts.iter().find_map(|part| match part.as_str() {
        "rn" | "rna" => Some(0),
        "rz" => Some(1),
        "rm" => Some(2),
        "rp" => Some(3),
        "rni" => Some(INTEGER),
        "rzi" => Some(INTEGER | 1),
        "rmi" => Some(INTEGER | 2),
        "rpi" => Some(INTEGER | 3),
        _ => None,
    });
    let mode = mode.unwrap_or_default();
    let bit = |name: &str, bit: u64| if op.has(name) { bit } else { 0 };
    mode | bit("ftz", FTZ) | bit("sat", SAT) | bit("relu", RELU) | bit("satfinite", FINITE)
}

fn is_float(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::Bf16 | Type::F32 | Type::F64)
}

fn is_signed(ty: Type) -> bool {
    matches!(ty, Type::S8 | Type::S16 | Type::S32 | Type::S64)
}

/// Rounds to an integer.
fn integral(a: f64, x: u64) -> f64 {
    match Rounding::from_code(x) {
        Rounding::Nearest => a.round_ties_even(),
        Rounding::Zero => a.trunc(),
        Rounding::Down => a.floor(),
        Rounding::Up => a.ceil(),
    }
}

/// An integer as a double, rounded to odd where it does not fit.
fn int_to_odd(value: i128) -> f64 {
    let near = value as f64;
    let error = value - near as i128;
    if error == 0 || near.to_bits() & 1 != 0 {
        return near;
    }
    if (error > 0) == (near > 0.0) { f64::from_bits(near.to_bits() | 1) } else { f64::from_bits(near.to_bits() - 1) }
}

/// A double from an integer, rounded as asked.
fn int_to_double(value: i128, mode: Rounding) -> f64 {
    let near = value as f64;
    let error = value - near as i128;
    match mode {
        Rounding::Down if error < 0 => near.next_down(),
        Rounding::Up if error > 0 => near.next_up(),
        Rounding::Zero if error < 0 && near > 0.0 => near.next_down(),
        Rounding::Zero if error > 0 && near < 0.0 => near.next_up(),
        _ => near,
    }
}

/// Reads a register as a float of its type.
fn read_float(value: u64, ty: u32, x: u64) -> f64 {
    match ty {
        FLOAT16 => f64::from(Half::widen(value as u16)),
        BRAIN16 => f64::from(Brain::widen(value as u16)),
        // What flushes makes the hardware's NaN, too.
        FLOAT32 if x & FTZ != 0 => f64::from(output(f32::from_bits(value as u32), FTZ)),
        FLOAT32 => f64::from(f32::from_bits(value as u32)),
        _ => f64::from_bits(value),
    }
}

/// Writes a float in the format of its type.
fn write_float(value: f64, ty: u32, x: u64) -> u64 {
    let mode = if x & INTEGER != 0 { Rounding::Nearest } else { Rounding::from_code(x) };
    let value = if x & SAT != 0 { saturate64(value) } else { value };
    let value = if x & RELU != 0 && !value.is_nan() && value <= 0.0 { 0.0 } else { value };
    match ty {
        FLOAT16 => {
            let bits = Half::cut(value, mode);
            u64::from(if x & FINITE != 0 && bits & 0x7fff == 0x7c00 { bits - 1 } else { bits })
        }
        BRAIN16 => {
            let bits = Brain::cut(value, mode);
            u64::from(if x & FINITE != 0 && bits & 0x7fff == 0x7f80 { bits - 1 } else { bits })
        }
        FLOAT32 => u64::from(output(narrow(value, mode), x & FTZ).to_bits()),
        _ if value.is_nan() => quiet(value).to_bits(),
        _ => value.to_bits(),
    }
}

/// Bits of the constant: a NaN becomes zero, or the integer with its top bit set; without either it
/// is as PTX has it for the types.
pub(crate) const NAN_ZERO: u64 = 128;
pub(crate) const NAN_TOP: u64 = 256;

pub(crate) const FLOAT16: u32 = 0;
pub(crate) const BRAIN16: u32 = 1;
pub(crate) const FLOAT32: u32 = 2;
pub(crate) const FLOAT64: u32 = 3;

fn format(ty: Type) -> u32 {
    match ty {
        Type::F16 => FLOAT16,
        Type::Bf16 => BRAIN16,
        Type::F32 => FLOAT32,
        _ => FLOAT64,
    }
}

/// Float to float.
#[inline(never)]
pub(crate) fn float_to_float(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::FloatToFloat::of(i);
    each(mask, |l| {
        let mut value = read_float(w.get(i.a(), l), i.from(), i.flags());
        if i.flags() & INTEGER != 0 {
            value = integral(value, i.flags());
        }
        let made = match (i.from(), i.to()) {
            // A NaN keeps its sign and upper bits (measured on an H100).
            (FLOAT64, FLOAT32) if value.is_nan() => {
                let bits = value.to_bits();
                bits >> 32 & 0x8000_0000 | 0x7fc0_0000 | bits >> 29 & 0x3f_ffff
            }
            _ => write_float(value, i.to(), i.flags()),
        };
        w.set(i.d(), l, made);
    });
    Next::Step
}

/// Two singles as a pair of halves, rounded to nearest.
#[inline(always)]
fn pair_of<S: Small>(high: f32, low: f32) -> u32 {
    u32::from(S::cut_single(high)) << 16 | u32::from(S::cut_single(low))
}

/// Two singles to a packed pair.
#[inline(never)]
pub(crate) fn pack_pair(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::PackPair::of(i);
    each(mask, |l| {
        let high = write_float(read_float(w.get(i.high(), l), FLOAT32, i.flags()), i.to(), i.flags());
        let low = write_float(read_float(w.get(i.low(), l), FLOAT32, i.flags()), i.to(), i.flags());
        w.set(i.d(), l, low | high << 16);
    });
    Next::Step
}

/// Float to integer.
#[inline(never)]
pub(crate) fn float_to_int(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::FloatToInt::of(i);
    let (width, signed) = (i.bits(), i.signed() == 1);
    let ones = u64::MAX >> (64 - width);
    // What a NaN becomes.
    let zero = i.flags() & NAN_ZERO != 0 || i.flags() & NAN_TOP == 0 && i.from() != FLOAT64 && width < 64;
    let nan = if zero { 0 } else { 1 << (width - 1) };
    let (low, high) =
        if signed { (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1) } else { (0, (1i128 << width) - 1) };
    each(mask, |l| {
        let value = read_float(w.get(i.a(), l), i.from(), i.flags());
        let out =
            if value.is_nan() { nan } else { (integral(value, i.flags()) as i128).clamp(low, high) as u64 & ones };
        w.set(i.d(), l, out);
    });
    Next::Step
}

/// Integer to float.
#[inline(never)]
pub(crate) fn int_to_float(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::IntToFloat::of(i);
    let (width, signed) = (i.bits(), i.signed() == 1);
    each(mask, |l| {
        let value = w.get(i.a(), l);
        let value = if signed {
            i128::from((value << (64 - width)) as i64 >> (64 - width))
        } else {
            i128::from(value & (u64::MAX >> (64 - width)))
        };
        let out = if i.to() == FLOAT64 {
            int_to_double(value, Rounding::from_code(i.flags())).to_bits()
        } else {
            write_float(int_to_odd(value), i.to(), i.flags())
        };
        w.set(i.d(), l, out);
    });
    Next::Step
}

/// Integer to integer, saturated.
#[inline(never)]
pub(crate) fn int_to_int(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::IntToInt::of(i);
    let (low, high) = match i.to_signed() {
        1 => (-(1i128 << (i.to_bits() - 1)), (1i128 << (i.to_bits() - 1)) - 1),
        _ => (0, (1i128 << i.to_bits()) - 1),
    };
    each(mask, |l| {
        let value = w.get(i.a(), l);
        let value = if i.from_signed() == 1 {
            i128::from((value << (64 - i.from_bits())) as i64 >> (64 - i.from_bits()))
        } else {
            i128::from(value & (u64::MAX >> (64 - i.from_bits())))
        };
        w.set(i.d(), l, value.clamp(low, high) as u64 & i.kept());
    });
    Next::Step
}

/// Integer to integer without saturation: extended by the source's sign, cut to the bits of `x`.
fn extend(from: Type) -> LaneFn {
    match from {
        Type::S8 => op2x(|a: i8, _: u8, x| a as i64 as u64 & x).is(Sem::MoveMasked),
        Type::S16 => op2x(|a: i16, _: u8, x| a as i64 as u64 & x).is(Sem::MoveMasked),
        Type::S32 => op2x(|a: i32, _: u8, x| a as i64 as u64 & x).is(Sem::MoveMasked),
        Type::U8 | Type::B8 => op2x(|a: u8, _: u8, x| u64::from(a) & x).is(Sem::MoveMasked),
        Type::U16 | Type::B16 => op2x(|a: u16, _: u8, x| u64::from(a) & x).is(Sem::MoveMasked),
        Type::U32 | Type::B32 => op2x(|a: u32, _: u8, x| u64::from(a) & x).is(Sem::MoveMasked),
        _ => op2x(|a: u64, _: u8, x| a & x).is(Sem::MoveMasked),
    }
}

/// Two integers clamped to a small type and packed, the first one higher; above them is what the
/// third has lowest. `cvt.pack`, I2IP.
pub(crate) fn packing(bits: u32, signed: bool) -> Option<LaneFn> {
    fn pack<const BITS: u32, const SIGNED: bool>(a: i32, b: i32, c: u32) -> u32 {
        let (low, high) = if SIGNED { (-1 << (BITS - 1), (1 << (BITS - 1)) - 1) } else { (0, (1 << BITS) - 1) };
        let cut = |value: i32| value.clamp(low, high) as u32 & ((1 << BITS) - 1);
        c.checked_shl(2 * BITS).unwrap_or(0) | cut(a) << BITS | cut(b)
    }
    Some(match (bits, signed) {
        (16, false) => op3(pack::<16, false>),
        (16, true) => op3(pack::<16, true>),
        (8, false) => op3(pack::<8, false>),
        (8, true) => op3(pack::<8, true>),
        (4, false) => op3(pack::<4, false>),
        (4, true) => op3(pack::<4, true>),
        (2, false) => op3(pack::<2, false>),
        (2, true) => op3(pack::<2, true>),
        _ => return None,
    })
}

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn convert(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        if op.name() == "szext" || op.name() != "cvt" {
            return Ok(false);
        }
        if op.has("pack") {
            return self.pack_saturated(op, operands);
        }
        if op.has("tf32") {
            return self.convert_tf32(op, operands);
        }
        if op.parts.iter().any(|part| matches!(part.as_str(), "e4m3x2" | "e5m2x2")) {
            return self.convert_eight(op, operands);
        }
        let mut types = op.types();
        let (Some(to), Some(from)) = (types.next(), types.next()) else { return self.unsupported(op) };
        let x = flags(op);
        if matches!(to, Type::F16x2 | Type::Bf16x2) {
            if from != Type::F32 || operands.len() != 3 {
                return self.unsupported(op);
            }
            let (a, b) = (self.src(operands.get(1), from)?, self.src(operands.get(2), from)?);
            let d = self.dst(operands.first())?;
            let z = if to == Type::F16x2 { FLOAT16 } else { BRAIN16 };
            self.emit(match (to, x) {
                (Type::F16x2, 0) => op2(|a: f32, b: f32| pair_of::<Half>(a, b)).of([a, b]).to(d),
                (Type::Bf16x2, 0) => op2(|a: f32, b: f32| pair_of::<Brain>(a, b)).of([a, b]).to(d),
                _ => build::PackPair { high: a, low: b, d, to: z, flags: x }.into(),
            });
            return Ok(true);
        }
        let a = self.src(operands.get(1), from)?;
        let d = self.dst(operands.first())?;
        // A signed result fills the register it goes to.
        let register = operands.first().and_then(|operand| self.register_type(operand)).map_or(bits(to), bits);
        let (from_bits, to_bits) = (bits(from), bits(to));
        let inst: Inst = match (is_float(from), is_float(to)) {
            (true, true) => match (from, to, x) {
                (Type::F32, Type::F64, 0) => op1(|a: f32| f64::from(a)).is(Sem::Convert).of([a]).to(d),
                (Type::F64, Type::F32, 0) => op1(|a: f64| a as f32).is(Sem::Convert).of([a]).to(d),
                (Type::F32, Type::F16, 0) => op1(|a: f32| Half::cut_single(a)).of([a]).to(d),
                (Type::F32, Type::Bf16, 0) => op1(|a: f32| Brain::cut_single(a)).of([a]).to(d),
                (Type::F16, Type::F32, 0) => op1(|a: u16| output(Half::widen(a), 0)).of([a]).to(d),
                // A shift, of NaNs too (measured on an H100).
                (Type::Bf16, Type::F32, 0) => op1(|a: u16| u32::from(a) << 16).of([a]).to(d),
                _ => build::FloatToFloat { a, d, from: format(from), to: format(to), flags: x }.into(),
            },
            (true, false) => match (from, to, x) {
                (Type::F32, Type::S32, x) if x == INTEGER | 1 => op1(|a: f32| a as i32).is(Sem::Convert).of([a]).to(d),
                (Type::F32, Type::U32, x) if x == INTEGER | 1 => op1(|a: f32| a as u32).is(Sem::Convert).of([a]).to(d),
                _ => {
                    let signed = u32::from(is_signed(to));
                    build::FloatToInt { a, d, from: format(from), bits: to_bits, signed, flags: x }.into()
                }
            },
            (false, true) => match (from, to, x) {
                (Type::S32, Type::F32, 0) => op1(|a: i32| a as f32).is(Sem::Convert).of([a]).to(d),
                (Type::U32, Type::F32, 0) => op1(|a: u32| a as f32).is(Sem::Convert).of([a]).to(d),
                (Type::S32, Type::F64, 0) => op1(|a: i32| f64::from(a)).is(Sem::Convert).of([a]).to(d),
                (Type::U32, Type::F64, 0) => op1(|a: u32| f64::from(a)).is(Sem::Convert).of([a]).to(d),
                _ => {
                    let signed = u32::from(is_signed(from));
                    build::IntToFloat { a, d, bits: from_bits, to: format(to), signed, flags: x }.into()
                }
            },
            (false, false) => {
                let keep = if is_signed(to) && is_signed(from) { register.max(to_bits) } else { to_bits };
                let ones = u64::MAX >> (64 - keep.min(64));
                if x & SAT != 0 {
                    let (from_signed, to_signed) = (u32::from(is_signed(from)), u32::from(is_signed(to)));
                    build::IntToInt { a, d, from_bits, to_bits, from_signed, to_signed, kept: ones }.into()
                } else if is_signed(to) && register > to_bits {
                    // Cut to the type first, then extended to the register by its sign.
                    let narrow = if from_bits <= to_bits { from } else { to };
                    let ones = u64::MAX >> (64 - register.min(64));
                    extend(narrow).of([a, a]).with(ones).to(d)
                } else {
                    extend(from).of([a, a]).with(u64::MAX >> (64 - to_bits.min(64))).to(d)
                }
            }
        };
        // A narrow signed result of a float is extended as well.
        let widen = is_float(from) && is_signed(to) && register > to_bits;
        self.emit(inst);
        if widen {
            let ones = u64::MAX >> (64 - register.min(64));
            self.emit(extend(to).of([d, d]).with(ones).to(d));
        }
        Ok(true)
    }

    /// Pairs of numbers of eight bits, from singles or halves and to halves.
    fn convert_eight(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        fn of_singles<const FRACTION: u32, const RELU: bool>(a: f32, b: f32) -> u16 {
            eight::pair(f64::from(a), f64::from(b), FRACTION, RELU)
        }
        fn of_halves<const FRACTION: u32, const RELU: bool>(a: u32) -> u16 {
            let [high, low] = [a >> 16, a].map(|half| f64::from(Half::widen(half as u16)));
            eight::pair(high, low, FRACTION, RELU)
        }
        fn to_halves<const FRACTION: u32, const RELU: bool>(a: u16) -> u32 {
            eight::halves(a, FRACTION, RELU)
        }
        let words: Vec<&str> = op.parts[1..].iter().map(String::as_str).filter(|&part| part != "relu").collect();
        let relu = op.has("relu");
        let run = match (&words[..], relu) {
            (["rn", "satfinite", "e4m3x2", "f32"], false) => op2(of_singles::<3, false>),
            (["rn", "satfinite", "e4m3x2", "f32"], true) => op2(of_singles::<3, true>),
            (["rn", "satfinite", "e5m2x2", "f32"], false) => op2(of_singles::<2, false>),
            (["rn", "satfinite", "e5m2x2", "f32"], true) => op2(of_singles::<2, true>),
            (["rn", "satfinite", "e4m3x2", "f16x2"], false) => op1(of_halves::<3, false>),
            (["rn", "satfinite", "e4m3x2", "f16x2"], true) => op1(of_halves::<3, true>),
            (["rn", "satfinite", "e5m2x2", "f16x2"], false) => op1(of_halves::<2, false>),
            (["rn", "satfinite", "e5m2x2", "f16x2"], true) => op1(of_halves::<2, true>),
            (["rn", "f16x2", "e4m3x2"], false) => op1(to_halves::<3, false>),
            (["rn", "f16x2", "e4m3x2"], true) => op1(to_halves::<3, true>),
            (["rn", "f16x2", "e5m2x2"], false) => op1(to_halves::<2, false>),
            (["rn", "f16x2", "e5m2x2"], true) => op1(to_halves::<2, true>),
            _ => return self.unsupported(op),
        };
        let d = self.dst(operands.first())?;
        if words.last() == Some(&"f32") {
            let (a, b) = (self.src(operands.get(1), Type::F32)?, self.src(operands.get(2), Type::F32)?);
            self.emit(run.of([a, b]).to(d));
        } else {
            let ty = if words[1] == "f16x2" { Type::B16 } else { Type::B32 };
            let a = self.src(operands.get(1), ty)?;
            self.emit(run.of([a]).to(d));
        }
        Ok(true)
    }

    /// `cvt.rna.tf32.f32`: a single whose lower 13 fraction bits are zero.
    fn convert_tf32(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        let a = self.src(operands.get(1), Type::F32)?;
        let d = self.dst(operands.first())?;
        if op.has("satfinite") || op.has("relu") {
            return self.unsupported(op);
        }
        let run = if op.has("rna") {
            op1(|a: u32| (if a & 0x7f80_0000 == 0x7f80_0000 { a } else { a.wrapping_add(0x1000) }) & !0x1fff)
        } else if op.has("rz") {
            op1(|a: u32| a & !0x1fff)
        } else {
            op1(|a: u32| {
                let even = 0xfff + (a >> 13 & 1);
                if a & 0x7f80_0000 == 0x7f80_0000 { a } else { a.wrapping_add(even) & !0x1fff }
            })
        };
        self.emit(run.of([a]).to(d));
        Ok(true)
    }

    /// `cvt.pack.sat.u8.s32.b32 d, a, b, c` and its kin.
    fn pack_saturated(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        let run = op.parts.get(3).and_then(|to| {
            let (sign, bits) = to.split_at_checked(1)?;
            packing(bits.parse().ok()?, sign == "s")
        });
        let Some(run) = run else { return self.unsupported(op) };
        let (a, b) = (self.src(operands.get(1), Type::S32)?, self.src(operands.get(2), Type::S32)?);
        let c = if operands.len() > 3 { self.src(operands.get(3), Type::B32)? } else { self.c.constant(0) };
        let d = self.dst(operands.first())?;
        self.emit(run.of([a, b, c]).to(d));
        Ok(true)
    }
}
