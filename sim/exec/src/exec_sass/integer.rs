//! Integer arithmetic with carries in predicates.

use crate::exec::per_lane::each;
use crate::operations::operands;
use crate::program::{Inst, Next};
use crate::warp::Warp;

/// Signs of sums: this operand is negated (complemented and one added, which carries).
pub const NEGATE_A: u32 = 1;
pub const NEGATE_B: u32 = 2;
pub const NEGATE_C: u32 = 4;
/// The operand is complemented.
pub const INVERT_A: u32 = 8;
pub const INVERT_B: u32 = 16;
pub const INVERT_C: u32 = 32;

#[inline(always)]
fn term(value: u64, flags: u32, negate: u32, invert: u32) -> u64 {
    match () {
        () if flags & negate != 0 => u64::from(!(value as u32)) + 1,
        () if flags & invert != 0 => u64::from(!(value as u32)),
        () => value,
    }
}

/// IADD3: `d` = `a` + `b` + `c` and two carries in; `signs` says what is negated. The carries out
/// are at least one, and at least two.
#[inline(never)]
pub(crate) fn add3(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Add3::of(i);
    let carries = [i.carry(), i.carry2()].map(|pred| w.pred(pred));
    let (mut one, mut two) = (0, 0);
    each(mask, |l| {
        let a = term(w.get(i.a(), l), i.signs(), NEGATE_A, INVERT_A);
        let b = term(w.get(i.b(), l), i.signs(), NEGATE_B, INVERT_B);
        let c = term(w.get(i.c(), l), i.signs(), NEGATE_C, INVERT_C);
        let sum = a + b + c + u64::from(carries[0] >> l & 1) + u64::from(carries[1] >> l & 1);
        w.set(i.d(), l, sum & 0xffff_ffff);
        one |= u32::from(sum >> 32 >= 1) << l;
        two |= u32::from(sum >> 32 >= 2) << l;
    });
    w.set_pred(i.over(), mask, one);
    w.set_pred(i.over2(), mask, two);
    Next::Step
}

/// Sum of 64 bits for products: `d` = `a` + `b` + carry in.
#[inline(never)]
pub(crate) fn add_wide(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::AddWide::of(i);
    let carry = w.pred(i.carry());
    let mut out = 0;
    each(mask, |l| {
        let sum = u128::from(w.get(i.a(), l)) + u128::from(w.get(i.b(), l)) + u128::from(carry >> l & 1);
        w.set(i.d(), l, sum as u64);
        out |= u32::from(sum >> 64 != 0) << l;
    });
    w.set_pred(i.over(), mask, out);
    Next::Step
}
