//! How long shared memory of a block of a cluster may be used by other blocks: from where its
//! barrier objects are known to the cluster until its last thread ends. Owns what that takes beside
//! clocks; what orders accesses with each other is elsewhere.
//!
//! Whoever goes on behind a barrier of the cluster knows that the others have come to it, also
//! where their arrival was relaxed and releases nothing of what they have written (PTX ISA,
//! "barrier.cluster"). That is enough for a block to end, and, behind `fence.mbarrier_init`, for
//! its barrier objects to be used.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::{Known, join};
use crate::detector::State;
use crate::events::{Kind, LANES, Lanes, Memory, ObjectPlace, WarpAccess};
use crate::grade::Grade;
use crate::objects::Progress;
use crate::pair::{lanes, side};
use crate::records::{Race, Records, Remedy, Side};
use crate::shadow::Access;

/// All of a launch with clusters.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    /// What each block knows of others to have come to the barrier of the cluster.
    met: FxHashMap<u32, Arc<Known>>,
    /// Where a thread of each block has ended last.
    ends: FxHashMap<u32, Side>,
    /// Blocks that have ended.
    ended: FxHashSet<u32>,
    /// The initialisation of objects that a fence has made known to the cluster.
    inits: FxHashMap<ObjectPlace, Access>,
}

impl Lives {
    /// Lanes of a block have ended.
    pub(crate) fn exits(&mut self, of: Lanes, site: u32) {
        let thread = Some(of.warp * LANES as u32 + of.mask.trailing_zeros());
        let end = Side { site, kind: Kind::Write, scope: None, asynchronous: false, block: of.block, thread };
        self.ends.insert(of.block, end);
    }

    /// A block has passed a barrier of the cluster that these had come to.
    pub(crate) fn has_met(&mut self, block: u32, all: &Arc<Known>) {
        let met = self.met.entry(block).or_default();
        if !Arc::ptr_eq(met, all) {
            *met = join(met, all);
        }
    }

    /// A barrier object has a new life.
    pub(crate) fn begins(&mut self, place: ObjectPlace) {
        self.inits.remove(&place);
    }

    /// A fence has made the initialisation of an object known to the cluster.
    pub(crate) fn known_to_cluster(&mut self, place: ObjectPlace, init: &Access) {
        self.inits.insert(place, *init);
    }

    fn knows(&self, block: u32, access: &Access, lane: u32) -> bool {
        let thread = u32::from(access.warp) * LANES as u32 + lane;
        self.met.get(&block).is_some_and(|met| met.knows(access.block, thread, access.epoch))
    }
}

impl State {
    /// Whether an access is one of another block's shared memory that lives no more, or of a
    /// barrier object there that nobody may know yet. The first is told and leaves no trace.
    pub(crate) fn is_beyond_life(&mut self, access: &WarpAccess<'_>) -> bool {
        let Memory::Shared(owner) = access.memory else { return false };
        if owner == access.block || self.clusters.is_empty() {
            return false;
        }
        let lane = access.lanes.trailing_zeros();
        let address = access.addresses[lane as usize];
        let now = Side {
            site: access.site,
            kind: access.kind,
            scope: None,
            asynchronous: access.bulk.is_some(),
            block: access.block,
            thread: Some(access.warp * LANES as u32 + lane),
        };
        let event = self.events;
        let tell = |records: &mut Records, other: Side, grade: Grade, remedy: Remedy| {
            let (sides, shared) = ([now, other], Some(owner));
            records.add(Race { sides, shared, address, grade, remedy, count: 0 }, true, event);
        };
        if self.lives.ended.contains(&owner) {
            if let Some(&end) = self.lives.ends.get(&owner) {
                let grade = if access.object { Grade::Likely } else { Grade::Certain };
                tell(&mut self.records, end, grade, Remedy::BlockStays);
            }
            return true;
        }
        if access.object
            && let Some(init) = self.lives.inits.get(&(access.memory, address))
        {
            let first = init.lanes.trailing_zeros();
            let thread = u32::from(init.warp) * LANES as u32 + first;
            let knows = |at: usize| {
                let of = self.blocks.get(&access.block).and_then(|block| block.threads.get(at));
                of.is_some_and(|of| of.known.knows(init.block, thread, init.epoch))
            };
            let user = access.warp as usize * LANES + lane as usize;
            if !init.is_wide() && !self.lives.knows(access.block, init, first) && !knows(user) {
                tell(&mut self.records, side(init, first), Grade::Certain, Remedy::ClusterBarrier);
            }
        }
        false
    }

    /// All threads of a block have ended: what others did in its shared memory must be over.
    pub(crate) fn block_leaves(&mut self, owner: u32) {
        if self.clusters.is_empty() {
            return;
        }
        let State { blocks, shadows, lives, objects, records, events, .. } = self;
        *events += 1;
        lives.ended.insert(owner);
        let (Some(block), Some(&end)) = (blocks.get(&owner), lives.ends.get(&owner)) else { return };
        let Some(shadow) = shadows.get(&Memory::Shared(owner)) else { return };
        let mut known: Option<Arc<Known>> = None;
        shadow.each(|address, access| {
            if access.block == owner || access.is_wide() {
                return;
            }
            let known = known.get_or_insert_with(|| block.known_to_all());
            let over = |lane: u32| {
                let thread = u32::from(access.warp) * LANES as u32 + lane;
                if !access.is(Access::BULK) {
                    return known.knows(access.block, thread, access.epoch) || lives.knows(owner, access, lane);
                }
                match objects.progress(access.epoch) {
                    None => false,
                    Some(Progress::Reported { block, object, phase }) => known.knows_phase(block, object, phase),
                    Some(Progress::Awaited { block, thread, epoch }) => {
                        let met = lives.met.get(&owner);
                        known.knows(block, thread, epoch) || met.is_some_and(|met| met.knows(block, thread, epoch))
                    }
                }
            };
            if let Some(lane) = lanes(access.lanes).find(|&lane| !over(lane)) {
                // Arrivals at objects, and what the hardware carries out, may find the memory
                // there.
                let doubtful = access.is(Access::BULK) || objects.has((Memory::Shared(owner), address & !7));
                let grade = if doubtful { Grade::Likely } else { Grade::Certain };
                let (sides, shared, remedy) = ([side(access, lane), end], Some(owner), Remedy::BlockStays);
                records.add(Race { sides, shared, address, grade, remedy, count: 0 }, true, *events);
            }
        });
        lives.inits.retain(|(memory, _), _| *memory != Memory::Shared(owner));
        lives.met.remove(&owner);
    }
}
