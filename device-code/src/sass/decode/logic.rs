//! Decodes logic, shifts, bit fields and predicates.

use super::integer::int_ty;
use crate::arch::Generation::BlackwellConsumer;
use crate::sass::decode::instruction_word::{Sign, Word};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::{BoolOp, Comparison, IntTy, Opcode};
use crate::sass::operand::{InstOperand, PredSrc, Value};
use smallvec::smallvec;

pub(super) fn lop3(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 1));
    i.pdst[0] = w.p(81, u);
    i.src = smallvec![w.src_a(u, 1, Sign::None), w.slot_x(u, 1, Sign::None), w.slot_y(u, 1, Sign::None)];
    i.psrc[0] = w.ps(87, u);
    Some(Opcode::Lop3 { lut: w.b(72, 80) as u8, pand: w.bit(80) })
}

pub(super) fn shf(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let (b, c) = w.src_bc(u, (1, 1), Sign::None, Sign::None);
    i.dst = Some(w.dst(u, 1));
    i.src = smallvec![w.src_a(u, 1, Sign::None), b, c];
    let ty = [IntTy::S64, IntTy::U64, IntTy::S32, IntTy::U32][w.b(73, 75) as usize];
    Some(Opcode::Shf { right: w.bit(76), wrap: w.bit(75), ty, hi: w.bit(80) })
}

pub(super) fn prmt(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let mode = if u { 0 } else { w.b(72, 75) as u8 };
    if mode == 7 {
        return None;
    }
    let (b, c) = w.src_bc(u, (1, 1), Sign::None, Sign::None);
    i.dst = Some(w.dst(u, 1));
    i.src = smallvec![w.src_a(u, 1, Sign::None), b, c];
    Some(Opcode::Prmt { mode })
}

pub(super) fn sgxt(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 1));
    i.src = smallvec![w.src_a(u, 1, Sign::None), w.slot_x(u, 1, Sign::None)];
    Some(Opcode::Sgxt { signed: w.bit(73), wrap: w.bit(75) })
}

pub(super) fn bmsk(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 1));
    i.src = smallvec![w.src_a(u, 1, Sign::None), w.slot_x(u, 1, Sign::None)];
    Some(Opcode::Bmsk { wrap: w.bit(75) })
}

pub(super) fn flo(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 1));
    i.pdst[0] = w.p(81, u);
    i.src = smallvec![w.slot_x(u, 1, Sign::Not)];
    Some(Opcode::Flo { signed: w.bit(73), sh: w.bit(74) })
}

pub(super) fn isetp(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let cmp = [
        Comparison::F,
        Comparison::Lt,
        Comparison::Eq,
        Comparison::Le,
        Comparison::Gt,
        Comparison::Ne,
        Comparison::Ge,
        Comparison::T,
    ][w.b(76, 79) as usize];
    let bop = match w.b(74, 76) {
        0 => BoolOp::And,
        1 => BoolOp::Or,
        2 => BoolOp::Xor,
        _ => return None,
    };
    let ty = int_ty(w.bit(73), w.arch >= BlackwellConsumer && w.bit(80));
    let regs = if ty.wide() { 2 } else { 1 };
    let ex = w.bit(72);
    let mut x = w.slot_x(u, regs, Sign::None);
    if let (true, Value::Imm(v)) = (ty.wide(), x.value) {
        x.value = Value::Imm(i64::from(v as u32 as i32));
    }
    i.pdst = [w.p(81, u), w.p(84, u)];
    i.src = smallvec![w.src_a(u, regs, Sign::None), x];
    i.psrc[0] = w.ps(87, u);
    if ex {
        i.psrc[1] = w.ps(68, u);
    }
    Some(Opcode::Isetp { cmp, bop, ty, ex })
}

pub(super) fn fsetp(w: &Word, i: &mut MachineInst, wide: bool) -> Option<Opcode> {
    let bop = match w.b(74, 76) {
        0 => BoolOp::And,
        1 => BoolOp::Or,
        2 => BoolOp::Xor,
        _ => return None,
    };
    let regs = if wide { 2 } else { 1 };
    let mut x = w.slot_x_float(regs);
    if let (true, Value::Imm(v)) = (wide, x.value) {
        // The high word.
        x.value = Value::Imm(v << 32);
    }
    let mut a = w.src_a(false, regs, Sign::Neg);
    a.abs = w.bit(73);
    i.pdst = [w.p(81, false), w.p(84, false)];
    i.src = smallvec![a, x];
    i.psrc[0] = w.ps(87, false);
    Some(Opcode::Fsetp { cmp: w.b(76, 80) as u8, bop, wide, ftz: w.bit(80) })
}

pub(super) fn plop3(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let lut0 = (w.b(64, 67) | w.b(72, 77) << 3) as u8;
    i.pdst = [w.p(81, u), w.p(84, u)];
    // The third source may be a uniform predicate in the per-thread form too.
    i.psrc = [w.ps(87, u), w.ps(77, u), w.ps(68, u || w.bit(67))];
    Some(Opcode::Plop3 { lut0, lut1: w.b(16, 24) as u8 })
}

pub(super) fn p2r(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 1));
    i.src = smallvec![w.src_a(u, 1, Sign::None), w.slot_x(u, 1, Sign::None)];
    Some(Opcode::P2r { byte: w.b(76, 78) as u8 })
}

pub(super) fn r2p(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.src = smallvec![w.src_a(false, 1, Sign::None), w.slot_x(false, 1, Sign::None)];
    Some(Opcode::R2p { byte: w.b(76, 78) as u8 })
}

/// The predicate source at 87..91 that most operations have.
pub(super) fn psrc(w: &Word) -> PredSrc {
    w.ps(87, false)
}

/// An immediate field as an operand.
pub(super) fn field(w: &Word, lo: u32, hi: u32) -> InstOperand {
    InstOperand::imm(w.b(lo, hi) as i64)
}
