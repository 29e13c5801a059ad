//! Family of packed halves: binary16 and bfloat16.

use crate::compile_sass::float::chosen;
use device_code::sass::{Arithmetic, HalfMode, Halves, InstOperand, MachineInst, Opcode};

use super::float::combining;
use super::translation::Translation;
use crate::compile::function::Result;
use crate::compile::half::{ADD, FUSED, MAX, MAX_NAN, MIN, MIN_NAN, MULTIPLY, RELU};
use crate::exec_sass::halves;
use crate::float::{FTZ, SAT};
use crate::operations::build;
use crate::program::Slot;

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
            let (rows, reading) = half_sources(i, &halves, t)?;
            chosen(i, |d| half_inst(min | reading, mode, rows, d), |d| half_inst(max | reading, mode, rows, d), t);
        }
        Arithmetic::Hset2 { cmp, bop, mode, halves: parts, float } => {
            let ([a, b, _], reading) = half_sources(i, &parts, t)?;
            let (combined, d) = (t.psrc(i.psrc[0]), t.dst(i, 0));
            let result = combining(bop) | u32::from(float) << 2;
            let (how, flags) = (u32::from(cmp) | reading, flags(mode));
            t.emit(build::HalfSet { bf16: mode.bf16, a, b, combined, d, how, flags, result });
        }
        Arithmetic::Hsetp2 { cmp, bop, mode, halves: parts, both } => {
            let ([a, b, _], reading) = half_sources(i, &parts, t)?;
            let (combined, p, q) = (t.psrc(i.psrc[0]), t.pdst(i, 0), t.pdst(i, 1));
            let flags = flags(mode) | u64::from(combining(bop)) << 32 | u64::from(both) << 34;
            let how = u32::from(cmp) | reading;
            t.emit(build::HalfSetPreds { bf16: mode.bf16, a, b, combined, p, q, how, flags });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The rows of the operands, and how each is read.
fn half_sources(i: &MachineInst, parts: &[Halves], t: &mut Translation<'_>) -> Result<([Slot; 3], u32)> {
    let mut rows = [t.constant(0); 3];
    let mut read = 0;
    for (at, &halves) in parts.iter().enumerate() {
        rows[at] = t.raw_word(&i.src[at], 0)?;
        read |= reading(at as u32, halves, &i.src[at]);
    }
    Ok((rows, read))
}

fn half_inst(how: u32, mode: HalfMode, [a, b, c]: [Slot; 3], d: Slot) -> build::Halves {
    build::Halves { bf16: mode.bf16, single: mode.single, a, b, c, d, how, flags: flags(mode) }
}

fn half_op(i: &MachineInst, element: u32, mode: HalfMode, parts: &[Halves], t: &mut Translation<'_>) -> Result<()> {
    let (rows, reading) = half_sources(i, parts, t)?;
    let d = t.dst(i, 0);
    t.emit(half_inst(element | reading, mode, rows, d));
    Ok(())
}
