//! The formats of 16 bits: half and bfloat16, to and from wider ones.

use super::{Rounding, normal, scale};

/// A format of 16 bits.
pub(crate) trait Small {
    /// To a single, exact.
    fn widen(bits: u16) -> f32;
    /// From a double (the exact value or one rounded to odd), rounded as asked.
    fn cut(value: f64, mode: Rounding) -> u16;
    /// From a single, rounded to nearest.
    fn cut_single(value: f32) -> u16;
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

    #[inline]
    fn cut(value: f64, mode: Rounding) -> u16 {
        match mode {
            Rounding::Nearest => nearest::<10, -14, 15>(value),
            _ => round_small(value, mode, 10, -14, 15),
        }
    }

    #[inline(always)]
    fn cut_single(value: f32) -> u16 {
        nearest_single::<10, -14, 15>(value)
    }
}

impl Small for Brain {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }

    #[inline]
    fn cut(value: f64, mode: Rounding) -> u16 {
        match mode {
            Rounding::Nearest => nearest::<7, -126, 127>(value),
            _ => round_small(value, mode, 7, -126, 127),
        }
    }

    #[inline(always)]
    fn cut_single(value: f32) -> u16 {
        nearest_single::<7, -126, 127>(value)
    }
}

macro_rules! to_nearest {
    ($name:ident, $float:ty, $bits:ty, $fraction:expr, $bias:expr) => {
        /// Rounds to the nearest number of a format with that many fraction bits and exponents from
        /// `LOW` to `HIGH`. Without branches, for vectors.
        #[inline(always)]
        fn $name<const FRACTION: i32, const LOW: i32, const HIGH: i32>(value: $float) -> u16 {
            const TOP: u32 = <$bits>::BITS - 1;
            let exponent = |power: i32| (power as $bits) << $fraction;
            let magnitude = value.to_bits() & !(1 << TOP);
            let sign = (value.to_bits() >> (TOP - 15)) as u16 & 0x8000;
            // The exponent moves down to where the format has it, and what is half or more of the
            // last bit carries into it; of a half itself only where that makes it even.
            let dropped = $fraction - FRACTION;
            let odd = magnitude >> dropped & 1;
            let half = ((1 as $bits) << (dropped - 1)) - 1;
            let normal = magnitude.wrapping_sub(exponent($bias + LOW - 1)).wrapping_add(half + odd) >> dropped;
            // Beside a number whose last bit weighs as much as the format's, the host rounds.
            let beside = <$float>::from_bits(exponent($bias + $fraction + LOW - FRACTION));
            let small = (<$float>::from_bits(magnitude) + beside).to_bits().wrapping_sub(beside.to_bits());
            let rounded = if magnitude < exponent($bias + LOW) { small } else { normal };
            let infinity = ((HIGH - LOW + 2) as $bits) << FRACTION;
            let finite = if rounded > infinity { infinity } else { rounded };
            if magnitude > exponent(2 * $bias + 1) { 0x7fff } else { finite as u16 | sign }
        }
    };
}
to_nearest!(nearest, f64, u64, 52, 1023);
to_nearest!(nearest_single, f32, u32, 23, 127);

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
    fn the_short_way_to_the_nearest_is_as_the_long_one() {
        let long = |value| {
            let near = Rounding::Nearest;
            [round_small(value, near, 10, -14, 15), round_small(value, near, 7, -126, 127)]
        };
        let check = |value: f64| {
            let short = [Half::cut(value, Rounding::Nearest), Brain::cut(value, Rounding::Nearest)];
            assert_eq!(short, long(value), "{value:e}");
            let single = value as f32;
            assert_eq!([Half::cut_single(single), Brain::cut_single(single)], long(f64::from(single)), "{single:e}");
        };
        // All numbers of both formats, what lies half way between them, and what lies beside that.
        for bits in 0..=u16::MAX {
            for value in [Half::widen(bits), Brain::widen(bits)].map(f64::from) {
                let above = [Half::widen(bits.wrapping_add(1)), Brain::widen(bits.wrapping_add(1))].map(f64::from);
                for value in [value, (value + above[0]) / 2.0, (value + above[1]) / 2.0] {
                    [value, value.next_up(), value.next_down()].into_iter().for_each(check);
                    let single = value as f32;
                    [single.next_up(), single.next_down()].into_iter().for_each(|single| check(f64::from(single)));
                }
            }
        }
        let mut bits = 1u64;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            check(f64::from_bits(bits));
            // Where the formats have numbers.
            let exponent = 1023 - 150 + (bits >> 20) % 300;
            check(f64::from_bits(bits & !(0x7ff << 52) | exponent << 52));
        }
    }

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
