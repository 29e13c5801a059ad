//! Native code for the functions of one lane's values, for all lanes of a pack at once.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::PARTS;
use super::class::Class;
use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use crate::interp::exec::per_lane::{COMBINE_AND, COMBINE_NONE, COMBINE_OR};
use crate::interp::exec_sass::floats::BOP;
use crate::interp::exec_sass::predicates;
use crate::interp::float::{FTZ, SAT};
use crate::interp::native::arithmetic::{bits, comparison_of_floats, comparison_of_integers, float, has_fma, signed};
use crate::interp::native::flow::{ValueForm, constant};
use crate::interp::native::instruction::float_codes;
use crate::interp::program::{Inst, LaneOp, LaneTy, ResultUse, Sem, Slot};

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
            let words = each(|at| self.e.v.b.ins().band(first[at], yes));
            self.define(i.d, Lanes::Words(words));
            return true;
        }
        let opposite = each(|at| self.e.v.b.ins().bnot(holds[at]));
        let second = self.combined(i.y, opposite, third);
        self.set(i.d.0, first);
        self.set(i.z, second);
        true
    }

    fn combined(&mut self, how: u32, value: Narrow, third: Option<Narrow>) -> Narrow {
        let Some(third) = third else { return value };
        each(|at| match how {
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
                return Some(each(|at| self.e.v.b.ins().fcmp(code, a[at], b[at])));
            }
            let (a, b) = (self.doubles(i.a), self.doubles(i.b));
            let wide: Wide = each(|at| self.e.v.b.ins().fcmp(code, a[at], b[at]));
            return Some(self.narrowed(wide));
        }
        let code = comparison_of_integers(op.sem, ty)?;
        Some(match bits(ty) {
            64 => {
                let (a, b) = (self.longs(i.a), self.longs(i.b));
                let wide: Wide = each(|at| self.e.v.b.ins().icmp(code, a[at], b[at]));
                self.narrowed(wide)
            }
            _ => {
                let (a, b) = (self.integer(i.a, ty), self.integer(i.b, ty));
                each(|at| self.e.v.b.ins().icmp(code, a[at], b[at]))
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
                each(|at| {
                    let up = self.e.v.b.ins().ishl(words[at], count);
                    self.e.v.b.ins().sshr(up, count)
                })
            }
            (8 | 16, false) => {
                let mask = self.word_everywhere((1 << bits(ty)) - 1);
                each(|at| self.e.v.b.ins().band(words[at], mask))
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
                    let longs = each(|at| f(self, operands.map(|operand| operand[at])));
                    self.long_result(longs, tr)
                } else {
                    let operands = [$(self.words($operand)),*];
                    let words = each(|at| f(self, operands.map(|operand| operand[at])));
                    self.word_result(words, tr)
                }
            }};
        }
        Some(match op.sem {
            Sem::Move if ta == tr && bits(ta) >= 32 => match self.whole(i.a) {
                Some(lanes) => lanes,
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
                        Lanes::Words(each(|at| self.e.v.b.ins().band(words[at], mask)))
                    }
                }
            }
            Sem::MoveMasked => {
                let longs = self.extended_operand(i.a, ta);
                let mask = self.long_everywhere(i.x);
                Lanes::Longs(each(|at| self.e.v.b.ins().band(longs[at], mask)))
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
                Lanes::Longs(each(|at| self.e.v.b.ins().imul(a[at], b[at])))
            }
            Sem::MulAddWide if bits(ta) == 32 && bits(tb) == 32 && bits(tc) == 64 => {
                let (a, b) = (self.extended_operand(i.a, ta), self.extended_operand(i.b, tb));
                let c = self.longs(i.c);
                Lanes::Longs(each(|at| {
                    let product = self.e.v.b.ins().imul(a[at], b[at]);
                    self.e.v.b.ins().iadd(product, c[at])
                }))
            }
            Sem::MulHigh if bits(ta) == 32 => {
                let (a, b) = (self.extended_operand(i.a, ta), self.extended_operand(i.b, tb));
                let product: Wide = each(|at| self.e.v.b.ins().imul(a[at], b[at]));
                Lanes::Words(self.upper_halves(product))
            }
            Sem::Abs if bits(ta) == 32 => {
                let words = self.words(i.a);
                Lanes::Words(each(|at| self.e.v.b.ins().iabs(words[at])))
            }
            Sem::Min | Sem::Max if !wide => {
                let (a, b) = (self.integer(i.a, ta), self.integer(i.b, tb));
                let words = each(|at| match (op.sem, signed(ta)) {
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
                Lanes::Words(each(|at| self.e.v.b.ins().band(words[at], mask)))
            }
            Sem::MinCount => {
                let (words, most) = (self.words(i.a), self.word_everywhere(i.x as u32));
                Lanes::Words(each(|at| self.e.v.b.ins().umin(words[at], most)))
            }
            Sem::FunnelLeft | Sem::FunnelRight => {
                let count = constant(self.e.v.program, i.c)? & 31;
                let (a, b) = (self.words(i.a), self.words(i.b));
                // `b` is the upper half.
                let right = if op.sem == Sem::FunnelRight { count } else { 32 - count };
                Lanes::Words(match right {
                    0 => a,
                    32 => b,
                    right => each(|at| {
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
                Lanes::Words(each(|at| self.e.v.table(i.x as u32, [a[at], b[at], c[at]], types::I32X4)))
            }
            Sem::Join => {
                let (a, b) = (self.words(i.a), self.words(i.b));
                Lanes::Longs(each(|at| {
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
                let shifted = each(|at| self.e.v.b.ins().ishl(longs[at], count));
                Lanes::Words(self.upper_halves(shifted))
            }
            Sem::Shifted => {
                let (words, count) = (self.words(i.a), self.e.v.int(types::I32, i.x & 31));
                Lanes::Words(each(|at| self.e.v.b.ins().ishl(words[at], count)))
            }
            Sem::NegBits if wide => {
                let (longs, sign) = (self.longs(i.a), self.long_everywhere(1 << 63));
                Lanes::Longs(each(|at| self.e.v.b.ins().bxor(longs[at], sign)))
            }
            Sem::NegBits => {
                let (words, sign) = (self.words(i.a), self.word_everywhere(1 << 31));
                Lanes::Words(each(|at| self.e.v.b.ins().bxor(words[at], sign)))
            }
            Sem::AbsBits if wide => {
                let (longs, rest) = (self.longs(i.a), self.long_everywhere(u64::MAX >> 1));
                Lanes::Longs(each(|at| self.e.v.b.ins().band(longs[at], rest)))
            }
            Sem::AbsBits => {
                let (words, rest) = (self.words(i.a), self.word_everywhere(u32::MAX >> 1));
                Lanes::Words(each(|at| self.e.v.b.ins().band(words[at], rest)))
            }
            _ => return None,
        })
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
                each(|at| match (left, signed(ta)) {
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
                longs = each(|at| self.e.v.b.ins().band(longs[at], out[at]));
            }
            return Some(self.long_result(longs, tr));
        }
        let mut words: Narrow = shift!(self.integer(i.a, ta));
        if let Some(out) = out {
            words = each(|at| self.e.v.b.ins().band(words[at], out[at]));
        }
        Some(self.word_result(words, tr))
    }

    fn flushed(&mut self, values: Narrow) -> Narrow {
        let (exponent, sign) = (self.word_everywhere(0x7f80_0000), self.word_everywhere(0x8000_0000));
        let zero = self.word_everywhere(0);
        each(|at| {
            let word = self.cast(types::I32X4, values[at]);
            let power = self.e.v.b.ins().band(word, exponent);
            let small = self.e.v.b.ins().icmp(IntCC::Equal, power, zero);
            let signed = self.e.v.b.ins().band(word, sign);
            let word = self.e.v.b.ins().bitselect(small, signed, word);
            self.cast(types::F32X4, word)
        })
    }

    fn flushed_if(&mut self, values: Narrow, x: u64) -> Narrow {
        if x & FTZ != 0 { self.flushed(values) } else { values }
    }

    fn flag_operand(&mut self, slot: Slot, x: u64) -> Narrow {
        let (values, _) = self.singles(slot, true);
        self.flushed_if(values, x)
    }

    /// The flags of `output`.
    fn finished(&mut self, values: Narrow, x: u64) -> Lanes {
        let values = self.flushed_if(values, x);
        if x & SAT == 0 {
            return Lanes::Singles(values, true);
        }
        let (zero, one) = (self.single_everywhere(0.0), self.single_everywhere(1.0));
        let clamped = each(|at| {
            let positive = self.e.v.b.ins().fcmp(FloatCC::GreaterThan, values[at], zero);
            let low = self.chosen(positive, values[at], zero);
            let large = self.e.v.b.ins().fcmp(FloatCC::GreaterThanOrEqual, values[at], one);
            self.chosen(large, one, low)
        });
        Lanes::Singles(clamped, false)
    }

    fn computed_float(&mut self, i: &Inst, op: &LaneOp) -> Option<Lanes> {
        let [ta, _, _, tr] = op.types;
        let nearest = i.x & 3 == 0;
        if ta == LaneTy::F64 && tr == LaneTy::F64 {
            return self.computed_doubles(i, op);
        }
        Some(match op.sem {
            Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul | Sem::FlagAdd | Sem::FlagSub | Sem::FlagMul
                if nearest || matches!(op.sem, Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul) =>
            {
                let plain = matches!(op.sem, Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul);
                let x = if plain { 0 } else { i.x };
                let (a, b) = (self.flag_operand(i.a, x), self.flag_operand(i.b, x));
                let values = each(|at| match op.sem {
                    Sem::FloatAdd | Sem::FlagAdd => self.e.v.b.ins().fadd(a[at], b[at]),
                    Sem::FloatSub | Sem::FlagSub => self.e.v.b.ins().fsub(a[at], b[at]),
                    _ => self.e.v.b.ins().fmul(a[at], b[at]),
                });
                self.finished(values, x)
            }
            Sem::FloatFma | Sem::FlagFma if has_fma() && (nearest || op.sem == Sem::FloatFma) => {
                let x = if op.sem == Sem::FloatFma { 0 } else { i.x };
                let [a, b, c] = [i.a, i.b, i.c].map(|slot| self.flag_operand(slot, x));
                let values = each(|at| self.e.v.b.ins().fma(a[at], b[at], c[at]));
                self.finished(values, x)
            }
            Sem::FlagDiv if nearest => {
                let (a, b) = (self.flag_operand(i.a, i.x), self.flag_operand(i.b, i.x));
                let values = each(|at| self.e.v.b.ins().fdiv(a[at], b[at]));
                self.finished(values, i.x)
            }
            Sem::FlagSqrt if nearest => {
                let a = self.flag_operand(i.a, i.x);
                let values = each(|at| self.e.v.b.ins().sqrt(a[at]));
                self.finished(values, i.x)
            }
            Sem::FlagNeg | Sem::FlagAbs => {
                let (a, _) = self.singles(i.a, true);
                let values = each(|at| match op.sem {
                    Sem::FlagNeg => self.e.v.b.ins().fneg(a[at]),
                    _ => self.e.v.b.ins().fabs(a[at]),
                });
                self.finished(values, i.x)
            }
            Sem::FlagMin | Sem::FlagMax => {
                let (a, b) = (self.flag_operand(i.a, i.x), self.flag_operand(i.b, i.x));
                let min = op.sem == Sem::FlagMin;
                let code = if min { FloatCC::LessThan } else { FloatCC::GreaterThan };
                let values = each(|at| {
                    let first = self.e.v.b.ins().fcmp(code, a[at], b[at]);
                    let other = self.e.v.b.ins().fcmp(FloatCC::Unordered, b[at], b[at]);
                    let first = self.e.v.b.ins().bor(first, other);
                    let value = self.chosen(first, a[at], b[at]);
                    // Of two zeros the negative one is the lesser.
                    let equal = self.e.v.b.ins().fcmp(FloatCC::Equal, a[at], b[at]);
                    let (a, b) = (self.cast(types::I32X4, a[at]), self.cast(types::I32X4, b[at]));
                    let both = if min { self.e.v.b.ins().bor(a, b) } else { self.e.v.b.ins().band(a, b) };
                    let both = self.cast(types::F32X4, both);
                    self.chosen(equal, both, value)
                });
                Lanes::Singles(values, true)
            }
            Sem::Convert => match (ta, tr) {
                (LaneTy::F32, LaneTy::F64) => {
                    let (a, _) = self.singles(i.a, false);
                    Lanes::Doubles(each(|at| {
                        let part = a[at / 2];
                        let part = match at % 2 {
                            0 => part,
                            _ => self.picked(types::F32X4, part, part, [2, 3, 2, 3]),
                        };
                        self.e.v.b.ins().fvpromote_low(part)
                    }))
                }
                (LaneTy::I32, LaneTy::F32) => {
                    let words = self.words(i.a);
                    Lanes::Singles(each(|at| self.e.v.b.ins().fcvt_from_sint(types::F32X4, words[at])), false)
                }
                (LaneTy::U32, LaneTy::F32) => {
                    let words = self.words(i.a);
                    Lanes::Singles(each(|at| self.e.v.b.ins().fcvt_from_uint(types::F32X4, words[at])), false)
                }
                (LaneTy::F32, LaneTy::I32) => {
                    let (a, _) = self.singles(i.a, true);
                    Lanes::Words(each(|at| self.e.v.b.ins().fcvt_to_sint_sat(types::I32X4, a[at])))
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Arithmetic of doubles. Where one results in a NaN, the operation's function says which.
    fn computed_doubles(&mut self, i: &Inst, op: &LaneOp) -> Option<Lanes> {
        let values: Wide = match op.sem {
            Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul => {
                let (a, b) = (self.doubles(i.a), self.doubles(i.b));
                each(|at| match op.sem {
                    Sem::FloatAdd => self.e.v.b.ins().fadd(a[at], b[at]),
                    Sem::FloatSub => self.e.v.b.ins().fsub(a[at], b[at]),
                    _ => self.e.v.b.ins().fmul(a[at], b[at]),
                })
            }
            Sem::FloatFma if has_fma() => {
                let [a, b, c] = [i.a, i.b, i.c].map(|slot| self.doubles(slot));
                each(|at| self.e.v.b.ins().fma(a[at], b[at], c[at]))
            }
            Sem::Neg => {
                let a = self.doubles(i.a);
                return Some(Lanes::Doubles(each(|at| self.e.v.b.ins().fneg(a[at]))));
            }
            Sem::Abs => {
                let a = self.doubles(i.a);
                return Some(Lanes::Doubles(each(|at| self.e.v.b.ins().fabs(a[at]))));
            }
            _ => return None,
        };
        Some(Lanes::Doubles(self.checked_doubles(values, i, op)))
    }

    fn checked_doubles(&mut self, values: Wide, i: &Inst, op: &LaneOp) -> Wide {
        let (done, slow) = (self.e.v.b.create_block(), self.e.v.b.create_block());
        let results: Wide = each(|_| self.e.v.b.append_block_param(done, types::F64X2));
        self.e.v.b.set_cold_block(slow);
        let mut is = self.e.v.b.ins().fcmp(FloatCC::Unordered, values[0], values[0]);
        for &value in &values[1..] {
            let more = self.e.v.b.ins().fcmp(FloatCC::Unordered, value, value);
            is = self.e.v.b.ins().bor(is, more);
        }
        let any = self.e.v.b.ins().vhigh_bits(types::I32, is);
        let arguments = values.map(Into::into);
        self.e.v.b.ins().brif(any, slow, &[], done, &arguments);
        self.e.v.b.switch_to_block(slow);
        let known = self.e.v.at_hand();
        let operands = [i.a, i.b, if op.operands > 2 { i.c } else { i.b }].map(|slot| self.longs(slot));
        let function = self.e.v.int(types::I64, op.call as usize as u64);
        let mut exact: Vec<Value> = Vec::new();
        for at in 0..2 * PARTS {
            let mut part = self.cast(types::I64X2, values[at]);
            for half in 0..2u8 {
                let mut arguments = vec![self.e.v.context, function];
                for operand in &operands {
                    arguments.push(self.e.v.b.ins().extractlane(operand[at], half));
                }
                self.e.v.call_apart(&arguments);
                let result = self.e.v.found();
                part = self.e.v.b.ins().insertlane(part, result, half);
            }
            exact.push(self.cast(types::F64X2, part));
        }
        self.e.v.restore(known);
        let arguments: Vec<_> = exact.into_iter().map(Into::into).collect();
        self.e.v.b.ins().jump(done, &arguments);
        self.e.v.b.switch_to_block(done);
        results
    }

    pub(super) fn selected(&mut self, i: &Inst) {
        let by = self.masks(i.c.0);
        let form = if i.d.0 & Slot::CONSTANT == 0 { self.e.v.flow.form(i.d.0) } else { ValueForm::Double };
        let lanes = match form {
            ValueForm::Word => {
                let (a, b) = (self.words(i.a), self.words(i.b));
                Lanes::Words(self.merged_narrow(by, a, b))
            }
            ValueForm::Single => {
                let may = self.e.v.flow.loose.has(i.d.0 as usize);
                let ((a, any_a), (b, any_b)) = (self.singles(i.a, may), self.singles(i.b, may));
                Lanes::Singles(self.merged_narrow(by, a, b), any_a || any_b)
            }
            ValueForm::Double | ValueForm::LongFloat => {
                let (a, b) = (self.longs(i.a), self.longs(i.b));
                let by = self.mask_of_wide(by);
                Lanes::Longs(each(|at| self.chosen(by[at], a[at], b[at])))
            }
        };
        self.define(i.d, lanes);
    }

    pub(super) fn logic(&mut self, i: &Inst) {
        let (a, b) = (self.masks(i.a.0), self.masks(i.b.0));
        let value = each(|at| match i.y {
            0 => self.e.v.b.ins().band(a[at], b[at]),
            1 => self.e.v.b.ins().bor(a[at], b[at]),
            2 => self.e.v.b.ins().bxor(a[at], b[at]),
            _ => a[at],
        });
        self.set(i.d.0, value);
    }

    pub(super) fn table_of_masks(&mut self, i: &Inst) {
        let [a, b, c] = [i.a, i.b, i.c].map(|pred| self.masks(pred.0));
        let first = each(|at| self.e.v.table(i.y & 0xff, [a[at], b[at], c[at]], types::I32X4));
        let second = each(|at| self.e.v.table(i.y >> 8 & 0xff, [a[at], b[at], c[at]], types::I32X4));
        self.set(i.d.0, first);
        self.set(i.z, second);
    }

    fn pair(&mut self, i: &Inst, how: u32, holds: Narrow) {
        let third = self.masks(i.c.0);
        let opposite: Narrow = each(|at| self.e.v.b.ins().bnot(holds[at]));
        let mut join = |values: Narrow| {
            each(|at| match how & 3 {
                0 => self.e.v.b.ins().band(values[at], third[at]),
                1 => self.e.v.b.ins().bor(values[at], third[at]),
                _ => self.e.v.b.ins().bxor(values[at], third[at]),
            })
        };
        let (first, second) = (join(holds), join(opposite));
        self.set(i.d.0, first);
        self.set(i.z, second);
    }

    pub(super) fn compared_words(&mut self, i: &Inst) {
        let sign = i.y & predicates::SIGNED != 0;
        let (a, b) = (self.words(i.a), self.words(i.b));
        let less = if sign { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        let greater = if sign { IntCC::SignedGreaterThan } else { IntCC::UnsignedGreaterThan };
        let low = if i.y & predicates::EXTENDED != 0 { Some(self.masks(i.x as u32)) } else { None };
        let outcomes = i.y & 7;
        let holds = each(|at| {
            let mut holds = self.word_everywhere(0);
            let is = |pack: &mut Self, code: IntCC| pack.e.v.b.ins().icmp(code, a[at], b[at]);
            if let Some(low) = low {
                let equal = is(self, IntCC::Equal);
                holds = self.e.v.b.ins().band(equal, low[at]);
            } else if outcomes & 2 != 0 {
                holds = is(self, IntCC::Equal);
            }
            for (bit, code) in [(predicates::LESS, less), (predicates::GREATER, greater)] {
                if outcomes & bit != 0 {
                    let more = is(self, code);
                    holds = self.e.v.b.ins().bor(holds, more);
                }
            }
            holds
        });
        self.pair(i, i.y >> predicates::COMBINE, holds);
    }

    pub(super) fn compared_floats(&mut self, i: &Inst, double: bool) {
        let wanted = i.y & 15;
        let holds = if wanted == 0 || wanted == 15 {
            let value = self.word_everywhere(if wanted == 0 { 0 } else { u32::MAX });
            [value; PARTS]
        } else if double {
            let (a, b) = (self.doubles(i.a), self.doubles(i.b));
            let wide: Wide = each(|at| self.e.v.b.ins().fcmp(float_codes()[wanted as usize - 1], a[at], b[at]));
            self.narrowed(wide)
        } else {
            let (a, b) = (self.flag_operand(i.a, i.x), self.flag_operand(i.b, i.x));
            each(|at| self.e.v.b.ins().fcmp(float_codes()[wanted as usize - 1], a[at], b[at]))
        };
        self.pair(i, i.y >> BOP, holds);
    }
}
