//! The short way for most accesses of most kernels. It finds no race and changes nothing but
//! histories that hold the past of the accessing thread and of its block, plain reads, or atomic
//! operations that reach each other; it leaves everything else to the detector.

mod lanes;
mod pieces;
mod runs;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::detector::State;
use crate::events::{Kind, LANES, Memory, Order, Scope, Strength, WarpAccess};
use crate::pair::lanes;
use crate::records::Habits;
use crate::shadow::{Access, List, Page, Shadow, is_long, is_too_long};
use crate::simple::lanes::{Groups, are_apart};
use crate::threads::{Block, Thread};

impl State {
    /// Takes care of lanes that have to do with their own past and that of the block only, of
    /// reads that no write is near, and of relaxed atomic operations among themselves: most
    /// accesses of most kernels. Returns the others.
    pub(crate) fn simple(&mut self, access: &WarpAccess<'_>) -> u32 {
        let all = access.lanes;
        #[cfg(test)]
        if self.no_short_way {
            return all;
        }
        let shared = access.memory != Memory::Global;
        if access.asynchronous
            || access.object
            || access.bulk.is_some()
            || !matches!(access.size, 1 | 2 | 4 | 8 | 16)
            || self.has_objects && (shared || access.kind == Kind::Atomic)
        {
            return all;
        }
        let Some(block) = self.blocks.get(&access.block) else { return all };
        let shadow = self.shadows.entry(access.memory).or_default();
        let is_simple = match (access.kind, access.strength) {
            (Kind::Read | Kind::Write, strength) => strength == Strength::Plain,
            (Kind::Atomic, strength) => {
                matches!(strength, Strength::Strong(Order::RELAXED, scope) if scope != Scope::Cluster)
            }
        };
        let left = match together(access, block).filter(|_| is_simple) {
            Some(clock) => by_lines(shadow, block, access, (clock, self.locations.is_empty())),
            None => all,
        };
        if left == 0 {
            return 0;
        }
        let access = &WarpAccess { lanes: left, ..*access };
        let all = left;
        match (access.kind, access.strength) {
            (Kind::Read, Strength::Plain) => reads(shadow, block, access, &mut self.scratch),
            (Kind::Write, Strength::Plain) => writes(shadow, block, access),
            (Kind::Atomic, Strength::Strong(Order::RELAXED, scope)) if scope != Scope::Cluster => {
                let known =
                    |address| !self.locations.is_empty() && self.locations.contains_key(&(access.memory, address));
                atomics(shadow, block, access, (scope, &known, &mut self.habits, &mut self.scratch))
            }
            _ => all,
        }
    }
}

/// The epoch and the floor of the lanes of an access, if they have the same and know of no other
/// block.
fn together(access: &WarpAccess<'_>, block: &Block) -> Option<(u64, u64)> {
    let of_warp = &block.threads[access.warp as usize * LANES..][..LANES];
    let first = &of_warp[access.lanes.trailing_zeros() as usize];
    let alike = |lane: u32| {
        let thread = &of_warp[lane as usize];
        (thread.epoch, thread.floor) == (first.epoch, first.floor)
            && (Arc::ptr_eq(&thread.known, &first.known) || thread.known.is_empty())
    };
    (first.known.is_empty() && lanes(access.lanes).all(alike)).then_some((first.epoch, first.floor))
}

/// An access to lines that are not cut. Returns the lanes that are left.
fn by_lines(
    shadow: &mut Shadow,
    block: &Block,
    access: &WarpAccess<'_>,
    ((epoch, floor), nothing_released): ((u64, u64), bool),
) -> u32 {
    let (all, cell) = (access.lanes, access.size.trailing_zeros());
    let (what, cursor) = ((all, access.addresses, cell), &mut shadow.cursor(cell));
    let now = |flags| Access { epoch, ..kept(access, block, flags) };
    match (access.kind, access.strength) {
        (Kind::Read, _) => {
            let now = now(Access::READ);
            pieces::each(what, false, cursor, |line, piece| runs::read(line, piece, &now, floor))
        }
        (Kind::Write, _) => {
            let now = now(Access::WRITE);
            pieces::each(what, true, cursor, |line, piece| {
                let is_unchanged = |cell: &u32| access.unchanged & piece.spread.at(*cell) != 0;
                let unchanged = if access.unchanged & piece.lanes == 0 {
                    0
                } else {
                    lanes(piece.cells).filter(is_unchanged).fold(0, |cells, cell| cells | 1 << cell)
                };
                runs::write(line, piece, &now, floor, unchanged)
            })
        }
        (Kind::Atomic, Strength::Strong(_, scope)) if nothing_released => {
            let first = access.warp as usize * LANES;
            if !lanes(all).all(|lane| block.threads[first + lane as usize].publishes_nothing()) {
                return all;
            }
            let mut now = now(Access::READ | Access::WRITE | Access::STRONG);
            now.reach |= scope as u8;
            pieces::each(what, false, cursor, |line, piece| runs::atomic(line, piece, &now, floor))
        }
        _ => all,
    }
}

/// An access of lanes that are at one address, as the history keeps it.
fn kept(access: &WarpAccess<'_>, block: &Block, flags: u8) -> Access {
    let whole = if access.executing == block.alive(access.warp) { Access::WHOLE } else { 0 };
    Access {
        epoch: 0,
        block: access.block,
        lanes: 0,
        site: access.site,
        warp: access.warp as u8,
        flags: whole | flags,
        reach: (access.size.trailing_zeros() as u8) << 4,
        exact: true,
    }
}

/// Whether an access is plain, and of single warps.
fn is_plain(access: &Access) -> bool {
    access.flags & (Access::STRONG | Access::COPY | Access::BULK) == 0 && !access.is_wide()
}

/// Reads, a group of lanes at one address at a time. Returns the lanes that are left.
fn reads(shadow: &mut Shadow, block: &Block, access: &WarpAccess<'_>, room: &mut Vec<Access>) -> u32 {
    let of_warp = &block.threads[access.warp as usize * LANES..][..LANES];
    let (cell, template) = (access.size.trailing_zeros(), kept(access, block, Access::READ));
    let (mut left, mut cursor) = (0, shadow.cursor(cell));
    if are_apart(access.lanes, access.addresses) {
        for lane in lanes(access.lanes) {
            let thread = &of_warp[lane as usize];
            let now = Access { lanes: 1 << lane, epoch: thread.epoch, ..template };
            let done = match cursor.at(access.addresses[lane as usize]) {
                Some((page, index)) => read(page, index, &now, thread, room),
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
        let done = (group.is_power_of_two() || lanes(group).all(alike))
            && match cursor.at(address) {
                Some((page, index)) => read(page, index, &now, thread, room),
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
            _ => {}
        }
    }
    joins_readers(page, index, now, thread, room)
}

/// Adds a plain read to a history of plain reads and past writes, or finds that the history says as
/// much already. False: nothing was done.
fn joins_readers(page: &mut Page, index: u32, now: &Access, thread: &Thread, kept: &mut Vec<Access>) -> bool {
    let (slots, more) = page.whole(index);
    let taken = slots.iter().filter(|access| access.flags != 0).count();
    // Whether it has something behind it that leaves the history then, and whether all is of its
    // block.
    let (mut says_so, mut leaves, mut alone, mut same_instruction) = (false, false, true, None);
    let count = taken + more.as_ref().map_or(0, |more| more.all.len());
    let mut is_known = |at: usize, before: &Access| {
        let of_block = before.block == now.block;
        if before.flags & !Access::WHOLE != Access::READ {
            return before.is(Access::WRITE) && of_block && is_plain(before) && before.epoch < thread.floor;
        }
        if before.is_wide() {
            // It stands for all threads of its blocks.
            says_so |= before.includes(now);
            alone = false;
        } else if of_block {
            let own = before.warp == now.warp;
            let same = (before.epoch, before.site, before.reach) == (now.epoch, now.site, now.reach);
            says_so |= own && same && before.lanes & now.lanes == now.lanes;
            if own && same && before.flags == now.flags {
                same_instruction = Some(at);
            }
            leaves |= before.epoch < thread.floor || own && before.lanes & now.lanes != 0;
        } else {
            alone = false;
        }
        true
    };
    for (at, before) in slots[..taken].iter().enumerate() {
        if !is_known(at, before) {
            return false;
        }
    }
    if let Some(more) = &more {
        // The block's own are the last ones, then.
        let others = |before: &Access| more.in_order && before.last_block() < now.block;
        for (at, before) in more.all.iter().enumerate().rev() {
            if !is_known(taken + at, before) {
                return false;
            }
            if others(before) {
                break;
            }
        }
    }
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

/// Writes of lanes at addresses that go upwards or downwards. Returns the lanes that are left.
fn writes(shadow: &mut Shadow, block: &Block, access: &WarpAccess<'_>) -> u32 {
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
        let done = match cursor.at(access.addresses[lane as usize]) {
            None => false,
            Some((page, index)) => {
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
            }
        };
        left |= u32::from(!done) << lane;
    }
    left
}

/// Relaxed atomic operations of threads that have passed no fence, where nothing was released.
/// Returns the lanes that are left.
fn atomics(
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
