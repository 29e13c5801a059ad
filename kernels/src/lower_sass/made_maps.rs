//! Tensor maps that a kernel makes, in machine code.
//!
//! Owns how `tensormap.replace` and `tensormap.cp_fenceproxy` look there (seen in code of `nvcc`
//! for sm_90a): the address of a tensor is stored to shared memory as 8 bytes, and each lane of a
//! warp loads 4 bytes of the map and exchanges them with those in global memory, for nothing in
//! return. Before that, one thread puts the other fields in (loads and stores of words that another
//! one has filled with zeros). What a map is made for is decided by the value graph.

use super::{Code, Lower};
use crate::ir::{AccessKind, Addr, Class, MapStep, Mem, MemSpace, Op, Reason, SrcOperand, Var};
use crate::lower_sass::memory_access::global_address;
use device_code::arch::Generation;
use device_code::sass::{self, AddressSpace, AtomOp, MachineInst, MemEffect, Opcode, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Registers that hold words of shared memory, and where they were loaded from.
#[derive(Default)]
pub(super) struct LoadedWords(HashMap<u8, SmallVec<[SrcOperand; 4]>>);

impl LoadedWords {
    /// A block ends.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

/// Whether a kernel makes maps.
pub(super) fn makes_maps(code: &Code<'_>) -> bool {
    code.insts.iter().any(|i| matches!(i.op, Opcode::TensorCopy { .. }))
        && code.insts.iter().any(|i| word_put(i).is_some())
}

/// The register whose word an instruction exchanges with one in global memory, for nothing in
/// return.
fn word_put(i: &MachineInst) -> Option<u8> {
    let (Opcode::Atom { op: AtomOp::Exch, .. }, [m], [from]) = (i.op, &i.mem[..], &i.src[..]) else { return None };
    let (Value::Reg(from), None) = (from.value, i.defs().next()) else { return None };
    (m.space == AddressSpace::Global && m.bytes == 4 && from.0 != 255).then_some(from.0)
}

/// Whether the words of maps are followed: their layout is known of compute capability 9.x.
pub(super) fn follows_words(code: &Code<'_>) -> bool {
    code.generation == Generation::Hopper && makes_maps(code)
}

/// Notes which words of shared memory an instruction writes, and which word it exchanges.
pub(super) fn note_words(lower: &mut Lower<'_>, i: &MachineInst) {
    if let (Some(word), Some(m)) = (word_put(i), i.mem.first()) {
        let addr = global_address(lower, i, m);
        let mem = Mem { space: MemSpace::Map(MapStep::Word), kind: AccessKind::Write, bytes: 4, addr };
        lower.emit(i, Op::Mem(mem), &[SrcOperand::var(Var(u32::from(word)))], &[]);
    }
    for m in i.mem.iter().filter(|m| matches!(m.access, MemEffect::Write | MemEffect::Atomic)) {
        match m.space {
            AddressSpace::Shared if m.bytes > 0 => {
                let words: SmallVec<[SrcOperand; 4]> = match i.op {
                    Opcode::Store { ty } if ty.bytes() >= 4 => {
                        (0..ty.regs()).map(|k| lower.word(i, &i.src[0], k)).collect()
                    }
                    _ => SmallVec::new(),
                };
                let addr = Addr::Sum(address(lower, i, m).into_iter().collect(), 0);
                let space = MemSpace::Map(MapStep::Store);
                let mem = Mem { space, kind: AccessKind::Write, bytes: u32::from(m.bytes), addr };
                lower.emit(i, Op::Mem(mem), &words, &[]);
            }
            AddressSpace::Shared | AddressSpace::RemoteShared | AddressSpace::Generic => any_word(lower, i),
            _ => {}
        }
    }
}

/// An instruction that may write any word of shared memory.
pub(super) fn any_word(lower: &mut Lower<'_>, i: &MachineInst) {
    let addr = Addr::Unknown(Reason::Shared);
    let mem = Mem { space: MemSpace::Map(MapStep::Store), kind: AccessKind::Write, bytes: 4, addr };
    lower.emit(i, Op::Mem(mem), &[], &[]);
}

/// A load of whole words of shared memory; `false`: it is none.
pub(super) fn load_words(lower: &mut Lower<'_>, i: &MachineInst) -> bool {
    let (Opcode::Load { ty }, [m]) = (i.op, &i.mem[..]) else { return false };
    if m.space != AddressSpace::Shared || ty.bytes() < 4 || !i.psrc[0].always() {
        return false;
    }
    let addr = Addr::Sum(address(lower, i, m).into_iter().collect(), 0);
    let words: SmallVec<[Var; 4]> = (0..m.bytes / 4).map(|k| lower.dst(i, k as u8)).collect();
    let space = MemSpace::Map(MapStep::Load);
    let mem = Mem { space, kind: AccessKind::Read, bytes: u32::from(m.bytes), addr };
    lower.emit(i, Op::Mem(mem), &[], &words);
    true
}

/// Notes what an instruction does to maps.
pub(super) fn note(lower: &mut Lower<'_>, i: &MachineInst) {
    if let (Some(from), Some(m)) = (word_put(i).and_then(|word| lower.loaded.0.get(&word).cloned()), i.mem.first()) {
        let addr = global_address(lower, i, m);
        step(lower, i, MapStep::Copy, addr, &from);
    }
    for run in i.defs().filter(|run| run.file == sass::File::R) {
        run.numbers().for_each(|n| drop(lower.loaded.0.remove(&n)));
    }
    let [m] = &i.mem[..] else { return };
    if m.space != AddressSpace::Shared {
        return;
    }
    match (i.op, m.access, m.bytes) {
        (Opcode::Store { .. }, MemEffect::Write, 8) => {
            let parts = address(lower, i, m);
            let tensor = lower.src(i, &sass::InstOperand { regs: 2, ..i.src[0] });
            step(lower, i, MapStep::Shared, Addr::Sum(parts.into_iter().collect(), 0), &[tensor]);
        }
        (Opcode::Load { .. }, MemEffect::Read, 4) if i.guard.always() => {
            let Some(to) = i.defs().next().filter(|run| run.file == sass::File::R) else { return };
            let parts = address(lower, i, m);
            lower.loaded.0.insert(to.first, parts);
        }
        _ => {}
    }
}

fn step(lower: &mut Lower<'_>, i: &MachineInst, step: MapStep, addr: Addr, srcs: &[SrcOperand]) {
    let mem = Mem { space: MemSpace::Map(step), kind: AccessKind::Write, bytes: 8, addr };
    lower.emit(i, Op::Mem(mem), srcs, &[]);
}

/// The terms of an address in shared memory, as they are now.
fn address(lower: &mut Lower<'_>, i: &MachineInst, m: &sass::MemOperand) -> SmallVec<[SrcOperand; 4]> {
    let mut parts: SmallVec<[SrcOperand; 4]> = SmallVec::new();
    let registers = [(Lower::reg(m.base.0), m.scale.trailing_zeros()), (m.ubase.and_then(|u| Lower::ureg(u.0)), 0)];
    for (register, shift) in registers {
        let Some(register) = register else { continue };
        let now = lower.f.var(Class::W32);
        let shift = SrcOperand::imm(u64::from(shift));
        lower.emit_always(i, Op::Shl, &[SrcOperand::var(register), shift], &[now]);
        parts.push(SrcOperand::var(now));
    }
    parts.push(SrcOperand::imm(m.offset as u64 & 0xffff_ffff));
    parts
}
