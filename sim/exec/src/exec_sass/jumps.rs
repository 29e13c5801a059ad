//! Jumps, calls and returns to addresses in registers, and calls of functions that the interpreter
//! provides.

use crate::exec::call::{Caller, run_builtin, synchronize};
use crate::exec::per_lane::each;
use crate::interface::{CompileError, FaultKind};
use crate::machine_module::code_place;
use crate::program::{Builtin, Inst, Next, Pred};
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

/// The lanes of `left` whose row `a` holds what its first lane's does, and the value.
fn same_address(w: &Warp<'_>, i: &Inst, left: u32) -> (u32, u64) {
    let address = w.get(i.a, left.trailing_zeros() as usize);
    let mut same = 0;
    each(left, |l| same |= u32::from(w.get(i.a, l) == address) << l);
    (same, address.wrapping_add(i.x))
}

/// BRX, JMX, RET: to the address in `a` plus `x`.
#[inline(never)]
pub(crate) fn jump_address(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let (same, address) = same_address(w, i, mask);
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
        let (same, address) = same_address(w, i, left);
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
/// arguments are in the registers from row `d` on.
#[inline(never)]
pub(crate) fn call_address(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let program = w.env.program;
    let mut left = mask;
    let mut elsewhere = 0;
    while left != 0 {
        let (same, address) = same_address(w, i, left);
        left &= !same;
        let known = program.machine.as_ref().and_then(|m| m.externs.iter().find(|(at, ..)| *at == address));
        match known {
            None => elsewhere |= same,
            Some((_, _, Some(Builtin::GridBarrier))) if same == mask => {
                return synchronize(w, &Caller::Registers(i.d), mask);
            }
            Some((_, _, Some(builtin))) => {
                if let Err(next) = run_builtin(w, *builtin, &Caller::Registers(i.d), same) {
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
    if elsewhere == 0 { Next::Step } else { jump_address(w, i, elsewhere) }
}

/// BRA.DIV (`y` = 0) and BRA.CONV (1): all lanes go to `x` by whether lanes of mask `a` are
/// elsewhere, or do not fulfil predicate `c`.
#[inline(never)]
pub(crate) fn branch_if_apart(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let wanted = w.get(i.a, mask.trailing_zeros() as usize) as u32 & w.alive;
    let apart = wanted & !(mask & w.pred(Pred(i.c.0))) != 0;
    if apart == (i.y == 0) { crate::exec::control::branch(w, i, mask) } else { Next::Step }
}
