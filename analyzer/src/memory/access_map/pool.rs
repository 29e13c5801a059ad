//! The accesses that pieces name, each with the number of its pieces.

use crate::memory::access::{Access, AccessKind, Site, Touch};
use crate::memory::{AllocationId, Extent};
use trace::Epoch;

/// An access, in less room: most are exact and without gaps.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub epoch: Epoch,
    pub site: Site,
    pub kind: AccessKind,
    allocation: AllocationId,
    start: u64,
    end: u64,
    odd: Option<Box<Extent>>,
    /// Counts all that were ever held.
    age: u64,
    pieces: u32,
}

impl Held {
    #[inline]
    fn new(touch: &Touch<'_>, age: u64) -> Self {
        let Touch { epoch, kind, start, end, odd, allocation, site } = *touch;
        let odd = odd.map(|extent| Box::new(*extent));
        Self { epoch, site: *site, kind, allocation, start, end, odd, age, pieces: 1 }
    }

    /// Makes this that access. Field by field: a whole one would be made elsewhere and moved here.
    #[inline]
    fn become_of(&mut self, touch: &Touch<'_>, age: u64) {
        (self.epoch, self.site, self.kind, self.allocation) = (touch.epoch, *touch.site, touch.kind, touch.allocation);
        (self.start, self.end, self.age, self.pieces) = (touch.start, touch.end, age, 1);
        match (&mut self.odd, touch.odd) {
            (Some(old), Some(extent)) => **old = *extent,
            (None, None) => {}
            (old, extent) => *old = extent.map(|extent| Box::new(*extent)),
        }
    }

    /// The access.
    pub fn access(&self) -> Access {
        let Self { epoch, kind, allocation, site, .. } = *self;
        Access { epoch, kind, extent: self.extent(), allocation, site }
    }

    /// Which bytes, when they are not exactly those from its first to its last.
    #[inline]
    pub fn odd(&self) -> Option<&Extent> {
        self.odd.as_deref()
    }

    pub fn extent(&self) -> Extent {
        self.odd.as_deref().copied().unwrap_or_else(|| Extent::exact(self.start, self.end))
    }

    /// Whether it belongs to this op, or to this node of this graph launch.
    pub fn is_of(&self, epoch: Epoch, node: u32) -> bool {
        self.epoch == epoch && self.site.node == node
    }
}

/// The accesses that pieces name.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    held: Vec<Held>,
    free: Vec<u32>,
    ages: u64,
}

impl Pool {
    /// Holds an access, for one piece.
    #[inline]
    pub fn hold(&mut self, touch: &Touch<'_>) -> u32 {
        self.ages += 1;
        match self.free.pop() {
            Some(number) => {
                self.held[number as usize].become_of(touch, self.ages);
                number
            }
            None => {
                self.held.push(Held::new(touch, self.ages));
                self.held.len() as u32 - 1
            }
        }
    }

    /// Holds an access instead of one that loses a piece; answers its number.
    #[inline]
    pub fn replace(&mut self, number: u32, touch: &Touch<'_>) -> u32 {
        let held = &mut self.held[number as usize];
        if held.pieces > 1 {
            held.pieces -= 1;
            return self.hold(touch);
        }
        self.ages += 1;
        held.become_of(touch, self.ages);
        number
    }

    #[inline]
    pub fn get(&self, number: u32) -> &Held {
        &self.held[number as usize]
    }

    /// The larger, the younger.
    pub fn age(&self, number: u32) -> u64 {
        self.get(number).age
    }

    /// One piece more.
    #[inline]
    pub fn count(&mut self, number: u32) -> u32 {
        self.held[number as usize].pieces += 1;
        number
    }

    /// One piece less.
    #[inline]
    pub fn release(&mut self, number: u32) {
        let held = &mut self.held[number as usize];
        held.pieces -= 1;
        if held.pieces == 0 {
            self.free.push(number);
        }
    }
}
