//! The pool of accesses: each is stored once, with the number of pieces that refer to it.
//!
//! Owns that storage. Does not know where the pieces lie.

use super::PlainAccess;
use crate::memory::access::{Access, AccessKind, Cause, Exclusion, Rare, Site, Touch};
use crate::memory::{AllocationId, Extent};
use trace::Epoch;

/// An access in compact form: most are exact and without gaps.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(crate) epoch: Epoch,
    pub(crate) site: Site,
    pub(crate) kind: AccessKind,
    allocation: AllocationId,
    start: u64,
    end: u64,
    rare: Option<Box<Rare>>,
    /// Serial number among all accesses ever held.
    age: u64,
}

impl Held {
    #[inline]
    fn new(touch: &Touch<'_>, age: u64) -> Self {
        let Touch { epoch, kind, start, end, allocation, site, .. } = *touch;
        Self { epoch, site: *site, kind, allocation, start, end, rare: Rare::of(touch), age }
    }

    /// An empty entry.
    fn nothing() -> Self {
        let site = Site::unknown(Cause::Kernel);
        let (epoch, kind, allocation) = (Epoch::default(), AccessKind::Read, AllocationId::NONE);
        Self { epoch, site, kind, allocation, start: 0, end: 0, rare: None, age: 0 }
    }

    /// Overwrites this with an access, field by field: a whole one would be built elsewhere and
    /// moved here.
    #[inline]
    fn become_of(&mut self, touch: &Touch<'_>, age: u64) {
        (self.epoch, self.site, self.kind, self.allocation) = (touch.epoch, *touch.site, touch.kind, touch.allocation);
        (self.start, self.end, self.age) = (touch.start, touch.end, age);
        match (self.rare.as_deref_mut(), touch.odd) {
            (Some(Rare { odd: Some(old), exclusion }), Some(extent)) => {
                old.clone_from(extent);
                *exclusion = *touch.exclusion;
            }
            _ => self.rare = Rare::of(touch),
        }
    }

    /// The access.
    pub(crate) fn access(&self) -> Access {
        let Self { epoch, kind, allocation, site, .. } = *self;
        Access { epoch, kind, extent: self.extent(), allocation, site, exclusion: self.exclusion() }
    }

    /// What may keep its threads from those of another access.
    #[inline]
    pub(crate) fn exclusion(&self) -> Exclusion {
        self.rare.as_deref().map_or(Exclusion::NONE, |rare| rare.exclusion)
    }

    /// Which bytes, when they are not exactly those from its first to its last.
    #[inline]
    pub(crate) fn odd(&self) -> Option<&Extent> {
        self.rare.as_deref()?.odd.as_ref()
    }

    pub(crate) fn extent(&self) -> Extent {
        self.odd().cloned().unwrap_or_else(|| Extent::exact(self.start, self.end))
    }

    /// Whether it belongs to this op, or to this node of this graph launch.
    pub(crate) fn is_of(&self, epoch: Epoch, node: u32) -> bool {
        self.epoch == epoch && self.site.node == node
    }
}

/// The accesses that pieces name.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    held: Vec<Held>,
    /// The number of pieces of each, close together, because the counts are read before it is known
    /// which entry is written.
    pieces: Vec<u32>,
    free: Vec<u32>,
    ages: u64,
}

impl Pool {
    /// Stores an access with one piece.
    #[inline]
    pub(crate) fn hold(&mut self, touch: &Touch<'_>) -> u32 {
        self.ages += 1;
        match self.free.pop() {
            Some(number) => {
                self.pieces[number as usize] = 1;
                self.held[number as usize].become_of(touch, self.ages);
                number
            }
            None => {
                self.pieces.push(1);
                self.held.push(Held::new(touch, self.ages));
                self.held.len() as u32 - 1
            }
        }
    }

    /// Stores an access in place of one that loses a piece. Returns its number.
    #[inline]
    pub(crate) fn replace(&mut self, number: u32, touch: &Touch<'_>) -> u32 {
        let pieces = &mut self.pieces[number as usize];
        if *pieces > 1 {
            *pieces -= 1;
            return self.hold(touch);
        }
        self.ages += 1;
        self.held[number as usize].become_of(touch, self.ages);
        number
    }

    /// Stores an access without gaps, with one piece, in place of one that loses a piece. Returns
    /// its number.
    #[inline(always)]
    pub(crate) fn room(&mut self, old: Option<u32>, new: PlainAccess<'_>) -> u32 {
        self.ages += 1;
        let number = match old {
            Some(number) if self.pieces[number as usize] == 1 => number,
            _ => {
                if let Some(number) = old {
                    self.pieces[number as usize] -= 1;
                }
                match self.free.pop() {
                    Some(number) => {
                        self.pieces[number as usize] = 1;
                        number
                    }
                    None => self.one_more(),
                }
            }
        };
        let held = &mut self.held[number as usize];
        (held.epoch, held.kind, held.allocation) = (new.epoch, new.kind, new.allocation);
        (held.start, held.end, held.age) = (new.start, new.end, self.ages);
        // Copied from memory that was not written just now: a recent store would stall the load.
        held.site = *new.site;
        (held.site.param, held.site.at) = (new.param, new.at);
        if held.rare.is_some() {
            held.rare = None;
        }
        number
    }

    /// Makes room for one more. (It does not take the access as an argument: arguments are laid out
    /// beforehand, whether the call is made or not.)
    #[cold]
    #[inline(never)]
    fn one_more(&mut self) -> u32 {
        self.pieces.push(1);
        self.held.push(Held::nothing());
        self.held.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &Held {
        &self.held[number as usize]
    }

    /// The larger, the younger.
    pub(crate) fn age(&self, number: u32) -> u64 {
        self.get(number).age
    }

    /// Counts one piece more.
    #[inline]
    pub(crate) fn count(&mut self, number: u32) -> u32 {
        self.pieces[number as usize] += 1;
        number
    }

    /// Counts one piece less.
    #[inline]
    pub(crate) fn release(&mut self, number: u32) {
        let pieces = &mut self.pieces[number as usize];
        *pieces -= 1;
        if *pieces == 0 {
            self.free.push(number);
        }
    }
}
