//! Rounding modes, subnormals and NaN of [`super`], against exact results.

use super::*;

#[test]
fn directed_rounding_brackets_the_exact_value() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 16
    };
    for _ in 0..20_000 {
        let (a, b, c) =
            (f32::from_bits(random() as u32), f32::from_bits(random() as u32), f32::from_bits(random() as u32));
        for (down, up, near) in [
            (add32(a, b, Rounding::Down), add32(a, b, Rounding::Up), a + b),
            (mul32(a, b, Rounding::Down), mul32(a, b, Rounding::Up), a * b),
            (div32(a, b, Rounding::Down), div32(a, b, Rounding::Up), a / b),
            (fma32(a, b, c, Rounding::Down), fma32(a, b, c, Rounding::Up), a.mul_add(b, c)),
        ] {
            if near.is_nan() {
                continue;
            }
            assert!(down <= near && near <= up, "{a:e} {b:e} {c:e}: {down:e} {near:e} {up:e}");
            assert!(down == up || down.next_up() == up, "{a:e} {b:e} {c:e}: {down:e} {up:e}");
        }
        let (a, b, c) =
            (f64::from_bits(random() << 8 ^ random()), f64::from_bits(random() << 9), f64::from_bits(random() << 7));
        for (down, up, near) in [
            (add64(a, b, Rounding::Down), add64(a, b, Rounding::Up), a + b),
            (mul64(a, b, Rounding::Down), mul64(a, b, Rounding::Up), a * b),
            (div64(a, b, Rounding::Down), div64(a, b, Rounding::Up), a / b),
            (fma64(a, b, c, Rounding::Down), fma64(a, b, c, Rounding::Up), a.mul_add(b, c)),
        ] {
            if near.is_nan() {
                continue;
            }
            assert!(down <= near && near <= up, "{a:e} {b:e} {c:e}: {down:e} {near:e} {up:e}");
            assert!(down == up || down.next_up() == up, "{a:e} {b:e} {c:e}: {down:e} {up:e}");
        }
    }
    assert_eq!(add32(1.0, f32::MIN_POSITIVE, Rounding::Up), 1f32.next_up());
    assert_eq!(div32(1.0, 3.0, Rounding::Down).next_up(), div32(1.0, 3.0, Rounding::Up));
    assert_eq!(sqrt64(2.0, Rounding::Zero).next_up(), sqrt64(2.0, Rounding::Up));
    assert_eq!(mul32(f32::MAX, 2.0, Rounding::Zero), f32::MAX);
    assert_eq!(add32(1.0, -1.0, Rounding::Down).to_bits(), (-0f32).to_bits());
}

/// Of the special functions too, whatever the processor's own NaN is.
#[test]
fn special_functions_make_the_nan_of_the_hardware() {
    use super::approximate::{SpecialFunction, rsqrt, special, sqrt};
    let inputs = [-1.0, f32::NAN, f32::from_bits(0xffc0_0001), f32::NEG_INFINITY, -1e-40];
    for a in inputs.map(std::hint::black_box) {
        for x in [0, FTZ].map(std::hint::black_box) {
            // What is flushed is a zero with the sign.
            if x & FTZ != 0 && a.is_subnormal() {
                continue;
            }
            assert_eq!(sqrt(a, x).to_bits(), 0x7fff_ffff, "sqrt({a}), {x}");
            assert_eq!(rsqrt(a, x).to_bits(), 0x7fff_ffff, "rsqrt({a}), {x}");
        }
        if !a.is_subnormal() {
            assert_eq!(special(SpecialFunction::Sqrt, a).to_bits(), 0x7fff_ffff, "{a}");
        }
    }
}
