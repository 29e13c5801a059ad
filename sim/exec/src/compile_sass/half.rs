//! Family of packed halves: binary16 and bfloat16.

use crate::compile_sass::float::chosen;
use device_code::sass::{Arithmetic, HalfMode, Halves, InstOperand, MachineInst, Opcode};

use super::float::combining;
use super::translation::Translation;
use crate::compile::blank;
use crate::compile::function::Result;
use crate::compile::half::{ADD, FUSED, MAX, MAX_NAN, MIN, MIN_NAN, MULTIPLY, RELU};
use crate::exec_sass::halves;
use crate::float::{FTZ, SAT};
use crate::program::{Inst, Operation, Slot};

fn part(halves: Halves) -> u32 {
    match halves {
        Halves::Both => 0,
        Halves::Single => 1,
        Halves::Low => 2,
        Halves::High => 3,
    }
}

/// What `y` of the functions of `exec_sass::halves` has of an operand.
fn reading(at: u32, halves: Halves, operand: &InstOperand) -> u32 {
    let bits = part(halves) | u32::from(operand.neg) << 2 | u32::from(operand.abs) << 3;
    bits << (halves::OPERANDS + 4 * at)
}

fn flags(mode: HalfMode) -> u64 {
    let bit = |on: bool, bit: u64| if on { bit } else { 0 };
    bit(mode.ftz, FTZ) | bit(mode.sat, SAT) | bit(mode.relu, RELU)
}

/// Returns false when the instruction is of another family.
pub(super) fn half(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    let Opcode::Arithmetic(op) = i.op else { return Ok(false) };
    match op {
        Arithmetic::Hadd2(mode, [a, b]) => half_op(i, ADD, mode, &[a, b], t)?,
        Arithmetic::Hmul2(mode, [a, b]) => half_op(i, MULTIPLY, mode, &[a, b], t)?,
        Arithmetic::Hfma2 { mode, halves, .. } => half_op(i, FUSED, mode, &halves, t)?,
        Arithmetic::Hmnmx2 { mode, halves, nan } => {
            let (min, max) = if nan { (MIN_NAN, MAX_NAN) } else { (MIN, MAX) };
            let min = half_inst(i, min, mode, &halves, t)?;
            let max = half_inst(i, max, mode, &halves, t)?;
            chosen(i, min, max, t);
        }
        Arithmetic::Hset2 { cmp, bop, mode, halves: parts, float } => {
            let operands = half_inst(i, 0, mode, &parts, t)?;
            let mut inst = operands.with(Operation::HalfSet(mode.bf16));
            inst.y |= u32::from(cmp);
            inst.c = Slot(t.psrc(i.psrc[0]).0);
            inst.z = combining(bop) | u32::from(float) << 2;
            let d = t.dst(i, 0);
            t.emit(Inst { d, ..inst });
        }
        Arithmetic::Hsetp2 { cmp, bop, mode, halves: parts, both } => {
            let operands = half_inst(i, 0, mode, &parts, t)?;
            let mut inst = operands.with(Operation::HalfSetPreds(mode.bf16));
            inst.y |= u32::from(cmp);
            inst.c = Slot(t.psrc(i.psrc[0]).0);
            inst.d = Slot(t.pdst(i, 0).0);
            inst.z = t.pdst(i, 1).0;
            inst.x |= u64::from(combining(bop)) << 32 | u64::from(both) << 34;
            t.emit(inst);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The instruction of an operation, without its destination.
fn half_inst(i: &MachineInst, element: u32, mode: HalfMode, parts: &[Halves], t: &mut Translation<'_>) -> Result<Inst> {
    let mut rows = [t.constant(0); 3];
    let mut y = element;
    for (at, &halves) in parts.iter().enumerate() {
        rows[at] = t.raw_word(&i.src[at], 0)?;
        y |= reading(at as u32, halves, &i.src[at]);
    }
    let run = Operation::Halves(mode.bf16, mode.single);
    let [a, b, c] = rows;
    Ok(Inst { a, b, c, x: flags(mode), y, ..blank(run) })
}

fn half_op(i: &MachineInst, element: u32, mode: HalfMode, parts: &[Halves], t: &mut Translation<'_>) -> Result<()> {
    let inst = half_inst(i, element, mode, parts, t)?;
    let d = t.dst(i, 0);
    t.emit(Inst { d, ..inst });
    Ok(())
}
