//! Predicates: comparisons of two words as one value, tables of three predicates, moves to and from
//! registers.

use crate::exec::per_lane::each;
use crate::operations::operands;
use crate::program::{Inst, Next};
use crate::warp::Warp;

/// Comparison flags: which outcomes hold.
pub const LESS: u32 = 1;
pub(crate) const EQUAL: u32 = 2;
pub const GREATER: u32 = 4;
/// Operands are signed.
pub const SIGNED: u32 = 8;
/// Where both are equal, predicate `low` decides.
pub use crate::operations::values::EXTENDED;
/// How the outcome is combined with a third predicate: shift of 2 bits.
pub const COMBINE: u32 = 8;

/// ISETP: predicates `p` and `q` get the comparison of `a` and `b` and its opposite, each combined
/// with a third.
#[inline(never)]
pub(crate) fn compare(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::IntCompare::of(i);
    let flip = if i.how() & SIGNED != 0 { 0x8000_0000u32 } else { 0 };
    let low = if i.how() & EXTENDED != 0 { w.pred(i.low()) } else { 0 };
    let mut bits = 0;
    each(mask, |l| {
        let (a, b) = (w.get(i.a(), l) as u32 ^ flip, w.get(i.b(), l) as u32 ^ flip);
        let holds = match a.cmp(&b) {
            std::cmp::Ordering::Less => i.how() & LESS != 0,
            std::cmp::Ordering::Greater => i.how() & GREATER != 0,
            std::cmp::Ordering::Equal if i.how() & EXTENDED != 0 => low >> l & 1 != 0,
            std::cmp::Ordering::Equal => i.how() & EQUAL != 0,
        };
        bits |= u32::from(holds) << l;
    });
    let third = w.pred(i.combined());
    let combined = |bits: u32| match i.how() >> COMBINE & 3 {
        0 => bits & third,
        1 => bits | third,
        _ => bits ^ third,
    };
    w.set_pred(i.p(), mask, combined(bits));
    w.set_pred(i.q(), mask, combined(!bits));
    Next::Step
}

/// The truth table `lut` of three masks.
pub(crate) fn table(lut: u32, a: u32, b: u32, c: u32) -> u32 {
    let mut out = 0;
    for row in 0..8 {
        if lut >> row & 1 != 0 {
            let pick = |value: u32, bit: u32| if row >> bit & 1 != 0 { value } else { !value };
            out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    out
}

/// PLOP3: predicates `p` and `q` from predicates `a`, `b`, `c` by two tables.
#[inline(never)]
pub(crate) fn logic(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Table::of(i);
    let [a, b, c] = [i.a(), i.b(), i.c()].map(|pred| w.pred(pred));
    w.set_pred(i.p(), mask, table(i.tables() & 0xff, a, b, c));
    w.set_pred(i.q(), mask, table(i.tables() >> 8, a, b, c));
    Next::Step
}

/// Predicate `p` = (row `a` is not zero) or (`combine` = 1: and) a predicate.
#[inline(never)]
pub(crate) fn not_zero(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::NotZero::of(i);
    let mut bits = 0;
    each(mask, |l| bits |= u32::from(w.get(i.a(), l) as u32 != 0) << l);
    let third = w.pred(i.combined());
    w.set_pred(i.p(), mask, if i.combine() == 1 { bits & third } else { bits | third });
    Next::Step
}

/// R2UR: the uniform register `d` takes what the first lane has in row `a`, and predicate `p` says
/// of each lane whether it has something else (measured). With `or` = 1 (R2UR.OR) the first lane is
/// one without predicate `other`, which is or'ed to the answer: an assembler's loop over lanes
/// whose operands differ asks for one operand after the other, so that all come from one lane. The
/// warp has one such register: lanes that the guard excludes see it change, too.
#[inline(never)]
pub(crate) fn to_uniform(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::ToUniform::of(i);
    let met = if i.or() == 1 { w.pred(i.other()) } else { 0 };
    let asked = if mask & !met != 0 { mask & !met } else { mask };
    let first = w.get(i.a(), asked.trailing_zeros() as usize);
    let mut bits = met;
    each(mask, |l| bits |= u32::from(w.get(i.a(), l) != first) << l);
    each(w.active, |l| w.set(i.d(), l, first));
    w.set_pred(i.p(), mask, bits);
    Next::Step
}

/// P2R: `d` = `a`, but for the bits of the mask in a byte: those are seven predicates.
#[inline(never)]
pub(crate) fn to_register(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::ToRegister::of(i);
    let mut preds = [0; 7];
    preds.iter_mut().zip(i.from()).for_each(|(bits, pred)| *bits = w.pred(pred));
    each(mask, |l| {
        let bits = preds.iter().enumerate().fold(0, |sum, (n, pred)| sum | u64::from(pred >> l & 1) << n);
        let wanted = w.get(i.mask(), l) & 0xff;
        let value = w.get(i.a(), l) & !(wanted << (8 * i.byte())) | (bits & wanted) << (8 * i.byte());
        w.set(i.d(), l, value);
    });
    Next::Step
}

/// R2P: of seven predicates, those in the mask are set from a byte of `a`.
#[inline(never)]
pub(crate) fn from_register(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::FromRegister::of(i);
    let (mut wanted, mut values) = ([0u32; 7], [0u32; 7]);
    each(mask, |l| {
        let (bits, which) = (w.get(i.a(), l) >> (8 * i.byte()), w.get(i.mask(), l));
        for n in 0..7 {
            wanted[n] |= ((which >> n & 1) as u32) << l;
            values[n] |= ((bits >> n & 1) as u32) << l;
        }
    });
    for (pred, (wanted, values)) in i.into().zip(wanted.into_iter().zip(values)) {
        w.set_pred(pred, wanted, values);
    }
    Next::Step
}
