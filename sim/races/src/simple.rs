//! The short way for most accesses of most kernels. It finds no race and changes nothing but
//! histories that hold the past of the accessing thread and of its block, or plain reads; it leaves
//! everything else to the detector.

use std::cmp::Ordering;

use crate::detector::State;
use crate::events::{Kind, LANES, Memory, Strength, WarpAccess};
use crate::pair::lanes;
use crate::shadow::{Access, KEPT, Shadow};
use crate::threads::{Block, Thread};

impl State {
    /// Takes care of lanes that have to do with their own past and that of the block only, and of
    /// reads that no write is near: most accesses of most kernels. Returns the others.
    pub(crate) fn simple(&mut self, access: &WarpAccess<'_>) -> u32 {
        let all = access.lanes;
        let shared = access.memory != Memory::Global;
        if access.strength != Strength::Plain
            || access.kind == Kind::Atomic
            || access.asynchronous
            || access.object
            || access.bulk.is_some()
            || !matches!(access.size, 1 | 2 | 4 | 8 | 16)
            || shared && self.has_objects
        {
            return all;
        }
        let Some(block) = self.blocks.get(&access.block) else { return all };
        let shadow = self.shadows.entry(access.memory).or_default();
        if access.kind == Kind::Read { reads(shadow, block, access) } else { writes(shadow, block, access) }
    }
}

/// An access of lanes that are at one address, as the history keeps it.
fn kept(access: &WarpAccess<'_>, block: &Block, lanes: u32, epoch: u64, flags: u8) -> Access {
    let whole = if access.executing == block.alive(access.warp) { Access::WHOLE } else { 0 };
    Access {
        epoch,
        block: access.block,
        lanes,
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
    let of_warp = &block.threads[access.warp as usize * LANES..];
    let (mut left, mut todo) = (0, access.lanes);
    while todo != 0 {
        let first = todo.trailing_zeros() as usize;
        let address = access.addresses[first];
        let mut group = 0;
        for (lane, other) in access.addresses.iter().enumerate() {
            group |= u32::from(*other == address) << lane;
        }
        group &= todo;
        todo &= !group;
        let thread = &of_warp[first];
        let alike = |lane: u32| {
            let other = &of_warp[lane as usize];
            (other.epoch, other.floor) == (thread.epoch, thread.floor) && other.known.is_empty()
        };
        let one = group.is_power_of_two();
        let now = kept(access, block, group, thread.epoch, Access::READ);
        if !(one || lanes(group).all(alike)) || !read(shadow, address, &now, thread) {
            left |= group;
        }
    }
    left
}

/// A plain read of lanes with one clock. Whether that is taken care of.
fn read(shadow: &mut Shadow, address: u64, now: &Access, thread: &Thread) -> bool {
    let cell = u32::from(now.reach >> 4);
    let past = |before: &Access| before.block == now.block && is_plain(before) && before.epoch < thread.floor;
    let own = |before: &Access| {
        (before.block, before.warp, before.lanes) == (now.block, now.warp, now.lanes)
            && is_plain(before)
            // What one lane writes another one may read.
            && (now.lanes.is_power_of_two() || !before.is(Access::WRITE))
    };
    let behind = |before: &Access| past(before) || own(before);
    if let Some(history) = shadow.cell(address, cell) {
        match history {
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
    joins_readers(shadow, (address, cell), now, thread)
}

/// Adds a plain read to a history of plain reads and past writes, or finds that the history says as
/// much already. False: nothing was done.
fn joins_readers(shadow: &mut Shadow, (address, cell): (u64, u32), now: &Access, thread: &Thread) -> bool {
    let Some((slots, more)) = shadow.whole(address, cell) else { return false };
    let taken = slots.iter().filter(|access| access.flags != 0).count();
    let (mut adds, mut says_so) = (thread.known.is_empty(), false);
    let kept = more.as_ref().map_or(0, |more| more.len());
    for before in slots.iter().take(taken).chain(more.iter().flat_map(|more| more.iter())) {
        let of_block = before.block == now.block;
        if before.is(Access::WRITE) && of_block && is_plain(before) && before.epoch < thread.floor {
            continue;
        }
        if before.flags & !Access::WHOLE != Access::READ {
            return false;
        }
        if before.is_wide() {
            // It stands for all threads of its blocks.
            let includes = (before.block..=before.lanes).contains(&now.block);
            says_so |= includes && before.exact && (before.epoch, before.reach) == (now.epoch, now.reach);
            adds &= !includes;
        } else if of_block {
            let own = before.warp == now.warp;
            let same = (before.epoch, before.site, before.reach) == (now.epoch, now.site, now.reach);
            says_so |= own && same && before.lanes & now.lanes == now.lanes;
            // What it has behind it leaves the history.
            adds &= before.epoch >= thread.floor && (!own || before.lanes & now.lanes == 0);
        }
    }
    if says_so || !adds || taken < slots.len() || taken + kept >= KEPT {
        return says_so;
    }
    match more {
        Some(more) => more.push(*now),
        None => shadow.push(address, cell, now),
    }
    true
}

/// Writes of lanes at addresses that go upwards or downwards. Returns the lanes that are left.
fn writes(shadow: &mut Shadow, block: &Block, access: &WarpAccess<'_>) -> u32 {
    let all = access.lanes;
    let mut steps = lanes(all)
        .zip(lanes(all).skip(1))
        .map(|(lane, next)| access.addresses[next as usize].cmp(&access.addresses[lane as usize]));
    if let Some(first) = steps.next()
        && (first == Ordering::Equal || steps.any(|step| step != first))
    {
        return all;
    }
    let cell = access.size.trailing_zeros();
    let mut left = 0;
    for lane in lanes(all) {
        let thread = &block.threads[access.warp as usize * LANES + lane as usize];
        let now = kept(access, block, 1 << lane, thread.epoch, Access::WRITE);
        let behind = |before: &Access| {
            before.block == now.block
                && is_plain(before)
                && (before.epoch < thread.floor || before.warp == now.warp && before.lanes == now.lanes)
        };
        // A write that changes nothing must not hide others.
        let last = access.unchanged >> lane & 1 == 0;
        let done = match shadow.whole(access.addresses[lane as usize], cell) {
            None => false,
            Some((slots, more)) => {
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
