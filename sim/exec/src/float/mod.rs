//! Floating-point arithmetic where PTX defines it otherwise than the host: rounding modes, flushing
//! of subnormals, saturation, minima and maxima. `approximate` has the special functions. Formats
//! of 16 bits are in `float16`.
//!
//! Directed rounding starts from the host's nearest result and compares it with the exact one,
//! which is kept as a sum of doubles that do not overlap.

pub mod approximate;
mod doubles;
pub(crate) mod eight;
pub(crate) mod float16;

pub use doubles::*;

/// `.rn`, `.rz`, `.rm`, `.rp`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

impl Rounding {
    pub(crate) fn from_code(code: u64) -> Rounding {
        match code & 3 {
            0 => Rounding::Nearest,
            1 => Rounding::Zero,
            2 => Rounding::Down,
            _ => Rounding::Up,
        }
    }
}

/// Bit of an instruction's constant: subnormals are flushed to zero.
pub const FTZ: u64 = 4;
/// Bit of an instruction's constant: results are clamped to 0..1.
pub const SAT: u64 = 8;

/// Flushes a subnormal to a zero of its sign.
#[inline(always)]
pub(crate) fn flush(a: f32) -> f32 {
    if a.to_bits() & 0x7f80_0000 == 0 { f32::from_bits(a.to_bits() & 0x8000_0000) } else { a }
}

/// Clamps to 0..1; NaN becomes 0.
#[inline(always)]
pub(crate) fn saturate(a: f32) -> f32 {
    if a >= 1.0 {
        1.0
    } else if a > 0.0 {
        a
    } else {
        0.0
    }
}

/// Clamps to 0..1; NaN becomes 0.
#[inline(always)]
pub(crate) fn saturate64(a: f64) -> f64 {
    if a >= 1.0 {
        1.0
    } else if a > 0.0 {
        a
    } else {
        0.0
    }
}

/// `a`, or in place of any NaN the hardware's.
///
/// By bits: which NaN arithmetic results in is undefined in Rust, so the compiler takes
/// `if a.is_nan() { nan } else { a }` for `a` where it likes to.
#[inline(always)]
fn hardware_nan(a: f32) -> f32 {
    let bits = a.to_bits();
    f32::from_bits(if bits << 1 > 0xff00_0000 { 0x7fff_ffff } else { bits })
}

/// Applies the flags of an instruction's constant to its operands.
#[inline(always)]
pub(crate) fn input(a: f32, x: u64) -> f32 {
    if x & FTZ != 0 { flush(a) } else { a }
}

/// Applies the flags of an instruction's constant to its result. NaNs are the one that the hardware
/// makes.
#[inline(always)]
pub fn output(a: f32, x: u64) -> f32 {
    let a = hardware_nan(a);
    let a = if x & FTZ != 0 { flush(a) } else { a };
    if x & SAT != 0 { saturate(a) } else { a }
}

/// What `atom.add.f32` leaves in global memory: subnormal operands and sums become zeros of their
/// sign. In shared memory they do not (PTX ISA, `atom`).
pub fn add_in_global(a: f32, b: f32) -> f32 {
    output(input(a, FTZ) + input(b, FTZ), FTZ)
}

/// Sum and rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let bb = s - a;
    (s, (a - (s - bb)) + (b - bb))
}

/// The sign of an exact sum of finite doubles.
fn sign_of_sum(terms: &[f64]) -> i32 {
    let mut parts: Vec<f64> = Vec::with_capacity(terms.len());
    for &term in terms {
        let mut carry = term;
        for part in &mut parts {
            let (sum, error) = two_sum(carry, *part);
            *part = error;
            carry = sum;
        }
        parts.push(carry);
    }
    // The parts do not overlap and grow: the largest that is not zero decides.
    match parts.iter().rev().find(|&&part| part != 0.0) {
        Some(&part) if part > 0.0 => 1,
        Some(_) => -1,
        None => 0,
    }
}

/// Moves the nearest result `r` to where the mode wants it; `error` is the sign of (exact - r).
fn direct64(r: f64, error: i32, mode: Rounding) -> f64 {
    if r.is_nan() {
        return r;
    }
    let down = match mode {
        Rounding::Nearest => return r,
        Rounding::Down => true,
        Rounding::Up => false,
        // Towards zero: down for positive exact values. A zero result with an error has the error's
        // sign.
        Rounding::Zero => r > 0.0 || (r == 0.0 && error > 0),
    };
    if r.is_infinite() {
        // Only an overflow of finite operands has an error here.
        return match (error, r > 0.0, down) {
            (-1, true, true) => f64::MAX,
            (1, false, false) => f64::MIN,
            _ => r,
        };
    }
    match (down, error) {
        (true, -1) => r.next_down(),
        (false, 1) => r.next_up(),
        _ => r,
    }
}

fn direct32(r: f32, error: i32, mode: Rounding) -> f32 {
    if r.is_nan() {
        return r;
    }
    let down = match mode {
        Rounding::Nearest => return r,
        Rounding::Down => true,
        Rounding::Up => false,
        Rounding::Zero => r > 0.0 || (r == 0.0 && error > 0),
    };
    if r.is_infinite() {
        return match (error, r > 0.0, down) {
            (-1, true, true) => f32::MAX,
            (1, false, false) => f32::MIN,
            _ => r,
        };
    }
    match (down, error) {
        (true, -1) => r.next_down(),
        (false, 1) => r.next_up(),
        _ => r,
    }
}

/// Zeros of exact cancellation are negative when rounding down.
fn zero_sign(a: f64, b: f64, mode: Rounding) -> Option<f64> {
    (a + b == 0.0 && mode == Rounding::Down && !(a == 0.0 && b == 0.0 && a.to_bits() == b.to_bits())).then_some(-0.0)
}

/// The error of a nearest single that should be the sum of some doubles.
fn error32(r: f32, terms: &[f64]) -> i32 {
    if r.is_infinite() {
        return if r > 0.0 { -1 } else { 1 };
    }
    let mut all = [0.0; 5];
    all[..terms.len()].copy_from_slice(terms);
    all[terms.len()] = -f64::from(r);
    sign_of_sum(&all[..=terms.len()])
}

pub(crate) fn add32(a: f32, b: f32, mode: Rounding) -> f32 {
    let r = a + b;
    if mode == Rounding::Nearest || !a.is_finite() || !b.is_finite() {
        return r;
    }
    if let Some(zero) = zero_sign(f64::from(a), f64::from(b), mode) {
        return zero as f32;
    }
    direct32(r, error32(r, &[f64::from(a), f64::from(b)]), mode)
}

pub(crate) fn mul32(a: f32, b: f32, mode: Rounding) -> f32 {
    let r = a * b;
    if mode == Rounding::Nearest || !a.is_finite() || !b.is_finite() {
        return r;
    }
    direct32(r, error32(r, &[f64::from(a) * f64::from(b)]), mode)
}

pub(crate) fn fma32(a: f32, b: f32, c: f32, mode: Rounding) -> f32 {
    let r = a.mul_add(b, c);
    if mode == Rounding::Nearest || !a.is_finite() || !b.is_finite() || !c.is_finite() {
        return r;
    }
    let product = f64::from(a) * f64::from(b);
    if let Some(zero) = zero_sign(product, f64::from(c), mode) {
        return zero as f32;
    }
    direct32(r, error32(r, &[product, f64::from(c)]), mode)
}

pub(crate) fn div32(a: f32, b: f32, mode: Rounding) -> f32 {
    let r = a / b;
    if mode == Rounding::Nearest || !a.is_finite() || !b.is_finite() || b == 0.0 {
        return r;
    }
    // exact - r has the sign of (a - r b) / b.
    let error = if r.is_infinite() {
        if r > 0.0 { -1 } else { 1 }
    } else {
        let rest = sign_of_sum(&[f64::from(a), -(f64::from(r) * f64::from(b))]);
        if b < 0.0 { -rest } else { rest }
    };
    direct32(r, error, mode)
}

pub(crate) fn sqrt32(a: f32, mode: Rounding) -> f32 {
    let r = a.sqrt();
    if mode == Rounding::Nearest || !r.is_finite() || r == 0.0 {
        return r;
    }
    direct32(r, sign_of_sum(&[f64::from(a), -(f64::from(r) * f64::from(r))]), mode)
}

pub(crate) fn add64(a: f64, b: f64, mode: Rounding) -> f64 {
    let r = add_doubles(a, b);
    if mode == Rounding::Nearest || !a.is_finite() || !b.is_finite() {
        return r;
    }
    if let Some(zero) = zero_sign(a, b, mode) {
        return zero;
    }
    direct64(r, error64(r, &[a, b]), mode)
}

fn error64(r: f64, terms: &[f64]) -> i32 {
    if r.is_infinite() {
        return if r > 0.0 { -1 } else { 1 };
    }
    let mut all = [0.0; 5];
    all[..terms.len()].copy_from_slice(terms);
    all[terms.len()] = -r;
    sign_of_sum(&all[..=terms.len()])
}

pub(crate) fn mul64(a: f64, b: f64, mode: Rounding) -> f64 {
    let r = multiply_doubles(a, b);
    if mode == Rounding::Nearest || !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return r;
    }
    if r.is_infinite() {
        return direct64(r, error64(r, &[]), mode);
    }
    direct64(r, product_error(a, b, r), mode)
}

/// The sign of a b - r, operands scaled so that nothing underflows.
fn product_error(a: f64, b: f64, r: f64) -> i32 {
    let (a, ea) = normal(a);
    let (b, eb) = normal(b);
    let scaled = scale(r, -(ea + eb));
    let p = a * b;
    sign_of_sum(&[p, a.mul_add(b, -p), -scaled])
}

/// A number as a fraction of magnitude 1 to 2 and a power of two. Zero stays zero.
pub(super) fn normal(a: f64) -> (f64, i32) {
    if a == 0.0 {
        return (a, 0);
    }
    let (bits, shift) = if a.is_normal() { (a.to_bits(), 0) } else { ((a * 2f64.powi(64)).to_bits(), 64) };
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let fraction = f64::from_bits((bits & !(0x7ff << 52)) | (1023 << 52));
    (fraction, exponent - shift)
}

/// a 2^n, exact wherever the result is normal.
pub(super) fn scale(a: f64, n: i32) -> f64 {
    let mut a = a;
    let mut n = n;
    while n > 1000 {
        a *= 2f64.powi(1000);
        n -= 1000;
    }
    while n < -1000 {
        a *= 2f64.powi(-1000);
        n += 1000;
    }
    a * 2f64.powi(n)
}

pub(crate) fn fma64(a: f64, b: f64, c: f64, mode: Rounding) -> f64 {
    let r = fuse_doubles(a, b, c);
    if mode == Rounding::Nearest || !a.is_finite() || !b.is_finite() || !c.is_finite() {
        return r;
    }
    if a == 0.0 || b == 0.0 {
        return add64(a * b, c, mode);
    }
    if c == 0.0 {
        return mul64(a, b, mode);
    }
    let (fa, ea) = normal(a);
    let (fb, eb) = normal(b);
    let p = fa * fb;
    let low = fa.mul_add(fb, -p);
    // Beside a product 2^200 times larger or smaller, only the sign of an addend counts.
    let shift = -(ea + eb);
    let (_, ec) = normal(c);
    let far = ec + shift;
    if r == 0.0 && sign_of_sum(&[p, low, scale(c, shift)]) == 0 {
        return if mode == Rounding::Down { -0.0 } else { 0.0 };
    }
    let error = if r.is_infinite() {
        if r > 0.0 { -1 } else { 1 }
    } else if far > 200 {
        // r is c or its neighbour.
        let rest = sign_of_sum(&[c, -r]);
        if rest != 0 {
            rest
        } else if p > 0.0 {
            1
        } else {
            -1
        }
    } else {
        let addend = if far < -200 { f64::MIN_POSITIVE.copysign(c) } else { scale(c, shift) };
        sign_of_sum(&[p, low, addend, -scale(r, shift)])
    };
    direct64(r, error, mode)
}

pub(crate) fn div64(a: f64, b: f64, mode: Rounding) -> f64 {
    let r = a / b;
    if mode == Rounding::Nearest || !a.is_finite() || !b.is_finite() || b == 0.0 || a == 0.0 {
        return r;
    }
    let error = if r.is_infinite() {
        if r > 0.0 { -1 } else { 1 }
    } else {
        let rest = if r == 0.0 { if a > 0.0 { 1 } else { -1 } } else { -product_error(r, b, a) };
        if b < 0.0 { -rest } else { rest }
    };
    direct64(r, error, mode)
}

pub(crate) fn sqrt64(a: f64, mode: Rounding) -> f64 {
    let r = a.sqrt();
    if mode == Rounding::Nearest || !r.is_finite() || r == 0.0 {
        return r;
    }
    direct64(r, -product_error(r, r, a), mode)
}

/// The double's value as a single, rounded as asked.
pub(crate) fn narrow(a: f64, mode: Rounding) -> f32 {
    let r = a as f32;
    if mode == Rounding::Nearest || !a.is_finite() {
        return r;
    }
    direct32(r, error32(r, &[a]), mode)
}

/// The sign of a product on a magnitude. The hardware's NaN has none.
pub(crate) fn with_sign_of_product(a: f32, b: f32, magnitude: f32) -> f32 {
    if magnitude.is_nan() {
        return magnitude;
    }
    f32::from_bits(magnitude.to_bits() & 0x7fff_ffff | (a.to_bits() ^ b.to_bits()) & 0x8000_0000)
}

/// `min` as PTX has it: a NaN loses, -0 is less than +0.
pub(crate) fn min32(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f32::from_bits(0x7fff_ffff),
        (true, false) => b,
        (false, true) => a,
        _ if a == b => f32::from_bits(a.to_bits() | b.to_bits()),
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

/// `max` as PTX has it.
pub(crate) fn max32(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f32::from_bits(0x7fff_ffff),
        (true, false) => b,
        (false, true) => a,
        _ if a == b => f32::from_bits(a.to_bits() & b.to_bits()),
        _ => {
            if a > b {
                a
            } else {
                b
            }
        }
    }
}

/// `min.NaN`
pub(crate) fn min32_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { f32::from_bits(0x7fff_ffff) } else { min32(a, b) }
}

/// `max.NaN`
pub(crate) fn max32_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { f32::from_bits(0x7fff_ffff) } else { max32(a, b) }
}

/// `min` of doubles. Of two NaNs the second is left, made quiet.
pub(crate) fn min64(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f64::from_bits(b.to_bits() | 1 << 51),
        (true, false) => b,
        (false, true) => a,
        _ if a == b => f64::from_bits(a.to_bits() | b.to_bits()),
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

/// `max` of doubles, as [`min64`].
pub(crate) fn max64(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f64::from_bits(b.to_bits() | 1 << 51),
        (true, false) => b,
        (false, true) => a,
        _ if a == b => f64::from_bits(a.to_bits() & b.to_bits()),
        _ => {
            if a > b {
                a
            } else {
                b
            }
        }
    }
}

/// A sum of doubles rounded to odd, so that rounding it again to a narrower format is exact.
pub(crate) fn odd_sum(a: f64, b: f64) -> f64 {
    let (sum, error) = two_sum(a, b);
    if error == 0.0 || !sum.is_finite() || sum.to_bits() & 1 != 0 {
        return sum;
    }
    if (error > 0.0) == (sum > 0.0) { f64::from_bits(sum.to_bits() | 1) } else { f64::from_bits(sum.to_bits() - 1) }
}

#[cfg(test)]
mod tests;
