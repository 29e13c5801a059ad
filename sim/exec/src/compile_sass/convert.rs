//! Family of conversions: between floating point types, to and from integers, to packed types.

use crate::compile_sass::float::{double, single};
use device_code::sass::{Arithmetic, InstOperand, MachineInst, Opcode, SassRound};

use super::float::rounding;
use super::translation::Translation;
use crate::compile::convert::{BRAIN16, FLOAT16, FLOAT32, FLOAT64, INTEGER, NAN_TOP, NAN_ZERO, RELU, packing};
use crate::compile::function::Result;
use crate::compile::{blank, lane};
use crate::exec::per_lane::{LaneFn, op1, op2x};
use crate::float::FTZ;
use crate::program::{Inst, Operation, Sem, Slot};

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
            let x = rounding(numbered(round));
            let inst = match (from, to, signed, x) {
                (4, 4, true, 0) => Inst { a, ..lane(op1(|a: i32| a as f32).is(Sem::Convert)) },
                (4, 4, false, 0) => Inst { a, ..lane(op1(|a: u32| a as f32).is(Sem::Convert)) },
                (4, 8, true, _) => Inst { a, ..lane(op1(|a: i32| f64::from(a)).is(Sem::Convert)) },
                (4, 8, false, _) => Inst { a, ..lane(op1(|a: u32| f64::from(a)).is(Sem::Convert)) },
                _ => {
                    let b = Slot(u32::from(signed));
                    Inst { a, b, x, y: 8 * u32::from(from), z: format(to), ..blank(Operation::IntToFloat) }
                }
            };
            converted(i, inst, to, t);
        }
        Opcode::F2i { signed, round, ftz, from, to, part, nan_zero } => {
            if part > 1 {
                return t.unsupported(i);
            }
            let a = float_source(&i.src[0], from, part, t)?;
            let nan = if nan_zero { NAN_ZERO } else { NAN_TOP };
            let x = INTEGER | rounding(numbered(round)) | nan | if ftz { FTZ } else { 0 };
            let b = Slot(u32::from(signed));
            let z = 8 * u32::from(to);
            converted(i, Inst { a, b, x, y: format(from), z, ..blank(Operation::FloatToInt) }, to, t);
            if signed && to < 4 {
                let d = t.dst(i, 0);
                let run: LaneFn = if to == 1 {
                    op1(|a: i8| i32::from(a)).is(Sem::Move)
                } else {
                    op1(|a: i16| i32::from(a)).is(Sem::Move)
                };
                t.emit(Inst { d, a: d, ..lane(run) });
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
            let x = INTEGER | rounding(round) | if ftz { FTZ } else { 0 };
            let (y, z) = (format(bytes), format(bytes));
            converted(i, Inst { a, x, y, z, ..blank(Operation::FloatToFloat) }, bytes, t);
        }
        Arithmetic::F2f { round, ftz, from, to, bf16, half } => {
            let a = float_source(&i.src[0], from, half, t)?;
            let x = rounding(round) | if ftz { FTZ } else { 0 };
            let inst = match (from, to, x) {
                (4, 8, 0) => Inst { a, ..lane(op1(|a: f32| f64::from(a)).is(Sem::Convert)) },
                (8, 4, 0) => Inst { a, ..lane(op1(|a: f64| a as f32).is(Sem::Convert)) },
                _ => {
                    let z = if bf16 { BRAIN16 } else { format(to) };
                    Inst { a, x, y: format(from), z, ..blank(Operation::FloatToFloat) }
                }
            };
            converted(i, inst, to, t);
        }
        Arithmetic::I2fp { signed, round: SassRound::Zero } => {
            let (a, d) = (t.raw_word(&i.src[0], 0)?, t.dst(i, 0));
            let (b, x) = (Slot(u32::from(signed)), rounding(SassRound::Zero));
            t.emit(Inst { d, a, b, x, y: 32, z: FLOAT32, ..blank(Operation::IntToFloat) });
        }
        Arithmetic::F2ip { round } => {
            let (a, d) = (t.raw_word(&i.src[0], 0)?, t.dst(i, 0));
            let x = INTEGER | rounding(round);
            t.emit(Inst { d, a, b: Slot(0), x, y: FLOAT32, z: 8, ..blank(Operation::FloatToInt) });
        }
        Arithmetic::I2fp { signed, .. } => {
            let (a, d) = (t.raw_word(&i.src[0], 0)?, t.dst(i, 0));
            let run: LaneFn =
                if signed { op1(|a: i32| a as f32).is(Sem::Convert) } else { op1(|a: u32| a as f32).is(Sem::Convert) };
            t.emit(Inst { d, a, ..lane(run) });
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
            t.emit(Inst { d, a, b, x, z, ..blank(Operation::PackPair) });
        }
        Arithmetic::I2i { bits, signed } => {
            let (a, d) = (t.source(i, 0)?, t.dst(i, 0));
            let run: LaneFn = match (bits, signed) {
                (16, true) => op1(|a: i32| a.clamp(-0x8000, 0x7fff)),
                (16, false) => op1(|a: i32| a.clamp(0, 0xffff)),
                (_, true) => op1(|a: i32| a.clamp(-0x80, 0x7f)),
                (_, false) => op1(|a: i32| a.clamp(0, 0xff)),
            };
            t.emit(Inst { d, a, ..lane(run) });
        }
        Arithmetic::I2ip { bits, signed } => {
            let Some(run) = packing(bits.into(), signed) else { return t.unsupported(i) };
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let d = t.dst(i, 0);
            t.emit(Inst { d, a, b, c, ..lane(run) });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Emits an instruction whose result has so many bytes.
fn converted(i: &MachineInst, inst: Inst, bytes: u8, t: &mut Translation<'_>) {
    if bytes == 8 {
        let d = t.temporary();
        t.emit(Inst { d, ..inst });
        t.split(i, d);
    } else {
        let d = t.dst(i, 0);
        t.emit(Inst { d, ..inst });
    }
}

fn shifted(a: Slot, by: u8, t: &mut Translation<'_>) -> Slot {
    if by == 0 {
        return a;
    }
    let d = t.temporary();
    t.emit(Inst { d, a, b: a, x: u64::from(by), ..lane(op2x(|a: u32, _: u32, x| a >> x)) });
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
    t.emit(Inst { d, a, ..lane(run) });
    Ok(d)
}
