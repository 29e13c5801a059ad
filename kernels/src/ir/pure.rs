//! Functions of numbers that have no form: bits counted and turned, dot products, floating point.
//!
//! Owns which there are, and what they give for known numbers, as the hardware does it. Where all
//! operands of a thread are known, its result is; otherwise no more than [`Pure::range`]. Results
//! that hardware, compiler or mode may decide otherwise are not given: those of NaN, and inexact
//! ones where the rounding is not the nearest or a product and a sum may be fused.

use super::Reason;
use serde::{Deserialize, Serialize};

/// How a conversion or a rounding rounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Rounding {
    /// To the nearest, ties to even.
    Nearest,
    /// Down.
    Down,
    /// Up.
    Up,
    /// Towards zero.
    Zero,
}

/// A function of up to three numbers `a`, `b`, `c`: 32 bits each, unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "fields: signs, and whether numbers have 64 bits (`wide`)")]
pub enum Pure {
    /// The bits of a in reverse order.
    Reverse { wide: bool },
    /// Zeros above the highest bit that is set in a.
    LeadingZeros { wide: bool },
    /// The place of the highest bit of a that is set (signed: that is no sign), all ones where
    /// there is none; `distance`: counted from the highest place.
    HighestBit { wide: bool, signed: bool, distance: bool },
    /// Bits that are set in a.
    Ones { wide: bool },
    /// Sum of the products of four bytes, plus c.
    DotBytes { a_signed: bool, b_signed: bool },
    /// Sum of the products of two halves of a and the low or high two bytes of b, plus c.
    DotHalves { a_signed: bool, b_signed: bool, high: bool },
    /// |a - b| + c.
    Difference { signed: bool },
    /// The place of the c-th bit that is set in a, from place b on (PTX `fns`).
    NthBit,
    /// The low or high word of {b:a} shifted by c. Counts above 32 (64 where `wide`) are that, or
    /// wrap.
    Funnel { right: bool, hi: bool, signed: bool, wide: bool, wraps: bool },
    /// c bits of a from place b on.
    Extract { wide: bool, signed: bool },
    /// A mask of b ones from place a up.
    Mask,
    /// a + b.
    FloatAdd { wide: bool, flush: bool, fusible: bool },
    /// a * b.
    FloatMul { wide: bool, flush: bool, fusible: bool },
    /// a * b + c, rounded once.
    FloatFma { wide: bool, flush: bool },
    /// a / b, rounded to the nearest.
    FloatDiv { wide: bool, flush: bool },
    /// The lesser or greater of a and b.
    FloatMinMax { wide: bool, flush: bool, max: bool },
    /// a as a whole number.
    FloatRound { wide: bool, flush: bool, round: Rounding },
    /// A single as a double, or the other way round.
    FloatResize { widens: bool, flush: bool, round: Rounding },
    /// An integer of 32 or 64 bits (`from_wide`) as a single or a double (`wide`).
    IntToFloat { signed: bool, from_wide: bool, wide: bool, round: Rounding },
    /// A single or a double (`from_wide`) as an integer of so many bits.
    FloatToInt { signed: bool, bits: u8, from_wide: bool, flush: bool, round: Rounding },
}

impl Pure {
    /// Whether an operand has 64 bits.
    #[must_use]
    pub(crate) fn is_wide(self, operand: usize) -> bool {
        match self {
            Pure::Reverse { wide }
            | Pure::LeadingZeros { wide }
            | Pure::HighestBit { wide, .. }
            | Pure::Ones { wide }
            | Pure::FloatAdd { wide, .. }
            | Pure::FloatMul { wide, .. }
            | Pure::FloatFma { wide, .. }
            | Pure::FloatDiv { wide, .. }
            | Pure::FloatMinMax { wide, .. }
            | Pure::FloatRound { wide, .. } => wide,
            Pure::Extract { wide, .. } => wide && operand == 0,
            Pure::FloatResize { widens, .. } => !widens,
            Pure::IntToFloat { from_wide, .. } | Pure::FloatToInt { from_wide, .. } => from_wide,
            _ => false,
        }
    }

    /// Why nothing is known of the result where the operands are not known.
    #[must_use]
    pub(crate) fn reason(self) -> Reason {
        use Pure::*;
        match self {
            FloatAdd { .. }
            | FloatMul { .. }
            | FloatFma { .. }
            | FloatDiv { .. }
            | FloatMinMax { .. }
            | FloatRound { .. }
            | FloatResize { .. }
            | IntToFloat { .. }
            | FloatToInt { .. } => Reason::Float,
            _ => Reason::Bits,
        }
    }

    /// The least and greatest result, whatever the operands.
    #[must_use]
    pub(crate) fn range(self) -> Option<(i64, i64)> {
        let bits = |wide: bool| if wide { 64 } else { 32 };
        match self {
            Pure::LeadingZeros { wide } | Pure::Ones { wide } => Some((0, bits(wide))),
            _ => None,
        }
    }

    /// The result for these numbers, where it is sure.
    #[must_use]
    pub(crate) fn apply(self, [a, b, c]: [u64; 3]) -> Option<u64> {
        let word = |v: u64| u64::from(v as u32);
        Some(match self {
            Pure::Reverse { wide } => {
                if wide {
                    a.reverse_bits()
                } else {
                    (a as u32).reverse_bits().into()
                }
            }
            Pure::LeadingZeros { wide } => (if wide { a.leading_zeros() } else { (a as u32).leading_zeros() }).into(),
            Pure::HighestBit { wide, signed, distance } => highest_bit(a, wide, signed, distance),
            Pure::Ones { wide } => (if wide { a } else { word(a) }).count_ones().into(),
            Pure::DotBytes { a_signed, b_signed } => {
                let part = |k: u32| field(a, 8 * k, 8, a_signed) * field(b, 8 * k, 8, b_signed);
                word((0..4).map(part).fold(c as i64, i64::wrapping_add) as u64)
            }
            Pure::DotHalves { a_signed, b_signed, high } => {
                let from = if high { 16 } else { 0 };
                let part = |k: u32| field(a, 16 * k, 16, a_signed) * field(b, from + 8 * k, 8, b_signed);
                word((0..2).map(part).fold(c as i64, i64::wrapping_add) as u64)
            }
            Pure::Difference { signed } => {
                let apart = (field(a, 0, 32, signed) - field(b, 0, 32, signed)).unsigned_abs();
                word(apart.wrapping_add(c))
            }
            Pure::NthBit => nth_bit(a as u32, b as u32, c as u32 as i32).into(),
            Pure::Funnel { right, hi, signed, wide, wraps } => {
                let most = if wide { 64 } else { 32 };
                let count = if wraps { c as u32 & (most - 1) } else { (c as u32).min(most) };
                let both = word(b) << 32 | word(a);
                let moved = match (right, signed) {
                    (true, true) => (i128::from(both as i64) >> count) as u64,
                    (true, false) => (u128::from(both) >> count) as u64,
                    (false, _) => (u128::from(both) << count) as u64,
                };
                if hi { moved >> 32 } else { word(moved) }
            }
            Pure::Extract { wide, signed } => extracted(a, b as u32 & 0xff, c as u32 & 0xff, wide, signed),
            Pure::Mask => {
                let (from, count) = (a as u32, b as u32);
                let ones = if count >= 32 { u64::from(u32::MAX) } else { (1 << count) - 1 };
                if from >= 32 { 0 } else { word(ones << from) }
            }
            Pure::FloatAdd { wide, flush, fusible } => {
                let (x, y) = (float(a, wide, flush), float(b, wide, flush));
                let sum = x + y;
                // Without an error (Knuth, "two-sum"), fused or not it is the same. Singles are
                // added in double precision first, which is exact or not alike.
                let back = sum - x;
                let is_exact = (x - (sum - back)) + (y - back) == 0.0;
                let result = if wide { sum } else { f64::from(x as f32 + y as f32) };
                if fusible && !(is_exact && result == sum) {
                    return None;
                }
                bits_of(result, wide, flush)?
            }
            Pure::FloatMul { wide, flush, fusible } => {
                let (x, y) = (float(a, wide, flush), float(b, wide, flush));
                let result = if wide { x * y } else { f64::from(x as f32 * y as f32) };
                if fusible && x.mul_add(y, -result) != 0.0 {
                    return None;
                }
                bits_of(result, wide, flush)?
            }
            Pure::FloatFma { wide, flush } => {
                let [x, y, z] = [a, b, c].map(|v| float(v, wide, flush));
                let single = || f64::from((x as f32).mul_add(y as f32, z as f32));
                bits_of(if wide { x.mul_add(y, z) } else { single() }, wide, flush)?
            }
            Pure::FloatDiv { wide, flush } => {
                let (x, y) = (float(a, wide, flush), float(b, wide, flush));
                bits_of(if wide { x / y } else { f64::from(x as f32 / y as f32) }, wide, flush)?
            }
            Pure::FloatMinMax { wide, flush, max } => {
                let (x, y) = (float(a, wide, flush), float(b, wide, flush));
                if x.is_nan() || y.is_nan() || x == 0.0 && y == 0.0 {
                    return None;
                }
                bits_of(if (x < y) == max { y } else { x }, wide, flush)?
            }
            Pure::FloatRound { wide, flush, round } => bits_of(rounded(float(a, wide, flush), round), wide, flush)?,
            Pure::FloatResize { widens, flush, round } => {
                let x = float(a, !widens, flush);
                let near = f64::from(x as f32);
                if !widens && round != Rounding::Nearest && near != x {
                    return None;
                }
                bits_of(if widens { x } else { near }, widens, flush)?
            }
            Pure::IntToFloat { signed, from_wide, wide, round } => {
                let v = if from_wide {
                    if signed { i128::from(a as i64) } else { i128::from(a) }
                } else {
                    field(a, 0, 32, signed).into()
                };
                let result = if wide { v as f64 } else { f64::from(v as f32) };
                if round != Rounding::Nearest && result as i128 != v {
                    return None;
                }
                bits_of(result, wide, false)?
            }
            Pure::FloatToInt { signed, bits, from_wide, flush, round } => {
                let x = rounded(float(a, from_wide, flush), round);
                if x.is_nan() {
                    return None;
                }
                let v = match (signed, bits) {
                    (true, 64) => x as i64 as u64,
                    (false, 64) => x as u64,
                    (true, _) => {
                        let most = (1_i64 << (bits - 1)) - 1;
                        (x as i64).clamp(-most - 1, most) as u64
                    }
                    (false, _) => (x as u64).min((1 << bits) - 1),
                };
                if bits == 64 { v } else { word(v) }
            }
        })
    }
}

/// Bits of a number, extended by their sign or not.
fn field(v: u64, from: u32, bits: u32, signed: bool) -> i64 {
    let up = v << (64 - from - bits);
    if signed { (up as i64) >> (64 - bits) } else { (up >> (64 - bits)) as i64 }
}

fn highest_bit(a: u64, wide: bool, signed: bool, distance: bool) -> u64 {
    let bits = if wide { 64 } else { 32 };
    let v = field(a, 0, bits, true);
    let v = if signed && v < 0 { !v } else { v } as u64;
    let v = if wide { v } else { v & 0xffff_ffff };
    match v.checked_ilog2() {
        None => 0xffff_ffff,
        Some(at) if distance => (bits - 1 - at).into(),
        Some(at) => at.into(),
    }
}

fn nth_bit(mask: u32, base: u32, offset: i32) -> u32 {
    let set = |at: i64| (0..32).contains(&at) && mask >> at & 1 == 1;
    let base = i64::from(base);
    if offset == 0 {
        return if set(base) { base as u32 } else { u32::MAX };
    }
    let step = i64::from(offset.signum());
    let places = (0..32).map(|k| base + step * k).filter(|at| set(*at));
    places.skip(offset.unsigned_abs() as usize - 1).map(|at| at as u32).next().unwrap_or(u32::MAX)
}

/// `bfe`: what lies beyond the number is its sign.
fn extracted(a: u64, from: u32, count: u32, wide: bool, signed: bool) -> u64 {
    let bits = if wide { 64 } else { 32 };
    let v = i128::from(field(a, 0, bits, signed));
    let v = if wide && !signed { i128::from(a) } else { v };
    let cut = if count == 0 {
        0
    } else {
        let moved = v >> from.min(120);
        let keep = count.min(bits);
        // The highest bit that there is, is the sign.
        let up = 128 - keep;
        if signed { moved << up >> up } else { moved & ((1_i128 << keep) - 1) }
    };
    if wide { cut as u64 } else { u64::from(cut as u32) }
}

/// A floating point number in double precision, which holds all singles.
fn float(v: u64, wide: bool, flush: bool) -> f64 {
    if wide {
        return f64::from_bits(v);
    }
    let x = f32::from_bits(v as u32);
    f64::from(if flush && x.is_subnormal() { 0.0_f32.copysign(x) } else { x })
}

/// The bits of a result; none of what is not a number.
fn bits_of(x: f64, wide: bool, flush: bool) -> Option<u64> {
    if x.is_nan() {
        return None;
    }
    if wide {
        return Some(x.to_bits());
    }
    let x = x as f32;
    let x = if flush && x.is_subnormal() { 0.0_f32.copysign(x) } else { x };
    Some(x.to_bits().into())
}

fn rounded(x: f64, how: Rounding) -> f64 {
    match how {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
        Rounding::Zero => x.trunc(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(f: Pure, of: [u32; 3]) -> Option<u32> {
        f.apply(of.map(u64::from)).map(|v| u32::try_from(v).expect("a word"))
    }

    #[test]
    fn bits_are_counted_and_turned_as_the_manual_says() {
        let find = |signed, distance| Pure::HighestBit { wide: false, signed, distance };
        for (f, a, result) in [
            (Pure::Reverse { wide: false }, 1, 1 << 31),
            (Pure::LeadingZeros { wide: false }, 0, 32),
            (Pure::Ones { wide: false }, 0xf0f0, 8),
            (find(false, false), 0, u32::MAX),
            (find(false, false), 0x8000, 15),
            (find(false, true), 0x8000, 16),
            (find(true, false), u32::MAX, u32::MAX),
            (find(true, false), !0x8000, 15),
        ] {
            assert_eq!(word(f, [a, 0, 0]), Some(result), "{f:?} of {a:#x}");
        }
        let bytes = |a_signed, b_signed| Pure::DotBytes { a_signed, b_signed };
        assert_eq!(word(bytes(false, false), [0x0101_0101, 0x0403_0201, 5]), Some(15));
        assert_eq!(word(bytes(true, false), [0xff, 3, 0]), Some(u32::MAX - 2));
        let halves = |high| Pure::DotHalves { a_signed: true, b_signed: true, high };
        assert_eq!(word(halves(false), [0x0002_0003, 0x0706_0504, 1]), Some(3 * 4 + 2 * 5 + 1));
        assert_eq!(word(halves(true), [0x0002_0003, 0x0706_0504, 1]), Some(3 * 6 + 2 * 7 + 1));
        assert_eq!(word(Pure::Difference { signed: true }, [u32::MAX, 1, 7]), Some(9));
        assert_eq!(word(Pure::Difference { signed: false }, [u32::MAX, 1, 0]), Some(u32::MAX - 1));
        assert_eq!(word(Pure::NthBit, [0b1011_0100, 0, 3]), Some(5));
        assert_eq!(word(Pure::NthBit, [0b1011_0100, 7, u32::MAX]), Some(7));
        assert_eq!(word(Pure::NthBit, [0b1011_0100, 3, 0]), Some(u32::MAX));
        let extract = |signed| Pure::Extract { wide: false, signed };
        assert_eq!(word(extract(false), [0xabcd_ef12, 8, 12]), Some(0xdef));
        assert_eq!(word(extract(true), [0xabcd_ef12, 28, 9]), Some(0xffff_fffa));
        assert_eq!(word(extract(true), [0xabcd_ef12, 40, 4]), Some(u32::MAX));
        let funnel = |right, wraps| Pure::Funnel { right, hi: !right, signed: false, wide: false, wraps };
        for (count, left, right) in [(0, 0x1234, 0x5678), (4, 0x1_2340, 0x4000_0567), (32, 0x5678, 0x1234)] {
            assert_eq!(word(funnel(false, false), [0x5678, 0x1234, count]), Some(left));
            assert_eq!(word(funnel(true, false), [0x5678, 0x1234, count]), Some(right));
        }
        assert_eq!(word(funnel(true, true), [0x5678, 0x1234, 32]), Some(0x5678));
    }

    #[test]
    fn whole_numbers_come_through_floats_unchanged_as_far_as_they_fit() {
        let to = Pure::IntToFloat { signed: true, from_wide: false, wide: false, round: Rounding::Nearest };
        let back = |round| Pure::FloatToInt { signed: true, bits: 32, from_wide: false, flush: false, round };
        let half = Pure::FloatMul { wide: false, flush: false, fusible: true };
        for n in [0, 1, 255, 65_537, 1 << 24, u32::MAX - 4] {
            let float = word(to, [n, 0, 0]).expect("a float");
            assert_eq!(word(back(Rounding::Zero), [float, 0, 0]), Some(n));
            let halved = word(half, [float, 0.5_f32.to_bits(), 0]).expect("exact");
            let doubled = word(half, [halved, 2.0_f32.to_bits(), 0]).expect("exact");
            assert_eq!(doubled, float);
        }
        let third = 0.333_f32.to_bits();
        assert_eq!(word(half, [third, third, 0]), None, "another rounding if it is fused");
        assert_eq!(word(back(Rounding::Down), [(-0.5_f32).to_bits(), 0, 0]), Some(u32::MAX));
        assert_eq!(word(back(Rounding::Zero), [3e9_f32.to_bits(), 0, 0]), Some(i32::MAX as u32));
        assert_eq!(word(back(Rounding::Zero), [f32::NAN.to_bits(), 0, 0]), None);
        let towards = Pure::IntToFloat { signed: true, from_wide: false, wide: false, round: Rounding::Up };
        assert_eq!(word(towards, [(1 << 24) + 1, 0, 0]), None, "not exact, and not to the nearest");
    }
}
