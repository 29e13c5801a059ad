//! From words to instructions: dispatch on (generation, opcode), families in `alu`, `memory`, `flow`, `effects`.

use super::inst::Inst;
use super::op::Op;
use crate::arch::Generation;

/// See [`super::decode`].
pub(super) fn decode(_arch: Generation, word: u128, pc: u32) -> Inst {
    Inst::new(pc, word as u16 & 0xfff, Op::Unknown)
}
