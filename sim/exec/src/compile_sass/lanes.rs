//! Family of what lanes do together: votes, shuffles, matches, reductions, tiles of matrices from
//! shared memory, asynchronous copies.

use crate::compile_sass::control::bits;
use crate::compile_sass::memory::load_store::address;
use device_code::sass::{MachineInst, Opcode, ReduxOp, ShflMode, VoteMode};

use super::operands::{EXCLUSIVE, SCRATCH};
use super::translation::Translation;
use crate::compile::function::Result;
use crate::compile::{blank, lane};
use crate::exec::load_store::SHARED;
use crate::exec::per_lane::{op1, op2x};
use crate::program::{Inst, Operation, Pred, Sem, Slot};

/// Returns false when the instruction is of another family.
pub(super) fn lanes(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::Vote { mode } => {
            let a = Slot(t.psrc(i.psrc[0]).0);
            let b = members(t);
            if i.dst.is_some_and(|run| !run.is_dropped()) {
                let d = t.dst(i, 0);
                t.emit(Inst { d, a, b, y: 3, ..blank(Operation::Vote) });
            }
            let d = t.pdst(i, 0);
            if d != Pred::ALWAYS {
                let y = match mode {
                    VoteMode::All => 0,
                    VoteMode::Any => 1,
                    VoteMode::Eq => 2,
                };
                t.emit(Inst { d: Slot(d.0), a, b, y, ..blank(Operation::Vote) });
            }
        }
        Opcode::Shfl { mode } => {
            let y = match mode {
                ShflMode::Up => 0,
                ShflMode::Down => 1,
                ShflMode::Bfly => 2,
                ShflMode::Idx => 3,
            };
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let (d, z) = (t.dst(i, 0), t.pdst(i, 0));
            let x = u64::from(Slot::NONE.0);
            t.emit(Inst { d, a, b, c, x, y, z: z.0, ..blank(Operation::Shuffle) });
        }
        Opcode::Match { any, wide } => {
            let a = if wide { t.pair(&i.src[0])? } else { t.source(i, 0)? };
            let (d, z) = (t.dst(i, 0), t.pdst(i, 0));
            let b = members(t);
            t.emit(Inst { d, a, b, y: u32::from(!any), z: z.0, ..blank(Operation::Match) });
        }
        Opcode::Redux { op, signed } => {
            let y = match (op, signed) {
                (ReduxOp::Sum, _) => 0,
                (ReduxOp::Min, false) => 1,
                (ReduxOp::Max, false) => 2,
                (ReduxOp::Min, true) => 3,
                (ReduxOp::Max, true) => 4,
                (ReduxOp::And, _) => 5,
                (ReduxOp::Or, _) => 6,
                (ReduxOp::Xor, _) => 7,
            };
            let (a, d) = (t.source(i, 0)?, t.dst(i, 0));
            let b = members(t);
            // Before sm_90 no BSYNC stands behind it: each reduction has a WARPSYNC of its own.
            t.exclusive &= t.module.arch.sm >= 90;
            t.emit(Inst { d, a, b, y, ..blank(Operation::Reduce) });
        }
        // Of the lanes that execute together.
        Opcode::Elect if i.psrc[0].always() => {
            let a = members(t);
            let (d, z) = (t.dst(i, 0), t.pdst(i, 0));
            t.emit(Inst { d, a, z: z.0, ..blank(Operation::Elect) });
        }
        Opcode::Matrix { regs, store: false } => tiles(i, regs, t)?,
        Opcode::CopyAsync { bytes, zfill } => copy_async(i, bytes, zfill, t)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The row of the lanes that act together, where those that execute together are too many.
fn members(t: &Translation<'_>) -> Slot {
    if t.exclusive { EXCLUSIVE } else { Slot::NONE }
}

/// LDSM; bits 78..80 say whether tiles are transposed.
fn tiles(i: &MachineInst, regs: u8, t: &mut Translation<'_>) -> Result<()> {
    let transposed = match bits(78, 80, t) {
        0 => 0,
        1 => 1 << 30,
        _ => return t.unsupported(i),
    };
    let (a, x, _) = address(i, &i.mem[0], t)?;
    let slots: Vec<Slot> = (0..regs).map(|_| t.temporary()).collect();
    let y = t.list(&slots);
    let z = SHARED | u32::from(regs) << 4 | transposed;
    t.emit(Inst { d: Slot(x as u32), a, y, z, ..blank(Operation::MatrixRows) });
    // The address may be one of the results.
    for (word, &a) in slots.iter().enumerate() {
        let d = t.dst(i, word as u8);
        if d != SCRATCH {
            t.emit(Inst { d, a, ..lane(op1(|a: u32| a).is(Sem::Move)) });
        }
    }
    Ok(())
}

fn copy_async(i: &MachineInst, bytes: u8, zfill: bool, t: &mut Translation<'_>) -> Result<()> {
    // Where it is false nothing is read, and zeros are written. (What is not to be written at
    // all stands under the guard.)
    let is_read = t.psrc(i.psrc[0]);
    let (a, x, space) = address(i, &i.mem[0], t)?;
    let (from, offset, _) = address(i, &i.mem[1], t)?;
    let size = u64::from(bytes);
    let mut count = t.constant(size);
    let (b, source) = (t.temporary(), t.temporary());
    t.emit(Inst { d: source, a: from, b: from, x: offset, ..lane(op2x(|a: u64, _: u64, x: u64| a.wrapping_add(x))) });
    if zfill {
        // The low bits of the address are the number of bytes that are not read.
        let read = t.temporary();
        let run = op2x(|a: u64, _: u64, x: u64| x - (a & (x - 1)));
        t.emit(Inst { d: read, a: source, b: source, x: size, ..lane(run) });
        let run = op2x(|a: u64, _: u64, x: u64| a & !(x - 1));
        t.emit(Inst { d: b, a: source, b: source, x: size, ..lane(run) });
        count = read;
    } else {
        t.emit(Inst { d: b, a: source, ..lane(op1(|a: u64| a).is(Sem::Move)) });
    }
    let kept = t.temporary();
    let zero = t.constant(0);
    let c = Slot(is_read.0);
    t.emit(Inst { d: kept, a: count, b: zero, c, ..blank(Operation::Select) });
    let count = kept;
    t.emit(Inst {
        d: Slot(0),
        a,
        b,
        c: count,
        x,
        y: u32::from(bytes),
        z: space | 1 << 4,
        ..blank(Operation::CopyAsync)
    });
    Ok(())
}
