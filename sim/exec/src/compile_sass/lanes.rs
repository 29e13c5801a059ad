//! Family of what lanes do together: votes, shuffles, matches, reductions, tiles of matrices from
//! shared memory, asynchronous copies.

use device_code::sass::{MachineInst, Opcode, ReduxOp, ShflMode, VoteMode};

use super::operands::{EXCLUSIVE, SCRATCH};
use super::{Result, Translation};
use crate::compile::{blank, lane};
use crate::exec::load_store::SHARED;
use crate::exec::per_lane::{op1, op2x};
use crate::program::{Inst, Operation, Pred, Sem, Slot};

impl Translation<'_> {
    /// Returns false when the instruction is of another family.
    pub(super) fn lanes(&mut self, i: &MachineInst) -> Result<bool> {
        match i.op {
            Opcode::Vote { mode } => {
                let a = Slot(self.psrc(i.psrc[0]).0);
                let b = self.members();
                if i.dst.is_some_and(|run| !run.is_dropped()) {
                    let d = self.dst(i, 0);
                    self.emit(Inst { d, a, b, y: 3, ..blank(Operation::Vote) });
                }
                let d = self.pdst(i, 0);
                if d != Pred::ALWAYS {
                    let y = match mode {
                        VoteMode::All => 0,
                        VoteMode::Any => 1,
                        VoteMode::Eq => 2,
                    };
                    self.emit(Inst { d: Slot(d.0), a, b, y, ..blank(Operation::Vote) });
                }
            }
            Opcode::Shfl { mode } => {
                let y = match mode {
                    ShflMode::Up => 0,
                    ShflMode::Down => 1,
                    ShflMode::Bfly => 2,
                    ShflMode::Idx => 3,
                };
                let (a, b, c) = (self.source(i, 0)?, self.source(i, 1)?, self.source(i, 2)?);
                let (d, z) = (self.dst(i, 0), self.pdst(i, 0));
                let x = u64::from(Slot::NONE.0);
                self.emit(Inst { d, a, b, c, x, y, z: z.0, ..blank(Operation::Shuffle) });
            }
            Opcode::Match { any, wide } => {
                let a = if wide { self.pair(&i.src[0])? } else { self.source(i, 0)? };
                let (d, z) = (self.dst(i, 0), self.pdst(i, 0));
                let b = self.members();
                self.emit(Inst { d, a, b, y: u32::from(!any), z: z.0, ..blank(Operation::Match) });
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
                let (a, d) = (self.source(i, 0)?, self.dst(i, 0));
                let b = self.members();
                // Before sm_90 no BSYNC stands behind it: each reduction has a WARPSYNC of its own.
                self.exclusive &= self.module.arch.sm >= 90;
                self.emit(Inst { d, a, b, y, ..blank(Operation::Reduce) });
            }
            // Of the lanes that execute together.
            Opcode::Elect if i.psrc[0].always() => {
                let a = self.members();
                let (d, z) = (self.dst(i, 0), self.pdst(i, 0));
                self.emit(Inst { d, a, z: z.0, ..blank(Operation::Elect) });
            }
            Opcode::Matrix { regs, store: false } => self.tiles(i, regs)?,
            Opcode::CopyAsync { bytes, zfill } => self.copy_async(i, bytes, zfill)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The row of the lanes that act together, where those that execute together are too many.
    fn members(&self) -> Slot {
        if self.exclusive { EXCLUSIVE } else { Slot::NONE }
    }

    /// LDSM; bits 78..80 say whether tiles are transposed.
    fn tiles(&mut self, i: &MachineInst, regs: u8) -> Result<()> {
        let transposed = match self.bits(78, 80) {
            0 => 0,
            1 => 1 << 30,
            _ => return self.unsupported(i),
        };
        let (a, x, _) = self.address(i, &i.mem[0])?;
        let slots: Vec<Slot> = (0..regs).map(|_| self.temporary()).collect();
        let y = self.list(&slots);
        let z = SHARED | u32::from(regs) << 4 | transposed;
        self.emit(Inst { d: Slot(x as u32), a, y, z, ..blank(Operation::MatrixRows) });
        // The address may be one of the results.
        for (word, &a) in slots.iter().enumerate() {
            let d = self.dst(i, word as u8);
            if d != SCRATCH {
                self.emit(Inst { d, a, ..lane(op1(|a: u32| a).is(Sem::Move)) });
            }
        }
        Ok(())
    }

    fn copy_async(&mut self, i: &MachineInst, bytes: u8, zfill: bool) -> Result<()> {
        // Where it is false nothing is read, and zeros are written. (What is not to be written at
        // all stands under the guard.)
        let is_read = self.psrc(i.psrc[0]);
        let (a, x, space) = self.address(i, &i.mem[0])?;
        let (from, offset, _) = self.address(i, &i.mem[1])?;
        let size = u64::from(bytes);
        let mut count = self.constant(size);
        let (b, source) = (self.temporary(), self.temporary());
        self.emit(Inst {
            d: source,
            a: from,
            b: from,
            x: offset,
            ..lane(op2x(|a: u64, _: u64, x: u64| a.wrapping_add(x)))
        });
        if zfill {
            // The low bits of the address are the number of bytes that are not read.
            let read = self.temporary();
            let run = op2x(|a: u64, _: u64, x: u64| x - (a & (x - 1)));
            self.emit(Inst { d: read, a: source, b: source, x: size, ..lane(run) });
            let run = op2x(|a: u64, _: u64, x: u64| a & !(x - 1));
            self.emit(Inst { d: b, a: source, b: source, x: size, ..lane(run) });
            count = read;
        } else {
            self.emit(Inst { d: b, a: source, ..lane(op1(|a: u64| a).is(Sem::Move)) });
        }
        let kept = self.temporary();
        let zero = self.constant(0);
        let c = Slot(is_read.0);
        self.emit(Inst { d: kept, a: count, b: zero, c, ..blank(Operation::Select) });
        let count = kept;
        self.emit(Inst {
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
}
