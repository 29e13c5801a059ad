//! Family of control flow: branches, calls, the ends of threads, convergence barriers, block
//! barriers, and what orders memory.

use crate::compile_sass::int::unary;
use device_code::sass::{Flow, InstOperand, MachineInst, Opcode, OtherKind, PredSrc, Reg, Value};

use super::translation::Translation;
use crate::block::{BARRIER_AND, BARRIER_ARRIVE, BARRIER_OR, BARRIER_POPC, BARRIER_SYNC};
use crate::compile::function::Result;
use crate::compile::{blank, lane};
use crate::compile_sass::operands::{EXCLUSIVE, RESULT, RESULT_PRED};
use crate::exec::per_lane::op1;
use crate::machine_module::code_address;
use crate::program::{Inst, Operation, Pred, Sem, Slot};

/// Low 12 bits of instructions of which the decoder knows only that they are control.
const NOP: u16 = 0x918;
const DEPBAR: u16 = 0x91a;
const LDGDEPBAR: u16 = 0x9af;
const YIELD: u16 = 0x946;
const ENDCOLLECTIVE: u16 = 0x91b;
const CLUSTER_ARRIVE: u16 = 0x9c7;
const CLUSTER_WAIT: u16 = 0xdc7;
const ERRBAR: u16 = 0x9ab;
const CGAERRBAR: u16 = 0x5ab;
const MEMBAR: u16 = 0x992;
const NANOSLEEP: [u16; 3] = [0x35d, 0x95d, 0xb5d];
const BREAKPOINT: u16 = 0x95c;
const PERFORMANCE_TRIGGER: u16 = 0x801;
const BLOCK_BARRIER: [u16; 4] = [0x31d, 0x51d, 0x91d, 0xb1d];
const BARRIER_RESULT: u16 = 0x31c;

/// Returns false when the instruction is of another family.
pub(super) fn control(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    if i.flow() != Flow::Next || matches!(i.op, Opcode::Bssy { .. } | Opcode::Bsync { .. } | Opcode::Warpsync { .. }) {
        t.exclusive = false;
    }
    match i.op {
        Opcode::Exit => {
            under(&i.psrc[..1], t);
            t.emit(blank(Operation::Exit));
        }
        // Kernels never overlap by programmatic dependent launch.
        Opcode::AcqBulk | Opcode::PreExit => t.emit(blank(Operation::Nothing)),
        Opcode::Bra { .. } => branch(i, t)?,
        Opcode::Jmp => {
            under(&i.psrc[..1], t);
            let place = t.target_of(i)?;
            t.jump_to(place);
            t.emit(blank(Operation::Branch));
        }
        Opcode::Brx => {
            // The register counts from the section's start, the constant from the next
            // instruction.
            let base = code_address(t.section, u64::from(t.pc) + 16);
            let offset = base.wrapping_add_signed(i.target.unwrap_or(0));
            indirect(i, offset, false, t)?;
        }
        Opcode::Jmx => indirect(i, i.target.unwrap_or(0) as u64, false, t)?,
        Opcode::Call { abs } => call(i, abs, t)?,
        Opcode::Ret { abs } => {
            let offset = i.target.unwrap_or(0);
            let base = if abs { offset as u64 } else { code_address(t.section, 0).wrapping_add_signed(offset) };
            indirect(i, base, false, t)?;
        }
        Opcode::Bssy { barrier } => {
            let d = t.barrier_row(barrier);
            t.emit(Inst { d, ..blank(Operation::Begin) });
        }
        Opcode::Bsync { barrier } => {
            under(&i.psrc[..1], t);
            let a = t.barrier_row(barrier);
            t.emit(Inst { a, y: u32::from(barrier), ..blank(Operation::Meet) });
        }
        Opcode::Break { barrier } => {
            under(&i.psrc[..1], t);
            let d = t.barrier_row(barrier);
            t.emit(Inst { d, ..blank(Operation::Leave) });
        }
        Opcode::Bmov => move_barrier(i, t)?,
        // Up to ENDCOLLECTIVE, or to the BSYNC behind an exclusive one, lanes of other masks
        // stay away. What lanes do together keeps to the mask instead.
        Opcode::Warpsync { collective, exclusive } => {
            under(&i.psrc[..1], t);
            // WARPSYNC.ALL has no mask.
            let a = if i.src.is_empty() { t.constant(u64::from(u32::MAX)) } else { t.source(i, 0)? };
            t.emit(Inst { a, ..blank(Operation::WarpBarrier) });
            if collective || exclusive {
                t.exclusive = true;
                t.emit(Inst { d: EXCLUSIVE, a, ..lane(op1(|a: u32| a).is(Sem::Move)) });
            }
        }
        Opcode::CacheCtl => t.emit(blank(Operation::Nothing)),
        Opcode::Other(OtherKind::Control | OtherKind::Barrier | OtherKind::Fence { .. }) => return other_control(i, t),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Narrows the guard by further predicates.
pub(super) fn under(conditions: &[PredSrc], t: &mut Translation<'_>) {
    for &condition in conditions {
        if condition.always() {
            continue;
        }
        let (a, b) = (t.guard, t.psrc(condition));
        if a == Pred::ALWAYS {
            t.guard = b;
            continue;
        }
        let d = t.temporary_pred();
        t.guard = Pred::ALWAYS;
        t.emit(Inst { d: Slot(d.0), a: Slot(a.0), b: Slot(b.0), y: 0, ..blank(Operation::Predicate) });
        t.guard = d;
    }
}

fn branch(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    use device_code::sass::BraMode;
    let Opcode::Bra { mode } = i.op else { return Ok(()) };
    under(&i.psrc[..2], t);
    let place = t.target_of(i)?;
    match (mode, i.src.first().copied()) {
        (BraMode::Plain | BraMode::Uniform, None) => {
            t.jump_to(place);
            t.emit(blank(Operation::Branch));
        }
        // Taken by the lanes of a mask in a uniform register; `.DIV`: where others of the mask
        // are elsewhere, `.CONV`: where none are.
        (BraMode::Div | BraMode::Conv, mask) => {
            let a = match mask {
                Some(mask) => t.src(&InstOperand { regs: 1, ..mask })?,
                None => t.constant(0xffff_ffff),
            };
            // The guard only says which lanes count: all lanes jump, or none.
            let c = Slot(t.guard.0);
            t.guard = Pred::ALWAYS;
            t.jump_to(place);
            t.emit(Inst { a, c, y: u32::from(mode == BraMode::Conv), ..blank(Operation::BranchIfApart) });
        }
        _ => return t.unsupported(i),
    }
    Ok(())
}

/// A jump to the address in a register pair plus `base`.
fn indirect(i: &MachineInst, base: u64, call: bool, t: &mut Translation<'_>) -> Result<()> {
    under(&i.psrc[..1], t);
    let Some(source) = i.src.first().copied() else { return t.unsupported(i) };
    let a = t.pair(&InstOperand { regs: 2, ..source })?;
    if call {
        let d = first_argument(t);
        t.emit(Inst { d, a, x: base, ..blank(Operation::CallAddress) });
    } else {
        t.emit(Inst { a, x: base, ..blank(Operation::JumpAddress) });
    }
    Ok(())
}

fn call(i: &MachineInst, abs: bool, t: &mut Translation<'_>) -> Result<()> {
    if !i.src.is_empty() {
        let offset = i.target.unwrap_or(0);
        let base = if abs { offset as u64 } else { code_address(t.section, 0).wrapping_add_signed(offset) };
        return indirect(i, base, true, t);
    }
    under(&i.psrc[..1], t);
    if let Some((address, _)) = t.linked()
        && t.module.declared(address).is_some()
    {
        let (a, d) = (t.constant(address), first_argument(t));
        t.emit(Inst { d, a, ..blank(Operation::CallAddress) });
        return Ok(());
    }
    let place = t.target_of(i)?;
    t.jump_to(place);
    t.emit(blank(Operation::Branch));
    Ok(())
}

/// The row where arguments of a function begin: R4, and there is room for seven pairs.
fn first_argument(t: &mut Translation<'_>) -> Slot {
    t.reg(Reg(4 + 2 * 7));
    t.reg(Reg(4))
}

fn move_barrier(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    let Some(Value::Imm(number)) = i.src.first().map(|source| source.value) else { return t.unsupported(i) };
    // Above the barriers are registers of the warp's state.
    if number >= 16 {
        return t.unsupported(i);
    }
    let row = t.barrier_row(number as u8);
    if let Some(source) = i.src.get(1).copied() {
        let a = t.src(&source)?;
        t.emit(Inst { d: row, a, ..blank(Operation::SetBarrier) });
    } else {
        let d = t.dst(i, 0);
        // BMOV.32.CLEAR: bit 84.
        let clear = u32::from(t.word >> 84 & 1 != 0);
        t.emit(Inst { d, a: row, y: clear, ..blank(Operation::GetBarrier) });
    }
    Ok(())
}

fn other_control(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.opcode {
        YIELD => t.emit(blank(Operation::Yield)),
        CLUSTER_ARRIVE => t.emit(blank(Operation::ClusterArrive)),
        CLUSTER_WAIT => t.emit(blank(Operation::ClusterWait)),
        ENDCOLLECTIVE => {
            t.exclusive = false;
            t.emit(blank(Operation::Nothing));
        }
        NOP | DEPBAR | LDGDEPBAR | PERFORMANCE_TRIGGER => t.emit(blank(Operation::Nothing)),
        ERRBAR | CGAERRBAR | MEMBAR => t.emit(blank(Operation::Fence)),
        opcode if NANOSLEEP.contains(&opcode) => t.emit(blank(Operation::Sleep)),
        BREAKPOINT => t.emit(blank(Operation::Trap)),
        opcode if BLOCK_BARRIER.contains(&opcode) => block_barrier(i, t)?,
        BARRIER_RESULT if bits(78, 80, t) == 1 => {
            // What the last BAR.RED found is kept in a row and a predicate of its own.
            if i.dst.is_some_and(|run| !run.is_dropped()) {
                unary(i, RESULT, op1(|a: u32| a).is(Sem::Move), t);
            }
            let d = t.pdst(i, 0);
            if d != Pred::ALWAYS {
                let a = Slot(RESULT_PRED.0);
                t.emit(Inst { d: Slot(d.0), a, b: a, y: 0, ..blank(Operation::Predicate) });
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A field of the instruction word.
pub(crate) fn bits(low: u32, high: u32, t: &Translation<'_>) -> u32 {
    (t.word >> low) as u32 & ((1 << (high - low)) - 1)
}

/// BAR: number at 54..58 or in a register, threads at 42..54 or in bits 16 and up of the same
/// register; what it does at 77..79; the reduction at 74..76 and its predicate at 87..91.
/// (Measured with nvdisasm.)
fn block_barrier(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    let form = i.opcode >> 8;
    let register = t.reg(Reg(bits(32, 40, t) as u8));
    let number = if matches!(form, 0x9 | 0xb) { t.constant(u64::from(bits(54, 58, t))) } else { register };
    let threads = match form {
        0x5 | 0xb => match bits(42, 54, t) {
            0 => Slot::NONE,
            count => t.constant(u64::from(count)),
        },
        0x9 => register,
        // Both in one register.
        _ => {
            let d = t.temporary();
            t.emit(Inst { d, a: register, ..lane(op1(|a: u32| a >> 16 & 0xfff)) });
            d
        }
    };
    let (kind, reduction) = (bits(77, 79, t), bits(74, 76, t));
    let y = match (kind, reduction) {
        (0, _) => BARRIER_SYNC,
        (1, _) => BARRIER_ARRIVE,
        (2, 0) => BARRIER_POPC,
        (2, 1) => BARRIER_AND,
        (2, 2) => BARRIER_OR,
        _ => return t.unsupported(i),
    };
    let d = if y == BARRIER_POPC { RESULT } else { Slot(RESULT_PRED.0) };
    let pred = PredSrc {
        pred: device_code::sass::Pred { num: bits(87, 90, t) as u8, uniform: false },
        not: bits(90, 91, t) != 0,
    };
    let c = Slot(t.psrc(pred).0);
    t.emit(Inst { d, a: number, b: threads, c, y, ..blank(Operation::Barrier) });
    Ok(())
}
