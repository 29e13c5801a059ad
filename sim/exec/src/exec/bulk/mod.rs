//! Bulk copies and reductions (`cp.async.bulk`, `cp.reduce.async.bulk`), their groups, and what is
//! common with copies of tiles. When they are carried out says `bulk_work`.
//!
//! Reductions are carried out at once; what they access is told as accessed by the asynchronous
//! proxy until they are awaited.

pub(crate) mod mbarrier;

use std::sync::atomic::Ordering;

use sim_races::{GROUPED, ThreadOf};

use crate::bulk_work::object::State;
use crate::bulk_work::{Begun, Move, Report, Source};
use crate::cluster::RANK_SHIFT;
use crate::exec::cluster_memory::OFFSET;
use crate::exec::load_store::{GENERIC, GLOBAL, SHARED};
use crate::exec::refused;
use crate::exec::told;
use crate::exec::told::strength;
use crate::interface::{AccessKind, BulkTiming, FaultKind};
use crate::machine_module::SHARED_WINDOW;
use crate::operations::build;
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Slot, Update};
use crate::warp::Warp;

/// Bytes that sizes and addresses are multiples of, and that are moved together.
pub(crate) const UNIT: u32 = 16;

/// The directions of [`copy`]: from global to shared memory, from there to global memory, between
/// blocks of a cluster.
pub(crate) const INWARD: u32 = 1;
pub(crate) use crate::operations::values::OUTWARD;
pub(crate) const ACROSS: u32 = 2;

/// The thread of a lane.
pub(crate) fn thread_of(w: &mut Warp<'_>, lane: usize) -> ThreadOf {
    ThreadOf { block: w.block().linear as u32, thread: w.index * LANES as u32 + lane as u32 }
}

/// The numbers of an operation that begins, of its reads and its writes.
pub(crate) fn number_of(w: &Warp<'_>, grouped: bool) -> u64 {
    let number = w.env.operations.fetch_add(2, Ordering::Relaxed);
    number | if grouped { GROUPED } else { 0 }
}

/// Begins an operation of a lane.
pub(crate) fn begin(w: &mut Warp<'_>, lane: usize, number: u64, moves: Vec<Move>, report: Option<Report>) {
    let (env, ThreadOf { thread, .. }) = (w.env, thread_of(w, lane));
    let timing = match env.launch.bulk {
        BulkTiming::Random(seed) => BulkTiming::Random(seed ^ w.block().linear << 32),
        timing => timing,
    };
    w.block().bulk.begin(Begun { thread, number, moves, report }, timing, env.events);
}

/// Somebody polls the object whose word is there: carries out what reports to it, if nothing but
/// bytes is missing.
pub(crate) fn polled(w: &mut Warp<'_>, at: u64) {
    // SAFETY: the poll has checked the word.
    if unsafe { State::at(at) }.missing != 0 {
        return;
    }
    let events = w.env.events;
    for rank in 0..w.block().members.count() {
        // SAFETY: one thread runs the whole cluster; nothing else refers to the member now.
        let Some(member) = (unsafe { w.block().members.state(rank) }) else { continue };
        for operation in member.bulk.reporting_to(at) {
            member.bulk.finish(operation, events);
        }
    }
}

/// What the barrier object at an address gets when an operation is done: so many bytes. The
/// operation is told to operate on it.
pub(crate) fn report_to(
    w: &mut Warp<'_>,
    barrier: u64,
    bytes: u32,
    lane: usize,
    number: u64,
) -> Result<Report, FaultKind> {
    let shared = shared_space(w);
    let at = w.resolve(shared, barrier, 8, AccessKind::Write, lane)?;
    let object = strength::object(sim_races::Order::RELAXED);
    told::bulk(w, shared, object, (barrier, 8), AccessKind::Write, lane, number + 1);
    let object = told::memory_of(w, shared, barrier).filter(|_| w.env.events.is_some());
    Ok(Report { at, object, bytes })
}

/// The space of addresses of shared memory: those of machine code are generic ones, whose high byte
/// in the window is the block's rank.
pub(crate) fn shared_space(w: &Warp<'_>) -> u32 {
    if w.env.program.machine.is_some() { GENERIC } else { SHARED }
}

/// The lanes that execute an operation whose operands are in rows: of machine code, where these are
/// uniform registers, the first.
pub(crate) fn executing(w: &Warp<'_>, mask: u32) -> u32 {
    if w.env.program.machine.is_some() { mask & mask.wrapping_neg() } else { mask }
}

/// The same place of every block of the cluster in a mask, or the place itself.
pub(crate) fn targets(w: &Warp<'_>, blocks: Slot, lane: usize) -> Vec<Option<u64>> {
    match blocks {
        Slot::NONE => vec![None],
        blocks => {
            let blocks = w.get(blocks, lane);
            let place = |rank: u64| match w.env.program.machine.is_some() {
                true => SHARED_WINDOW | rank << RANK_SHIFT,
                false => (rank + 1) << RANK_SHIFT,
            };
            (0..16).filter(|rank| blocks >> rank & 1 != 0).map(|rank| Some(place(rank))).collect()
        }
    }
}

/// An address of shared memory in a block of [`targets`].
pub(crate) fn there(target: Option<u64>, address: u64) -> u64 {
    target.map_or(address, |rank| rank | (address & OFFSET))
}

/// Adds bytes to those that are moved, to the end of the last ones if they go on there.
pub(crate) fn push(moves: &mut Vec<Move>, from: u64, to: u64, size: u32) {
    if let Some(Move { from: Source::Bytes(before), to: there, size: last }) = moves.last_mut()
        && (*before + u64::from(*last), *there + u64::from(*last)) == (from, to)
    {
        *last += size;
        return;
    }
    moves.push(Move { from: Source::Bytes(from), to, size });
}

/// The lanes that issue a store: of those that are together and have the same operands in all rows,
/// the first. The hardware has its operands once for a warp (UTMASTG, UBLKCP), and CUTLASS lets all
/// lanes of a warp issue its stores. Loads and reductions the assembler has each lane issue.
pub(crate) fn issuers(w: &Warp<'_>, rows: &[Slot], mask: u32) -> u32 {
    let mut seen: Vec<Vec<u64>> = Vec::new();
    let mut issuers = 0;
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let operands: Vec<u64> = rows.iter().map(|&row| w.get(row, lane)).collect();
        if !seen.contains(&operands) {
            seen.push(operands);
            issuers |= 1 << lane;
        }
    }
    issuers
}

/// `cp.async.bulk`. What goes to shared memory is reported to a barrier. With a mask of blocks it
/// goes to the same place of every block of the cluster in it, and each has its own barrier there.
#[inline(never)]
pub(crate) fn copy(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let operands = operands::BulkCopy::of(i);
    let rows = [operands.to(), operands.from(), operands.size()];
    let mask = executing(w, mask);
    let issuers = if operands.direction() == OUTWARD { issuers(w, &rows, mask) } else { mask };
    for lane in (0..LANES).filter(|lane| issuers >> lane & 1 != 0) {
        if let Err(kind) = one_copy(w, operands::BulkCopy::of(i), lane) {
            return w.fail(kind, 1 << lane);
        }
    }
    Next::Step
}

fn one_copy(w: &mut Warp<'_>, i: operands::BulkCopy<'_>, lane: usize) -> Result<(), FaultKind> {
    let shared = shared_space(w);
    let (to_space, from_space) = match i.direction() {
        INWARD => (shared, GLOBAL),
        ACROSS => (shared, shared),
        _ => (GLOBAL, shared),
    };
    let size = w.get(i.size(), lane) as u32;
    let (to, from) = (w.get(i.to(), lane), w.get(i.from(), lane));
    if !size.is_multiple_of(UNIT) {
        return Err(FaultKind::Misaligned { address: u64::from(size), size: UNIT, access: AccessKind::Read });
    }
    let barrier = if i.direction() == OUTWARD { None } else { Some(w.get(i.barrier(), lane)) };
    for target in targets(w, i.blocks(), lane) {
        let number = number_of(w, barrier.is_none());
        let mut moves = Vec::new();
        for at in (0..u64::from(size)).step_by(UNIT as usize) {
            let (target, source) = (there(target, to) + at, from + at);
            let destination = w.resolve(to_space, target, UNIT, AccessKind::Write, lane)?;
            let origin = w.resolve(from_space, source, UNIT, AccessKind::Read, lane)?;
            told::bulk(w, from_space, strength::PLAIN, (source, UNIT), AccessKind::Read, lane, number);
            told::bulk(w, to_space, strength::PLAIN, (target, UNIT), AccessKind::Write, lane, number + 1);
            push(&mut moves, origin, destination, UNIT);
        }
        let report = match barrier {
            Some(barrier) => Some(report_to(w, there(target, barrier), size, lane, number)?),
            None => None,
        };
        begin(w, lane, number, moves, report);
    }
    if w.env.observing && size > 0 && i.direction() != ACROSS {
        let (kind, at) = if i.direction() == INWARD { (AccessKind::Read, from) } else { (AccessKind::Write, to) };
        w.observe(strength::PLAIN, 1 << lane, size, kind, &[at; LANES]);
    }
    Ok(())
}

/// `cp.async.bulk.commit_group`.
#[inline(never)]
pub(crate) fn commit(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let thread = thread_of(w, lane).thread;
        w.block().bulk.commit(thread);
    }
    Next::Step
}

/// `cp.async.bulk.wait_group`; with `read` = 1 until the sources have been read.
#[inline(never)]
pub(crate) fn wait(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::AwaitBulk::of(i);
    let (groups, read) = (i.pending(), i.read() == 1);
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let (thread, events) = (thread_of(w, lane), w.env.events);
        w.block().bulk.wait(thread, groups, read, events);
    }
    Next::Step
}

/// `cp.reduce.async.bulk`: as [`copy`] from shared memory to a space, each element of so many bytes
/// by an atomic operation of the program. `barrier` learns of it, if there is one.
#[inline(never)]
pub(crate) fn reduce(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::BulkReduce::of(i);
    let Some(update) = w.env.program.reductions[i.reduction() as usize] else {
        return refused(w, mask);
    };
    let (size, barrier, shared, mask) = (i.bytes(), i.barrier(), shared_space(w), executing(w, mask));
    let element = element_update(update, i.element(), i.operand(), i.space());
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let number = number_of(w, barrier == Slot::NONE);
        let (to, from, bytes) = (w.get(i.to(), lane), w.get(i.from(), lane), w.get(i.size(), lane) as u32);
        for at in (0..u64::from(bytes)).step_by(size as usize) {
            let source = match w.resolve(shared, from + at, size, AccessKind::Read, lane) {
                Ok(source) => source,
                Err(kind) => return w.fail(kind, 1 << lane),
            };
            // SAFETY: `resolve` vouches for the element.
            let operand = unsafe {
                match size {
                    2 => u64::from(std::ptr::read_unaligned(source as *const u16)),
                    4 => u64::from(std::ptr::read_unaligned(source as *const u32)),
                    _ => std::ptr::read_unaligned(source as *const u64),
                }
            };
            told::bulk(w, shared, strength::PLAIN, (from + at, size), AccessKind::Read, lane, number);
            w.set(i.element(), lane, to + at);
            w.set(i.operand(), lane, operand);
            match one_element(w, &element, lane, number) {
                Next::Step => {}
                other => return other,
            }
        }
        let report = match barrier {
            Slot::NONE => None,
            barrier => match report_to(w, w.get(barrier, lane), bytes, lane, number) {
                Ok(report) => Some(report),
                Err(kind) => return w.fail(kind, 1 << lane),
            },
        };
        begin(w, lane, number, Vec::new(), report);
    }
    Next::Step
}

/// Carries out the operation of one element of a reduction, which is a part of the bulk operation
/// that writes under that number.
pub(crate) fn one_element(w: &mut Warp<'_>, element: &Inst, lane: usize, number: u64) -> Next {
    w.bulk = Some(number + 1);
    let next = (element.run)(w, element, 1 << lane);
    w.bulk = None;
    next
}

/// The atomic operation of one element of a reduction: where it finds the element's address and the
/// operand.
pub(crate) fn element_update(update: Update, address: Slot, operand: Slot, space: u32) -> Inst {
    build::Atomic { update, address, b: operand, c: operand, d: operand, offset: 0, space, strength: strength::RELAXED }
        .into()
}
