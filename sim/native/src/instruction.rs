//! Native code for one instruction of one lane, whatever its kind.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::context::{RegionContext, execute};
use super::decode::{self, Kind};
use super::effects::{self, Register};
use super::flow::Flow;
use super::memory::Access;
use super::values::{Held, Values, fixed};
use sim_exec::exec::control::Special;
use sim_exec::exec::load_store::SHARED;
use sim_exec::exec_sass::floats::BOP;
use sim_exec::exec_sass::{integer, predicates};
use sim_exec::operations::operands;
use sim_exec::program::{Inst, Pred, Slot};

/// What makes native code of instructions.
pub(super) struct Emitter<'p, 'b> {
    pub(crate) v: Values<'p, 'b>,
    pub(crate) access: Access,
}

impl<'p, 'b> Emitter<'p, 'b> {
    /// Does something for the other half of a whole warp, `first` lanes behind this one.
    pub(super) fn with_other_half(&mut self, first: usize, f: impl FnOnce(&mut Self)) {
        let (lane, row, known) = self.v.go_to_other_half(first);
        f(self);
        self.v.come_back(lane, row, known);
    }
}

impl Emitter<'_, '_> {
    pub(super) fn instruction(&mut self, flow: &Flow, i: &Inst, pc: u32) {
        let kind = decode::kind_of_warp(i);
        self.v.guard = None;
        let apart = matches!(kind, Kind::Load { .. } | Kind::Store { .. } | Kind::Atom { .. } | Kind::Foreign)
            || matches!(kind, Kind::Special if !simple_special(operands::Special::of(i).number()));
        if i.guard == Pred::ALWAYS {
            self.unguarded(flow, i, pc, kind);
            return;
        }
        let guard = self.v.truth(i.guard.0);
        if !apart {
            self.v.guard = Some(guard);
            self.unguarded(flow, i, pc, kind);
            self.v.guard = None;
            return;
        }
        let (run, skip) = (self.v.b.create_block(), self.v.b.create_block());
        self.v.b.ins().brif(guard, run, &[], skip, &[]);
        self.v.b.switch_to_block(run);
        // Forms made inside are not at hand behind.
        self.v.forget();
        self.unguarded(flow, i, pc, kind);
        self.v.b.ins().jump(skip, &[]);
        self.v.b.switch_to_block(skip);
        self.v.forget();
    }

    pub(super) fn unguarded(&mut self, flow: &Flow, i: &Inst, pc: u32, kind: Kind) {
        let (v, access) = (&mut self.v, &mut self.access);
        match kind {
            Kind::Nothing | Kind::Branch | Kind::Stop => {}
            Kind::Lane(op) => v.operation(operands::Lane::of(i), &op),
            Kind::Select => v.selected(i),
            Kind::Predicate => {
                let i = operands::Predicate::of(i);
                let (a, b) = (v.truth(i.a().0), v.truth(i.b().0));
                let value = match i.function() {
                    0 => v.b.ins().band(a, b),
                    1 => v.b.ins().bor(a, b),
                    2 => v.b.ins().bxor(a, b),
                    _ => a,
                };
                v.set(i.d().0, value);
            }
            Kind::Repack => v.repacked(i),
            Kind::Special if simple_special(operands::Special::of(i).number()) => v.special(i),
            Kind::LoadParam { size, signed } => v.load_param(i, size, signed),
            Kind::ParamAddress => {
                let i = operands::ParamAddress::of(i);
                let base = v.field(types::I64, std::mem::offset_of!(RegionContext, params));
                let value = v.b.ins().iadd_imm_s(base, i.offset() as i64);
                v.define(i.d(), Held::long(value));
            }
            Kind::FrameAddress => {
                let i = operands::FrameAddress::of(i);
                let base = v.field(types::I64, std::mem::offset_of!(RegionContext, local_base));
                let value = v.b.ins().iadd_imm_s(base, i.offset() as i64);
                v.define(i.d(), Held::long(value));
            }
            Kind::DynamicShared => {
                let i = operands::DynamicShared::of(i);
                let base = v.field(types::I64, std::mem::offset_of!(RegionContext, dynamic));
                let value = v.b.ins().iadd_imm_s(base, i.offset() as i64);
                v.define(i.d(), Held::long(value));
            }
            Kind::ConvertAddress => {
                let i = operands::ConvertAddress::of(i);
                let base = match i.space() {
                    SHARED => v.field(types::I64, std::mem::offset_of!(RegionContext, shared)),
                    sim_exec::exec::load_store::LOCAL => {
                        access.local = true;
                        let local = v.field(types::I64, std::mem::offset_of!(RegionContext, local));
                        let stride = v.field(types::I64, std::mem::offset_of!(RegionContext, stride));
                        let mine = v.b.ins().imul(stride, v.lane);
                        v.b.ins().iadd(local, mine)
                    }
                    _ => v.int(types::I64, 0),
                };
                let a = v.long(i.a());
                let value = if i.back() == 1 { v.b.ins().isub(a, base) } else { v.b.ins().iadd(a, base) };
                v.define(i.d(), Held::long(value));
            }
            Kind::Load { size, signed } => v.load(access, i, pc, size, signed),
            Kind::Store { size } => v.store(access, i, pc, size),
            Kind::Atom { kind, size } => v.atom(access, i, pc, kind, size),
            Kind::IntCompare => v.compared_words(i),
            Kind::FloatCompare { double } => v.compared_floats(i, double),
            Kind::Table => {
                let i = operands::Table::of(i);
                let [a, b, c] = [i.a(), i.b(), i.c()].map(|pred| v.truth(pred.0));
                let first = v.table(i.tables() & 0xff, [a, b, c], types::I8);
                let second = v.table(i.tables() >> 8 & 0xff, [a, b, c], types::I8);
                v.set(i.p().0, first);
                v.set(i.q().0, second);
            }
            Kind::NotZero => {
                let i = operands::NotZero::of(i);
                let a = v.word(i.a());
                let is = v.b.ins().icmp_imm_u(IntCC::NotEqual, a, 0);
                let third = v.truth(i.combined().0);
                let value = if i.combine() == 1 { v.b.ins().band(is, third) } else { v.b.ins().bor(is, third) };
                v.set(i.p().0, value);
            }
            Kind::Add3 => v.added(i),
            Kind::AddWide => v.added_wide(i),
            Kind::WithCarry => v.carried(i),
            Kind::Foreign | Kind::Special => self.foreign(flow, i, pc),
        }
    }

    /// An instruction that the interpreter executes for the lane.
    fn foreign(&mut self, flow: &Flow, i: &Inst, pc: u32) {
        let effects = effects::effects(self.v.program, i);
        let guard = i.guard.0 & !Pred::NEGATED;
        for &register in &effects.reads {
            if register != Register::Pred(guard) || i.guard == Pred::ALWAYS {
                self.v.leave(register);
            }
        }
        let v = &mut self.v;
        let (place, context, one) = (v.int(types::I64, u64::from(pc)), v.context, v.int(types::I64, 1));
        let lanes = v.b.ins().ishl(one, v.lane);
        let bad = v.call(execute as *const () as usize, &[context, place, lanes]);
        let good = v.b.create_block();
        v.b.ins().brif(bad, self.access.fault, &[], good, &[]);
        v.b.switch_to_block(good);
        for register in effects.writes {
            if flow.index(register) < flow.registers() {
                v.enter(register);
            }
        }
    }
}
/// Whether a special register is a field of the context.
pub(super) fn simple_special(y: u32) -> bool {
    y <= Special::NctaidZ as u32
        || y == Special::Laneid as u32
        || y == Special::Warpid as u32
        || (Special::MaskEq as u32..=Special::MaskGe as u32).contains(&y)
}

/// The comparisons of floats that machine code has, from 1 on.
pub(super) fn float_codes() -> [FloatCC; 14] {
    use FloatCC::*;
    [
        LessThan,
        Equal,
        LessThanOrEqual,
        GreaterThan,
        OrderedNotEqual,
        GreaterThanOrEqual,
        Ordered,
        Unordered,
        UnorderedOrLessThan,
        UnorderedOrEqual,
        UnorderedOrLessThanOrEqual,
        UnorderedOrGreaterThan,
        NotEqual,
        UnorderedOrGreaterThanOrEqual,
    ]
}

impl Values<'_, '_> {
    fn special(&mut self, i: &Inst) {
        let i = operands::Special::of(i);
        let y = i.number();
        let value = if y < Special::NtidX as u32 {
            let base = self.field(types::I64, std::mem::offset_of!(RegionContext, tid));
            let offset = self.b.ins().ishl_imm_u(self.lane, 2);
            let at = self.b.ins().iadd(base, offset);
            self.b.ins().load(types::I32, fixed(), at, y as i32 * 128)
        } else if y <= Special::NctaidZ as u32 {
            let index = (y - Special::NtidX as u32) as usize;
            self.field(types::I32, std::mem::offset_of!(RegionContext, special) + 4 * index)
        } else if y == Special::Warpid as u32 {
            self.field(types::I32, std::mem::offset_of!(RegionContext, special) + 36)
        } else if y == Special::Laneid as u32 {
            let lane = self.lane;
            self.b.ins().ireduce(types::I32, lane)
        } else {
            let one = self.int(types::I32, 1);
            let lane = self.lane;
            let eq = self.b.ins().ishl(one, lane);
            let less = self.b.ins().iadd_imm_s(eq, -1);
            match y - Special::MaskEq as u32 {
                0 => eq,
                1 => less,
                2 => self.b.ins().bor(eq, less),
                3 => {
                    let both = self.b.ins().bor(eq, less);
                    self.b.ins().bnot(both)
                }
                _ => self.b.ins().bnot(less),
            }
        };
        self.define(i.d(), Held::word(value));
    }

    fn selected(&mut self, i: &Inst) {
        let i = operands::Select::of(i);
        let by = self.truth(i.which().0);
        let form = if i.d().0 & Slot::CONSTANT == 0 { self.flow.form(i.d().0) } else { super::flow::ValueForm::Double };
        use super::flow::ValueForm;
        let value = match form {
            ValueForm::Word => {
                let (a, b) = (self.word(i.a()), self.word(i.b()));
                Held::word(self.b.ins().select(by, a, b))
            }
            ValueForm::Single => {
                let (a, b) = (self.single(i.a(), true), self.single(i.b(), true));
                let loose = [(a, self.is_loose(i.a())), (b, self.is_loose(i.b()))];
                self.either(by, loose, self.flow.loose.has(i.d().0 as usize))
            }
            ValueForm::LongFloat => {
                let (a, b) = (self.double(i.a()), self.double(i.b()));
                Held::double(self.b.ins().select(by, a, b))
            }
            ValueForm::Double => {
                let (a, b) = (self.long(i.a()), self.long(i.b()));
                Held::long(self.b.ins().select(by, a, b))
            }
        };
        self.define(i.d(), value);
    }

    fn is_loose(&mut self, slot: Slot) -> bool {
        slot.0 & Slot::CONSTANT == 0 && self.held(slot).loose
    }

    fn repacked(&mut self, i: &Inst) {
        let i = operands::Repack::of(i);
        let (from_width, into_width) = (i.from_bits(), i.into_bits());
        let (from, into) = (i.from(self.program), i.into(self.program));
        // All bits in words of 64.
        let total = (from.len() as u32 * from_width).max(into.len() as u32 * into_width);
        let mut words: Vec<Option<Value>> = vec![None; total.div_ceil(64) as usize];
        for (at, &slot) in from.iter().enumerate() {
            let bit = at as u32 * from_width;
            let value = self.long(slot);
            let value = if from_width >= 64 {
                value
            } else {
                let mask = self.int(types::I64, (1 << from_width) - 1);
                self.b.ins().band(value, mask)
            };
            let value =
                if bit.is_multiple_of(64) { value } else { self.b.ins().ishl_imm_u(value, i64::from(bit % 64)) };
            let word = &mut words[bit as usize / 64];
            *word = Some(match *word {
                Some(word) => self.b.ins().bor(word, value),
                None => value,
            });
        }
        let mut results = Vec::new();
        for at in 0..into.len() as u32 {
            let bit = at * into_width;
            let word = match words[bit as usize / 64] {
                Some(word) => word,
                None => self.int(types::I64, 0),
            };
            let value = if bit.is_multiple_of(64) { word } else { self.b.ins().ushr_imm_u(word, i64::from(bit % 64)) };
            results.push(match into_width {
                64.. => Held::long(value),
                32 => Held::word(self.b.ins().ireduce(types::I32, value)),
                width => {
                    let value = self.b.ins().ireduce(types::I32, value);
                    Held::word(self.b.ins().band_imm_u(value, (1 << width) - 1))
                }
            });
        }
        for (&slot, value) in into.iter().zip(results) {
            self.define(slot, value);
        }
    }

    fn combined(&mut self, how: u32, value: Value, third: Value) -> Value {
        match how & 3 {
            0 => self.b.ins().band(value, third),
            1 => self.b.ins().bor(value, third),
            _ => self.b.ins().bxor(value, third),
        }
    }

    fn compared_words(&mut self, i: &Inst) {
        let i = operands::IntCompare::of(i);
        let signed = i.how() & predicates::SIGNED != 0;
        let (a, b) = (self.word(i.a()), self.word(i.b()));
        let less = if signed { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        let greater = if signed { IntCC::SignedGreaterThan } else { IntCC::UnsignedGreaterThan };
        let outcomes = i.how() & 7;
        let holds = if i.how() & predicates::EXTENDED != 0 {
            let low = self.truth(i.low().0);
            let equal = self.b.ins().icmp(IntCC::Equal, a, b);
            let mut holds = self.b.ins().band(equal, low);
            for (bit, code) in [(predicates::LESS, less), (predicates::GREATER, greater)] {
                if outcomes & bit != 0 {
                    let is = self.b.ins().icmp(code, a, b);
                    holds = self.b.ins().bor(holds, is);
                }
            }
            holds
        } else {
            let code = match outcomes {
                0 => None,
                1 => Some(less),
                2 => Some(IntCC::Equal),
                3 => Some(if signed { IntCC::SignedLessThanOrEqual } else { IntCC::UnsignedLessThanOrEqual }),
                4 => Some(greater),
                5 => Some(IntCC::NotEqual),
                6 => Some(if signed { IntCC::SignedGreaterThanOrEqual } else { IntCC::UnsignedGreaterThanOrEqual }),
                _ => None,
            };
            match code {
                Some(code) => self.b.ins().icmp(code, a, b),
                None => self.int(types::I8, u64::from(outcomes == 7)),
            }
        };
        let third = self.truth(i.combined().0);
        let how = i.how() >> predicates::COMBINE;
        let opposite = self.not(holds);
        let (first, second) = (self.combined(how, holds, third), self.combined(how, opposite, third));
        self.set(i.p().0, first);
        self.set(i.q().0, second);
    }

    fn compared_floats(&mut self, i: &Inst, double: bool) {
        let i = operands::FloatCompare::of(i);
        let (a, b) = if double {
            (self.double(i.a()), self.double(i.b()))
        } else {
            let (a, b) = (self.single(i.a(), true), self.single(i.b(), true));
            (self.flush_if(a, i.flags()), self.flush_if(b, i.flags()))
        };
        let holds = match i.how() & 15 {
            0 => self.int(types::I8, 0),
            15 => self.int(types::I8, 1),
            wanted => self.b.ins().fcmp(float_codes()[wanted as usize - 1], a, b),
        };
        let third = self.truth(i.combined().0);
        let how = i.how() >> BOP;
        let opposite = self.not(holds);
        let (first, second) = (self.combined(how, holds, third), self.combined(how, opposite, third));
        self.set(i.p().0, first);
        self.set(i.q().0, second);
    }

    fn term(&mut self, slot: Slot, flags: u32, negate: u32, invert: u32) -> Value {
        if flags & (negate | invert) == 0 {
            return self.long(slot);
        }
        let word = self.word(slot);
        let not = self.b.ins().bnot(word);
        let long = self.b.ins().uextend(types::I64, not);
        if flags & negate != 0 { self.b.ins().iadd_imm_s(long, 1) } else { long }
    }

    fn added(&mut self, i: &Inst) {
        let i = operands::Add3::of(i);
        let a = self.term(i.a(), i.signs(), integer::NEGATE_A, integer::INVERT_A);
        let b = self.term(i.b(), i.signs(), integer::NEGATE_B, integer::INVERT_B);
        let c = self.term(i.c(), i.signs(), integer::NEGATE_C, integer::INVERT_C);
        let mut sum = self.b.ins().iadd(a, b);
        sum = self.b.ins().iadd(sum, c);
        for carry in [i.carry(), i.carry2()] {
            if carry != Pred::NEVER {
                let truth = self.truth(carry.0);
                let truth = self.b.ins().uextend(types::I64, truth);
                sum = self.b.ins().iadd(sum, truth);
            }
        }
        let low = self.b.ins().ireduce(types::I32, sum);
        let high = self.b.ins().ushr_imm_u(sum, 32);
        self.define(i.d(), Held::word(low));
        for (pred, least) in [(i.over(), 1), (i.over2(), 2)] {
            if pred != Pred::ALWAYS {
                let is = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, high, least);
                self.set(pred.0, is);
            }
        }
    }

    fn added_wide(&mut self, i: &Inst) {
        let i = operands::AddWide::of(i);
        let (a, b) = (self.long(i.a()), self.long(i.b()));
        let carry = self.truth(i.carry().0);
        let carry = self.b.ins().uextend(types::I64, carry);
        let first = self.b.ins().iadd(a, b);
        let over = self.b.ins().icmp(IntCC::UnsignedLessThan, first, a);
        let sum = self.b.ins().iadd(first, carry);
        let again = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, first);
        let out = self.b.ins().bor(over, again);
        self.define(i.d(), Held::long(sum));
        self.set(i.over().0, out);
    }

    /// Additions with the carry in a row.
    fn carried(&mut self, i: &Inst) {
        let i = operands::WithCarry::of(i);
        let is = |bit: u32| i.how() >> bit & 1 != 0;
        let (reads, writes, subtract, multiply, high, signed, double) =
            (is(0), is(1), is(2), is(3), is(4), is(5), is(6));
        let ty = if double { types::I64 } else { types::I32 };
        let operand = |v: &mut Self, slot: Slot| if double { v.long(slot) } else { v.word(slot) };
        let (a, b) = (operand(self, i.a()), operand(self, i.b()));
        let (x, y) = if multiply {
            let product = match (high, double) {
                (false, _) => self.b.ins().imul(a, b),
                (true, true) if signed => self.b.ins().smulhi(a, b),
                (true, true) => self.b.ins().umulhi(a, b),
                (true, false) => {
                    let (a, b) = if signed {
                        (self.b.ins().sextend(types::I64, a), self.b.ins().sextend(types::I64, b))
                    } else {
                        (self.b.ins().uextend(types::I64, a), self.b.ins().uextend(types::I64, b))
                    };
                    let product = self.b.ins().imul(a, b);
                    let product = self.b.ins().ushr_imm_u(product, 32);
                    self.b.ins().ireduce(types::I32, product)
                }
            };
            (product, operand(self, i.c()))
        } else {
            (a, b)
        };
        let carry = if reads {
            let word = operand(self, i.carry());
            Some(self.b.ins().band_imm_u(word, 1))
        } else {
            None
        };
        let less = IntCC::UnsignedLessThan;
        let (result, out) = if subtract {
            let first = self.b.ins().isub(x, y);
            let borrow = self.b.ins().icmp(less, x, y);
            match carry {
                Some(carry) => {
                    let result = self.b.ins().isub(first, carry);
                    let again = self.b.ins().icmp(less, first, carry);
                    (result, self.b.ins().bor(borrow, again))
                }
                None => (first, borrow),
            }
        } else {
            let first = self.b.ins().iadd(x, y);
            let over = self.b.ins().icmp(less, first, x);
            match carry {
                Some(carry) => {
                    let result = self.b.ins().iadd(first, carry);
                    let again = self.b.ins().icmp(less, result, first);
                    (result, self.b.ins().bor(over, again))
                }
                None => (first, over),
            }
        };
        self.define(i.d(), if ty == types::I64 { Held::long(result) } else { Held::word(result) });
        if writes {
            let out = self.b.ins().uextend(types::I32, out);
            self.define(i.over(), Held::word(out));
        }
    }
}
