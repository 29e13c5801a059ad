//! Calls, returns, and the functions of the device runtime that have no PTX: printf, assert,
//! malloc, free. `device_runtime` has those that launch work.

use crate::exec::device_runtime;
use crate::exec::load_store::{Cell, GENERIC};
use crate::exec::per_lane::each;
use crate::exec::told::strength::PLAIN;
use crate::grid_barrier;
use crate::interface::{AccessKind, CompileError, FaultKind};
use crate::operations::operands;
use crate::program::{ArgumentHome, Builtin, CallSite, Inst, LANES, Next, Slot, function_number};
use crate::warp::Warp;

/// `cudaCGScopeGrid`.
const GRID_SCOPE: u32 = 1;

/// Moves a value of one lane between frames. Rows and local offsets are counted from the bases
/// given.
fn transfer(w: &mut Warp<'_>, from: (ArgumentHome, u32, u32), to: (ArgumentHome, u32, u32), lane: usize) {
    let each = w.env.lane_local as usize;
    let base = w.local() as usize + each * lane;
    match (from, to) {
        ((ArgumentHome::Local(source, size), _, from_base), (ArgumentHome::Local(target, room), _, to_base)) => {
            let size = size.min(room) as usize;
            let (source, target) = ((from_base + source) as usize, (to_base + target) as usize);
            // SAFETY: calls are refused unless both frames fit into the lane's local memory; frames
            // never overlap.
            unsafe { std::ptr::copy((base + source) as *const u8, (base + target) as *mut u8, size) };
        }
        ((ArgumentHome::Row(source), from_base, _), (ArgumentHome::Row(target), to_base, _)) => {
            let value = source_value(w, source, from_base, lane);
            w.absolute(to_base + target.0).0[lane] = value;
        }
        ((ArgumentHome::Row(source), from_base, _), (ArgumentHome::Local(target, size), _, to_base)) => {
            let value = source_value(w, source, from_base, lane).to_le_bytes();
            let target = (base + (to_base + target) as usize) as *mut u8;
            // SAFETY: as above.
            unsafe { std::ptr::copy(value.as_ptr(), target, size.min(8) as usize) };
        }
        ((ArgumentHome::Local(source, size), _, from_base), (ArgumentHome::Row(target), to_base, _)) => {
            let mut value = [0; 8];
            let source = (base + (from_base + source) as usize) as *const u8;
            // SAFETY: as above.
            unsafe { std::ptr::copy(source, value.as_mut_ptr(), size.min(8) as usize) };
            w.absolute(to_base + target.0).0[lane] = u64::from_le_bytes(value);
        }
    }
}

fn source_value(w: &mut Warp<'_>, slot: Slot, base: u32, lane: usize) -> u64 {
    if slot.0 & Slot::CONSTANT != 0 { w.get(slot, lane) } else { w.absolute(base + slot.0).0[lane] }
}

/// `call`: the function's address is in a row where the site knows none.
#[inline(never)]
pub(crate) fn call(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Call::of(i);
    let program = w.env.program;
    let site = &program.calls[i.site() as usize];
    if site.callee.is_some_and(|number| program.functions[number as usize].builtin == Some(Builtin::GridBarrier)) {
        return synchronize(w, &Caller::Site(site), mask);
    }
    let return_to = w.pc + 1;
    let stay = w.active & !mask;
    let group = w.here(return_to);
    w.send(stay, group);
    let mut left = mask;
    while left != 0 {
        let (lanes, target) = match site.callee {
            Some(number) => (left, number),
            None => {
                let address = w.get(i.function(), left.trailing_zeros() as usize);
                let mut same = 0;
                each(left, |l| same |= u32::from(w.get(i.function(), l) == address) << l);
                match function_number(address) {
                    Some(number) if (number as usize) < program.functions.len() => (same, number),
                    _ => return w.fail(FaultKind::BadCall(address), same),
                }
            }
        };
        left &= !lanes;
        let function = &program.functions[target as usize];
        if let Some(builtin) = function.builtin {
            if let Err(next) = run_builtin(w, builtin, &Caller::Site(site), lanes) {
                return next;
            }
            let group = w.here(return_to);
            w.send(lanes, group);
            continue;
        }
        if let Some(error) = &function.error {
            return w.fail(FaultKind::Unsupported(Box::new(error.clone())), lanes);
        }
        if function.entry == u32::MAX {
            return w.fail(FaultKind::BadCall(u64::from(target)), lanes);
        }
        let caller = &program.functions[site.caller as usize];
        let (rbase, pbase, lbase) = (w.rbase + caller.rows, w.pbase + caller.preds, w.lbase + caller.local);
        let fits = lbase.checked_add(function.local).is_some_and(|end| end <= w.env.lane_local);
        if !fits || !w.reserve(rbase, function.rows, pbase, function.preds) {
            return w.fail(FaultKind::StackOverflow, lanes);
        }
        let (from_row, from_local) = (w.rbase, w.lbase);
        each(lanes, |l| {
            for (&argument, &param) in site.arguments.iter().zip(&function.params) {
                transfer(w, (argument, from_row, from_local), (param, rbase, lbase), l);
            }
            w.absolute(rbase).0[l] = u64::from(return_to);
        });
        let mut group = w.here(function.entry);
        (group.rbase, group.pbase, group.lbase) = (rbase, pbase, lbase);
        w.send(lanes, group);
    }
    Next::Repick
}

/// `ret`: from function `y`.
#[inline(never)]
pub(crate) fn ret(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Return::of(i);
    let program = w.env.program;
    let stay = w.active & !mask;
    let group = w.here(w.pc + 1);
    w.send(stay, group);
    // The frame below all others is the kernel's.
    if w.rbase == 0 {
        w.exit(mask);
        return Next::Repick;
    }
    let callee = &program.functions[i.function() as usize];
    let mut left = mask;
    while left != 0 {
        let return_to = w.get(i.address(), left.trailing_zeros() as usize) as u32;
        let mut same = 0;
        each(left, |l| same |= u32::from(w.get(i.address(), l) as u32 == return_to) << l);
        left &= !same;
        if return_to == u32::MAX {
            w.exit(same);
            continue;
        }
        let site = &program.calls[operands::Call::of(&program.code[return_to as usize - 1]).site() as usize];
        let caller = &program.functions[site.caller as usize];
        let (from_row, from_local) = (w.rbase, w.lbase);
        let mut group = w.here(return_to);
        group.rbase -= caller.rows;
        group.pbase -= caller.preds;
        group.lbase -= caller.local;
        each(same, |l| {
            for (&value, &target) in callee.returns.iter().zip(&site.returns) {
                transfer(w, (value, from_row, from_local), (target, group.rbase, group.lbase), l);
            }
        });
        w.send(same, group);
    }
    Next::Repick
}

/// Where a function of the device runtime finds its arguments and leaves its result.
pub(crate) enum Caller<'c> {
    /// As a call in PTX says.
    Site(&'c CallSite),
    /// In pairs of registers of machine code, from this row on.
    Registers(Slot),
}

/// One argument of a call as a number.
fn argument(w: &mut Warp<'_>, caller: &Caller<'_>, at: usize, lane: usize) -> u64 {
    let site = match caller {
        Caller::Site(site) => site,
        Caller::Registers(first) => {
            let row = |half: u32| Slot(first.0 + 2 * at as u32 + half);
            return w.get(row(0), lane) | w.get(row(1), lane) << 32;
        }
    };
    match site.arguments.get(at) {
        Some(&ArgumentHome::Row(slot)) => source_value(w, slot, w.rbase, lane),
        Some(&ArgumentHome::Local(offset, size)) => {
            let from = w.local() as usize + w.env.lane_local as usize * lane + (w.lbase + offset) as usize;
            let mut value = [0; 8];
            // SAFETY: the caller's frame lies in the lane's local memory.
            unsafe { std::ptr::copy(from as *const u8, value.as_mut_ptr(), size.min(8) as usize) };
            u64::from_le_bytes(value)
        }
        None => 0,
    }
}

/// 32 bits of an argument: `at` says which, and from which of its bytes on; in machine code they
/// are in register `register` of those that hold arguments.
pub(crate) fn part(w: &mut Warp<'_>, caller: &Caller<'_>, (at, byte): (usize, u32), register: u32, lane: usize) -> u32 {
    let site = match caller {
        Caller::Site(site) => site,
        Caller::Registers(first) => return w.get(Slot(first.0 + register), lane) as u32,
    };
    match site.arguments.get(at) {
        Some(&ArgumentHome::Row(slot)) => (source_value(w, slot, w.rbase, lane) >> (8 * byte)) as u32,
        Some(&ArgumentHome::Local(offset, size)) => {
            let base = w.local() as usize + w.env.lane_local as usize * lane;
            let from = base + (w.lbase + offset + byte) as usize;
            let mut value = [0; 4];
            let there = size.saturating_sub(byte).min(4) as usize;
            // SAFETY: the caller's frame lies in the lane's local memory.
            unsafe { std::ptr::copy(from as *const u8, value.as_mut_ptr(), there) };
            u32::from_le_bytes(value)
        }
        None => 0,
    }
}

fn give_back(w: &mut Warp<'_>, caller: &Caller<'_>, lane: usize, value: u64) {
    let site = match caller {
        Caller::Site(site) => site,
        Caller::Registers(first) => {
            w.set(*first, lane, value & 0xffff_ffff);
            w.set(Slot(first.0 + 1), lane, value >> 32);
            return;
        }
    };
    match site.returns.first() {
        Some(&ArgumentHome::Row(slot)) => {
            let row = w.rbase + slot.0;
            w.absolute(row).0[lane] = value;
        }
        Some(&ArgumentHome::Local(offset, size)) => {
            let to = w.local() as usize + w.env.lane_local as usize * lane + (w.lbase + offset) as usize;
            // SAFETY: as in `argument`.
            unsafe { std::ptr::copy(value.to_le_bytes().as_ptr(), to as *mut u8, size.min(8) as usize) };
        }
        None => {}
    }
}

/// `cudaCGSynchronize` at the program counter. Some of the lanes may have to come to it again.
pub(crate) fn synchronize(w: &mut Warp<'_>, caller: &Caller<'_>, mask: u32) -> Next {
    let status = if w.env.launch.cooperative { 0 } else { grid_barrier::NO_GRID };
    let (passed, next) = grid_barrier::call(w, mask);
    each(passed, |l| give_back(w, caller, l, status));
    next
}

/// Stores one of the two numbers that a question has for an answer. No pointer, no answer.
fn store_answer(w: &mut Warp<'_>, pointer: u64, value: u32, lane: usize) -> Result<(), Next> {
    if pointer == 0 {
        return Ok(());
    }
    let place = w.resolve(GENERIC, pointer, 4, AccessKind::Write, lane).map_err(|kind| w.fail(kind, 1 << lane))?;
    // SAFETY: `resolve` vouches for the word.
    unsafe { <u32 as Cell>::write(place, u64::from(value)) };
    if w.env.observing && w.env.device.allocation(pointer).is_some() {
        w.observe(PLAIN, 1 << lane, 4, AccessKind::Write, &[pointer; LANES]);
    }
    Ok(())
}

/// Lanes that wait come to a call again: it has to be one of the barrier alone.
#[cold]
fn by_address(w: &mut Warp<'_>, lane: usize) -> Next {
    let instruction = "call of cudaCGSynchronize by its address".to_owned();
    let line = w.env.program.line(w.pc);
    let error = CompileError::Unsupported { instruction, function: w.env.kernel.name.clone(), line };
    w.fail(FaultKind::Unsupported(Box::new(error)), 1 << lane)
}

pub(crate) fn run_builtin(w: &mut Warp<'_>, builtin: Builtin, site: &Caller<'_>, lanes: u32) -> Result<(), Next> {
    for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
        let first = argument(w, site, 0, lane);
        let second = argument(w, site, 1, lane);
        let result = match builtin {
            Builtin::Runtime(call) => device_runtime::run(w, call, site, lane)?,
            Builtin::Vprintf => {
                let format = w.read_string(first, lane);
                let (text, count) = crate::printf::format(w, &format, second, lane);
                w.env.device.print(&text);
                count as u64
            }
            Builtin::Malloc => {
                let at = w.env.device.malloc(first);
                if let Some(events) = w.env.events {
                    events.allocated(at, first);
                }
                at
            }
            Builtin::Free => {
                w.env.device.free(first);
                // Its extent may be remembered.
                for extent in &mut w.extents {
                    (extent.start, extent.end) = (1, 0);
                }
                0
            }
            Builtin::SetConditional => {
                w.env.device.set_conditional(first, second as u32);
                0
            }
            Builtin::GridHandle if w.env.launch.cooperative && first as u32 == GRID_SCOPE => grid_barrier::HANDLE,
            Builtin::GridHandle => 0,
            Builtin::GridBarrier => return Err(by_address(w, lane)),
            Builtin::GridSize | Builtin::GridRank => {
                let handle = argument(w, site, 2, lane);
                let answer = grid_barrier::answer(w, handle, builtin == Builtin::GridRank, lane);
                store_answer(w, first, answer[0], lane)?;
                store_answer(w, second, answer[1], lane)?;
                if handle == grid_barrier::HANDLE { 0 } else { grid_barrier::NO_GRID }
            }
            Builtin::Assertfail => {
                let (message, file, function) =
                    (w.read_string(first, lane), w.read_string(second, lane), argument(w, site, 3, lane));
                let line = argument(w, site, 2, lane) as u32;
                let function = w.read_string(function, lane);
                let [bx, by, bz] = w.block().index;
                let [tx, ty, tz] = [w.tid[0][lane], w.tid[1][lane], w.tid[2][lane]];
                let text = format!(
                    "{}:{line}: {}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{}` failed.\n",
                    String::from_utf8_lossy(&file),
                    String::from_utf8_lossy(&function),
                    String::from_utf8_lossy(&message),
                );
                w.env.device.complain(text.as_bytes());
                return Err(w.fail(FaultKind::Assert, 1 << lane));
            }
        };
        give_back(w, site, lane, result);
    }
    Ok(())
}
