//! Host accesses: what the shim observed of them, and whether they race.
//!
//! Owns the watches: bytes of the host that pending work reads or writes. The shim reports when the
//! host touched them before it was ordered after that work. Whether something else explains the
//! observation is decided here, because only the analyzer knows what kernels write.
//!
//! # What else explains it
//!
//! - *Work of the device wrote there.* Changed bytes are no proof of a write by the host when any
//!   work that had not finished at the beginning of the watch may have written them.
//! - *The host was notified.* A kernel, a stream's write of a value or a host function of a graph,
//!   in order after the watched work, may notify the host of its end through memory that the host
//!   reads. A store of a kernel to memory of the host counts as such a message whatever it means,
//!   so a race beside one is missed. Copies do not count: what they write may not be read before
//!   the program has waited for them.

use order::ClockSnapshot;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use trace::{Epoch, HostFuncId, MemoryKind, Region, TimelineId};

use crate::confidence::Weakness;
use crate::memory::allocations::Home;
use crate::memory::{Access, Allocations, Cause, Dim, Extent, Meet, Precision};
use crate::state::graphs::{Graph, Inner};
use crate::state::happens_before::Ordering;

/// Maximum number of watches, as in the shim. The oldest make room.
const MOST: usize = 4096;

/// Kinds of memory that the host and devices use in place.
pub const SHARED: [MemoryKind; 3] = [MemoryKind::PinnedHost, MemoryKind::RegisteredHost, MemoryKind::Managed];

/// Bytes that pending work reads or writes.
#[derive(Clone, Debug)]
pub struct HostWatch {
    /// The access of that work.
    pub work: Access,
    /// Where its bytes are.
    pub home: Home,
    /// The clock of the host when the watch began.
    pub known: ClockSnapshot,
    /// Whether other work may have been writing to the bytes then.
    pub void: bool,
    /// What the work was then behind, if that may wait for the host: a host function that had not
    /// returned, or a wait of its stream that nothing seen had ended.
    pub awaits: Option<Weakness>,
}

/// All watches of a process.
#[derive(Debug, Default)]
pub struct HostWatches {
    by_number: FxHashMap<u32, HostWatch>,
    /// The latest launch of a graph with host functions on each timeline.
    graph_launches: FxHashMap<TimelineId, GraphLaunch>,
}

/// A launch of a graph with host functions.
#[derive(Debug, Default)]
struct GraphLaunch {
    /// Its time on its timeline.
    time: u64,
    /// The order of its nodes.
    order: Option<Arc<Inner>>,
    /// Its host functions: their nodes, and which they are, where it is said when they run.
    functions: Vec<(u32, Option<HostFuncId>)>,
}

impl GraphLaunch {
    /// Whether one of its nodes is over before another one begins, as far as edges say it.
    fn before(&self, first: u32, second: u32) -> bool {
        self.order.as_ref().is_none_or(|order| order.before(first, second))
    }
}

impl HostWatches {
    /// Begins a watch.
    pub fn begin(&mut self, number: u32, watch: HostWatch) {
        if self.by_number.len() >= MOST {
            let half = number.saturating_sub(MOST as u32 / 2);
            self.by_number.retain(|n, _| *n >= half);
        }
        self.by_number.insert(number, watch);
    }

    /// What the watched work waited for is there, before the host touches the bytes.
    pub fn waits_met(&mut self, number: u32) {
        if let Some(watch) = self.by_number.get_mut(&number).filter(|w| w.awaits == Some(Weakness::OpenWait)) {
            watch.awaits = None;
        }
    }

    /// Notes a host function of a graph that is launched. `func`: if it is said when it runs.
    pub fn graph_signals(&mut self, epoch: Epoch, graph: &Graph, node: u32, func: Option<HostFuncId>) {
        let launch = self.graph_launches.entry(epoch.timeline).or_default();
        if launch.time != epoch.time || launch.functions.is_empty() {
            *launch = GraphLaunch { time: epoch.time, order: graph.inner(), functions: Vec::new() };
        }
        launch.functions.push((node, func));
    }

    /// Whether a host function of a graph that the host has not seen finish may have told the host
    /// that this work is over, because it comes after it. Functions of the graph that the work
    /// belongs to come after it only by its edges. `own`: the function that asks, as the launch and
    /// the node that it is. Those behind it have told it nothing, nor has its graph said anything
    /// of other work.
    pub fn graph_tells(&self, work: &Access, own: Option<(Epoch, u32)>, ordering: &Ordering) -> bool {
        let at = ordering.stream_epoch_of(work.epoch);
        self.graph_launches.iter().any(|(timeline, launch)| {
            let graph = Epoch { timeline: *timeline, time: launch.time };
            if ordering.host_saw(graph) {
                return false;
            }
            let own = own.filter(|own| own.0 == graph).map(|own| own.1);
            let Some(node) = work.site.node.checked_sub(1).filter(|_| at == graph) else {
                return own.is_none() && (*timeline != at.timeline || launch.time >= at.time);
            };
            // Events order the nodes of a graph beside its edges, and such nodes have epochs of
            // their own.
            let by_events = at != work.epoch;
            launch.functions.iter().any(|&(function, _)| {
                let is_other = own.is_none_or(|own| function != own && !launch.before(own, function));
                is_other && (by_events || launch.before(node, function))
            })
        })
    }

    /// The host functions of its graph that this work is behind and that have not returned.
    /// `is_pending`: whether one has not. Those of which it is never said when they run are
    /// [`HostFuncId::NONE`].
    pub fn functions_before(
        &self,
        work: &Access,
        ordering: &Ordering,
        is_pending: impl Fn(HostFuncId) -> bool,
    ) -> Vec<HostFuncId> {
        let at = ordering.stream_epoch_of(work.epoch);
        let launch = self.graph_launches.get(&at.timeline).filter(|launch| launch.time == at.time);
        let (Some(node), Some(launch)) = (work.site.node.checked_sub(1), launch) else { return Vec::new() };
        let by_events = at != work.epoch;
        let is_before = |function: u32| function != node && (by_events || launch.before(function, node));
        let functions = launch.functions.iter().filter(|function| is_before(function.0)).map(|function| function.1);
        functions.filter(|func| func.is_none_or(&is_pending)).map(|func| func.unwrap_or(HostFuncId::NONE)).collect()
    }

    /// Whether graphs with host functions were launched.
    pub fn knows_graphs(&self) -> bool {
        !self.graph_launches.is_empty()
    }

    /// Whether this work is behind a graph with host functions that the host has not seen finish.
    pub fn awaits_graph(&self, work: Epoch, ordering: &Ordering) -> bool {
        let work = ordering.stream_epoch_of(work);
        self.graph_launches.get(&work.timeline).is_some_and(|launch| {
            let graph = Epoch { timeline: work.timeline, time: launch.time };
            graph.time < work.time && !ordering.host_saw(graph)
        })
    }

    /// The watched work, when an access of the host to these bytes races with it.
    ///
    /// `in_the_act`: the access itself was observed. Otherwise only a change of bytes was.
    pub fn judge(&self, number: u32, in_the_act: bool, memory: &Allocations) -> Option<&HostWatch> {
        let watch = self.by_number.get(&number)?;
        if !in_the_act && (watch.void || watch.is_overwritten(memory)) {
            return None;
        }
        let signals = |e: Access| {
            let cause = matches!(e.site.cause, Cause::Kernel | Cause::Value);
            cause && e.kind.writes() && !e.same_op(&watch.work) && watch.may_follow(e.epoch)
        };
        if memory.accesses_in(&SHARED).any(signals)
            || self
                .graph_launches
                .iter()
                .any(|(timeline, launch)| watch.may_follow(Epoch { timeline: *timeline, time: launch.time }))
        {
            return None;
        }
        Some(watch)
    }
}

impl HostWatch {
    /// Whether other work that has not finished may write to the bytes.
    pub fn is_overwritten(&self, memory: &Allocations) -> bool {
        memory.accesses(self.home).any(|e| {
            let meets = e.extent.precision != Precision::Exact || e.extent.meet(&self.work.extent) != Meet::No;
            e.kind.writes() && !e.same_op(&self.work) && self.is_new(e.epoch) && meets
        })
    }

    /// Whether this op had not finished when the watch began.
    fn is_new(&self, epoch: Epoch) -> bool {
        !self.known.clock().covers(epoch)
    }

    /// Whether an op may be ordered after the watched work.
    fn may_follow(&self, epoch: Epoch) -> bool {
        if epoch.timeline == self.work.epoch.timeline {
            return epoch.time >= self.work.epoch.time;
        }
        self.is_new(epoch)
    }
}

/// The bytes of a region as an extent.
pub fn extent(region: &Region) -> Extent {
    let dims = [
        Dim { stride: region.pitch, count: u64::from(region.height) },
        Dim { stride: region.slice_pitch, count: u64::from(region.depth) },
    ];
    Extent::pattern(region.start, region.width, &dims, region.start, Precision::Exact)
}
