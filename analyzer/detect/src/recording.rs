//! Recording: where the accesses of a launch go, written down while they are made.
//!
//! Owns the recorder and its steps. Does not decide when a recording may be replayed, or how: that
//! is [`crate::launch_memory::replay`].

use crate::memory::access::Rare;
use crate::memory::allocations::{Home, Location};
use crate::memory::{Access, AccessKind, Allocations, At, Generation, Site, Slot, Touch};
use smallvec::SmallVec;

/// Maximum number of accesses in a recording.
const MAX_STEPS: usize = 24;

/// One access. Compact, because there are many recordings, and most accesses are exact and without
/// gaps.
pub(crate) struct RecordedAccess {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) rare: Option<Box<Rare>>,
    pub(crate) slot: Slot,
    /// Its last position in the map.
    pub(crate) near: (u32, u32),
    pub(crate) param: Option<u32>,
    pub(crate) at: u32,
    pub(crate) kind: AccessKind,
    pub(crate) guessed: bool,
    /// Index of its allocation's generation among those of the recording.
    pub(crate) generation: u8,
}

/// A recording in progress.
#[derive(Default)]
pub(crate) struct ReplayRecorder {
    pub(crate) steps: SmallVec<[RecordedAccess; 3]>,
    pub(crate) generations: SmallVec<[Generation; 3]>,
    pub(crate) open: bool,
    pub(crate) spoilt: bool,
}

impl ReplayRecorder {
    /// Notes the result of a look-up.
    pub(crate) fn located(&mut self, memory: &Allocations, place: Option<&Location>) {
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

    /// Notes that the launch does something that can not be replayed.
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// Notes an access.
    pub(crate) fn step(&mut self, memory: &Allocations, home: Home, access: &Access) {
        let generation =
            self.generations.iter().position(|generation| memory.allocation_of(*generation) == access.allocation);
        match (memory.slot(home), generation.and_then(|generation| u8::try_from(generation).ok())) {
            (Some(slot), Some(generation)) if self.steps.len() < MAX_STEPS => {
                let touch = &Touch::of(access);
                let &Touch { start, end, kind, site, .. } = touch;
                let &Site { param, at, guessed, .. } = site;
                let (rare, near) = (Rare::of(touch), At::default().pack());
                self.steps.push(RecordedAccess { start, end, rare, slot, near, param, at, kind, guessed, generation });
            }
            _ => self.spoilt = true,
        }
    }
}
