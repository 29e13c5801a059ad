//! The approximate functions of the special function unit (MUFU), and what the compiler makes of
//! PTX's `.approx` instructions with them.
//!
//! The functions themselves are exact to the last bit or so, better than the hardware's. Around
//! them are the scalings that the compiler adds for sm_80, so that PTX and machine code give the
//! same bits. Subnormal singles are flushed, as the unit does.

use super::{FTZ, Rounding, flush, input, mul32, output};

/// Functions of the unit, by their code in MUFU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecialFunction {
    Cos,
    Sin,
    Ex2,
    Lg2,
    Rcp,
    Rsq,
    Sqrt,
    Tanh,
}

/// The sine of so many turns.
fn sin_turns(turns: f64) -> f64 {
    // Whole turns are exact to take away.
    let rest = turns - turns.round();
    (rest * std::f64::consts::TAU).sin()
}

fn cos_turns(turns: f64) -> f64 {
    let rest = turns - turns.round();
    (rest * std::f64::consts::TAU).cos()
}

/// The function of a double, unrounded.
pub(crate) fn exact(function: SpecialFunction, a: f64) -> f64 {
    match function {
        SpecialFunction::Cos => cos_turns(a),
        SpecialFunction::Sin => sin_turns(a),
        SpecialFunction::Ex2 => a.exp2(),
        SpecialFunction::Lg2 => a.log2(),
        SpecialFunction::Rcp => 1.0 / a,
        SpecialFunction::Rsq => 1.0 / a.sqrt(),
        SpecialFunction::Sqrt => a.sqrt(),
        SpecialFunction::Tanh => a.tanh(),
    }
}

/// MUFU of a single.
#[inline(always)]
pub(crate) fn special(function: SpecialFunction, a: f32) -> f32 {
    if function == SpecialFunction::Tanh {
        return output(f64::from(a).tanh() as f32, 0);
    }
    output(exact(function, f64::from(flush(a))) as f32, FTZ)
}

/// MUFU.RCP64H, and with `root` MUFU.RSQ64H: from and to the upper word of a double.
pub(crate) fn special_double(root: bool, high: u32) -> u32 {
    let a = f64::from_bits(u64::from(high) << 32);
    let a = if a.is_subnormal() { 0f64.copysign(a) } else { a };
    let value = if root { 1.0 / a.sqrt() } else { 1.0 / a };
    if value.is_nan() { (0x7fff_ffff_ffff_ffffu64 >> 32) as u32 } else { (value.to_bits() >> 32) as u32 }
}

const LARGE: f32 = 8.507_059e37;

/// True for numbers below the normal ones.
fn small(a: f32) -> bool {
    a.abs() < f32::MIN_POSITIVE
}

/// The angle in turns, as the compiler has it computed.
fn turns(a: f32) -> f32 {
    output(mul32(a, f32::from_bits(0x3e22_f983), Rounding::Zero), 0)
}

/// `sin.approx`
pub(crate) fn sin(a: f32, _: u64) -> f32 {
    special(SpecialFunction::Sin, turns(a))
}

/// `cos.approx`
pub(crate) fn cos(a: f32, _: u64) -> f32 {
    special(SpecialFunction::Cos, turns(a))
}

/// `ex2.approx`
pub(crate) fn ex2(a: f32, x: u64) -> f32 {
    if x & FTZ != 0 || a >= -126.0 || a.is_nan() {
        return special(SpecialFunction::Ex2, a);
    }
    let root = special(SpecialFunction::Ex2, output(a * 0.5, 0));
    output(root * root, 0)
}

/// `lg2.approx`
pub(crate) fn lg2(a: f32, x: u64) -> f32 {
    if x & FTZ != 0 || !small(a) {
        return special(SpecialFunction::Lg2, a);
    }
    output(special(SpecialFunction::Lg2, output(a * 16_777_216.0, 0)) - 24.0, 0)
}

/// `rcp.approx`
pub(crate) fn rcp(a: f32, x: u64) -> f32 {
    if x & FTZ != 0 {
        return special(SpecialFunction::Rcp, a);
    }
    let scale = match () {
        () if a.abs() > LARGE => 0.25,
        () if small(a) => 16_777_216.0,
        () => 1.0,
    };
    output(scale * special(SpecialFunction::Rcp, output(a * scale, 0)), 0)
}

/// `rsqrt.approx`
pub(crate) fn rsqrt(a: f32, x: u64) -> f32 {
    if x & FTZ != 0 || !small(a) {
        return special(SpecialFunction::Rsq, a);
    }
    output(special(SpecialFunction::Rsq, output(a * 16_777_216.0, 0)) * 4096.0, 0)
}

/// `sqrt.approx`
pub(crate) fn sqrt(a: f32, x: u64) -> f32 {
    if x & FTZ != 0 || !small(a) {
        return special(SpecialFunction::Sqrt, a);
    }
    output(special(SpecialFunction::Sqrt, output(a * 16_777_216.0, 0)) * (1.0 / 4096.0), 0)
}

/// `div.approx`, and with `full` `div.full`.
pub(crate) fn div(a: f32, b: f32, x: u64, full: bool) -> f32 {
    let scale = match () {
        () if full && b.abs() > LARGE => 0.25,
        () if x & FTZ == 0 && small(b) => 16_777_216.0,
        () => 1.0,
    };
    let scaled = |value: f32| if scale == 1.0 { value } else { output(input(value, x) * scale, x) };
    output(input(scaled(a), x) * input(special(SpecialFunction::Rcp, scaled(b)), x), x)
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
