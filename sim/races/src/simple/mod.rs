//! The short way for most accesses of most kernels. It changes nothing but histories that hold the
//! past of the accessing thread and of its block, plain reads, or atomic operations that reach each
//! other. It tells of plain writes that meet plain accesses of their block. It leaves everything
//! else to the detector.

mod cells;
mod lanes;
mod pieces;
mod runs;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::detector::State;
use crate::events::{Kind, LANES, Memory, Order, Scope, Strength, WarpAccess};
use crate::pair::{Group, lanes, side};
use crate::records::Race;
use crate::shadow::{Access, Line, Piece, Shadow};
use crate::simple::cells::{atomics, reads, writes};
use crate::simple::lanes::Groups;
use crate::threads::Block;

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
            || access.keeps != [0; 4]
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
        let clock = together(access, block).filter(|_| is_simple);
        let left = match clock {
            Some(clock) => by_lines(shadow, block, access, (clock, self.locations.is_empty())),
            None => all,
        };
        if left == 0 {
            return 0;
        }
        let access = &WarpAccess { lanes: left, ..*access };
        let all = left;
        match (access.kind, access.strength) {
            (Kind::Read, Strength::Plain) => reads(shadow, block, access, (clock.is_some(), &mut self.scratch)),
            (Kind::Write, Strength::Plain) => {
                let (shared, judged) =
                    (if let Memory::Shared(block) = access.memory { Some(block) } else { None }, self.judged);
                let meet = |now: Access| {
                    (!judged).then_some(Group {
                        block,
                        access: now,
                        executing: access.executing,
                        met: None,
                        clusters: &self.clusters,
                        objects: &self.objects,
                        grids: &self.grids,
                        shared: shared.is_some(),
                        object: false,
                        map: false,
                    })
                };
                let (records, inexact, event) = (&mut self.records, &mut self.inexact, self.events);
                let machine = self.reading.machine;
                writes(shadow, block, access, meet, |group, before, pair, address| {
                    let evidence = group.evidence(before, pair);
                    if machine && evidence.same_warp {
                        inexact.unsaid += 1;
                        return;
                    }
                    let sides = [side(before, pair.1), side(&group.access, pair.0)];
                    let (grade, remedy) = (evidence.grade(), group.remedy(before, pair, evidence));
                    records.add(Race { sides, shared, address, grade, remedy, count: 0 }, true, event);
                })
            }
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
pub(crate) fn together(access: &WarpAccess<'_>, block: &Block) -> Option<(u64, u64)> {
    let of_warp = &block.threads[access.warp as usize * LANES..][..LANES];
    let first = &of_warp[access.lanes.trailing_zeros() as usize];
    if !first.known.is_empty() {
        return None;
    }
    let mut left = access.lanes;
    while left != 0 {
        let thread = &of_warp[left.trailing_zeros() as usize];
        if thread.epoch != first.epoch
            || thread.floor != first.floor
            || !(Arc::ptr_eq(&thread.known, &first.known) || thread.known.is_empty())
        {
            return None;
        }
        left &= left - 1;
    }
    Some((first.epoch, first.floor))
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

/// Keeps a plain read of threads that had one clock then. What they have read there since, and what
/// others have, are plain reads: nothing races.
pub(crate) fn keep_read(shadow: &mut Shadow, read: &Access, (addresses, size): (&[u64; LANES], u32), floor: u64) {
    let cursor = &mut shadow.cursor(size);
    let rule = |line: &mut Line, piece: &Piece<'_>| runs::read(line, piece, read, floor);
    let left = pieces::each((read.lanes, addresses, size), false, cursor, rule);
    for &(address, group) in Groups::of(left, addresses, size).iter() {
        let now = Access { lanes: group, ..*read };
        shadow.update(address, 1 << size, |_, history| cells::keep_read(history, &now, floor));
    }
}

/// An access of lanes that are at one address, as the history keeps it.
pub(crate) fn kept(access: &WarpAccess<'_>, block: &Block, flags: u8) -> Access {
    let whole = if access.executing == block.alive(access.warp) { Access::WHOLE } else { 0 };
    Access {
        epoch: 0,
        block: access.block,
        lanes: 0,
        site: access.site,
        warp: access.warp as u8,
        flags: whole | flags,
        reach: (access.size.trailing_zeros() as u8) << 4,
        marks: Access::EXACT,
    }
}
