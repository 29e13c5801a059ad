//! Barriers in shared memory (`mbarrier`) and the bulk copies that complete on them.
//!
//! The 64-bit object holds, from bit 0: arrivals expected in each phase (20 bits), arrivals still
//! missing (20 bits), bytes still missing (22 bits, signed), and the phase's parity in bit 62.
//! Programs treat it as opaque.

use sim_races::Order;

use crate::cluster::RANK_SHIFT;
use crate::exec::cluster_memory::OFFSET;
use crate::exec::load_store::{Cell, GLOBAL, SHARED};
use crate::exec::per_lane::each;
use crate::exec::refused;
use crate::exec::told;
use crate::exec::told::strength;
use crate::interface::{AccessKind, FaultKind};
use crate::observed_order::OrderEvent;
use crate::operations::build;
use crate::operations::operands::{self, Location};
use crate::program::{Inst, LANES, Next, Slot, Update};
use crate::warp::Warp;

const COUNT: u64 = (1 << 20) - 1;
const PHASE: u64 = 1 << 62;

#[derive(Clone, Copy)]
struct State {
    expected: u64,
    missing: u64,
    bytes: i64,
    phase: u64,
}

impl State {
    fn unpack(word: u64) -> State {
        let bytes = (word << 2) as i64 >> 42;
        State { expected: word & COUNT, missing: word >> 20 & COUNT, bytes, phase: word & PHASE }
    }

    fn pack(self) -> u64 {
        let mut state = self;
        if state.missing == 0 && state.bytes == 0 {
            state.missing = state.expected;
            state.phase ^= PHASE;
        }
        state.expected | state.missing << 20 | (state.bytes as u64 & ((1 << 22) - 1)) << 40 | state.phase
    }
}

/// What [`operate`] does.
pub(crate) const INIT: u32 = 0;
pub(crate) const ARRIVE: u32 = 1;
pub(crate) const ARRIVE_EXPECT: u32 = 2;
pub(crate) const ARRIVE_DROP: u32 = 3;
pub(crate) const EXPECT: u32 = 4;
pub(crate) const COMPLETE: u32 = 5;
/// As [`ARRIVE`], when the copies of the thread are done.
pub(crate) const COPIES_ARRIVE: u32 = 6;

/// What an operation is towards other threads. An arrival releases, and reads the phase.
fn strength_of(what: u32) -> u32 {
    match what {
        INIT => strength::PLAIN,
        EXPECT => strength::object(Order::RELAXED),
        COPIES_ARRIVE => strength::COPIES_ARRIVE,
        _ => strength::object(Order::BOTH),
    }
}

/// Operations that change an object, with a number; the state before goes to `d`.
#[inline(never)]
pub(crate) fn operate(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MbarrierOperate::of(i);
    let mut at = [0; LANES];
    let location = Location { strength: strength_of(i.what()), ..i.location() };
    if let Err(next) = w.addresses(location, mask, 8, AccessKind::Write, &mut at) {
        return next;
    }
    each(mask, |l| {
        let number = w.get(i.number(), l) & 0xffff_ffff;
        // SAFETY: `addresses` vouches for the word.
        let word = unsafe { u64::read(at[l]) };
        let mut state = State::unpack(word);
        let less = |missing: u64, n: u64| missing.saturating_sub(n);
        match i.what() {
            INIT => state = State { expected: number & COUNT, missing: number & COUNT, bytes: 0, phase: 0 },
            ARRIVE | COPIES_ARRIVE => state.missing = less(state.missing, number),
            ARRIVE_EXPECT => {
                state.bytes += number as i64;
                state.missing = less(state.missing, 1);
            }
            ARRIVE_DROP => {
                state.expected = less(state.expected, number);
                state.missing = less(state.missing, number);
            }
            EXPECT => state.bytes += number as i64,
            _ => state.bytes -= number as i64,
        }
        // SAFETY: as above; one thread runs the whole block.
        unsafe { u64::write(at[l], if i.what() == EXPECT { pack_open(state) } else { state.pack() }) };
        w.set(i.d(), l, word);
    });
    Next::Step
}

/// Packs without ending the phase: expecting bytes completes nothing.
fn pack_open(state: State) -> u64 {
    state.expected | state.missing << 20 | (state.bytes as u64 & ((1 << 22) - 1)) << 40 | state.phase
}

/// `test_wait` and `try_wait`: predicate `p` says whether the phase of a state (with `parity` = 1:
/// of a parity) is over.
#[inline(never)]
pub(crate) fn test(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MbarrierTest::of(i);
    let mut at = [0; LANES];
    let acquire = strength::object(Order { acquire: true, release: false });
    let location = Location { strength: acquire, ..i.location() };
    if let Err(next) = w.addresses(location, mask, 8, AccessKind::Read, &mut at) {
        return next;
    }
    let mut done = 0;
    each(mask, |l| {
        // SAFETY: `addresses` vouches for the word.
        let phase = unsafe { u64::read(at[l]) } & PHASE;
        let asked = if i.parity() == 1 { (w.get(i.phase(), l) & 1) << 62 } else { w.get(i.phase(), l) & PHASE };
        done |= u32::from(phase != asked) << l;
    });
    w.set_pred(i.p(), mask, done);
    if done != 0 {
        w.tell_order(OrderEvent::BlockMeets);
    }
    if done != mask {
        // The warp that completes it must get to run.
        w.pc += 1;
        return Next::Yield;
    }
    Next::Step
}

/// `pending_count`
#[inline(never)]
pub(crate) fn pending(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MbarrierPending::of(i);
    each(mask, |l| {
        let state = State::unpack(w.get(i.state(), l));
        w.set(i.d(), l, state.missing);
    });
    Next::Step
}

/// Takes note of bytes that a barrier waits for.
pub(super) fn bytes_came(w: &mut Warp<'_>, barrier: u64, size: u32, lane: usize) -> Result<(), FaultKind> {
    let at = w.resolve(SHARED, barrier, 8, AccessKind::Write, lane)?;
    told::lane(w, SHARED, strength::object(Order::BOTH), (barrier, 8), AccessKind::Write, lane);
    // SAFETY: `resolve` vouches for the word; one thread runs the whole cluster.
    unsafe {
        let mut state = State::unpack(u64::read(at));
        state.bytes -= i64::from(size);
        u64::write(at, state.pack());
    }
    Ok(())
}

/// `cp.reduce.async.bulk`: as [`bulk_copy`] from shared memory to a space, each element of so many
/// bytes by an atomic operation of the program. `barrier` learns of it, if there is one.
#[inline(never)]
pub(crate) fn bulk_reduce(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::BulkReduce::of(i);
    let Some(update) = w.env.program.reductions[i.reduction() as usize] else {
        return refused(w, mask);
    };
    let (size, barrier) = (i.bytes(), i.barrier());
    let element = element_update(update, i.element(), i.operand(), i.space());
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let (to, from, bytes) = (w.get(i.to(), lane), w.get(i.from(), lane), w.get(i.size(), lane) as u32);
        for at in (0..u64::from(bytes)).step_by(size as usize) {
            let source = match w.resolve(SHARED, from + at, size, AccessKind::Read, lane) {
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
            told::lane(w, SHARED, strength::PLAIN, (from + at, size), AccessKind::Read, lane);
            w.set(i.element(), lane, to + at);
            w.set(i.operand(), lane, operand);
            match (element.run)(w, &element, 1 << lane) {
                Next::Step => {}
                other => return other,
            }
        }
        if barrier != Slot::NONE {
            let at = w.get(barrier, lane);
            if let Err(kind) = bytes_came(w, at, bytes, lane) {
                return w.fail(kind, 1 << lane);
            }
        }
    }
    Next::Step
}

/// The atomic operation of one element of a reduction: where it finds the element's address and the
/// operand.
pub(super) fn element_update(update: Update, address: Slot, operand: Slot, space: u32) -> Inst {
    build::Atomic { update, address, b: operand, c: operand, d: operand, offset: 0, space, strength: strength::RELAXED }
        .into()
}

/// The directions of [`bulk_copy`]: from global to shared memory, from there to global memory,
/// between blocks of a cluster.
pub(crate) const INWARD: u32 = 1;
pub(crate) use crate::operations::values::OUTWARD;
pub(crate) const ACROSS: u32 = 2;

/// `cp.async.bulk`: `size` bytes at once. Where they go to shared memory, the barrier gets them.
/// With a mask of blocks they go to the same place of every block of the cluster in it, and each
/// has its own barrier there.
#[inline(never)]
pub(crate) fn bulk_copy(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::BulkCopy::of(i);
    let (to_space, from_space) = match i.direction() {
        INWARD => (SHARED, GLOBAL),
        ACROSS => (SHARED, SHARED),
        _ => (GLOBAL, SHARED),
    };
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let size = w.get(i.size(), lane) as u32;
        let (to, from) = (w.get(i.to(), lane), w.get(i.from(), lane));
        let barrier = if i.direction() == OUTWARD { 0 } else { w.get(i.barrier(), lane) };
        let targets: Vec<Option<u64>> = match i.blocks() {
            Slot::NONE => vec![None],
            blocks => {
                let blocks = w.get(blocks, lane);
                (0..16).filter(|rank| blocks >> rank & 1 != 0).map(|rank| Some((rank + 1) << RANK_SHIFT)).collect()
            }
        };
        for rank in targets {
            let there = |address: u64| rank.map_or(address, |rank| rank | (address & OFFSET));
            for at in (0..u64::from(size)).step_by(16) {
                let target = w.resolve(to_space, there(to) + at, 16, AccessKind::Write, lane);
                let source = w.resolve(from_space, from + at, 16, AccessKind::Read, lane);
                told::lane(w, to_space, strength::PLAIN, (there(to) + at, 16), AccessKind::Write, lane);
                told::lane(w, from_space, strength::PLAIN, (from + at, 16), AccessKind::Read, lane);
                match (target, source) {
                    // SAFETY: `resolve` vouches for both ranges.
                    (Ok(target), Ok(source)) => unsafe { std::ptr::copy(source as *const u8, target as *mut u8, 16) },
                    (Err(kind), _) | (_, Err(kind)) => return w.fail(kind, 1 << lane),
                }
            }
            if i.direction() != OUTWARD
                && let Err(kind) = bytes_came(w, there(barrier), size, lane)
            {
                return w.fail(kind, 1 << lane);
            }
        }
        if w.env.observing && size > 0 && i.direction() != ACROSS {
            let (kind, at) = if i.direction() == INWARD { (AccessKind::Read, from) } else { (AccessKind::Write, to) };
            w.observe(strength::PLAIN, 1 << lane, size, kind, &[at; LANES]);
        }
    }
    Next::Step
}
