//! Native code for arithmetic of floats, for all lanes of a pack at once.

use crate::pack::arithmetic::unit::approximate;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::floats::has_fma;
use crate::pack::lanes::{Lanes, Narrow, Pack, Wide, each};
use crate::relocations::Keeper;
use sim_exec::float::{FTZ, SAT};
use sim_exec::operations::operands;
use sim_exec::program::{LaneOp, LaneTy, Sem, Slot};

fn flushed(values: Narrow, p: &mut Pack<'_, '_>) -> Narrow {
    let (exponent, sign) = (p.word_everywhere(0x7f80_0000), p.word_everywhere(0x8000_0000));
    let zero = p.word_everywhere(0);
    each(p.width, |at| {
        let word = p.cast(types::I32X4, values[at]);
        let power = p.e.v.b.ins().band(word, exponent);
        let small = p.e.v.b.ins().icmp(IntCC::Equal, power, zero);
        let signed = p.e.v.b.ins().band(word, sign);
        let word = p.e.v.b.ins().bitselect(small, signed, word);
        p.cast(types::F32X4, word)
    })
}

fn flushed_if(values: Narrow, x: u64, p: &mut Pack<'_, '_>) -> Narrow {
    if x & FTZ != 0 { flushed(values, p) } else { values }
}

pub(crate) fn flag_operand(slot: Slot, x: u64, p: &mut Pack<'_, '_>) -> Narrow {
    let (values, _) = p.singles(slot, true);
    flushed_if(values, x, p)
}

/// The flags of `output`.
fn finished(values: Narrow, x: u64, p: &mut Pack<'_, '_>) -> Lanes {
    let values = flushed_if(values, x, p);
    if x & SAT == 0 {
        return Lanes::Singles(values, true);
    }
    let (zero, one) = (p.single_everywhere(0.0), p.single_everywhere(1.0));
    let clamped = each(p.width, |at| {
        let positive = p.e.v.b.ins().fcmp(FloatCC::GreaterThan, values[at], zero);
        let low = p.chosen(positive, values[at], zero);
        let large = p.e.v.b.ins().fcmp(FloatCC::GreaterThanOrEqual, values[at], one);
        p.chosen(large, one, low)
    });
    Lanes::Singles(clamped, false)
}

pub(crate) fn computed_float(i: operands::Lane<'_>, op: &LaneOp, p: &mut Pack<'_, '_>) -> Option<Lanes> {
    let [ta, _, _, tr] = op.types;
    let nearest = i.constant() & 3 == 0;
    if ta == LaneTy::F64 && tr == LaneTy::F64 {
        return computed_doubles(i, op, p);
    }
    Some(match op.sem {
        Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul | Sem::FlagAdd | Sem::FlagSub | Sem::FlagMul
            if nearest || matches!(op.sem, Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul) =>
        {
            let plain = matches!(op.sem, Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul);
            let x = if plain { 0 } else { i.constant() };
            let (a, b) = (flag_operand(i.a(), x, p), flag_operand(i.b(), x, p));
            let values = each(p.width, |at| match op.sem {
                Sem::FloatAdd | Sem::FlagAdd => p.e.v.b.ins().fadd(a[at], b[at]),
                Sem::FloatSub | Sem::FlagSub => p.e.v.b.ins().fsub(a[at], b[at]),
                _ => p.e.v.b.ins().fmul(a[at], b[at]),
            });
            finished(values, x, p)
        }
        Sem::FloatFma | Sem::FlagFma if has_fma() && (nearest || op.sem == Sem::FloatFma) => {
            let x = if op.sem == Sem::FloatFma { 0 } else { i.constant() };
            let [a, b, c] = [i.a(), i.b(), i.c()].map(|slot| flag_operand(slot, x, p));
            let values = each(p.width, |at| p.e.v.b.ins().fma(a[at], b[at], c[at]));
            finished(values, x, p)
        }
        Sem::FlagDiv if nearest => {
            let (a, b) = (flag_operand(i.a(), i.constant(), p), flag_operand(i.b(), i.constant(), p));
            let values = each(p.width, |at| p.e.v.b.ins().fdiv(a[at], b[at]));
            finished(values, i.constant(), p)
        }
        Sem::FlagSqrt if nearest => {
            let a = flag_operand(i.a(), i.constant(), p);
            let values = each(p.width, |at| p.e.v.b.ins().sqrt(a[at]));
            finished(values, i.constant(), p)
        }
        Sem::FlagRcp if nearest => {
            let a = flag_operand(i.a(), i.constant(), p);
            let one = p.single_everywhere(1.0);
            let values = each(p.width, |at| p.e.v.b.ins().fdiv(one, a[at]));
            finished(values, i.constant(), p)
        }
        Sem::Approximate(approximation) if i.constant() & SAT == 0 => approximate(i, op, approximation, p),
        Sem::FlagNeg | Sem::FlagAbs => {
            let (a, _) = p.singles(i.a(), true);
            let values = each(p.width, |at| match op.sem {
                Sem::FlagNeg => p.e.v.b.ins().fneg(a[at]),
                _ => p.e.v.b.ins().fabs(a[at]),
            });
            finished(values, i.constant(), p)
        }
        Sem::FlagMin | Sem::FlagMax => {
            let (a, b) = (flag_operand(i.a(), i.constant(), p), flag_operand(i.b(), i.constant(), p));
            let min = op.sem == Sem::FlagMin;
            let code = if min { FloatCC::LessThan } else { FloatCC::GreaterThan };
            let values = each(p.width, |at| {
                let first = p.e.v.b.ins().fcmp(code, a[at], b[at]);
                let other = p.e.v.b.ins().fcmp(FloatCC::Unordered, b[at], b[at]);
                let first = p.e.v.b.ins().bor(first, other);
                let value = p.chosen(first, a[at], b[at]);
                // Of two zeros the negative one is the lesser.
                let equal = p.e.v.b.ins().fcmp(FloatCC::Equal, a[at], b[at]);
                let (a, b) = (p.cast(types::I32X4, a[at]), p.cast(types::I32X4, b[at]));
                let both = if min { p.e.v.b.ins().bor(a, b) } else { p.e.v.b.ins().band(a, b) };
                let both = p.cast(types::F32X4, both);
                p.chosen(equal, both, value)
            });
            Lanes::Singles(values, true)
        }
        Sem::Convert => match (ta, tr) {
            (LaneTy::F32, LaneTy::F64) => {
                let (a, _) = p.singles(i.a(), false);
                Lanes::Doubles(each(p.width, |at| {
                    let part = a[at / 2];
                    let part = match at % 2 {
                        0 => part,
                        _ => p.picked(types::F32X4, part, part, [2, 3, 2, 3]),
                    };
                    p.e.v.b.ins().fvpromote_low(part)
                }))
            }
            (LaneTy::I32, LaneTy::F32) => {
                let words = p.words(i.a());
                Lanes::Singles(each(p.width, |at| p.e.v.b.ins().fcvt_from_sint(types::F32X4, words[at])), false)
            }
            (LaneTy::U32, LaneTy::F32) => {
                let words = p.words(i.a());
                Lanes::Singles(each(p.width, |at| p.e.v.b.ins().fcvt_from_uint(types::F32X4, words[at])), false)
            }
            (LaneTy::F32, LaneTy::I32) => {
                let (a, _) = p.singles(i.a(), true);
                Lanes::Words(each(p.width, |at| p.e.v.b.ins().fcvt_to_sint_sat(types::I32X4, a[at])))
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Arithmetic of doubles. Where one results in a NaN, the operation's function says which.
fn computed_doubles(i: operands::Lane<'_>, op: &LaneOp, p: &mut Pack<'_, '_>) -> Option<Lanes> {
    let values: Wide = match op.sem {
        Sem::FloatAdd | Sem::FloatSub | Sem::FloatMul => {
            let (a, b) = (p.doubles(i.a()), p.doubles(i.b()));
            each(p.width, |at| match op.sem {
                Sem::FloatAdd => p.e.v.b.ins().fadd(a[at], b[at]),
                Sem::FloatSub => p.e.v.b.ins().fsub(a[at], b[at]),
                _ => p.e.v.b.ins().fmul(a[at], b[at]),
            })
        }
        Sem::FloatFma if has_fma() => {
            let [a, b, c] = [i.a(), i.b(), i.c()].map(|slot| p.doubles(slot));
            each(p.width, |at| p.e.v.b.ins().fma(a[at], b[at], c[at]))
        }
        Sem::DoubleDiv => {
            let (a, b) = (p.doubles(i.a()), p.doubles(i.b()));
            each(p.width, |at| p.e.v.b.ins().fdiv(a[at], b[at]))
        }
        Sem::DoubleRcp => {
            let (one, a) = (p.long_everywhere(1f64.to_bits()), p.doubles(i.a()));
            let one = p.cast(types::F64X2, one);
            each(p.width, |at| p.e.v.b.ins().fdiv(one, a[at]))
        }
        Sem::DoubleSqrt => {
            let a = p.doubles(i.a());
            each(p.width, |at| p.e.v.b.ins().sqrt(a[at]))
        }
        Sem::Neg => {
            let a = p.doubles(i.a());
            return Some(Lanes::Doubles(each(p.width, |at| {
                let negated = p.e.v.b.ins().fneg(a[at]);
                unless_nan(a[at], negated, p)
            })));
        }
        Sem::Abs => {
            let a = p.doubles(i.a());
            return Some(Lanes::Doubles(each(p.width, |at| {
                let size = p.e.v.b.ins().fabs(a[at]);
                unless_nan(a[at], size, p)
            })));
        }
        _ => return None,
    };
    Some(Lanes::Doubles(checked_doubles(values, i, op, p)))
}

/// `value`, made of a double; of a NaN that made quiet.
fn unless_nan(double: Value, value: Value, p: &mut Pack<'_, '_>) -> Value {
    let bits = p.cast(types::I64X2, double);
    let bit = p.long_everywhere(1 << 51);
    let quiet = p.e.v.b.ins().bor(bits, bit);
    let quiet = p.cast(types::F64X2, quiet);
    let is = p.e.v.b.ins().fcmp(FloatCC::Unordered, double, double);
    p.chosen(is, quiet, value)
}

fn checked_doubles(values: Wide, i: operands::Lane<'_>, op: &LaneOp, p: &mut Pack<'_, '_>) -> Wide {
    let (done, slow) = (p.e.v.b.create_block(), p.e.v.b.create_block());
    let results: Wide = each(p.width, |_| p.e.v.b.append_block_param(done, types::F64X2));
    p.e.v.b.set_cold_block(slow);
    let mut is = p.e.v.b.ins().fcmp(FloatCC::Unordered, values[0], values[0]);
    for &value in &values[1..] {
        let more = p.e.v.b.ins().fcmp(FloatCC::Unordered, value, value);
        is = p.e.v.b.ins().bor(is, more);
    }
    let any = p.e.v.b.ins().vhigh_bits(types::I32, is);
    let arguments: Vec<_> = values.iter().map(|&value| value.into()).collect();
    p.e.v.b.ins().brif(any, slow, &[], done, &arguments);
    p.e.v.b.switch_to_block(slow);
    let known = p.e.v.at_hand();
    let second = if op.operands > 1 { i.b() } else { i.a() };
    let operands = [i.a(), second, if op.operands > 2 { i.c() } else { second }].map(|slot| p.longs(slot));
    let function = p.e.v.function(op.call as usize);
    let mut exact: Vec<Value> = Vec::new();
    for at in 0..2 * p.width.parts() {
        let mut part = p.cast(types::I64X2, values[at]);
        for half in 0..2u8 {
            let [a, b, c] = operands.each_ref().map(|operand| p.e.v.b.ins().extractlane(operand[at], half));
            p.e.v.call_keeper(Keeper::Call, [p.e.v.context, function, a, b, c]);
            let result = p.e.v.found();
            part = p.e.v.b.ins().insertlane(part, result, half);
        }
        exact.push(p.cast(types::F64X2, part));
    }
    p.e.v.restore(known);
    let arguments: Vec<_> = exact.into_iter().map(Into::into).collect();
    p.e.v.b.ins().jump(done, &arguments);
    p.e.v.b.switch_to_block(done);
    results
}
