//! Native code for arithmetic of floats, of one lane.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::context::at;
use super::relocations::Keeper;
use super::values::{Held, Values, plain};
use sim_exec::float::{FTZ, SAT};
use sim_exec::operations::operands;
use sim_exec::program::{LaneOp, LaneTy, Sem, Slot};

/// Whether the host has an instruction for a multiplication and addition rounded once.
pub(super) fn has_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

impl Values<'_, '_> {
    pub(super) fn float_operand(&mut self, slot: Slot, ty: LaneTy) -> Value {
        if ty == LaneTy::F32 { self.single(slot, true) } else { self.double(slot) }
    }

    /// A result of arithmetic. Which NaN a double is, the operation's function says.
    fn float_result(&mut self, value: Value, i: operands::Lane<'_>, op: &LaneOp) -> Held {
        if op.types[3] == LaneTy::F32 {
            return Held::single(value, true);
        }
        let (done, slow) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(done, types::F64);
        self.b.set_cold_block(slow);
        let is = self.b.ins().fcmp(FloatCC::Unordered, value, value);
        self.b.ins().brif(is, slow, &[], done, &[value.into()]);
        self.b.switch_to_block(slow);
        // Forms made here are not at hand behind.
        let known = self.at_hand();
        let function = self.function(op.call as usize);
        let mut operands: Vec<Value> = i.sources().map(|slot| self.long(slot)).collect();
        operands.resize(3, operands[0]);
        self.call_keeper(Keeper::Call, [self.context, function, operands[0], operands[1], operands[2]]);
        let nan = self.b.ins().load(types::F64, plain(), self.context, at!(found));
        self.restore(known);
        self.b.ins().jump(done, &[nan.into()]);
        self.b.switch_to_block(done);
        Held::double(result)
    }

    /// `value`, made of a double; of a NaN that made quiet.
    fn unless_nan(&mut self, double: Value, value: Value) -> Value {
        let bits = self.bits(types::I64, double);
        let bit = self.int(types::I64, 1 << 51);
        let quiet = self.b.ins().bor(bits, bit);
        let quiet = self.bits(types::F64, quiet);
        let is = self.b.ins().fcmp(FloatCC::Unordered, double, double);
        self.b.ins().select(is, quiet, value)
    }

    /// A subnormal single becomes a zero of its sign.
    pub(super) fn flushed(&mut self, value: Value) -> Value {
        let zero = self.b.ins().f32const(0.0);
        let least = self.b.ins().f32const(f32::MIN_POSITIVE);
        let size = self.b.ins().fabs(value);
        let small = self.b.ins().fcmp(FloatCC::LessThan, size, least);
        let signed = self.b.ins().fcopysign(zero, value);
        self.b.ins().select(small, signed, value)
    }

    pub(super) fn flush_if(&mut self, value: Value, x: u64) -> Value {
        if x & FTZ != 0 { self.flushed(value) } else { value }
    }

    /// The flags of `output`.
    fn finished(&mut self, value: Value, x: u64) -> Held {
        let value = self.flush_if(value, x);
        if x & SAT == 0 {
            return Held::single(value, true);
        }
        let (zero, one) = (self.b.ins().f32const(0.0), self.b.ins().f32const(1.0));
        let positive = self.b.ins().fcmp(FloatCC::GreaterThan, value, zero);
        let low = self.b.ins().select(positive, value, zero);
        let large = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, value, one);
        Held::single(self.b.ins().select(large, one, low), false)
    }

    pub(super) fn inline_float(&mut self, i: operands::Lane<'_>, op: &LaneOp) -> Option<Held> {
        let [ta, _, _, tr] = op.types;
        let plain = i.constant() & 3 == 0;
        Some(match op.sem {
            Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul => {
                let (a, b) = (self.float_operand(i.a(), ta), self.float_operand(i.b(), ta));
                let value = match op.sem {
                    Sem::FloatAdd => self.b.ins().fadd(a, b),
                    Sem::FloatSub => self.b.ins().fsub(a, b),
                    _ => self.b.ins().fmul(a, b),
                };
                self.float_result(value, i, op)
            }
            Sem::FloatFma if has_fma() => {
                let (a, b) = (self.float_operand(i.a(), ta), self.float_operand(i.b(), ta));
                let c = self.float_operand(i.c(), ta);
                let value = self.b.ins().fma(a, b, c);
                self.float_result(value, i, op)
            }
            Sem::FlagAdd | Sem::FlagSub | Sem::FlagMul if plain => {
                let (a, b) = (self.single(i.a(), true), self.single(i.b(), true));
                let (a, b) = (self.flush_if(a, i.constant()), self.flush_if(b, i.constant()));
                let value = match op.sem {
                    Sem::FlagAdd => self.b.ins().fadd(a, b),
                    Sem::FlagSub => self.b.ins().fsub(a, b),
                    _ => self.b.ins().fmul(a, b),
                };
                self.finished(value, i.constant())
            }
            Sem::FlagFma if plain && has_fma() => {
                let [a, b, c] = [i.a(), i.b(), i.c()].map(|slot| {
                    let value = self.single(slot, true);
                    self.flush_if(value, i.constant())
                });
                let value = self.b.ins().fma(a, b, c);
                self.finished(value, i.constant())
            }
            Sem::FlagDiv if plain => {
                let (a, b) = (self.single(i.a(), true), self.single(i.b(), true));
                let (a, b) = (self.flush_if(a, i.constant()), self.flush_if(b, i.constant()));
                let value = self.b.ins().fdiv(a, b);
                self.finished(value, i.constant())
            }
            Sem::FlagSqrt if plain => {
                let a = self.single(i.a(), true);
                let a = self.flush_if(a, i.constant());
                let value = self.b.ins().sqrt(a);
                self.finished(value, i.constant())
            }
            Sem::FlagNeg => {
                let a = self.single(i.a(), true);
                let value = self.b.ins().fneg(a);
                self.finished(value, i.constant())
            }
            Sem::FlagAbs => {
                let a = self.single(i.a(), true);
                let value = self.b.ins().fabs(a);
                self.finished(value, i.constant())
            }
            Sem::FlagMin | Sem::FlagMax => {
                let (a, b) = (self.single(i.a(), true), self.single(i.b(), true));
                let (a, b) = (self.flush_if(a, i.constant()), self.flush_if(b, i.constant()));
                let min = op.sem == Sem::FlagMin;
                let code = if min { FloatCC::LessThan } else { FloatCC::GreaterThan };
                let first = self.b.ins().fcmp(code, a, b);
                let other = self.b.ins().fcmp(FloatCC::Unordered, b, b);
                let first = self.b.ins().bor(first, other);
                let value = self.b.ins().select(first, a, b);
                // Of two zeros the negative one is the lesser.
                let equal = self.b.ins().fcmp(FloatCC::Equal, a, b);
                let both = if min { self.b.ins().bor(a, b) } else { self.b.ins().band(a, b) };
                Held::single(self.b.ins().select(equal, both, value), true)
            }
            Sem::Neg if ta == LaneTy::F64 => {
                let a = self.double(i.a());
                let negated = self.b.ins().fneg(a);
                Held::double(self.unless_nan(a, negated))
            }
            Sem::Abs if ta == LaneTy::F64 => {
                let a = self.double(i.a());
                let size = self.b.ins().fabs(a);
                Held::double(self.unless_nan(a, size))
            }
            Sem::Convert => match (ta, tr) {
                (LaneTy::F32, LaneTy::F64) => {
                    let a = self.single(i.a(), false);
                    Held::double(self.b.ins().fpromote(types::F64, a))
                }
                (LaneTy::F64, LaneTy::F32) => {
                    let a = self.double(i.a());
                    Held::single(self.b.ins().fdemote(types::F32, a), false)
                }
                (LaneTy::I32 | LaneTy::U32, LaneTy::F32 | LaneTy::F64) => {
                    let to = if tr == LaneTy::F32 { types::F32 } else { types::F64 };
                    let a = if ta == LaneTy::I32 { self.word(i.a()) } else { self.long_word(i.a()) };
                    let value = self.b.ins().fcvt_from_sint(to, a);
                    if tr == LaneTy::F32 { Held::single(value, false) } else { Held::double(value) }
                }
                (LaneTy::F32, LaneTy::I32) => {
                    let a = self.single(i.a(), true);
                    Held::word(self.b.ins().fcvt_to_sint_sat(types::I32, a))
                }
                (LaneTy::F32, LaneTy::U32) => {
                    let a = self.single(i.a(), true);
                    Held::word(self.b.ins().fcvt_to_uint_sat(types::I32, a))
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}
