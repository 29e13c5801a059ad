//! Flags in shared memory: loads in loops that nothing but what they load ends.
//!
//! Accesses to shared memory carry no strength in machine code: of a `volatile` or relaxed access
//! the assembler makes what it makes of a plain one. A load that is polled is no plain one, though:
//! a compiler would have moved it out of the loop. Owns which loads those are; what they mean to
//! others is the detector's matter.

use device_code::arch::Generation;
use device_code::sass::{
    AddressSpace, File, Flow, INST_BYTES, MachineInst, MemEffect, MemOperand, Opcode, OtherKind, decode,
};

/// Most instructions of such a loop, and of what stands before it: a compiler may have made the
/// first turn apart.
const MOST: usize = 32;

/// Low 12 bits of LDS and of BRA.
const LOAD_SHARED: u16 = 0x984;
const BRANCH: u16 = 0x947;

/// The offsets in a section of loads that are polled.
pub(in crate::compile_sass) fn polled(generation: Generation, code: &[u8]) -> Vec<u32> {
    let words: Vec<u128> = code
        .chunks_exact(INST_BYTES as usize)
        .map(|word| u128::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect();
    let is = |at: usize, opcode: u16| words[at] as u16 & 0xfff == opcode;
    let inst = |at: usize| decode(generation, words[at], at as u32 * INST_BYTES);
    let mut found = Vec::new();
    let mut last_load = None;
    for at in 0..words.len() {
        if is(at, LOAD_SHARED) {
            last_load = Some(at);
        }
        let (Some(load), true) = (last_load, is(at, BRANCH)) else { continue };
        let Flow::Branch(target) = inst(at).flow() else { continue };
        let Ok(first) = usize::try_from(target / i64::from(INST_BYTES)) else { continue };
        if first > load || at - first >= MOST {
            continue;
        }
        let body: Vec<MachineInst> = (first..=at).map(inst).collect();
        if !only_polls(&body) {
            continue;
        }
        let polls: Vec<MemOperand> = body.iter().filter_map(shared_load).collect();
        let before = (first.saturating_sub(MOST)..first).filter(|&before| is(before, LOAD_SHARED)).map(inst);
        let peeled = before.filter(|inst| shared_load(inst).is_some_and(|of| polls.iter().any(|poll| same(poll, &of))));
        let inside = body.iter().filter(|inst| shared_load(inst).is_some());
        found.extend(peeled.map(|inst| inst.pc).chain(inside.map(|inst| inst.pc)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn shared_load(inst: &MachineInst) -> Option<MemOperand> {
    let of = inst.mem.first().filter(|of| of.space == AddressSpace::Shared && of.access == MemEffect::Read)?;
    matches!(inst.op, Opcode::Load { .. }).then_some(*of)
}

fn same(a: &MemOperand, b: &MemOperand) -> bool {
    (a.base, a.ubase, a.offset, a.scale) == (b.base, b.ubase, b.offset, b.scale)
}

/// Whether the instructions, of which the last one leads back to the first, change nothing and hand
/// nothing to their next turn, so that only memory ends them.
fn only_polls(body: &[MachineInst]) -> bool {
    let end = body.last().map_or(0, |inst| inst.pc);
    let leaves = |inst: &MachineInst| match inst.flow() {
        Flow::Next | Flow::Exit => true,
        Flow::Branch(target) => inst.pc == end || target > i64::from(end),
        _ => false,
    };
    let writes = |inst: &MachineInst| inst.mem.iter().any(|of| of.access != MemEffect::Read);
    // Where threads meet in the loop, a plain load sees something new.
    let meets = |inst: &MachineInst| matches!(inst.op, Opcode::Unknown | Opcode::Other(OtherKind::Barrier { .. }));
    if !body.iter().all(|inst| leaves(inst) && !writes(inst) && !meets(inst)) {
        return false;
    }
    // What is read before it is written comes from outside, or from the turn before.
    let (mut early, mut early_predicates) = (Vec::new(), (0, 0));
    let (mut written, mut written_predicates): (Vec<(File, u8)>, _) = (Vec::new(), (0, 0));
    for inst in body {
        let used = inst.uses().flat_map(|run| run.numbers().map(move |number| (run.file, number)));
        early.extend(used.filter(|register| !written.contains(register)));
        let read = inst.pred_reads();
        early_predicates.0 |= read.0 & !written_predicates.0;
        early_predicates.1 |= read.1 & !written_predicates.1;
        // Under a guard the old value may stay.
        let whole = inst.guard.always();
        let defined = inst.defs().flat_map(|run| run.numbers().map(move |number| (run.file, number)));
        if whole {
            written.extend(defined);
            let made = inst.pred_writes();
            written_predicates = (written_predicates.0 | made.0, written_predicates.1 | made.1);
        } else {
            early.extend(defined);
        }
    }
    let made = body.iter().fold((0, 0), |all, inst| {
        let made = inst.pred_writes();
        (all.0 | made.0, all.1 | made.1)
    });
    let changes = |&(file, number): &(File, u8)| body.iter().any(|inst| inst.may_write(file, number));
    !early.iter().any(changes) && early_predicates.0 & made.0 == 0 && early_predicates.1 & made.1 == 0
}
