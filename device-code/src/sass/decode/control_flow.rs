//! Decodes control flow: branches, calls, convergence barriers.

use super::logic::psrc;
use crate::arch::Generation::{Ampere, Blackwell, Hopper};
use crate::sass::decode::instruction_word::{Sign, Word};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::{BraMode, Opcode};
use crate::sass::operand::{InstOperand, Value};
use smallvec::smallvec;

pub(super) fn bra(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.psrc[0] = psrc(w);
    if w.opcode == 0x547 {
        if w.arch < Ampere {
            return None;
        }
        i.psrc[1] = w.ps(24, true);
    } else if w.bit(91) {
        let mut mask = w.reg_src(24, true, 1);
        mask.inv = w.arch < Blackwell && w.bit(30);
        i.src = smallvec![mask];
    }
    i.target = Some(w.relative(w.displacement()));
    let mode = [BraMode::Plain, BraMode::Uniform, BraMode::Div, BraMode::Conv][w.b(32, 34) as usize];
    Some(Opcode::Bra { mode })
}

pub(super) fn brx(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.psrc[0] = psrc(w);
    i.src = smallvec![w.reg_src(24, w.opcode == 0x958, 2)];
    i.target = Some(w.displacement());
    Some(Opcode::Brx)
}

/// JMP and JMX: no compiler output seen has them; the fields are those of CALL and BRX.
pub(super) fn jump(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.psrc[0] = psrc(w);
    i.target = Some(w.displacement());
    match w.opcode {
        0x94a if !w.bit(91) => Some(Opcode::Jmp),
        0x34c | 0x94c => {
            i.src = smallvec![w.reg_src(24, false, 2)];
            Some(Opcode::Jmx)
        }
        _ => None,
    }
}

pub(super) fn call(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let abs = w.base() == 0x143;
    i.psrc[0] = psrc(w);
    if w.opcode < 0x900 {
        i.src = smallvec![w.reg_src(24, false, 2)];
    } else if w.bit(91) {
        i.src = smallvec![w.reg_src(24, true, 2)];
    }
    let d = w.displacement();
    i.target = Some(if abs { d } else { w.relative(d) });
    Some(Opcode::Call { abs })
}

pub(super) fn ret(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let abs = w.bit(85);
    i.psrc[0] = psrc(w);
    i.src = smallvec![w.reg_src(24, w.bit(91), 2)];
    let d = w.displacement();
    i.target = Some(if abs { d } else { w.relative(d) });
    Some(Opcode::Ret { abs })
}

pub(super) fn exit(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.psrc[0] = psrc(w);
    Some(Opcode::Exit)
}

/// BSYNC 941, BREAK 942, BSSY 945, YIELD 946.
pub(super) fn converge(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let barrier = w.b(16, 20) as u8;
    i.psrc[0] = psrc(w);
    match w.base() {
        0x141 => Some(Opcode::Bsync { barrier }),
        0x142 => Some(Opcode::Break { barrier }),
        0x145 => {
            i.target = Some(w.relative(w.s(34, 64) * 4));
            Some(Opcode::Bssy { barrier })
        }
        _ => Some(Opcode::Other(crate::sass::opcode::OtherKind::Control)),
    }
}

pub(super) fn warpsync(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.psrc[0] = psrc(w);
    // Bit 86 says EXCLUSIVE before sm_90, where no collective form exists. There it is bit 85.
    let collective = w.bit(86) && w.arch >= Hopper;
    let exclusive = w.bit(if w.arch >= Hopper { 85 } else { 86 });
    if collective {
        i.target = Some(w.relative(w.displacement()));
    }
    if w.opcode == 0x348 {
        i.src = smallvec![w.reg_src(if w.arch >= Hopper { 24 } else { 32 }, false, 1)];
    } else if !collective && w.arch < Hopper {
        i.src = smallvec![w.slot_x(false, 1, Sign::None)];
    }
    Some(Opcode::Warpsync { collective, exclusive })
}

/// BMOV R from B (355) and B from R (356): the barrier's number is an immediate operand.
pub(super) fn bmov(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let barrier = InstOperand { value: Value::Imm(w.b(24, 30) as i64), regs: 1, neg: false, abs: false, inv: false };
    i.src = smallvec![barrier];
    if w.base() == 0x155 {
        i.dst = Some(w.dst(false, 1));
    } else {
        i.src.push(w.reg_src(32, false, 1));
    }
    Some(Opcode::Bmov)
}

pub(super) fn dependent_launch(w: &Word) -> Option<Opcode> {
    Some(if w.base() == 0x02d { Opcode::PreExit } else { Opcode::AcqBulk })
}
