//! Families of logic, shifts and bit fields, and of predicates.

use device_code::sass::{Arithmetic, BoolOp, Comparison, MachineInst, Opcode};

use super::translation::Translation;
use crate::compile::bits::{lop3, prmt};
use crate::compile::function::Result;
use crate::exec::per_lane::{LaneFn, op2, op2x, op3, op3x};
use crate::exec_sass::predicates::{COMBINE, EQUAL, EXTENDED, GREATER, LESS, SIGNED};
use crate::operations::build;
use crate::program::{Pred, Sem};

/// Returns false when the instruction is of another family.
pub(super) fn logic(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::Lop3 { lut, pand } => {
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let pred = t.pdst(i, 0);
            let run: LaneFn = match lut {
                0xc0 => op3x(|a: u32, b: u32, _: u32, _: u64| a & b).is(Sem::And),
                0xfc => op3x(|a: u32, b: u32, _: u32, _: u64| a | b).is(Sem::Or),
                0x3c => op3x(|a: u32, b: u32, _: u32, _: u64| a ^ b).is(Sem::Xor),
                _ => op3x(|a: u32, b: u32, c: u32, x: u64| lop3(a, b, c, x as u32)).is(Sem::Lop3),
            };
            let result = t.dst(i, 0);
            if pred == Pred::ALWAYS {
                t.emit(run.of([a, b, c]).with(u64::from(lut)).to(result));
                return Ok(true);
            }
            // A register of its own, for the predicate reads it again.
            let d = t.temporary();
            t.emit(run.of([a, b, c]).with(u64::from(lut)).to(d));
            t.emit(crate::exec::per_lane::op1(|a: u32| a).is(Sem::Move).of([d]).to(result));
            let third = t.psrc(i.psrc[0]);
            let y = u32::from(pand);
            t.emit(build::NotZero { a: d, combined: third, p: pred, combine: y });
        }
        Opcode::Shf { right, wrap, ty, hi } => {
            let [a, b, c] = [t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?];
            let most = if ty.wide() { 64 } else { 32 };
            let shift = t.temporary();
            // Counts are taken modulo the width, or end at it.
            let run: LaneFn = if wrap {
                op2x(|a: u32, _: u32, x: u64| a & (x as u32 - 1)).is(Sem::AndCount)
            } else {
                op2x(|a: u32, _: u32, x: u64| a.min(x as u32)).is(Sem::MinCount)
            };
            t.emit(run.of([b, b]).with(most).to(shift));
            let value = t.joined(a, c);
            let run: LaneFn = match (right, ty.signed(), hi) {
                (true, true, true) => op2(|a: i64, b: u32| ((a >> b.min(63)) >> 32) as u32).is(Sem::ShrHigh),
                (true, true, false) => op2(|a: i64, b: u32| (a >> b.min(63)) as u32).is(Sem::ShrLow),
                (true, false, true) => {
                    op2(|a: u64, b: u32| (a.checked_shr(b).unwrap_or(0) >> 32) as u32).is(Sem::ShrHigh)
                }
                (true, false, false) => op2(|a: u64, b: u32| a.checked_shr(b).unwrap_or(0) as u32).is(Sem::ShrLow),
                (false, _, true) => op2(|a: u64, b: u32| (a.checked_shl(b).unwrap_or(0) >> 32) as u32).is(Sem::ShlHigh),
                (false, _, false) => op2(|a: u64, b: u32| a.checked_shl(b).unwrap_or(0) as u32).is(Sem::ShlLow),
            };
            let d = t.dst(i, 0);
            t.emit(run.of([value, shift]).to(d));
        }
        Opcode::Prmt { mode } => {
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let run: LaneFn = match mode {
                0 => op3(|a: u32, s: u32, c: u32| prmt(a, c, s)),
                1 => op3(|a: u32, s: u32, c: u32| prmt(a, c, [0x3210, 0x4321, 0x5432, 0x6543][(s & 3) as usize])),
                2 => op3(|a: u32, s: u32, c: u32| prmt(a, c, [0x5670, 0x6701, 0x7012, 0x0123][(s & 3) as usize])),
                3 => op3(|a: u32, s: u32, c: u32| prmt(a, c, (s & 3) * 0x1111)),
                4 => op3(|a: u32, s: u32, c: u32| prmt(a, c, [0x3210, 0x3211, 0x3222, 0x3333][(s & 3) as usize])),
                5 => op3(|a: u32, s: u32, c: u32| prmt(a, c, [0x0000, 0x1110, 0x2210, 0x3210][(s & 3) as usize])),
                _ => op3(|a: u32, s: u32, c: u32| prmt(a, c, [0x1010, 0x3232, 0x1010, 0x3232][(s & 3) as usize])),
            };
            let d = t.dst(i, 0);
            t.emit(run.of([a, b, c]).to(d));
        }
        Opcode::Sgxt { signed, wrap } => {
            let run: LaneFn = match (signed, wrap) {
                (true, true) => op2(|a: u32, b: u32| sign_extend(a, b & 31)),
                (true, false) => op2(|a: u32, b: u32| sign_extend(a, b)),
                (false, true) => op2(|a: u32, b: u32| a & ones(b & 31)),
                (false, false) => op2(|a: u32, b: u32| a & ones(b)),
            };
            binary(i, run, t)?;
        }
        Opcode::Bmsk { wrap } => {
            let run: LaneFn = if wrap {
                op2(|a: u32, b: u32| ones(b & 31) << (a & 31))
            } else {
                op2(|a: u32, b: u32| ones(b).checked_shl(a).unwrap_or(0))
            };
            binary(i, run, t)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns false when the instruction is of another family.
pub(super) fn predicates(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::Isetp { cmp, bop, ty, ex } if !ty.wide() => {
            let outcomes = match cmp {
                Comparison::F => 0,
                Comparison::Lt => LESS,
                Comparison::Eq => EQUAL,
                Comparison::Le => LESS | EQUAL,
                Comparison::Gt => GREATER,
                Comparison::Ne => LESS | GREATER,
                Comparison::Ge => EQUAL | GREATER,
                Comparison::T => LESS | EQUAL | GREATER,
            };
            let combine = match bop {
                BoolOp::And => 0,
                BoolOp::Or => 1,
                BoolOp::Xor => 2,
            };
            let y =
                outcomes | if ty.signed() { SIGNED } else { 0 } | if ex { EXTENDED } else { 0 } | combine << COMBINE;
            let (a, b, combined) = (t.source(i, 0)?, t.source(i, 1)?, t.psrc(i.psrc[0]));
            let (p, q) = (t.pdst(i, 0), t.pdst(i, 1));
            let low = ex.then(|| t.psrc(i.psrc[1]));
            t.emit(build::IntCompare { a, b, combined, low, p, q, how: y });
        }
        Opcode::Plop3 { lut0, lut1 } => {
            let [a, b, c] = i.psrc.map(|source| t.psrc(source));
            let (d, z) = (t.pdst(i, 0), t.pdst(i, 1));
            let y = u32::from(lut0) | u32::from(lut1) << 8;
            t.emit(build::Table { a, b, c, p: d, q: z, tables: y });
        }
        Opcode::Arithmetic(Arithmetic::Signs { lut }) => {
            let [a, b, c] = [t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?];
            let (d, sign) = (t.pdst(i, 0), t.temporary());
            let run = op3x(|a: u32, b: u32, c: u32, x: u64| lop3(a, b, c, x as u32) >> 31);
            t.emit(run.of([a, b, c]).with(u64::from(lut)).to(sign));
            t.emit(build::NotZero { a: sign, combined: Pred::ALWAYS, p: d, combine: 1 });
        }
        Opcode::P2r { byte } => {
            let (a, b, d) = (t.source(i, 0)?, t.source(i, 1)?, t.dst(i, 0));
            let z = t.first_pred(i.uniform);
            t.emit(build::ToRegister { a, mask: b, from: Pred(z), d, byte: u32::from(byte) });
        }
        Opcode::R2p { byte } => {
            let (a, b, z) = (t.source(i, 0)?, t.source(i, 1)?, t.first_pred(i.uniform));
            t.emit(build::FromRegister { a, mask: b, into: Pred(z), byte: u32::from(byte) });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Appends `dst = run(source 0, source 1)`.
pub(super) fn binary(i: &MachineInst, run: LaneFn, t: &mut Translation<'_>) -> Result<()> {
    let (a, b, d) = (t.source(i, 0)?, t.source(i, 1)?, t.dst(i, 0));
    t.emit(run.of([a, b]).to(d));
    Ok(())
}

/// A mask of so many ones.
fn ones(count: u32) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}

fn sign_extend(value: u32, bits: u32) -> u32 {
    match bits {
        0 => 0,
        1..32 => ((value << (32 - bits)) as i32 >> (32 - bits)) as u32,
        _ => value,
    }
}
