//! Family of control flow: branches, calls, the ends of threads, convergence barriers, block
//! barriers, and what orders memory.

use crate::compile_sass::int::unary;
use device_code::sass::{Flow, InstOperand, MachineInst, Opcode, OtherKind, PredSrc, Reg, Value};

use sim_races::Scope;

use super::translation::Translation;
use crate::block::{BARRIER_AND, BARRIER_ARRIVE, BARRIER_OR, BARRIER_POPC, BARRIER_SYNC};
use crate::compile::function::Result;
use crate::compile_sass::operands::{EXCLUSIVE, RESULT, RESULT_PRED};
use crate::exec::control::{NO_SCOPE, fence_scope};
use crate::exec::per_lane::op1;
use crate::machine_module::code_address;
use crate::operations::build;
use crate::program::{Pred, Sem, Slot};

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
/// UTMACMDFLUSH.
pub(super) const COMMIT: u16 = 0x9b7;
const CACHE_CONTROL: u16 = 0x98f;
/// What CCTL does, at 87..91, where it is IVALL.
const INVALIDATE_ALL: u32 = 4;

/// Returns false when the instruction is of another family.
pub(super) fn control(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    if i.flow() != Flow::Next || matches!(i.op, Opcode::Bssy { .. } | Opcode::Bsync { .. } | Opcode::Warpsync { .. }) {
        t.exclusive = false;
    }
    match i.op {
        Opcode::Exit => {
            under(&i.psrc[..1], t);
            t.emit(build::Exit {});
        }
        Opcode::AcqBulk => t.emit(build::GridWait {}),
        Opcode::PreExit => t.emit(build::GridTrigger {}),
        Opcode::Bra { .. } => branch(i, t)?,
        Opcode::Jmp => {
            under(&i.psrc[..1], t);
            let place = t.target_of(i)?;
            t.jump_to(place);
            t.emit(build::Branch { target: 0 });
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
            t.emit(build::Begin { d });
        }
        Opcode::Bsync { barrier } => {
            under(&i.psrc[..1], t);
            let a = t.barrier_row(barrier);
            t.emit(build::Meet { members: a });
        }
        Opcode::Break { barrier } => {
            under(&i.psrc[..1], t);
            let d = t.barrier_row(barrier);
            t.emit(build::Leave { members: d });
        }
        Opcode::Bmov => move_barrier(i, t)?,
        // Up to ENDCOLLECTIVE, or to the BSYNC behind an exclusive one, lanes of other masks
        // stay away. What lanes do together keeps to the mask instead.
        Opcode::Warpsync { collective, exclusive } => {
            under(&i.psrc[..1], t);
            // WARPSYNC.ALL has no mask.
            let a = if i.src.is_empty() { t.constant(u64::from(u32::MAX)) } else { t.source(i, 0)? };
            t.emit(build::WarpBarrier { members: a });
            if collective || exclusive {
                t.exclusive = true;
                t.emit(op1(|a: u32| a).is(Sem::Move).of([a]).to(EXCLUSIVE));
            }
        }
        Opcode::CacheCtl if bits(87, 91, t) == INVALIDATE_ALL => {
            t.program.order.device = true;
            t.emit(build::InvalidateCaches {});
        }
        Opcode::CacheCtl => t.emit(build::Nothing {}),
        Opcode::Other(OtherKind::Control | OtherKind::Barrier { .. } | OtherKind::Fence { .. }) => {
            return other_control(i, t);
        }
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
        t.emit(build::Predicate { a, b, d, function: 0 });
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
            t.emit(build::Branch { target: 0 });
        }
        // Taken by the lanes of a mask in a uniform register; `.DIV`: where others of the mask
        // are elsewhere, `.CONV`: where none are.
        (BraMode::Div | BraMode::Conv, mask) => {
            let a = match mask {
                Some(mask) => t.src(&InstOperand { regs: 1, ..mask })?,
                None => t.constant(0xffff_ffff),
            };
            // The guard only says which lanes count: all lanes jump, or none.
            let which = t.guard;
            t.guard = Pred::ALWAYS;
            t.jump_to(place);
            let unless = u32::from(mode == BraMode::Conv);
            t.emit(build::BranchIfApart { members: a, which, target: 0, unless });
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
        t.emit(build::CallAddress { address: a, offset: base, arguments: d });
    } else {
        t.emit(build::JumpAddress { address: a, offset: base });
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
        t.emit(build::CallAddress { address: a, offset: 0, arguments: d });
        return Ok(());
    }
    let place = t.target_of(i)?;
    t.jump_to(place);
    t.emit(build::Branch { target: 0 });
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
        t.emit(build::SetBarrier { a, d: row });
    } else {
        let d = t.dst(i, 0);
        // BMOV.32.CLEAR: bit 84.
        let clear = u32::from(t.word >> 84 & 1 != 0);
        t.emit(build::GetBarrier { barrier: row, d, clear });
    }
    Ok(())
}

fn other_control(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.opcode {
        YIELD => t.emit(build::Yield {}),
        // What a relaxed arrival leaves out is a fence before it, which the code has or has not.
        CLUSTER_ARRIVE => t.emit(build::ClusterArrive { relaxed: 0 }),
        CLUSTER_WAIT => t.emit(build::ClusterWait {}),
        ENDCOLLECTIVE => {
            t.exclusive = false;
            t.emit(build::Nothing {});
        }
        LDGDEPBAR => t.emit(build::CommitCopies {}),
        // Until so many of the scoreboard are left (at 38..44): of LDGSTS these are groups, and of
        // bulk operations. For what those write CCTL.IVALL stands behind it; without, it is for
        // what they read.
        DEPBAR => {
            let pending = bits(38, 44, t);
            t.emit(build::AwaitCopies { pending });
            // Bit 47 is .LE: without, it waits for scoreboards of other instructions.
            if bits(47, 48, t) == 1 && t.has_instruction(COMMIT) {
                let read = u32::from(t.next_opcode() != CACHE_CONTROL);
                t.emit(build::AwaitBulk { pending, read });
            }
        }
        NOP => t.emit(build::LanesMeet {}),
        PERFORMANCE_TRIGGER => t.emit(build::Nothing {}),
        // The scope is at 76..78: CTA, another of the block's, GPU, SYS. Bit 79 is ALL, not SC.
        MEMBAR => {
            let (reach, sc) = (bits(76, 78, t), bits(79, 80, t) == 0);
            let scope = if reach >= 2 { Scope::Device } else { Scope::Block };
            t.program.order.device |= reach >= 2;
            t.program.order.system |= reach == 3;
            t.emit(build::Fence { scope: fence_scope(scope, sc, reach == 3) });
        }
        ERRBAR | CGAERRBAR => t.emit(build::Fence { scope: NO_SCOPE }),
        opcode if NANOSLEEP.contains(&opcode) => t.emit(build::Sleep {}),
        BREAKPOINT => t.emit(build::Trap {}),
        opcode if BLOCK_BARRIER.contains(&opcode) => block_barrier(i, t)?,
        BARRIER_RESULT if bits(78, 80, t) == 1 => {
            // What the last BAR.RED found is kept in a row and a predicate of its own.
            if i.dst.is_some_and(|run| !run.is_dropped()) {
                unary(i, RESULT, op1(|a: u32| a).is(Sem::Move), t);
            }
            let d = t.pdst(i, 0);
            if d != Pred::ALWAYS {
                t.emit(build::Predicate { a: RESULT_PRED, b: RESULT_PRED, d, function: 0 });
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
            t.emit(op1(|a: u32| a >> 16 & 0xfff).of([register]).to(d));
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
    let (d, p) = ((y == BARRIER_POPC).then_some(RESULT), (y > BARRIER_POPC).then_some(RESULT_PRED));
    let pred = PredSrc {
        pred: device_code::sass::Pred { num: bits(87, 90, t) as u8, uniform: false },
        not: bits(90, 91, t) != 0,
    };
    let truth = (y >= BARRIER_POPC).then(|| t.psrc(pred));
    t.emit(build::Barrier { number, threads, truth, d, p, what: y });
    Ok(())
}
