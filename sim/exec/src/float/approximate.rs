//! The approximate functions of the special function unit (MUFU), and what the compiler makes of
//! PTX's `.approx` instructions with them.
//!
//! The functions themselves are exact to the last bit or so, better than the hardware's. Around
//! them are the scalings that the compiler adds for sm_80, so that PTX and machine code give the
//! same bits. Subnormal singles are flushed, as the unit does.

mod series;

use super::{FTZ, flush, input, output};

/// Functions of the unit, by their code in MUFU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpecialFunction {
    Cos,
    Sin,
    Ex2,
    Lg2,
    Rcp,
    Rsq,
    Sqrt,
    Tanh,
}

/// An instruction of singles that the unit executes: MUFU, or PTX's `.approx` (and `div.full`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Approximation {
    Unit(SpecialFunction),
    Sin,
    Cos,
    Ex2,
    Lg2,
    Rcp,
    Rsqrt,
    Sqrt,
    Div,
    FullDiv,
}

/// The function of a double, unrounded.
#[inline(always)]
pub(crate) fn exact(function: SpecialFunction, a: f64) -> f64 {
    match function {
        SpecialFunction::Cos => series::wave(a, 1),
        SpecialFunction::Sin => series::wave(a, 0),
        SpecialFunction::Ex2 => series::exp2(a),
        SpecialFunction::Lg2 => series::log2(a),
        SpecialFunction::Rcp => 1.0 / a,
        SpecialFunction::Rsq => 1.0 / a.sqrt(),
        SpecialFunction::Sqrt => a.sqrt(),
        SpecialFunction::Tanh => a.tanh(),
    }
}

/// MUFU of a single.
#[inline(always)]
pub fn special(function: SpecialFunction, a: f32) -> f32 {
    if function == SpecialFunction::Tanh {
        return output(f64::from(a).tanh() as f32, 0);
    }
    let a = flush(a);
    // Quotients and roots of singles need not be rounded twice.
    let value = match function {
        SpecialFunction::Rcp => 1.0 / a,
        SpecialFunction::Sqrt => a.sqrt(),
        _ => exact(function, f64::from(a)) as f32,
    };
    output(value, FTZ)
}

/// MUFU.RCP64H, and with `root` MUFU.RSQ64H: from and to the upper word of a double.
pub(crate) fn special_double(root: bool, high: u32) -> u32 {
    let a = f64::from_bits(u64::from(high) << 32);
    let a = if a.is_subnormal() { 0f64.copysign(a) } else { a };
    let value = if root { 1.0 / a.sqrt() } else { 1.0 / a };
    if value.is_nan() { (0x7fff_ffff_ffff_ffffu64 >> 32) as u32 } else { (value.to_bits() >> 32) as u32 }
}

const LARGE: f32 = 8.507_059e37;

/// By how much numbers below the normal ones are scaled.
const UP: f32 = 16_777_216.0;

/// True for numbers below the normal ones.
#[inline(always)]
fn small(a: f32) -> bool {
    a.abs() < f32::MIN_POSITIVE
}

/// The angle in turns, as the compiler has it computed: the product rounded towards zero.
#[inline(always)]
fn turns(a: f32) -> f32 {
    let exact = f64::from(a) * f64::from(f32::from_bits(0x3e22_f983));
    let nearest = exact as f32;
    let over = f64::from(nearest).abs() > exact.abs();
    output(f32::from_bits(nearest.to_bits() - u32::from(over)), 0)
}

/// `sin.approx`
#[inline(always)]
pub fn sin(a: f32, _: u64) -> f32 {
    special(SpecialFunction::Sin, turns(a))
}

/// `cos.approx`
#[inline(always)]
pub fn cos(a: f32, _: u64) -> f32 {
    special(SpecialFunction::Cos, turns(a))
}

/// `ex2.approx`
#[inline(always)]
pub fn ex2(a: f32, x: u64) -> f32 {
    if x & FTZ != 0 {
        return special(SpecialFunction::Ex2, a);
    }
    let half = a < -126.0;
    let root = special(SpecialFunction::Ex2, if half { a * 0.5 } else { a });
    output(if half { root * root } else { root }, 0)
}

/// `lg2.approx`
#[inline(always)]
pub fn lg2(a: f32, x: u64) -> f32 {
    let is = x & FTZ == 0 && small(a);
    let value = special(SpecialFunction::Lg2, if is { a * UP } else { a });
    output(if is { value - 24.0 } else { value }, 0)
}

/// `rcp.approx`
#[inline(always)]
pub fn rcp(a: f32, x: u64) -> f32 {
    if x & FTZ != 0 {
        return special(SpecialFunction::Rcp, a);
    }
    let scale = if a.abs() > LARGE { 0.25 } else { 1.0 };
    let scale = if small(a) { UP } else { scale };
    output(scale * special(SpecialFunction::Rcp, a * scale), 0)
}

/// `rsqrt.approx`
#[inline(always)]
pub fn rsqrt(a: f32, x: u64) -> f32 {
    let is = x & FTZ == 0 && small(a);
    let value = special(SpecialFunction::Rsq, if is { a * UP } else { a });
    output(if is { value * 4096.0 } else { value }, 0)
}

/// `sqrt.approx`
#[inline(always)]
pub fn sqrt(a: f32, x: u64) -> f32 {
    let is = x & FTZ == 0 && small(a);
    let value = special(SpecialFunction::Sqrt, if is { a * UP } else { a });
    output(if is { value * (1.0 / 4096.0) } else { value }, 0)
}

/// `div.approx`, and with `full` `div.full`.
#[inline(always)]
pub fn div(a: f32, b: f32, x: u64, full: bool) -> f32 {
    let scale = if full && b.abs() > LARGE { 0.25 } else { 1.0 };
    let scale = if x & FTZ == 0 && small(b) { UP } else { scale };
    let scaled = |value: f32| input(input(value, x) * scale, x);
    output(scaled(a) * input(special(SpecialFunction::Rcp, scaled(b)), x), x)
}

/// `rcp.approx.ftz.f64` and (`root`) `rsqrt.approx.ftz.f64`: the lower words do not count.
pub(crate) fn double(root: bool, a: f64) -> f64 {
    f64::from_bits(u64::from(special_double(root, (a.to_bits() >> 32) as u32)) << 32)
}

/// `rsqrt.approx.f64`, which is refined to nearly the last bit.
pub(crate) fn rsqrt64(a: f64) -> f64 {
    let refined = |a: f64| {
        let y = double(true, a);
        let rest = a.mul_add(-(y * y), 1.0);
        rest.mul_add(0.375, 0.5).mul_add(y * rest, y)
    };
    if a.is_normal() && a > 0.0 {
        return refined(a);
    }
    match () {
        () if a == 0.0 => f64::INFINITY.copysign(a),
        () if a.is_nan() => a + a,
        () if a < 0.0 => f64::from_bits(0xfff8_0000_0000_0000),
        () if a.is_infinite() => 0.0,
        () => refined(a * 2f64.powi(54)) * 2f64.powi(27),
    }
}
