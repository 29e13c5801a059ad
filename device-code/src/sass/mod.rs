//! SASS, the machine code of NVIDIA GPUs sm_70 to sm_121: words of 128 bits to [`MachineInst`]s.
//!
//! Owns the instruction set: `opcode`, `operand` and `modifier` (the types), `inst` (one
//! instruction), `decode` (from bits) and `text` (to text). Covers what moves addresses,
//! predicates, uniform registers, control flow and memory; of the other instructions it knows the
//! registers that they write. The encodings were measured with `nvdisasm` and are compared with it
//! by tests. Does not know control-flow graphs (`lower_sass`) or values (`ranges`).

pub(crate) mod arithmetic;
pub(crate) mod inst;
pub(crate) mod modifier;
pub(crate) mod opcode;
pub(crate) mod operand;

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
