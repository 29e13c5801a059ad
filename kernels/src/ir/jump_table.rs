//! Jumps by a table, as branches: which way a launch takes is decided like any other condition.
//!
//! Owns the chain of comparisons that stands for the table.

use super::{Block, BlockId, Class, Cmp, Combine, Inst, KernelIr, Op, SrcOperand, Term};

/// Ways of a jump that is taken apart. Larger tables stay jumps to any of their places.
pub(crate) const MAX_WAYS: usize = 256;

/// A block that goes on by a 32-bit number: to the block beside it in the list, and to the last one
/// by every other number. No ways: `None`.
pub(crate) fn chain(f: &mut KernelIr, number: SrcOperand, ways: &[(u32, BlockId)], at: u32) -> Option<BlockId> {
    let ((_, last), others) = ways.split_last()?;
    let mut next = *last;
    for (wanted, way) in others.iter().rev() {
        let cond = f.var(Class::Pred);
        let op = Op::Cmp { cmp: Cmp::Eq, signed: false, wide: false, combine: Combine::And };
        let srcs = [number, SrcOperand::imm(u64::from(*wanted)), SrcOperand::imm(1)];
        let compare = Inst { guard: None, op, srcs: srcs[..].into(), dsts: [cond][..].into(), at };
        let term = Term::Branch { cond: SrcOperand::var(cond), taken: Some(*way), fall: Some(next) };
        next = BlockId(f.blocks.len() as u32);
        f.blocks.push(Block { insts: vec![compare], term });
    }
    Some(next)
}
