//! Comparisons of singles and doubles, and the check in front of a quotient.

use std::cmp::Ordering;

use crate::exec::per_lane::each;
use crate::float::input;
use crate::operations::operands;
use crate::program::{Inst, Next};
use crate::warp::Warp;

/// Where `how` has how the outcome is combined with a third predicate; below it are the outcomes
/// that hold, as the machine code has them.
pub const BOP: u32 = 4;

/// True when one of the outcomes of `wanted` is that of two numbers.
#[inline(always)]
pub(crate) fn holds<F: PartialOrd>(wanted: u32, a: F, b: F) -> bool {
    let outcome = match a.partial_cmp(&b) {
        Some(Ordering::Less) => 1,
        Some(Ordering::Equal) => 2,
        Some(Ordering::Greater) => 4,
        None => 8,
    };
    wanted & outcome != 0
}

/// An outcome combined with a third predicate.
pub(crate) fn combined(how: u32, bits: u32, third: u32) -> u32 {
    match how & 3 {
        0 => bits & third,
        1 => bits | third,
        _ => bits ^ third,
    }
}

fn finish(w: &mut Warp<'_>, i: operands::FloatCompare<'_>, mask: u32, bits: u32) -> Next {
    let third = w.pred(i.combined());
    w.set_pred(i.p(), mask, combined(i.how() >> BOP, bits, third));
    w.set_pred(i.q(), mask, combined(i.how() >> BOP, !bits, third));
    Next::Step
}

/// FSETP: predicates `p` and `q` get the comparison of `a` and `b` and its opposite, each combined
/// with a third.
#[inline(never)]
pub(crate) fn compare(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::FloatCompare::of(i);
    let mut bits = 0;
    each(mask, |l| {
        let read = |row| input(f32::from_bits(w.get(row, l) as u32), i.flags());
        bits |= u32::from(holds(i.how() & 15, read(i.a()), read(i.b()))) << l;
    });
    finish(w, i, mask, bits)
}

/// DSETP, as [`compare`].
#[inline(never)]
pub(crate) fn compare_doubles(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::FloatCompare::of(i);
    let mut bits = 0;
    each(mask, |l| {
        let read = |row| f64::from_bits(w.get(row, l));
        bits |= u32::from(holds(i.how() & 15, read(i.a()), read(i.b()))) << l;
    });
    finish(w, i, mask, bits)
}

/// DSETP.MIN and DSETP.MAX (15 in the low bits of `how`): predicate `p` where `a` is the result,
/// `q` where both are NaN.
#[inline(never)]
pub(crate) fn choose_double(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::ChooseDouble::of(i);
    let max = i.how() & 15 == 15;
    let (mut first, mut neither) = (0, 0);
    each(mask, |l| {
        let (a, b) = (f64::from_bits(w.get(i.a(), l)), f64::from_bits(w.get(i.b(), l)));
        let takes = match (a.is_nan(), b.is_nan()) {
            (true, _) => false,
            (_, true) => true,
            // Of two zeros the negative one is the smaller.
            _ if a == b && max => a.is_sign_positive() && b.is_sign_negative(),
            _ if a == b => a.is_sign_negative() || b.is_sign_positive(),
            _ => (a < b) != max,
        };
        first |= u32::from(takes) << l;
        neither |= u32::from(a.is_nan() && b.is_nan()) << l;
    });
    let third = w.pred(i.combined());
    w.set_pred(i.p(), mask, combined(i.how() >> BOP, first, third));
    w.set_pred(i.q(), mask, combined(i.how() >> BOP, neither, third));
    Next::Step
}

/// FCHK: predicate `p` where the quotient `a` / `b` needs the long way: where an operand, the
/// quotient, or a remainder on the way may leave the normal numbers. The long way gives the same
/// result for all others.
#[inline(never)]
pub(crate) fn check_quotient(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::CheckQuotient::of(i);
    let mut bits = 0;
    each(mask, |l| {
        let exponent = |row| (w.get(row, l) >> 23 & 0xff) as i32;
        let (a, b) = (exponent(i.a()), exponent(i.b()));
        let short = (64..=250).contains(&a) && (8..=246).contains(&b) && (-120..=120).contains(&(a - b));
        bits |= u32::from(!short) << l;
    });
    w.set_pred(i.p(), mask, bits);
    Next::Step
}
