//! The short way for most accesses of most kernels. It finds no race and changes nothing but
//! histories that hold the past of the accessing thread and of its block, plain reads, or atomic
//! operations that reach each other; it leaves everything else to the detector.

use crate::detector::State;
use crate::events::{Kind, LANES, Memory, Order, Scope, Strength, WarpAccess};
use crate::lanes::{Groups, are_apart};
use crate::pair::lanes;
use crate::records::Habits;
use crate::shadow::{Access, Page, Shadow, is_long};
use crate::threads::{Block, Thread};

impl State {
    /// Takes care of lanes that have to do with their own past and that of the block only, of
    /// reads that no write is near, and of relaxed atomic operations among themselves: most
    /// accesses of most kernels. Returns the others.
    pub(crate) fn simple(&mut self, access: &WarpAccess<'_>) -> u32 {
        let all = access.lanes;
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
        match (access.kind, access.strength) {
            (Kind::Read, Strength::Plain) => reads(shadow, block, access),
            (Kind::Write, Strength::Plain) => writes(shadow, block, access),
            (Kind::Atomic, Strength::Strong(Order::RELAXED, scope)) if scope != Scope::Cluster => {
                let known = |address| self.locations.contains_key(&(access.memory, address));
                atomics(shadow, block, access, (scope, &known, &mut self.habits))
            }
            _ => all,
        }
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
fn reads(shadow: &mut Shadow, block: &Block, access: &WarpAccess<'_>) -> u32 {
    let of_warp = &block.threads[access.warp as usize * LANES..][..LANES];
    let (cell, template) = (access.size.trailing_zeros(), kept(access, block, Access::READ));
    let (mut left, mut cursor) = (0, shadow.cursor(cell));
    if are_apart(access.lanes, access.addresses) {
        for lane in lanes(access.lanes) {
            let thread = &of_warp[lane as usize];
            let now = Access { lanes: 1 << lane, epoch: thread.epoch, ..template };
            let done = match cursor.at(access.addresses[lane as usize]) {
                Some((page, index)) => read(page, index, &now, thread),
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
                Some((page, index)) => read(page, index, &now, thread),
                None => false,
            };
        left |= if done { 0 } else { group };
    }
    left
}

/// A plain read of lanes with one clock. Whether that is taken care of.
#[inline]
fn read(page: &mut Page, index: u32, now: &Access, thread: &Thread) -> bool {
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
    joins_readers(page, index, now, thread)
}

/// Adds a plain read to a history of plain reads and past writes, or finds that the history says as
/// much already. False: nothing was done.
fn joins_readers(page: &mut Page, index: u32, now: &Access, thread: &Thread) -> bool {
    let (slots, more) = page.whole(index);
    let taken = slots.iter().filter(|access| access.flags != 0).count();
    let (mut adds, mut says_so, mut same_instruction) = (thread.known.is_empty(), false, None);
    let kept = more.as_ref().map_or(0, |more| more.len());
    for (at, before) in slots.iter().take(taken).chain(more.iter().flat_map(|more| more.iter())).enumerate() {
        let of_block = before.block == now.block;
        if before.is(Access::WRITE) && of_block && is_plain(before) && before.epoch < thread.floor {
            continue;
        }
        if before.flags & !Access::WHOLE != Access::READ {
            return false;
        }
        if before.is_wide() {
            // It stands for all threads of its blocks.
            says_so |= before.includes(now);
            adds &= !(before.block..=before.lanes).contains(&now.block);
        } else if of_block {
            let own = before.warp == now.warp;
            let same = (before.epoch, before.site, before.reach) == (now.epoch, now.site, now.reach);
            says_so |= own && same && before.lanes & now.lanes == now.lanes;
            if own && same && before.flags == now.flags {
                same_instruction = Some(at);
            }
            // What it has behind it leaves the history.
            adds &= before.epoch >= thread.floor && (!own || before.lanes & now.lanes == 0);
        }
    }
    if says_so || !adds {
        return says_so;
    }
    if let Some(at) = same_instruction {
        let entry = if at < taken { Some(&mut slots[at]) } else { more.and_then(|more| more.get_mut(at - taken)) };
        return entry.map(|entry| entry.lanes |= now.lanes).is_some();
    }
    if taken < slots.len() || is_long(taken + kept + 1) {
        return false;
    }
    page.push(index, now);
    true
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
                        && more.as_ref().is_none_or(|more| more.iter().all(behind));
                if is_past {
                    *slots = [now, Access::default()];
                    more.into_iter().for_each(Vec::clear);
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
    (scope, is_known, habits): (Scope, &dyn Fn(u64) -> bool, &mut Habits),
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
                Some((page, index)) => joins_atomics(page, index, &now, thread, habits),
                None => false,
            };
        left |= if done { 0 } else { group };
    }
    left
}

/// Adds an atomic operation to a history of such that reach it, and of what its block has behind
/// it. False: nothing was done.
fn joins_atomics(page: &mut Page, index: u32, now: &Access, thread: &Thread, habits: &mut Habits) -> bool {
    let alike = |before: &Access| {
        (before.flags ^ now.flags) & !Access::WHOLE == 0
            && before.reach == now.reach
            && (now.reach & 3 == Scope::Device as u8
                || before.block == now.block && (!before.is_wide() || before.lanes == now.block))
    };
    let past = |before: &Access| before.block == now.block && before.epoch < thread.floor;
    let (slots, more) = page.whole(index);
    let taken = slots.iter().filter(|access| access.flags != 0).count();
    let count = taken + more.as_ref().map_or(0, |more| more.len());
    let all = slots.iter().take(taken).chain(more.iter().flat_map(|more| more.iter()));
    let (mut mine, mut covers, mut says_so) = (None, false, false);
    for (at, before) in all.enumerate() {
        if before.is_wide() && alike(before) {
            says_so |= before.includes(now);
            // It is to become the latest.
            if before.includes(now) && at + 1 < count {
                return false;
            }
        } else if alike(before) {
            let own = (before.block, before.warp) == (now.block, now.warp);
            let again = own && before.lanes & now.lanes != 0;
            if again && before.site == now.site {
                habits.polls.insert(now.site);
            }
            if own && (before.epoch, before.site, before.flags) == (now.epoch, now.site, now.flags) {
                mine = Some(at);
                if at + 1 < count {
                    return false;
                }
            } else {
                // The later one stands for what comes before it.
                covers |= again || past(before);
            }
        } else if !(is_plain(before) && past(before)) {
            return false;
        }
    }
    if covers || says_so {
        return !covers;
    }
    match mine {
        Some(at) if at < taken => slots[at].lanes |= now.lanes,
        Some(at) => {
            let entry = more.and_then(|more| more.get_mut(at - taken));
            return entry.map(|entry| entry.lanes |= now.lanes).is_some();
        }
        None if taken < slots.len() => slots[taken] = *now,
        None => {
            if is_long(count + 1) {
                return false;
            }
            page.push(index, now);
        }
    }
    true
}
