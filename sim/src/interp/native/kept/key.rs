//! The name of a program's file: a hash of all that its code depends on. These are the program as
//! the interpreter has it (instructions, constants, tables), the addresses of its variables among
//! them; this library, by the build id that the linker made of its bytes; and the processor's
//! features with the way of making code. So a file is never out of date; at worst nobody asks for
//! it again.

use std::hash::{Hash, Hasher};

use twox_hash::XxHash3_128;

use crate::interp::native::compiler::Tools;
use crate::interp::native::outside::{distance_of, own_library};
use crate::interp::program::{Inst, Program};

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

/// A few numbers, one behind the other: those of one instruction. The way of [`Digest`] would take
/// as long as all the rest.
#[derive(Default)]
struct Few {
    words: [u64; 24],
    count: usize,
}

impl Few {
    fn put(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word;
        }
        self.count += 1;
    }
}

impl Hasher for Few {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            self.put(part.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.put(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.put(word);
    }

    fn write_isize(&mut self, word: isize) {
        self.put(word as u64);
    }

    fn finish(&self) -> u64 {
        self.words[0]
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
    let mut digest = Digest(Vec::with_capacity(160 * program.code.len() + 8 * program.constants.len() + 4096));
    (id, tools.description()).hash(&mut digest);
    content(program, &mut digest);
    Some(hash(&digest.0))
}

/// All of a program that compiled code is made of.
fn content(program: &Program, digest: &mut Digest) {
    let Program { code, constants, slots, calls, tables, reductions, functions, machine, .. } = program;
    for inst in code {
        instruction(inst, digest);
    }
    // The same in all lanes.
    constants.len().hash(digest);
    constants.iter().for_each(|row| row.0[0].hash(digest));
    (slots, calls, tables).hash(digest);
    reductions.iter().for_each(|&run| distance_of(run as usize).hash(digest));
    for function in functions {
        (function.entry, function.rows, function.preds, function.local).hash(digest);
        (&function.params, &function.returns, function.builtin.is_some()).hash(digest);
    }
    machine.as_ref().map(|machine| &machine.launch_words).hash(digest);
}

fn instruction(inst: &Inst, digest: &mut Digest) {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let mut few = Few::default();
    few.put(distance_of(inst.run as usize));
    few.put(pair(inst.guard.0, inst.d.0));
    few.put(pair(inst.a.0, inst.b.0));
    few.put(pair(inst.c.0, u32::from(inst.lane.is_some())));
    few.put(inst.x);
    few.put(pair(inst.y, inst.z));
    if let Some(op) = &inst.lane {
        few.put(distance_of(op.call as usize));
        let types = op.types.map(|ty| ty as u8);
        few.put(u64::from(u32::from_le_bytes(types)) | u64::from(op.operands) << 32);
        (op.outcome, op.sem).hash(&mut few);
    }
    // None is left out.
    assert!(few.count <= few.words.len());
    digest.0.push(few.count as u8);
    few.words[..few.count].iter().for_each(|word| digest.0.extend_from_slice(&word.to_le_bytes()));
}
