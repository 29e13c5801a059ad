//! The access map: who touched which byte last. An interval map of one allocation, byte-exact.
//!
//! Owns the rule of what is remembered and what may be forgotten. Does not know CUDA's order (it
//! asks [`Clocks`]) or how severe a conflict is (it passes every unordered conflicting pair to the
//! caller).
//!
//! # Which pairs are checked
//!
//! The allocation is cut into cells. A cell holds pieces: parts of accesses, from a first byte to a
//! last. A new access is compared with every piece that it overlaps. The pairs that conflict (one
//! of them writes, not both are atomic) and are not ordered are passed on. So a pair is checked if
//! a piece of the earlier access is still there. What a new access `n` overlaps of a piece of `e`
//! is cut off only when all of this holds:
//!
//! 1. `e` is ordered before `n`;
//! 2. whatever conflicts with `e` conflicts with `n` too: writes stand for everything, reads for
//!    reads, atomics for atomics that write no less (an atomic must not replace a plain access: a
//!    later atomic conflicts with that, and not with it), and what is known for what is guessed or
//!    what a condition may leave out, not the other way round ([`super::Site::guessed`],
//!    [`super::Site::conditional`]);
//! 3. `n` touches every byte from its first to its last (it is exact and without gaps), or every
//!    byte that `e` may touch there (both list their pieces), or `n` has the very shape of `e`, so
//!    that whatever is said of the bytes of `e` is said of those of `n`.
//!
//! # Why that loses nothing that matters
//!
//! Let a later access `x` race with the dropped `e` on some byte. If `x` were ordered after `n`, it
//! would be ordered after `e` by (1): so `x` is unordered with `n`. By (2) `x` conflicts with `n`,
//! and by (3) on the same byte. So `x` races with `n`: the byte is still reported, with a more
//! recent partner. This is the argument of `FastTrack` (last write, reads since). As there, only a
//! *second* partner can be lost, for a byte that is reported anyway. Unlike `FastTrack`, all
//! unordered pieces stay after a race was found, one a timeline, because an inexact access proves
//! nothing about its bytes and because two accesses with gaps may overlap without sharing a byte.
//!
//! # What bounds the memory
//!
//! Accesses of one timeline are ordered among themselves, so for equal shapes there is at most one
//! access of each kind for each timeline at a byte. Pieces of what the host has seen
//! finish are *dead*: everything enqueued from now on starts after it. They are swept when a cell
//! becomes full or the map becomes large, so what remains is what is in flight. As a last resort a
//! byte keeps its [`MAX_PIECES`] newest accesses; what that drops is counted.
//!
//! # Why cells
//!
//! Launches use a buffer in nearly, not quite, the same bounds. If the allocation were cut at each
//! of these, one access would be an entry of many segments. Here it is one piece, cut where others
//! reach into it, and few pieces are scanned. Full cells are split at a border of their pieces, and
//! small neighbours are joined when an access reaches over both.
//!
//! # Which files know each other
//!
//! `cell` does the work of one cell and `fast_path` the common case of it. Both use `pool`, which
//! stores each access once for all its pieces. All three know this file for its constants and for
//! [`Clocks`].

mod cell;
pub(crate) mod fast_path;
mod pool;

use super::access::{Access, Touch, conflict};
use crate::memory::interval_map::{At, Span, Spans};
use cell::{Cell, New};
use pool::{Held, Pool};
use trace::Epoch;

pub use crate::memory::access_map::fast_path::{Glance, PlainAccess};

/// Number of pieces from which a cell is swept and split.
const FULL: usize = 16;

/// Number of pieces up to which two neighbouring cells are joined.
const SMALL: usize = 8;

/// Maximum number of accesses kept for a byte.
pub(crate) const MAX_PIECES: usize = 256;

/// Number of cells from which a map is swept.
const SWEEP_CELLS: usize = 64;

/// Whether a cell with this many pieces is to be split. A cell that can not be split is not tried
/// again at each access.
#[inline]
fn is_crowded(pieces: usize) -> bool {
    pieces >= FULL && (pieces.is_power_of_two() || pieces > MAX_PIECES)
}

/// How an earlier access is ordered to the one that is being added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ordered {
    /// It has finished before.
    Yes,
    /// It has finished before, but only because of a synchronisation that CUDA does not promise.
    Latent,
    /// Nothing orders the two.
    No,
}

/// The order of accesses, as seen from the access that is being added.
pub trait Clocks {
    /// Whether an earlier access of this op, or of this node of a graph launch
    /// ([`super::Site::node`]), has finished before the one that is being added starts.
    fn ordered(&self, earlier: Epoch, node: u32) -> Ordered;
    /// A quick check of the same for everything that another op of this epoch did. False means
    /// unknown: ask [`Clocks::ordered`].
    fn finished(&self, earlier: Epoch) -> bool {
        let _ = earlier;
        false
    }
    /// Whether everything enqueued from now on starts after this op.
    fn dead(&self, earlier: Epoch) -> bool;
}

/// The accesses of one allocation.
#[derive(Clone, Debug)]
pub struct AccessMap {
    cells: Spans<Cell>,
    pool: Pool,
    sweep_at: usize,
    forgotten: u64,
}

impl Default for AccessMap {
    fn default() -> Self {
        Self { cells: Spans::default(), pool: Pool::default(), sweep_at: SWEEP_CELLS, forgotten: 0 }
    }
}

impl AccessMap {
    /// Adds an access after passing every unordered conflicting pair to `race`: the earlier access,
    /// and whether an unpromised synchronisation orders the two. A pair may be passed once for
    /// every cell it shares, and for accesses with gaps the bytes are still to be compared.
    pub fn add(&mut self, access: &Access, clocks: &impl Clocks, race: &mut impl FnMut(&Access, bool)) {
        self.add_near(&Touch::of(access), At::default(), clocks, race);
    }

    /// The same for an access whose bytes were added before: `near` is what that call returned.
    /// Returns where the access is now.
    pub fn add_near(
        &mut self,
        touch: &Touch<'_>,
        near: At,
        clocks: &impl Clocks,
        race: &mut impl FnMut(&Access, bool),
    ) -> At {
        if touch.start >= touch.end {
            return near;
        }
        let mut new = New::of(touch);
        // The common case: the cell that held it last holds all of it.
        if self.add_inside(near, &mut new, clocks, race) {
            return near;
        }
        self.add_anywhere(&mut new, near, clocks, race)
    }

    /// Adds an access to the cell at a position. False: there is none, or it does not hold all of
    /// the access, and nothing was done.
    #[inline(always)]
    fn add_inside(
        &mut self,
        at: At,
        new: &mut New<'_>,
        clocks: &impl Clocks,
        race: &mut impl FnMut(&Access, bool),
    ) -> bool {
        let (start, end) = (new.touch.start, new.touch.end);
        let Some(cell) = self.cells.get_mut(at).filter(|cell| cell.start <= start && end <= cell.end) else {
            return false;
        };
        cell::visit(&mut cell.value, &mut self.pool, new, (start, end), clocks, race);
        if is_crowded(cell.value.len()) {
            self.tidy(at, 1, clocks);
        }
        true
    }

    #[inline(never)]
    fn add_anywhere(
        &mut self,
        new: &mut New<'_>,
        near: At,
        clocks: &impl Clocks,
        race: &mut impl FnMut(&Access, bool),
    ) -> At {
        let (start, end) = (new.touch.start, new.touch.end);
        let at = self.cells.seek_near(start, near);
        let Some(upto) = self.cells.get(at).filter(|cell| cell.start < end).map(|cell| cell.end) else {
            let mut pieces = Cell::new();
            new.put(&mut pieces, &mut self.pool, start, end);
            let at = self.cells.insert(at, Span { start, end, value: pieces });
            if self.cells.len() > self.sweep_at {
                self.sweep(clocks);
            }
            return at;
        };
        if end > upto && self.cells.get(self.cells.next(at)).is_some_and(|next| next.start < end) {
            return self.add_wide(at, new, clocks, race);
        }
        self.cells.widen(at, start, end);
        self.add_inside(at, new, clocks, race);
        at
    }

    /// An access over several cells: each takes the part between its neighbours.
    #[cold]
    fn add_wide(
        &mut self,
        first: At,
        new: &mut New<'_>,
        clocks: &impl Clocks,
        race: &mut impl FnMut(&Access, bool),
    ) -> At {
        let (start, end) = (new.touch.start, new.touch.end);
        let (mut from, mut at, mut count, mut untidy) = (start, first, 0, false);
        while from < end {
            let next = self.cells.next(at);
            let upto = self.cells.get(next).map_or(end, |next| next.start.min(end));
            let pieces = &mut self.cells.widen(at, from, upto).value;
            cell::visit(pieces, &mut self.pool, new, (from, upto), clocks, race);
            untidy |= is_crowded(pieces.len());
            (from, at, count) = (upto, next, count + 1);
        }
        let mut pieces: &Cell = &Cell::new();
        at = first;
        for n in 0..count {
            let next = self.cells.get(at).map_or(pieces, |cell| &cell.value);
            untidy |= n > 0 && cell::joint(pieces, next);
            (pieces, at) = (next, self.cells.next(at));
        }
        if untidy {
            self.tidy(first, count, clocks);
        }
        self.cells.seek(start)
    }

    /// Splits full cells and joins small ones, among a number of cells from a position on.
    #[cold]
    fn tidy(&mut self, first: At, count: usize, clocks: &impl Clocks) {
        let mut taken = Vec::with_capacity(count);
        let start = self.cells.get(first).map_or(0, |cell| cell.start);
        self.cells.remove_run(first, count, |cell| taken.push(cell));
        let mut tidy: Vec<Span<Cell>> = Vec::new();
        for mut next in taken {
            if next.value.len() >= FULL {
                cell::bury(&mut next.value, &mut self.pool, clocks);
            }
            match tidy.last_mut() {
                Some(last) if cell::joint(&last.value, &next.value) => {
                    cell::join(&mut last.value, next.value, &mut self.pool);
                    last.end = next.end;
                }
                _ => tidy.push(next),
            }
        }
        let mut at = self.cells.seek(start);
        while let Some(mut cell) = tidy.pop() {
            if let Some(tail) = cell::part(&mut cell, &mut self.pool) {
                tidy.extend([cell, tail]);
                continue;
            }
            self.forgotten += cell::forget(&mut cell.value, &mut self.pool);
            if !cell.value.is_empty() {
                at = self.cells.insert(at, cell);
            }
        }
        if self.cells.len() > self.sweep_at {
            self.sweep(clocks);
        }
    }

    /// Passes on the races of an access like [`AccessMap::add`], but does not keep it, because it
    /// has already finished.
    pub fn check(&self, access: &Access, clocks: &impl Clocks, race: &mut impl FnMut(&Access, bool)) {
        let (start, end) = (access.extent.start, access.extent.end);
        if start >= end {
            return;
        }
        let mut at = self.cells.seek(start);
        while let Some(cell) = self.cells.get(at).filter(|s| s.start < end) {
            let judge = |e: &Held| match clocks.ordered(e.epoch, e.site.node) {
                _ if e.is_of(access.epoch, access.site.node) => None,
                _ if !conflict((e.kind, &e.exclusion()), (access.kind, &access.exclusion)) => None,
                Ordered::Yes => None,
                ordered => Some(ordered == Ordered::Latent),
            };
            cell::hand_out(&cell.value, &self.pool, (start, end), judge, race);
            at = self.cells.next(at);
        }
    }

    /// The accesses that may touch a byte. One in several pieces there appears several times.
    pub fn each_at(&self, byte: u64, each: &mut impl FnMut(&Access)) {
        let within = (byte, byte.saturating_add(1));
        if let Some(cell) = self.cells.get(self.cells.seek(byte)).filter(|cell| cell.start <= byte) {
            cell::hand_out(&cell.value, &self.pool, within, |_| Some(false), &mut |access, _| each(access));
        }
    }

    /// Drops what can never race again.
    pub(crate) fn sweep(&mut self, clocks: &impl Clocks) {
        let pool = &mut self.pool;
        self.cells.retain(|pieces| {
            cell::bury(pieces, pool, clocks);
            !pieces.is_empty()
        });
        self.sweep_at = SWEEP_CELLS.max(self.cells.len() * 2);
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        *self = Self { forgotten: self.forgotten, ..Self::default() };
    }

    /// All accesses by address. One in several pieces appears several times.
    pub fn iter(&self) -> impl Iterator<Item = Access> {
        self.cells.iter().flat_map(|cell| cell::in_order(&cell.value, &self.pool, (0, u64::MAX)).map(Held::access))
    }

    /// Number of pieces, for the bounds on memory.
    pub fn entries(&self) -> usize {
        self.cells.iter().map(|s| s.value.len()).sum()
    }

    /// Accesses dropped although they could still have raced.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
