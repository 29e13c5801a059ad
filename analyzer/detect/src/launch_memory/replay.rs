//! Replay of repeated launches: the log of where the accesses of a launch went, so that an equal
//! launch need not look its addresses up again.
//!
//! Owns the [`ReplayLog`], the rule of when a log is valid, and the replay itself. A replay skips
//! no comparison and no update: every access is compared and stored as in the first launch. What it
//! skips is the search for the access map and for the bytes. [`crate::recording`] writes
//! the log.
//!
//! # When a log is valid
//!
//! The accesses of a launch are its effects (fixed by kernel, shape and parameters) and the places
//! where their addresses lie. A log holds a generation ([`crate::memory::generations`]) for each
//! place that was looked up. So the log becomes void when an allocation there is freed or carved
//! up, and valid again when a block returns at the same place. Where an address lay in no
//! allocation, any root that comes or goes voids the log. Three things have no generation: aliases,
//! texture and surface objects, and addresses of variables. A change of any of them voids every
//! log. Launches that read tables of pointers or go through texture objects leave no log.

use crate::accesses::Work;
use crate::launch_memory::evaluator::Tally;
use crate::launches::effects::{EffectBase, Evaluated};
use crate::memory::access_map::PlainAccess;
use crate::race::Race;
use crate::recording::RecordedAccess;

use crate::memory::{Access, AllocationId, Allocations, At, Exclusion, Generation, Precision, Site, Touch};
use crate::state::graphs::Graph;
use crate::state::happens_before::Ordering;
use smallvec::SmallVec;
use trace::Epoch;

/// The order, the epoch of the current op, and the graph node that it stands for.
type Ordered<'a> = (&'a Ordering, Epoch, Option<(&'a Graph, u32)>);

impl RecordedAccess {
    /// Adds the access by the general way, whatever it conflicts with.
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
        let &mut Self { start, end, kind, param, at, guessed, ref rare, .. } = self;
        let site = &Site { param, at, guessed, ..*site };
        let view = &op.0.view(op.1, op.2);
        let odd = rare.as_ref().and_then(|rare| rare.odd.as_ref());
        let exclusion = rare.as_ref().map_or(&Exclusion::NONE, |rare| &rare.exclusion);
        let touch = Touch { epoch: view.epoch, kind, start, end, odd, allocation, site, exclusion };
        if kind.writes() && !memory.contents.is_empty() {
            memory.overwritten(&touch.extent());
        }
        if kind.writes() && odd.is_some_and(|odd| odd.precision == Precision::Unknown) {
            memory.strays.inside(allocation);
        }
        memory.escaped(|| touch.access());
        let mut race = |e: &Access, latent| races.extend(Race::judge(e, &touch.access(), latent));
        let near = memory.map_at(self.slot).add_near(&touch, At::unpack(self.near), view, &mut race);
        self.near = near.pack();
    }
}

/// The accesses of a launch and the conditions under which they can be replayed.
pub struct ReplayLog {
    steps: SmallVec<[RecordedAccess; 3]>,
    generations: SmallVec<[Generation; 3]>,
    /// Whether an address lay in no allocation.
    open: bool,
    layout: (u64, u64),
    /// Whether the launch writes through an address that is not known.
    forgets: bool,
    /// The counter of repetitions.
    tally: u32,
    /// Whether the launch tells nobody anything, though its kernel can.
    mute: bool,
}

impl ReplayLog {
    /// The log of the launch that `work` has just recorded. `tally` makes or finds its counter.
    /// `None`: the launch did something that can not be replayed.
    pub fn of(work: &mut Work<'_, '_>, evaluated: &Evaluated, tally: impl FnOnce(Tally) -> u32) -> Option<Self> {
        let made = work.recording.take().filter(|made| !made.spoilt)?;
        let (unplaced, several) = (work.unplaced, work.several());
        Some(Self {
            steps: made.steps,
            generations: made.generations,
            open: made.open,
            layout: work.memory.layout(),
            forgets: evaluated.effects.iter().any(|e| e.kind.writes() && e.base == EffectBase::Unknown),
            mute: false,
            tally: tally(Tally { kernel: work.site.kernel, known: evaluated.outline(), unplaced, several }),
        })
    }

    /// The counter of repetitions: see [`crate::launch_memory::evaluator::LaunchEvaluator::count`].
    pub fn tally(&self) -> u32 {
        self.tally
    }

    /// The launch tells nobody anything, though its kernel can.
    #[must_use]
    pub fn mute(self, mute: bool) -> Self {
        Self { mute, ..self }
    }

    /// Whether that is known of it.
    pub fn is_mute(&self) -> bool {
        self.mute
    }

    /// Whether the launch would make the same accesses again.
    #[inline]
    pub fn holds(&self, memory: &Allocations) -> bool {
        let (roots, others) = memory.layout();
        others == self.layout.1
            && (!self.open || roots == self.layout.0)
            && self.generations.iter().all(|generation| memory.holds(*generation))
    }
}

impl ReplayLog {
    /// Makes the accesses again, for the current op of this order.
    #[inline(always)]
    pub fn replay(&mut self, memory: &mut Allocations, op: Ordered<'_>, site: &Site, races: &mut Vec<Race>) {
        let (order, epoch, node) = op;
        let (generations, reach) = (&self.generations[..], order.reach(epoch, node.is_some()));
        let watched = !memory.contents.is_empty() || !memory.escapes.is_idle();
        for step in &mut self.steps {
            let allocation = memory.allocation_of(generations[usize::from(step.generation)]);
            let &mut RecordedAccess { start, end, kind, param, at, slot, near, .. } = step;
            let new = PlainAccess { epoch, kind, start, end, allocation, site, param, at };
            if step.rare.is_some()
                || step.guessed
                || site.conditional
                || watched
                || !memory.map_at(slot).add_fast(new, At::unpack(near), &reach)
            {
                step.add(memory, op, allocation, site, races);
            }
        }
        if self.forgets {
            memory.contents.forget_all();
            memory.strays.anywhere();
        }
    }
}
