//! Operations on one number, as the hardware does them.
//!
//! Owns what is more than an operator of the language. Which numbers, and what is known of them, is
//! in `lane_arithmetic`.

/// The signed number that some low bits are.
pub(super) fn signed(v: u64, bits: u32) -> i64 {
    if bits == 64 { v as i64 } else { i64::from(v as u32 as i32) }
}

/// A quotient or a remainder; of a division by zero, zero.
pub(super) fn divided(x: u64, y: u64, bits: u32, s: bool, rem: bool) -> u64 {
    if y == 0 {
        return 0;
    }
    match (s, rem) {
        (false, false) => x / y,
        (false, true) => x % y,
        (true, false) => signed(x, bits).wrapping_div(signed(y, bits)) as u64,
        (true, true) => signed(x, bits).wrapping_rem(signed(y, bits)) as u64,
    }
}

/// `PRMT`: bytes of two words, by the digits of a selector.
pub(super) fn permuted(x: u64, sel: u64, y: u64) -> u64 {
    let v = x & 0xffff_ffff | y << 32;
    (0..4).fold(0, |r, k| {
        let c = sel >> (4 * k) & 15;
        let byte = v >> (8 * (c & 7)) & 0xff;
        let byte = match (c & 8 != 0, byte >> 7 == 1) {
            (false, _) => byte,
            (true, true) => 0xff,
            (true, false) => 0,
        };
        r | byte << (8 * k)
    })
}

/// Does a comparison hold? Bits of `holds`: less, equal, greater, not ordered.
pub(super) fn compared_floats(holds: u8, flush: bool, wide: bool, x: u64, y: u64) -> bool {
    let float = |v: u64| {
        let (v, least) = if wide {
            (f64::from_bits(v), f64::MIN_POSITIVE)
        } else {
            (f64::from(f32::from_bits(v as u32)), f64::from(f32::MIN_POSITIVE))
        };
        if flush && v.abs() < least { 0.0 } else { v }
    };
    let way = float(x).partial_cmp(&float(y)).map_or(3, |o| o as i8 + 1);
    holds >> way & 1 == 1
}
