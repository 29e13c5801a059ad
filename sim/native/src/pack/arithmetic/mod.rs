//! Native code for the functions of one lane's values, for all lanes of a pack at once. `floats`
//! has those of floats, `unit` the special functions, `carries` sums with carries in predicates.

mod carries;
mod floats;
mod unit;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::class::Class;
use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use crate::arithmetic::{bits, comparison_of_floats, comparison_of_integers, float, signed};
use crate::flow::{ValueForm, constant};
use sim_exec::exec::per_lane::{COMBINE_AND, COMBINE_NONE, COMBINE_OR};
use sim_exec::program::{Inst, LaneOp, LaneTy, ResultUse, Sem, Slot};

impl Pack<'_, '_> {
    /// Compiles one operation for all lanes. Returns false when there are no vectors for it.
    pub(super) fn operation(&mut self, i: &Inst, op: &LaneOp) -> bool {
        if op.outcome == ResultUse::Value {
            let Some(value) = self.computed(i, op) else { return false };
            self.define(i.d, value);
            return true;
        }
        let Some(holds) = self.compared(i, op) else { return false };
        let third = if i.y == COMBINE_NONE { None } else { Some(self.masks(i.c.0)) };
        let first = self.combined(i.y, holds, third);
        if op.outcome == ResultUse::Choice {
            if i.x >> 32 != 0 {
                return false;
            }
            let yes = self.word_everywhere(i.x as u32);
            let words = each(self.width, |at| self.e.v.b.ins().band(first[at], yes));
            self.define(i.d, Lanes::Words(words));
            return true;
        }
        let opposite = each(self.width, |at| self.e.v.b.ins().bnot(holds[at]));
        let second = self.combined(i.y, opposite, third);
        self.set(i.d.0, first);
        self.set(i.z, second);
        true
    }

    fn combined(&mut self, how: u32, value: Narrow, third: Option<Narrow>) -> Narrow {
        let Some(third) = third else { return value };
        each(self.width, |at| match how {
            COMBINE_AND => self.e.v.b.ins().band(value[at], third[at]),
            COMBINE_OR => self.e.v.b.ins().bor(value[at], third[at]),
            _ => self.e.v.b.ins().bxor(value[at], third[at]),
        })
    }

    fn compared(&mut self, i: &Inst, op: &LaneOp) -> Option<Narrow> {
        let ty = op.types[0];
        if float(ty) {
            let code = comparison_of_floats(op.sem)?;
            if ty == LaneTy::F32 {
                let ((a, _), (b, _)) = (self.singles(i.a, true), self.singles(i.b, true));
                return Some(each(self.width, |at| self.float_compared(code, a[at], b[at])));
            }
            let (a, b) = (self.doubles(i.a), self.doubles(i.b));
            let wide: Wide = each(self.width, |at| self.float_compared(code, a[at], b[at]));
            return Some(self.narrowed(wide));
        }
        let code = comparison_of_integers(op.sem, ty)?;
        Some(match bits(ty) {
            64 => {
                let (a, b) = (self.longs(i.a), self.longs(i.b));
                let wide: Wide = each(self.width, |at| self.e.v.b.ins().icmp(code, a[at], b[at]));
                self.narrowed(wide)
            }
            _ => {
                let (a, b) = (self.integer(i.a, ty), self.integer(i.b, ty));
                each(self.width, |at| self.e.v.b.ins().icmp(code, a[at], b[at]))
            }
        })
    }

    /// An operand of at most 32 bits, extended from its type.
    fn integer(&mut self, slot: Slot, ty: LaneTy) -> Narrow {
        let words = self.words(slot);
        self.cut(words, ty, signed(ty))
    }

    /// The low bits of a type, extended.
    fn cut(&mut self, words: Narrow, ty: LaneTy, sign: bool) -> Narrow {
        match (bits(ty), sign) {
            (8 | 16, true) => {
                let count = self.e.v.int(types::I32, u64::from(32 - bits(ty)));
                each(self.width, |at| {
                    let up = self.e.v.b.ins().ishl(words[at], count);
                    self.e.v.b.ins().sshr(up, count)
                })
            }
            (8 | 16, false) => {
                let mask = self.word_everywhere((1 << bits(ty)) - 1);
                each(self.width, |at| self.e.v.b.ins().band(words[at], mask))
            }
            _ => words,
        }
    }

    fn extended_operand(&mut self, slot: Slot, ty: LaneTy) -> Wide {
        if bits(ty) == 64 {
            return self.longs(slot);
        }
        let words = self.integer(slot, ty);
        self.extended(words, signed(ty))
    }

    /// A result of 64 bits in its type.
    fn long_result(&mut self, longs: Wide, ty: LaneTy) -> Lanes {
        match bits(ty) {
            64 => Lanes::Longs(longs),
            _ => {
                let words = self.narrowed(longs);
                Lanes::Words(self.cut(words, ty, false))
            }
        }
    }

    fn word_result(&mut self, words: Narrow, ty: LaneTy) -> Lanes {
        match bits(ty) {
            64 => Lanes::Longs(self.extended(words, signed(ty))),
            _ => Lanes::Words(self.cut(words, ty, false)),
        }
    }

    fn computed(&mut self, i: &Inst, op: &LaneOp) -> Option<Lanes> {
        let [ta, tb, tc, tr] = op.types;
        if float(ta) || float(tr) {
            return self.computed_float(i, op);
        }
        let wide = bits(ta) == 64;
        macro_rules! both {
            ($f:expr, $($operand:expr),*) => {{
                let f = $f;
                if wide {
                    let operands = [$(self.longs($operand)),*];
                    let longs = each(self.width, |at| f(self, operands.map(|operand| operand[at])));
                    self.long_result(longs, tr)
                } else {
                    let operands = [$(self.words($operand)),*];
                    let words = each(self.width, |at| f(self, operands.map(|operand| operand[at])));
                    self.word_result(words, tr)
                }
            }};
        }
        Some(match op.sem {
            Sem::Move if ta == tr && bits(ta) >= 32 => match self.whole(i.a) {
                Some(lanes) => lanes,
                None if self.moves_word(i) => Lanes::Words(self.words(i.a)),
                None if bits(ta) == 64 => Lanes::Longs(self.longs(i.a)),
                None => Lanes::Words(self.words(i.a)),
            },
            Sem::Move => match (bits(ta), bits(tr)) {
                (64, 64) => Lanes::Longs(self.longs(i.a)),
                (64, _) => {
                    let words = self.words(i.a);
                    Lanes::Words(self.cut(words, tr, false))
                }
                _ => {
                    let words = self.integer(i.a, ta);
                    match bits(tr) {
                        64 => Lanes::Longs(self.extended(words, signed(ta))),
                        _ => Lanes::Words(self.cut(words, tr, false)),
                    }
                }
            },
            Sem::MoveMasked if i.x >> 32 == 0 => {
                let words = if wide { self.words(i.a) } else { self.integer(i.a, ta) };
                match i.x as u32 {
                    u32::MAX => Lanes::Words(words),
                    mask => {
                        let mask = self.word_everywhere(mask);
                        Lanes::Words(each(self.width, |at| self.e.v.b.ins().band(words[at], mask)))
                    }
                }
            }
            Sem::MoveMasked => {
                let longs = self.extended_operand(i.a, ta);
                let mask = self.long_everywhere(i.x);
                Lanes::Longs(each(self.width, |at| self.e.v.b.ins().band(longs[at], mask)))
            }
            Sem::Add => both!(|p: &mut Self, [a, b]: [Value; 2]| p.e.v.b.ins().iadd(a, b), i.a, i.b),
            Sem::Sub => both!(|p: &mut Self, [a, b]: [Value; 2]| p.e.v.b.ins().isub(a, b), i.a, i.b),
            Sem::Mul => both!(|p: &mut Self, [a, b]: [Value; 2]| p.e.v.b.ins().imul(a, b), i.a, i.b),
            Sem::And => both!(|p: &mut Self, [a, b]: [Value; 2]| p.e.v.b.ins().band(a, b), i.a, i.b),
            Sem::Or => both!(|p: &mut Self, [a, b]: [Value; 2]| p.e.v.b.ins().bor(a, b), i.a, i.b),
            Sem::Xor => both!(|p: &mut Self, [a, b]: [Value; 2]| p.e.v.b.ins().bxor(a, b), i.a, i.b),
            Sem::Not => both!(|p: &mut Self, [a]: [Value; 1]| p.e.v.b.ins().bnot(a), i.a),
            Sem::Neg => both!(|p: &mut Self, [a]: [Value; 1]| p.e.v.b.ins().ineg(a), i.a),
            Sem::Add3 => both!(
                |p: &mut Self, [a, b, c]: [Value; 3]| {
                    let first = p.e.v.b.ins().iadd(a, b);
                    p.e.v.b.ins().iadd(first, c)
                },
                i.a,
                i.b,
                i.c
            ),
            Sem::MulAdd => both!(
                |p: &mut Self, [a, b, c]: [Value; 3]| {
                    let first = p.e.v.b.ins().imul(a, b);
                    p.e.v.b.ins().iadd(first, c)
                },
                i.a,
                i.b,
                i.c
            ),
            Sem::MulWide if bits(ta) == 32 && bits(tb) == 32 => {
                let (a, b) = (self.extended_operand(i.a, ta), self.extended_operand(i.b, tb));
                Lanes::Longs(each(self.width, |at| self.e.v.b.ins().imul(a[at], b[at])))
            }
            Sem::MulAddWide if bits(ta) == 32 && bits(tb) == 32 && bits(tc) == 64 => {
                let (a, b) = (self.extended_operand(i.a, ta), self.extended_operand(i.b, tb));
                let c = self.longs(i.c);
                Lanes::Longs(each(self.width, |at| {
                    let product = self.e.v.b.ins().imul(a[at], b[at]);
                    self.e.v.b.ins().iadd(product, c[at])
                }))
            }
            Sem::MulHigh if bits(ta) == 32 => {
                let (a, b) = (self.extended_operand(i.a, ta), self.extended_operand(i.b, tb));
                let product: Wide = each(self.width, |at| self.e.v.b.ins().imul(a[at], b[at]));
                Lanes::Words(self.upper_halves(product))
            }
            Sem::Abs if bits(ta) == 32 => {
                let words = self.words(i.a);
                Lanes::Words(each(self.width, |at| self.e.v.b.ins().iabs(words[at])))
            }
            Sem::Min | Sem::Max if !wide => {
                let (a, b) = (self.integer(i.a, ta), self.integer(i.b, tb));
                let words = each(self.width, |at| match (op.sem, signed(ta)) {
                    (Sem::Min, true) => self.e.v.b.ins().smin(a[at], b[at]),
                    (Sem::Min, false) => self.e.v.b.ins().umin(a[at], b[at]),
                    (_, true) => self.e.v.b.ins().smax(a[at], b[at]),
                    (_, false) => self.e.v.b.ins().umax(a[at], b[at]),
                });
                self.word_result(words, tr)
            }
            Sem::Shl | Sem::Shr => return self.shifted(i, op),
            Sem::AndCount => {
                let (words, mask) = (self.words(i.a), self.word_everywhere((i.x as u32).wrapping_sub(1)));
                Lanes::Words(each(self.width, |at| self.e.v.b.ins().band(words[at], mask)))
            }
            Sem::MinCount => {
                let (words, most) = (self.words(i.a), self.word_everywhere(i.x as u32));
                Lanes::Words(each(self.width, |at| self.e.v.b.ins().umin(words[at], most)))
            }
            Sem::FunnelLeft | Sem::FunnelRight => {
                let count = constant(self.e.v.program, i.c)? & 31;
                let (a, b) = (self.words(i.a), self.words(i.b));
                // `b` is the upper half.
                let right = if op.sem == Sem::FunnelRight { count } else { 32 - count };
                Lanes::Words(match right {
                    0 => a,
                    32 => b,
                    right => each(self.width, |at| {
                        let low = self.e.v.int(types::I32, right);
                        let low = self.e.v.b.ins().ushr(a[at], low);
                        let high = self.e.v.int(types::I32, 32 - right);
                        let high = self.e.v.b.ins().ishl(b[at], high);
                        self.e.v.b.ins().bor(low, high)
                    }),
                })
            }
            Sem::Lop3 => {
                let [a, b, c] = [i.a, i.b, i.c].map(|slot| self.words(slot));
                Lanes::Words(each(self.width, |at| self.e.v.table(i.x as u32, [a[at], b[at], c[at]], types::I32X4)))
            }
            Sem::Join => {
                let (a, b) = (self.words(i.a), self.words(i.b));
                Lanes::Longs(each(self.width, |at| {
                    let picks = if at % 2 == 0 { [0, 4, 1, 5] } else { [2, 6, 3, 7] };
                    self.picked(types::I64X2, a[at / 2], b[at / 2], picks)
                }))
            }
            Sem::High => {
                let longs = self.longs(i.a);
                Lanes::Words(self.upper_halves(longs))
            }
            Sem::ShiftedHigh => {
                let longs = self.longs(i.a);
                let count = self.e.v.int(types::I32, i.x & 63);
                let shifted = each(self.width, |at| self.e.v.b.ins().ishl(longs[at], count));
                Lanes::Words(self.upper_halves(shifted))
            }
            Sem::Shifted => {
                let (words, count) = (self.words(i.a), self.e.v.int(types::I32, i.x & 31));
                Lanes::Words(each(self.width, |at| self.e.v.b.ins().ishl(words[at], count)))
            }
            Sem::NegBits if wide => {
                let (longs, sign) = (self.longs(i.a), self.long_everywhere(1 << 63));
                Lanes::Longs(each(self.width, |at| self.e.v.b.ins().bxor(longs[at], sign)))
            }
            Sem::NegBits => {
                let (words, sign) = (self.words(i.a), self.word_everywhere(1 << 31));
                Lanes::Words(each(self.width, |at| self.e.v.b.ins().bxor(words[at], sign)))
            }
            Sem::AbsBits if wide => {
                let (longs, rest) = (self.longs(i.a), self.long_everywhere(u64::MAX >> 1));
                Lanes::Longs(each(self.width, |at| self.e.v.b.ins().band(longs[at], rest)))
            }
            Sem::AbsBits => {
                let (words, rest) = (self.words(i.a), self.word_everywhere(u32::MAX >> 1));
                Lanes::Words(each(self.width, |at| self.e.v.b.ins().band(words[at], rest)))
            }
            _ => return None,
        })
    }

    /// Whether a move is between rows of words.
    fn moves_word(&self, i: &Inst) -> bool {
        let is = |slot: Slot| slot.0 & Slot::CONSTANT == 0 && self.form(slot.0) == ValueForm::Word;
        is(i.a) && is(i.d)
    }

    /// What a row holds, as it is.
    fn whole(&mut self, slot: Slot) -> Option<Lanes> {
        if slot.0 & Slot::CONSTANT != 0 || self.classes.slot(slot) != Class::Varying {
            return None;
        }
        Some(match self.e.v.flow.form(slot.0) {
            ValueForm::Single => {
                let (singles, loose) = self.singles(slot, true);
                Lanes::Singles(singles, loose)
            }
            ValueForm::LongFloat => Lanes::Doubles(self.doubles(slot)),
            _ => return None,
        })
    }

    /// The first operand shifted by a second that is the same in all lanes.
    fn shifted(&mut self, i: &Inst, op: &LaneOp) -> Option<Lanes> {
        let [ta, _, _, tr] = op.types;
        let width = bits(ta);
        let left = op.sem == Sem::Shl;
        if self.classes.slot(i.b) != Class::Uniform {
            return None;
        }
        let count = self.e.v.word(i.b);
        let most = self.e.v.int(types::I32, u64::from(width) - 1);
        let known = constant(self.e.v.program, i.b).map(|count| count & 0xffff_ffff);
        let (count, within) = match known {
            Some(known) if known < u64::from(width) => (self.e.v.int(types::I32, known), None),
            _ => {
                let within = self.e.v.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, count, most);
                (self.e.v.b.ins().select(within, count, most), Some(within))
            }
        };
        macro_rules! shift {
            ($values:expr) => {{
                let values = $values;
                each(self.width, |at| match (left, signed(ta)) {
                    (true, _) => self.e.v.b.ins().ishl(values[at], count),
                    (false, true) => self.e.v.b.ins().sshr(values[at], count),
                    (false, false) => self.e.v.b.ins().ushr(values[at], count),
                })
            }};
        }
        // Counts that are too large shift everything out.
        let out = within.filter(|_| left || !signed(ta));
        let out = out.map(|within| self.spread(within));
        if width == 64 {
            let mut longs: Wide = shift!(self.longs(i.a));
            if let Some(out) = out {
                let out = self.mask_of_wide(out);
                longs = each(self.width, |at| self.e.v.b.ins().band(longs[at], out[at]));
            }
            return Some(self.long_result(longs, tr));
        }
        let mut words: Narrow = shift!(self.integer(i.a, ta));
        if let Some(out) = out {
            words = each(self.width, |at| self.e.v.b.ins().band(words[at], out[at]));
        }
        Some(self.word_result(words, tr))
    }
}
