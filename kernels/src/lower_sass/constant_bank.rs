//! Reads of `__constant__` variables. Any instruction can make them, as an operand in constant bank
//! 3. Loads by generic addresses make them too: the driver passes the address of the bank.
//!
//! Owns the bank's layout and the reads by operands. All count from the start of the bank, because
//! a register may hold the place of a variable and an index in one number (`LDC R5, c[0x3][R0]`
//! with `R0 = 4 * i + 0x40`). `ranges/extent/constant_bank.rs` finds the variables behind the
//! bytes. What is read is unknown, apart from pointers, whose place is kept. The other banks hold
//! what a program can not write: parameters (0), literals (2), addresses (4).

use super::Lower;
use crate::ir::{AccessKind, Addr, ConstantBank, Mem, MemSpace, Op, Src, SrcOperand, Var};
use device_code::arch::Generation;
use device_code::sass::{self, Bank, Index, MachineInst, Value};
use smallvec::SmallVec;

/// Stands for the start of the bank among the symbols, by the name of its section.
const BANK: &str = ".nv.constant3";

/// Where constant bank 0 holds the generic address of constant bank 3: 8 bytes at this offset.
/// (Seen in code that nvcc 13.0 makes of `cvta.const` for sm_75 to sm_120.)
fn generic_address(generation: Generation) -> u32 {
    match generation {
        Generation::Volta | Generation::Turing | Generation::Ampere => 0x50,
        Generation::Hopper => 0xd0,
        Generation::Blackwell | Generation::BlackwellConsumer => 0x120,
    }
}

/// Notes which variables the bank holds.
pub(super) fn note_constants(lower: &mut Lower<'_>) {
    let links = lower.code.links;
    if links.bank3.is_empty() {
        return;
    }
    let start = lower.f.symbol(BANK);
    let variables = links.bank3.iter().map(|(from, to, name)| (*from, *to, lower.f.symbol(name))).collect();
    let bank = ConstantBank { start, variables };
    lower.f.constants = bank.variables.iter().map(|v| v.2).collect();
    lower.f.constant_bank = Some(bank);
}

/// Words of the generic address of the bank, in bank 0.
pub(super) fn bank_address(lower: &Lower<'_>, off: u32, bytes: u8) -> Option<Src> {
    let start = lower.f.constant_bank.as_ref()?.start;
    match (off.checked_sub(generic_address(lower.code.generation))?, bytes) {
        (0, 8) => Some(Src::Symbol(start)),
        (at @ (0 | 4), 4) => Some(Src::SymbolHalf(start, at == 4)),
        _ => None,
    }
}

/// A load of 8 or 16 bytes from the bank: pointers that are put there can be followed.
pub(super) fn loaded_constant(
    lower: &mut Lower<'_>,
    i: &MachineInst,
    offset: i32,
    index: Option<Var>,
    d: &[Var],
) -> bool {
    let Some(bank) = &lower.f.constant_bank else { return false };
    let mut parts: SmallVec<[SrcOperand; 2]> = SmallVec::from_slice(&[SrcOperand::new(Src::Symbol(bank.start))]);
    parts.extend(index.map(|v| SrcOperand::new(Src::Zext(v))));
    lower.emit(i, Op::Loaded(i64::from(offset)), &parts, d);
    true
}

/// The reads that an instruction makes of `__constant__` variables.
pub(super) fn constant_reads(lower: &mut Lower<'_>, i: &MachineInst) {
    let Some(start) = lower.f.constant_bank.as_ref().map(|bank| bank.start) else { return };
    let operands = i.src.iter().filter_map(|s| match s.value {
        Value::Const(c) => Some((c, s.regs)),
        _ => None,
    });
    // Results of two registers are doubles and pairs of floats, and so are the operands.
    let wide = i.dst.is_some_and(|run| run.count == 2);
    for (c, regs) in operands.chain(i.constant.map(|c| (c, if wide { 2 } else { 1 }))) {
        if c.bank != Bank::Number(3) {
            continue;
        }
        let bytes = match i.op {
            sass::Opcode::LoadConst { ty, .. } => ty.bytes() as u32,
            _ => 4 * u32::from(regs.max(1)),
        };
        let mut parts: SmallVec<[SrcOperand; 2]> = SmallVec::from_slice(&[SrcOperand::new(Src::Symbol(start))]);
        let index = match c.index {
            Index::None => None,
            Index::Reg(r) => Lower::reg(r.0),
            Index::UReg(r) => Lower::ureg(r.0),
        };
        parts.extend(index.map(|v| SrcOperand::new(Src::Zext(v))));
        let addr = Addr::Sum(parts, i64::from(c.offset));
        let read = Mem { space: MemSpace::Global, kind: AccessKind::Read, bytes, addr };
        lower.emit(i, Op::Mem(read), &[], &[]);
    }
}
