//! Family of barrier objects and of bulk and tensor copies as compute capability 9.0 has them:
//! SYNCS, UBLKCP, UBLKRED, UTMALDG, UTMASTG, UTMAREDG, and what commits and orders them. They
//! become the operations of PTX. (Fields were read off what ptxas 13.0 makes of each form of
//! `tests/measured/hopper.txt`.)
//!
//! Copies have their operands in uniform registers: each execution issues one, in the name of the
//! first lane. Code for lanes of their own goes round a loop with ELECT. Barrier objects have the
//! simulator's word in memory, which only these instructions touch; what they hand out as a state
//! has the hardware's fields, which code takes apart.

use device_code::arch::Generation;
use device_code::ptx::Type;
use device_code::sass::{AddressSpace, MachineInst, MemOperand, Opcode, Pred as MachinePred, PredSrc, UReg};

use crate::bulk_work::object::{COUNT, State};
use crate::compile::bulk::TILE_TYPES;
use crate::compile::function::Result;
use crate::compile_sass::control::{COMMIT, bits};
use crate::compile_sass::memory::load_store::address;
use crate::compile_sass::operands::SCRATCH;
use crate::compile_sass::translation::Translation;
use crate::exec::bulk::{self, mbarrier};
use crate::exec::control::{NO_SCOPE, PROXIES_GLOBAL, PROXIES_SHARED};
use crate::exec::load_store::{GENERIC, GLOBAL};
use crate::exec::per_lane::op1;
use crate::exec::tensor;
use crate::machine_module::SHARED_WINDOW;
use crate::operations::build;
use crate::program::{Pred, Slot, Update, UpdateOp};

const ARRIVE: u16 = 0x9a7;
const PHASE_CHECK: u16 = 0x5a7;
const EXCHANGE: u16 = 0x5b2;
const INVALIDATE: u16 = 0x9b1;
const COPIES_ARRIVE: u16 = 0x9b0;
const COPY: u16 = 0x3ba;
const REDUCE: u16 = 0x3bb;
const LOAD_TILE: [u16; 2] = [0x3b4, 0x5b4];
const STORE_TILE: u16 = 0x3b5;
const REDUCE_TILE: u16 = 0x3b6;
const PREFETCH_TILE: [u16; 3] = [0x3b8, 0x5b8, 0x9b9];
const FENCE: u16 = 0x3c6;
const SET_REGISTERS: u16 = 0x9c8;
const DEALLOC: u32 = 5;
const TRY_ALLOC: u32 = 6;

/// Units of 16 bytes, in the lower half of a register; the upper half has blocks.
const UNITS: u32 = 0xffff;

/// The state that an arrival returns: the arrivals of each phase in the low word, those that are
/// missing and the phase in the high one. Counts are negative.
fn state(word: u64) -> u64 {
    let State { expected, missing, phase, .. } = State::unpack(word);
    let negative = |count: u64| (COUNT + 1 - count) & COUNT;
    negative(expected) << 1 | negative(missing) << 43 | u64::from(phase != 0) << 63
}

/// Returns false when the instruction is of another family.
pub(in crate::compile_sass) fn pipelines(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    if t.generation != Generation::Hopper {
        return Ok(false);
    }
    match (i.op, i.opcode) {
        (Opcode::Mbarrier, ARRIVE) => arrive(i, t)?,
        (Opcode::Mbarrier, PHASE_CHECK) => {
            // The phase's parity is the top bit.
            let (operand, phase) = (t.source(i, 0)?, t.temporary());
            t.emit(op1(|a: u32| a >> 31).of([operand]).to(phase));
            let ((address, offset), p) = (object(i, t)?, t.pdst(i, 0));
            t.emit(build::MbarrierTest { address, phase, p, offset, space: GENERIC, parity: 1 });
        }
        // An initial word: the count is in its low half, negative.
        (Opcode::Mbarrier, EXCHANGE) if i.dst.is_none_or(|run| run.is_dropped()) => {
            let (word, number) = (t.source(i, 0)?, t.temporary());
            t.emit(op1(|a: u32| (COUNT as u32 + 1 - (a >> 1 & COUNT as u32)) & COUNT as u32).of([word]).to(number));
            operate(i, number, SCRATCH, mbarrier::INIT, t)?;
        }
        (Opcode::Mbarrier, INVALIDATE) => t.emit(build::Nothing {}),
        // ARRIVES.LDGSTSBAR.64: with .ARVCNT an arrival, with .TRANSCNT what A0T1 has counted.
        (Opcode::Mbarrier, COPIES_ARRIVE) if bits(72, 77, t) == 0xa && bits(70, 72, t) != 0 => {
            let number = t.constant(u64::from(bits(70, 71, t)));
            operate(i, number, SCRATCH, mbarrier::COPIES_ARRIVE, t)?;
        }
        (Opcode::Bulk, COPY) => copy(i, t)?,
        (Opcode::Bulk, REDUCE) => reduce(i, t)?,
        (Opcode::BulkPrefetch, _) => t.emit(build::Nothing {}),
        (Opcode::TensorCopy { .. }, opcode) if PREFETCH_TILE.contains(&opcode) => t.emit(build::Nothing {}),
        (Opcode::TensorCopy { dims: 1..=5, .. }, _) => tile(i, t)?,
        // FENCE.VIEW.ASYNC of shared memory, or of global memory.
        (_, FENCE) if bits(73, 90, t) == 0 => {
            let proxies = if bits(72, 73, t) == 1 { PROXIES_GLOBAL } else { PROXIES_SHARED };
            t.emit(build::Fence { scope: NO_SCOPE | proxies });
        }
        (_, COMMIT) => t.emit(build::CommitBulk {}),
        (_, SET_REGISTERS) if matches!(bits(72, 76, t), DEALLOC | TRY_ALLOC) => set_registers(t),
        _ => return Ok(false),
    }
    Ok(true)
}

/// USETMAXREG with the block's pool: the count at 32..41. TRY_ALLOC sets a predicate, and code goes
/// round until it is true; here it waits as PTX's instruction does, so that who waits is known.
fn set_registers(t: &mut Translation<'_>) {
    let (count, more) = (bits(32, 41, t), bits(72, 76, t) == TRY_ALLOC);
    t.emit(build::SetRegisters { count, more: u32::from(more) });
    let got = PredSrc { pred: MachinePred { num: bits(81, 84, t) as u8, uniform: true }, not: false };
    let d = t.psrc(got);
    if more && d != Pred::ALWAYS {
        t.emit(build::Predicate { a: Pred::ALWAYS, b: Pred::ALWAYS, d, function: 0 });
    }
}

/// The address of a barrier object, which may be another block's, and an offset.
fn object(i: &MachineInst, t: &mut Translation<'_>) -> Result<(Slot, u64)> {
    let Some(place) = i.mem.first().copied() else { return t.unsupported(i) };
    let (address, offset, _) = address(i, &place, t)?;
    Ok((address, offset.wrapping_add(SHARED_WINDOW)))
}

fn operate(i: &MachineInst, number: Slot, d: Slot, what: u32, t: &mut Translation<'_>) -> Result<()> {
    let (address, offset) = object(i, t)?;
    t.emit(build::MbarrierOperate { address, number, d, offset, space: GENERIC, what });
    Ok(())
}

/// SYNCS.ARRIVE: at 84..87 how many arrivals and bytes, where R is the register; bit 75 is OPTOUT,
/// bit 73 TMASK: then the low word of the result is a mask of lanes that come before, of which the
/// simulator has none.
fn arrive(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    let (form, leaves) = (bits(84, 87, t), bits(75, 76, t) == 1);
    let (register, one) = (t.source(i, 0)?, t.constant(1));
    let (what, number) = match (form, leaves) {
        (0, false) => (mbarrier::ARRIVE_EXPECT, register),
        (0, true) => (mbarrier::ARRIVE_DROP_EXPECT, register),
        (1, false) => (mbarrier::ARRIVE, one),
        (1, true) => (mbarrier::ARRIVE_DROP, one),
        // A0T1: a byte for copies that are there already, until an ARRIVES of .TRANSCNT.
        (2, false) => {
            t.emit(build::Nothing {});
            return Ok(());
        }
        (3, false) => (mbarrier::EXPECT, register),
        (4, false) => (mbarrier::COMPLETE, register),
        (5, false) => (mbarrier::ARRIVE, register),
        (5, true) => (mbarrier::ARRIVE_DROP, register),
        _ => return t.unsupported(i),
    };
    if i.dst.is_none_or(|run| run.is_dropped()) {
        return operate(i, number, SCRATCH, what, t);
    }
    let (word, made) = (t.temporary(), t.temporary());
    operate(i, number, word, what, t)?;
    if bits(73, 74, t) == 1 {
        t.emit(op1(|word: u64| state(word) >> 32 << 32).of([word]).to(made));
    } else {
        t.emit(op1(state).of([word]).to(made));
    }
    t.split(i, made);
    Ok(())
}

/// The generic address of an offset in shared memory, in a uniform register.
fn shared(register: UReg, t: &mut Translation<'_>) -> Slot {
    let (offset, d) = (t.ureg(register), t.temporary());
    t.emit(op1(|a: u32| SHARED_WINDOW + u64::from(a)).of([offset]).to(d));
    d
}

fn global(register: UReg, t: &mut Translation<'_>) -> Slot {
    let (low, high) = (t.ureg(register), t.ureg(UReg(register.0.saturating_add(1))));
    t.joined(low, high)
}

/// The uniform register of a memory operand, and the one behind it.
fn registers(i: &MachineInst, m: &MemOperand, t: &Translation<'_>) -> Result<[UReg; 2]> {
    match m.ubase {
        Some(first) => Ok([first, UReg(first.0.saturating_add(1))]),
        None => t.unsupported(i),
    }
}

/// Bytes and blocks of a copy.
fn size_and_blocks(i: &MachineInst, t: &mut Translation<'_>) -> Result<(Slot, Slot)> {
    let (word, size) = (t.source(i, 0)?, t.temporary());
    t.emit(op1(|a: u32| (a & UNITS) << 4).of([word]).to(size));
    Ok((size, blocks(i, t)?))
}

/// The blocks of a multicast copy (bit 75).
fn blocks(i: &MachineInst, t: &mut Translation<'_>) -> Result<Slot> {
    if bits(75, 76, t) == 0 {
        return Ok(Slot::NONE);
    }
    let (word, blocks) = (t.source(i, 0)?, t.temporary());
    t.emit(op1(|a: u32| a >> 16).of([word]).to(blocks));
    Ok(blocks)
}

/// UBLKCP: bit 73 says that it goes to shared memory, bit 74 that it comes from there.
fn copy(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    let [to_operand, from_operand] = [&i.mem[0], &i.mem[1]];
    let ([to, behind], [from, _]) = (registers(i, to_operand, t)?, registers(i, from_operand, t)?);
    let direction = match (bits(73, 74, t), bits(74, 75, t)) {
        (1, 0) => bulk::INWARD,
        (1, 1) => bulk::ACROSS,
        (0, 1) => bulk::OUTWARD,
        _ => return t.unsupported(i),
    };
    let (size, blocks) = size_and_blocks(i, t)?;
    let (to, barrier) = match direction {
        bulk::OUTWARD => (global(to, t), None),
        _ => (shared(to, t), Some(shared(behind, t))),
    };
    let from = if direction == bulk::INWARD { global(from, t) } else { shared(from, t) };
    t.emit(build::BulkCopy { to, from, size, blocks, barrier, direction });
    Ok(())
}

/// What a reduction does, at 87..91.
fn update_op(t: &Translation<'_>) -> Option<UpdateOp> {
    use UpdateOp::{Add, And, Dec, Inc, Max, Min, Or, Xor};
    [Add, Min, Max, Inc, Dec, And, Or, Xor].get(bits(87, 91, t) as usize).copied()
}

/// UBLKRED: the type of elements at 81..85.
fn reduce(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    let ([to, behind], [from, _]) = (registers(i, &i.mem[0], t)?, registers(i, &i.mem[1], t)?);
    let ty = match bits(81, 85, t) {
        0 => Type::U32,
        1 => Type::S32,
        2 => Type::U64,
        3 => Type::S64,
        4 => Type::F16,
        5 => Type::F32,
        7 => Type::F64,
        8 => Type::Bf16,
        _ => return t.unsupported(i),
    };
    // Bits have the types of numbers.
    let update = update_op(t).and_then(|op| {
        let bitwise = matches!(op, UpdateOp::And | UpdateOp::Or | UpdateOp::Xor);
        let ty = match ty {
            Type::U32 if bitwise => Type::B32,
            Type::U64 if bitwise => Type::B64,
            ty => ty,
        };
        Some(Update { op, ty }).filter(|update| update.exists())
    });
    let (Some(update), 1) = (update, bits(74, 75, t)) else { return t.unsupported(i) };
    let (size, _) = size_and_blocks(i, t)?;
    let (to, barrier, space) = match bits(73, 74, t) {
        1 => (shared(to, t), shared(behind, t), GENERIC),
        _ => (global(to, t), Slot::NONE, GLOBAL),
    };
    let from = shared(from, t);
    let (element, operand) = (t.temporary(), t.temporary());
    let reduction = t.program.reductions.len() as u32;
    t.program.reductions.push(Some(update));
    t.emit(build::BulkReduce { to, from, size, barrier, element, operand, reduction, space, bytes: ty.size() });
    Ok(())
}

/// UTMALDG, UTMASTG, UTMAREDG: behind the address in shared memory is the barrier of a load, then
/// the coordinates. Offsets into an image share the lower half of a register.
fn tile(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    let Opcode::TensorCopy { dims, image } = i.op else { return t.unsupported(i) };
    let find = |space| i.mem.iter().find(|m| m.space == space);
    let (Some(place), Some(map)) = (find(AddressSpace::Shared), find(AddressSpace::TensorMap)) else {
        return t.unsupported(i);
    };
    let ([first, behind], [map, _]) = (registers(i, place, t)?, registers(i, map, t)?);
    let blocks = blocks(i, t)?;
    let loads = LOAD_TILE.contains(&i.opcode);
    let what = match i.opcode {
        _ if loads && blocks != Slot::NONE => tensor::LOAD_TO_BLOCKS,
        _ if loads => tensor::LOAD,
        STORE_TILE => tensor::STORE,
        REDUCE_TILE => tensor::REDUCE,
        _ => return t.unsupported(i),
    };
    let skip = if loads { 2 } else { 1 };
    let zero = t.constant(0);
    let mut coordinates: Vec<Slot> = (0..dims).map(|axis| t.ureg(UReg(first.0 + skip + axis))).collect();
    coordinates.resize(5, zero);
    coordinates.push(if blocks == Slot::NONE { zero } else { blocks });
    let mut offsets = Vec::new();
    if loads && image {
        let (word, low, middle, high) = (t.source(i, 0)?, t.temporary(), t.temporary(), t.temporary());
        match dims {
            3 => t.emit(op1(|a: u32| a & 0xffff).of([word]).to(low)),
            4 => {
                t.emit(op1(|a: u32| a & 0xff).of([word]).to(low));
                t.emit(op1(|a: u32| a >> 8 & 0xff).of([word]).to(middle));
            }
            5 => {
                t.emit(op1(|a: u32| a & 31).of([word]).to(low));
                t.emit(op1(|a: u32| a >> 5 & 31).of([word]).to(middle));
                t.emit(op1(|a: u32| a >> 10 & 31).of([word]).to(high));
            }
            _ => return t.unsupported(i),
        }
        offsets.extend([low, middle, high].into_iter().take(usize::from(dims) - 2));
    }
    offsets.resize(3, zero);
    coordinates.extend(offsets);
    let (map, shared_at) = (global(map, t), shared(first, t));
    let barrier = if loads { shared(behind, t) } else { Slot::NONE };
    let mut reduction = 0;
    if what == tensor::REDUCE {
        // The type of the elements is the map's: an operation for each.
        let Some(op) = update_op(t) else { return t.unsupported(i) };
        reduction = t.program.reductions.len() as u32;
        let update = |ty| Some(Update { op, ty }).filter(|update| update.exists());
        t.program.reductions.extend(TILE_TYPES.map(update));
    }
    let (element, operand) = (t.temporary(), t.temporary());
    let image = u32::from(image);
    t.emit(build::TensorTile {
        map,
        shared: shared_at,
        barrier,
        coordinates,
        element,
        operand,
        what,
        image,
        reduction,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_the_fields_that_code_takes_apart() {
        for (expected, missing, phase) in [(1, 1, 0), (200, 3, 1), ((1 << 20) - 1, 0, 1)] {
            let phase_bit = phase << 62;
            let word = State { expected, missing, bytes: -16, phase: phase_bit }.pack_open();
            let made = state(word);
            // As ptxas has `mbarrier.pending_count` and `mbarrier.test_wait`.
            assert_eq!((0x10_0000 - (made >> 32 >> 11 & 0xf_ffff)) & 0xf_ffff, missing);
            assert_eq!(made >> 63, phase);
            // And as it has `mbarrier.init`.
            assert_eq!(made & 0xffff_ffff, (0x10_0000 - expected) << 1 & 0x1f_ffff);
        }
    }
}
