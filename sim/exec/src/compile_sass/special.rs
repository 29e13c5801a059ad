//! Family of special registers, and of moves between the register files.

use crate::compile_sass::int::unary;
use device_code::sass::{MachineInst, Opcode, SpecialReg};

use super::translation::Translation;
use crate::compile::function::Result;
use crate::exec::control::Special;
use crate::exec::per_lane::op1;
use crate::machine_module::{LOCAL_WINDOW, SHARED_WINDOW, code_address};
use crate::operations::build;
use crate::program::{Pred, Sem};

/// Returns false when the instruction is of another family.
pub(super) fn special(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::S2r { sr, wide } => special_register(i, sr, wide, t)?,
        // Mostly all lanes have the same there, and native code goes on.
        Opcode::R2ur { or: false } if i.pdst[0].is_true() && t.guard == Pred::ALWAYS => {
            let a = t.source(i, 0)?;
            unary(i, a, op1(|a: u32| a).is(Sem::Move), t);
        }
        Opcode::R2ur { or } => {
            let (a, d, p) = (t.source(i, 0)?, t.dst(i, 0), t.pdst(i, 0));
            t.emit(build::ToUniform { a, other: p, d, p, or: u32::from(or) });
        }
        Opcode::Lepc => {
            let address = code_address(t.section, i.target.unwrap_or(0) as u64);
            let value = t.constant(address);
            t.split(i, value);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn special_register(i: &MachineInst, sr: SpecialReg, wide: bool, t: &mut Translation<'_>) -> Result<()> {
    let which = match sr {
        SpecialReg::ZERO => Special::Zero,
        SpecialReg::LANE_ID => Special::Laneid,
        SpecialReg::TID_X => Special::TidX,
        SpecialReg::TID_Y => Special::TidY,
        SpecialReg::TID_Z => Special::TidZ,
        SpecialReg::CTAID_X => Special::CtaidX,
        SpecialReg::CTAID_Y => Special::CtaidY,
        SpecialReg::CTAID_Z => Special::CtaidZ,
        SpecialReg::EQ_MASK => Special::MaskEq,
        SpecialReg::LT_MASK => Special::MaskLt,
        SpecialReg::LE_MASK => Special::MaskLe,
        SpecialReg::GT_MASK => Special::MaskGt,
        SpecialReg::GE_MASK => Special::MaskGe,
        SpecialReg::VIRTUAL_SMID => Special::Smid,
        SpecialReg(2) => Special::Virtcfg,
        SpecialReg(3) => Special::Virtid,
        SpecialReg(50) => Special::TotalShared,
        SpecialReg(80) if wide => Special::Clock64,
        SpecialReg(80) => Special::Clock,
        SpecialReg(81) => Special::ClockHi,
        SpecialReg(82) if wide => Special::Timer,
        SpecialReg(82) => Special::TimerLo,
        SpecialReg(83) => Special::TimerHi,
        SpecialReg::SHARED_WINDOW_HI | SpecialReg::LOCAL_WINDOW_HI => {
            let window = if sr == SpecialReg::SHARED_WINDOW_HI { SHARED_WINDOW } else { LOCAL_WINDOW };
            let a = t.constant(window >> 32);
            unary(i, a, op1(|a: u32| a).is(Sem::Move), t);
            return Ok(());
        }
        SpecialReg::CGA_CTA_ID => Special::ClusterCtarank,
        // The low words of the windows. Nobody has the performance counters count.
        SpecialReg(48 | 52 | 100..=115) => Special::Zero,
        // SR_LMEMHIOFF: functions compiled with `-G` trap when the stack has sunk below it.
        // Here it may sink to the start of the lane's local memory; below, accesses fault.
        SpecialReg(55) => Special::Zero,
        _ => return t.unsupported(i),
    };
    if wide {
        let d = t.temporary();
        t.emit(build::Special { d, number: which as u32 });
        t.split(i, d);
        return Ok(());
    }
    let d = t.dst(i, 0);
    t.emit(build::Special { d, number: which as u32 });
    Ok(())
}
