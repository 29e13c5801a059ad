//! Family of conversions: between floating point types, to and from integers, to packed types.

use crate::compile_sass::float::{double, single};
use device_code::sass::{Arithmetic, InstOperand, MachineInst, Opcode, SassRound};

use super::float::rounding;
use super::translation::Translation;
use crate::compile::convert::{BRAIN16, FLOAT16, FLOAT32, FLOAT64, INTEGER, NAN_TOP, NAN_ZERO, RELU, packing};
use crate::compile::function::Result;
use crate::exec::per_lane::{LaneFn, op1, op2, op2x, op3};
use crate::float::float16::{Half, Small};
use crate::float::{FTZ, eight};
use crate::operations::build;
use crate::program::{Inst, Sem, Slot};

fn format(bytes: u8) -> u32 {
    match bytes {
        2 => FLOAT16,
        4 => FLOAT32,
        _ => FLOAT64,
    }
}

/// The rounding that I2F and F2I have as a number.
fn numbered(round: u8) -> SassRound {
    [SassRound::Nearest, SassRound::Minus, SassRound::Plus, SassRound::Zero][usize::from(round & 3)]
}

/// Returns false when the instruction is of another family.
pub(super) fn convert(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::I2f { signed, round, from, to, part } => {
            let a = if from == 8 { t.pair(&i.src[0])? } else { t.raw_word(&i.src[0], 0)? };
            let a = shifted(a, 8 * from * part, t);
            let flags = rounding(numbered(round));
            let d = result_row(i, to, t);
            let inst: Inst = match (from, to, signed, flags) {
                (4, 4, true, 0) => op1(|a: i32| a as f32).is(Sem::Convert).of([a]).to(d),
                (4, 4, false, 0) => op1(|a: u32| a as f32).is(Sem::Convert).of([a]).to(d),
                (4, 8, true, _) => op1(|a: i32| f64::from(a)).is(Sem::Convert).of([a]).to(d),
                (4, 8, false, _) => op1(|a: u32| f64::from(a)).is(Sem::Convert).of([a]).to(d),
                _ => {
                    let (bits, to, signed) = (8 * u32::from(from), format(to), u32::from(signed));
                    build::IntToFloat { a, d, bits, to, signed, flags }.into()
                }
            };
            t.emit(inst);
            converted(i, d, to, t);
        }
        Opcode::F2i { signed, round, ftz, from, to, part, nan_zero } => {
            if part > 1 {
                return t.unsupported(i);
            }
            let a = float_source(&i.src[0], from, part, t)?;
            let nan = if nan_zero { NAN_ZERO } else { NAN_TOP };
            let flags = INTEGER | rounding(numbered(round)) | nan | if ftz { FTZ } else { 0 };
            let d = result_row(i, to, t);
            let (from, bits) = (format(from), 8 * u32::from(to));
            t.emit(build::FloatToInt { a, d, from, bits, signed: u32::from(signed), flags });
            converted(i, d, to, t);
            if signed && to < 4 {
                let d = t.dst(i, 0);
                let run: LaneFn = if to == 1 {
                    op1(|a: i8| i32::from(a)).is(Sem::Move)
                } else {
                    op1(|a: i16| i32::from(a)).is(Sem::Move)
                };
                t.emit(run.of([d]).to(d));
            }
        }
        Opcode::Arithmetic(op) => return convert_floats(i, op, t),
        _ => return Ok(false),
    }
    Ok(true)
}

fn convert_floats(i: &MachineInst, op: Arithmetic, t: &mut Translation<'_>) -> Result<bool> {
    match op {
        Arithmetic::Frnd { round, ftz, bytes, half } => {
            let a = float_source(&i.src[0], bytes, half, t)?;
            let flags = INTEGER | rounding(round) | if ftz { FTZ } else { 0 };
            let d = result_row(i, bytes, t);
            t.emit(build::FloatToFloat { a, d, from: format(bytes), to: format(bytes), flags });
            converted(i, d, bytes, t);
        }
        Arithmetic::F2f { round, ftz, from, to, bf16, half } => {
            let a = float_source(&i.src[0], from, half, t)?;
            let flags = rounding(round) | if ftz { FTZ } else { 0 };
            let d = result_row(i, to, t);
            let inst: Inst = match (from, to, flags) {
                (4, 8, 0) => op1(|a: f32| f64::from(a)).is(Sem::Convert).of([a]).to(d),
                (8, 4, 0) => op1(|a: f64| a as f32).is(Sem::Convert).of([a]).to(d),
                _ => {
                    let to = if bf16 { BRAIN16 } else { format(to) };
                    build::FloatToFloat { a, d, from: format(from), to, flags }.into()
                }
            };
            t.emit(inst);
            converted(i, d, to, t);
        }
        Arithmetic::I2fp { signed, round: SassRound::Zero } => {
            let (a, d) = (t.raw_word(&i.src[0], 0)?, t.dst(i, 0));
            let (signed, flags) = (u32::from(signed), rounding(SassRound::Zero));
            t.emit(build::IntToFloat { a, d, bits: 32, to: FLOAT32, signed, flags });
        }
        Arithmetic::F2ip { round } => {
            let (a, d) = (t.raw_word(&i.src[0], 0)?, t.dst(i, 0));
            let x = INTEGER | rounding(round);
            t.emit(build::FloatToInt { a, d, from: FLOAT32, bits: 8, signed: 0, flags: x });
        }
        Arithmetic::I2fp { signed, .. } => {
            let (a, d) = (t.raw_word(&i.src[0], 0)?, t.dst(i, 0));
            let run: LaneFn =
                if signed { op1(|a: i32| a as f32).is(Sem::Convert) } else { op1(|a: u32| a as f32).is(Sem::Convert) };
            t.emit(run.of([a]).to(d));
        }
        Arithmetic::F2fp { bf16, relu, round, merge } => {
            let (mut a, mut b) = (t.raw_word(&i.src[0], 0)?, t.raw_word(&i.src[1], 0)?);
            if merge {
                if !i.src[1].is_zero() {
                    return t.unsupported(i);
                }
                (a, b) = (b, a);
            }
            let x = rounding(round) | if relu { RELU } else { 0 };
            let (d, z) = (t.dst(i, 0), if bf16 { BRAIN16 } else { FLOAT16 });
            t.emit(build::PackPair { high: a, low: b, d, to: z, flags: x });
        }
        Arithmetic::PackEight { e5m2, relu, halves } => {
            let run: LaneFn = match (halves, e5m2, relu) {
                (false, false, false) => op3(singles_to_eight::<3, false>),
                (false, false, true) => op3(singles_to_eight::<3, true>),
                (false, true, false) => op3(singles_to_eight::<2, false>),
                (false, true, true) => op3(singles_to_eight::<2, true>),
                (true, false, false) => op2(halves_to_eight::<3, false>),
                (true, false, true) => op2(halves_to_eight::<3, true>),
                (true, true, false) => op2(halves_to_eight::<2, false>),
                (true, true, true) => op2(halves_to_eight::<2, true>),
            };
            let (a, b) = (t.source(i, 0)?, t.source(i, 1)?);
            let d = t.dst(i, 0);
            if halves {
                t.emit(run.of([a, b]).to(d));
            } else {
                let c = t.source(i, 2)?;
                t.emit(run.of([a, b, c]).to(d));
            }
        }
        Arithmetic::UnpackEight { e5m2, relu, high } => {
            let run: LaneFn = match (e5m2, relu) {
                (false, false) => op1(|a: u16| eight::halves(a, 3, false)),
                (false, true) => op1(|a: u16| eight::halves(a, 3, true)),
                (true, false) => op1(|a: u16| eight::halves(a, 2, false)),
                (true, true) => op1(|a: u16| eight::halves(a, 2, true)),
            };
            let a = t.source(i, 0)?;
            let a = shifted(a, if high { 16 } else { 0 }, t);
            let d = t.dst(i, 0);
            t.emit(run.of([a]).to(d));
        }
        Arithmetic::I2i { bits, signed } => {
            let (a, d) = (t.source(i, 0)?, t.dst(i, 0));
            let run: LaneFn = match (bits, signed) {
                (16, true) => op1(|a: i32| a.clamp(-0x8000, 0x7fff)),
                (16, false) => op1(|a: i32| a.clamp(0, 0xffff)),
                (_, true) => op1(|a: i32| a.clamp(-0x80, 0x7f)),
                (_, false) => op1(|a: i32| a.clamp(0, 0xff)),
            };
            t.emit(run.of([a]).to(d));
        }
        Arithmetic::I2ip { bits, signed } => {
            let Some(run) = packing(bits.into(), signed) else { return t.unsupported(i) };
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let d = t.dst(i, 0);
            t.emit(run.of([a, b, c]).to(d));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Two numbers of eight bits, and above them the low half of `c`.
fn singles_to_eight<const FRACTION: u32, const RELU: bool>(a: f32, b: f32, c: u32) -> u32 {
    c << 16 | u32::from(eight::pair(f64::from(a), f64::from(b), FRACTION, RELU))
}

fn halves_to_eight<const FRACTION: u32, const RELU: bool>(a: u32, c: u32) -> u32 {
    let [high, low] = [a >> 16, a].map(|half| f64::from(Half::widen(half as u16)));
    c << 16 | u32::from(eight::pair(high, low, FRACTION, RELU))
}

/// The row for a result of so many bytes: of 8 one that [`converted`] splits.
fn result_row(i: &MachineInst, bytes: u8, t: &mut Translation<'_>) -> Slot {
    if bytes == 8 { t.temporary() } else { t.dst(i, 0) }
}

/// Puts the result that is in the row of [`result_row`] where it belongs.
fn converted(i: &MachineInst, d: Slot, bytes: u8, t: &mut Translation<'_>) {
    if bytes == 8 {
        t.split(i, d);
    }
}

fn shifted(a: Slot, by: u8, t: &mut Translation<'_>) -> Slot {
    if by == 0 {
        return a;
    }
    let d = t.temporary();
    t.emit(op2x(|a: u32, _: u32, x| a >> x).of([a, a]).with(u64::from(by)).to(d));
    d
}

/// A floating point operand of so many bytes, of halves the one at `part`, with its sign.
fn float_source(operand: &InstOperand, bytes: u8, part: u8, t: &mut Translation<'_>) -> Result<Slot> {
    match bytes {
        8 => return double(operand, t),
        4 => return single(operand, t),
        _ => {}
    }
    let a = t.raw_word(operand, 0)?;
    let a = shifted(a, 16 * part, t);
    let run: LaneFn = match (operand.abs, operand.neg) {
        (false, false) => return Ok(a),
        (true, false) => op1(|a: u16| a & 0x7fff),
        (false, true) => op1(|a: u16| a ^ 0x8000),
        (true, true) => op1(|a: u16| a | 0x8000),
    };
    let d = t.temporary();
    t.emit(run.of([a]).to(d));
    Ok(d)
}
