//! Native code for sums with carries in predicates, for all lanes of a pack at once.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;

use crate::pack::lanes::{Lanes, Narrow, Pack, Wide, each};
use sim_exec::exec_sass::integer;
use sim_exec::operations::operands;
use sim_exec::program::{Inst, Pred, Slot};

/// A term of a sum as a word: negated or complemented as the flags say.
fn word_term(slot: Slot, flags: u32, negate: u32, invert: u32, p: &mut Pack<'_, '_>) -> Narrow {
    let words = p.words(slot);
    match () {
        () if flags & negate != 0 => each(p.width, |at| p.e.v.b.ins().ineg(words[at])),
        () if flags & invert != 0 => each(p.width, |at| p.e.v.b.ins().bnot(words[at])),
        () => words,
    }
}

/// The same with its carry: what is negated is complemented, and one is added.
fn long_term(slot: Slot, flags: u32, negate: u32, invert: u32, p: &mut Pack<'_, '_>) -> Wide {
    if flags & (negate | invert) == 0 {
        return p.longs(slot);
    }
    let words = p.words(slot);
    let not: Narrow = each(p.width, |at| p.e.v.b.ins().bnot(words[at]));
    let longs = p.extended(not, false);
    if flags & negate == 0 {
        return longs;
    }
    let one = p.long_everywhere(1);
    each(p.width, |at| p.e.v.b.ins().iadd(longs[at], one))
}

fn with_carry(sum: Wide, carry: Pred, p: &mut Pack<'_, '_>) -> Wide {
    if carry == Pred::NEVER {
        return sum;
    }
    let masks = p.masks(carry.0);
    let masks = p.mask_of_wide(masks);
    each(p.width, |at| p.e.v.b.ins().isub(sum[at], masks[at]))
}

/// IADD3.
pub(crate) fn added(i: &Inst, p: &mut Pack<'_, '_>) {
    let i = operands::Add3::of(i);
    let [first, second, one, two] = [i.carry(), i.carry2(), i.over(), i.over2()];
    let parts = [
        (i.a(), integer::NEGATE_A, integer::INVERT_A),
        (i.b(), integer::NEGATE_B, integer::INVERT_B),
        (i.c(), integer::NEGATE_C, integer::INVERT_C),
    ];
    let carries = [first, second] != [Pred::NEVER; 2] || [one, two] != [Pred::ALWAYS; 2];
    if !carries {
        let [a, b, c] = parts.map(|(slot, negate, invert)| word_term(slot, i.signs(), negate, invert, p));
        let sum = each(p.width, |at| {
            let sum = p.e.v.b.ins().iadd(a[at], b[at]);
            p.e.v.b.ins().iadd(sum, c[at])
        });
        p.define(i.d(), Lanes::Words(sum));
        return;
    }
    let [a, b, c] = parts.map(|(slot, negate, invert)| long_term(slot, i.signs(), negate, invert, p));
    let sum = each(p.width, |at| {
        let sum = p.e.v.b.ins().iadd(a[at], b[at]);
        p.e.v.b.ins().iadd(sum, c[at])
    });
    let sum = with_carry(sum, first, p);
    let sum = with_carry(sum, second, p);
    let (low, high) = (p.narrowed(sum), p.upper_halves(sum));
    p.define(i.d(), Lanes::Words(low));
    for (pred, least) in [(one, 0), (two, 1)] {
        if pred != Pred::ALWAYS {
            let least = p.word_everywhere(least);
            let is = each(p.width, |at| p.e.v.b.ins().icmp(IntCC::SignedGreaterThan, high[at], least));
            p.set(pred.0, is);
        }
    }
}

/// The sum of 64 bits of a product.
pub(crate) fn added_wide(i: &Inst, p: &mut Pack<'_, '_>) {
    let i = operands::AddWide::of(i);
    let (a, b) = (p.longs(i.a()), p.longs(i.b()));
    let first: Wide = each(p.width, |at| p.e.v.b.ins().iadd(a[at], b[at]));
    let sum = with_carry(first, i.carry(), p);
    let out = i.over();
    let over = if out == Pred::ALWAYS {
        None
    } else {
        let less = IntCC::UnsignedLessThan;
        let over: Wide = each(p.width, |at| {
            let over = p.e.v.b.ins().icmp(less, first[at], a[at]);
            let again = p.e.v.b.ins().icmp(less, sum[at], first[at]);
            p.e.v.b.ins().bor(over, again)
        });
        Some(p.narrowed(over))
    };
    p.define(i.d(), Lanes::Longs(sum));
    if let Some(over) = over {
        p.set(out.0, over);
    }
}

/// Whether a word is not zero, combined with a third predicate.
pub(crate) fn not_zero(i: &Inst, p: &mut Pack<'_, '_>) {
    let i = operands::NotZero::of(i);
    let (words, zero) = (p.words(i.a()), p.word_everywhere(0));
    let third = p.masks(i.combined().0);
    let value: Narrow = each(p.width, |at| {
        let is = p.e.v.b.ins().icmp(IntCC::NotEqual, words[at], zero);
        if i.combine() == 1 { p.e.v.b.ins().band(is, third[at]) } else { p.e.v.b.ins().bor(is, third[at]) }
    });
    p.set(i.p().0, value);
}
