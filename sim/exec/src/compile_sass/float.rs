//! Family of single and double precision: sums, products, minima, comparisons, the special function
//! unit.

use device_code::sass::{Arithmetic, BoolOp, FloatMode, InstOperand, MachineInst, Opcode, SassRound, Value};

use super::translation::Translation;
use crate::compile::function::Result;
use crate::exec::per_lane::{LaneFn, op1, op2, op2x, op3, op3x};
use crate::exec_sass::floats::BOP;
use crate::float::approximate::{Approximation, SpecialFunction, special, special_double};
use crate::float::*;
use crate::operations::build::{self, Build};
use crate::program::{Pred, Sem, Slot};

/// A rounding mode as the functions of `float` have it.
pub(super) fn rounding(round: SassRound) -> u64 {
    match round {
        SassRound::Nearest => 0,
        SassRound::Zero => 1,
        SassRound::Minus => 2,
        SassRound::Plus => 3,
    }
}

/// How a comparison is combined, as the functions of `exec_sass` have it.
pub(super) fn combining(bop: BoolOp) -> u32 {
    match bop {
        BoolOp::And => 0,
        BoolOp::Or => 1,
        BoolOp::Xor => 2,
    }
}

fn flags(mode: FloatMode) -> u64 {
    rounding(mode.round) | if mode.ftz { FTZ } else { 0 } | if mode.sat { SAT } else { 0 }
}

/// Whether an operand of FMNMX.XORSIGN is taken without its sign.
fn is_magnitude(operand: &InstOperand) -> bool {
    match operand.value {
        Value::Imm(value) => value & 0x8000_0000 == 0,
        _ => operand.abs && !operand.neg,
    }
}

/// Returns false when the instruction is of another family.
pub(super) fn floating(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::Fsetp { cmp, bop, wide, ftz } => compare_floats(i, cmp, bop, wide, ftz, t)?,
        Opcode::Mufu { func, half, part } => mufu(i, func, half, part, t)?,
        Opcode::Arithmetic(op) => return arithmetic(i, op, t),
        _ => return Ok(false),
    }
    Ok(true)
}

fn arithmetic(i: &MachineInst, op: Arithmetic, t: &mut Translation<'_>) -> Result<bool> {
    match op {
        Arithmetic::Fadd(mode) => {
            let plain = flags(mode) == 0;
            let run = match plain {
                true => op2(|a: f32, b: f32| output(a + b, 0)).is(Sem::FloatAdd),
                false => op2x(|a: f32, b: f32, x| output(add32(input(a, x), input(b, x), Rounding::from_code(x)), x))
                    .is(Sem::FlagAdd),
            };
            single_op(i, run, flags(mode), t)?;
        }
        Arithmetic::Fmul { mode, fmz: false, scale } if scale != 0 => {
            // Products of singles are exact in a double.
            let x = flags(mode) | ((0x3ff + i64::from(scale)) as u64) << 52;
            let run = op2x(|a: f32, b: f32, x| {
                let scale = f64::from_bits(x & !0xffff);
                let product = f64::from(input(a, x)) * f64::from(input(b, x)) * scale;
                output(narrow(product, Rounding::from_code(x)), x)
            });
            single_op(i, run, x, t)?;
        }
        Arithmetic::Fmul { mode, fmz: false, .. } => {
            let plain = flags(mode) == 0;
            let run = match plain {
                true => op2(|a: f32, b: f32| output(a * b, 0)).is(Sem::FloatMul),
                false => op2x(|a: f32, b: f32, x| output(mul32(input(a, x), input(b, x), Rounding::from_code(x)), x))
                    .is(Sem::FlagMul),
            };
            single_op(i, run, flags(mode), t)?;
        }
        Arithmetic::Ffma { mode, fmz: false } => {
            let plain = flags(mode) == 0;
            let run = match plain {
                true => op3(|a: f32, b: f32, c: f32| output(a.mul_add(b, c), 0)).is(Sem::FloatFma),
                false => op3x(|a: f32, b: f32, c: f32, x| {
                    output(fma32(input(a, x), input(b, x), input(c, x), Rounding::from_code(x)), x)
                })
                .is(Sem::FlagFma),
            };
            single_op(i, run, flags(mode), t)?;
        }
        Arithmetic::Fmnmx { nan: true, xorsign: true, .. } => return t.unsupported(i),
        Arithmetic::Fmnmx { ftz, nan, xorsign } => {
            let x = if ftz { FTZ } else { 0 };
            let (min, max) = match nan {
                _ if xorsign => (
                    op2x(|a: f32, b: f32, x| with_sign_of_product(a, b, min32(input(a.abs(), x), input(b.abs(), x)))),
                    op2x(|a: f32, b: f32, x| with_sign_of_product(a, b, max32(input(a.abs(), x), input(b.abs(), x)))),
                ),
                true => (
                    op2x(|a: f32, b: f32, x| min32_nan(input(a, x), input(b, x))),
                    op2x(|a: f32, b: f32, x| max32_nan(input(a, x), input(b, x))),
                ),
                false => (
                    op2x(|a: f32, b: f32, x| min32(input(a, x), input(b, x))).is(Sem::FlagMin),
                    op2x(|a: f32, b: f32, x| max32(input(a, x), input(b, x))).is(Sem::FlagMax),
                ),
            };
            let (a, b) = match xorsign {
                // Both without their signs, which are only left for the product's.
                true if i.src[..2].iter().all(is_magnitude) => (t.raw_word(&i.src[0], 0)?, t.raw_word(&i.src[1], 0)?),
                true => return t.unsupported(i),
                false => (single(&i.src[0], t)?, single(&i.src[1], t)?),
            };
            chosen(i, |d| min.of([a, b]).with(x).to(d), |d| max.of([a, b]).with(x).to(d), t);
        }
        Arithmetic::Fsel { ftz } => {
            let (a, b, c) = (single(&i.src[0], t)?, single(&i.src[1], t)?, t.psrc(i.psrc[0]));
            let d = t.dst(i, 0);
            t.emit(build::Select { a, b, which: c, d });
            if ftz {
                t.emit(op1(flush).of([d]).to(d));
            }
        }
        Arithmetic::Fset { cmp, bop, ftz } => {
            let (a, b, c) = (single(&i.src[0], t)?, single(&i.src[1], t)?, t.psrc(i.psrc[0]));
            let p = t.temporary_pred();
            let how = u32::from(cmp) | combining(bop) << BOP;
            let flags = if ftz { FTZ } else { 0 };
            t.emit(build::FloatCompare { double: false, a, b, combined: c, p, q: Pred::ALWAYS, how, flags });
            let (d, one, zero) = (t.dst(i, 0), t.constant(u64::from(1f32.to_bits())), t.constant(0));
            t.emit(build::Select { a: one, b: zero, which: p, d });
        }
        Arithmetic::Fchk => {
            let (a, b, d) = (single(&i.src[0], t)?, single(&i.src[1], t)?, t.pdst(i, 0));
            t.emit(build::CheckQuotient { a, b, p: d });
        }
        Arithmetic::Dadd(round) => {
            let run = match round {
                SassRound::Nearest => op2(add_doubles).is(Sem::FloatAdd),
                _ => op2x(|a: f64, b: f64, x| add64(a, b, Rounding::from_code(x))),
            };
            double_op(i, run, rounding(round), t)?;
        }
        Arithmetic::Dmul(round) => {
            let run = match round {
                SassRound::Nearest => op2(multiply_doubles).is(Sem::FloatMul),
                _ => op2x(|a: f64, b: f64, x| mul64(a, b, Rounding::from_code(x))),
            };
            double_op(i, run, rounding(round), t)?;
        }
        Arithmetic::Dfma(round) => {
            let run = match round {
                SassRound::Nearest => op3(fuse_doubles).is(Sem::FloatFma),
                _ => op3x(|a: f64, b: f64, c: f64, x| fma64(a, b, c, Rounding::from_code(x))),
            };
            double_op(i, run, rounding(round), t)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A single precision operand with its sign.
pub(super) fn single(operand: &InstOperand, t: &mut Translation<'_>) -> Result<Slot> {
    let a = t.raw_word(operand, 0)?;
    let run: LaneFn = match (operand.abs, operand.neg) {
        (false, false) => return Ok(a),
        (true, false) => op1(|a: u32| a & 0x7fff_ffff).is(Sem::AbsBits),
        (false, true) => op1(|a: u32| a ^ 0x8000_0000).is(Sem::NegBits),
        (true, true) => op1(|a: u32| a | 0x8000_0000),
    };
    let d = t.temporary();
    t.emit(run.of([a]).to(d));
    Ok(d)
}

/// A double precision operand with its sign, as one row.
pub(super) fn double(operand: &InstOperand, t: &mut Translation<'_>) -> Result<Slot> {
    let a = t.pair(operand)?;
    let run: LaneFn = match (operand.abs, operand.neg) {
        (false, false) => return Ok(a),
        (true, false) => op1(absolute_double).is(Sem::Abs),
        (false, true) => op1(negate_double).is(Sem::Neg),
        (true, true) => op1(|a: f64| negate_double(absolute_double(a))),
    };
    let d = t.temporary();
    t.emit(run.of([a]).to(d));
    Ok(d)
}

fn single_op(i: &MachineInst, run: LaneFn, x: u64, t: &mut Translation<'_>) -> Result<()> {
    let (a, b) = (single(&i.src[0], t)?, single(&i.src[1], t)?);
    let c = match i.src.get(2) {
        Some(c) => single(c, t)?,
        None => b,
    };
    let d = t.dst(i, 0);
    t.emit(run.of([a, b, c]).with(x).to(d));
    Ok(())
}

fn double_op(i: &MachineInst, run: LaneFn, x: u64, t: &mut Translation<'_>) -> Result<()> {
    let (a, b) = (double(&i.src[0], t)?, double(&i.src[1], t)?);
    let c = match i.src.get(2) {
        Some(c) => double(c, t)?,
        None => b,
    };
    let d = t.temporary();
    t.emit(run.of([a, b, c]).with(x).to(d));
    t.split(i, d);
    Ok(())
}

/// The result of `min` where predicate source 0 holds, else of `max`.
pub(super) fn chosen<I: Build>(
    i: &MachineInst,
    min: impl Fn(Slot) -> I,
    max: impl Fn(Slot) -> I,
    t: &mut Translation<'_>,
) {
    let d = t.dst(i, 0);
    let pred = t.psrc(i.psrc[0]);
    match pred {
        Pred::ALWAYS => t.emit(min(d)),
        Pred::NEVER => t.emit(max(d)),
        _ => {
            let (low, high) = (t.temporary(), t.temporary());
            t.emit(min(low));
            t.emit(max(high));
            t.emit(build::Select { a: low, b: high, which: pred, d });
        }
    }
}

fn compare_floats(i: &MachineInst, cmp: u8, bop: BoolOp, wide: bool, ftz: bool, t: &mut Translation<'_>) -> Result<()> {
    let (a, b) = match wide {
        true => (double(&i.src[0], t)?, double(&i.src[1], t)?),
        false => (single(&i.src[0], t)?, single(&i.src[1], t)?),
    };
    let (combined, p, q) = (t.psrc(i.psrc[0]), t.pdst(i, 0), t.pdst(i, 1));
    let how = u32::from(cmp) | combining(bop) << BOP;
    if let (true, 0 | 15) = (wide, cmp) {
        t.emit(build::ChooseDouble { a, b, combined, p, q, how });
    } else {
        let flags = if ftz { FTZ } else { 0 };
        t.emit(build::FloatCompare { double: wide, a, b, combined, p, q, how, flags });
    }
    Ok(())
}

fn mufu(i: &MachineInst, func: u8, half: bool, part: u8, t: &mut Translation<'_>) -> Result<()> {
    let d = t.dst(i, 0);
    if half {
        let operand = i.src[0];
        let a = t.raw_word(&operand, 0)?;
        if part > 1 || !matches!(func, 2 | 9) {
            return t.unsupported(i);
        }
        let z = u32::from(part) | u32::from(operand.neg) << 1 | u32::from(operand.abs) << 2;
        t.emit(build::HalfSpecial { a, d, function: u32::from(func), which: z });
        return Ok(());
    }
    macro_rules! unit {
        ($function:ident) => {
            op1(|a: f32| special(SpecialFunction::$function, a))
                .is(Sem::Approximate(Approximation::Unit(SpecialFunction::$function)))
        };
    }
    let run = match func {
        0 => unit!(Cos),
        1 => unit!(Sin),
        2 => unit!(Ex2),
        3 => unit!(Lg2),
        4 => unit!(Rcp),
        5 => unit!(Rsq),
        6 => op1(|a: u32| special_double(false, a)),
        7 => op1(|a: u32| special_double(true, a)),
        8 => unit!(Sqrt),
        9 => unit!(Tanh),
        _ => return t.unsupported(i),
    };
    let mut operand = i.src[0];
    if matches!(func, 6 | 7) {
        operand.regs = 1;
    }
    let a = single(&operand, t)?;
    t.emit(run.of([a]).to(d));
    Ok(())
}
