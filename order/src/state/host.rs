//! The host's side: what it has seen finish, and which waits are under way.
//!
//! Owns the floor (what the merged host timeline knows, and with it every op that is enqueued) and
//! pending synchronisations. All calls carry the host thread; waits under way are kept by thread.

use std::sync::Arc;

use trace::{SyncId, ThreadId};

use crate::clock::{Entry, FloorRef, TimelineSnapshot};
use crate::id_map::IdMap;

/// What a wait is worth: synchronisation that the driver performs, or that is also documented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Guarantee {
    /// Under the engine's policy.
    pub(crate) by_policy: bool,
    /// By the documents.
    pub(crate) documented: bool,
}

impl Guarantee {
    /// Explicit synchronisation: under every policy.
    pub(crate) const ALWAYS: Self = Self { by_policy: true, documented: true };
}

/// A dense vector of times known finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floor {
    /// By slot. Shared with clock snapshots that live; copied on the next change then.
    pub(crate) times: Arc<Vec<u64>>,
    /// Everything enqueued before this host time has finished.
    pub(crate) all_before: u64,
}

impl Floor {
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> u64 {
        self.times.get(slot as usize).copied().unwrap_or(0)
    }

    fn raise(&mut self, entries: impl Iterator<Item = Entry>) {
        for e in entries {
            if self.get(e.slot) < e.time {
                let times = Arc::make_mut(&mut self.times);
                let slot = e.slot as usize;
                if times.len() <= slot {
                    times.resize(slot + 1, 0);
                }
                times[slot] = e.time;
            }
        }
    }
}

/// What a wait that began will have covered when it ends.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    /// One timeline or event with what it knew.
    pub(crate) snapshot: Option<TimelineSnapshot>,
    /// Frontiers of many timelines.
    pub(crate) many: Vec<Entry>,
    /// When every timeline is covered: the host time at the beginning.
    pub(crate) all_before: u64,
}

/// How many waits one thread may have under way (signal handlers nest); older ones are taken for
/// abandoned.
const PENDING_PER_THREAD: usize = 4;

/// The host. What every op touches comes last: see [`crate::Engine`].
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Host {
    pending: IdMap<u32, Vec<(SyncId, Covered)>>,
    /// What it would know by documented synchronisation alone; kept only on demand.
    pub(crate) documented: Option<Floor>,
    /// What the host knows under the policy.
    pub(crate) floor: Floor,
    /// How often the floor changed.
    pub(crate) changes: u64,
    /// Host time: counts ops.
    pub(crate) time: u64,
}

impl Host {
    /// A host that has seen nothing; with a second floor when `latent`.
    pub(crate) fn new(latent: bool) -> Self {
        Self { documented: latent.then(Default::default), ..Self::default() }
    }

    /// The floor that clocks may leave out: the weakest one that can be asked about.
    #[inline]
    pub(crate) fn weakest(&self) -> &Floor {
        self.documented.as_ref().unwrap_or(&self.floor)
    }

    /// The weakest floor as clocks see it.
    #[inline]
    pub(crate) fn floor_ref(&self) -> FloorRef<'_> {
        let floor = self.weakest();
        FloorRef { times: &floor.times, all_before: floor.all_before, version: self.changes, now: self.time }
    }

    /// The host thread has seen all this finish.
    pub(crate) fn acquire(&mut self, _thread: ThreadId, what: &Covered, guarantee: Guarantee) {
        let of_use = guarantee.by_policy || (guarantee.documented && self.documented.is_some());
        if !of_use {
            return;
        }
        self.changes += 1;
        let floors = [(guarantee.by_policy, Some(&mut self.floor)), (guarantee.documented, self.documented.as_mut())];
        for (raise, floor) in floors {
            if let (true, Some(floor)) = (raise, floor) {
                floor.all_before = floor.all_before.max(what.all_before);
                floor.raise(what.many.iter().copied());
                if let Some(s) = &what.snapshot {
                    floor.raise(std::iter::once(s.own).chain(s.clock.entries()));
                }
            }
        }
    }

    /// A wait began.
    pub(crate) fn begin(&mut self, thread: ThreadId, sync: SyncId, what: Covered) {
        let pending = self.pending.entry(thread.0).or_default();
        if pending.len() >= PENDING_PER_THREAD {
            pending.remove(0);
        }
        pending.push((sync, what));
    }

    /// No wait is under way.
    pub(crate) fn forget_waits(&mut self) {
        self.pending.clear();
    }

    /// A wait ended; what it covered, if its beginning was seen.
    pub(crate) fn end(&mut self, thread: ThreadId, sync: SyncId) -> Option<Covered> {
        let pending = self.pending.get_mut(&thread.0)?;
        let at = pending.iter().rposition(|(id, _)| *id == sync)?;
        let (_, what) = pending.remove(at);
        if pending.is_empty() {
            self.pending.remove(&thread.0);
        }
        Some(what)
    }
}
