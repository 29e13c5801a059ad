//! The accesses that segments hold: what a segment keeps of each, and the accesses themselves, counted.

use crate::memory::access::{Access, AccessKind};
use smallvec::SmallVec;
use trace::{Epoch, TimelineId};

/// What a segment remembers of an access: all that is needed to see that it is over and that a new one stands for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    time: u64,
    timeline: TimelineId,
    /// Number of the held access, and its kind in the lowest two bits.
    pub(super) word: u32,
}

impl Entry {
    pub(super) fn new(number: u32, access: &Access) -> Self {
        let Epoch { timeline, time } = access.epoch;
        Self { time, timeline, word: number << 2 | access.kind as u32 }
    }

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.word >> 2
    }

    #[inline]
    pub(super) fn epoch(self) -> Epoch {
        Epoch { timeline: self.timeline, time: self.time }
    }

    #[inline]
    pub(super) fn kind(self) -> AccessKind {
        match self.word & 3 {
            0 => AccessKind::Read,
            1 => AccessKind::Write,
            _ => AccessKind::Atomic,
        }
    }
}

/// Oldest first.
pub(super) type Entries = SmallVec<[Entry; 3]>;

/// The accesses that segments name, each with the number of segments in which it is an entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    pub(super) held: Vec<Access>,
    pub(super) counts: Vec<u32>,
    free: Vec<u32>,
}

impl Pool {
    /// Holds an access, counted once.
    #[inline]
    pub(super) fn hold(&mut self, access: &Access) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.held[number as usize] = *access;
                self.counts[number as usize] = 1;
                number
            }
            None => {
                self.held.push(*access);
                self.counts.push(1);
                self.held.len() as u32 - 1
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, entry: Entry) -> &Access {
        &self.held[entry.number() as usize]
    }

    #[inline]
    pub(super) fn count(&mut self, entry: Entry) {
        self.counts[entry.number() as usize] += 1;
    }

    #[inline]
    pub(super) fn release(&mut self, entry: Entry) {
        let count = &mut self.counts[entry.number() as usize];
        *count -= 1;
        if *count == 0 {
            self.free.push(entry.number());
        }
    }
}
