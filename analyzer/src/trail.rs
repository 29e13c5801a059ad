//! Launches that come again: where the accesses of a launch went, so that the same launch need not look its addresses up again.
//!
//! Owns what a launch left behind (its [`Trail`]), when that may be used again, and its replay. Nothing is left out of a replay: every
//! access is compared and kept as the first time. It only knows already into which map, and as which bytes.
//!
//! # When a trail is good
//!
//! The accesses of a launch are its effects (fixed by kernel, shape and parameters) and where their addresses lie. A trail holds a ticket
//! for each place that was asked for, so it is void as soon as an allocation there has gone or been carved up, and good again when a block
//! has come back in the same place. Where an address lay
//! in no allocation, any root that comes or goes voids it. What tickets do not tell of (aliases, objects, variables) voids every trail.
//! Launches that read tables of pointers or go through texture objects leave none.

use crate::memory::allocations::{Home, Place};

use crate::memory::{Access, AccessKind, Allocations, At, Extent, Slot, Ticket};
use crate::race::Race;
use crate::work::Work;
use smallvec::SmallVec;

/// Accesses of one launch at most.
const MAX_STEPS: usize = 24;

/// One access.
struct Step {
    slot: Slot,
    /// Where in the map it was put last.
    near: At,
    kind: AccessKind,
    extent: Extent,
    /// For its allocation.
    ticket: Ticket,
    param: Option<u32>,
    at: u32,
}

/// What a launch left behind.
pub struct Trail {
    steps: Box<[Step]>,
    tickets: SmallVec<[Ticket; 4]>,
    /// Whether some address lay in no allocation.
    open: bool,
    layout: (u64, u64),
    unknown_memory: u64,
    several: bool,
    /// Whether the launch writes where nobody knows.
    forgets: bool,
}

impl Trail {
    /// Whether the launch would go the same way again.
    #[inline]
    pub fn is_good(&self, memory: &Allocations) -> bool {
        let (roots, others) = memory.layout();
        others == self.layout.1
            && (!self.open || roots == self.layout.0)
            && self.tickets.iter().all(|ticket| memory.holds(*ticket))
    }
}

/// A trail in the making.
#[derive(Default)]
pub struct Recording {
    steps: Vec<Step>,
    tickets: SmallVec<[Ticket; 4]>,
    open: bool,
    spoilt: bool,
}

impl Recording {
    /// This was asked for.
    pub fn located(&mut self, memory: &Allocations, place: Option<&Place>) {
        let Some(place) = place else {
            self.open = true;
            return;
        };
        match memory.ticket(place) {
            Some(ticket) if self.tickets.contains(&ticket) => {}
            Some(ticket) => self.tickets.push(ticket),
            None => self.spoilt = true,
        }
    }

    /// The launch does something that a trail can not tell of.
    pub fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// An access was made.
    pub fn step(&mut self, memory: &Allocations, home: Home, access: &Access) {
        let ticket = self.tickets.iter().find(|ticket| memory.of_ticket(**ticket) == access.allocation);
        match (memory.slot(home), ticket) {
            (Some(slot), Some(&ticket)) if self.steps.len() < MAX_STEPS => self.steps.push(Step {
                slot,
                near: At::default(),
                kind: access.kind,
                extent: access.extent,
                ticket,
                param: access.site.param,
                at: access.site.at,
            }),
            _ => self.spoilt = true,
        }
    }
}

impl Work<'_, '_> {
    /// The trail of the launch that was just recorded. `forgets`: it writes where nobody knows.
    pub fn trail(&mut self, forgets: bool) -> Option<Trail> {
        let made = self.recording.take().filter(|made| !made.spoilt)?;
        Some(Trail {
            steps: made.steps.into_boxed_slice(),
            tickets: made.tickets,
            open: made.open,
            layout: self.memory.layout(),
            unknown_memory: self.unknown_memory,
            several: self.several(),
            forgets,
        })
    }

    /// A launch that goes the way of an earlier one.
    pub fn replay(&mut self, trail: &mut Trail) {
        for step in &mut trail.steps {
            (self.site.param, self.site.at) = (step.param, step.at);
            let (kind, extent) = (step.kind, step.extent);
            let allocation = self.memory.of_ticket(step.ticket);
            let access = Access { epoch: self.view.epoch, kind, extent, allocation, site: self.site };
            if kind.writes() && !self.memory.contents.is_empty() {
                self.overwritten(&extent);
            }
            let races = &mut *self.races;
            let mut race = |e: &Access, latent| races.extend(Race::judge(e, &access, latent));
            step.near = self.memory.map_at(step.slot).add_near(&access, step.near, &self.view, &mut race);
        }
        if trail.forgets {
            self.memory.contents.forget_all();
        }
        self.unknown_memory += trail.unknown_memory;
        self.found_several(trail.several);
    }
}
