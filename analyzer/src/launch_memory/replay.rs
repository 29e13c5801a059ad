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
use crate::detect::recording::Step;
use crate::launch_memory::evaluator::Tally;
use crate::launches::effects::{EffectBase, Evaluated};
use crate::memory::access_map::PlainAccess;

use crate::memory::{Access, AllocationId, Allocations, At, Generation, Site, Touch};
use crate::state::graphs::Graph;
use crate::state::happens_before::Ordering;
use smallvec::SmallVec;
use trace::Epoch;

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
    generations: SmallVec<[Generation; 3]>,
    /// Whether some address lay in no allocation.
    open: bool,
    layout: (u64, u64),
    /// Whether the launch writes where nobody knows.
    forgets: bool,
    /// Where it is counted that the launch comes again.
    tally: u32,
}

impl ReplayLog {
    /// What the launch that `work` has just recorded leaves behind; `tally` makes or finds its
    /// count. `None`: it did something that can not be replayed.
    pub fn of(work: &mut Work<'_, '_>, evaluated: &Evaluated, tally: impl FnOnce(Tally) -> u32) -> Option<Self> {
        let made = work.recording.take().filter(|made| !made.spoilt)?;
        let (unknown_memory, several) = (work.unknown_memory, work.several());
        Some(Self {
            steps: made.steps,
            generations: made.generations,
            open: made.open,
            layout: work.memory.layout(),
            forgets: evaluated.effects.iter().any(|e| e.kind.writes() && e.base == EffectBase::Unknown),
            tally: tally(Tally { kernel: work.site.kernel, known: evaluated.outline(), unknown_memory, several }),
        })
    }

    /// Where it is counted that the launch comes again: see [`crate::launch_memory::evaluator::LaunchEvaluator::count`].
    pub fn tally(&self) -> u32 {
        self.tally
    }

    /// Whether the launch would go the same way again.
    #[inline]
    pub fn holds(&self, memory: &Allocations) -> bool {
        let (roots, others) = memory.layout();
        others == self.layout.1
            && (!self.open || roots == self.layout.0)
            && self.generations.iter().all(|generation| memory.holds(*generation))
    }
}

impl ReplayLog {
    /// A launch goes this way again, the latest op in this order.
    #[inline(always)]
    pub fn replay(&mut self, memory: &mut Allocations, op: Ordered<'_>, site: &Site, races: &mut Vec<Race>) {
        let (order, epoch, node) = op;
        let (generations, reach) = (&self.generations[..], order.reach(epoch, node.is_some()));
        let contents = !memory.contents.is_empty();
        for step in &mut self.steps {
            let allocation = memory.allocation_of(generations[usize::from(step.generation)]);
            let &mut Step { start, end, kind, param, at, slot, near, .. } = step;
            let new = PlainAccess { epoch, kind, start, end, allocation, site, param, at };
            if step.odd.is_some() || contents || !memory.map_at(slot).add_fast(new, At::unpack(near), &reach) {
                step.add(memory, op, allocation, site, races);
            }
        }
        if self.forgets {
            memory.contents.forget_all();
        }
    }
}
