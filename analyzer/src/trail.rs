//! Launches that come again: where the accesses of a launch went, so that the same launch need not look its addresses up again.
//!
//! Owns what a launch left behind (its [`Trail`]), when that may be used again, and its replay. Nothing is left out of a replay: every
//! access is compared and kept as the first time. It only knows already into which map, and as which bytes.
//!
//! # When a trail is good
//!
//! The accesses of a launch are its effects (fixed by kernel, shape and parameters) and where their addresses lie. A trail holds a ticket
//! for each place that was asked for, so it is void as soon as an allocation there has gone or been carved up, and good again when a block
//! has come back in the same place. Where an address lay in no allocation, any root that comes or goes voids it. What tickets do not tell
//! of (aliases, objects, variables) voids every trail. Launches that read tables of pointers or go through texture objects leave none.

use crate::code::{Base, Evaluated, Outline};
use crate::memory::allocations::{Home, Place};
use crate::memory::{Access, AccessKind, Allocations, At, Extent, Site, Slot, Ticket};
use crate::ordering::View;
use crate::race::Race;
use crate::work::Work;
use smallvec::SmallVec;

/// Accesses of one launch at most.
const MAX_STEPS: usize = 24;

/// The bytes of an access. There are many trails, and most accesses are exact and without gaps.
enum Bytes {
    Exact(u64, u64),
    Other(Box<Extent>),
}

impl Bytes {
    fn of(extent: &Extent) -> Self {
        let exact = Extent::exact(extent.start, extent.end);
        if *extent == exact { Self::Exact(extent.start, extent.end) } else { Self::Other(Box::new(*extent)) }
    }

    #[inline]
    fn extent(&self) -> Extent {
        match self {
            Self::Exact(start, end) => Extent::exact(*start, *end),
            Self::Other(extent) => **extent,
        }
    }
}

/// One access.
struct Step {
    slot: Slot,
    /// Where in the map it was put last.
    near: At,
    kind: AccessKind,
    bytes: Bytes,
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
    known: Outline,
}

impl Trail {
    /// What is to be counted of the launch.
    pub fn known(&self) -> &Outline {
        &self.known
    }

    /// Whether the launch would go the same way again.
    #[inline]
    pub fn is_good(&self, memory: &Allocations) -> bool {
        let (roots, others) = memory.layout();
        others == self.layout.1
            && (!self.open || roots == self.layout.0)
            && self.tickets.iter().all(|ticket| memory.holds(*ticket))
    }
}

/// What a replay found beside races.
#[derive(Clone, Copy)]
pub struct Replayed {
    /// Accesses at addresses in no allocation.
    pub unknown_memory: u64,
    /// Whether some address was made of several words that point into allocations.
    pub several: bool,
}

impl Trail {
    /// A launch goes this way again.
    pub fn replay(&mut self, memory: &mut Allocations, view: &View<'_>, site: Site, races: &mut Vec<Race>) -> Replayed {
        for step in &mut self.steps {
            let site = Site { param: step.param, at: step.at, ..site };
            let allocation = memory.of_ticket(step.ticket);
            let access = Access { epoch: view.epoch, kind: step.kind, extent: step.bytes.extent(), allocation, site };
            if access.kind.writes() && !memory.contents.is_empty() {
                memory.overwritten(&access.extent);
            }
            let mut race = |e: &Access, latent| races.extend(Race::judge(e, &access, latent));
            step.near = memory.map_at(step.slot).add_near(&access, step.near, view, &mut race);
        }
        if self.forgets {
            memory.contents.forget_all();
        }
        Replayed { unknown_memory: self.unknown_memory, several: self.several }
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
                bytes: Bytes::of(&access.extent),
                ticket,
                param: access.site.param,
                at: access.site.at,
            }),
            _ => self.spoilt = true,
        }
    }
}

impl Work<'_, '_> {
    /// The trail of the launch that was just recorded.
    pub fn trail(&mut self, evaluated: &Evaluated) -> Option<Trail> {
        let made = self.recording.take().filter(|made| !made.spoilt)?;
        Some(Trail {
            steps: made.steps.into_boxed_slice(),
            tickets: made.tickets,
            open: made.open,
            layout: self.memory.layout(),
            unknown_memory: self.unknown_memory,
            several: self.several(),
            forgets: evaluated.effects.iter().any(|e| e.kind.writes() && e.base == Base::Unknown),
            known: evaluated.outline(),
        })
    }
}
