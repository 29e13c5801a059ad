//! Family of what lanes do together: votes, shuffles, matches, reductions, tiles of matrices from
//! shared memory, asynchronous copies.

use crate::compile_sass::control::bits;
use crate::compile_sass::memory::load_store::address;
use device_code::sass::{MachineInst, Opcode, ReduxOp, ShflMode, VoteMode};

use super::operands::{EXCLUSIVE, SCRATCH};
use super::translation::Translation;
use crate::compile::function::Result;
use crate::exec::per_lane::{op1, op2x};
use crate::operations::build;
use crate::program::{Pred, Sem, Slot};

/// Returns false when the instruction is of another family.
pub(super) fn lanes(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::Vote { mode } => {
            let truth = t.psrc(i.psrc[0]);
            let members = members(t);
            if i.dst.is_some_and(|run| !run.is_dropped()) {
                let d = t.dst(i, 0);
                t.emit(build::Vote { truth, members, d: Some(d), p: None, mode: 3 });
            }
            let p = t.pdst(i, 0);
            if p != Pred::ALWAYS {
                let mode = match mode {
                    VoteMode::All => 0,
                    VoteMode::Any => 1,
                    VoteMode::Eq => 2,
                };
                t.emit(build::Vote { truth, members, d: None, p: Some(p), mode });
            }
        }
        Opcode::Shfl { mode } => {
            let mode = match mode {
                ShflMode::Up => 0,
                ShflMode::Down => 1,
                ShflMode::Bfly => 2,
                ShflMode::Idx => 3,
            };
            let (value, lane, clamp) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let (d, inside) = (t.dst(i, 0), t.pdst(i, 0));
            t.emit(build::Shuffle { value, lane, clamp, members: Slot::NONE, d, inside, mode });
        }
        Opcode::Match { any, wide } => {
            let value = if wide { t.pair(&i.src[0])? } else { t.source(i, 0)? };
            let (d, same) = (t.dst(i, 0), (!any).then(|| t.pdst(i, 0)));
            let members = members(t);
            t.emit(build::Match { value, members, d, same, all: u32::from(!any) });
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
            t.emit(build::Reduce { value: a, members: b, d, function: y });
        }
        // Of the lanes that execute together.
        Opcode::Elect if i.psrc[0].always() => {
            let a = members(t);
            let (d, z) = (t.dst(i, 0), t.pdst(i, 0));
            t.emit(build::Elect { members: a, d, p: z });
        }
        Opcode::Matrix { regs, store } => tiles(i, (regs, store), t)?,
        Opcode::CopyAsync { bytes, zfill } => copy_async(i, bytes, zfill, t)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The row of the lanes that act together, where those that execute together are too many.
fn members(t: &Translation<'_>) -> Slot {
    if t.exclusive { EXCLUSIVE } else { Slot::NONE }
}

/// LDSM, STSM; bits 78..80 say whether tiles are transposed.
fn tiles(i: &MachineInst, (regs, store): (u8, bool), t: &mut Translation<'_>) -> Result<()> {
    let transposed = match bits(78, 80, t) {
        0 => 0,
        1 => 1,
        _ => return t.unsupported(i),
    };
    let (address, offset, _) = address(i, &i.mem[0], t)?;
    let offset = offset as u32;
    if store {
        let from = (0..regs).map(|at| t.raw_word(&i.src[0], at)).collect::<Result<Vec<_>>>()?;
        t.emit(build::MatrixRows { address, from: Some(from), into: None, offset, store: 1, transposed });
        return Ok(());
    }
    let slots: Vec<Slot> = (0..regs).map(|_| t.temporary()).collect();
    let into = Some(slots.clone());
    t.emit(build::MatrixRows { address, from: None, into, offset, store: 0, transposed });
    // The address may be one of the results.
    for (word, &a) in slots.iter().enumerate() {
        let d = t.dst(i, word as u8);
        if d != SCRATCH {
            t.emit(op1(|a: u32| a).is(Sem::Move).of([a]).to(d));
        }
    }
    Ok(())
}

fn copy_async(i: &MachineInst, bytes: u8, zfill: bool, t: &mut Translation<'_>) -> Result<()> {
    // Where it is false nothing is read, and zeros are written. (What is not to be written at
    // all stands under the guard.)
    let is_read = t.psrc(i.psrc[0]);
    let (to, to_offset, space) = address(i, &i.mem[0], t)?;
    let (from, offset, _) = address(i, &i.mem[1], t)?;
    let size = u64::from(bytes);
    let mut count = t.constant(size);
    let (b, source) = (t.temporary(), t.temporary());
    t.emit(op2x(|a: u64, _: u64, x: u64| a.wrapping_add(x)).of([from, from]).with(offset).to(source));
    if zfill {
        // The low bits of the address are the number of bytes that are not read.
        let read = t.temporary();
        let run = op2x(|a: u64, _: u64, x: u64| x - (a & (x - 1)));
        t.emit(run.of([source, source]).with(size).to(read));
        let run = op2x(|a: u64, _: u64, x: u64| a & !(x - 1));
        t.emit(run.of([source, source]).with(size).to(b));
        count = read;
    } else {
        t.emit(op1(|a: u64| a).is(Sem::Move).of([source]).to(b));
    }
    let kept = t.temporary();
    let zero = t.constant(0);
    t.emit(build::Select { a: count, b: zero, which: is_read, d: kept });
    let bytes = u32::from(bytes);
    t.emit(build::CopyAsync { to, from: b, size: kept, to_offset, from_offset: 0, bytes, space });
    Ok(())
}
