//! Visibility between processes: which accesses, that no host has seen finish, are known to have
//! finished at an op of another process.
//!
//! Owns the order between processes. The order inside one process comes from its own clocks.

use order::ClockSnapshot;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::VecDeque;
use trace::{Epoch, TimelineId};

use detect::memory::Access;
use detect::memory::access_map::{Clocks, Ordered};

/// Maximum number of timelines of one process. Ops on higher ones are not tracked, and count as
/// finished.
const TIMELINES: u32 = 1 << 20;

/// The epoch of an op of one process among those of all processes.
pub(crate) fn global(member: u32, epoch: Epoch) -> Option<Epoch> {
    let slot = epoch.timeline.0;
    (slot < TIMELINES && member < u32::MAX / TIMELINES)
        .then(|| Epoch { timeline: TimelineId(member * TIMELINES + slot), ..epoch })
}

/// The process of such an epoch, and the epoch in its own terms.
pub(crate) fn local(epoch: Epoch) -> (u32, Epoch) {
    let TimelineId(slot) = epoch.timeline;
    (slot / TIMELINES, Epoch { timeline: TimelineId(slot % TIMELINES), ..epoch })
}

/// The process that an access in the exchange belongs to.
pub(crate) fn member_of(access: &Access) -> u32 {
    local(access.epoch).0
}

/// Where an access is known to have finished: for each process and timeline, the first op that
/// comes after it.
type After = SmallVec<[(u32, Epoch); 2]>;

/// What has finished when something comes after an op of a process.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) process: u32,
    /// All that this clock covers.
    pub(crate) clock: ClockSnapshot,
    /// And this op itself.
    pub(crate) op: Option<Epoch>,
    /// When it was submitted.
    pub(crate) time: u64,
}

/// An edge from there to an op of another process.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) from: Finished,
    pub(crate) to: u32,
    pub(crate) epoch: Epoch,
}

/// An access in flight.
#[derive(Default)]
struct Pending {
    after: After,
    /// When it was submitted.
    began: u64,
    /// Its stream waits for a value that nothing has been seen to write.
    held: bool,
    /// It waits for one, and one stream has written it.
    answered: bool,
    /// From when on a host has known that it is over. What was submitted earlier may be compared
    /// later (`queue`).
    over: Option<u64>,
}

/// Edges from ops whose accesses may follow, remembered.
const MOST_EDGES: usize = 64;

/// Accesses in flight.
#[derive(Default)]
pub(crate) struct CrossProcessOrder {
    pending: FxHashMap<Epoch, Pending>,
    /// The latest edges from ops themselves.
    from_ops: VecDeque<Edge>,
    sweep_at: usize,
    /// Whether some of those in flight are over.
    some_over: bool,
}

impl CrossProcessOrder {
    /// Adds an access that no host has seen finish.
    pub(crate) fn begin(&mut self, epoch: Epoch, began: u64, held: bool, answered: bool) {
        let pending = self.pending.entry(epoch).or_insert_with(|| Pending { began, ..Pending::default() });
        pending.held |= held;
        pending.answered |= answered;
        // Two kernels that signal to each other have both their edges before their accesses.
        let (home, own) = local(epoch);
        let of_op = |edge: &&Edge| edge.from.process == home && edge.from.op == Some(own);
        self.from_ops.iter().filter(of_op).for_each(|edge| edge.apply(epoch, pending));
    }

    /// Whether an access in flight was submitted before a time.
    pub(crate) fn began_before(&self, epoch: Epoch, time: u64) -> bool {
        self.pending.get(&epoch).is_some_and(|pending| pending.began < time)
    }

    /// Whether an access in flight waits for a value that nothing has been seen to write.
    pub(crate) fn is_held(&self, epoch: Epoch) -> bool {
        self.pending.get(&epoch).is_some_and(|pending| pending.held)
    }

    /// Whether an access in flight waits for a value, and comes after the one write of it.
    pub(crate) fn is_answered(&self, epoch: Epoch) -> bool {
        self.pending.get(&epoch).is_some_and(|pending| pending.answered)
    }

    /// The host of a process has seen everything finish that this clock covers, and so have all
    /// hosts from this time on.
    pub(crate) fn seen(&mut self, member: u32, clock: &ClockSnapshot, time: u64) {
        self.end(time, |epoch, pending| reaches(epoch, &pending.after, member, clock));
    }

    /// Everything of a process has finished.
    pub(crate) fn ended(&mut self, member: u32, time: u64) {
        self.end(time, |epoch, _| local(epoch).0 == member);
    }

    fn end(&mut self, time: u64, which: impl Fn(Epoch, &Pending) -> bool) {
        for (epoch, pending) in &mut self.pending {
            if pending.over.is_none() && which(*epoch, pending) {
                pending.over = Some(time);
                self.some_over = true;
            }
        }
    }

    /// All that will be compared was submitted at this time or later.
    pub(crate) fn forget_seen(&mut self, oldest: u64) {
        if self.some_over {
            self.pending.retain(|_, pending| pending.over.is_none_or(|over| over >= oldest));
            self.some_over = self.pending.values().any(|pending| pending.over.is_some());
        }
    }

    /// What has finished at one op has finished when an op of another process starts.
    pub(crate) fn link(&mut self, edge: Edge) {
        self.pending.iter_mut().for_each(|(epoch, pending)| edge.apply(*epoch, pending));
        if edge.from.op.is_some() {
            if self.from_ops.len() >= MOST_EDGES {
                self.from_ops.pop_front();
            }
            self.from_ops.push_back(edge);
        }
    }

    /// Forgets accesses that no map holds any longer.
    pub(crate) fn sweep(&mut self, held: impl FnOnce() -> FxHashSet<Epoch>) {
        if self.pending.len() > self.sweep_at.max(4096) {
            let held = held();
            self.pending.retain(|epoch, _| held.contains(epoch));
            self.sweep_at = self.pending.len() * 2;
        }
    }
}

impl Edge {
    /// Notes of an access that has finished at the edge's start that it has at its end.
    fn apply(&self, epoch: Epoch, pending: &mut Pending) {
        let (Finished { process, clock, op, time }, (home, own)) = (&self.from, local(epoch));
        let Pending { after, over, .. } = pending;
        let is_op =
            *op == Some(own) && home == *process || after.iter().any(|at| Some(*at) == op.map(|op| (*process, op)));
        let is_over = over.is_some_and(|over| over <= *time);
        if !is_op && !is_over && !reaches(epoch, after, *process, clock) {
            return;
        }
        match after.iter_mut().find(|(m, at)| *m == self.to && at.timeline == self.epoch.timeline) {
            // The earlier of two epochs on one timeline says more.
            Some((_, at)) => at.time = at.time.min(self.epoch.time),
            None => after.push((self.to, self.epoch)),
        }
    }
}

/// Whether a clock of this process covers the access.
fn reaches(epoch: Epoch, after: &After, member: u32, clock: &ClockSnapshot) -> bool {
    let clock = clock.clock();
    let (home, own) = local(epoch);
    (home == member && clock.covers(own)) || after.iter().any(|(m, at)| *m == member && clock.covers(*at))
}

/// The order as seen from an access of one process. Without a clock, nothing is known to have
/// finished before it.
pub(crate) struct PeerView<'a> {
    pub(crate) member: u32,
    /// The op that makes the access, as its process counts: it comes after what it waits for.
    pub(crate) own: Epoch,
    pub(crate) clock: Option<&'a ClockSnapshot>,
    /// When it was submitted.
    pub(crate) now: u64,
    pub(crate) known: &'a CrossProcessOrder,
}

impl Clocks for PeerView<'_> {
    fn ordered(&self, earlier: Epoch, _: u32) -> Ordered {
        let Some(Pending { after, over, .. }) = self.known.pending.get(&earlier) else { return Ordered::Yes };
        match self.clock {
            _ if over.is_some_and(|over| over <= self.now) => Ordered::Yes,
            Some(clock) if reaches(earlier, after, self.member, clock) => Ordered::Yes,
            Some(_) if after.contains(&(self.member, self.own)) => Ordered::Yes,
            _ => Ordered::No,
        }
    }

    fn dead(&self, earlier: Epoch) -> bool {
        !self.known.pending.contains_key(&earlier)
    }
}
