//! Native code for the functions of one lane's values.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};

use super::flow::constant;
use super::values::{Held, Values};
use sim_exec::exec::per_lane::{COMBINE_AND, COMBINE_NONE, COMBINE_OR};
use sim_exec::operations::operands;
use sim_exec::program::{LaneOp, LaneTy, ResultUse, Sem, Slot};

/// Bits of a type.
pub(super) fn bits(ty: LaneTy) -> u32 {
    match ty {
        LaneTy::U8 | LaneTy::I8 => 8,
        LaneTy::U16 | LaneTy::I16 => 16,
        LaneTy::U32 | LaneTy::I32 | LaneTy::F32 => 32,
        _ => 64,
    }
}

pub(super) fn signed(ty: LaneTy) -> bool {
    matches!(ty, LaneTy::I8 | LaneTy::I16 | LaneTy::I32 | LaneTy::I64)
}

pub(super) fn float(ty: LaneTy) -> bool {
    matches!(ty, LaneTy::F32 | LaneTy::F64)
}

/// How the host compares floats as an operation does.
pub(super) fn comparison_of_floats(sem: Sem) -> Option<FloatCC> {
    Some(match sem {
        Sem::Eq => FloatCC::Equal,
        Sem::Ne => FloatCC::NotEqual,
        Sem::Lt => FloatCC::LessThan,
        Sem::Le => FloatCC::LessThanOrEqual,
        Sem::Gt => FloatCC::GreaterThan,
        Sem::Ge => FloatCC::GreaterThanOrEqual,
        Sem::EqUnordered => FloatCC::UnorderedOrEqual,
        Sem::NeOrdered => FloatCC::OrderedNotEqual,
        Sem::LtUnordered => FloatCC::UnorderedOrLessThan,
        Sem::LeUnordered => FloatCC::UnorderedOrLessThanOrEqual,
        Sem::GtUnordered => FloatCC::UnorderedOrGreaterThan,
        Sem::GeUnordered => FloatCC::UnorderedOrGreaterThanOrEqual,
        _ => return None,
    })
}

/// How the host compares integers as an operation does.
pub(super) fn comparison_of_integers(sem: Sem, ty: LaneTy) -> Option<IntCC> {
    Some(match (sem, signed(ty)) {
        (Sem::Eq, _) => IntCC::Equal,
        (Sem::Ne, _) => IntCC::NotEqual,
        (Sem::Lt, true) => IntCC::SignedLessThan,
        (Sem::Le, true) => IntCC::SignedLessThanOrEqual,
        (Sem::Gt, true) => IntCC::SignedGreaterThan,
        (Sem::Ge, true) => IntCC::SignedGreaterThanOrEqual,
        (Sem::Lt, false) => IntCC::UnsignedLessThan,
        (Sem::Le, false) => IntCC::UnsignedLessThanOrEqual,
        (Sem::Gt, false) => IntCC::UnsignedGreaterThan,
        (Sem::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}

impl Values<'_, '_> {
    /// An operand as an integer of 32 or 64 bits, extended from its type.
    fn integer(&mut self, slot: Slot, ty: LaneTy) -> Value {
        match ty {
            LaneTy::U64 | LaneTy::I64 => self.long(slot),
            _ => {
                let word = self.word(slot);
                self.extended(word, ty)
            }
        }
    }

    /// A word extended from its lower bits.
    pub(super) fn extended(&mut self, word: Value, ty: LaneTy) -> Value {
        match ty {
            LaneTy::U8 => self.b.ins().band_imm_u(word, 0xff),
            LaneTy::U16 => self.b.ins().band_imm_u(word, 0xffff),
            LaneTy::I8 => {
                let low = self.b.ins().ireduce(types::I8, word);
                self.b.ins().sextend(types::I32, low)
            }
            LaneTy::I16 => {
                let low = self.b.ins().ireduce(types::I16, word);
                self.b.ins().sextend(types::I32, low)
            }
            _ => word,
        }
    }

    /// An operand extended to 64 bits.
    fn extended_long(&mut self, slot: Slot, ty: LaneTy) -> Value {
        if bits(ty) == 64 {
            return self.long(slot);
        }
        if ty == LaneTy::U32 {
            return self.long_word(slot);
        }
        let word = self.integer(slot, ty);
        if signed(ty) { self.b.ins().sextend(types::I64, word) } else { self.b.ins().uextend(types::I64, word) }
    }

    /// The low 32 bits of an operand, extended with zeros.
    pub(super) fn long_word(&mut self, slot: Slot) -> Value {
        let word = self.word(slot);
        self.b.ins().uextend(types::I64, word)
    }

    /// An integer result cut to its type.
    fn cut(&mut self, value: Value, ty: LaneTy) -> Held {
        let wide = self.b.func.dfg.value_type(value) == types::I64;
        match bits(ty) {
            64 => {
                let value = if wide {
                    value
                } else if signed(ty) {
                    self.b.ins().sextend(types::I64, value)
                } else {
                    self.b.ins().uextend(types::I64, value)
                };
                Held::long(value)
            }
            width => {
                let value = if wide { self.b.ins().ireduce(types::I32, value) } else { value };
                Held::word(match width {
                    8 => self.b.ins().band_imm_u(value, 0xff),
                    16 => self.b.ins().band_imm_u(value, 0xffff),
                    _ => value,
                })
            }
        }
    }

    /// Calls the function of an operation.
    fn called(&mut self, i: operands::Lane<'_>, op: &LaneOp) -> Value {
        let mut arguments: Vec<Value> = i.sources().map(|slot| self.long(slot)).collect();
        arguments.resize_with(3, || self.int(types::I64, 0));
        arguments.push(self.int(types::I64, i.constant()));
        self.call(op.call as usize, &arguments)
    }

    /// Compiles one operation.
    pub(super) fn operation(&mut self, i: operands::Lane<'_>, op: &LaneOp) {
        if op.outcome == ResultUse::Value {
            let value = self.computed(i, op);
            self.define(i.d(), value);
            return;
        }
        let holds = match self.compared(i, op) {
            Some(holds) => holds,
            None => {
                let result = self.called(i, op);
                self.b.ins().icmp_imm_u(IntCC::NotEqual, result, 0)
            }
        };
        let third = if i.combine() == COMBINE_NONE { None } else { Some(self.truth(i.combined().0)) };
        let combined = |values: &mut Self, truth: Value| match (third, i.combine()) {
            (None, _) => truth,
            (Some(third), COMBINE_AND) => values.b.ins().band(truth, third),
            (Some(third), COMBINE_OR) => values.b.ins().bor(truth, third),
            (Some(third), _) => values.b.ins().bxor(truth, third),
        };
        let first = combined(self, holds);
        if op.outcome == ResultUse::Choice {
            let (yes, no) = (self.int(types::I64, i.constant()), self.int(types::I64, 0));
            let value = self.b.ins().select(first, yes, no);
            self.define(i.d(), Held::long(value));
            return;
        }
        let opposite = self.not(holds);
        let second = combined(self, opposite);
        self.set(i.p().0, first);
        self.set(i.q().0, second);
    }

    fn compared(&mut self, i: operands::Lane<'_>, op: &LaneOp) -> Option<Value> {
        let ty = op.types[0];
        if float(ty) {
            let code = comparison_of_floats(op.sem)?;
            let (a, b) = (self.float_operand(i.a(), ty), self.float_operand(i.b(), ty));
            return Some(self.b.ins().fcmp(code, a, b));
        }
        let code = comparison_of_integers(op.sem, ty)?;
        let (a, b) = (self.integer(i.a(), ty), self.integer(i.b(), ty));
        Some(self.b.ins().icmp(code, a, b))
    }

    fn computed(&mut self, i: operands::Lane<'_>, op: &LaneOp) -> Held {
        if let Some(value) = self.inline(i, op) {
            return value;
        }
        let result = self.called(i, op);
        if bits(op.types[3]) == 64 { Held::long(result) } else { Held::word(self.b.ins().ireduce(types::I32, result)) }
    }

    fn inline(&mut self, i: operands::Lane<'_>, op: &LaneOp) -> Option<Held> {
        let [ta, tb, tc, tr] = op.types;
        let wide = bits(ta) == 64;
        let ty: Type = if wide { types::I64 } else { types::I32 };
        if float(ta) || float(tr) {
            return self.inline_float(i, op);
        }
        let value = match op.sem {
            Sem::Move => {
                if ta == tr {
                    // As it is, in all forms at hand.
                    return match bits(ta) {
                        64 => Some(self.held(i.a())),
                        32 => {
                            let mut held = self.held(i.a());
                            if held.single.is_none() {
                                let word = self.word_of(&mut held);
                                held = Held::word(word);
                            }
                            Some(held)
                        }
                        _ => {
                            let value = self.integer(i.a(), ta);
                            Some(self.cut(value, tr))
                        }
                    };
                }
                if bits(tr) == 64 { self.extended_long(i.a(), ta) } else { self.integer(i.a(), ta) }
            }
            Sem::MoveMasked => {
                let narrow = i.constant() >> 32 == 0;
                if narrow {
                    let word = if wide { self.word(i.a()) } else { self.integer(i.a(), ta) };
                    let value = match i.constant() {
                        0xffff_ffff => word,
                        mask => {
                            let mask = self.int(types::I32, mask);
                            self.b.ins().band(word, mask)
                        }
                    };
                    return Some(Held::word(value));
                }
                let value = self.extended_long(i.a(), ta);
                let mask = self.int(types::I64, i.constant());
                self.b.ins().band(value, mask)
            }
            Sem::Add | Sem::Sub | Sem::Mul | Sem::And | Sem::Or | Sem::Xor => {
                let (a, b) =
                    if wide { (self.long(i.a()), self.long(i.b())) } else { (self.word(i.a()), self.word(i.b())) };
                match op.sem {
                    Sem::Add => self.b.ins().iadd(a, b),
                    Sem::Sub => self.b.ins().isub(a, b),
                    Sem::Mul => self.b.ins().imul(a, b),
                    Sem::And => self.b.ins().band(a, b),
                    Sem::Or => self.b.ins().bor(a, b),
                    _ => self.b.ins().bxor(a, b),
                }
            }
            Sem::Add3 | Sem::MulAdd => {
                let (a, b) =
                    if wide { (self.long(i.a()), self.long(i.b())) } else { (self.word(i.a()), self.word(i.b())) };
                let c = if wide { self.long(i.c()) } else { self.word(i.c()) };
                let first = if op.sem == Sem::Add3 { self.b.ins().iadd(a, b) } else { self.b.ins().imul(a, b) };
                self.b.ins().iadd(first, c)
            }
            Sem::MulHigh => match bits(ta) {
                64 => {
                    let (a, b) = (self.long(i.a()), self.long(i.b()));
                    if signed(ta) { self.b.ins().smulhi(a, b) } else { self.b.ins().umulhi(a, b) }
                }
                width => {
                    let (a, b) = (self.extended_long(i.a(), ta), self.extended_long(i.b(), tb));
                    let product = self.b.ins().imul(a, b);
                    self.b.ins().ushr_imm_u(product, i64::from(width))
                }
            },
            Sem::MulWide => {
                let (a, b) = (self.extended_long(i.a(), ta), self.extended_long(i.b(), tb));
                self.b.ins().imul(a, b)
            }
            Sem::MulAddWide => {
                let (a, b) = (self.extended_long(i.a(), ta), self.extended_long(i.b(), tb));
                let c = self.extended_long(i.c(), tc);
                let product = self.b.ins().imul(a, b);
                self.b.ins().iadd(product, c)
            }
            Sem::Not => {
                let a = if wide { self.long(i.a()) } else { self.word(i.a()) };
                self.b.ins().bnot(a)
            }
            Sem::Neg => {
                let a = if wide { self.long(i.a()) } else { self.word(i.a()) };
                self.b.ins().ineg(a)
            }
            Sem::Abs => {
                let a = self.integer(i.a(), ta);
                self.b.ins().iabs(a)
            }
            Sem::Min | Sem::Max => {
                let (a, b) = (self.integer(i.a(), ta), self.integer(i.b(), tb));
                let code = match (op.sem, signed(ta)) {
                    (Sem::Min, true) => IntCC::SignedLessThan,
                    (Sem::Min, false) => IntCC::UnsignedLessThan,
                    (_, true) => IntCC::SignedGreaterThan,
                    (_, false) => IntCC::UnsignedGreaterThan,
                };
                let first = self.b.ins().icmp(code, a, b);
                self.b.ins().select(first, a, b)
            }
            Sem::Shl | Sem::Shr => self.shifted(i, op, ty),
            Sem::AndCount => {
                let a = self.word(i.a());
                self.b.ins().band_imm_u(a, i.constant().wrapping_sub(1) as i64 & 0xffff_ffff)
            }
            Sem::MinCount => {
                let (a, most) = (self.word(i.a()), self.int(types::I32, i.constant()));
                let less = self.b.ins().icmp(IntCC::UnsignedLessThan, a, most);
                self.b.ins().select(less, a, most)
            }
            Sem::ShlHigh | Sem::ShlLow | Sem::ShrHigh | Sem::ShrLow => {
                let shifted = self.shifted(i, op, types::I64);
                match op.sem {
                    Sem::ShlHigh | Sem::ShrHigh => self.b.ins().ushr_imm_u(shifted, 32),
                    _ => shifted,
                }
            }
            Sem::FunnelLeft | Sem::FunnelRight => {
                let left = op.sem == Sem::FunnelLeft;
                let (a, c) = (self.word(i.a()), self.word(i.c()));
                if i.a() == i.b() {
                    let value = if left { self.b.ins().rotl(a, c) } else { self.b.ins().rotr(a, c) };
                    return Some(Held::word(value));
                }
                let both = self.joined(i.a(), i.b());
                let count = self.b.ins().band_imm_u(c, 31);
                if left {
                    let shifted = self.b.ins().ishl(both, count);
                    self.b.ins().ushr_imm_u(shifted, 32)
                } else {
                    self.b.ins().ushr(both, count)
                }
            }
            Sem::Lop3 => {
                let (a, b, c) = (self.word(i.a()), self.word(i.b()), self.word(i.c()));
                self.table(i.constant() as u32, [a, b, c], types::I32)
            }
            Sem::Join => self.joined(i.a(), i.b()),
            Sem::High => {
                let a = self.long(i.a());
                self.b.ins().ushr_imm_u(a, 32)
            }
            Sem::ShiftedHigh => {
                let a = self.long(i.a());
                let shifted = self.b.ins().ishl_imm_u(a, (i.constant() & 63) as i64);
                self.b.ins().ushr_imm_u(shifted, 32)
            }
            Sem::Shifted => {
                let a = self.word(i.a());
                self.b.ins().ishl_imm_u(a, (i.constant() & 31) as i64)
            }
            Sem::NegBits => {
                if !wide {
                    let held = self.held(i.a());
                    if held.single.is_some() && held.word.is_none() {
                        let single = self.single(i.a(), false);
                        return Some(Held::single(self.b.ins().fneg(single), false));
                    }
                }
                let a = if wide { self.long(i.a()) } else { self.word(i.a()) };
                let sign = self.int(ty, if wide { 1 << 63 } else { 1 << 31 });
                self.b.ins().bxor(a, sign)
            }
            Sem::AbsBits => {
                let a = if wide { self.long(i.a()) } else { self.word(i.a()) };
                let rest = self.int(ty, if wide { u64::MAX >> 1 } else { 0x7fff_ffff });
                self.b.ins().band(a, rest)
            }
            _ => return None,
        };
        Some(self.cut(value, tr))
    }

    fn joined(&mut self, low: Slot, high: Slot) -> Value {
        let (low, high) = (self.long_word(low), self.long_word(high));
        let high = self.b.ins().ishl_imm_u(high, 32);
        self.b.ins().bor(low, high)
    }

    /// The first operand shifted by the second, as far as that goes.
    fn shifted(&mut self, i: operands::Lane<'_>, op: &LaneOp, ty: Type) -> Value {
        let from = op.types[0];
        let width = bits(from);
        let left = matches!(op.sem, Sem::Shl | Sem::ShlHigh | Sem::ShlLow);
        let a = self.integer(i.a(), from);
        let known = constant(self.program, i.b()).map(|count| count & 0xffff_ffff);
        if let Some(count) = known {
            let within = count < u64::from(width);
            return match (left, signed(from)) {
                (true, _) if within => self.b.ins().ishl_imm_u(a, count as i64),
                (false, true) => self.b.ins().sshr_imm_u(a, count.min(u64::from(width) - 1) as i64),
                (false, false) if within => self.b.ins().ushr_imm_u(a, count as i64),
                _ => self.int(ty, 0),
            };
        }
        let count = self.word(i.b());
        let most = self.int(types::I32, u64::from(width) - 1);
        let within = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, count, most);
        if !left && signed(from) {
            let count = self.b.ins().select(within, count, most);
            return self.b.ins().sshr(a, count);
        }
        let shifted = if left { self.b.ins().ishl(a, count) } else { self.b.ins().ushr(a, count) };
        let zero = self.int(ty, 0);
        self.b.ins().select(within, shifted, zero)
    }

    /// The truth table of three values; of truths (0 or 1) in type I8.
    pub(super) fn table(&mut self, table: u32, [a, b, c]: [Value; 3], ty: Type) -> Value {
        let (zero, one) = (self.of_two(table & 15, [b, c], ty), self.of_two(table >> 4 & 15, [b, c], ty));
        self.chosen(a, zero, one, ty)
    }

    fn of_two(&mut self, table: u32, [b, c]: [Value; 2], ty: Type) -> Part {
        let one = |values: &mut Self, table: u32| match table & 3 {
            0 => Part::No,
            3 => Part::Yes,
            2 => Part::Is(c),
            _ => Part::Is(values.inverse(c, ty)),
        };
        let (low, high) = (one(self, table), one(self, table >> 2));
        if table & 3 == table >> 2 & 3 {
            return low;
        }
        match (low, high) {
            (Part::No, Part::Yes) => Part::Is(b),
            (Part::Yes, Part::No) => Part::Is(self.inverse(b, ty)),
            (low, high) => Part::Is(self.chosen(b, low, high, ty)),
        }
    }

    fn inverse(&mut self, value: Value, ty: Type) -> Value {
        if ty == types::I8 { self.not(value) } else { self.b.ins().bnot(value) }
    }

    /// `zero` where the selector's bits are zero, else `one`.
    fn chosen(&mut self, by: Value, zero: Part, one: Part, ty: Type) -> Value {
        let ones = if ty == types::I8 { 1 } else { u64::MAX };
        match (zero, one) {
            (Part::No, Part::No) => self.int(ty, 0),
            (Part::Yes, Part::Yes) => self.int(ty, ones),
            (Part::No, Part::Yes) => by,
            (Part::Yes, Part::No) => self.inverse(by, ty),
            (Part::No, Part::Is(one)) => self.b.ins().band(by, one),
            (Part::Is(zero), Part::Yes) => self.b.ins().bor(by, zero),
            (Part::Is(zero), Part::No) => {
                let not = self.inverse(by, ty);
                self.b.ins().band(not, zero)
            }
            (Part::Yes, Part::Is(one)) => {
                let not = self.inverse(by, ty);
                self.b.ins().bor(not, one)
            }
            (Part::Is(zero), Part::Is(one)) if zero == one => zero,
            (Part::Is(zero), Part::Is(one)) => {
                let differ = self.b.ins().bxor(zero, one);
                let differ = self.b.ins().band(differ, by);
                self.b.ins().bxor(differ, zero)
            }
        }
    }
}

/// A part of a truth table: everywhere false, everywhere true, or a value.
#[derive(Clone, Copy)]
enum Part {
    No,
    Yes,
    Is(Value),
}
