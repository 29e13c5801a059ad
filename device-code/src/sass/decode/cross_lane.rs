//! Decodes cross-lane operations, special registers, moves between register files.

use super::logic::{field, psrc};
use crate::arch::Generation::Blackwell;
use crate::sass::decode::instruction_word::Word;
use crate::sass::inst::MachineInst;
use crate::sass::opcode::{Opcode, ReduxOp, ShflMode, SpecialReg, VoteMode};
use crate::sass::operand::InstOperand;
use smallvec::smallvec;

pub(super) fn vote(w: &Word, i: &mut MachineInst, u: bool) -> Option<Opcode> {
    let mode = match w.b(72, 74) {
        0 => VoteMode::All,
        1 => VoteMode::Any,
        2 => VoteMode::Eq,
        _ => return None,
    };
    i.dst = Some(w.dst(u, 1));
    i.pdst[0] = w.p(81, u);
    i.psrc[0] = psrc(w);
    Some(Opcode::Vote { mode })
}

pub(super) fn shfl(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let lane = if matches!(w.opcode, 0x389 | 0x589) { w.reg_src(32, false, 1) } else { field(w, 53, 58) };
    let bound = if matches!(w.opcode, 0x389 | 0x989) { w.reg_src(64, false, 1) } else { field(w, 40, 53) };
    i.dst = Some(w.dst(false, 1));
    i.pdst[0] = w.p(81, false);
    i.src = smallvec![w.reg_src(24, false, 1), lane, bound];
    let mode = [ShflMode::Idx, ShflMode::Up, ShflMode::Down, ShflMode::Bfly][w.b(58, 60) as usize];
    Some(Opcode::Shfl { mode })
}

pub(super) fn match_(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let (any, wide) = (w.bit(79), w.bit(73));
    i.dst = Some(w.dst(false, 1));
    if !any {
        i.pdst[0] = w.p(81, false);
    }
    i.src = smallvec![w.reg_src(24, false, if wide { 2 } else { 1 })];
    Some(Opcode::Match { any, wide })
}

pub(super) fn redux(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let op = match w.b(78, 81) {
        0 => ReduxOp::And,
        1 => ReduxOp::Or,
        2 => ReduxOp::Xor,
        3 => ReduxOp::Sum,
        4 => ReduxOp::Min,
        5 => ReduxOp::Max,
        _ => return None,
    };
    i.dst = Some(w.dst(true, 1));
    i.src = smallvec![w.reg_src(24, false, 1)];
    Some(Opcode::Redux { op, signed: w.bit(73) })
}

pub(super) fn elect(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.dst = Some(w.dst(true, 1));
    i.pdst[0] = w.p(81, false);
    i.psrc[0] = psrc(w);
    Some(Opcode::Elect)
}

pub(super) fn r2ur(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.dst = Some(w.dst(true, 1));
    i.pdst[0] = w.p(81, false);
    i.src = smallvec![w.reg_src(24, false, 1)];
    Some(Opcode::R2ur { or: w.bit(84) })
}

/// `clock`: the CS2R form, which may read 64 bits.
pub(super) fn s2r(w: &Word, i: &mut MachineInst, u: bool, clock: bool) -> Option<Opcode> {
    let wide = clock && w.bit(80);
    i.dst = Some(w.dst(u, if wide { 2 } else { 1 }));
    Some(Opcode::S2r { sr: SpecialReg(w.b(72, 80) as u8), wide })
}

pub(super) fn lepc(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.dst = Some(w.dst(false, 2));
    let offset = if w.opcode == 0x94e { w.s(24, 82) } else { -16 };
    i.target = Some(w.relative(offset));
    Some(Opcode::Lepc)
}

/// `HFMA2 R, -RZ, RZ, hi, lo`: compilers load 32-bit constants with it. Any other use is left to
/// `effects_only`.
pub(super) fn half_constant(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    if w.opcode == 0x435 && w.arch >= Blackwell {
        return None;
    }
    let zeros = w.r(24).is_zero() && w.r(64).is_zero();
    if !zeros || !w.bit(72) || w.bit(73) || w.bit(85) || w.bit(78) {
        return None;
    }
    i.dst = Some(w.dst(false, 1));
    i.src = smallvec![InstOperand::imm(w.b(32, 64) as i64)];
    Some(Opcode::Mov { wide: false })
}
