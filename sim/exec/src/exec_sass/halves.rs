//! Packed halves with the choice of halves, signs and result that machine code has.

use crate::compile::half::{ELEMENTS, arranged, flushed, is_binary16};
use crate::exec::per_lane::each;
use crate::exec_sass::floats::{combined, holds};
use crate::float::approximate::{self, SpecialFunction};
use crate::float::float16::{Half, Small};
use crate::float::{FTZ, Rounding, output};
use crate::operations::operands;
use crate::program::{Inst, Next, Slot};
use crate::warp::Warp;

/// Where `how` has the operands, 4 bits each: which halves (0 both, 1 a single, 2 low, 3 high),
/// negated, absolute. Below are the operation or the outcomes of a comparison.
pub(crate) const OPERANDS: u32 = 8;

/// Operand `at` of lane `high` of the pair.
#[inline(always)]
fn read<S: Small>(bits: u64, (how, flags): (u32, u64), at: u32, high: bool) -> f64 {
    let how = how >> (OPERANDS + 4 * at);
    let value = match how & 3 {
        1 => f64::from(f32::from_bits(bits as u32)),
        2 => f64::from(S::widen(bits as u16)),
        3 => f64::from(S::widen((bits >> 16) as u16)),
        _ => f64::from(S::widen((bits >> if high { 16 } else { 0 }) as u16)),
    };
    let value = if how & 8 != 0 { value.abs() } else { value };
    flushed::<S>(if how & 4 != 0 { -value } else { value }, flags)
}

/// `d` = an operation of the halves of `a`, `b`, `c`; `SINGLE`: of the low lane, as a single.
#[inline(never)]
pub(crate) fn run<S: Small, const SINGLE: bool>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Halves::of(i);
    let (how, flags) = (i.how(), i.flags());
    let f = ELEMENTS[(how & 15) as usize];
    each(mask, |l| {
        let (a, b, c) = (w.get(i.a(), l), w.get(i.b(), l), w.get(i.c(), l));
        let value = |high| {
            let (a, b, c) = (
                read::<S>(a, (how, flags), 0, high),
                read::<S>(b, (how, flags), 1, high),
                read::<S>(c, (how, flags), 2, high),
            );
            arranged(f(a, b, c, flags), flags)
        };
        let out = if SINGLE {
            u64::from(output(value(false) as f32, flags & FTZ).to_bits())
        } else {
            u64::from(cut::<S>(value(false), flags)) | u64::from(cut::<S>(value(true), flags)) << 16
        };
        w.set(i.d(), l, out);
    });
    Next::Step
}

fn cut<S: Small>(value: f64, x: u64) -> u16 {
    crate::compile::half::cut::<S>(value, x)
}

/// The lanes where a comparison of two rows holds of the low and of the high halves.
fn outcomes<S: Small>(w: &Warp<'_>, (a, b): (Slot, Slot), how: (u32, u64), mask: u32) -> [u32; 2] {
    let mut bits = [0; 2];
    each(mask, |l| {
        let (a, b) = (w.get(a, l), w.get(b, l));
        for (high, bits) in bits.iter_mut().enumerate() {
            let (a, b) = (read::<S>(a, how, 0, high == 1), read::<S>(b, how, 1, high == 1));
            *bits |= u32::from(holds(how.0 & 15, a, b)) << l;
        }
    });
    bits
}

/// HSET2: halves of `d` are all ones, or 1.0 (bit 2 of `result`), where the comparison, combined
/// with a predicate (low bits), holds.
#[inline(never)]
pub(crate) fn set<S: Small>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::HalfSet::of(i);
    let third = w.pred(i.combined());
    let [low, high] =
        outcomes::<S>(w, (i.a(), i.b()), (i.how(), i.flags()), mask).map(|bits| combined(i.result(), bits, third));
    let one = match (i.result() >> 2 & 1, is_binary16::<S>()) {
        (0, _) => 0xffff,
        (_, true) => 0x3c00,
        _ => 0x3f80,
    };
    each(mask, |l| {
        let half = |bits: u32| if bits >> l & 1 != 0 { one } else { 0 };
        w.set(i.d(), l, half(low) | half(high) << 16);
    });
    Next::Step
}

/// HSETP2: predicate `p` of the low halves and `q` of the high ones; bit 34 of `flags`: that both
/// hold, and the opposite. Bits 32 and up: how a third predicate is combined.
#[inline(never)]
pub(crate) fn set_preds<S: Small>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::HalfSetPreds::of(i);
    let third = w.pred(i.combined());
    let [low, high] = outcomes::<S>(w, (i.a(), i.b()), (i.how(), i.flags()), mask);
    let [p, q] = if i.flags() >> 34 & 1 != 0 { [low & high, !(low & high)] } else { [low, high] };
    let how = (i.flags() >> 32) as u32;
    w.set_pred(i.p(), mask, combined(how, p, third));
    w.set_pred(i.q(), mask, combined(how, q, third));
    Next::Step
}

/// MUFU of a half: `which` half of `a` (bit 0), negated (1), absolute (2); the function is EX2 (2)
/// or TANH.
#[inline(never)]
pub(crate) fn special(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::HalfSpecial::of(i);
    let function = if i.function() == 2 { SpecialFunction::Ex2 } else { SpecialFunction::Tanh };
    each(mask, |l| {
        let value = f64::from(Half::widen((w.get(i.a(), l) >> (16 * (i.which() & 1))) as u16));
        let value = if i.which() & 4 != 0 { value.abs() } else { value };
        let value = if i.which() & 2 != 0 { -value } else { value };
        let bits = Half::cut(approximate::exact(function, value), Rounding::Nearest);
        w.set(i.d(), l, u64::from(bits));
    });
    Next::Step
}
