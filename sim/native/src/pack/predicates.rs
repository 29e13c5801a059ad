//! Native code for predicates and what depends on them, for all lanes of a pack at once.

use crate::pack::arithmetic::floats::flag_operand;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use super::width::all;
use crate::flow::ValueForm;
use crate::instruction::float_codes;
use sim_exec::exec_sass::floats::BOP;
use sim_exec::exec_sass::predicates;
use sim_exec::operations::operands;
use sim_exec::program::{Inst, Pred, Slot};

pub(super) fn selected(i: &Inst, p: &mut Pack<'_, '_>) {
    let i = operands::Select::of(i);
    let by = p.masks(i.which().0);
    let form = if i.d().0 & Slot::CONSTANT == 0 { p.e.v.flow.form(i.d().0) } else { ValueForm::Double };
    let lanes = match form {
        ValueForm::Word => {
            let (a, b) = (p.words(i.a()), p.words(i.b()));
            Lanes::Words(p.merged_narrow(by, a, b))
        }
        ValueForm::Single => {
            let may = p.e.v.flow.loose.has(i.d().0 as usize);
            let ((a, any_a), (b, any_b)) = (p.singles(i.a(), may), p.singles(i.b(), may));
            Lanes::Singles(p.merged_narrow(by, a, b), any_a || any_b)
        }
        ValueForm::Double | ValueForm::LongFloat => {
            let (a, b) = (p.longs(i.a()), p.longs(i.b()));
            let by = p.mask_of_wide(by);
            Lanes::Longs(each(p.width, |at| p.chosen(by[at], a[at], b[at])))
        }
    };
    p.define(i.d(), lanes);
}

pub(super) fn logic(i: &Inst, p: &mut Pack<'_, '_>) {
    let i = operands::Predicate::of(i);
    let (a, b) = (p.masks(i.a().0), p.masks(i.b().0));
    let value = each(p.width, |at| match i.function() {
        0 => p.e.v.b.ins().band(a[at], b[at]),
        1 => p.e.v.b.ins().bor(a[at], b[at]),
        2 => p.e.v.b.ins().bxor(a[at], b[at]),
        _ => a[at],
    });
    p.set(i.d().0, value);
}

pub(super) fn table_of_masks(i: &Inst, p: &mut Pack<'_, '_>) {
    let i = operands::Table::of(i);
    let [a, b, c] = [i.a(), i.b(), i.c()].map(|pred| p.masks(pred.0));
    let first = each(p.width, |at| p.e.v.table(i.tables() & 0xff, [a[at], b[at], c[at]], types::I32X4));
    let second = each(p.width, |at| p.e.v.table(i.tables() >> 8 & 0xff, [a[at], b[at], c[at]], types::I32X4));
    p.set(i.p().0, first);
    p.set(i.q().0, second);
}

/// A comparison and its opposite, each combined with a third predicate.
fn pair([first_to, second_to, third]: [Pred; 3], how: u32, holds: Narrow, p: &mut Pack<'_, '_>) {
    let third = p.masks(third.0);
    let opposite: Narrow = each(p.width, |at| p.e.v.b.ins().bnot(holds[at]));
    let mut join = |values: Narrow| {
        each(p.width, |at| match how & 3 {
            0 => p.e.v.b.ins().band(values[at], third[at]),
            1 => p.e.v.b.ins().bor(values[at], third[at]),
            _ => p.e.v.b.ins().bxor(values[at], third[at]),
        })
    };
    let (first, second) = (join(holds), join(opposite));
    p.set(first_to.0, first);
    p.set(second_to.0, second);
}

pub(super) fn compared_words(i: &Inst, p: &mut Pack<'_, '_>) {
    let i = operands::IntCompare::of(i);
    let sign = i.how() & predicates::SIGNED != 0;
    let (a, b) = (p.words(i.a()), p.words(i.b()));
    let less = if sign { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
    let greater = if sign { IntCC::SignedGreaterThan } else { IntCC::UnsignedGreaterThan };
    let low = if i.how() & predicates::EXTENDED != 0 { Some(p.masks(i.low().0)) } else { None };
    let outcomes = i.how() & 7;
    let holds = each(p.width, |at| {
        let mut holds = p.word_everywhere(0);
        let is = |pack: &mut Pack<'_, '_>, code: IntCC| pack.e.v.b.ins().icmp(code, a[at], b[at]);
        if let Some(low) = low {
            let equal = is(p, IntCC::Equal);
            holds = p.e.v.b.ins().band(equal, low[at]);
        } else if outcomes & 2 != 0 {
            holds = is(p, IntCC::Equal);
        }
        for (bit, code) in [(predicates::LESS, less), (predicates::GREATER, greater)] {
            if outcomes & bit != 0 {
                let more = is(p, code);
                holds = p.e.v.b.ins().bor(holds, more);
            }
        }
        holds
    });
    pair([i.p(), i.q(), i.combined()], i.how() >> predicates::COMBINE, holds, p);
}

/// Compares vectors. Processors have no such comparison for "less or greater", nor for its
/// opposite.
pub(super) fn float_compared(code: FloatCC, a: Value, b: Value, p: &mut Pack<'_, '_>) -> Value {
    let ins = |this: &mut Pack<'_, '_>, code| this.e.v.b.ins().fcmp(code, a, b);
    match code {
        FloatCC::OrderedNotEqual | FloatCC::UnorderedOrEqual => {
            let (less, greater) = (ins(p, FloatCC::LessThan), ins(p, FloatCC::GreaterThan));
            let differ = p.e.v.b.ins().bor(less, greater);
            if code == FloatCC::OrderedNotEqual { differ } else { p.e.v.b.ins().bnot(differ) }
        }
        code => ins(p, code),
    }
}

pub(super) fn compared_floats(i: &Inst, double: bool, p: &mut Pack<'_, '_>) {
    let i = operands::FloatCompare::of(i);
    let wanted = i.how() & 15;
    let holds = if wanted == 0 || wanted == 15 {
        let value = p.word_everywhere(if wanted == 0 { 0 } else { u32::MAX });
        all(p.width, value)
    } else if double {
        let (a, b) = (p.doubles(i.a()), p.doubles(i.b()));
        let wide: Wide = each(p.width, |at| float_compared(float_codes()[wanted as usize - 1], a[at], b[at], p));
        p.narrowed(wide)
    } else {
        let (a, b) = (flag_operand(i.a(), i.flags(), p), flag_operand(i.b(), i.flags(), p));
        each(p.width, |at| float_compared(float_codes()[wanted as usize - 1], a[at], b[at], p))
    };
    pair([i.p(), i.q(), i.combined()], i.how() >> BOP, holds, p);
}
