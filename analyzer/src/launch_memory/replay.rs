//! Launches that come again: where the accesses of a launch went, so that the same launch need not
//! look its addresses up again.
//!
//! Owns what a launch left behind (its [`ReplayLog`]), when that may be used again, and its replay.
//! Nothing is left out of a replay: every access is compared and kept as the first time. It only
//! knows already into which map, and as which bytes.
//!
//! # When a trail is good
//!
//! The accesses of a launch are its effects (fixed by kernel, shape and parameters) and where their
//! addresses lie. A trail holds a ticket for each place that was asked for, so it is void as soon
//! as an allocation there has gone or been carved up, and good again when a block has come back in
//! the same place. Where an address lay in no allocation, any root that comes or goes voids it.
//! What tickets do not tell of (aliases, objects, variables) voids every trail. Launches that read
//! tables of pointers or go through texture objects leave none.

use crate::detect::accesses::Work;
use crate::detect::race::Race;
use crate::launches::effects::{EffectBase, Evaluated, Tally};
use crate::memory::access_map::Plain;
use crate::memory::allocations::{Home, Location};
use crate::memory::{Access, AccessKind, AllocationId, Allocations, At, Extent, Site, Slot, Ticket, Touch};
use crate::state::graphs::Graph;
use crate::state::happens_before::Ordering;
use smallvec::SmallVec;
use trace::Epoch;

/// Accesses of one launch at most.
const MAX_STEPS: usize = 24;

/// One access. There are many trails, and most accesses are exact and without gaps.
struct Step {
    start: u64,
    end: u64,
    odd: Option<Box<Extent>>,
    slot: Slot,
    /// Where in the map it was put last.
    near: (u32, u32),
    param: Option<u32>,
    at: u32,
    kind: AccessKind,
    /// That of its allocation, among the trail's.
    ticket: u8,
}

/// The order, the latest op's place in it, and which node of which graph it is.
type Ordered<'a> = (&'a Ordering, Epoch, Option<(&'a Graph, u32)>);

impl Step {
    /// Adds the access, whatever it meets.
    #[cold]
    #[inline(never)]
    fn add(
        &mut self,
        memory: &mut Allocations,
        op: Ordered<'_>,
        allocation: AllocationId,
        site: &Site,
        races: &mut Vec<Race>,
    ) {
        let &mut Self { start, end, kind, param, at, ref odd, .. } = self;
        let site = &Site { param, at, ..*site };
        let view = &op.0.view(op.1, op.2);
        let touch = Touch { epoch: view.epoch, kind, start, end, odd: odd.as_deref(), allocation, site };
        if kind.writes() && !memory.contents.is_empty() {
            memory.overwritten(&touch.extent());
        }
        let mut race = |e: &Access, latent| races.extend(Race::judge(e, &touch.access(), latent));
        let near = memory.map_at(self.slot).add_near(&touch, At::unpack(self.near), view, &mut race);
        self.near = near.pack();
    }
}

/// What a launch left behind.
pub struct ReplayLog {
    steps: SmallVec<[Step; 3]>,
    tickets: SmallVec<[Ticket; 3]>,
    /// Whether some address lay in no allocation.
    open: bool,
    layout: (u64, u64),
    /// Whether the launch writes where nobody knows.
    forgets: bool,
    /// Where it is counted that the launch comes again.
    tally: u32,
}

impl ReplayLog {
    /// Where it is counted that the launch comes again: see [`crate::launches::effects::LaunchEvaluator::count`].
    pub fn tally(&self) -> u32 {
        self.tally
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

impl ReplayLog {
    /// A launch goes this way again, the latest op in this order.
    #[inline(always)]
    pub fn replay(&mut self, memory: &mut Allocations, op: Ordered<'_>, site: &Site, races: &mut Vec<Race>) {
        let (order, epoch, node) = op;
        let (tickets, reach) = (&self.tickets[..], order.reach(epoch, node.is_some()));
        let contents = !memory.contents.is_empty();
        for step in &mut self.steps {
            let allocation = memory.of_ticket(tickets[usize::from(step.ticket)]);
            let &mut Step { start, end, kind, param, at, slot, near, .. } = step;
            let new = Plain { epoch, kind, start, end, allocation, site, param, at };
            if step.odd.is_some() || contents || !memory.map_at(slot).add_usual(new, At::unpack(near), &reach) {
                step.add(memory, op, allocation, site, races);
            }
        }
        if self.forgets {
            memory.contents.forget_all();
        }
    }
}

/// A trail in the making.
#[derive(Default)]
pub struct ReplayRecorder {
    steps: SmallVec<[Step; 3]>,
    tickets: SmallVec<[Ticket; 3]>,
    open: bool,
    spoilt: bool,
}

impl ReplayRecorder {
    /// This was asked for.
    pub fn located(&mut self, memory: &Allocations, place: Option<&Location>) {
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
        let ticket = self.tickets.iter().position(|ticket| memory.of_ticket(*ticket) == access.allocation);
        match (memory.slot(home), ticket.and_then(|ticket| u8::try_from(ticket).ok())) {
            (Some(slot), Some(ticket)) if self.steps.len() < MAX_STEPS => {
                let Touch { start, end, odd, kind, site: &Site { param, at, .. }, .. } = Touch::of(access);
                let (odd, near) = (odd.copied().map(Box::new), At::default().pack());
                self.steps.push(Step { start, end, odd, slot, near, param, at, kind, ticket });
            }
            _ => self.spoilt = true,
        }
    }
}

impl Work<'_, '_> {
    /// The trail of the launch that was just recorded; `tally` makes or finds its count.
    pub fn trail(&mut self, evaluated: &Evaluated, tally: impl FnOnce(Tally) -> u32) -> Option<ReplayLog> {
        let made = self.recording.take().filter(|made| !made.spoilt)?;
        let (unknown_memory, several) = (self.unknown_memory, self.several());
        Some(ReplayLog {
            steps: made.steps,
            tickets: made.tickets,
            open: made.open,
            layout: self.memory.layout(),
            forgets: evaluated.effects.iter().any(|e| e.kind.writes() && e.base == EffectBase::Unknown),
            tally: tally(Tally { kernel: self.site.kernel, known: evaluated.outline(), unknown_memory, several }),
        })
    }
}
