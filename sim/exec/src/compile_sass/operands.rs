//! Where registers, predicates and constants of machine code are, and operands as rows.
//!
//! A register R is a row with 32-bit values. A uniform register is a row too, the same in all lanes
//! that run together. A wide value is a run of rows. Words of constant bank 0 are rows that are
//! filled when a launch begins; those of banks that never change are constants of the program;
//! `__constant__` variables lie in device memory and are loaded.

use device_code::arch::Generation;
use device_code::sass::{Bank, ConstRef, File, InstOperand, MachineInst, PredSrc, Reg, UReg, Value};

use super::translation::Translation;
use crate::compile::function::Result;
use crate::exec::load_store::GLOBAL;
use crate::exec::per_lane::{LaneFn, op1, op2};
use crate::exec::told::strength::PLAIN;
use crate::interface::CompileError;
use crate::launch_constants::RESERVED_SHARED_AT;
use crate::operations::build;
use crate::program::{LANES, LaneTy, LaunchWord, Pred, Row, Sem, Slot};

/// The row that takes dropped results.
pub(crate) const SCRATCH: Slot = Slot(1);
/// Rows of UR0 and following.
const UNIFORM: u32 = 2;
/// Rows of the convergence barriers B0 and following: the lanes that take part, as each knows them.
const BARRIERS: u32 = UNIFORM + 63;
/// The row of what the last reduction over a block barrier found.
pub(super) const RESULT: Slot = Slot(BARRIERS + 16);
/// The row of the lanes that a WARPSYNC.EXCLUSIVE has let go on together.
pub(super) const EXCLUSIVE: Slot = Slot(BARRIERS + 17);
/// Rows for values inside one machine instruction.
const TEMPORARIES: u32 = BARRIERS + 18;
const MOST_TEMPORARIES: u32 = 32;
/// Rows of R0 and following.
const REGISTERS: u32 = TEMPORARIES + MOST_TEMPORARIES;
/// Predicates UP0 and following; P0 and following are the first.
const UNIFORM_PREDS: u32 = 8;
/// What the last reduction over a block barrier found, as a predicate.
pub(super) const RESULT_PRED: Pred = Pred(15);
const TEMPORARY_PREDS: u32 = 16;
/// Predicates of the frame.
pub(crate) const PREDS: u32 = 24;

impl Translation<'_> {
    /// Rows of the frame, as far as registers have been named.
    pub(super) fn rows(&self) -> u32 {
        REGISTERS + self.registers
    }

    /// Begins a machine instruction.
    pub(super) fn begin(&mut self, guard: Pred) {
        self.guard = guard;
        (self.temporaries, self.temporary_preds) = (0, 0);
    }

    /// A row for a value inside this instruction.
    pub(crate) fn temporary(&mut self) -> Slot {
        debug_assert!(self.temporaries < MOST_TEMPORARIES);
        self.temporaries += 1;
        Slot(TEMPORARIES + self.temporaries - 1)
    }

    /// A predicate for inside this instruction.
    pub(crate) fn temporary_pred(&mut self) -> Pred {
        debug_assert!(TEMPORARY_PREDS + self.temporary_preds < PREDS);
        self.temporary_preds += 1;
        Pred(TEMPORARY_PREDS + self.temporary_preds - 1)
    }

    /// The row of a register that is read.
    pub(crate) fn reg(&mut self, reg: Reg) -> Slot {
        if reg.is_zero() {
            return self.constant(0);
        }
        self.registers = self.registers.max(u32::from(reg.0) + 1);
        Slot(REGISTERS + u32::from(reg.0))
    }

    /// The row of a uniform register that is read.
    pub(crate) fn ureg(&mut self, reg: UReg) -> Slot {
        if reg.0 >= 63 { self.constant(0) } else { Slot(UNIFORM + u32::from(reg.0)) }
    }

    /// The row of a convergence barrier.
    pub(crate) fn barrier_row(&self, barrier: u8) -> Slot {
        Slot(BARRIERS + u32::from(barrier & 15))
    }

    /// A row with a value in every lane.
    pub(crate) fn constant(&mut self, value: u64) -> Slot {
        if let Some(&slot) = self.constants.get(&value) {
            return slot;
        }
        let slot = self.new_constant(value);
        self.constants.insert(value, slot);
        slot
    }

    fn new_constant(&mut self, value: u64) -> Slot {
        self.program.constants.push(Row([value; LANES]));
        Slot((self.program.constants.len() - 1) as u32 | Slot::CONSTANT)
    }

    /// A row with 4 or 8 bytes of constant bank 0.
    fn launch_word(&mut self, offset: u32, bytes: u32) -> Slot {
        if let Some(&slot) = self.launch_words.get(&(offset, bytes)) {
            return slot;
        }
        let slot = self.new_constant(0);
        let constant = slot.0 & !Slot::CONSTANT;
        self.program.asks_for_reserved |= (offset..offset + bytes).contains(&RESERVED_SHARED_AT);
        self.machine.launch_words.push(LaunchWord { constant, offset, bytes });
        self.launch_words.insert((offset, bytes), slot);
        slot
    }

    /// Fills the tables of constant banks that do not change after loading.
    pub(super) fn banks(&mut self) -> std::result::Result<(), String> {
        for bank in [1, 2, 4, 5] {
            let Some(section) = self.module.bank(&self.kernel.name, bank) else { continue };
            let bytes = self.module.relocated(section, self.blocks)?;
            let words = bytes.chunks(8).map(|word| word.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)));
            self.machine.banks.push((bank, words.collect(), bytes.len() as u32));
        }
        Ok(())
    }

    /// Address and size of the `__constant__` variables.
    pub(crate) fn constant_variables(&self) -> Option<(u64, u64)> {
        let section = self.module.bank(&self.kernel.name, 3)?;
        let block = self.module.blocks().iter().position(|block| block.is_section(section))?;
        Some((*self.blocks.get(block)?, self.module.blocks()[block].size))
    }

    /// The error for something about the code that cannot be.
    pub(crate) fn wrong<T>(&self, what: impl Into<String>) -> Result<T> {
        let function = self.module.function_at(self.section, self.pc).to_owned();
        Err(CompileError::Machine { function, what: what.into() })
    }

    /// A row with 4 or 8 bytes of a constant bank at a fixed offset.
    pub(crate) fn bank_word(&mut self, bank: u8, offset: u32, bytes: u32) -> Result<Slot> {
        if !offset.is_multiple_of(4) {
            return self.wrong(format!("c[{bank:#x}][{offset:#x}] is not aligned"));
        }
        if bank == 0 {
            let begin = constant_window_at(self.generation);
            if (begin..begin + 8).contains(&offset)
                && let Some((start, _)) = self.constant_variables()
            {
                let word = start >> (8 * (offset - begin));
                return Ok(self.constant(if bytes == 8 { word } else { word & 0xffff_ffff }));
            }
            return Ok(self.launch_word(offset, bytes));
        }
        if bank == 3 {
            let Some((start, size)) = self.constant_variables() else {
                return self.wrong("constant bank 3 is not there");
            };
            if u64::from(offset) + u64::from(bytes) > size {
                return self.wrong(format!("c[0x3][{offset:#x}] lies outside the bank"));
            }
            let (d, address) = (self.temporary(), self.constant(start));
            self.emit(build::Load {
                ty: if bytes == 8 { LaneTy::U64 } else { LaneTy::U32 },
                address,
                d: Some(d),
                all: None,
                offset: u64::from(offset),
                space: GLOBAL,
                count: 1,
                bits: 8 * bytes,
                strength: PLAIN,
            });
            return Ok(d);
        }
        let Some((_, words, size)) = self.machine.banks.iter().find(|(number, ..)| *number == bank) else {
            return self.wrong(format!("constant bank {bank} is not there"));
        };
        if offset + bytes > *size {
            return self.wrong(format!("c[{bank:#x}][{offset:#x}] lies outside the bank"));
        }
        let half = |at: u32| words[at as usize / 8] >> (at % 8 * 8) & 0xffff_ffff;
        let value = half(offset) | if bytes == 8 { half(offset + 4) << 32 } else { 0 };
        Ok(self.constant(value))
    }

    fn bank_operand(&mut self, constant: ConstRef, word: u8, bytes: u32) -> Result<Slot> {
        let (Bank::Number(bank), Some(offset)) = (constant.bank, constant.place()) else {
            return self.wrong(format!("constant {constant} is not executed here"));
        };
        self.bank_word(bank, offset + 4 * u32::from(word), bytes)
    }

    /// Word `word` of an operand as it is, without its sign.
    pub(crate) fn raw_word(&mut self, operand: &InstOperand, word: u8) -> Result<Slot> {
        Ok(match operand.value {
            Value::Reg(reg) if reg.is_zero() => self.constant(0),
            Value::Reg(reg) => match reg.0.checked_add(word).filter(|&number| number < 255) {
                Some(number) => self.reg(Reg(number)),
                None => return self.wrong("a run of registers goes past the last one"),
            },
            Value::UReg(reg) if reg.is_zero() => self.constant(0),
            Value::UReg(reg) => self.ureg(UReg(reg.0.saturating_add(word))),
            Value::Imm(value) => self.constant((value >> (32 * u32::from(word).min(1))) as u64 & 0xffff_ffff),
            Value::Const(constant) => self.bank_operand(constant, word, 4)?,
        })
    }

    /// An operand of 32 bits, negated or complemented as it says.
    pub(crate) fn src(&mut self, operand: &InstOperand) -> Result<Slot> {
        let a = self.raw_word(operand, 0)?;
        let run: LaneFn = match (operand.neg, operand.inv) {
            (true, _) => op1(|a: u32| a.wrapping_neg()).is(Sem::Neg),
            (_, true) => op1(|a: u32| !a).is(Sem::Not),
            _ => return Ok(a),
        };
        let d = self.temporary();
        self.emit(run.of([a]).to(d));
        Ok(d)
    }

    /// Source `at` of an instruction as [`Translation::src`]; zero when there is none.
    pub(crate) fn source(&mut self, i: &MachineInst, at: usize) -> Result<Slot> {
        match i.src.get(at) {
            Some(operand) => self.src(operand),
            None => Ok(self.constant(0)),
        }
    }

    /// Two words as one row of 64 bits, without a sign.
    pub(crate) fn pair(&mut self, operand: &InstOperand) -> Result<Slot> {
        match operand.value {
            Value::Imm(value) => return Ok(self.constant(value as u64)),
            Value::Const(constant) => return self.bank_operand(constant, 0, 8),
            _ => {}
        }
        let (low, high) = (self.raw_word(operand, 0)?, self.raw_word(operand, 1)?);
        Ok(self.joined(low, high))
    }

    /// Two rows of 32 bits as one of 64.
    pub(crate) fn joined(&mut self, low: Slot, high: Slot) -> Slot {
        let zero = self.constant(0);
        if high == zero {
            return low;
        }
        let d = self.temporary();
        self.emit(op2(|a: u32, b: u32| u64::from(a) | u64::from(b) << 32).is(Sem::Join).of([low, high]).to(d));
        d
    }

    /// The row of word `word` of the result.
    pub(crate) fn dst(&mut self, i: &MachineInst, word: u8) -> Slot {
        match i.dst {
            Some(run) if !run.is_dropped() && word < run.count => match run.file {
                File::R => self.reg(Reg(run.first + word)),
                File::UR => self.ureg(UReg(run.first + word)),
            },
            _ => SCRATCH,
        }
    }

    /// Puts a row of 64 bits into the two registers of the result.
    pub(crate) fn split(&mut self, i: &MachineInst, value: Slot) {
        let (low, high) = (self.dst(i, 0), self.dst(i, 1));
        self.halved(value, low, high);
    }

    /// Puts the halves of a row of 64 bits into two rows.
    pub(crate) fn halved(&mut self, value: Slot, low: Slot, high: Slot) {
        self.emit(op1(|a: u64| a as u32).is(Sem::Move).of([value]).to(low));
        self.emit(op1(|a: u64| (a >> 32) as u32).is(Sem::High).of([value]).to(high));
    }

    /// The predicate of result `at`.
    pub(crate) fn pdst(&self, i: &MachineInst, at: usize) -> Pred {
        let pred = i.pdst[at];
        if pred.is_true() {
            Pred::ALWAYS
        } else {
            Pred(u32::from(pred.num) + if pred.uniform { UNIFORM_PREDS } else { 0 })
        }
    }

    /// The first of the seven predicates of a file.
    pub(crate) fn first_pred(&self, uniform: bool) -> u32 {
        if uniform { UNIFORM_PREDS } else { 0 }
    }

    /// True when the guard reads this predicate: what writes it must be the last instruction then.
    pub(crate) fn guard_is(&self, pred: Pred) -> bool {
        self.guard != Pred::ALWAYS && self.guard.0 & !Pred::NEGATED == pred.0
    }

    /// A predicate that is read.
    pub(crate) fn psrc(&self, source: PredSrc) -> Pred {
        let pred = if source.pred.is_true() {
            Pred::ALWAYS
        } else {
            Pred(u32::from(source.pred.num) + if source.pred.uniform { UNIFORM_PREDS } else { 0 })
        };
        if source.not { Pred(pred.0 ^ Pred::NEGATED) } else { pred }
    }

    /// Puts slots into the program's list. Returns the first's place.
    pub(crate) fn list(&mut self, slots: &[Slot]) -> u32 {
        let first = self.program.slots.len() as u32;
        self.program.slots.extend(slots);
        first
    }
}

/// Where constant bank 0 holds the generic address of the `__constant__` variables: 8 bytes, read
/// off code that nvcc made.
const fn constant_window_at(generation: Generation) -> u32 {
    if matches!(generation, Generation::Hopper) { 0xd0 } else { 0x50 }
}
