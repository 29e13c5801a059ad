//! What lanes and warps do together: barriers, votes, shuffles, matches, reductions over a warp.

use sim_races::{Meeting, SyncKind};

use crate::block::{BARRIER_ARRIVE, BARRIER_POPC, BARRIER_SYNC};
use crate::exec::per_lane::each;
use crate::exec::registers::Answer;
use crate::interface::FaultKind;
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Row, Slot};
use crate::warp::{Group, Wait, Warp};

/// The lanes of `mask` whose partners (row `members`) are all here; the others are sent to wait. In
/// machine code there are no members: those act together that execute together.
fn assemble(w: &mut Warp<'_>, mask: u32, members: Slot) -> u32 {
    if members == Slot::NONE {
        return mask;
    }
    let alive = w.alive;
    if let Some(wanted) = everywhere(w, members)
        && wanted & alive & !mask == 0
    {
        return mask;
    }
    let (mut blocked, mut need) = (0, 0);
    each(mask, |l| {
        let wanted = w.get(members, l) as u32 & alive;
        if wanted & !mask != 0 {
            blocked |= 1 << l;
            need |= wanted;
        }
    });
    if blocked != 0 {
        let group = Group { wait: Wait::Lanes(need), ..w.here(w.pc) };
        w.send(blocked, group);
    }
    mask & !blocked
}

/// The value of an operand, if it is the same in all lanes.
fn the_same(w: &Warp<'_>, slot: Slot) -> Option<u32> {
    if slot == Slot::NONE {
        return None;
    }
    let first = w.get(slot, 0) as u32;
    // SAFETY: a live row, which nobody writes meanwhile.
    let row = unsafe { &(*w.row(slot)).0 };
    let differ = row.iter().fold(0, |differ, &value| differ | (value as u32 ^ first));
    (differ == 0).then_some(first)
}

/// The value of a constant operand, which is the same in all lanes.
fn everywhere(w: &Warp<'_>, slot: Slot) -> Option<u32> {
    (slot != Slot::NONE && slot.0 & Slot::CONSTANT != 0).then(|| w.get(slot, 0) as u32)
}

fn finish(w: &mut Warp<'_>, ready: u32, mask: u32) -> Next {
    if ready == mask {
        return Next::Step;
    }
    w.pc += 1;
    Next::Repick
}

/// The lanes that have the same member mask as the first of `left`, and that mask.
fn team(w: &Warp<'_>, left: u32, members: Slot) -> (u32, u32) {
    if members == Slot::NONE {
        return (left, left);
    }
    let wanted = w.get(members, left.trailing_zeros() as usize) as u32;
    if members.0 & Slot::CONSTANT != 0 {
        return (left, wanted);
    }
    let mut team = 0;
    each(left, |l| team |= u32::from(w.get(members, l) as u32 == wanted) << l);
    (team, wanted)
}

/// `bar.warp.sync`
#[inline(never)]
pub(crate) fn warp_barrier(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::WarpBarrier::of(i);
    let ready = assemble(w, mask, i.members());
    if w.env.events.is_some() {
        let mut left = ready;
        while left != 0 {
            let (team, wanted) = team(w, left, i.members());
            left &= !team;
            w.tell_synchronises(Some((w.pc, SyncKind::WarpBarrier)));
            w.tell_lanes(team & wanted, |events, lanes| events.warp_meets(lanes));
        }
    }
    finish(w, ready, mask)
}

/// NOP: the assembler leaves it where a `__syncwarp()` was and the lanes are together (ptxas 12.8,
/// 12.9, 13.0 and 13.4, for 8.0 to 10.0). For those who observe it is that barrier.
#[inline(never)]
pub(crate) fn lanes_meet(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    w.tell_synchronises(None);
    w.tell_lanes(mask, |events, lanes| events.warp_meets(lanes));
    Next::Step
}

/// Which lane a lane shuffles from, and whether that one is inside its segment.
#[inline(always)]
pub fn source_of(mode: u32, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (segment, clamp) = (c >> 8 & 31, c & 31);
    let highest = (lane & segment) | (clamp & !segment);
    let (from, ok) = match mode {
        0 => (lane.wrapping_sub(b), lane as i32 - b as i32 >= highest as i32),
        1 => (lane + b, lane + b <= highest),
        2 => (lane ^ b, lane ^ b <= highest),
        _ => {
            let from = (lane & segment) | (b & !segment);
            (from, from <= highest)
        }
    };
    (if ok { from } else { lane }, ok)
}

/// The same for all lanes.
fn sources(mode: u32, (b, c): (u32, u32)) -> [(u32, bool); LANES] {
    macro_rules! all {
        ($mode:expr) => {
            std::array::from_fn(|lane| source_of($mode, lane as u32, b & 31, c))
        };
    }
    // With the mode known the loop has no branches.
    match mode {
        0 => all!(0),
        1 => all!(1),
        2 => all!(2),
        _ => all!(3),
    }
}

/// Shuffles of whole warps by the same distance in all lanes, as moves of whole rows. Returns the
/// lanes whose source is inside; None: it is another shuffle.
#[inline(always)]
fn shift_rows(w: &mut Warp<'_>, i: operands::Shuffle<'_>, source: &[u64; LANES], b: u32, c: u32) -> Option<u32> {
    let distance = b as usize;
    let mut to = *source;
    let inside = match (i.mode(), c) {
        (0, 0) => {
            to[distance..].copy_from_slice(&source[..LANES - distance]);
            u32::MAX << distance
        }
        (1, 31) => {
            to[..LANES - distance].copy_from_slice(&source[distance..]);
            u32::MAX >> distance
        }
        (2, 31) => {
            to = std::array::from_fn(|lane| source[lane ^ distance]);
            u32::MAX
        }
        (3, 31) => {
            to = [source[distance]; LANES];
            u32::MAX
        }
        _ => return None,
    };
    let d = w.row_mut(i.d());
    // SAFETY: a live row; no other reference to it is there.
    unsafe { (*d).0 = to };
    Some(inside)
}

/// `shfl.sync`: `d` gets the value of another lane; predicate `inside` says whether that lane is in
/// the segment.
#[inline(never)]
pub(crate) fn shuffle(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Shuffle::of(i);
    let ready = assemble(w, mask, i.members());
    // SAFETY: a live row, copied before anything is written.
    let source: Row = unsafe { (*w.row(i.value())).clone() };
    let mut inside = 0;
    let known = if ready == u32::MAX { the_same(w, i.lane()).zip(the_same(w, i.clamp())) } else { None };
    if let Some((b, c)) = known
        && let Some(inside) = shift_rows(w, i, &source.0, b & 31, c)
    {
        w.set_pred(i.inside(), ready, inside);
        return finish(w, ready, mask);
    }
    if let (u32::MAX, Some(known)) = (ready, known) {
        let sources = sources(i.mode(), known);
        for (l, &(from, ok)) in sources.iter().enumerate() {
            inside |= u32::from(ok) << l;
            w.set(i.d(), l, source.0[from as usize & 31]);
        }
        w.set_pred(i.inside(), ready, inside);
        return finish(w, ready, mask);
    }
    each(ready, |l| {
        let (b, c) = known.unwrap_or_else(|| (w.get(i.lane(), l) as u32, w.get(i.clamp(), l) as u32));
        let (from, ok) = source_of(i.mode(), l as u32, b & 31, c);
        inside |= u32::from(ok) << l;
        w.set(i.d(), l, source.0[from as usize & 31]);
    });
    w.set_pred(i.inside(), ready, inside);
    finish(w, ready, mask)
}

/// `vote.sync`: the modes are 0 all, 1 any, 2 uni (to predicate `p`), 3 ballot (to row `d`).
#[inline(never)]
pub(crate) fn vote(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Vote::of(i);
    let ready = assemble(w, mask, i.members());
    let truth = w.pred(i.truth());
    let mut left = ready;
    while left != 0 {
        let (team, _) = team(w, left, i.members());
        left &= !team;
        let votes = truth & team;
        let result = match i.mode() {
            0 => votes == team,
            1 => votes != 0,
            2 => votes == team || votes == 0,
            _ => {
                each(team, |l| w.set(i.d(), l, u64::from(votes)));
                continue;
            }
        };
        w.set_pred(i.p(), team, if result { u32::MAX } else { 0 });
    }
    finish(w, ready, mask)
}

/// `activemask`
#[inline(never)]
pub(crate) fn active_mask(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::ActiveMask::of(i);
    each(mask, |l| w.set(i.d(), l, u64::from(mask)));
    Next::Step
}

/// `elect.sync`: row `d` gets the leader, predicate `p` is true there.
#[inline(never)]
pub(crate) fn elect(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Elect::of(i);
    let ready = assemble(w, mask, i.members());
    let mut left = ready;
    while left != 0 {
        let (team, _) = team(w, left, i.members());
        left &= !team;
        let leader = team.trailing_zeros();
        each(team, |l| w.set(i.d(), l, u64::from(leader)));
        w.set_pred(i.p(), team, 1 << leader);
    }
    finish(w, ready, mask)
}

/// `match.sync`: `all` is 0 for any (to row `d`), 1 for all (to row `d` and predicate `same`).
#[inline(never)]
pub(crate) fn match_values(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Match::of(i);
    let ready = assemble(w, mask, i.members());
    // SAFETY: a live row, copied before anything is written.
    let source: Row = unsafe { (*w.row(i.value())).clone() };
    let mut left = ready;
    while left != 0 {
        let (team, _) = team(w, left, i.members());
        left &= !team;
        if i.all() == 0 {
            each(team, |l| {
                let mut same = 0;
                each(team, |other| same |= u32::from(source.0[other] == source.0[l]) << other);
                w.set(i.d(), l, u64::from(same));
            });
        } else {
            let first = source.0[team.trailing_zeros() as usize];
            let mut equal = true;
            each(team, |l| equal &= source.0[l] == first);
            each(team, |l| w.set(i.d(), l, if equal { u64::from(team) } else { 0 }));
            w.set_pred(i.same(), team, if equal { u32::MAX } else { 0 });
        }
    }
    finish(w, ready, mask)
}

/// `redux.sync`
#[inline(never)]
pub(crate) fn reduce(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Reduce::of(i);
    let ready = assemble(w, mask, i.members());
    // SAFETY: a live row, copied before anything is written.
    let source: Row = unsafe { (*w.row(i.value())).clone() };
    let mut left = ready;
    while left != 0 {
        let (team, _) = team(w, left, i.members());
        left &= !team;
        let mut result: Option<u32> = None;
        each(team, |l| {
            let value = source.0[l] as u32;
            let value = if i.function() >= REDUX_ABS { value & 0x7fff_ffff } else { value };
            result = Some(match result {
                None => value,
                Some(so_far) => reduce_two(i.function(), so_far, value),
            });
        });
        each(team, |l| w.set(i.d(), l, u64::from(result.unwrap_or(0))));
    }
    finish(w, ready, mask)
}

/// Added to the number of a floating-point operation of `redux` that takes absolute values.
pub(crate) const REDUX_ABS: u32 = 32;

fn reduce_two(op: u32, a: u32, b: u32) -> u32 {
    let (fa, fb) = (f32::from_bits(a), f32::from_bits(b));
    match op & 31 {
        0 => a.wrapping_add(b),
        1 => a.min(b),
        2 => a.max(b),
        3 => (a as i32).min(b as i32) as u32,
        4 => (a as i32).max(b as i32) as u32,
        5 => a & b,
        6 => a | b,
        7 => a ^ b,
        8 => crate::float::min32(fa, fb).to_bits(),
        9 => crate::float::max32(fa, fb).to_bits(),
        10 => crate::float::min32_nan(fa, fb).to_bits(),
        _ => crate::float::max32_nan(fa, fb).to_bits(),
    }
}

/// `barrier.sync`, `.arrive`, `.red`: of a number of threads, or of all.
#[inline(never)]
pub(crate) fn barrier(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Barrier::of(i);
    let first = mask.trailing_zeros() as usize;
    let number = w.get(i.number(), first) as u8 & 15;
    let expected = if i.threads() == Slot::NONE { 0 } else { w.get(i.threads(), first) as u32 };
    let truth = if i.what() >= BARRIER_POPC { w.pred(i.truth()) } else { 0 };
    let index = w.index as usize;
    let waits = i.what() != BARRIER_ARRIVE;
    // A vote of the block is more than a barrier.
    let by = (i.what() < BARRIER_POPC).then_some((w.pc, SyncKind::BlockBarrier));
    w.tell_synchronises(by);
    w.tell_lanes(mask, |events, lanes| events.barrier_arrives(number, lanes, waits));
    let phase = w.block().arrive(number, index, mask, expected, truth);
    if w.block().barrier_passed(number, phase).is_some() {
        w.tell_barrier_completes(mask, number, expected == 0);
    }
    if i.what() == BARRIER_ARRIVE {
        return Next::Step;
    }
    // A whole warp needs no groups.
    if i.what() == BARRIER_SYNC && mask == w.active && w.groups.is_empty() {
        if w.block().barrier_passed(number, phase).is_some() {
            return Next::Step;
        }
        w.parked = Some((number, phase));
        return Next::Parked;
    }
    let group = Group { wait: Wait::Barrier(number, phase), ..w.here(w.pc) };
    w.send(mask, group);
    w.pc += 1;
    Next::Repick
}

/// `barrier.cluster.arrive`
#[inline(never)]
pub(crate) fn cluster_arrive(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let releases = operands::ClusterArrive::of(i).relaxed() == 0;
    w.tell_lanes(mask, |events, lanes| events.meeting_arrives(Meeting::Cluster, lanes, releases));
    let index = w.index as usize;
    w.block().arrive_in_cluster(index, mask);
    Next::Step
}

/// `barrier.cluster.wait`: until all threads of the cluster have arrived for the phase that these
/// lanes arrived for.
#[inline(never)]
pub(crate) fn cluster_wait(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    let index = w.index as usize;
    let phase = w.block().cluster_phase(index, mask);
    if w.block().members.passed(phase) {
        w.tell_lanes(mask, |events, lanes| events.meeting_passes(Meeting::Cluster, lanes));
        return Next::Step;
    }
    let group = Group { wait: Wait::Cluster(phase), ..w.here(w.pc) };
    w.send(mask, group);
    w.pc += 1;
    Next::Repick
}

/// `setmaxnreg`: the warp has another count of registers from here on.
#[inline(never)]
pub(crate) fn set_registers(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let (i, index) = (operands::SetRegisters::of(i), w.index as usize);
    match w.block().registers.ask(index, i.count(), i.more() == 1) {
        Answer::Granted => Next::Step,
        Answer::Misuse(why) => w.fail(FaultKind::Registers(why), mask),
        Answer::Wait => {
            let group = Group { wait: Wait::Registers(i.count()), ..w.here(w.pc) };
            w.send(mask, group);
            w.pc += 1;
            Next::Repick
        }
    }
}
