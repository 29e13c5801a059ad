//! Exponential, logarithm, sine and cosine of doubles, to some bits more than a single has. Made of
//! sums, products and choices alone, so that the compiler makes vectors of them, and the bits are
//! the same on every host.
//!
//! Does not know singles, nor what is flushed.

/// Added and taken away again, it leaves a whole number, which its lowest bits hold in between.
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// Of four terms each, so that the processor can compute several at once.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, factors: [[f64; 4]; N]) -> f64 {
    let square = x * x;
    let part = |[a, b, c, d]: [f64; 4]| (a + b * x) + (c + d * x) * square;
    let fourth = square * square;
    let mut sum = part(factors[N - 1]);
    for &four in factors.iter().rev().skip(1) {
        sum = part(four) + sum * fourth;
    }
    sum
}

/// `2^a`. What is below `2^-200` or above `2^200` is as if it were that.
#[inline(always)]
pub(super) fn exp2(a: f64) -> f64 {
    // A NaN stays one.
    let a = if a > 200.0 { 200.0 } else { a };
    let a = if a < -200.0 { -200.0 } else { a };
    let shifted = a + WHOLE;
    let rest = a - (shifted - WHOLE);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let fraction = polynomial(
        rest,
        [
            [1.0, std::f64::consts::LN_2, 0.240_226_506_959_100_72, 0.055_504_108_664_821_58],
            [
                0.009_618_129_107_628_477,
                0.001_333_355_814_642_844_3,
                0.000_154_035_303_933_816_1,
                1.525_273_380_405_984_1e-5,
            ],
            [1.321_548_679_014_431e-6, 1.017_808_600_923_97e-7, 7.054_911_620_801_123e-9, 4.445_538_271_870_811_6e-10],
        ],
    );
    fraction * power
}

/// The logarithm to the base of 2. Subnormal doubles are not known.
#[inline(always)]
pub(super) fn log2(a: f64) -> f64 {
    // The power of two next to it, and what is left: between the roots of 1/2 and of 2.
    const ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = a.to_bits();
    let over = bits.wrapping_sub(ROOT);
    // As an integer in the lowest bits of `WHOLE`: its sign is kept by adding before shifting.
    let power = f64::from_bits((over.wrapping_add(1 << 62) >> 52) | WHOLE.to_bits()) - (WHOLE + 1024.0);
    let rest = f64::from_bits(bits.wrapping_sub(over & 0xfff0_0000_0000_0000));
    let s = (rest - 1.0) / (rest + 1.0);
    let series = polynomial(
        s * s,
        [
            [2.885_390_081_777_926_8, 0.961_796_693_925_975_6, 0.577_078_016_355_585_3, 0.412_198_583_111_132_4],
            [0.320_598_897_975_325_2, 0.262_308_189_252_538_8, 0.221_953_083_213_686_67, 0.192_359_338_785_195_12],
        ],
    );
    let sum = s * series + power;
    // Of what is no number above zero.
    let sum = if a == f64::INFINITY { a } else { sum };
    let sum = if a == 0.0 { f64::NEG_INFINITY } else { sum };
    if a >= 0.0 { sum } else { f64::NAN }
}

/// Sine (`quarters` 0) or cosine (1) of so many turns.
#[inline(always)]
#[allow(clippy::eq_op, reason = "infinity less infinity is a NaN")]
pub(super) fn wave(turns: f64, quarters: u64) -> f64 {
    // So many are whole turns. Infinity becomes a NaN.
    let turns = if turns.abs() < 1e9 { turns } else { turns - turns };
    let scaled = turns * 4.0;
    let shifted = scaled + WHOLE;
    let rest = scaled - (shifted - WHOLE);
    let quarter = shifted.to_bits().wrapping_add(quarters);
    let square = rest * rest;
    let sine = rest
        * polynomial(
            square,
            [
                [
                    std::f64::consts::FRAC_PI_2,
                    -0.645_964_097_506_246_3,
                    0.079_692_626_246_167_05,
                    -0.004_681_754_135_318_688,
                ],
                [
                    0.000_160_441_184_787_359_83,
                    -3.598_843_235_212_085e-6,
                    5.692_172_921_967_927e-8,
                    -6.688_035_109_811_468e-10,
                ],
            ],
        );
    let cosine = polynomial(
        square,
        [
            [1.0, -1.233_700_550_136_169_7, 0.253_669_507_901_048_03, -0.020_863_480_763_352_96],
            [
                0.000_919_260_274_839_426_6,
                -2.520_204_237_306_060_5e-5,
                4.710_874_778_818_172e-7,
                -6.386_603_083_791_852e-9,
            ],
        ],
    );
    let value = if quarter & 1 == 0 { sine } else { cosine };
    f64::from_bits(value.to_bits() ^ (quarter & 2) << 62)
}
