//! Reads of `__constant__` variables. Any instruction can make them, as an operand in constant bank
//! 3. Loads by generic addresses make them too: the driver passes the address of the bank.
//!
//! Owns the bank's layout and the reads by operands. All count from the start of the bank, because
//! a register may hold the place of a variable and an index in one number (`LDC R5, c[0x3][R0]`
//! with `R0 = 4 * i + 0x40`). `ranges/extent/constant_bank.rs` finds the variables behind the
//! bytes. What is read is unknown, apart from pointers, whose place is kept. The other banks hold
//! what a program can not write: parameters (0), literals and jump tables (2), addresses (4). Owns
//! loads of parameters, too.

use super::Lower;
use crate::ir::{AccessKind, Addr, ConstantBank, Mem, MemSpace, Op, Reason, Special, Src, SrcOperand, Var};
use crate::lower_sass::arithmetic::parallel_move;
use crate::lower_sass::jump_tables::table_word;
use device_code::arch::Generation;
use device_code::sass::{self, Bank, ConstRef, Index, MachineInst, MemTy, Value};
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

/// What bank 0 says of a launch's clusters at this offset, for sm_90. `axis`: which of the three
/// words from an offset on it is. (Read off code that nvcc 13.0 makes of `%cluster_nctaid`,
/// `%clusterid`, `%nclusterid` and `%cluster_nctarank`.)
pub(super) fn cluster_constant(off: u32, axis: impl Fn(u32) -> Option<u8>) -> Option<Special> {
    match off {
        0x188 => Some(Special::ClusterSize),
        _ => {
            let of = |base, special: fn(u8) -> Special| axis(base).map(special);
            of(0x144, Special::ClusterNctaid)
                .or_else(|| of(0x150, Special::ClusterReciprocal))
                .or_else(|| of(0x15c, Special::NCluster))
        }
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
fn loaded_constant(lower: &mut Lower<'_>, i: &MachineInst, offset: i64, index: Option<Var>, d: &[Var]) -> bool {
    let Some(bank) = &lower.f.constant_bank else { return false };
    let mut parts: SmallVec<[SrcOperand; 2]> = SmallVec::from_slice(&[SrcOperand::new(Src::Symbol(bank.start))]);
    parts.extend(index.map(|v| SrcOperand::new(Src::Zext(v))));
    lower.emit(i, Op::Loaded(offset), &parts, d);
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
        let addr = Addr::Sum(parts, c.displacement());
        let read = Mem { space: MemSpace::Global, kind: AccessKind::Read, bytes, addr };
        lower.emit(i, Op::Mem(read), &[], &[]);
    }
}

/// The word of bank 0 whose lowest bytes these are, when it is a size of the grid or of a
/// block. (Programs that cast such a size to a narrow type read only as much of it.)
fn part_of_size(lower: &mut Lower<'_>, c: ConstRef, bytes: u8) -> Option<SrcOperand> {
    match lower.constant(c, 4) {
        Some(s @ Src::Special(Special::Ntid(_) | Special::Nctaid(_))) if bytes < 4 => Some(SrcOperand::new(s)),
        _ => None,
    }
}

/// A load from a constant bank: of a parameter, of a size of the grid, or of a variable.
pub(super) fn load_const(lower: &mut Lower<'_>, i: &MachineInst, ty: MemTy, mode: u8) {
    let Some(Value::Const(c)) = i.src.first().map(|s| s.value) else {
        lower.give_up(i, Reason::Constant);
        return;
    };
    let words = ty.regs();
    let d: Vec<Var> = (0..words).map(|k| lower.dst(i, k)).collect();
    let bytes = ty.bytes() as u8;
    let signed = matches!(ty, MemTy::S8 | MemTy::S16);
    let index = match c.index {
        Index::None => None,
        Index::Reg(r) => Lower::reg(r.0),
        Index::UReg(r) => Lower::ureg(r.0),
    };
    let bank0 = c.bank == Bank::Number(0);
    if c.bank == Bank::Number(3) && bytes >= 8 && loaded_constant(lower, i, c.displacement(), index, &d) {
        return;
    }
    match index {
        None => {
            let c = ConstRef { index: Index::None, ..c };
            if bytes >= 4 {
                let s: Option<Vec<SrcOperand>> = (0..words)
                    .map(|k| {
                        let c = ConstRef { offset: c.offset + 4 * i32::from(k), ..c };
                        lower.constant(c, 4).map(SrcOperand::new)
                    })
                    .collect();
                match s {
                    Some(s) => parallel_move(lower, i, &s, &d),
                    None => lower.give_up(i, Reason::Constant),
                }
                return;
            }
            match lower.constant(c, bytes) {
                Some(s @ Src::Param { .. }) => {
                    lower.emit(i, Op::Ext { bits: 8 * bytes, signed }, &[SrcOperand::new(s)], &d);
                }
                _ => match part_of_size(lower, c, bytes) {
                    Some(size) => lower.emit(i, Op::Ext { bits: 8 * bytes, signed }, &[size], &d),
                    None => lower.give_up(i, Reason::Constant),
                },
            }
        }
        // The driver's words for a cooperative launch, from sm_100 on one pair for each block
        // of a cluster (`SR_CgaSize * -0xa0`), far below the parameters: the same as without an
        // index.
        Some(_) if bank0 && lower.code.generation >= Generation::Blackwell && (0x250..0x260).contains(&c.offset) => {
            lower.give_up(i, Reason::Window);
        }
        Some(v) if bank0 && mode == 0 => {
            let off = c.offset - lower.code.param_base as i32;
            lower.emit(i, Op::ParamIndexed { off, bytes, signed }, &[SrcOperand::var(v)], &d);
        }
        Some(v) if c.bank == Bank::Number(2) && mode == 0 && bytes == 4 && table_word(lower, i, c.offset, v, d[0]) => {}
        Some(_) => lower.give_up(i, Reason::Constant),
    }
}
