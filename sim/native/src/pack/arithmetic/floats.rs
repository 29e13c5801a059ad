//! Native code for arithmetic of floats, for all lanes of a pack at once.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::floats::has_fma;
use crate::outside::Keeper;
use crate::pack::lanes::{Lanes, Narrow, Pack, Wide, each};
use sim_exec::float::{FTZ, SAT};
use sim_exec::program::{Inst, LaneOp, LaneTy, Sem, Slot};

impl Pack<'_, '_> {
    fn flushed(&mut self, values: Narrow) -> Narrow {
        let (exponent, sign) = (self.word_everywhere(0x7f80_0000), self.word_everywhere(0x8000_0000));
        let zero = self.word_everywhere(0);
        each(self.width, |at| {
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

    pub(crate) fn flag_operand(&mut self, slot: Slot, x: u64) -> Narrow {
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
        let clamped = each(self.width, |at| {
            let positive = self.e.v.b.ins().fcmp(FloatCC::GreaterThan, values[at], zero);
            let low = self.chosen(positive, values[at], zero);
            let large = self.e.v.b.ins().fcmp(FloatCC::GreaterThanOrEqual, values[at], one);
            self.chosen(large, one, low)
        });
        Lanes::Singles(clamped, false)
    }

    pub(crate) fn computed_float(&mut self, i: &Inst, op: &LaneOp) -> Option<Lanes> {
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
                let values = each(self.width, |at| match op.sem {
                    Sem::FloatAdd | Sem::FlagAdd => self.e.v.b.ins().fadd(a[at], b[at]),
                    Sem::FloatSub | Sem::FlagSub => self.e.v.b.ins().fsub(a[at], b[at]),
                    _ => self.e.v.b.ins().fmul(a[at], b[at]),
                });
                self.finished(values, x)
            }
            Sem::FloatFma | Sem::FlagFma if has_fma() && (nearest || op.sem == Sem::FloatFma) => {
                let x = if op.sem == Sem::FloatFma { 0 } else { i.x };
                let [a, b, c] = [i.a, i.b, i.c].map(|slot| self.flag_operand(slot, x));
                let values = each(self.width, |at| self.e.v.b.ins().fma(a[at], b[at], c[at]));
                self.finished(values, x)
            }
            Sem::FlagDiv if nearest => {
                let (a, b) = (self.flag_operand(i.a, i.x), self.flag_operand(i.b, i.x));
                let values = each(self.width, |at| self.e.v.b.ins().fdiv(a[at], b[at]));
                self.finished(values, i.x)
            }
            Sem::FlagSqrt if nearest => {
                let a = self.flag_operand(i.a, i.x);
                let values = each(self.width, |at| self.e.v.b.ins().sqrt(a[at]));
                self.finished(values, i.x)
            }
            Sem::FlagRcp if nearest => {
                let a = self.flag_operand(i.a, i.x);
                let one = self.single_everywhere(1.0);
                let values = each(self.width, |at| self.e.v.b.ins().fdiv(one, a[at]));
                self.finished(values, i.x)
            }
            Sem::Approximate(approximation) if i.x & SAT == 0 => self.approximate(i, op, approximation),
            Sem::FlagNeg | Sem::FlagAbs => {
                let (a, _) = self.singles(i.a, true);
                let values = each(self.width, |at| match op.sem {
                    Sem::FlagNeg => self.e.v.b.ins().fneg(a[at]),
                    _ => self.e.v.b.ins().fabs(a[at]),
                });
                self.finished(values, i.x)
            }
            Sem::FlagMin | Sem::FlagMax => {
                let (a, b) = (self.flag_operand(i.a, i.x), self.flag_operand(i.b, i.x));
                let min = op.sem == Sem::FlagMin;
                let code = if min { FloatCC::LessThan } else { FloatCC::GreaterThan };
                let values = each(self.width, |at| {
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
                    Lanes::Doubles(each(self.width, |at| {
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
                    Lanes::Singles(
                        each(self.width, |at| self.e.v.b.ins().fcvt_from_sint(types::F32X4, words[at])),
                        false,
                    )
                }
                (LaneTy::U32, LaneTy::F32) => {
                    let words = self.words(i.a);
                    Lanes::Singles(
                        each(self.width, |at| self.e.v.b.ins().fcvt_from_uint(types::F32X4, words[at])),
                        false,
                    )
                }
                (LaneTy::F32, LaneTy::I32) => {
                    let (a, _) = self.singles(i.a, true);
                    Lanes::Words(each(self.width, |at| self.e.v.b.ins().fcvt_to_sint_sat(types::I32X4, a[at])))
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
                each(self.width, |at| match op.sem {
                    Sem::FloatAdd => self.e.v.b.ins().fadd(a[at], b[at]),
                    Sem::FloatSub => self.e.v.b.ins().fsub(a[at], b[at]),
                    _ => self.e.v.b.ins().fmul(a[at], b[at]),
                })
            }
            Sem::FloatFma if has_fma() => {
                let [a, b, c] = [i.a, i.b, i.c].map(|slot| self.doubles(slot));
                each(self.width, |at| self.e.v.b.ins().fma(a[at], b[at], c[at]))
            }
            Sem::DoubleDiv => {
                let (a, b) = (self.doubles(i.a), self.doubles(i.b));
                each(self.width, |at| self.e.v.b.ins().fdiv(a[at], b[at]))
            }
            Sem::DoubleRcp => {
                let (one, a) = (self.long_everywhere(1f64.to_bits()), self.doubles(i.a));
                let one = self.cast(types::F64X2, one);
                each(self.width, |at| self.e.v.b.ins().fdiv(one, a[at]))
            }
            Sem::DoubleSqrt => {
                let a = self.doubles(i.a);
                each(self.width, |at| self.e.v.b.ins().sqrt(a[at]))
            }
            Sem::Neg => {
                let a = self.doubles(i.a);
                return Some(Lanes::Doubles(each(self.width, |at| {
                    let negated = self.e.v.b.ins().fneg(a[at]);
                    self.unless_nan(a[at], negated)
                })));
            }
            Sem::Abs => {
                let a = self.doubles(i.a);
                return Some(Lanes::Doubles(each(self.width, |at| {
                    let size = self.e.v.b.ins().fabs(a[at]);
                    self.unless_nan(a[at], size)
                })));
            }
            _ => return None,
        };
        Some(Lanes::Doubles(self.checked_doubles(values, i, op)))
    }

    /// `value`, made of a double; of a NaN that made quiet.
    fn unless_nan(&mut self, double: Value, value: Value) -> Value {
        let bits = self.cast(types::I64X2, double);
        let bit = self.long_everywhere(1 << 51);
        let quiet = self.e.v.b.ins().bor(bits, bit);
        let quiet = self.cast(types::F64X2, quiet);
        let is = self.e.v.b.ins().fcmp(FloatCC::Unordered, double, double);
        self.chosen(is, quiet, value)
    }

    fn checked_doubles(&mut self, values: Wide, i: &Inst, op: &LaneOp) -> Wide {
        let (done, slow) = (self.e.v.b.create_block(), self.e.v.b.create_block());
        let results: Wide = each(self.width, |_| self.e.v.b.append_block_param(done, types::F64X2));
        self.e.v.b.set_cold_block(slow);
        let mut is = self.e.v.b.ins().fcmp(FloatCC::Unordered, values[0], values[0]);
        for &value in &values[1..] {
            let more = self.e.v.b.ins().fcmp(FloatCC::Unordered, value, value);
            is = self.e.v.b.ins().bor(is, more);
        }
        let any = self.e.v.b.ins().vhigh_bits(types::I32, is);
        let arguments: Vec<_> = values.iter().map(|&value| value.into()).collect();
        self.e.v.b.ins().brif(any, slow, &[], done, &arguments);
        self.e.v.b.switch_to_block(slow);
        let known = self.e.v.at_hand();
        let second = if op.operands > 1 { i.b } else { i.a };
        let operands = [i.a, second, if op.operands > 2 { i.c } else { second }].map(|slot| self.longs(slot));
        let function = self.e.v.function(op.call as usize);
        let mut exact: Vec<Value> = Vec::new();
        for at in 0..2 * self.width.parts() {
            let mut part = self.cast(types::I64X2, values[at]);
            for half in 0..2u8 {
                let [a, b, c] = operands.each_ref().map(|operand| self.e.v.b.ins().extractlane(operand[at], half));
                self.e.v.call_keeper(Keeper::Call, [self.e.v.context, function, a, b, c]);
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
}
