//! Jump tables: `switch` in machine code.
//!
//! The compiler keeps a table in constant bank 2, with the place of each case in the code section.
//! It loads a word of the table by the clamped number of the case, and `BRX` jumps there (`LDC R6,
//! c[0x2][R8]`, `BRX R6 -0x140`: the constant counts from the next instruction). The notes of the
//! image list the targets of each such jump.
//!
//! Owns the words of such tables, as a choice by the place in the table, and the jump, as branches
//! on the loaded word. What the word is follows from the choice wherever the launch decides it,
//! also if the load stands in front of a loop.

use super::Lower;
use crate::ir::jump_table::{MAX_WAYS, chain};
use crate::ir::{BlockId, Class, Cmp, Combine, Op, Reason, SrcOperand, Term, Var};
use device_code::sass::{INST_BYTES, MachineInst};
use std::collections::BTreeSet;

/// The number by which a jump at a place comes to a target.
fn word_of(pc: u32, offset: i64, target: u32) -> u32 {
    let base = i64::from(pc) + i64::from(INST_BYTES) + offset;
    i64::from(target).wrapping_sub(base) as u32
}

/// The words of all tables of the kernel: places in constant bank 2.
fn tables(lower: &Lower<'_>) -> Vec<(u32, u32)> {
    let code = lower.code;
    let mut words: BTreeSet<u32> = BTreeSet::new();
    for (pc, targets) in &code.links.branches {
        let jump = code.index_of(i64::from(*pc)).map(|at| &code.insts[at]);
        if let Some(offset) = jump.and_then(|jump| jump.target) {
            words.extend(targets.iter().map(|target| word_of(*pc, offset, *target)));
        }
    }
    let bank = (0_u32..).step_by(4).zip(code.links.literals.chunks_exact(4));
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
    bank.map(|(at, bytes)| (at, word(bytes))).filter(|(_, word)| words.contains(word)).collect()
}

/// A load of a word of a jump table, at `index` bytes from a place in constant bank 2. False: there
/// is no table there.
pub(super) fn table_word(lower: &mut Lower<'_>, i: &MachineInst, offset: i32, index: Var, d: Var) -> bool {
    let words = tables(lower);
    if words.is_empty() || words.len() > MAX_WAYS {
        return false;
    }
    let mut chosen = lower.unknown(i, Class::W32, Reason::Constant);
    for (at, word) in words {
        let (is_here, next) = (lower.f.var(Class::Pred), lower.f.var(Class::W32));
        let place = SrcOperand::imm(u64::from(at.wrapping_sub(offset as u32)));
        let op = Op::Cmp { cmp: Cmp::Eq, signed: false, wide: false, combine: Combine::And };
        lower.emit_always(i, op, &[SrcOperand::var(index), place, SrcOperand::imm(1)], &[is_here]);
        let word = SrcOperand::imm(u64::from(word));
        lower.emit_always(i, Op::Sel, &[word, chosen, SrcOperand::var(is_here)], &[next]);
        chosen = SrcOperand::var(next);
    }
    lower.emit(i, Op::Mov, &[chosen], &[d]);
    true
}

/// The jump by a loaded word to these blocks, which begin at these instructions.
pub(super) fn jump(lower: &mut Lower<'_>, i: &MachineInst, targets: &[(usize, BlockId)]) -> Option<Term> {
    let (known, offset) = (lower.code.links.branches.contains_key(&i.pc), i.target?);
    if !known || targets.len() > MAX_WAYS {
        return None;
    }
    let insts = lower.code.insts;
    let ways: Vec<_> = targets.iter().map(|(at, block)| (word_of(i.pc, offset, insts[*at].pc), *block)).collect();
    let number = lower.word(i, i.src.first()?, 0);
    let number = SrcOperand { prefix: crate::ir::Prefix::None, ..number };
    chain(&mut lower.f, number, &ways, i.pc).map(Term::Jump)
}
