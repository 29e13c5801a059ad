//! Native code for sums with carries in predicates, for all lanes of a pack at once.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;

use crate::effects::unpacked;
use crate::pack::lanes::{Lanes, Narrow, Pack, Wide, each};
use sim_exec::exec_sass::integer;
use sim_exec::program::{Inst, Pred, Slot};

impl Pack<'_, '_> {
    /// A term of a sum as a word: negated or complemented as the flags say.
    fn word_term(&mut self, slot: Slot, flags: u32, negate: u32, invert: u32) -> Narrow {
        let words = self.words(slot);
        match () {
            () if flags & negate != 0 => each(self.width, |at| self.e.v.b.ins().ineg(words[at])),
            () if flags & invert != 0 => each(self.width, |at| self.e.v.b.ins().bnot(words[at])),
            () => words,
        }
    }

    /// The same with its carry: what is negated is complemented, and one is added.
    fn long_term(&mut self, slot: Slot, flags: u32, negate: u32, invert: u32) -> Wide {
        if flags & (negate | invert) == 0 {
            return self.longs(slot);
        }
        let words = self.words(slot);
        let not: Narrow = each(self.width, |at| self.e.v.b.ins().bnot(words[at]));
        let longs = self.extended(not, false);
        if flags & negate == 0 {
            return longs;
        }
        let one = self.long_everywhere(1);
        each(self.width, |at| self.e.v.b.ins().iadd(longs[at], one))
    }

    fn with_carry(&mut self, sum: Wide, carry: Pred) -> Wide {
        if carry == Pred::NEVER {
            return sum;
        }
        let masks = self.masks(carry.0);
        let masks = self.mask_of_wide(masks);
        each(self.width, |at| self.e.v.b.ins().isub(sum[at], masks[at]))
    }

    /// IADD3.
    pub(crate) fn added(&mut self, i: &Inst) {
        let [first, second, one, two] = [0, 16, 32, 48].map(|at| unpacked(i.x >> at));
        let parts = [
            (i.a, integer::NEGATE_A, integer::INVERT_A),
            (i.b, integer::NEGATE_B, integer::INVERT_B),
            (i.c, integer::NEGATE_C, integer::INVERT_C),
        ];
        let carries = [first, second] != [Pred::NEVER; 2] || [one, two] != [Pred::ALWAYS; 2];
        if !carries {
            let [a, b, c] = parts.map(|(slot, negate, invert)| self.word_term(slot, i.y, negate, invert));
            let sum = each(self.width, |at| {
                let sum = self.e.v.b.ins().iadd(a[at], b[at]);
                self.e.v.b.ins().iadd(sum, c[at])
            });
            self.define(i.d, Lanes::Words(sum));
            return;
        }
        let [a, b, c] = parts.map(|(slot, negate, invert)| self.long_term(slot, i.y, negate, invert));
        let sum = each(self.width, |at| {
            let sum = self.e.v.b.ins().iadd(a[at], b[at]);
            self.e.v.b.ins().iadd(sum, c[at])
        });
        let sum = self.with_carry(sum, first);
        let sum = self.with_carry(sum, second);
        let (low, high) = (self.narrowed(sum), self.upper_halves(sum));
        self.define(i.d, Lanes::Words(low));
        for (pred, least) in [(one, 0), (two, 1)] {
            if pred != Pred::ALWAYS {
                let least = self.word_everywhere(least);
                let is = each(self.width, |at| self.e.v.b.ins().icmp(IntCC::SignedGreaterThan, high[at], least));
                self.set(pred.0, is);
            }
        }
    }

    /// The sum of 64 bits of a product.
    pub(crate) fn added_wide(&mut self, i: &Inst) {
        let (a, b) = (self.longs(i.a), self.longs(i.b));
        let first: Wide = each(self.width, |at| self.e.v.b.ins().iadd(a[at], b[at]));
        let sum = self.with_carry(first, unpacked(i.x));
        let out = unpacked(i.x >> 32);
        let over = if out == Pred::ALWAYS {
            None
        } else {
            let less = IntCC::UnsignedLessThan;
            let over: Wide = each(self.width, |at| {
                let over = self.e.v.b.ins().icmp(less, first[at], a[at]);
                let again = self.e.v.b.ins().icmp(less, sum[at], first[at]);
                self.e.v.b.ins().bor(over, again)
            });
            Some(self.narrowed(over))
        };
        self.define(i.d, Lanes::Longs(sum));
        if let Some(over) = over {
            self.set(out.0, over);
        }
    }

    /// Whether a word is not zero, combined with a third predicate.
    pub(crate) fn not_zero(&mut self, i: &Inst) {
        let (words, zero) = (self.words(i.a), self.word_everywhere(0));
        let third = self.masks(i.c.0);
        let value: Narrow = each(self.width, |at| {
            let is = self.e.v.b.ins().icmp(IntCC::NotEqual, words[at], zero);
            if i.y == 1 { self.e.v.b.ins().band(is, third[at]) } else { self.e.v.b.ins().bor(is, third[at]) }
        });
        self.set(i.d.0, value);
    }
}
