//! The formats of 16 bits: half and bfloat16, to and from wider ones.

use super::{Rounding, normal, scale};

/// A format of 16 bits.
pub(crate) trait Small {
    /// To a single, exact.
    fn widen(bits: u16) -> f32;
    /// From a double (the exact value or one rounded to odd), rounded as asked.
    fn cut(value: f64, mode: Rounding) -> u16;
}

/// IEEE half.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Half;
/// bfloat16.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Brain;

impl Small for Half {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        // Without branches, for vectors. The exponents are 112 apart; scaling is exact, subnormal
        // numbers included.
        let sign = u32::from(bits & 0x8000) << 16;
        let magnitude = u32::from(bits & 0x7fff) << 13;
        let finite = (f32::from_bits(magnitude) * f32::from_bits((112 + 127) << 23)).to_bits();
        let special = magnitude | 0x7f80_0000;
        f32::from_bits(sign | if bits & 0x7c00 == 0x7c00 { special } else { finite })
    }

    fn cut(value: f64, mode: Rounding) -> u16 {
        round_small(value, mode, 10, -14, 15)
    }
}

impl Small for Brain {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }

    fn cut(value: f64, mode: Rounding) -> u16 {
        round_small(value, mode, 7, -126, 127)
    }
}

/// Rounds to a format with that many fraction bits and exponents from `low` to `high`.
fn round_small(value: f64, mode: Rounding, fraction_bits: i32, low: i32, high: i32) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000u16 } else { 0 };
    if value.is_nan() {
        return 0x7fff;
    }
    let infinity = (((high - low + 2) as u16) << fraction_bits) | sign;
    let magnitude = value.abs();
    if magnitude.is_infinite() {
        return infinity;
    }
    if magnitude == 0.0 {
        return sign;
    }
    let (_, exponent) = normal(magnitude);
    // The weight of the last bit.
    let unit = exponent.max(low) - fraction_bits;
    let scaled = scale(magnitude, -unit);
    let floor = scaled.floor();
    let rest = scaled - floor;
    let up = match mode {
        Rounding::Nearest => rest > 0.5 || (rest == 0.5 && floor % 2.0 != 0.0),
        Rounding::Zero => false,
        Rounding::Down => sign != 0 && rest > 0.0,
        Rounding::Up => sign == 0 && rest > 0.0,
    };
    let units = floor as u32 + u32::from(up);
    let bits = if exponent < low { units } else { (((exponent - low) as u32) << fraction_bits) + units };
    // A carry out of the fraction raises the exponent by itself; beyond the largest one is infinity
    // or the largest.
    let largest = (infinity & 0x7fff) - 1;
    if bits > u32::from(largest) {
        let stays = match mode {
            Rounding::Nearest => false,
            Rounding::Zero => true,
            Rounding::Down => sign == 0,
            Rounding::Up => sign != 0,
        };
        return if stays { largest | sign } else { infinity };
    }
    bits as u16 | sign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_trip_and_round() {
        for bits in 0..=u16::MAX {
            let value = Half::widen(bits);
            if !value.is_nan() {
                assert_eq!(Half::cut(f64::from(value), Rounding::Nearest), bits, "{bits:04x}");
                assert_eq!(Half::cut(f64::from(value), Rounding::Zero), bits, "{bits:04x}");
            }
            let value = Brain::widen(bits);
            if !value.is_nan() {
                assert_eq!(Brain::cut(f64::from(value), Rounding::Up), bits, "{bits:04x}");
            }
        }
        assert_eq!(Half::cut(65520.0, Rounding::Nearest), 0x7c00);
        assert_eq!(Half::cut(65519.9, Rounding::Nearest), 0x7bff);
        assert_eq!(Half::cut(65520.0, Rounding::Zero), 0x7bff);
        assert_eq!(Half::cut(1.0 + 2f64.powi(-11), Rounding::Nearest), 0x3c00);
        assert_eq!(Half::cut(1.0 + 2f64.powi(-11) + 1e-9, Rounding::Nearest), 0x3c01);
        assert_eq!(Half::cut(1e-9, Rounding::Up), 1);
        assert_eq!(Half::cut(-1e-9, Rounding::Down), 0x8001);
    }
}
