//! Accesses to single cells, a group of lanes at one address at a time. An access of several cells
//! of which one is left is left as a whole; what was done to the others is the same done twice.

use crate::events::{LANES, Scope, WarpAccess};
use crate::pair::{Group, lanes};
use crate::records::Habits;
use crate::shadow::{Access, List, Page, Shadow, is_long, is_too_long};
use crate::simple::kept;
use crate::simple::lanes::{Groups, are_apart};
use crate::threads::{Block, Thread};

/// Whether an access is plain, and of single warps.
fn is_plain(access: &Access) -> bool {
    access.flags & (Access::STRONG | Access::COPY | Access::BULK) == 0 && !access.is_wide()
}

/// Reads, a group of lanes at one address at a time. `are_alike`: all of them have one clock and
/// know of no other block. Returns the lanes that are left.
pub(super) fn reads(
    shadow: &mut Shadow,
    block: &Block,
    access: &WarpAccess<'_>,
    (are_alike, room): (bool, &mut Vec<Access>),
) -> u32 {
    let of_warp = &block.threads[access.warp as usize * LANES..][..LANES];
    let (cell, template) = (access.size.trailing_zeros(), kept(access, block, Access::READ));
    let (mut left, mut cursor) = (0, shadow.cursor(cell));
    if are_apart(access.lanes, access.addresses) {
        for lane in lanes(access.lanes) {
            let thread = &of_warp[lane as usize];
            let now = Access { lanes: 1 << lane, epoch: thread.epoch, ..template };
            let done = match cursor.cells_at(access.addresses[lane as usize]) {
                Some((page, mut cells)) => cells.all(|index| read(page, index, &now, thread, room)),
                None => false,
            };
            left |= u32::from(!done) << lane;
        }
        return left;
    }
    for &(address, group) in Groups::of(access.lanes, access.addresses, cell).iter() {
        let thread = &of_warp[group.trailing_zeros() as usize];
        let alike = |lane: u32| {
            let other = &of_warp[lane as usize];
            (other.epoch, other.floor) == (thread.epoch, thread.floor) && other.known.is_empty()
        };
        let now = Access { lanes: group, epoch: thread.epoch, ..template };
        let done = (are_alike || group.is_power_of_two() || lanes(group).all(alike))
            && match cursor.cells_at(address) {
                Some((page, mut cells)) => cells.all(|index| read(page, index, &now, thread, room)),
                None => false,
            };
        left |= if done { 0 } else { group };
    }
    left
}

/// A plain read of lanes with one clock. Whether that is taken care of.
#[inline]
fn read(page: &mut Page, index: u32, now: &Access, thread: &Thread, room: &mut Vec<Access>) -> bool {
    let past = |before: &Access| before.block == now.block && is_plain(before) && before.epoch < thread.floor;
    let own = |before: &Access| {
        (before.block, before.warp, before.lanes) == (now.block, now.warp, now.lanes)
            && is_plain(before)
            // What one lane writes another one may read.
            && (now.lanes.is_power_of_two() || !before.is(Access::WRITE))
    };
    let behind = |before: &Access| past(before) || own(before);
    if !page.has_more(index) {
        match page.slots(index) {
            [first, _] if first.flags == 0 => {
                *first = *now;
                return true;
            }
            [first, second]
                if first.is(Access::WRITE)
                    && behind(first)
                    && (second.flags == 0 || !second.is(Access::WRITE) && behind(second)) =>
            {
                *second = *now;
                return true;
            }
            [first, second] if second.flags == 0 && behind(first) => {
                *first = *now;
                return true;
            }
            // What a write has left that met a reader.
            [first, second]
                if second.is(Access::WRITE) && !first.is(Access::WRITE) && past(first) && behind(second) =>
            {
                (*first, *second) = (*second, *now);
                return true;
            }
            _ => {}
        }
    }
    joins_readers(page, index, now, thread, room)
}

/// What a plain read finds in a history.
struct Seen {
    /// The history says as much already.
    says_so: bool,
    /// It has something behind it that leaves the history then.
    leaves: bool,
    /// All is of its block.
    alone: bool,
    /// Where its instruction is already.
    same_instruction: Option<usize>,
}

impl Seen {
    /// Looks at an access of the history. False: it is neither a plain read nor past.
    #[inline(always)]
    fn adds(&mut self, at: usize, before: &Access, now: &Access, floor: u64) -> bool {
        let of_block = before.block == now.block;
        if before.flags & !Access::WHOLE != Access::READ {
            return before.is(Access::WRITE) && of_block && is_plain(before) && before.epoch < floor;
        }
        if before.is_wide() {
            // It stands for all threads of its blocks.
            self.says_so |= before.includes(now);
            self.alone = false;
        } else if of_block {
            let own = before.warp == now.warp;
            let same = before.epoch == now.epoch && before.site == now.site && before.reach == now.reach;
            // Lanes that read it together say less than one that does by itself (`Access::WHOLE`).
            if own && same && before.flags == now.flags {
                self.says_so |= before.lanes & now.lanes == now.lanes;
                self.same_instruction = Some(at);
            }
            self.leaves |= before.epoch < floor || own && before.lanes & now.lanes != 0;
        } else {
            self.alone = false;
        }
        true
    }
}

/// Adds a plain read to a history of plain reads and past writes, or finds that the history says as
/// much already. False: nothing was done.
fn joins_readers(page: &mut Page, index: u32, now: &Access, thread: &Thread, kept: &mut Vec<Access>) -> bool {
    let (slots, more) = page.whole(index);
    let taken = slots.iter().filter(|access| access.flags != 0).count();
    let count = taken + more.as_ref().map_or(0, |more| more.all.len());
    let mut seen = Seen { says_so: false, leaves: false, alone: true, same_instruction: None };
    for (at, before) in slots[..taken].iter().enumerate() {
        if !seen.adds(at, before, now, thread.floor) {
            return false;
        }
    }
    if let Some(more) = &more {
        // The block's own are the last ones, then.
        for (at, before) in more.all.iter().enumerate().rev() {
            if !seen.adds(taken + at, before, now, thread.floor) {
                return false;
            }
            if more.in_order && before.last_block() < now.block {
                break;
            }
        }
    }
    let Seen { says_so, leaves, alone, same_instruction } = seen;
    if says_so || !thread.known.is_empty() {
        return says_so;
    }
    let is_long = |length| if alone { is_too_long(length) } else { is_long(length) };
    if !leaves {
        if let Some(at) = same_instruction {
            let entry =
                if at < taken { Some(&mut slots[at]) } else { more.and_then(|more| more.all.get_mut(at - taken)) };
            return entry.map(|entry| entry.lanes |= now.lanes).is_some();
        }
        if is_long(count + 1) {
            return false;
        }
        if taken < slots.len() {
            slots[taken] = *now;
        } else {
            page.push(index, now);
        }
        return true;
    }
    kept.clear();
    let (mut this, mut again) = (*now, false);
    for before in slots.iter().take(taken).chain(more.iter().flat_map(|more| more.all.iter())) {
        let mut entry = *before;
        if !entry.is(Access::WRITE) && !entry.is_wide() && entry.block == now.block {
            if entry.epoch < thread.floor {
                continue;
            }
            if entry.warp == now.warp {
                entry.lanes &= !now.lanes;
                if entry.lanes == 0 {
                    continue;
                }
            }
        }
        // What happened again is as late as now.
        if !again && (Access { lanes: now.lanes, ..entry }) == *now {
            again = true;
            this.lanes |= entry.lanes;
            continue;
        }
        kept.push(entry);
    }
    kept.push(this);
    !is_long(kept.len()) && page.refill(index, kept)
}

/// The same where all of a history is plain reads: keeps it without a look at what races.
pub(super) fn keep_read(history: &mut Vec<Access>, now: &Access, floor: u64) {
    history.retain_mut(|before| {
        if before.is_wide() || before.block != now.block {
            return true;
        }
        if before.warp == now.warp && !before.is_one_with(now) {
            before.lanes &= !now.lanes;
        }
        before.epoch >= floor && before.lanes != 0
    });
    if history.iter().any(|before| before.includes(now)) {
        return;
    }
    match history.iter_mut().find(|before| !before.is_wide() && before.is_one_with(now)) {
        Some(same) => same.lanes |= now.lanes,
        None => history.push(*now),
    }
}

/// Writes of lanes at addresses that go upwards or downwards. `meet` makes the group that such a
/// write is, or says that races are not for here; `tell` gets what an access of before is to it.
/// Returns the lanes that are left.
pub(super) fn writes<'a>(
    shadow: &mut Shadow,
    block: &'a Block,
    access: &WarpAccess<'_>,
    meet: impl Fn(Access) -> Option<Group<'a>>,
    mut tell: impl FnMut(&Group<'_>, &Access, (u32, u32), u64),
) -> u32 {
    let all = access.lanes;
    if !are_apart(all, access.addresses) {
        return all;
    }
    let (mut left, mut cursor) = (0, shadow.cursor(access.size.trailing_zeros()));
    let template = kept(access, block, Access::WRITE);
    for lane in lanes(all) {
        let thread = &block.threads[access.warp as usize * LANES + lane as usize];
        let now = Access { lanes: 1 << lane, epoch: thread.epoch, ..template };
        let behind = |before: &Access| {
            before.block == now.block
                && is_plain(before)
                && (before.epoch < thread.floor || before.warp == now.warp && before.lanes == now.lanes)
        };
        // A write that changes nothing must not hide others.
        let last = access.unchanged >> lane & 1 == 0;
        let done = |page: &mut Page, index| {
            let (slots, more) = page.whole(index);
            let is_past = slots[0].flags == 0
                || last
                    && slots.iter().all(|before| before.flags == 0 || behind(before))
                    && more.as_ref().is_none_or(|more| more.all.iter().all(behind));
            if is_past {
                *slots = [now, Access::default()];
                more.into_iter().for_each(List::clear);
            }
            is_past
        };
        let done = match cursor.cells_at(access.addresses[lane as usize]) {
            None => false,
            Some((page, cells)) if cells.len() == 1 => {
                let (index, address) = (cells.start, access.addresses[lane as usize]);
                done(page, index)
                    || last
                        && thread.known.is_empty()
                        && meet(now).is_some_and(|group| {
                            meets(page, index, (&group, thread), |before, pair| tell(&group, before, pair, address))
                        })
            }
            Some((page, mut cells)) => cells.all(|index| done(page, index)),
        };
        left |= u32::from(!done) << lane;
    }
    left
}

/// A write that changes what is there, of one lane, which knows of no other block, and which meets
/// plain accesses of its block that it may race with. False: nothing was done.
fn meets(
    page: &mut Page,
    index: u32,
    (group, thread): (&Group<'_>, &Thread),
    mut tell: impl FnMut(&Access, (u32, u32)),
) -> bool {
    let now = &group.access;
    let history = *page.slots(index);
    if page.has_more(index)
        || !history.iter().all(|before| before.flags == 0 || before.block == now.block && is_plain(before))
    {
        return false;
    }
    let (mut kept, mut count, mut this) = ([Access::default(); 3], 0, *now);
    for before in history.iter().filter(|before| before.flags != 0) {
        let unordered = if before.epoch < thread.floor { None } else { group.unordered(before) };
        if let Some(pair) = unordered {
            tell(before, pair);
        }
        let left = before.lanes & !group.covered(before, unordered.is_none());
        if left == 0 {
            continue;
        }
        if before.is_one_with(now) {
            // Lanes of one instruction are one access.
            this.lanes |= left;
            continue;
        }
        kept[count] = Access { lanes: left, ..*before };
        count += 1;
    }
    kept[count] = this;
    *page.slots(index) = [kept[0], kept[1]];
    if count == 2 {
        page.push(index, &this);
    }
    true
}

/// Relaxed atomic operations of threads that have passed no fence, where nothing was released.
/// Returns the lanes that are left.
pub(super) fn atomics(
    shadow: &mut Shadow,
    block: &Block,
    access: &WarpAccess<'_>,
    (scope, is_known, habits, room): (Scope, &dyn Fn(u64) -> bool, &mut Habits, &mut Vec<Access>),
) -> u32 {
    let of_warp = &block.threads[access.warp as usize * LANES..][..LANES];
    let cell = access.size.trailing_zeros();
    let mut template = kept(access, block, Access::READ | Access::WRITE | Access::STRONG);
    template.reach |= scope as u8;
    let (mut left, mut cursor) = (0, shadow.cursor(cell));
    for &(address, group) in Groups::of(access.lanes, access.addresses, cell).iter() {
        let thread = &of_warp[group.trailing_zeros() as usize];
        let alike = |lane: u32| {
            let other = &of_warp[lane as usize];
            (other.epoch, other.floor) == (thread.epoch, thread.floor) && other.publishes_nothing()
        };
        let now = Access { lanes: group, epoch: thread.epoch, ..template };
        let done = lanes(group).all(alike)
            && !is_known(address)
            && match cursor.at(address) {
                Some((page, index)) => joins_atomics(page, index, &now, thread, (habits, room)),
                None => false,
            };
        left |= if done { 0 } else { group };
    }
    left
}

/// Adds an atomic operation to a history of such that reach it, and of what its block has behind
/// it. False: nothing was done.
///
/// It leaves what [`Group::observed`](crate::pair::Group::observed) and
/// [`Group::covered`](crate::pair::Group::covered) would: of those that the threads have behind
/// them the last one is covered, as are the own ones behind it. Those before it have been observed
/// and stay, for what their threads did before is another matter.
fn joins_atomics(
    page: &mut Page,
    index: u32,
    now: &Access,
    thread: &Thread,
    (habits, kept): (&mut Habits, &mut Vec<Access>),
) -> bool {
    let alike = |before: &Access| {
        (before.flags ^ now.flags) & !Access::WHOLE == 0
            && before.reach == now.reach
            && (now.reach & 3 == Scope::Device as u8
                || before.block == now.block && (!before.is_wide() || before.lanes == now.block))
    };
    let (slots, more) = page.whole(index);
    let taken = slots.iter().filter(|access| access.flags != 0).count();
    let count = taken + more.as_ref().map_or(0, |more| more.all.len());
    // The first place behind plain accesses, the last one that all threads have behind them, where
    // there is something of the warp's own, and where this operation is already.
    let (mut first, mut last, mut touched, mut mine) = (0, None, usize::MAX, None);
    let (mut by_wide, mut alone) = (false, true);
    for (from, part) in [(0, &slots[..taken]), (taken, more.as_ref().map_or(&[][..], |more| &more.all[..]))] {
        for (at, before) in part.iter().enumerate() {
            let at = from + at;
            let of_block = before.block == now.block;
            if !alike(before) {
                // A plain access ends the chain of those that are observed. Seldom one is between.
                if first != at || !of_block || !is_plain(before) || before.epoch >= thread.floor {
                    return false;
                }
                first = at + 1;
            } else if before.is_wide() {
                alone = false;
                if before.includes(now) {
                    // It is to become the latest.
                    if at + 1 < count {
                        return false;
                    }
                    mine = Some(at);
                    by_wide = true;
                }
            } else if of_block {
                let own = before.warp == now.warp && before.lanes & now.lanes != 0;
                let past = before.epoch < thread.floor;
                if own && before.site == now.site {
                    habits.polls.insert(now.site);
                }
                if past || own && now.lanes & !before.lanes == 0 {
                    last = Some(at);
                }
                if past || own {
                    touched = touched.min(at);
                }
                if before.warp == now.warp
                    && (before.epoch, before.site, before.flags) == (now.epoch, now.site, now.flags)
                {
                    mine = Some(at);
                }
            } else {
                alone = false;
            }
        }
    }
    let is_long = |length| if alone { is_too_long(length) } else { is_long(length) };
    // Mostly it is the first of its threads, or the same as the last one.
    if touched == usize::MAX || mine == Some(touched) && touched + 1 == count {
        if let Some(at) = mine.filter(|&at| at + 1 == count) {
            let entry =
                if at < taken { Some(&mut slots[at]) } else { more.and_then(|more| more.all.get_mut(at - taken)) };
            if let Some(entry) = entry.filter(|entry| !entry.is_wide()) {
                entry.lanes |= now.lanes;
            }
            return true;
        }
        if mine.is_none() {
            if is_long(count + 1) {
                return false;
            }
            if taken < slots.len() {
                slots[taken] = *now;
            } else {
                page.push(index, now);
            }
            return true;
        }
    }
    if by_wide || !thread.known.is_empty() {
        return false;
    }
    kept.clear();
    let (mut this, mut again) = (*now, false);
    let all = slots.iter().take(taken).chain(more.iter().flat_map(|more| more.all.iter()));
    for (at, before) in all.enumerate() {
        let mut entry = *before;
        let observed = last.is_some_and(|last| at < last);
        if at >= first && !observed && !entry.is_wide() && entry.block == now.block {
            if entry.epoch < thread.floor {
                continue;
            }
            if entry.warp == now.warp {
                entry.lanes &= !now.lanes;
                if entry.lanes == 0 {
                    continue;
                }
            }
        }
        // What happened again is as late as now.
        if !again && (Access { lanes: now.lanes, ..entry }) == *now {
            again = true;
            this.lanes |= entry.lanes;
            continue;
        }
        kept.push(entry);
    }
    kept.push(this);
    !is_long(kept.len()) && page.refill(index, kept)
}
