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

/// To the last bit or so, as the host's own functions have them.
#[test]
fn special_functions_are_near_the_hosts() {
    use super::approximate::{SpecialFunction, special};
    let turns = |a: f64| (a - a.round()) * std::f64::consts::TAU;
    for bits in (0..=u32::MAX).step_by(10_007) {
        let a = flush(f32::from_bits(bits));
        let wide = f64::from(a);
        let cases = [
            (SpecialFunction::Ex2, wide.exp2(), 0.0),
            (SpecialFunction::Lg2, wide.log2(), 0.0),
            (SpecialFunction::Sin, turns(wide).sin(), 1e-15),
            (SpecialFunction::Cos, turns(wide).cos(), 1e-15),
            (SpecialFunction::Rcp, 1.0 / wide, 0.0),
            (SpecialFunction::Rsq, 1.0 / wide.sqrt(), 0.0),
            (SpecialFunction::Sqrt, wide.sqrt(), 0.0),
        ];
        for (function, host, slack) in cases {
            let (own, host) = (special(function, a), output(host as f32, FTZ));
            let near = own == host || own.next_up() == host || own.next_down() == host;
            let same = own.to_bits() == host.to_bits() || near || (own - host).abs() < slack;
            assert!(same, "{function:?} of {a:e}: {own:e}, not {host:e}");
        }
    }
}

/// Whole numbers and quarters of a turn are exact.
#[test]
fn special_functions_hit_what_they_can() {
    use super::approximate::{SpecialFunction, special};
    for power in -126..=127 {
        let value = 2f32.powi(power);
        assert_eq!(special(SpecialFunction::Ex2, power as f32), value);
        assert_eq!(special(SpecialFunction::Lg2, value), power as f32);
    }
    for (turns, sine, cosine) in [(0.0, 0.0, 1.0), (0.25, 1.0, 0.0), (-0.25, -1.0, 0.0), (1000.5, 0.0, -1.0)] {
        assert_eq!(special(SpecialFunction::Sin, turns), sine, "{turns}");
        assert_eq!(special(SpecialFunction::Cos, turns), cosine, "{turns}");
    }
    assert!(special(SpecialFunction::Sin, f32::INFINITY).is_nan());
    assert!(special(SpecialFunction::Lg2, -1.0).is_nan());
    assert_eq!(special(SpecialFunction::Lg2, 0.0), f32::NEG_INFINITY);
}
