//! Native code for the functions of one lane's values, for all lanes of a pack at once. `floats`
//! has those of floats, `unit` the special functions, `carries` sums with carries in predicates.

pub(super) mod carries;
pub(super) mod floats;
mod unit;

use crate::pack::arithmetic::floats::computed_float;
use crate::pack::predicates::float_compared;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use super::uniformity::Class;
use crate::arithmetic::{bits, comparison_of_floats, comparison_of_integers, float, signed};
use crate::flow::{ValueForm, constant};
use sim_exec::exec::per_lane::{COMBINE_AND, COMBINE_NONE, COMBINE_OR};
use sim_exec::operations::operands;
use sim_exec::program::{LaneOp, LaneTy, ResultUse, Sem, Slot};

/// Compiles one operation for all lanes. Returns false when there are no vectors for it.
pub(super) fn operation(i: operands::Lane<'_>, op: &LaneOp, p: &mut Pack<'_, '_>) -> bool {
    if op.outcome == ResultUse::Value {
        let Some(value) = computed(i, op, p) else { return false };
        p.define(i.d(), value);
        return true;
    }
    let Some(holds) = compared(i, op, p) else { return false };
    let third = if i.combine() == COMBINE_NONE { None } else { Some(p.masks(i.combined().0)) };
    let first = combined(i.combine(), holds, third, p);
    if op.outcome == ResultUse::Choice {
        if i.constant() >> 32 != 0 {
            return false;
        }
        let yes = p.word_everywhere(i.constant() as u32);
        let words = each(p.width, |at| p.e.v.b.ins().band(first[at], yes));
        p.define(i.d(), Lanes::Words(words));
        return true;
    }
    let opposite = each(p.width, |at| p.e.v.b.ins().bnot(holds[at]));
    let second = combined(i.combine(), opposite, third, p);
    p.set(i.p().0, first);
    p.set(i.q().0, second);
    true
}

fn combined(how: u32, value: Narrow, third: Option<Narrow>, p: &mut Pack<'_, '_>) -> Narrow {
    let Some(third) = third else { return value };
    each(p.width, |at| match how {
        COMBINE_AND => p.e.v.b.ins().band(value[at], third[at]),
        COMBINE_OR => p.e.v.b.ins().bor(value[at], third[at]),
        _ => p.e.v.b.ins().bxor(value[at], third[at]),
    })
}

fn compared(i: operands::Lane<'_>, op: &LaneOp, p: &mut Pack<'_, '_>) -> Option<Narrow> {
    let ty = op.types[0];
    if float(ty) {
        let code = comparison_of_floats(op.sem)?;
        if ty == LaneTy::F32 {
            let ((a, _), (b, _)) = (p.singles(i.a(), true), p.singles(i.b(), true));
            return Some(each(p.width, |at| float_compared(code, a[at], b[at], p)));
        }
        let (a, b) = (p.doubles(i.a()), p.doubles(i.b()));
        let wide: Wide = each(p.width, |at| float_compared(code, a[at], b[at], p));
        return Some(p.narrowed(wide));
    }
    let code = comparison_of_integers(op.sem, ty)?;
    Some(match bits(ty) {
        64 => {
            let (a, b) = (p.longs(i.a()), p.longs(i.b()));
            let wide: Wide = each(p.width, |at| p.e.v.b.ins().icmp(code, a[at], b[at]));
            p.narrowed(wide)
        }
        _ => {
            let (a, b) = (integer(i.a(), ty, p), integer(i.b(), ty, p));
            each(p.width, |at| p.e.v.b.ins().icmp(code, a[at], b[at]))
        }
    })
}

/// An operand of at most 32 bits, extended from its type.
fn integer(slot: Slot, ty: LaneTy, p: &mut Pack<'_, '_>) -> Narrow {
    let words = p.words(slot);
    cut(words, ty, signed(ty), p)
}

/// The low bits of a type, extended.
fn cut(words: Narrow, ty: LaneTy, sign: bool, p: &mut Pack<'_, '_>) -> Narrow {
    match (bits(ty), sign) {
        (8 | 16, true) => {
            let count = p.e.v.int(types::I32, u64::from(32 - bits(ty)));
            each(p.width, |at| {
                let up = p.e.v.b.ins().ishl(words[at], count);
                p.e.v.b.ins().sshr(up, count)
            })
        }
        (8 | 16, false) => {
            let mask = p.word_everywhere((1 << bits(ty)) - 1);
            each(p.width, |at| p.e.v.b.ins().band(words[at], mask))
        }
        _ => words,
    }
}

fn extended_operand(slot: Slot, ty: LaneTy, p: &mut Pack<'_, '_>) -> Wide {
    if bits(ty) == 64 {
        return p.longs(slot);
    }
    let words = integer(slot, ty, p);
    p.extended(words, signed(ty))
}

/// A result of 64 bits in its type.
fn long_result(longs: Wide, ty: LaneTy, p: &mut Pack<'_, '_>) -> Lanes {
    match bits(ty) {
        64 => Lanes::Longs(longs),
        _ => {
            let words = p.narrowed(longs);
            Lanes::Words(cut(words, ty, false, p))
        }
    }
}

fn word_result(words: Narrow, ty: LaneTy, p: &mut Pack<'_, '_>) -> Lanes {
    match bits(ty) {
        64 => Lanes::Longs(p.extended(words, signed(ty))),
        _ => Lanes::Words(cut(words, ty, false, p)),
    }
}

fn computed(i: operands::Lane<'_>, op: &LaneOp, p: &mut Pack<'_, '_>) -> Option<Lanes> {
    let [ta, tb, tc, tr] = op.types;
    if float(ta) || float(tr) {
        return computed_float(i, op, p);
    }
    let wide = bits(ta) == 64;
    macro_rules! both {
        ($f:expr, $($operand:expr),*) => {{
            let f = $f;
            if wide {
                let operands = [$(p.longs($operand)),*];
                let longs = each(p.width, |at| f(p, operands.map(|operand| operand[at])));
                long_result(longs, tr, p)
            } else {
                let operands = [$(p.words($operand)),*];
                let words = each(p.width, |at| f(p, operands.map(|operand| operand[at])));
                word_result(words, tr, p)
            }
        }};
    }
    Some(match op.sem {
        Sem::Move if ta == tr && bits(ta) >= 32 => match whole(i.a(), p) {
            Some(lanes) => lanes,
            None if moves_word(i, p) => Lanes::Words(p.words(i.a())),
            None if bits(ta) == 64 => Lanes::Longs(p.longs(i.a())),
            None => Lanes::Words(p.words(i.a())),
        },
        Sem::Move => match (bits(ta), bits(tr)) {
            (64, 64) => Lanes::Longs(p.longs(i.a())),
            (64, _) => {
                let words = p.words(i.a());
                Lanes::Words(cut(words, tr, false, p))
            }
            _ => {
                let words = integer(i.a(), ta, p);
                match bits(tr) {
                    64 => Lanes::Longs(p.extended(words, signed(ta))),
                    _ => Lanes::Words(cut(words, tr, false, p)),
                }
            }
        },
        Sem::MoveMasked if i.constant() >> 32 == 0 => {
            let words = if wide { p.words(i.a()) } else { integer(i.a(), ta, p) };
            match i.constant() as u32 {
                u32::MAX => Lanes::Words(words),
                mask => {
                    let mask = p.word_everywhere(mask);
                    Lanes::Words(each(p.width, |at| p.e.v.b.ins().band(words[at], mask)))
                }
            }
        }
        Sem::MoveMasked => {
            let longs = extended_operand(i.a(), ta, p);
            let mask = p.long_everywhere(i.constant());
            Lanes::Longs(each(p.width, |at| p.e.v.b.ins().band(longs[at], mask)))
        }
        Sem::Add => both!(|p: &mut Pack<'_, '_>, [a, b]: [Value; 2]| p.e.v.b.ins().iadd(a, b), i.a(), i.b()),
        Sem::Sub => both!(|p: &mut Pack<'_, '_>, [a, b]: [Value; 2]| p.e.v.b.ins().isub(a, b), i.a(), i.b()),
        Sem::Mul => both!(|p: &mut Pack<'_, '_>, [a, b]: [Value; 2]| p.e.v.b.ins().imul(a, b), i.a(), i.b()),
        Sem::And => both!(|p: &mut Pack<'_, '_>, [a, b]: [Value; 2]| p.e.v.b.ins().band(a, b), i.a(), i.b()),
        Sem::Or => both!(|p: &mut Pack<'_, '_>, [a, b]: [Value; 2]| p.e.v.b.ins().bor(a, b), i.a(), i.b()),
        Sem::Xor => both!(|p: &mut Pack<'_, '_>, [a, b]: [Value; 2]| p.e.v.b.ins().bxor(a, b), i.a(), i.b()),
        Sem::Not => both!(|p: &mut Pack<'_, '_>, [a]: [Value; 1]| p.e.v.b.ins().bnot(a), i.a()),
        Sem::Neg => both!(|p: &mut Pack<'_, '_>, [a]: [Value; 1]| p.e.v.b.ins().ineg(a), i.a()),
        Sem::Add3 => both!(
            |p: &mut Pack<'_, '_>, [a, b, c]: [Value; 3]| {
                let first = p.e.v.b.ins().iadd(a, b);
                p.e.v.b.ins().iadd(first, c)
            },
            i.a(),
            i.b(),
            i.c()
        ),
        Sem::MulAdd => both!(
            |p: &mut Pack<'_, '_>, [a, b, c]: [Value; 3]| {
                let first = p.e.v.b.ins().imul(a, b);
                p.e.v.b.ins().iadd(first, c)
            },
            i.a(),
            i.b(),
            i.c()
        ),
        Sem::MulWide if bits(ta) == 32 && bits(tb) == 32 => {
            let (a, b) = (extended_operand(i.a(), ta, p), extended_operand(i.b(), tb, p));
            Lanes::Longs(each(p.width, |at| p.e.v.b.ins().imul(a[at], b[at])))
        }
        Sem::MulAddWide if bits(ta) == 32 && bits(tb) == 32 && bits(tc) == 64 => {
            let (a, b) = (extended_operand(i.a(), ta, p), extended_operand(i.b(), tb, p));
            let c = p.longs(i.c());
            Lanes::Longs(each(p.width, |at| {
                let product = p.e.v.b.ins().imul(a[at], b[at]);
                p.e.v.b.ins().iadd(product, c[at])
            }))
        }
        Sem::MulHigh if bits(ta) == 32 => {
            let (a, b) = (extended_operand(i.a(), ta, p), extended_operand(i.b(), tb, p));
            let product: Wide = each(p.width, |at| p.e.v.b.ins().imul(a[at], b[at]));
            Lanes::Words(p.upper_halves(product))
        }
        Sem::Abs if bits(ta) == 32 => {
            let words = p.words(i.a());
            Lanes::Words(each(p.width, |at| p.e.v.b.ins().iabs(words[at])))
        }
        Sem::Min | Sem::Max if !wide => {
            let (a, b) = (integer(i.a(), ta, p), integer(i.b(), tb, p));
            let words = each(p.width, |at| match (op.sem, signed(ta)) {
                (Sem::Min, true) => p.e.v.b.ins().smin(a[at], b[at]),
                (Sem::Min, false) => p.e.v.b.ins().umin(a[at], b[at]),
                (_, true) => p.e.v.b.ins().smax(a[at], b[at]),
                (_, false) => p.e.v.b.ins().umax(a[at], b[at]),
            });
            word_result(words, tr, p)
        }
        Sem::Shl | Sem::Shr => return shifted(i, op, p),
        Sem::AndCount => {
            let (words, mask) = (p.words(i.a()), p.word_everywhere((i.constant() as u32).wrapping_sub(1)));
            Lanes::Words(each(p.width, |at| p.e.v.b.ins().band(words[at], mask)))
        }
        Sem::MinCount => {
            let (words, most) = (p.words(i.a()), p.word_everywhere(i.constant() as u32));
            Lanes::Words(each(p.width, |at| p.e.v.b.ins().umin(words[at], most)))
        }
        Sem::FunnelLeft | Sem::FunnelRight => {
            let count = constant(p.e.v.program, i.c())? & 31;
            let (a, b) = (p.words(i.a()), p.words(i.b()));
            // `b` is the upper half.
            let right = if op.sem == Sem::FunnelRight { count } else { 32 - count };
            Lanes::Words(match right {
                0 => a,
                32 => b,
                right => each(p.width, |at| {
                    let low = p.e.v.int(types::I32, right);
                    let low = p.e.v.b.ins().ushr(a[at], low);
                    let high = p.e.v.int(types::I32, 32 - right);
                    let high = p.e.v.b.ins().ishl(b[at], high);
                    p.e.v.b.ins().bor(low, high)
                }),
            })
        }
        Sem::Lop3 => {
            let [a, b, c] = [i.a(), i.b(), i.c()].map(|slot| p.words(slot));
            Lanes::Words(each(p.width, |at| p.e.v.table(i.constant() as u32, [a[at], b[at], c[at]], types::I32X4)))
        }
        Sem::Join => {
            let (a, b) = (p.words(i.a()), p.words(i.b()));
            Lanes::Longs(each(p.width, |at| {
                let picks = if at % 2 == 0 { [0, 4, 1, 5] } else { [2, 6, 3, 7] };
                p.picked(types::I64X2, a[at / 2], b[at / 2], picks)
            }))
        }
        Sem::High => {
            let longs = p.longs(i.a());
            Lanes::Words(p.upper_halves(longs))
        }
        Sem::ShiftedHigh => {
            let longs = p.longs(i.a());
            let count = p.e.v.int(types::I32, i.constant() & 63);
            let shifted = each(p.width, |at| p.e.v.b.ins().ishl(longs[at], count));
            Lanes::Words(p.upper_halves(shifted))
        }
        Sem::Shifted => {
            let (words, count) = (p.words(i.a()), p.e.v.int(types::I32, i.constant() & 31));
            Lanes::Words(each(p.width, |at| p.e.v.b.ins().ishl(words[at], count)))
        }
        Sem::NegBits if wide => {
            let (longs, sign) = (p.longs(i.a()), p.long_everywhere(1 << 63));
            Lanes::Longs(each(p.width, |at| p.e.v.b.ins().bxor(longs[at], sign)))
        }
        Sem::NegBits => {
            let (words, sign) = (p.words(i.a()), p.word_everywhere(1 << 31));
            Lanes::Words(each(p.width, |at| p.e.v.b.ins().bxor(words[at], sign)))
        }
        Sem::AbsBits if wide => {
            let (longs, rest) = (p.longs(i.a()), p.long_everywhere(u64::MAX >> 1));
            Lanes::Longs(each(p.width, |at| p.e.v.b.ins().band(longs[at], rest)))
        }
        Sem::AbsBits => {
            let (words, rest) = (p.words(i.a()), p.word_everywhere(u32::MAX >> 1));
            Lanes::Words(each(p.width, |at| p.e.v.b.ins().band(words[at], rest)))
        }
        _ => return None,
    })
}

/// Whether a move is between rows of words.
fn moves_word(i: operands::Lane<'_>, p: &Pack<'_, '_>) -> bool {
    let is = |slot: Slot| slot.0 & Slot::CONSTANT == 0 && p.form(slot.0) == ValueForm::Word;
    is(i.a()) && is(i.d())
}

/// What a row holds, as it is.
fn whole(slot: Slot, p: &mut Pack<'_, '_>) -> Option<Lanes> {
    if slot.0 & Slot::CONSTANT != 0 || p.classes.slot(slot) != Class::Varying {
        return None;
    }
    Some(match p.e.v.flow.form(slot.0) {
        ValueForm::Single => {
            let (singles, loose) = p.singles(slot, true);
            Lanes::Singles(singles, loose)
        }
        ValueForm::LongFloat => Lanes::Doubles(p.doubles(slot)),
        _ => return None,
    })
}

/// The first operand shifted by a second that is the same in all lanes.
fn shifted(i: operands::Lane<'_>, op: &LaneOp, p: &mut Pack<'_, '_>) -> Option<Lanes> {
    let [ta, _, _, tr] = op.types;
    let width = bits(ta);
    let left = op.sem == Sem::Shl;
    if p.classes.slot(i.b()) != Class::Uniform {
        return None;
    }
    let count = p.e.v.word(i.b());
    let most = p.e.v.int(types::I32, u64::from(width) - 1);
    let known = constant(p.e.v.program, i.b()).map(|count| count & 0xffff_ffff);
    let (count, within) = match known {
        Some(known) if known < u64::from(width) => (p.e.v.int(types::I32, known), None),
        _ => {
            let within = p.e.v.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, count, most);
            (p.e.v.b.ins().select(within, count, most), Some(within))
        }
    };
    macro_rules! shift {
        ($values:expr) => {{
            let values = $values;
            each(p.width, |at| match (left, signed(ta)) {
                (true, _) => p.e.v.b.ins().ishl(values[at], count),
                (false, true) => p.e.v.b.ins().sshr(values[at], count),
                (false, false) => p.e.v.b.ins().ushr(values[at], count),
            })
        }};
    }
    // Counts that are too large shift everything out.
    let out = within.filter(|_| left || !signed(ta));
    let out = out.map(|within| p.spread(within));
    if width == 64 {
        let mut longs: Wide = shift!(p.longs(i.a()));
        if let Some(out) = out {
            let out = p.mask_of_wide(out);
            longs = each(p.width, |at| p.e.v.b.ins().band(longs[at], out[at]));
        }
        return Some(long_result(longs, tr, p));
    }
    let mut words: Narrow = shift!(integer(i.a(), ta, p));
    if let Some(out) = out {
        words = each(p.width, |at| p.e.v.b.ins().band(words[at], out[at]));
    }
    Some(word_result(words, tr, p))
}
