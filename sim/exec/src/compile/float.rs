//! Instruction families of single and double precision.

use device_code::ptx::{Operand, Type};

use super::Op;
use crate::compile::function::{Result, Scope};
use crate::exec::per_lane::{LaneFn, op1, op2, op2x, op3, op3x, set, setp};
use crate::float::approximate::{self, Approximation, SpecialFunction, special};
use crate::float::*;
use crate::program::{Pred, Sem};

/// The constant that carries an opcode's rounding mode and flags.
pub(super) fn flags(op: Op<'_>) -> u64 {
    let mode = if op.has("rz") {
        1
    } else if op.has("rm") {
        2
    } else if op.has("rp") {
        3
    } else {
        0
    };
    mode | if op.has("ftz") { FTZ } else { 0 } | if op.has("sat") { SAT } else { 0 }
}

fn single(op: Op<'_>) -> Option<LaneFn> {
    let plain = flags(op) == 0;
    Some(match op.name() {
        "add" if plain => op2(|a: f32, b: f32| output(a + b, 0)).is(Sem::FloatAdd),
        "sub" if plain => op2(|a: f32, b: f32| output(a - b, 0)).is(Sem::FloatSub),
        "mul" if plain => op2(|a: f32, b: f32| output(a * b, 0)).is(Sem::FloatMul),
        "fma" | "mad" if plain => op3(|a: f32, b: f32, c: f32| output(a.mul_add(b, c), 0)).is(Sem::FloatFma),
        "add" => op2x(|a: f32, b: f32, x| output(add32(input(a, x), input(b, x), Rounding::from_code(x)), x))
            .is(Sem::FlagAdd),
        "sub" => op2x(|a: f32, b: f32, x| output(add32(input(a, x), -input(b, x), Rounding::from_code(x)), x))
            .is(Sem::FlagSub),
        "mul" => op2x(|a: f32, b: f32, x| output(mul32(input(a, x), input(b, x), Rounding::from_code(x)), x))
            .is(Sem::FlagMul),
        "fma" | "mad" => op3x(|a: f32, b: f32, c: f32, x| {
            output(fma32(input(a, x), input(b, x), input(c, x), Rounding::from_code(x)), x)
        })
        .is(Sem::FlagFma),
        "div" if op.has("approx") => {
            op2x(|a: f32, b: f32, x| approximate::div(a, b, x, false)).is(Sem::Approximate(Approximation::Div))
        }
        "div" if op.has("full") => {
            op2x(|a: f32, b: f32, x| approximate::div(a, b, x, true)).is(Sem::Approximate(Approximation::FullDiv))
        }
        "div" => op2x(|a: f32, b: f32, x| output(div32(input(a, x), input(b, x), Rounding::from_code(x)), x))
            .is(Sem::FlagDiv),
        "rcp" if op.has("approx") => {
            op2x(|a: f32, _: f32, x| approximate::rcp(a, x)).is(Sem::Approximate(Approximation::Rcp))
        }
        // A quotient that is subnormal before it is rounded up is flushed as well.
        "rcp" if op.has("ftz") => op2x(|a: f32, _: f32, x| {
            let flushed = a.is_finite() && a.abs() > 2f32.powi(126);
            if flushed { 0f32.copysign(a) } else { output(div32(1.0, flush(a), Rounding::from_code(x)), x) }
        }),
        "rcp" => op2x(|a: f32, _: f32, x| output(div32(1.0, input(a, x), Rounding::from_code(x)), x)).is(Sem::FlagRcp),
        "sqrt" if op.has("approx") => {
            op2x(|a: f32, _: f32, x| approximate::sqrt(a, x)).is(Sem::Approximate(Approximation::Sqrt))
        }
        "sqrt" => op2x(|a: f32, _: f32, x| output(sqrt32(input(a, x), Rounding::from_code(x)), x)).is(Sem::FlagSqrt),
        "rsqrt" => op2x(|a: f32, _: f32, x| approximate::rsqrt(a, x)).is(Sem::Approximate(Approximation::Rsqrt)),
        "neg" => op2x(|a: f32, _: f32, x| output(-a, x)).is(Sem::FlagNeg),
        "abs" => op2x(|a: f32, _: f32, x| output(a.abs(), x)).is(Sem::FlagAbs),
        "min" if op.has("xorsign") => {
            op2x(|a: f32, b: f32, x| with_sign_of_product(a, b, min32(input(a.abs(), x), input(b.abs(), x))))
        }
        "max" if op.has("xorsign") => {
            op2x(|a: f32, b: f32, x| with_sign_of_product(a, b, max32(input(a.abs(), x), input(b.abs(), x))))
        }
        "min" if op.has("NaN") => op2x(|a: f32, b: f32, x| min32_nan(input(a, x), input(b, x))),
        "max" if op.has("NaN") => op2x(|a: f32, b: f32, x| max32_nan(input(a, x), input(b, x))),
        "min" => op2x(|a: f32, b: f32, x| min32(input(a, x), input(b, x))).is(Sem::FlagMin),
        "max" => op2x(|a: f32, b: f32, x| max32(input(a, x), input(b, x))).is(Sem::FlagMax),
        "copysign" => op2(|a: f32, b: f32| b.copysign(a)),
        "sin" => op2x(|a: f32, _: f32, x| approximate::sin(a, x)).is(Sem::Approximate(Approximation::Sin)),
        "cos" => op2x(|a: f32, _: f32, x| approximate::cos(a, x)).is(Sem::Approximate(Approximation::Cos)),
        "ex2" => op2x(|a: f32, _: f32, x| approximate::ex2(a, x)).is(Sem::Approximate(Approximation::Ex2)),
        "lg2" => op2x(|a: f32, _: f32, x| approximate::lg2(a, x)).is(Sem::Approximate(Approximation::Lg2)),
        "tanh" => op2x(|a: f32, _: f32, _| special(SpecialFunction::Tanh, a))
            .is(Sem::Approximate(Approximation::Unit(SpecialFunction::Tanh))),
        _ => return None,
    })
}

fn double(op: Op<'_>) -> Option<LaneFn> {
    let plain = flags(op) == 0;
    Some(match op.name() {
        "add" if plain => op2(add_doubles).is(Sem::FloatAdd),
        "sub" if plain => op2(subtract_doubles).is(Sem::FloatSub),
        "mul" if plain => op2(multiply_doubles).is(Sem::FloatMul),
        "fma" | "mad" if plain => op3(fuse_doubles).is(Sem::FloatFma),
        "add" => op2x(|a: f64, b: f64, x| add64(a, b, Rounding::from_code(x))),
        "sub" => op2x(|a: f64, b: f64, x| add64(a, negate_double(b), Rounding::from_code(x))),
        "mul" => op2x(|a: f64, b: f64, x| mul64(a, b, Rounding::from_code(x))),
        "fma" | "mad" => op3x(|a: f64, b: f64, c: f64, x| fma64(a, b, c, Rounding::from_code(x))),
        "div" if plain => op2(|a: f64, b: f64| div64(a, b, Rounding::Nearest)).is(Sem::DoubleDiv),
        "div" => op2x(|a: f64, b: f64, x| div64(a, b, Rounding::from_code(x))),
        "rcp" if op.has("approx") => op1(|a: f64| approximate::double(false, a)),
        "rcp" if plain => op1(|a: f64| div64(1.0, a, Rounding::Nearest)).is(Sem::DoubleRcp),
        "rcp" => op2x(|a: f64, _: f64, x| div64(1.0, a, Rounding::from_code(x))),
        "sqrt" if plain => op1(|a: f64| sqrt64(a, Rounding::Nearest)).is(Sem::DoubleSqrt),
        "sqrt" => op2x(|a: f64, _: f64, x| sqrt64(a, Rounding::from_code(x))),
        "rsqrt" if op.has("ftz") => op1(|a: f64| approximate::double(true, a)),
        "rsqrt" => op1(approximate::rsqrt64),
        "neg" => op1(negate_double).is(Sem::Neg),
        "abs" => op1(absolute_double).is(Sem::Abs),
        "min" => op2(min64),
        "max" => op2(max64),
        "copysign" => op2(|a: f64, b: f64| b.copysign(a)),
        _ => return None,
    })
}

macro_rules! float_comparisons {
    ($make:ident, $op:expr, $ty:ty, $prepare:expr, $plain:expr) => {{
        macro_rules! cmp {
            ($sem:ident, $a:ident, $b:ident, $e:expr) => {
                $make(|$a: $ty, $b: $ty| {
                    let ($a, $b) = ($prepare($a), $prepare($b));
                    $e
                })
                .is(if $plain { Sem::$sem } else { Sem::Call })
            };
        }
        Some(match $op {
            "eq" => cmp!(Eq, a, b, a == b),
            // Ordered: false when one is NaN.
            "ne" => cmp!(NeOrdered, a, b, a != b && !a.is_nan() && !b.is_nan()),
            "lt" => cmp!(Lt, a, b, a < b),
            "le" => cmp!(Le, a, b, a <= b),
            "gt" => cmp!(Gt, a, b, a > b),
            "ge" => cmp!(Ge, a, b, a >= b),
            "equ" => cmp!(EqUnordered, a, b, a == b || a.is_nan() || b.is_nan()),
            "neu" => cmp!(Ne, a, b, a != b),
            "ltu" => cmp!(LtUnordered, a, b, !(a >= b)),
            "leu" => cmp!(LeUnordered, a, b, !(a > b)),
            "gtu" => cmp!(GtUnordered, a, b, !(a <= b)),
            "geu" => cmp!(GeUnordered, a, b, !(a < b)),
            "num" => cmp!(Call, a, b, !a.is_nan() && !b.is_nan()),
            "nan" => cmp!(Call, a, b, a.is_nan() || b.is_nan()),
            _ => return None,
        })
    }};
}
pub(super) use float_comparisons;

#[allow(clippy::neg_cmp_op_on_partial_ord, reason = "the unordered comparisons are the opposites of ordered ones")]
fn comparison(op: Op<'_>, ty: Type) -> Option<LaneFn> {
    fn keep32(a: f32) -> f32 {
        a
    }
    fn keep64(a: f64) -> f64 {
        a
    }
    let setting = op.name() == "set";
    match (ty, op.has("ftz"), setting) {
        (Type::F64, _, false) => float_comparisons!(setp, op.part(1), f64, keep64, true),
        (Type::F64, _, true) => float_comparisons!(set, op.part(1), f64, keep64, true),
        (_, false, false) => float_comparisons!(setp, op.part(1), f32, keep32, true),
        (_, true, false) => float_comparisons!(setp, op.part(1), f32, flush, false),
        (_, false, true) => float_comparisons!(set, op.part(1), f32, keep32, true),
        (_, true, true) => float_comparisons!(set, op.part(1), f32, flush, false),
    }
}

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn floating(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        let Some(ty) = op.ty() else { return Ok(false) };
        if !matches!(ty, Type::F32 | Type::F64) || matches!(op.name(), "cvt") {
            return Ok(false);
        }
        if matches!(op.name(), "setp" | "set") {
            let Some(run) = comparison(op, ty) else { return self.unsupported(op) };
            self.comparison(op, operands, ty, run)?;
            return Ok(true);
        }
        if op.name() == "testp" {
            return self.testp(op, operands, ty);
        }
        // `.f32x2` and mixed precision are not singles.
        if op.parts.iter().any(|part| part == "f32x2") || op.types().count() > 1 {
            return Ok(false);
        }
        if op.name() == "min" && operands.len() == 4 || op.name() == "max" && operands.len() == 4 {
            return self.unsupported(op);
        }
        let run = if ty == Type::F32 { single(op) } else { double(op) };
        let Some(run) = run else { return Ok(false) };
        if !(2..=4).contains(&operands.len()) {
            return self.misfit();
        }
        let mut sources = [self.src(operands.get(1), ty)?; 3];
        for (at, operand) in operands[1..].iter().enumerate().skip(1) {
            sources[at] = self.src(Some(operand), ty)?;
        }
        let d = self.dst(operands.first())?;
        self.emit(run.of(sources).with(flags(op)).to(d));
        Ok(true)
    }

    fn testp(&mut self, op: Op<'m>, operands: &'m [Operand], ty: Type) -> Result<bool> {
        macro_rules! test {
            ($float:ty) => {
                match op.part(1) {
                    "finite" => setp(|a: $float, _: $float| a.is_finite()),
                    "infinite" => setp(|a: $float, _: $float| a.is_infinite()),
                    "number" => setp(|a: $float, _: $float| !a.is_nan()),
                    "notanumber" => setp(|a: $float, _: $float| a.is_nan()),
                    // Zeros count as normal (PTX ISA, `testp`).
                    "normal" => setp(|a: $float, _: $float| a.is_normal() || a == 0.0),
                    "subnormal" => setp(|a: $float, _: $float| a.is_subnormal()),
                    _ => return self.unsupported(op),
                }
            };
        }
        let run = if ty == Type::F32 { test!(f32) } else { test!(f64) };
        let a = self.src(operands.get(1), ty)?;
        let p = self.dst_pred(operands.first())?;
        self.emit(run.of([a, a]).test(p, Pred::ALWAYS));
        Ok(true)
    }
}
