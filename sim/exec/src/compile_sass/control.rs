//! Family of control flow: branches, calls, the ends of threads, convergence barriers, block
//! barriers, and what orders memory.

use device_code::sass::{Flow, InstOperand, MachineInst, Opcode, OtherKind, PredSrc, Reg, Value};

use super::{Result, Translation};
use crate::block::{BARRIER_AND, BARRIER_ARRIVE, BARRIER_OR, BARRIER_POPC, BARRIER_SYNC};
use crate::compile::{blank, lane};
use crate::compile_sass::operands::{EXCLUSIVE, RESULT, RESULT_PRED};
use crate::exec::per_lane::op1;
use crate::machine_module::code_address;
use crate::program::{Inst, Operation, Pred, Sem, Slot};

/// Low 12 bits of instructions of which the decoder knows only that they are control.
const NOP: u16 = 0x918;
const DEPBAR: u16 = 0x91a;
const LDGDEPBAR: u16 = 0x9af;
const YIELD: u16 = 0x946;
const ENDCOLLECTIVE: u16 = 0x91b;
const CLUSTER_ARRIVE: u16 = 0x9c7;
const CLUSTER_WAIT: u16 = 0xdc7;
const ERRBAR: u16 = 0x9ab;
const CGAERRBAR: u16 = 0x5ab;
const MEMBAR: u16 = 0x992;
const NANOSLEEP: [u16; 3] = [0x35d, 0x95d, 0xb5d];
const BREAKPOINT: u16 = 0x95c;
const PERFORMANCE_TRIGGER: u16 = 0x801;
const BLOCK_BARRIER: [u16; 4] = [0x31d, 0x51d, 0x91d, 0xb1d];
const BARRIER_RESULT: u16 = 0x31c;

impl Translation<'_> {
    /// Returns false when the instruction is of another family.
    pub(super) fn control(&mut self, i: &MachineInst) -> Result<bool> {
        if i.flow() != Flow::Next
            || matches!(i.op, Opcode::Bssy { .. } | Opcode::Bsync { .. } | Opcode::Warpsync { .. })
        {
            self.exclusive = false;
        }
        match i.op {
            Opcode::Exit => {
                self.under(&i.psrc[..1]);
                self.emit(blank(Operation::Exit));
            }
            // Kernels never overlap by programmatic dependent launch.
            Opcode::AcqBulk | Opcode::PreExit => self.emit(blank(Operation::Nothing)),
            Opcode::Bra { .. } => self.branch(i)?,
            Opcode::Jmp => {
                self.under(&i.psrc[..1]);
                let place = self.target_of(i)?;
                self.jump_to(place);
                self.emit(blank(Operation::Branch));
            }
            Opcode::Brx => {
                // The register counts from the section's start, the constant from the next
                // instruction.
                let base = code_address(self.section, u64::from(self.pc) + 16);
                let offset = base.wrapping_add_signed(i.target.unwrap_or(0));
                self.indirect(i, offset, false)?;
            }
            Opcode::Jmx => self.indirect(i, i.target.unwrap_or(0) as u64, false)?,
            Opcode::Call { abs } => self.call(i, abs)?,
            Opcode::Ret { abs } => {
                let offset = i.target.unwrap_or(0);
                let base = if abs { offset as u64 } else { code_address(self.section, 0).wrapping_add_signed(offset) };
                self.indirect(i, base, false)?;
            }
            Opcode::Bssy { barrier } => {
                let d = self.barrier_row(barrier);
                self.emit(Inst { d, ..blank(Operation::Begin) });
            }
            Opcode::Bsync { barrier } => {
                self.under(&i.psrc[..1]);
                let a = self.barrier_row(barrier);
                self.emit(Inst { a, y: u32::from(barrier), ..blank(Operation::Meet) });
            }
            Opcode::Break { barrier } => {
                self.under(&i.psrc[..1]);
                let d = self.barrier_row(barrier);
                self.emit(Inst { d, ..blank(Operation::Leave) });
            }
            Opcode::Bmov => self.move_barrier(i)?,
            // Up to ENDCOLLECTIVE, or to the BSYNC behind an exclusive one, lanes of other masks
            // stay away. What lanes do together keeps to the mask instead.
            Opcode::Warpsync { collective, exclusive } => {
                self.under(&i.psrc[..1]);
                // WARPSYNC.ALL has no mask.
                let a = if i.src.is_empty() { self.constant(u64::from(u32::MAX)) } else { self.source(i, 0)? };
                self.emit(Inst { a, ..blank(Operation::WarpBarrier) });
                if collective || exclusive {
                    self.exclusive = true;
                    self.emit(Inst { d: EXCLUSIVE, a, ..lane(op1(|a: u32| a).is(Sem::Move)) });
                }
            }
            Opcode::CacheCtl => self.emit(blank(Operation::Nothing)),
            Opcode::Other(OtherKind::Control) => return self.other_control(i),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Narrows the guard by further predicates.
    pub(super) fn under(&mut self, conditions: &[PredSrc]) {
        for &condition in conditions {
            if condition.always() {
                continue;
            }
            let (a, b) = (self.guard, self.psrc(condition));
            if a == Pred::ALWAYS {
                self.guard = b;
                continue;
            }
            let d = self.temporary_pred();
            self.guard = Pred::ALWAYS;
            self.emit(Inst { d: Slot(d.0), a: Slot(a.0), b: Slot(b.0), y: 0, ..blank(Operation::Predicate) });
            self.guard = d;
        }
    }

    fn branch(&mut self, i: &MachineInst) -> Result<()> {
        use device_code::sass::BraMode;
        let Opcode::Bra { mode } = i.op else { return Ok(()) };
        self.under(&i.psrc[..2]);
        let place = self.target_of(i)?;
        match (mode, i.src.first().copied()) {
            (BraMode::Plain | BraMode::Uniform, None) => {
                self.jump_to(place);
                self.emit(blank(Operation::Branch));
            }
            // Taken by the lanes of a mask in a uniform register; `.DIV`: where others of the mask
            // are elsewhere, `.CONV`: where none are.
            (BraMode::Div | BraMode::Conv, mask) => {
                let a = match mask {
                    Some(mask) => self.src(&InstOperand { regs: 1, ..mask })?,
                    None => self.constant(0xffff_ffff),
                };
                // The guard only says which lanes count: all lanes jump, or none.
                let c = Slot(self.guard.0);
                self.guard = Pred::ALWAYS;
                self.jump_to(place);
                self.emit(Inst { a, c, y: u32::from(mode == BraMode::Conv), ..blank(Operation::BranchIfApart) });
            }
            _ => return self.unsupported(i),
        }
        Ok(())
    }

    /// A jump to the address in a register pair plus `base`.
    fn indirect(&mut self, i: &MachineInst, base: u64, call: bool) -> Result<()> {
        self.under(&i.psrc[..1]);
        let Some(source) = i.src.first().copied() else { return self.unsupported(i) };
        let a = self.pair(&InstOperand { regs: 2, ..source })?;
        if call {
            let d = self.first_argument();
            self.emit(Inst { d, a, x: base, ..blank(Operation::CallAddress) });
        } else {
            self.emit(Inst { a, x: base, ..blank(Operation::JumpAddress) });
        }
        Ok(())
    }

    fn call(&mut self, i: &MachineInst, abs: bool) -> Result<()> {
        if !i.src.is_empty() {
            let offset = i.target.unwrap_or(0);
            let base = if abs { offset as u64 } else { code_address(self.section, 0).wrapping_add_signed(offset) };
            return self.indirect(i, base, true);
        }
        self.under(&i.psrc[..1]);
        if let Some((address, _)) = self.linked()
            && self.module.declared(address).is_some()
        {
            let (a, d) = (self.constant(address), self.first_argument());
            self.emit(Inst { d, a, ..blank(Operation::CallAddress) });
            return Ok(());
        }
        let place = self.target_of(i)?;
        self.jump_to(place);
        self.emit(blank(Operation::Branch));
        Ok(())
    }

    /// The row where arguments of a function begin: R4, and there is room for seven pairs.
    fn first_argument(&mut self) -> Slot {
        self.reg(Reg(4 + 2 * 7));
        self.reg(Reg(4))
    }

    fn move_barrier(&mut self, i: &MachineInst) -> Result<()> {
        let Some(Value::Imm(number)) = i.src.first().map(|source| source.value) else { return self.unsupported(i) };
        // Above the barriers are registers of the warp's state.
        if number >= 16 {
            return self.unsupported(i);
        }
        let row = self.barrier_row(number as u8);
        if let Some(source) = i.src.get(1).copied() {
            let a = self.src(&source)?;
            self.emit(Inst { d: row, a, ..blank(Operation::SetBarrier) });
        } else {
            let d = self.dst(i, 0);
            // BMOV.32.CLEAR: bit 84.
            let clear = u32::from(self.word >> 84 & 1 != 0);
            self.emit(Inst { d, a: row, y: clear, ..blank(Operation::GetBarrier) });
        }
        Ok(())
    }

    fn other_control(&mut self, i: &MachineInst) -> Result<bool> {
        match i.opcode {
            YIELD => self.emit(blank(Operation::Yield)),
            CLUSTER_ARRIVE => self.emit(blank(Operation::ClusterArrive)),
            CLUSTER_WAIT => self.emit(blank(Operation::ClusterWait)),
            ENDCOLLECTIVE => {
                self.exclusive = false;
                self.emit(blank(Operation::Nothing));
            }
            NOP | DEPBAR | LDGDEPBAR | PERFORMANCE_TRIGGER => self.emit(blank(Operation::Nothing)),
            ERRBAR | CGAERRBAR | MEMBAR => self.emit(blank(Operation::Fence)),
            opcode if NANOSLEEP.contains(&opcode) => self.emit(blank(Operation::Sleep)),
            BREAKPOINT => self.emit(blank(Operation::Trap)),
            opcode if BLOCK_BARRIER.contains(&opcode) => self.block_barrier(i)?,
            BARRIER_RESULT if self.bits(78, 80) == 1 => {
                // What the last BAR.RED found is kept in a row and a predicate of its own.
                if i.dst.is_some_and(|run| !run.is_dropped()) {
                    self.unary(i, RESULT, op1(|a: u32| a).is(Sem::Move));
                }
                let d = self.pdst(i, 0);
                if d != Pred::ALWAYS {
                    let a = Slot(RESULT_PRED.0);
                    self.emit(Inst { d: Slot(d.0), a, b: a, y: 0, ..blank(Operation::Predicate) });
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A field of the instruction word.
    pub(crate) fn bits(&self, low: u32, high: u32) -> u32 {
        (self.word >> low) as u32 & ((1 << (high - low)) - 1)
    }

    /// BAR: number at 54..58 or in a register, threads at 42..54 or in bits 16 and up of the same
    /// register; what it does at 77..79; the reduction at 74..76 and its predicate at 87..91.
    /// (Measured with nvdisasm.)
    fn block_barrier(&mut self, i: &MachineInst) -> Result<()> {
        let form = i.opcode >> 8;
        let register = self.reg(Reg(self.bits(32, 40) as u8));
        let number = if matches!(form, 0x9 | 0xb) { self.constant(u64::from(self.bits(54, 58))) } else { register };
        let threads = match form {
            0x5 | 0xb => match self.bits(42, 54) {
                0 => Slot::NONE,
                count => self.constant(u64::from(count)),
            },
            0x9 => register,
            // Both in one register.
            _ => {
                let d = self.temporary();
                self.emit(Inst { d, a: register, ..lane(op1(|a: u32| a >> 16 & 0xfff)) });
                d
            }
        };
        let (kind, reduction) = (self.bits(77, 79), self.bits(74, 76));
        let y = match (kind, reduction) {
            (0, _) => BARRIER_SYNC,
            (1, _) => BARRIER_ARRIVE,
            (2, 0) => BARRIER_POPC,
            (2, 1) => BARRIER_AND,
            (2, 2) => BARRIER_OR,
            _ => return self.unsupported(i),
        };
        let d = if y == BARRIER_POPC { RESULT } else { Slot(RESULT_PRED.0) };
        let pred = PredSrc {
            pred: device_code::sass::Pred { num: self.bits(87, 90) as u8, uniform: false },
            not: self.bits(90, 91) != 0,
        };
        let c = Slot(self.psrc(pred).0);
        self.emit(Inst { d, a: number, b: threads, c, y, ..blank(Operation::Barrier) });
        Ok(())
    }
}
