//! SASS, the machine code of NVIDIA GPUs sm_70 to sm_121: words of 128 bits to [`MachineInst`]s.
//!
//! Covers what moves addresses, predicates, uniform registers, control flow and memory; for the
//! rest the registers that an instruction writes. The encodings were measured with `nvdisasm` and
//! are compared with it by tests. No control-flow graph and no values: that is `ranges`' work.

pub mod inst;
pub mod modifier;
pub mod opcode;
pub mod operand;

pub use inst::{Flow, INST_BYTES, MachineInst};
pub use opcode::*;
pub use operand::*;

use crate::arch::Generation;

mod decode;
mod text;

/// Decodes one instruction word at byte offset `pc` of its section. Never fails: what is not known
/// becomes [`Opcode::Unknown`] with everything it could write.
#[must_use]
pub fn decode(arch: Generation, word: u128, pc: u32) -> MachineInst {
    decode::decode(arch, word, pc)
}

/// Decodes a whole section (or function) whose first byte has offset `base`. A tail shorter than an
/// instruction is ignored.
#[must_use]
pub fn decode_all(arch: Generation, code: &[u8], base: u32) -> Vec<MachineInst> {
    let mut pc = base;
    let mut list = Vec::with_capacity(code.len() / INST_BYTES as usize);
    for chunk in code.chunks_exact(INST_BYTES as usize) {
        let mut bytes = [0u8; 16];
        bytes.copy_from_slice(chunk);
        list.push(decode(arch, u128::from_le_bytes(bytes), pc));
        // A damaged container may place code at the end of the address space.
        pc = pc.wrapping_add(INST_BYTES);
    }
    list
}
