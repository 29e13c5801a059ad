//! Family of integer arithmetic: moves, sums, products, minima, counts of bits.

use device_code::sass::{InstOperand, Lanes, MachineInst, MulKind, Opcode, VecTy};

use super::translation::Translation;
use crate::compile::function::Result;
use crate::exec::per_lane::{LaneFn, op1, op2, op2x, op3};
use crate::exec_sass::integer;
use crate::operations::build;
use crate::program::{Pred, Sem, Slot};

/// Returns false when the instruction is of another family.
pub(super) fn integer(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::Mov { wide: false } => {
            let a = t.source(i, 0)?;
            unary(i, a, op1(|a: u32| a).is(Sem::Move), t);
        }
        Opcode::Sel { wide: false } => {
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.psrc(i.psrc[0]));
            let d = t.dst(i, 0);
            t.emit(build::Select { a, b, which: c, d });
        }
        Opcode::Iadd3 { x, wide: false } => add3(i, x, t)?,
        Opcode::Iadd3 { x: false, wide: true } => add3_wide(i, t)?,
        Opcode::Lea { hi, x, sx32, shift } => lea(i, (hi, x, sx32), u32::from(shift), t)?,
        Opcode::Imad { kind, signed, x } => multiply_add(i, kind, signed, x, t)?,
        Opcode::Iabs => {
            let a = t.source(i, 0)?;
            unary(i, a, op1(|a: i32| a.wrapping_abs()).is(Sem::Abs), t);
        }
        Opcode::Brev => {
            let a = t.source(i, 0)?;
            unary(i, a, op1(|a: u32| a.reverse_bits()), t);
        }
        Opcode::Popc => {
            let a = t.source(i, 0)?;
            unary(i, a, op1(|a: u32| a.count_ones()), t);
        }
        Opcode::Flo { signed, sh } => {
            if !i.pdst[0].is_true() {
                return t.unsupported(i);
            }
            let a = t.source(i, 0)?;
            unary(
                i,
                a,
                match (signed, sh) {
                    (false, false) => op1(|a: u32| a.checked_ilog2().unwrap_or(u32::MAX)),
                    (false, true) => op1(|a: u32| a.checked_ilog2().map_or(u32::MAX, |at| 31 - at)),
                    (true, false) => op1(|a: i32| ((a ^ a >> 31) as u32).checked_ilog2().unwrap_or(u32::MAX)),
                    (true, true) => op1(|a: i32| ((a ^ a >> 31) as u32).checked_ilog2().map_or(u32::MAX, |at| 31 - at)),
                },
                t,
            );
        }
        Opcode::Imnmx { ty } if !ty.wide() => {
            let ty = if ty.signed() { VecTy::S32 } else { VecTy::U32 };
            let (a, b, d) = (t.source(i, 0)?, t.source(i, 1)?, t.dst(i, 0));
            return lesser(i, ty, [a, b], d, t);
        }
        // sm_90 on.
        Opcode::Viadd { lanes: Lanes::One } => {
            let (a, b, d) = (t.source(i, 0)?, t.source(i, 1)?, t.dst(i, 0));
            t.emit(op2(|a: u32, b: u32| a.wrapping_add(b)).is(Sem::Add).of([a, b]).to(d));
        }
        Opcode::Vimnmx { ty, relu } => {
            let (a, b, d) = (t.source(i, 0)?, t.source(i, 1)?, t.dst(i, 0));
            return Ok(lesser(i, ty, [a, b], d, t)? && (!relu || not_negative(ty, d, t)));
        }
        Opcode::Vimnmx3 { ty, relu } => {
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let (first, d) = (t.temporary(), t.dst(i, 0));
            lesser(i, ty, [a, b], first, t)?;
            return Ok(lesser(i, ty, [first, c], d, t)? && (!relu || not_negative(ty, d, t)));
        }
        Opcode::Viaddmnmx { ty: ty @ (VecTy::U32 | VecTy::S32), relu } => {
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let (sum, d) = (t.temporary(), t.dst(i, 0));
            t.emit(op2(|a: u32, b: u32| a.wrapping_add(b)).is(Sem::Add).of([a, b]).to(sum));
            return Ok(lesser(i, ty, [sum, c], d, t)? && (!relu || not_negative(ty, d, t)));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The lesser or the greater of two values, as the instruction's predicate says.
fn lesser(i: &MachineInst, ty: VecTy, [a, b]: [Slot; 2], d: Slot, t: &mut Translation<'_>) -> Result<bool> {
    /// A function of both halves.
    macro_rules! halves {
        ($ty:ty, $function:ident) => {
            op2(|a: u32, b: u32| {
                let half = |shift: u32| ((a >> shift) as $ty).$function((b >> shift) as $ty) as u16;
                u32::from(half(0)) | u32::from(half(16)) << 16
            })
        };
    }
    let (min, max): (LaneFn, LaneFn) = match ty {
        VecTy::U32 => (op2(|a: u32, b: u32| a.min(b)).is(Sem::Min), op2(|a: u32, b: u32| a.max(b)).is(Sem::Max)),
        VecTy::S32 => (op2(|a: i32, b: i32| a.min(b)).is(Sem::Min), op2(|a: i32, b: i32| a.max(b)).is(Sem::Max)),
        VecTy::U16x2 => (halves!(u16, min), halves!(u16, max)),
        VecTy::S16x2 => (halves!(i16, min), halves!(i16, max)),
        _ => return t.unsupported(i),
    };
    match t.psrc(i.psrc[0]) {
        Pred::ALWAYS => t.emit(min.of([a, b]).to(d)),
        Pred::NEVER => t.emit(max.of([a, b]).to(d)),
        c => {
            let (low, high) = (t.temporary(), t.temporary());
            t.emit(min.of([a, b]).to(low));
            t.emit(max.of([a, b]).to(high));
            t.emit(build::Select { a: low, b: high, which: c, d });
        }
    }
    Ok(true)
}

/// RELU: what is less than zero becomes zero. (There are no negative unsigned numbers.)
fn not_negative(ty: VecTy, d: Slot, t: &mut Translation<'_>) -> bool {
    let run: LaneFn = match ty {
        VecTy::S32 => op1(|a: i32| a.max(0)),
        VecTy::S16x2 => op1(|a: u32| {
            let half = |shift: u32| u32::from(((a >> shift) as i16).max(0) as u16) << shift;
            half(0) | half(16)
        }),
        _ => return true,
    };
    t.emit(run.of([d]).to(d));
    true
}

/// Appends `dst = run(a)`.
pub(super) fn unary(i: &MachineInst, a: Slot, run: LaneFn, t: &mut Translation<'_>) {
    let d = t.dst(i, 0);
    t.emit(run.of([a]).to(d));
}

fn add3(i: &MachineInst, x: bool, t: &mut Translation<'_>) -> Result<()> {
    let carries = if x { [t.psrc(i.psrc[0]), t.psrc(i.psrc[1])] } else { [Pred::NEVER; 2] };
    let plain = carries == [Pred::NEVER; 2] && i.pdst.iter().all(|pred| pred.is_true());
    let negated = i.src.iter().any(|source| source.neg || source.inv);
    let mut sources = [t.constant(0); 3];
    for (slot, source) in sources.iter_mut().zip(&i.src) {
        *slot = t.raw_word(source, 0)?;
    }
    let ([a, b, c], d) = (sources, t.dst(i, 0));
    if plain && !negated {
        let zero = t.constant(0);
        if c == zero {
            t.emit(op2(|a: u32, b: u32| a.wrapping_add(b)).is(Sem::Add).of([a, b]).to(d));
        } else {
            t.emit(op3(|a: u32, b: u32, c: u32| a.wrapping_add(b).wrapping_add(c)).is(Sem::Add3).of([a, b, c]).to(d));
        }
        return Ok(());
    }
    let signs = flags(&i.src);
    let ([carry, carry2], over, over2) = (carries, t.pdst(i, 0), t.pdst(i, 1));
    t.emit(build::Add3 { a, b, c, carry, carry2, d, over, over2, signs });
    Ok(())
}

/// UIADD3.64, whose sources are pairs.
fn add3_wide(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    if i.src.iter().any(|source| source.inv) || !i.pdst.iter().all(|pred| pred.is_true()) {
        return t.unsupported(i);
    }
    let mut sum = t.constant(0);
    for source in &i.src {
        let (term, d) = (t.pair(source)?, t.temporary());
        match source.neg {
            true => t.emit(op2(|a: u64, b: u64| a.wrapping_sub(b)).of([sum, term]).to(d)),
            false => t.emit(op2(|a: u64, b: u64| a.wrapping_add(b)).of([sum, term]).to(d)),
        }
        sum = d;
    }
    t.split(i, sum);
    Ok(())
}

/// What is negated or complemented of up to three sources.
fn flags(sources: &[InstOperand]) -> u32 {
    let bits = [
        (integer::NEGATE_A, integer::INVERT_A),
        (integer::NEGATE_B, integer::INVERT_B),
        (integer::NEGATE_C, integer::INVERT_C),
    ];
    sources.iter().zip(bits).fold(0, |flags, (source, (negate, invert))| {
        flags | if source.neg { negate } else { 0 } | if source.inv { invert } else { 0 }
    })
}

fn lea(i: &MachineInst, (hi, x, sx32): (bool, bool, bool), shift: u32, t: &mut Translation<'_>) -> Result<()> {
    // What is shifted: its low word, or with `hi` the word above it.
    let (a, added) = (i.src[0], i.src[1]);
    let (low, b) = (t.raw_word(&a, 0)?, t.raw_word(&added, 0)?);
    let term = t.temporary();
    let shift = u64::from(shift);
    if hi {
        let high = match i.src.get(2) {
            Some(operand) => t.src(operand)?,
            None => t.constant(0),
        };
        let value = if sx32 {
            let d = t.temporary();
            t.emit(op1(|a: i32| i64::from(a)).is(Sem::Move).of([low]).to(d));
            d
        } else {
            t.joined(low, high)
        };
        let run: LaneFn = match (a.neg, a.inv) {
            (true, _) => op2x(|a: u64, _: u32, s: u64| ((a.wrapping_neg() << s) >> 32) as u32),
            (_, true) => op2x(|a: u64, _: u32, s: u64| (!(a << s) >> 32) as u32),
            _ => op2x(|a: u64, _: u32, s: u64| ((a << s) >> 32) as u32).is(Sem::ShiftedHigh),
        };
        t.emit(run.of([value, b]).with(shift).to(term));
    } else {
        t.emit(op2x(|a: u32, _: u32, s: u64| a << s).is(Sem::Shifted).of([low, b]).with(shift).to(term));
    }
    // The signs are left to the sum: that of a zero carries, too.
    let shifted = if hi { InstOperand { neg: false, inv: false, ..a } } else { a };
    let signs = flags(&[shifted, added]);
    let carry = if x { t.psrc(i.psrc[0]) } else { Pred::NEVER };
    let (carry2, over, over2) = (Pred::NEVER, t.pdst(i, 0), Pred::ALWAYS);
    let (d, c) = (t.dst(i, 0), t.constant(0));
    t.emit(build::Add3 { a: term, b, c, carry, carry2, d, over, over2, signs });
    Ok(())
}

fn multiply_add(i: &MachineInst, kind: MulKind, signed: bool, x: bool, t: &mut Translation<'_>) -> Result<()> {
    let (a, b) = (t.source(i, 0)?, t.source(i, 1)?);
    let (c, d) = (i.src[2], t.dst(i, 0));
    let carry = if x { t.psrc(i.psrc[0]) } else { Pred::NEVER };
    if kind == MulKind::Low {
        let c = t.src(&c)?;
        let (zero, one) = (t.constant(0), t.constant(1));
        if carry == Pred::NEVER {
            // Names that compilers give a move, a sum, a product.
            let inst = match () {
                () if a == zero || b == zero => op1(|a: u32| a).is(Sem::Move).of([c]).to(d),
                () if b == one => op2(|a: u32, b: u32| a.wrapping_add(b)).is(Sem::Add).of([a, c]).to(d),
                () if c == zero => op2(|a: u32, b: u32| a.wrapping_mul(b)).is(Sem::Mul).of([a, b]).to(d),
                () => {
                    let run = op3(|a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c)).is(Sem::MulAdd);
                    run.of([a, b, c]).to(d)
                }
            };
            t.emit(inst);
            return Ok(());
        }
        let one_more = selected(carry, t);
        let own = t.temporary();
        t.emit(op2(|a: u32, b: u32| a.wrapping_mul(b)).is(Sem::Mul).of([a, b]).to(own));
        let run = op3(|a: u32, b: u32, c: u32| a.wrapping_add(b).wrapping_add(c)).is(Sem::Add3);
        t.emit(run.of([own, c, one_more]).to(d));
        return Ok(());
    }
    let (neg, inv) = (c.neg, c.inv);
    let mut c = t.pair(&c)?;
    if neg || inv {
        let own = t.temporary();
        let run: LaneFn = if neg { op1(|a: u64| a.wrapping_neg()).is(Sem::Neg) } else { op1(|a: u64| !a).is(Sem::Not) };
        t.emit(run.of([c]).to(own));
        c = own;
    }
    let own = t.temporary();
    if carry == Pred::NEVER && i.pdst[0].is_true() {
        let run: LaneFn = match (kind, signed) {
            (MulKind::Wide, true) => {
                op3(|a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c)).is(Sem::MulAddWide)
            }
            (MulKind::Wide, false) => {
                op3(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c)).is(Sem::MulAddWide)
            }
            (_, true) => op3(|a: i32, b: i32, c: i64| ((i64::from(a) * i64::from(b)).wrapping_add(c) >> 32) as u32),
            (_, false) => op3(|a: u32, b: u32, c: u64| ((u64::from(a) * u64::from(b)).wrapping_add(c) >> 32) as u32),
        };
        if kind == MulKind::High {
            t.emit(run.of([a, b, c]).to(d));
        } else {
            t.emit(run.of([a, b, c]).to(own));
            t.split(i, own);
        }
        return Ok(());
    }
    let run: LaneFn = if signed {
        op2(|a: i32, b: i32| i64::from(a) * i64::from(b)).is(Sem::MulWide)
    } else {
        op2(|a: u32, b: u32| u64::from(a) * u64::from(b)).is(Sem::MulWide)
    };
    t.emit(run.of([a, b]).to(own));
    let sum = t.temporary();
    let out = if t.guard_is(t.pdst(i, 0)) { t.temporary_pred() } else { t.pdst(i, 0) };
    t.emit(build::AddWide { a: own, b: c, carry, d: sum, over: out });
    if kind == MulKind::High {
        t.emit(op1(|a: u64| (a >> 32) as u32).is(Sem::High).of([sum]).to(d));
    } else {
        t.split(i, sum);
    }
    if out != t.pdst(i, 0) {
        let d = t.pdst(i, 0);
        t.emit(build::Predicate { a: out, b: out, d, function: 0 });
    }
    Ok(())
}

/// A row with 1 where a predicate holds, else 0.
pub(crate) fn selected(pred: Pred, t: &mut Translation<'_>) -> Slot {
    let (d, a, b) = (t.temporary(), t.constant(1), t.constant(0));
    t.emit(build::Select { a, b, which: pred, d });
    d
}
