//! Barriers in shared memory (`mbarrier`).
//!
//! Who polls an object makes the bulk operations come that it waits for (`bulk::polled`).

use sim_races::{Order, ThreadOf};

use crate::bulk_work::object::{COUNT, PHASE, State};
use crate::exec::bulk::{executing, polled};
use crate::exec::load_store::Cell;
use crate::exec::per_lane::each;
use crate::exec::told;
use crate::exec::told::strength;
use crate::interface::AccessKind;
use crate::observed_order::OrderEvent;
use crate::operations::operands::{self, Location};
use crate::program::{Inst, LANES, Next};
use crate::warp::Warp;

/// What [`operate`] does.
pub(crate) const INIT: u32 = 0;
pub(crate) const ARRIVE: u32 = 1;
pub(crate) const ARRIVE_EXPECT: u32 = 2;
pub(crate) const ARRIVE_DROP: u32 = 3;
pub(crate) const EXPECT: u32 = 4;
pub(crate) const COMPLETE: u32 = 5;
/// As [`ARRIVE`], when the copies of the thread are done.
pub(crate) const COPIES_ARRIVE: u32 = 6;
pub(crate) const ARRIVE_DROP_EXPECT: u32 = 7;
/// Added to an arrival that releases nothing.
pub(crate) const RELAXED: u32 = 16;
/// Added to an arrival that names the cluster's scope.
pub(crate) const FAR: u32 = 32;

/// What an operation is towards other threads. What arrivals release is told by phase.
fn strength_of(what: u32) -> u32 {
    match what {
        INIT => strength::PLAIN,
        COPIES_ARRIVE => strength::COPIES_ARRIVE,
        _ => strength::object(Order::RELAXED),
    }
}

/// Operations that change an object, with a number; the state before goes to `d`.
#[inline(never)]
pub(crate) fn operate(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MbarrierOperate::of(i);
    let mut at = [0; LANES];
    let (what, relaxed, far) = (i.what() & !(RELAXED | FAR), i.what() & RELAXED != 0, i.what() & FAR != 0);
    // Machine code has the initial word in uniform registers.
    let mask = if what == INIT { executing(w, mask) } else { mask };
    let location = Location { strength: strength_of(what), ..i.location() };
    if let Err(next) = w.addresses(location, mask, 8, AccessKind::Write, &mut at) {
        return next;
    }
    w.block().bulk.changes += 1;
    each(mask, |l| {
        let number = w.get(i.number(), l) & 0xffff_ffff;
        // SAFETY: `addresses` vouches for the word; one thread runs the whole cluster.
        let (word, mut state) = unsafe { (u64::read(at[l]), State::at(at[l])) };
        let object = told::object(w, location, l);
        let thread = ThreadOf { block: w.block().linear as u32, thread: w.index * LANES as u32 + l as u32 };
        if let Some((events, object)) = w.env.events.zip(object) {
            match what {
                INIT => events.object_begins(thread, object),
                EXPECT | COPIES_ARRIVE => {}
                _ => events.object_arrives(thread, object, !relaxed, far),
            }
        }
        let less = |missing: u64, n: u64| missing.saturating_sub(n);
        match what {
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
            ARRIVE_DROP_EXPECT => {
                state.bytes += number as i64;
                state.expected = less(state.expected, 1);
                state.missing = less(state.missing, 1);
            }
            EXPECT => state.bytes += number as i64,
            _ => state.bytes -= number as i64,
        }
        let (changed, turns) = match what {
            EXPECT | INIT => (state.pack_open(), false),
            _ => state.pack(),
        };
        // SAFETY: as above.
        unsafe { u64::write(at[l], changed) };
        if let (true, Some((events, object))) = (turns, w.env.events.zip(object)) {
            events.object_turns(object);
        }
        w.set(i.d(), l, word);
    });
    Next::Step
}

/// Of [`test`]: it acquires nothing.
pub(crate) const TEST_RELAXED: u32 = 2;
/// And: its scope is the block's.
pub(crate) const TEST_NEAR: u32 = 4;

/// `test_wait` and `try_wait`: predicate `p` says whether the phase of a state (with `parity` = 1:
/// of a parity) is over.
#[inline(never)]
pub(crate) fn test(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MbarrierTest::of(i);
    let mut at = [0; LANES];
    let location = Location { strength: strength::object(Order::RELAXED), ..i.location() };
    if let Err(next) = w.addresses(location, mask, 8, AccessKind::Read, &mut at) {
        return next;
    }
    let mut done = 0;
    each(mask, |l| {
        let by_parity = i.parity() & 1 == 1;
        let asked = if by_parity { (w.get(i.phase(), l) & 1) << 62 } else { w.get(i.phase(), l) & PHASE };
        // SAFETY: `addresses` vouches for the word.
        let phase = || unsafe { State::at(at[l]) }.phase;
        if phase() == asked {
            polled(w, at[l]);
        }
        done |= u32::from(phase() != asked) << l;
    });
    if w.env.events.is_some() {
        let (acquires, far) = (i.parity() & TEST_RELAXED == 0, i.parity() & TEST_NEAR == 0);
        each(done, |l| {
            let thread = ThreadOf { block: w.block().linear as u32, thread: w.index * LANES as u32 + l as u32 };
            if let Some((events, object)) = w.env.events.zip(told::object(w, location, l)) {
                events.object_passes(thread, object, acquires, far);
            }
        });
    }
    w.set_pred(i.p(), mask, done);
    if done != 0 {
        w.tell_order(OrderEvent::BlockMeets);
    }
    if done != mask {
        let failing = mask & !done;
        let (changes, pc) = (w.block().members.object_changes(), w.pc);
        w.vain.poll(failing, at[failing.trailing_zeros() as usize], pc, changes);
        // The warp that completes it must get to run.
        w.pc += 1;
        return Next::Yield;
    }
    w.vain.lanes &= !mask;
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
