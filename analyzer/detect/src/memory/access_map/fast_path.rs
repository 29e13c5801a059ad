//! The fast path of adding an access: one without gaps, all of it in the cell that held it last, on
//! bytes that only finished accesses (and its own op) have touched.
//!
//! Owns nothing that [`super::cell::visit`] does not do too. It first looks at all pieces, then
//! does the same to the same ones, and steps aside before it has changed anything. It is separate
//! because nine in ten accesses of a long run are of this kind, and it takes half the instructions.
//! `tests/map_model.rs` compares the two ways.

use super::cell::{Cell, Piece};
use super::pool::Pool;
use super::{AccessMap, At, FULL};
use crate::memory::AllocationId;
use crate::memory::access::{AccessKind, Site};
use trace::Epoch;

/// Maximum number of pieces in a cell on the fast path: with two more it is not full yet. Each
/// piece has a bit in a mask.
const MOST: usize = FULL - 3;

/// The order of accesses by constant-time checks. Both may return false although the truth is yes.
pub trait Glance {
    /// Whether every access of this epoch has finished before the access that is being added
    /// starts.
    fn finished(&self, earlier: Epoch) -> bool;
    /// Whether this is the epoch of the current op, and that op is no graph node.
    fn is_own(&self, epoch: Epoch) -> bool;
}

/// An access that touches every byte from its first to its last.
#[derive(Clone, Copy, Debug)]
pub struct PlainAccess<'a> {
    /// See [`super::Access`].
    pub epoch: Epoch,
    /// See [`super::Access`].
    pub kind: AccessKind,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// See [`super::Access`].
    pub allocation: AllocationId,
    /// The site, except for the next two fields.
    pub site: &'a Site,
    /// See [`Site`].
    pub param: Option<u32>,
    /// See [`Site`].
    pub at: u32,
}

impl AccessMap {
    /// Adds an access where its bytes were added before. False: the fast path does not apply, and
    /// nothing was done.
    #[inline(always)]
    pub fn add_fast(&mut self, new: PlainAccess<'_>, near: At, order: &impl Glance) -> bool {
        let (start, end) = (new.start, new.end);
        let Some(cell) = self.cells.get_mut(near).filter(|cell| cell.start <= start && end <= cell.end) else {
            return false;
        };
        let pieces = &mut cell.value;
        let Some(hits) = hits(pieces, &new, order).filter(|_| start < end) else { return false };
        let vacant = match hits {
            0 => None,
            _ if hits.is_power_of_two() => cut(pieces, &mut self.pool, hits.trailing_zeros(), (start, end)),
            // Each piece may be cut in two, and a cell that becomes full needs a sweep or a split.
            _ if pieces.len() + hits.count_ones() as usize + 1 >= FULL => return false,
            _ => cut_all(pieces, &mut self.pool, hits, (start, end)),
        };
        let old = vacant.and_then(|i| pieces.get_mut(i as usize));
        let number = self.pool.room(old.as_ref().map(|piece| piece.number()), new);
        let piece = Piece::new(number, new.kind, new.epoch, (start, end));
        match old {
            Some(old) => *old = piece,
            None => pieces.push(piece),
        }
        true
    }
}

/// The pieces that a new access overlaps and stands for, one bit each. `None`: some overlapping
/// piece has not finished and is not of the same op, or is of the same op and stands for the new
/// access.
#[inline(always)]
fn hits(pieces: &Cell, new: &PlainAccess<'_>, order: &impl Glance) -> Option<u32> {
    if pieces.len() > MOST {
        return None;
    }
    let (stands, excepted) = (new.kind.stands(), new.kind.stood_for_by());
    let (mut hits, mut bit) = (0, 1_u32);
    for piece in pieces {
        if piece.overlaps((new.start, new.end)) {
            if !order.finished(piece.epoch()) && (piece.is_among(excepted) || !order.is_own(piece.epoch())) {
                return None;
            }
            hits |= if piece.is_among(stands) { bit } else { 0 };
        }
        bit = bit.wrapping_shl(1);
    }
    Some(hits)
}

/// Cuts bytes out of a piece that overlaps them. Returns its index when nothing is left of it; the
/// empty piece stays in the list.
#[inline(always)]
fn cut(pieces: &mut Cell, pool: &mut Pool, i: u32, (lo, hi): (u64, u64)) -> Option<u32> {
    let piece = pieces.get_mut(i as usize)?;
    match (piece.start < lo, piece.end > hi) {
        (false, false) => return Some(i),
        (true, false) => piece.end = lo,
        (false, true) => piece.start = hi,
        (true, true) => {
            let tail = piece.cut((lo, hi));
            pool.count(tail.number());
            pieces.push(tail);
        }
    }
    None
}

/// Cuts bytes out of all these pieces, in the same order as [`super::cell::visit`]. Returns the
/// index of one that is now empty.
#[inline(never)]
fn cut_all(pieces: &mut Cell, pool: &mut Pool, hits: u32, bytes: (u64, u64)) -> Option<u32> {
    let (mut left, mut vacant) = (hits, None);
    while left != 0 {
        let i = left.trailing_zeros();
        left &= left - 1;
        if cut(pieces, pool, i, bytes).is_none() {
            continue;
        }
        if vacant.is_none() {
            vacant = Some(i);
            continue;
        }
        pool.release(pieces.swap_remove(i as usize).number());
        // The former last piece is at this index now.
        let last = 1 << pieces.len();
        if left & last != 0 {
            left ^= last | 1 << i;
        }
    }
    vacant
}
