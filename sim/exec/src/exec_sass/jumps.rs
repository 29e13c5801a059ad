//! Jumps, calls and returns to addresses in registers, and calls of functions that the interpreter
//! provides.

use crate::exec::call::{Caller, run_builtin, synchronize};
use crate::exec::control::jump;
use crate::exec::per_lane::each;
use crate::interface::{CompileError, FaultKind};
use crate::machine_module::code_place;
use crate::operations::operands;
use crate::program::{Builtin, Inst, Next, Slot};
use crate::warp::Warp;

/// Where execution goes on at an address of code.
fn place(w: &Warp<'_>, address: u64) -> Result<u32, FaultKind> {
    let bad = || FaultKind::BadCall(address);
    let machine = w.env.program.machine.as_ref().ok_or_else(bad)?;
    let (section, offset) = code_place(address).ok_or_else(bad)?;
    let found = machine.sections.iter().find(|known| known.number == section).ok_or_else(bad)?;
    if let Some(error) = &found.error {
        return Err(FaultKind::Unsupported(Box::new(error.clone())));
    }
    match found.starts.get(offset as usize / 16) {
        Some(&start) if start != u32::MAX && offset % 16 == 0 => Ok(start),
        _ => Err(bad()),
    }
}

/// The lanes of `left` whose row holds what its first lane's does, and the value plus the offset.
fn same_address(w: &Warp<'_>, (row, offset): (Slot, u64), left: u32) -> (u32, u64) {
    let address = w.get(row, left.trailing_zeros() as usize);
    let mut same = 0;
    each(left, |l| same |= u32::from(w.get(row, l) == address) << l);
    (same, address.wrapping_add(offset))
}

/// BRX, JMX, RET: to the address in a row plus an offset.
#[inline(never)]
pub(crate) fn jump_address(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::JumpAddress::of(i);
    jump_to(w, (i.address(), i.offset()), mask)
}

fn jump_to(w: &mut Warp<'_>, to: (Slot, u64), mask: u32) -> Next {
    let (same, address) = same_address(w, to, mask);
    if same == w.active {
        return match place(w, address) {
            Ok(pc) => {
                w.pc = pc;
                Next::Jumped
            }
            Err(kind) => w.fail(kind, same),
        };
    }
    let stay = w.active & !mask;
    let group = w.here(w.pc + 1);
    w.send(stay, group);
    let mut left = mask;
    while left != 0 {
        let (same, address) = same_address(w, to, left);
        left &= !same;
        match place(w, address) {
            Ok(pc) => {
                let group = w.here(pc);
                w.send(same, group);
            }
            Err(kind) => return w.fail(kind, same),
        }
    }
    Next::Repick
}

/// CALL: the same, or a function of the device runtime, behind which execution goes on here. Its
/// arguments are in the registers from a row on.
#[inline(never)]
pub(crate) fn call_address(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::CallAddress::of(i);
    let (program, to) = (w.env.program, (i.address(), i.offset()));
    let mut left = mask;
    let mut elsewhere = 0;
    while left != 0 {
        let (same, address) = same_address(w, to, left);
        left &= !same;
        let known = program.machine.as_ref().and_then(|m| m.externs.iter().find(|(at, ..)| *at == address));
        match known {
            None => elsewhere |= same,
            Some((_, _, Some(Builtin::GridBarrier))) if same == mask => {
                return synchronize(w, &Caller::Registers(i.arguments()), mask);
            }
            Some((_, _, Some(builtin))) => {
                if let Err(next) = run_builtin(w, *builtin, &Caller::Registers(i.arguments()), same) {
                    return next;
                }
            }
            Some((_, name, None)) => {
                let function = w.env.kernel.name.clone();
                let error = CompileError::UnknownSymbol { name: name.clone(), function };
                return w.fail(FaultKind::Unsupported(Box::new(error)), same);
            }
        }
    }
    if elsewhere == 0 { Next::Step } else { jump_to(w, to, elsewhere) }
}

/// BRA.DIV (`unless` = 0) and BRA.CONV (1): all lanes go to the target by whether lanes of the mask
/// are elsewhere, or do not fulfil a predicate. If none are, they have met: the assembler asks in
/// front of what lanes do together, `__syncwarp()` among it, and skips WARPSYNC then.
#[inline(never)]
pub(crate) fn branch_if_apart(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::BranchIfApart::of(i);
    let wanted = w.get(i.members(), mask.trailing_zeros() as usize) as u32 & w.alive;
    let apart = wanted & !(mask & w.pred(i.which())) != 0;
    if !apart {
        w.tell_synchronises(None);
        w.tell_lanes(wanted, |events, lanes| events.warp_meets(lanes));
    }
    if apart == (i.unless() == 0) { jump(w, i.target(), mask) } else { Next::Step }
}
