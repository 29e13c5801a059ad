//! Decodes moves, selects and integer arithmetic.

use crate::arch::Generation::{Blackwell, BlackwellConsumer};
use crate::sass::decode::instruction_word::{Sign, Word};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::{IntTy, Lanes, MulKind, Opcode, VecTy};
use crate::sass::operand::{InstOperand, Value};
use smallvec::smallvec;

pub(super) fn mov(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let wide = w.arch >= BlackwellConsumer && w.bit(80) && matches!(w.form(), 1 | 6);
    let regs = if wide { 2 } else { 1 };
    if !u && w.b(72, 76) != 15 {
        // A move of some lanes only: not seen from compilers, and not a plain definition.
        return None;
    }
    i.dst = Some(w.dst(u, regs));
    i.src = smallvec![w.slot_x(u, regs, Sign::None)];
    Some(Opcode::Mov { wide })
}

pub(super) fn mov_imm64(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 2));
    i.src = smallvec![InstOperand { regs: 2, ..InstOperand::imm(w.b(24, 88) as i64) }];
    Some(Opcode::Mov { wide: true })
}

pub(super) fn sel(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 1));
    i.src = smallvec![w.src_a(u, 1, Sign::None), w.slot_x(u, 1, Sign::None)];
    i.psrc[0] = w.ps(87, u);
    Some(Opcode::Sel { wide: false })
}

pub(super) fn sel64(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let x = match w.opcode {
        0x407 | 0x487 => InstOperand { regs: 2, ..InstOperand::imm(w.s(32, 65)) },
        0xe07 | 0xc87 => w.reg_src(32, true, 2),
        _ => w.reg_src(32, false, 2),
    };
    i.dst = Some(w.dst(u, 2));
    i.src = smallvec![w.src_a(u, 2, Sign::None), x];
    i.psrc[0] = w.ps(87, u);
    Some(Opcode::Sel { wide: true })
}

fn sign(x: bool) -> Sign {
    if x { Sign::Not } else { Sign::Neg }
}

/// A 64-bit operation sign-extends its 32-bit immediate.
fn widen(mut s: InstOperand) -> InstOperand {
    if let Value::Imm(v) = s.value {
        s.value = Value::Imm(i64::from(v as u32 as i32));
    }
    s
}

pub(super) fn iadd3(w: &Word, i: &mut MachineInst, u: bool, wide: bool) -> Option<Opcode> {
    if w.bit(76) {
        return None;
    }
    let x = w.bit(74);
    let regs = if wide { 2 } else { 1 };
    let (b, c) = w.src_bc(u, (regs, regs), sign(x), sign(x));
    i.dst = Some(w.dst(u, regs));
    i.pdst = [w.p(81, u), w.p(84, u)];
    i.src = smallvec![w.src_a(u, regs, sign(x)), if wide { widen(b) } else { b }, c];
    if x {
        i.psrc[0] = w.ps(87, u);
        i.psrc[1] = w.ps(77, u);
    }
    Some(Opcode::Iadd3 { x, wide })
}

pub(super) fn iadd(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let (wide, x) = (w.bit(73), w.bit(74));
    let regs = if wide { 2 } else { 1 };
    let b = w.slot_x(false, regs, sign(x));
    i.dst = Some(w.dst(false, regs));
    i.pdst[0] = w.p(81, false);
    i.src = smallvec![w.src_a(false, regs, sign(x)), if wide { widen(b) } else { b }];
    if x {
        i.psrc[0] = w.ps(87, false);
    }
    Some(Opcode::Iadd { x, wide })
}

pub(super) fn viadd(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let new = w.arch >= BlackwellConsumer;
    let lanes = match if new { w.b(73, 76) } else { w.b(73, 75) } {
        0 => Lanes::One,
        1 => Lanes::Two,
        4 => Lanes::Four,
        _ => return None,
    };
    i.dst = Some(w.dst(false, 1));
    let sign_a = if new { Sign::Neg } else { Sign::None };
    i.src = smallvec![w.src_a(false, 1, sign_a), w.slot_x(false, 1, Sign::Neg)];
    Some(Opcode::Viadd { lanes })
}

pub(super) fn lea(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let (x, hi, sx32) = (w.bit(74), w.bit(80), w.bit(73));
    i.dst = Some(w.dst(u, 1));
    i.pdst[0] = w.p(81, u);
    if hi && !sx32 {
        let (base, top) = w.src_bc(u, (1, 1), sign(x), Sign::None);
        i.src = smallvec![w.src_a(u, 1, sign(x)), base, top];
    } else if matches!(w.form(), 2 | 3 | 7) {
        // The swapped forms put something else than a register into the third source, which there
        // is none of here.
        return None;
    } else {
        i.src = smallvec![w.src_a(u, 1, sign(x)), w.slot_x(u, 1, sign(x))];
    }
    if x {
        i.psrc[0] = w.ps(87, u);
    }
    Some(Opcode::Lea { hi, x, sx32, shift: w.b(75, 80) as u8 })
}

pub(super) fn imad(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let kind = match w.base() {
        0x024 | 0x0a4 => MulKind::Low,
        0x025 | 0x0a5 => MulKind::Wide,
        _ => MulKind::High,
    };
    let x = w.bit(74);
    let c_regs = if kind == MulKind::Low { 1 } else { 2 };
    let (b, c) = w.src_bc(u, (1, c_regs), Sign::None, sign(x));
    i.dst = Some(w.dst(u, if kind == MulKind::Wide { 2 } else { 1 }));
    if kind != MulKind::Low {
        i.pdst[0] = w.p(81, u);
    }
    i.src = smallvec![w.reg_src(24, u, 1), b, c];
    if x {
        i.psrc[0] = w.ps(87, u);
    }
    Some(Opcode::Imad { kind, signed: w.bit(73), x })
}

pub(super) fn unary(w: &Word, i: &mut MachineInst, u: bool, op: Opcode) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 1));
    i.src = smallvec![w.slot_x(u, 1, Sign::None)];
    Some(op)
}

/// A unary operation whose source may be complemented.
pub(super) fn unary_inv(w: &Word, i: &mut MachineInst, u: bool, op: Opcode) -> Option<Opcode> {
    i.dst = Some(w.dst(u, 1));
    i.src = smallvec![w.slot_x(u, 1, Sign::Not)];
    Some(op)
}

pub(super) fn imnmx(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let ty = int_ty(w.bit(73), w.arch >= BlackwellConsumer && w.bit(74));
    let regs = if ty.wide() { 2 } else { 1 };
    if w.arch >= BlackwellConsumer {
        i.pdst = [w.p(81, u), w.p(84, u)];
        i.psrc[1] = w.ps(77, u);
    }
    i.dst = Some(w.dst(u, regs));
    let x = w.slot_x(u, regs, if u { Sign::None } else { Sign::Neg });
    i.src = smallvec![w.src_a(u, regs, Sign::None), if ty.wide() { widen(x) } else { x }];
    i.psrc[0] = w.ps(87, u);
    Some(Opcode::Imnmx { ty })
}

pub(super) fn int_ty(signed: bool, wide: bool) -> IntTy {
    match (signed, wide) {
        (true, false) => IntTy::S32,
        (false, false) => IntTy::U32,
        (true, true) => IntTy::S64,
        (false, true) => IntTy::U64,
    }
}

fn vec_ty(w: &Word) -> Option<VecTy> {
    let n = if w.arch >= BlackwellConsumer { w.b(72, 75) } else { w.b(72, 74) };
    Some(match n {
        0 => VecTy::U32,
        1 => VecTy::S32,
        2 => VecTy::U16x2,
        3 => VecTy::S16x2,
        4 => VecTy::U8x4,
        5 => VecTy::S8x4,
        _ => return None,
    })
}

pub(super) fn vimnmx(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let ty = vec_ty(w)?;
    i.dst = Some(w.dst(u, 1));
    if w.arch == Blackwell {
        i.pdst = [w.p(81, u), w.p(84, u)];
    }
    i.src = smallvec![w.src_a(u, 1, Sign::None), w.slot_x(u, 1, Sign::None)];
    i.psrc[0] = w.ps(87, u);
    Some(Opcode::Vimnmx { ty, relu: w.bit(76) })
}

pub(super) fn vimnmx3(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let ty = vec_ty(w)?;
    let (b, c) = w.src_bc(false, (1, 1), Sign::None, Sign::None);
    i.dst = Some(w.dst(false, 1));
    i.src = smallvec![w.src_a(false, 1, Sign::None), b, c];
    i.psrc[0] = w.ps(87, false);
    Some(Opcode::Vimnmx3 { ty, relu: w.bit(76) })
}

pub(super) fn viaddmnmx(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let ty = vec_ty(w)?;
    let swapped = matches!(w.form(), 2 | 3 | 7);
    // B has its sign in its slot; slot Y has one from sm_100, and on sm_90 only when it holds B.
    let sign_y = if w.arch >= Blackwell || swapped { Sign::Neg } else { Sign::None };
    let (b, c) =
        if swapped { w.src_bc(false, (1, 1), sign_y, Sign::Neg) } else { w.src_bc(false, (1, 1), Sign::Neg, sign_y) };
    i.dst = Some(w.dst(false, 1));
    i.src = smallvec![w.src_a(false, 1, Sign::None), b, c];
    i.psrc[0] = w.ps(87, false);
    Some(Opcode::Viaddmnmx { ty, relu: w.bit(76) })
}
