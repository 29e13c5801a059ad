//! Dot products within a lane, and differences of bytes.

fn byte<const SIGNED: bool>(value: u32, at: u32) -> i32 {
    let byte = (value >> (8 * at)) as u8;
    if SIGNED { i32::from(byte as i8) } else { i32::from(byte) }
}

/// The dot product of four bytes, plus `c`.
pub(crate) fn dot_bytes<const A: bool, const B: bool>(a: u32, b: u32, c: u32) -> u32 {
    let sum: i32 = (0..4).map(|at| byte::<A>(a, at) * byte::<B>(b, at)).sum();
    c.wrapping_add(sum as u32)
}

/// The dot product of two 16-bit words of `a` and the low two bytes of `b`, plus `c`.
pub(crate) fn dot_words<const A: bool, const B: bool>(a: u32, b: u32, c: u32) -> u32 {
    let word = |at: u32| {
        let word = (a >> (16 * at)) as u16;
        if A { i32::from(word as i16) } else { i32::from(word) }
    };
    let sum: i32 = (0..2).map(|at| word(at) * byte::<B>(b, at)).sum();
    c.wrapping_add(sum as u32)
}

/// The absolute differences of four bytes, packed, and their sum.
pub(crate) fn differences<const SIGNED: bool>(a: u32, b: u32) -> (u32, u32) {
    let mut out = (0, 0);
    for at in 0..4 {
        let difference = byte::<SIGNED>(a, at).abs_diff(byte::<SIGNED>(b, at));
        out.0 |= (difference & 0xff) << (8 * at);
        out.1 += difference;
    }
    out
}
