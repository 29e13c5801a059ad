//! Instruction families of halves and bfloat16, single and packed, and of packed singles.
//!
//! Halves are computed in doubles, whose results are exact or rounded to odd before they are cut:
//! one rounding.

use device_code::ptx::{Operand, Type};

use super::Op;
use super::float::{flags, float_comparisons};
use crate::compile::function::{Result, Scope};
use crate::exec::per_lane::{Lane, LaneFn, op2x, op3x, set, setp};
use crate::float::float16::{Brain, Half, Small};
use crate::float::*;
use crate::program::{LaneTy, Pred, Sem};

/// A half as a register holds it.
#[derive(Clone, Copy)]
struct H(f32);
/// A bfloat16 as a register holds it.
#[derive(Clone, Copy)]
struct B(f32);

impl Lane for H {
    const TY: LaneTy = LaneTy::U16;
    fn get(bits: u64) -> Self {
        H(Half::widen(bits as u16))
    }
    fn put(self) -> u64 {
        u64::from(Half::cut_single(self.0))
    }
}

impl Lane for B {
    const TY: LaneTy = LaneTy::U16;
    fn get(bits: u64) -> Self {
        B(Brain::widen(bits as u16))
    }
    fn put(self) -> u64 {
        u64::from(Brain::cut_single(self.0))
    }
}

/// What an operation does to one element; `x` carries the flags.
pub(crate) type HalfElement = fn(f64, f64, f64, u64) -> f64;

/// Numbers of some operations in [`ELEMENTS`].
pub(crate) const ADD: u32 = 0;
pub(crate) const MULTIPLY: u32 = 2;
pub(crate) const FUSED: u32 = 3;
pub(crate) const MIN_NAN: u32 = 6;
pub(crate) const MAX_NAN: u32 = 7;
pub(crate) const MIN: u32 = 8;
pub(crate) const MAX: u32 = 9;

/// The number of an opcode's operation in [`ELEMENTS`].
fn element(op: Op<'_>) -> Option<u32> {
    let nan = op.has("NaN");
    if op.has("xorsign") {
        return None;
    }
    Some(match op.name() {
        "add" => ADD,
        "sub" => 1,
        "mul" => MULTIPLY,
        "fma" => FUSED,
        "neg" => 4,
        "abs" => 5,
        "min" => {
            if nan {
                MIN_NAN
            } else {
                MIN
            }
        }
        "max" => {
            if nan {
                MAX_NAN
            } else {
                MAX
            }
        }
        "ex2" => 10,
        "tanh" => 11,
        _ => return None,
    })
}

/// Bit of the constant: results below zero become zero.
pub(crate) const RELU: u64 = 16;

/// True for IEEE halves, false for bfloat16.
pub(crate) fn is_binary16<S: Small>() -> bool {
    S::cut(1.0, Rounding::Nearest) == 0x3c00
}

/// An operand as the flags want it: subnormal halves are kept unless asked otherwise.
#[inline(always)]
pub(crate) fn flushed<S: Small>(value: f64, x: u64) -> f64 {
    if x & FTZ != 0 && value.abs() < 2f64.powi(-14) && is_binary16::<S>() { 0f64.copysign(value) } else { value }
}

/// A result as the flags want it.
#[inline(always)]
pub(crate) fn arranged(value: f64, x: u64) -> f64 {
    let value = if x & RELU != 0 && value <= 0.0 { 0.0 } else { value };
    if x & SAT != 0 { saturate64(value) } else { value }
}

/// Rounds a result to its format.
#[inline(always)]
pub(crate) fn cut<S: Small>(value: f64, x: u64) -> u16 {
    let bits = S::cut(value, Rounding::from_code(x));
    if x & FTZ != 0 && is_binary16::<S>() && bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

/// An operation on the one or two elements of registers.
#[inline(always)]
fn apply<S: Small, const PACKED: bool>(f: impl Fn(f64, f64, f64) -> f64, of: [u32; 3], x: u64) -> u32 {
    let read = |bits: u32| flushed::<S>(f64::from(S::widen(bits as u16)), x);
    let [low, high] = [0, 16].map(|at| {
        let [a, b, c] = of.map(|bits| read(bits >> at));
        u32::from(cut::<S>(arranged(f(a, b, c), x), x))
    });
    if PACKED { low | high << 16 } else { low }
}

/// Operation `y` of [`ELEMENTS`] as a function of a lane's registers. Most have no flags.
fn operation<S: Small, const PACKED: bool>(y: u32, x: u64) -> LaneFn {
    macro_rules! of {
        ($($number:literal),*) => {
            match (y, x) {
                $(
                    ($number, 0) => op3x(|a: u32, b: u32, c: u32, _| {
                        apply::<S, PACKED>(|a, b, c| ELEMENTS[$number](a, b, c, 0), [a, b, c], 0)
                    }),
                    ($number, _) => op3x(|a: u32, b: u32, c: u32, x| {
                        apply::<S, PACKED>(|a, b, c| ELEMENTS[$number](a, b, c, x), [a, b, c], x)
                    }),
                )*
                _ => unreachable!("no such operation"),
            }
        };
    }
    of!(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
}

/// Operations by number. The product of two halves is exact in a double.
pub(crate) static ELEMENTS: [HalfElement; 12] = [
    |a, b, _, _| a + b,
    |a, b, _, _| a - b,
    |a, b, _, _| a * b,
    |a, b, c, _| odd_sum(a * b, c),
    |a, _, _, _| -a,
    |a, _, _, _| a.abs(),
    |a, b, _, _| if a.is_nan() || b.is_nan() { f64::NAN } else { min64(a, b) },
    |a, b, _, _| if a.is_nan() || b.is_nan() { f64::NAN } else { max64(a, b) },
    |a, b, _, _| min64(a, b),
    |a, b, _, _| max64(a, b),
    |a, _, _, _| a.exp2(),
    |a, _, _, _| a.tanh(),
];

/// Compares halves: predicates or rows, `y`, `z`, `c` as `setp` has them, for each element of
/// packed registers.
#[allow(clippy::neg_cmp_op_on_partial_ord, reason = "the unordered comparisons are the opposites of ordered ones")]
fn comparison(op: Op<'_>, ty: Type) -> Option<LaneFn> {
    let name = op.part(1);
    fn h(a: H) -> f32 {
        a.0
    }
    fn b(a: B) -> f32 {
        a.0
    }
    match (ty, op.name()) {
        (Type::F16, "setp") => float_comparisons!(setp, name, H, h, false),
        (Type::F16, _) => float_comparisons!(set, name, H, h, false),
        (_, "setp") => float_comparisons!(setp, name, B, b, false),
        (_, _) => float_comparisons!(set, name, B, b, false),
    }
}

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn half(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        if op.parts.iter().any(|part| part == "f32x2") {
            return self.packed_single(op, operands);
        }
        let Some(ty) = op.ty() else { return Ok(false) };
        if !matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2) || op.name() == "cvt" {
            return Ok(false);
        }
        if matches!(op.name(), "setp" | "set") {
            return self.compare_halves(op, operands, ty);
        }
        let Some(y) = element(op) else { return self.unsupported(op) };
        let x = flags(op) | if op.has("relu") { RELU } else { 0 };
        let run = match ty {
            Type::F16 => operation::<Half, false>(y, x),
            Type::F16x2 => operation::<Half, true>(y, x),
            Type::Bf16 => operation::<Brain, false>(y, x),
            _ => operation::<Brain, true>(y, x),
        };
        if !(2..=4).contains(&operands.len()) {
            return self.misfit();
        }
        let wide = if ty.size() == 4 { Type::B32 } else { Type::B16 };
        let mut sources = [self.src(operands.get(1), wide)?; 3];
        for (at, operand) in operands[1..].iter().enumerate().skip(1) {
            sources[at] = self.src(Some(operand), wide)?;
        }
        let d = self.dst(operands.first())?;
        self.emit(run.of(sources).with(x).to(d));
        Ok(true)
    }

    fn compare_halves(&mut self, op: Op<'m>, operands: &'m [Operand], ty: Type) -> Result<bool> {
        let scalar = match ty {
            Type::F16x2 => Type::F16,
            Type::Bf16x2 => Type::Bf16,
            other => other,
        };
        let Some(run) = comparison(op, scalar) else { return self.unsupported(op) };
        if ty == scalar {
            self.comparison(op, operands, Type::B16, run)?;
            return Ok(true);
        }
        // Packed: one comparison for each half; results p|q are of the lower and the upper half.
        if op.has("and") || op.has("or") || op.has("xor") {
            return self.unsupported(op);
        }
        let (a, b) = (self.src(operands.get(1), Type::B32)?, self.src(operands.get(2), Type::B32)?);
        let shift = crate::exec::per_lane::op1(|a: u32| a >> 16);
        let (upper_a, upper_b) = (self.temporary(), self.temporary());
        self.emit(shift.of([a]).to(upper_a));
        self.emit(shift.of([b]).to(upper_b));
        if op.name() == "setp" {
            let Some(Operand::Pair(pair)) = operands.first() else { return self.misfit() };
            for (operand, a, b) in [(&pair.0, a, b), (&pair.1, upper_a, upper_b)] {
                let p = self.dst_pred(Some(operand))?;
                self.emit(run.of([a, b]).test(p, Pred::ALWAYS));
            }
            return Ok(true);
        }
        let one = match op.types().next() {
            Some(Type::F16x2) => 0x3c00,
            Some(Type::Bf16x2) => 0x3f80,
            _ => 0xffff,
        };
        let (low, high) = (self.temporary(), self.temporary());
        self.emit(run.of([a, b]).with(one).to(low));
        self.emit(run.of([upper_a, upper_b]).with(one).to(high));
        let d = self.dst(operands.first())?;
        let join = op2x(|low: u32, high: u32, _| low | high << 16);
        self.emit(join.of([low, high]).to(d));
        Ok(true)
    }

    /// `add.f32x2` and its kin: two singles in a register of 64 bits.
    fn packed_single(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        fn both(f: impl Fn(f32) -> f32, a: u64) -> u64 {
            let part = |at: u32| u64::from(f(f32::from_bits((a >> at) as u32)).to_bits()) << at;
            part(0) | part(32)
        }
        fn pairs(f: impl Fn(f32, f32, f32) -> f32, a: u64, b: u64, c: u64) -> u64 {
            let of = |bits: u64, at: u32| f32::from_bits((bits >> at) as u32);
            let part = |at: u32| u64::from(f(of(a, at), of(b, at), of(c, at)).to_bits()) << at;
            part(0) | part(32)
        }
        let run = match op.name() {
            "add" => op3x(|a: u64, b: u64, c: u64, x| {
                pairs(|a, b, _| output(add32(input(a, x), input(b, x), Rounding::from_code(x)), x), a, b, c)
            }),
            "sub" => op3x(|a: u64, b: u64, c: u64, x| {
                pairs(|a, b, _| output(add32(input(a, x), -input(b, x), Rounding::from_code(x)), x), a, b, c)
            }),
            "mul" => op3x(|a: u64, b: u64, c: u64, x| {
                pairs(|a, b, _| output(mul32(input(a, x), input(b, x), Rounding::from_code(x)), x), a, b, c)
            }),
            "fma" => op3x(|a: u64, b: u64, c: u64, x| {
                pairs(
                    |a, b, c| output(fma32(input(a, x), input(b, x), input(c, x), Rounding::from_code(x)), x),
                    a,
                    b,
                    c,
                )
            }),
            "neg" => op3x(|a: u64, _: u64, _: u64, x| both(|a| input(-a, x), a)),
            "abs" => op3x(|a: u64, _: u64, _: u64, x| both(|a| input(a.abs(), x), a)),
            _ => return self.unsupported(op),
        };
        let a = self.src(operands.get(1), Type::B64)?;
        let mut sources = [a; 3];
        for (at, operand) in operands.iter().skip(2).take(2).enumerate() {
            sources[at + 1] = self.src(Some(operand), Type::B64)?;
        }
        let d = self.dst(operands.first())?;
        self.emit(run.of(sources).with(flags(op)).to(d));
        Ok(true)
    }
}
