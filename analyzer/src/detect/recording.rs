//! Where the accesses of a launch went, written down while they are made.
//!
//! Owns the recorder and its steps. When a recording may be used again, and how, is decided in
//! [`crate::launch_memory::replay`].

use crate::memory::allocations::{Home, Location};
use crate::memory::{Access, AccessKind, Allocations, At, Extent, Generation, Site, Slot, Touch};
use smallvec::SmallVec;

/// Accesses of one launch at most.
const MAX_STEPS: usize = 24;

/// One access. There are many trails, and most accesses are exact and without gaps.
pub(crate) struct Step {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) odd: Option<Box<Extent>>,
    pub(crate) slot: Slot,
    /// Where in the map it was put last.
    pub(crate) near: (u32, u32),
    pub(crate) param: Option<u32>,
    pub(crate) at: u32,
    pub(crate) kind: AccessKind,
    /// That of its allocation, among the trail's.
    pub(crate) generation: u8,
}

/// A recording in the making.
#[derive(Default)]
pub struct ReplayRecorder {
    pub(crate) steps: SmallVec<[Step; 3]>,
    pub(crate) generations: SmallVec<[Generation; 3]>,
    pub(crate) open: bool,
    pub(crate) spoilt: bool,
}

impl ReplayRecorder {
    /// This was asked for.
    pub fn located(&mut self, memory: &Allocations, place: Option<&Location>) {
        let Some(place) = place else {
            self.open = true;
            return;
        };
        match memory.generation(place) {
            Some(generation) if self.generations.contains(&generation) => {}
            Some(generation) => self.generations.push(generation),
            None => self.spoilt = true,
        }
    }

    /// The launch does something that a trail can not tell of.
    pub fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// An access was made.
    pub fn step(&mut self, memory: &Allocations, home: Home, access: &Access) {
        let generation =
            self.generations.iter().position(|generation| memory.allocation_of(*generation) == access.allocation);
        match (memory.slot(home), generation.and_then(|generation| u8::try_from(generation).ok())) {
            (Some(slot), Some(generation)) if self.steps.len() < MAX_STEPS => {
                let Touch { start, end, odd, kind, site: &Site { param, at, .. }, .. } = Touch::of(access);
                let (odd, near) = (odd.copied().map(Box::new), At::default().pack());
                self.steps.push(Step { start, end, odd, slot, near, param, at, kind, generation });
            }
            _ => self.spoilt = true,
        }
    }
}
