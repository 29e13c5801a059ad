//! Convergence barriers: BSSY, BSYNC, BREAK and moves of barrier registers.
//!
//! A barrier register holds the lanes that are to meet. Hardware has one for the warp. Here each
//! lane has its own, so that groups that have parted may use the same number at the same time.
//! Lanes wait until all live lanes of their mask have come to a BSYNC of that barrier, wherever in
//! the code.

use crate::exec::per_lane::each;
use crate::operations::operands;
use crate::program::{Inst, Next, Slot};
use crate::warp::{Group, Wait, Warp};

/// BSSY: barrier row `d` becomes the lanes that execute this together.
#[inline(never)]
pub(crate) fn begin(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Begin::of(i);
    each(mask, |l| w.set(i.d(), l, u64::from(mask)));
    Next::Step
}

/// BMOV: barrier row `d` from register `a`.
#[inline(never)]
pub(crate) fn set(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::SetBarrier::of(i);
    each(mask, |l| {
        let value = w.get(i.a(), l);
        w.set(i.d(), l, value);
    });
    Next::Step
}

/// BMOV: register `d` from a barrier row, which is cleared where `clear` is 1.
#[inline(never)]
pub(crate) fn get(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::GetBarrier::of(i);
    each(mask, |l| {
        let value = w.get(i.barrier(), l);
        w.set(i.d(), l, value & 0xffff_ffff);
        if i.clear() == 1 {
            w.set(i.cleared(), l, 0);
        }
    });
    Next::Step
}

/// True when a waiting group stands at a BSYNC of the same barrier.
fn waits_here(w: &Warp<'_>, group: &Group, barrier: Slot) -> bool {
    let code = &w.env.program.code[group.pc as usize];
    matches!(group.wait, Wait::Lanes(_)) && code.meeting() == Some(barrier)
}

/// BSYNC: waits for the lanes in a barrier row.
#[inline(never)]
pub(crate) fn meet(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let barrier = operands::Meet::of(i).members();
    let mut here = mask;
    for at in 0..w.groups.len() {
        if waits_here(w, &w.groups[at], barrier) {
            here |= w.groups[at].mask;
        }
    }
    let (mut ready, mut blocked, mut need) = (0, 0, 0);
    each(mask, |l| {
        let team = w.get(barrier, l) as u32 & w.alive;
        if team & !here == 0 {
            ready |= team | 1 << l;
        } else {
            blocked |= 1 << l;
            need |= team;
        }
    });
    let woken = ready & !mask;
    if woken != 0 {
        for at in 0..w.groups.len() {
            let group = w.groups[at];
            if waits_here(w, &group, barrier) && group.mask & woken != 0 {
                w.groups[at].mask &= !woken;
                w.send(group.mask & woken, Group { wait: Wait::None, pc: group.pc + 1, ..group });
            }
        }
        w.groups.retain(|group| group.mask != 0);
    }
    if blocked != 0 {
        let group = Group { wait: Wait::Lanes(need), ..w.here(w.pc) };
        w.send(blocked, group);
    }
    if blocked == 0 && woken == 0 {
        return Next::Step;
    }
    w.pc += 1;
    Next::Repick
}

/// NANOSLEEP: lets others run. Lanes that sleep in a loop wait for something, so it counts as
/// many YIELDs.
#[inline(never)]
pub(crate) fn sleep(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    w.yields += SLEEP;
    crate::exec::control::give_way(w, i, mask)
}

const SLEEP: u32 = PATIENCE;

/// Times that lanes of a warp yield before those that wait for them at a BSYNC go on alone.
const PATIENCE: u32 = 256;

/// YIELD: compilers put it into loops that may wait for lanes which are ahead. Those may stand at a
/// BSYNC and wait for the lanes in the loop. So that all get on, they are let go after a while, and
/// the others do not wait for them any more.
#[inline(never)]
pub(crate) fn give_way(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    if !w.groups.iter().any(|group| matches!(group.wait, Wait::Lanes(_))) {
        return Next::Step;
    }
    w.yields += 1;
    if w.yields < PATIENCE {
        return Next::Step;
    }
    w.yields = 0;
    let mut released = false;
    for at in 0..w.groups.len() {
        if let Some(team) = w.team_at_meeting(at)
            && team & mask != 0
        {
            w.let_go(at, team);
            released = true;
        }
    }
    if !released {
        return Next::Step;
    }
    w.pc += 1;
    Next::Repick
}

/// BREAK: takes lanes out of a barrier row of all lanes that they were to meet.
#[inline(never)]
pub(crate) fn leave(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Leave::of(i);
    let mut others = 0;
    each(mask, |l| others |= w.get(i.members(), l) as u32);
    each(others & w.alive, |l| {
        let team = w.get(i.members(), l);
        w.set(i.kept(), l, team & !u64::from(mask));
    });
    let mut waiting = false;
    for group in &mut w.groups {
        if matches!(group.wait, Wait::Lanes(_)) {
            // They look again whom they wait for.
            group.wait = Wait::None;
            waiting = true;
        }
    }
    if !waiting {
        return Next::Step;
    }
    w.pc += 1;
    Next::Repick
}
