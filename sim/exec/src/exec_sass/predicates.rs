//! Predicates: comparisons of two words as one value, tables of three predicates, moves to and from
//! registers.

use crate::exec::per_lane::each;
use crate::program::{Inst, Next, Pred};
use crate::warp::Warp;

/// Comparison flags: which outcomes hold.
pub const LESS: u32 = 1;
pub(crate) const EQUAL: u32 = 2;
pub const GREATER: u32 = 4;
/// Operands are signed.
pub const SIGNED: u32 = 8;
/// Where both are equal, predicate `x` (bits 32 and up) decides.
pub const EXTENDED: u32 = 16;
/// How the outcome is combined with predicate `c`: shift of 2 bits.
pub const COMBINE: u32 = 8;

/// ISETP: predicates `d` and `z` get the comparison of `a` and `b` and its opposite, each combined
/// with predicate `c`.
#[inline(never)]
pub(crate) fn compare(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let flip = if i.y & SIGNED != 0 { 0x8000_0000u32 } else { 0 };
    let low = if i.y & EXTENDED != 0 { w.pred(Pred(i.x as u32)) } else { 0 };
    let mut bits = 0;
    each(mask, |l| {
        let (a, b) = (w.get(i.a, l) as u32 ^ flip, w.get(i.b, l) as u32 ^ flip);
        let holds = match a.cmp(&b) {
            std::cmp::Ordering::Less => i.y & LESS != 0,
            std::cmp::Ordering::Greater => i.y & GREATER != 0,
            std::cmp::Ordering::Equal if i.y & EXTENDED != 0 => low >> l & 1 != 0,
            std::cmp::Ordering::Equal => i.y & EQUAL != 0,
        };
        bits |= u32::from(holds) << l;
    });
    let third = w.pred(Pred(i.c.0));
    let combined = |bits: u32| match i.y >> COMBINE & 3 {
        0 => bits & third,
        1 => bits | third,
        _ => bits ^ third,
    };
    w.set_pred(Pred(i.d.0), mask, combined(bits));
    w.set_pred(Pred(i.z), mask, combined(!bits));
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

/// PLOP3: predicates `d` and `z` from predicates `a`, `b`, `c` by the two tables in `y`.
#[inline(never)]
pub(crate) fn logic(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let [a, b, c] = [i.a, i.b, i.c].map(|slot| w.pred(Pred(slot.0)));
    w.set_pred(Pred(i.d.0), mask, table(i.y & 0xff, a, b, c));
    w.set_pred(Pred(i.z), mask, table(i.y >> 8, a, b, c));
    Next::Step
}

/// Predicate `d` = (row `a` is not zero) or (`y` = 1: and) predicate `c`.
#[inline(never)]
pub(crate) fn not_zero(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let mut bits = 0;
    each(mask, |l| bits |= u32::from(w.get(i.a, l) as u32 != 0) << l);
    let third = w.pred(Pred(i.c.0));
    w.set_pred(Pred(i.d.0), mask, if i.y == 1 { bits & third } else { bits | third });
    Next::Step
}

/// R2UR: predicate `d` where row `a` is not what the first lane has, whose value the uniform
/// register takes. (Measured.)
#[inline(never)]
pub(crate) fn differs(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let first = w.get(i.a, mask.trailing_zeros() as usize);
    let mut bits = 0;
    each(mask, |l| bits |= u32::from(w.get(i.a, l) != first) << l);
    w.set_pred(Pred(i.d.0), mask, bits);
    Next::Step
}

/// P2R: `d` = `a`, but for the bits of mask `b` in byte `y`: those are the seven predicates from
/// `z` on.
#[inline(never)]
pub(crate) fn to_register(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let preds: [u32; 7] = std::array::from_fn(|n| w.pred(Pred(i.z + n as u32)));
    each(mask, |l| {
        let bits = preds.iter().enumerate().fold(0, |sum, (n, pred)| sum | u64::from(pred >> l & 1) << n);
        let wanted = w.get(i.b, l) & 0xff;
        let value = w.get(i.a, l) & !(wanted << (8 * i.y)) | (bits & wanted) << (8 * i.y);
        w.set(i.d, l, value);
    });
    Next::Step
}

/// R2P: of the seven predicates from `z` on, those in mask `b` are set from byte `y` of `a`.
#[inline(never)]
pub(crate) fn from_register(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let (mut wanted, mut values) = ([0u32; 7], [0u32; 7]);
    each(mask, |l| {
        let (bits, which) = (w.get(i.a, l) >> (8 * i.y), w.get(i.b, l));
        for n in 0..7 {
            wanted[n] |= ((which >> n & 1) as u32) << l;
            values[n] |= ((bits >> n & 1) as u32) << l;
        }
    });
    for n in 0..7 {
        w.set_pred(Pred(i.z + n as u32), wanted[n], values[n]);
    }
    Next::Step
}
