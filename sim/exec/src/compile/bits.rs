//! Bit operations of integers that take more than a line, and arithmetic with carries.

use device_code::ptx::Type;

use super::Op;
use crate::exec::per_lane;
use crate::exec::per_lane::{LaneFn, op1, op2, op3};
use crate::operations::operands;
use crate::program::{Inst, Next};
use crate::warp::Warp;

/// Two words as one, `b` above `a`.
pub(super) fn wide(a: u32, b: u32) -> u64 {
    u64::from(a) | u64::from(b) << 32
}

pub(super) fn bfind(ty: Type, shift: bool) -> LaneFn {
    match (ty, shift) {
        (Type::U32, false) => op1(|a: u32| a.checked_ilog2().unwrap_or(u32::MAX)),
        (Type::U32, true) => op1(|a: u32| a.checked_ilog2().map_or(u32::MAX, |at| 31 - at)),
        (Type::S32, false) => op1(|a: i32| ((a ^ a >> 31) as u32).checked_ilog2().unwrap_or(u32::MAX)),
        (Type::S32, true) => op1(|a: i32| ((a ^ a >> 31) as u32).checked_ilog2().map_or(u32::MAX, |at| 31 - at)),
        (Type::U64, false) => op1(|a: u64| a.checked_ilog2().unwrap_or(u32::MAX)),
        (Type::U64, true) => op1(|a: u64| a.checked_ilog2().map_or(u32::MAX, |at| 63 - at)),
        (_, false) => op1(|a: i64| ((a ^ a >> 63) as u64).checked_ilog2().unwrap_or(u32::MAX)),
        (_, true) => op1(|a: i64| ((a ^ a >> 63) as u64).checked_ilog2().map_or(u32::MAX, |at| 63 - at)),
    }
}

/// Position of the n-th set bit from `base` on, upwards or downwards.
pub(super) fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 != 0 { base } else { u32::MAX };
    }
    let mut left = offset.unsigned_abs();
    let mut at = base as i32;
    while (0..32).contains(&at) {
        if mask >> at & 1 != 0 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += if offset > 0 { 1 } else { -1 };
    }
    u32::MAX
}

pub(super) fn bfe(a: u64, position: u32, length: u32, width: u32, signed: bool) -> u64 {
    // Fields of 64 bits are extracted by code of ptxas, which takes the numbers as they are.
    let (position, length) = if width == 64 { (position, length) } else { (position & 0xff, length & 0xff) };
    let msb = width - 1;
    let sign_at = position.saturating_add(length).saturating_sub(1).min(msb);
    let sign = signed && length != 0 && a >> sign_at & 1 != 0;
    let mut out = if sign { u64::MAX } else { 0 };
    for at in 0..=msb {
        if at < length && position.saturating_add(at) <= msb {
            let bit = a >> (position + at) & 1;
            out = out & !(1 << at) | bit << at;
        }
    }
    if width == 32 { out & 0xffff_ffff } else { out }
}

pub(super) fn bfi(a: u64, b: u64, both: u64, width: u32) -> u64 {
    let (position, length) = ((both & 0xff) as u32, (both >> 8 & 0xff) as u32);
    if position >= width || length == 0 {
        return b;
    }
    let length = length.min(width - position);
    let ones = if length == 64 { u64::MAX } else { (1 << length) - 1 };
    b & !(ones << position) | (a & ones) << position
}

pub(super) fn bmsk(from: u32, length: u32) -> u32 {
    let ones = if length >= 32 { u32::MAX } else { (1 << length) - 1 };
    if from >= 32 { 0 } else { ones << from }
}

pub(super) fn szext(ty: Type, clamp: bool) -> LaneFn {
    fn extend(a: u32, n: u32, signed: bool) -> u32 {
        match n {
            0 => 0,
            32.. => a,
            _ if signed => ((a << (32 - n)) as i32 >> (32 - n)) as u32,
            _ => a & ((1 << n) - 1),
        }
    }
    match (ty == Type::S32, clamp) {
        (true, true) => op2(|a: u32, b: u32| extend(a, b, true)),
        (true, false) => op2(|a: u32, b: u32| extend(a, b & 31, true)),
        (false, true) => op2(|a: u32, b: u32| extend(a, b, false)),
        (false, false) => op2(|a: u32, b: u32| extend(a, b & 31, false)),
    }
}

pub(crate) fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let all = wide(a, b);
    let mut out = 0;
    for at in 0..4 {
        let choice = selector >> (4 * at) & 0xf;
        let byte = (all >> (8 * (choice & 7))) as u8;
        let byte = if choice & 8 != 0 { if byte & 0x80 != 0 { 0xff } else { 0 } } else { byte };
        out |= u32::from(byte) << (8 * at);
    }
    out
}

pub(crate) fn lop3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let mut out = 0;
    for row in 0..8 {
        if table >> row & 1 != 0 {
            let pick = |value: u32, bit: u32| if row >> bit & 1 != 0 { value } else { !value };
            out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    out
}

/// `dp4a.atype.btype`, `dp2a.lo/hi.atype.btype`
pub(super) fn dot(op: Op<'_>, two: bool) -> LaneFn {
    let mut types = op.types();
    let a = types.next() == Some(Type::S32);
    let b = types.next() == Some(Type::S32);
    fn byte(value: u32, at: u32, signed: bool) -> i32 {
        let byte = (value >> (8 * at)) as u8;
        if signed { i32::from(byte as i8) } else { i32::from(byte) }
    }
    fn half(value: u32, at: u32, signed: bool) -> i32 {
        let half = (value >> (16 * at)) as u16;
        if signed { i32::from(half as i16) } else { i32::from(half) }
    }
    fn four(a: u32, b: u32, c: u32, sa: bool, sb: bool) -> u32 {
        (0..4).fold(c, |sum, at| sum.wrapping_add((byte(a, at, sa) * byte(b, at, sb)) as u32))
    }
    fn pair(a: u32, b: u32, c: u32, sa: bool, sb: bool, first: u32) -> u32 {
        (0..2).fold(c, |sum, at| sum.wrapping_add(half(a, at, sa).wrapping_mul(byte(b, at + first, sb)) as u32))
    }
    macro_rules! signs {
        (|$a:ident, $b:ident, $c:ident, $sa:ident, $sb:ident| $e:expr) => {
            match (a, b) {
                (true, true) => op3(|$a: u32, $b: u32, $c: u32| {
                    let ($sa, $sb) = (true, true);
                    $e
                }),
                (true, false) => op3(|$a: u32, $b: u32, $c: u32| {
                    let ($sa, $sb) = (true, false);
                    $e
                }),
                (false, true) => op3(|$a: u32, $b: u32, $c: u32| {
                    let ($sa, $sb) = (false, true);
                    $e
                }),
                (false, false) => op3(|$a: u32, $b: u32, $c: u32| {
                    let ($sa, $sb) = (false, false);
                    $e
                }),
            }
        };
    }
    match (two, op.has("hi")) {
        (false, _) => signs!(|a, b, c, sa, sb| four(a, b, c, sa, sb)),
        (true, false) => signs!(|a, b, c, sa, sb| pair(a, b, c, sa, sb, 0)),
        (true, true) => signs!(|a, b, c, sa, sb| pair(a, b, c, sa, sb, 2)),
    }
}

/// Add, subtract and multiply-add with the carry in a row.
#[inline(never)]
pub(crate) fn with_carry(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::WithCarry::of(i);
    let is = |bit: u32| i.how() >> bit & 1 != 0;
    let (reads, writes, subtract, multiply, high, signed, double) = (is(0), is(1), is(2), is(3), is(4), is(5), is(6));
    let width = if double { 64 } else { 32 };
    let ones = if double { u64::MAX } else { 0xffff_ffff };
    per_lane::each(mask, |l| {
        let (a, b) = (w.get(i.a(), l) & ones, w.get(i.b(), l) & ones);
        let carry = if reads { u128::from(w.get(i.carry(), l) & 1) } else { 0 };
        let (x, y) = if multiply {
            let product = if signed {
                let extend = |v: u64| if double { i128::from(v as i64) } else { i128::from(v as u32 as i32) };
                (extend(a) * extend(b)) as u128
            } else {
                u128::from(a) * u128::from(b)
            };
            let half = if high { product >> width } else { product } as u64 & ones;
            (half, w.get(i.c(), l) & ones)
        } else {
            (a, b)
        };
        let sum = if subtract {
            u128::from(x).wrapping_sub(u128::from(y)).wrapping_sub(carry)
        } else {
            u128::from(x) + u128::from(y) + carry
        };
        w.set(i.d(), l, sum as u64 & ones);
        if writes {
            // A borrow leaves ones above the result, of which the lowest is the flag.
            w.set(i.over(), l, (sum >> width) as u64 & 1);
        }
    });
    Next::Step
}
/// `add`, `min` and `max` of two halves at once (`.u16x2`, `.s16x2`).
pub(super) fn halves(op: Op<'_>) -> Option<LaneFn> {
    macro_rules! both {
        ($ty:ty, |$a:ident, $b:ident| $e:expr) => {
            op2(|a: u32, b: u32| {
                let half = |shift: u32| {
                    let ($a, $b) = ((a >> shift) as $ty, (b >> shift) as $ty);
                    u32::from($e as u16) << shift
                };
                half(0) | half(16)
            })
        };
    }
    Some(match (op.name(), op.has("s16x2"), op.has("u16x2"), op.has("relu")) {
        ("add", true, _, _) | ("add", _, true, _) => both!(u16, |a, b| a.wrapping_add(b)),
        ("min", true, _, false) => both!(i16, |a, b| a.min(b)),
        ("max", true, _, false) => both!(i16, |a, b| a.max(b)),
        ("min", true, _, true) => both!(i16, |a, b| a.min(b).max(0)),
        ("max", true, _, true) => both!(i16, |a, b| a.max(b).max(0)),
        ("min", _, true, false) => both!(u16, |a, b| a.min(b)),
        ("max", _, true, false) => both!(u16, |a, b| a.max(b)),
        _ => return None,
    })
}
