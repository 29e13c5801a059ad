//! The name of a program's file: a hash of all that its code depends on. These are the program as
//! the interpreter has it (instructions, constants, tables), the addresses of its variables among
//! them; this library, by the build id that the linker made of its bytes; and the processor's
//! features with the way of making code. So a file is never out of date; at worst nobody asks for
//! it again.

use std::hash::{Hash, Hasher};

use twox_hash::XxHash3_128;

use crate::interp::native::compiler::Tools;
use crate::interp::native::outside::{distance_of, own_library};
use crate::interp::program::Program;

/// Collects what is hashed.
#[derive(Default)]
struct Digest(Vec<u8>);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        XxHash3_128::oneshot(&self.0) as u64
    }
}

/// A hash that is wide enough that no two share it by chance.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

/// The name of a program's file. None where the linker has given this library no build id.
pub(super) fn of(program: &Program, tools: &Tools) -> Option<u128> {
    let id = &own_library().build_id;
    if id.is_empty() {
        return None;
    }
    let mut digest = Digest(Vec::with_capacity(96 * program.code.len() + 256 * program.constants.len() + 4096));
    (id, tools.describe()).hash(&mut digest);
    content(program, &mut digest);
    Some(hash(&digest.0))
}

/// All of a program that compiled code is made of.
fn content(program: &Program, digest: &mut Digest) {
    let Program { code, constants, slots, calls, tables, functions, machine, .. } = program;
    for inst in code {
        distance_of(inst.run as usize).hash(digest);
        if let Some(op) = &inst.lane {
            (distance_of(op.call as usize), op.operands, op.types, op.outcome, op.sem).hash(digest);
        }
        (inst.lane.is_some(), inst.guard, inst.d, inst.a, inst.b, inst.c).hash(digest);
        (inst.x, inst.y, inst.z).hash(digest);
    }
    constants.len().hash(digest);
    constants.iter().for_each(|row| row.0.hash(digest));
    (slots, calls, tables).hash(digest);
    for function in functions {
        (function.entry, function.rows, function.preds, function.local).hash(digest);
        (&function.params, &function.returns, function.builtin.is_some()).hash(digest);
    }
    machine.as_ref().map(|machine| &machine.launch_words).hash(digest);
}
