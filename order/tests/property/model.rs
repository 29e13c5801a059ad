//! The naive model: for each stream, event and thread of a program the explicit set of ops that
//! have finished.
//!
//! Owns what is asked of these sets. How a step changes them is in `property`.

use std::collections::{BTreeMap, BTreeSet};

use trace::*;

/// Ops, by the order in which they were applied.
pub type Set = BTreeSet<usize>;

/// A stream of the model: what its next op comes after.
#[derive(Clone, Debug)]
pub struct Lane {
    pub id: StreamId,
    pub kind: StreamKind,
    pub context: usize,
    pub frontier: Set,
    /// Frontier after each of its ops, with the engine's time of it.
    pub history: Vec<(u64, Set)>,
    /// Set when the latest op was a kernel: what that kernel's start was after.
    pub kernel_start: Option<Set>,
}

#[derive(Default)]
pub struct Model {
    pub host: Set,
    pub lanes: Vec<Lane>,
    pub dead: Vec<Lane>,
    pub events: BTreeMap<u32, (u64, Vec<Set>)>,
    pub pending: BTreeMap<u32, Vec<(SyncId, Set)>>,
    pub legacy: [Set; 2],
    pub context_waits: [Set; 2],
    pub freed: BTreeMap<u64, Set>,
    pub graphs: BTreeMap<u32, Set>,
    pub funcs: Vec<Func>,
    /// Requests under way: their ids in the trace, and what their next op comes after.
    pub requests: BTreeMap<u32, (StreamId, Set)>,
}

/// A host function in stream order: what it starts after, what has finished with it.
#[derive(Clone)]
pub struct Func {
    pub id: HostFuncId,
    pub lane: StreamId,
    pub time: u64,
    pub me: usize,
    pub before: Set,
    pub whole: Set,
}

impl Model {
    /// What the next op of a lane comes after, before anything special of the op.
    pub fn before(&self, lane: usize) -> Set {
        let l = &self.lanes[lane];
        let mut set: Set = self.host.union(&l.frontier).copied().collect();
        set.extend(&self.context_waits[l.context]);
        match l.kind {
            StreamKind::Legacy => set.extend(self.blocking(l.context)),
            StreamKind::Blocking | StreamKind::PerThread => set.extend(&self.legacy[l.context]),
            StreamKind::NonBlocking => {}
        }
        set
    }

    /// The work of a context's blocking streams.
    pub fn blocking(&self, context: usize) -> Set {
        let lanes = self.lanes.iter().chain(&self.dead);
        let blocking = lanes.filter(|l| l.context == context && l.kind != StreamKind::NonBlocking);
        blocking.flat_map(|l| l.frontier.iter().copied()).collect()
    }

    pub fn all(&self, context: Option<usize>) -> Set {
        let lanes = self.lanes.iter().chain(&self.dead);
        lanes.filter(|l| context.is_none_or(|c| c == l.context)).flat_map(|l| l.frontier.iter().copied()).collect()
    }

    pub fn current(&self, event: u32) -> Set {
        self.events.get(&event).and_then(|(_, all)| all.last().cloned()).unwrap_or_default()
    }
}
