//! Family of atomic operations on memory, and of barriers in shared memory as sm_80 has them: two
//! words that other instructions read and write too. The low one holds the arrivals that each phase
//! takes, negative, in 30 bits; the high one those that are still missing, negative, in 31 bits,
//! and above them the phase. (Read off what ptxas makes of `mbarrier.init`, `.arrive_drop`,
//! `.test_wait` and `.pending_count`.)

use crate::compile_sass::control::bits;
use crate::compile_sass::memory::load_store::{address, strength_of};
use device_code::ptx::Type;
use device_code::sass::{AtomOp, AtomTy, CasKind, InstOperand, MachineInst, MemOperand, Opcode};
use sim_races::Order;

use crate::compile::function::Result;
use crate::compile_sass::operands::SCRATCH;
use crate::compile_sass::translation::Translation;
use crate::exec::per_lane::op2;
use crate::exec::told::strength::{self, RELAXED};
use crate::operations::build;
use crate::program::{Pred, Slot, Update, UpdateOp, WideAccess};

const ARRIVES: u16 = 0x9b0;
/// Its fields at 72..77 that say so.
const LDGSTSBAR_64: u32 = 0xa;

/// The same type in PTX.
fn ptx_type(ty: AtomTy) -> Option<Type> {
    Some(match ty {
        AtomTy::U32 => Type::U32,
        AtomTy::S32 => Type::S32,
        AtomTy::U64 => Type::U64,
        AtomTy::S64 => Type::S64,
        AtomTy::F32Ftz | AtomTy::F32x2Ftz | AtomTy::F32x4Ftz => Type::F32,
        AtomTy::F64 => Type::F64,
        AtomTy::F16x2 | AtomTy::F16x4 | AtomTy::F16x8 => Type::F16x2,
        AtomTy::Bf16x2 | AtomTy::Bf16x4 | AtomTy::Bf16x8 => Type::Bf16x2,
        _ => return None,
    })
}

/// Words that are updated one by one.
fn elements(ty: AtomTy) -> u32 {
    match ty {
        AtomTy::F32x2Ftz | AtomTy::F16x4 | AtomTy::Bf16x4 => 2,
        AtomTy::F32x4Ftz | AtomTy::F16x8 | AtomTy::Bf16x8 => 4,
        _ => 1,
    }
}

/// An operation, as PTX has it.
pub(super) fn operation(op: AtomOp, ty: AtomTy) -> Option<Update> {
    let kind = match op {
        AtomOp::Add | AtomOp::PopcInc => UpdateOp::Add,
        AtomOp::Min => UpdateOp::Min,
        AtomOp::Max => UpdateOp::Max,
        AtomOp::Inc => UpdateOp::Inc,
        AtomOp::Dec => UpdateOp::Dec,
        AtomOp::And => UpdateOp::And,
        AtomOp::Or => UpdateOp::Or,
        AtomOp::Xor => UpdateOp::Xor,
        AtomOp::Exch => UpdateOp::Exchange,
        AtomOp::SafeAdd | AtomOp::Arrive => return None,
    };
    if ty == AtomTy::F32 {
        // Without `.FTZ`: the same in every memory.
        let update = Update { op: UpdateOp::AddEverywhere, ty: Type::F32 };
        return (op == AtomOp::Add).then_some(update);
    }
    let update = Update { op: kind, ty: ptx_type(ty)? };
    (if elements(ty) > 1 { update.has_vectors() } else { update.exists() }).then_some(update)
}

/// What an atomic operation is towards other threads. In shared memory it does not say.
fn atomic_strength(m: &MemOperand) -> u32 {
    strength_of(m).unwrap_or(RELAXED)
}

/// Returns false when the instruction is of another family.
pub(in crate::compile_sass) fn atomic(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::Atom { op: AtomOp::PopcInc, ty: AtomTy::U32 } => {
            // Each active lane adds one.
            let one = t.constant(1);
            update(i, AtomOp::Add, AtomTy::U32, [one, one], t)?;
        }
        Opcode::Atom { op: AtomOp::Arrive, ty: AtomTy::U64 } => arrive(i, strength::object(Order::BOTH), t)?,
        // ARRIVES.LDGSTSBAR.64: the lane's copies are finished when they are started.
        Opcode::Mbarrier if i.opcode == ARRIVES && bits(72, 77, t) == LDGSTSBAR_64 => {
            arrive(i, strength::COPIES_ARRIVE, t)?;
        }
        Opcode::Atom { op: AtomOp::Exch, ty: AtomTy::B128 } => {
            update_wide(i, WideAccess::Exchange, [&i.src[0], &i.src[0]], t)?;
        }
        Opcode::AtomCas { ty: AtomTy::B128, cast: CasKind::Cas } => {
            update_wide(i, WideAccess::CompareAndSwap, [&i.src[0], &i.src[1]], t)?;
        }
        Opcode::Atom { op, ty } | Opcode::Red { op, ty } if elements(ty) > 1 => update_elements(i, op, ty, t)?,
        Opcode::Atom { op, ty } | Opcode::Red { op, ty } => {
            let b = atom_operand(&i.src[0], ty, t)?;
            update(i, op, ty, [b, b], t)?;
        }
        Opcode::AtomCas { ty, cast } => compare_and_swap(i, ty, cast, t)?,
        Opcode::Qspc { .. } => {
            let d = t.pdst(i, 0);
            if i.dst.is_some_and(|run| !run.is_dropped()) || d == Pred::ALWAYS {
                return t.unsupported(i);
            }
            let (a, x, _) = address(i, &i.mem[0], t)?;
            // The space asked about, at 73..75: global, local, shared.
            let y = bits(73, 75, t);
            t.emit(build::IsInSpace { address: a, p: d, offset: x, space: y });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// One arrival of each lane; the barrier as it was is the result.
fn arrive(i: &MachineInst, strength: u32, t: &mut Translation<'_>) -> Result<()> {
    let (address, offset, space) = address(i, &i.mem[0], t)?;
    let returns = i.dst.is_some_and(|run| !run.is_dropped());
    let d = if returns { t.temporary() } else { SCRATCH };
    let update = Update { op: UpdateOp::Arrive, ty: Type::U64 };
    t.emit(build::Atomic { update, address, b: SCRATCH, c: SCRATCH, d, offset, space, strength });
    if returns {
        t.split(i, d);
    }
    Ok(())
}

fn atom_operand(operand: &InstOperand, ty: AtomTy, t: &mut Translation<'_>) -> Result<Slot> {
    if ty.regs() == 2 { t.pair(operand) } else { t.raw_word(operand, 0) }
}

fn update(i: &MachineInst, op: AtomOp, ty: AtomTy, [b, c]: [Slot; 2], t: &mut Translation<'_>) -> Result<()> {
    let Some(update) = operation(op, ty) else { return t.unsupported(i) };
    let (address, offset, space) = address(i, &i.mem[0], t)?;
    let returns = i.dst.is_some_and(|run| !run.is_dropped());
    let d = match (returns, ty.regs()) {
        (false, _) => SCRATCH,
        (true, 1) => t.dst(i, 0),
        (true, _) => t.temporary(),
    };
    let strength = atomic_strength(&i.mem[0]);
    t.emit(build::Atomic { update, address, b, c, d, offset, space, strength });
    if returns && ty.regs() == 2 {
        t.split(i, d);
    }
    done(i, t);
    Ok(())
}

/// An operation on 16 bytes.
fn update_wide(
    i: &MachineInst,
    access: WideAccess,
    operands: [&InstOperand; 2],
    t: &mut Translation<'_>,
) -> Result<()> {
    let (address, offset, space) = address(i, &i.mem[0], t)?;
    let old = [t.temporary(), t.temporary()];
    let mut values = [const { Vec::new() }; 2];
    for (operand, halves) in operands.into_iter().zip(&mut values) {
        for half in [0, 2] {
            let (low, high) = (t.raw_word(operand, half)?, t.raw_word(operand, half + 1)?);
            halves.push(t.joined(low, high));
        }
    }
    let [value, other] = values;
    let strength = match access {
        WideAccess::CompareAndSwap => strength::of_swap(atomic_strength(&i.mem[0])),
        _ => atomic_strength(&i.mem[0]),
    };
    t.emit(build::Wide { access, address, old: old.to_vec(), value, other, offset, space, strength });
    for (half, value) in [0, 2].into_iter().zip(old) {
        let (low, high) = (t.dst(i, half), t.dst(i, half + 1));
        t.halved(value, low, high);
    }
    done(i, t);
    Ok(())
}

/// An operation on several words beside each other.
fn update_elements(i: &MachineInst, op: AtomOp, ty: AtomTy, t: &mut Translation<'_>) -> Result<()> {
    let Some(update) = operation(op, ty) else { return t.unsupported(i) };
    let count = elements(ty);
    let (address, offset, space) = address(i, &i.mem[0], t)?;
    let d: Vec<Slot> = (0..count).map(|word| t.dst(i, word as u8)).collect();
    let mut b = Vec::new();
    for word in 0..count {
        b.push(t.raw_word(&i.src[0], word as u8)?);
    }
    let strength = atomic_strength(&i.mem[0]);
    t.emit(build::AtomicVector { update, address, d, b, offset, space, strength });
    done(i, t);
    Ok(())
}

/// The predicate that says that the operation was carried out: always.
fn done(i: &MachineInst, t: &mut Translation<'_>) {
    let d = t.pdst(i, 0);
    if d != Pred::ALWAYS {
        t.emit(build::Predicate { a: Pred::ALWAYS, b: Pred::ALWAYS, d, function: 0 });
    }
}

fn compare_and_swap(i: &MachineInst, ty: AtomTy, cast: CasKind, t: &mut Translation<'_>) -> Result<()> {
    if ty == AtomTy::B128 {
        return t.unsupported(i);
    }
    let kind = if ty.regs() == 2 { Type::U64 } else { Type::U32 };
    let update = Update { op: UpdateOp::Compare, ty: kind };
    let (b, c) = (atom_operand(&i.src[0], ty, t)?, atom_operand(&i.src[1], ty, t)?);
    let (address, offset, space) = address(i, &i.mem[0], t)?;
    let old = t.temporary();
    let strength = strength::of_swap(atomic_strength(&i.mem[0]));
    t.emit(build::Atomic { update, address, b, c, d: old, offset, space, strength });
    let result = if cast == CasKind::Cas {
        old
    } else {
        // A step of a retry loop asks only whether the swap was done.
        let d = t.temporary();
        t.emit(op2(|a: u64, b: u64| u64::from(a == b)).of([old, b]).to(d));
        d
    };
    t.split(i, result);
    done(i, t);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::exec::atomic::after_arrival;

    /// What ptxas writes for `mbarrier.init` with that number.
    fn init(count: u32) -> u64 {
        u64::from(0x4000_0000 - count) | u64::from(0x8000_0000 - count) << 32
    }

    #[test]
    fn the_last_arrival_begins_the_next_phase() {
        let phase = |barrier: u64| barrier >> 63;
        let pending = |barrier: u64| 0x8000_0000 - ((barrier >> 32) as u32 & 0x7fff_ffff);
        let mut barrier = init(3);
        for (after, missing) in [(0, 2), (0, 1), (1, 3), (1, 2), (1, 1), (0, 3)] {
            barrier = after_arrival(barrier);
            assert_eq!((phase(barrier), pending(barrier)), (after, missing), "{barrier:#x}");
        }
        assert_eq!(barrier, init(3));
        // ATOMS.POPC.INC of the low word: one fewer from the next phase on.
        let mut fewer = after_arrival(init(2) + 1);
        assert_eq!((phase(fewer), pending(fewer)), (0, 1));
        fewer = after_arrival(fewer);
        assert_eq!((phase(fewer), pending(fewer)), (1, 1));
    }
}
