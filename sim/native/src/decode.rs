//! What native code knows of each instruction: what it computes, and where control goes. Which
//! registers it reads and writes is in `effects`. An instruction that is not known here stops
//! native code, and the interpreter executes it. So nothing has to be known for right results.
//!
//! All answers come from the table of operations (`operations::table`).

use sim_exec::operations::operands;
pub(super) use sim_exec::program::{AtomKind, Kind};

use sim_exec::exec::{control, load_store};
use sim_exec::operations::{Then, Whole};
use sim_exec::program::{Inst, LaneOp, Operation, Pred, Program, Sem};

/// What an instruction is, for single lanes and packs.
pub(super) fn kind(inst: &Inst) -> Kind {
    if is_volatile_access(inst) { Kind::Stop } else { inst.op.kind() }
}

/// Whether what comes of an instruction that the interpreter executes for a lane depends on its
/// registers alone.
pub(super) fn is_pure(inst: &Inst) -> bool {
    inst.op.is_pure()
}

/// What an instruction is in a region of whole warps. Volatile accesses are as good as others
/// there: the whole warp executes one instruction, then the next.
pub(super) fn kind_of_warp(inst: &Inst) -> Kind {
    inst.op.kind()
}

/// Whether it is a volatile access. The warp executes these as one: programs of old count on it.
pub(super) fn is_volatile_access(inst: &Inst) -> bool {
    match inst.op {
        Operation::Load(_) => operands::Load::of(inst).strength() == load_store::VOLATILE,
        Operation::Store(_) => operands::Store::of(inst).strength() == load_store::VOLATILE,
        _ => false,
    }
}

/// Where control goes behind an instruction that stops native code: the next instruction, or
/// others. None: anywhere, or to an end.
pub(super) fn continues(program: &Program, inst: &Inst, pc: u32) -> Vec<u32> {
    match inst.op.then() {
        Then::Next => vec![pc + 1],
        Then::End | Then::Elsewhere if inst.guard != Pred::ALWAYS => vec![pc + 1],
        Then::End | Then::Elsewhere => Vec::new(),
        Then::Table => {
            let mut targets =
                program.tables.get(operands::BranchTable::of(inst).table() as usize).cloned().unwrap_or_default();
            targets.push(pc + 1);
            targets
        }
        Then::Jump => vec![operands::BranchIfApart::of(inst).target(), pc + 1],
    }
}

/// True for a barrier that gives no result.
pub(super) fn writes_nothing(inst: &Inst) -> bool {
    matches!(inst.op, Operation::Barrier) && operands::Barrier::of(inst).what() == sim_exec::block::BARRIER_SYNC
}

/// True for an instruction of a whole warp behind which it mostly goes on at the next one.
pub(super) fn passes(inst: &Inst) -> bool {
    is_volatile_access(inst) || inst.op.whole() != Whole::Stops
}

/// True for an instruction behind which its lanes have ended.
pub(super) fn ends(inst: &Inst) -> bool {
    inst.op.then() == Then::End
}

/// True when a NaN that it results in is always the one that the hardware makes.
pub(super) fn gives_hardware_nan(op: &LaneOp) -> bool {
    matches!(
        op.sem,
        Sem::FloatAdd
            | Sem::FloatSub
            | Sem::FloatMul
            | Sem::FloatFma
            | Sem::FlagAdd
            | Sem::FlagSub
            | Sem::FlagMul
            | Sem::FlagFma
            | Sem::FlagDiv
            | Sem::FlagSqrt
            | Sem::FlagNeg
            | Sem::FlagAbs
            | Sem::FlagMin
            | Sem::FlagMax
    )
}

/// Whether what it writes may have more than 32 bits.
pub(super) fn may_be_wide(inst: &Inst) -> bool {
    !inst.is_narrow()
}

/// Whether a special register has 64 bits.
pub(super) fn wide_special(inst: &Inst) -> bool {
    use control::Special;
    let number = operands::Special::of(inst).number();
    [Special::Clock64, Special::Timer, Special::Gridid].iter().any(|&kind| number == kind as u32)
}
