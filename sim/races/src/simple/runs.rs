//! Accesses of lanes with one clock to lines that are not cut. It finds no race: what is not about
//! the own past, that of the block, or accesses that cannot race is left, and nothing is changed.
//!
//! It leaves exactly the histories that the detector would: the same accesses are kept at each
//! cell, in the same order where that matters.

use crate::events::Scope;
use crate::shadow::{Access, KEPT, Line, Piece, STEP};

/// Runs of a line, beyond which cells take less time.
const MOST: usize = 96;

/// The same for narrow accesses.
const MOST_NARROW: usize = 24;

fn has_room(line: &Line, piece: &Piece<'_>) -> bool {
    line.runs.len() < if piece.is_narrow { MOST_NARROW } else { MOST }
}

/// Cells whose histories are tried to be joined with the next access, if they are of several
/// blocks: see `shadow::is_long`.
fn to_be_joined(line: &Line) -> u32 {
    let exactly = |count: u32| line.with(count) & !line.with(count + 1);
    (STEP as u32..=KEPT as u32).step_by(STEP).fold(line.with(KEPT as u32), |cells, count| cells | exactly(count - 1))
}

/// What is carried out behind the back of a thread.
const BEHIND: u8 = Access::COPY | Access::BULK;

/// A plain read. Whether that is taken care of.
pub(super) fn read(line: &mut Line, piece: &Piece<'_>, now: &Access, floor: u64) -> bool {
    reads(line, piece, now, floor, false).unwrap_or_else(|| {
        line.join_blocks(now.block, to_be_joined(line));
        reads(line, piece, now, floor, true).unwrap_or(false)
    })
}

/// The same, or `None`: accesses of blocks are to be joined first, if they can be (`tried`).
fn reads(line: &mut Line, piece: &Piece<'_>, now: &Access, floor: u64, tried: bool) -> Option<bool> {
    let (mut leaves, mut count, mut alone) = (0, 0, true);
    // A run that has no cells any more then, and whether there is one of this access.
    let (mut free, mut joins) = (None, false);
    for (at, run) in line.runs.iter().enumerate() {
        let (before, both) = (&run.access, run.cells & piece.cells);
        joins |= before.is_one_with(now);
        if both == 0 {
            if run.cells == 0 {
                free = free.or(Some(at));
            }
            continue;
        }
        if before.is(BEHIND) {
            return Some(false);
        }
        if before.is_wide() {
            if both == piece.cells && before.includes(now) {
                return Some(true);
            }
            (count, alone) = (count + 1, false);
            continue;
        }
        let of_block = before.block == now.block;
        let own = of_block && before.warp == now.warp;
        let past = of_block && before.epoch < floor;
        (count, alone) = (count + 1, alone && of_block);
        if before.is(Access::WRITE) {
            // What one lane writes another one may read.
            let by_it = |lanes: u32| lanes.is_power_of_two();
            if !past
                && (before.is(Access::STRONG)
                    || !own
                    || !line.spread(run).equals(&piece.spread, both)
                    || !crate::pair::lanes(both).all(|cell| by_it(piece.spread.at(cell))))
            {
                return Some(false);
            }
            continue;
        }
        if past {
            leaves += 1;
            if run.cells == both {
                free = Some(at);
            }
            continue;
        }
        if before.is(Access::STRONG) {
            return Some(false);
        }
        if !own {
            continue;
        }
        if before.is_one_with(now) {
            // Nothing has been written since, or it would not be here.
            if both == piece.cells && line.spread(run).includes(&piece.spread, both) {
                return Some(true);
            }
        } else {
            leaves += if line.spread(run).is_apart_from(&piece.spread, both) { 0 } else { MOST };
        }
    }
    // There are never more accesses at a cell than runs.
    if !has_room(line, piece) || count >= KEPT && line.with(KEPT as u32) & piece.cells != 0 {
        return Some(false);
    }
    if !alone && !tried && count >= STEP - 1 && to_be_joined(line) & piece.cells != 0 {
        return None;
    }
    // Mostly the thread has read this in a loop.
    if leaves <= 1
        && !joins
        && let Some(at) = free
        && (leaves == 0 || line.runs[at].cells != 0)
    {
        line.runs[at].cells = 0;
        line.replace(at, now, piece);
        return Some(true);
    }
    if leaves != 0 {
        for at in 0..line.runs.len() {
            let (before, both) = (line.runs[at].access, line.runs[at].cells & piece.cells);
            if both == 0 || before.is(Access::WRITE) || before.is_wide() || before.block != now.block {
                continue;
            }
            if before.epoch < floor {
                line.runs[at].cells &= !both;
            } else if before.warp == now.warp && !before.is_one_with(now) {
                line.subtract(at, piece);
            }
        }
        line.tidy();
    }
    line.join(now, piece);
    Some(true)
}

/// A plain write of lanes at an address each. `unchanged`: cells that are not changed.
pub(super) fn write(line: &mut Line, piece: &Piece<'_>, now: &Access, floor: u64, unchanged: u32) -> bool {
    let (mut touched, mut free) = (0, None);
    for (at, run) in line.runs.iter().enumerate() {
        let (before, both) = (&run.access, run.cells & piece.cells);
        if both == 0 {
            continue;
        }
        if run.cells == both {
            free = Some(at);
        }
        if before.is(BEHIND | Access::STRONG) || before.is_wide() || before.block != now.block {
            return false;
        }
        let own = || before.warp == now.warp && line.spread(run).equals(&piece.spread, both);
        if before.epoch >= floor && !own() {
            return false;
        }
        touched |= both;
    }
    if !has_room(line, piece) {
        return false;
    }
    // The first write to a byte counts as one that changes it.
    let unchanged = unchanged & touched;
    if unchanged == 0
        && let Some(at) = free
    {
        // No other run is at these cells then.
        line.runs.iter_mut().for_each(|run| run.cells &= !piece.cells);
        line.replace(at, now, piece);
        return true;
    }
    if touched != 0 {
        for run in &mut line.runs {
            let hidden = if run.access.flags & (Access::WRITE | Access::UNCHANGED) == Access::WRITE {
                piece.cells & !unchanged
            } else {
                piece.cells
            };
            run.cells &= !hidden;
        }
        line.tidy();
    }
    if unchanged != piece.cells {
        line.push(now, piece.cells & !unchanged, piece);
    }
    if unchanged != 0 {
        line.push(&Access { flags: now.flags | Access::UNCHANGED, ..*now }, unchanged, piece);
    }
    true
}

/// A relaxed atomic operation of threads that have passed no fence.
pub(super) fn atomic(line: &mut Line, piece: &Piece<'_>, now: &Access, floor: u64) -> bool {
    let (mut atomics, mut count, mut alone) = (0, 0, true);
    for run in &line.runs {
        let (before, both) = (&run.access, run.cells & piece.cells);
        if both == 0 {
            continue;
        }
        let of_block = before.block == now.block;
        // Mostly another warp of the block does the same.
        if of_block
            && before.warp != now.warp
            && (before.flags, before.reach) == (now.flags, now.reach)
            && before.epoch >= floor
        {
            (count, atomics) = (count + 1, atomics | both);
            continue;
        }
        let own = of_block && before.warp == now.warp;
        let past = of_block && before.epoch < floor;
        (count, alone) = (count + 1, alone && of_block);
        let reach_each_other = (before.flags ^ now.flags) & !Access::WHOLE == 0
            && before.reach == now.reach
            && (now.reach & 3 == Scope::Device as u8 || of_block);
        if reach_each_other {
            if past || own && !line.spread(run).is_apart_from(&piece.spread, both) {
                return false;
            }
            atomics |= both;
        } else if !past
            || before.is_wide()
            || before.is(BEHIND | Access::STRONG)
            || !before.is(Access::WRITE)
            // A plain access ends the chain of those that are observed.
            || atomics & both != 0
        {
            return false;
        }
    }
    // No cell has more accesses than runs were met.
    let is_crowded = |line: &Line| match alone {
        true => count >= KEPT && line.with(KEPT as u32) & piece.cells != 0,
        false => count >= STEP - 1 && to_be_joined(line) & piece.cells != 0,
    };
    if !has_room(line, piece) || is_crowded(line) {
        return false;
    }
    match line.runs.last() {
        Some(last) if last.access.is_one_with(now) => line.merge(line.runs.len() - 1, piece),
        _ => line.push(now, piece.cells, piece),
    }
    true
}
