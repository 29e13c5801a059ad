//! Numbers of 8 bits with so many bits of fraction (OCP, "8-bit Floating Point Specification"):
//! e4m3 has three, e5m2 two. With two they have infinities as IEEE's numbers do; with three only
//! the largest code is no number.

use crate::float::float16::{Half, Small};

/// What is no number becomes this code, in both formats.
const NAN: u8 = 0x7f;

/// The number of a code.
pub(crate) fn read(bits: u8, fraction: u32) -> f64 {
    let exponent_bits = 7 - fraction;
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let exponent = i32::from(bits >> fraction) & ((1 << exponent_bits) - 1);
    let part = f64::from(bits & ((1 << fraction) - 1)) / f64::from(1u32 << fraction);
    let largest = exponent == (1 << exponent_bits) - 1;
    let magnitude = match (fraction, exponent) {
        (3, _) if bits & 0x7f == 0x7f => f64::NAN,
        (2, _) if largest && bits & 3 == 0 => f64::INFINITY,
        (2, _) if largest => f64::NAN,
        (_, 0) => part * f64::from(1 - bias).exp2(),
        _ => (1.0 + part) * f64::from(exponent - bias).exp2(),
    };
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

/// The code of the nearest number, the even one of two; what is too large becomes the largest
/// finite one (`.satfinite`, which PTX asks for).
pub(crate) fn cut(value: f64, fraction: u32) -> u8 {
    if value.is_nan() {
        return NAN;
    }
    let sign = u8::from(value.is_sign_negative()) << 7;
    let largest = if fraction == 3 { 0x7e } else { 0x7b };
    let lowest = 2 - (1i32 << (6 - fraction));
    let magnitude = value.abs();
    if magnitude >= read(largest, fraction) {
        return sign | largest;
    }
    // Subnormal numbers of a double are far below those of eight bits.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(lowest);
    let units = (magnitude * f64::from(fraction as i32 - exponent).exp2()).round_ties_even() as u32;
    let code = ((exponent - lowest) as u32) << fraction;
    sign | ((code + units) as u8).min(largest)
}

/// The codes of two numbers, the first one higher. With `relu` what is below zero becomes zero.
pub(crate) fn pair(high: f64, low: f64, fraction: u32, relu: bool) -> u16 {
    let one = |value: f64| if relu && value <= 0.0 { 0 } else { cut(value, fraction) };
    u16::from(one(high)) << 8 | u16::from(one(low))
}

/// Two codes as a pair of halves.
pub(crate) fn halves(codes: u16, fraction: u32, relu: bool) -> u32 {
    let one = |code: u8| {
        let value = read(code, fraction);
        if relu && value <= 0.0 { 0 } else { u32::from(Half::cut_single(value as f32)) }
    };
    one((codes >> 8) as u8) << 16 | one(codes as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbers() {
        assert_eq!(
            [0x00, 0x01, 0x38, 0xb8, 0x7e, 0x40].map(|bits| read(bits, 3)),
            [0.0, 0.001953125, 1.0, -1.0, 448.0, 2.0]
        );
        assert!(read(0x7f, 3).is_nan() && read(0xff, 3).is_nan());
        assert_eq!(
            [0x01, 0x3c, 0xbc, 0x7b, 0x7c].map(|bits| read(bits, 2)),
            [0.0000152587890625, 1.0, -1.0, 57344.0, f64::INFINITY]
        );
        assert!(read(0x7d, 2).is_nan());
    }

    #[test]
    fn each_code_is_the_nearest_to_itself_and_to_what_is_beside_it() {
        for fraction in [2, 3] {
            let largest = if fraction == 3 { 0x7e } else { 0x7b };
            for code in 0..=largest {
                let (at, next) = (read(code, fraction), read(code + 1, fraction));
                assert_eq!([cut(at, fraction), cut(-at, fraction)], [code, 0x80 | code]);
                if code < largest {
                    let middle = (at + next) / 2.0;
                    let even = code + code % 2;
                    assert_eq!(cut(middle, fraction), even, "{fraction} {code:#x}");
                    assert_eq!(cut(middle.next_down(), fraction), code);
                    assert_eq!(cut(middle.next_up(), fraction), code + 1);
                }
            }
            assert_eq!([f64::INFINITY, 1e30].map(|value| cut(value, fraction)), [largest; 2]);
            assert_eq!([cut(f64::NEG_INFINITY, fraction), cut(f64::NAN, fraction)], [0x80 | largest, NAN]);
            assert_eq!([cut(1e-30, fraction), cut(-1e-310, fraction)], [0, 0x80]);
        }
    }

    #[test]
    fn pairs_have_the_first_number_above() {
        assert_eq!(pair(1.0, -2.0, 3, false), 0x38c0);
        assert_eq!(pair(1.0, -2.0, 3, true), 0x3800);
        assert_eq!(halves(0x38c0, 3, false), 0x3c00_c000);
        assert_eq!(halves(0x3cc0, 2, true), 0x3c00_0000);
        assert_eq!(halves(0x7f00, 3, false), 0x7fff_0000);
    }
}
