//! Native code for predicates and what depends on them, for all lanes of a pack at once.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use super::width::all;
use crate::flow::ValueForm;
use crate::instruction::float_codes;
use sim_exec::exec_sass::floats::BOP;
use sim_exec::exec_sass::predicates;
use sim_exec::program::{Inst, Slot};

impl Pack<'_, '_> {
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
                Lanes::Longs(each(self.width, |at| self.chosen(by[at], a[at], b[at])))
            }
        };
        self.define(i.d, lanes);
    }

    pub(super) fn logic(&mut self, i: &Inst) {
        let (a, b) = (self.masks(i.a.0), self.masks(i.b.0));
        let value = each(self.width, |at| match i.y {
            0 => self.e.v.b.ins().band(a[at], b[at]),
            1 => self.e.v.b.ins().bor(a[at], b[at]),
            2 => self.e.v.b.ins().bxor(a[at], b[at]),
            _ => a[at],
        });
        self.set(i.d.0, value);
    }

    pub(super) fn table_of_masks(&mut self, i: &Inst) {
        let [a, b, c] = [i.a, i.b, i.c].map(|pred| self.masks(pred.0));
        let first = each(self.width, |at| self.e.v.table(i.y & 0xff, [a[at], b[at], c[at]], types::I32X4));
        let second = each(self.width, |at| self.e.v.table(i.y >> 8 & 0xff, [a[at], b[at], c[at]], types::I32X4));
        self.set(i.d.0, first);
        self.set(i.z, second);
    }

    fn pair(&mut self, i: &Inst, how: u32, holds: Narrow) {
        let third = self.masks(i.c.0);
        let opposite: Narrow = each(self.width, |at| self.e.v.b.ins().bnot(holds[at]));
        let mut join = |values: Narrow| {
            each(self.width, |at| match how & 3 {
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
        let holds = each(self.width, |at| {
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

    /// Compares vectors. Processors have no such comparison for "less or greater", nor for its
    /// opposite.
    pub(super) fn float_compared(&mut self, code: FloatCC, a: Value, b: Value) -> Value {
        let ins = |this: &mut Self, code| this.e.v.b.ins().fcmp(code, a, b);
        match code {
            FloatCC::OrderedNotEqual | FloatCC::UnorderedOrEqual => {
                let (less, greater) = (ins(self, FloatCC::LessThan), ins(self, FloatCC::GreaterThan));
                let differ = self.e.v.b.ins().bor(less, greater);
                if code == FloatCC::OrderedNotEqual { differ } else { self.e.v.b.ins().bnot(differ) }
            }
            code => ins(self, code),
        }
    }

    pub(super) fn compared_floats(&mut self, i: &Inst, double: bool) {
        let wanted = i.y & 15;
        let holds = if wanted == 0 || wanted == 15 {
            let value = self.word_everywhere(if wanted == 0 { 0 } else { u32::MAX });
            all(self.width, value)
        } else if double {
            let (a, b) = (self.doubles(i.a), self.doubles(i.b));
            let wide: Wide =
                each(self.width, |at| self.float_compared(float_codes()[wanted as usize - 1], a[at], b[at]));
            self.narrowed(wide)
        } else {
            let (a, b) = (self.flag_operand(i.a, i.x), self.flag_operand(i.b, i.x));
            each(self.width, |at| self.float_compared(float_codes()[wanted as usize - 1], a[at], b[at]))
        };
        self.pair(i, i.y >> BOP, holds);
    }
}
