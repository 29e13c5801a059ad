//! Segments that are missing: what is forgotten at a gap, and what is told again after it.
//!
//! Owns the state of the analysis between the two ops that say so ([`trace::Op::Gap`]). What a gap
//! means for the order is the engine's: all that came before is over.
//!
//! Nothing is invented: no finding names what came before a gap together with what came after, and
//! what can be judged only by what came before is not judged any more. Those are hints (whether an
//! event was ever recorded), memory and events that processes share (the other process may have
//! synchronised in the gap), and host functions that were enqueued before. Streams that wait for
//! values in memory may be behind a wait that nothing has released ([`order`]), and order that is
//! taken for granted would release it: after such a wait nothing is judged until the host has
//! waited for all work.

use super::Analysis;
use crate::process::host_touch::HostTouches;
use detect::coverage::Coverage;
use detect::early_free::EarlyFreeWatch;
use detect::host_watch::HostWatches;
use detect::race::Race;
use detect::state::graphs::Graphs;
use detect::state::regions::Regions;
use trace::{Op, Record, SyncId, SyncScope, tag};

/// What is missing of a trace.
#[derive(Default)]
pub(super) struct Gaps {
    any: bool,
    /// The coverage before what lives was told, which is none of the program's calls.
    counted: Option<Box<Coverage>>,
    /// Streams may be behind a wait for a value.
    doubtful: bool,
    /// Some graph does.
    graphs_wait: bool,
    /// Waits of the host for all work that began since.
    waits: Vec<SyncId>,
}

impl Gaps {
    /// Whether records are missing before those of now.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// Whether what lives is being told.
    pub(crate) fn are_told(&self) -> bool {
        self.counted.is_some()
    }

    /// Whether nothing is judged for now.
    pub(crate) fn are_doubtful(&self) -> bool {
        self.doubtful || self.are_told()
    }

    /// Whether races may be judged. `contexts`: how many there are.
    pub(crate) fn judge(&mut self, op: &Op<'_>, contexts: usize) -> bool {
        let waits = |tag: u16| matches!(tag, tag::WaitValue | tag::SemaphoreWait);
        self.graphs_wait |= matches!(*op, Op::GraphNode { tag, .. } if waits(tag));
        self.doubtful |= waits(op.tag()) || (self.graphs_wait && matches!(op, Op::GraphLaunch { .. }));
        if self.are_told() {
            self.doubtful |= self.graphs_wait;
            return false;
        }
        if self.doubtful {
            match *op {
                Op::SyncBegin { sync, scope: SyncScope::Device, .. } => self.waits.push(sync),
                Op::SyncBegin { sync, scope: SyncScope::Context, .. } if contexts == 1 => self.waits.push(sync),
                Op::SyncEnd { sync } if self.waits.contains(&sync) => {
                    self.doubtful = false;
                    self.waits.clear();
                }
                // What began before the latest wait may not cover it.
                _ if waits(op.tag()) || matches!(op, Op::GraphLaunch { .. }) => self.waits.clear(),
                _ => {}
            }
        }
        !self.doubtful
    }

    /// Whether the program makes this call now, or it is of use to know that it once did.
    pub(crate) fn obey(&self, op: &Op<'_>) -> bool {
        let of_use = || {
            matches!(
                op,
                Op::StreamCreate { .. }
                    | Op::StreamTaken { .. }
                    | Op::StreamName { .. }
                    | Op::RangePush { .. }
                    | Op::RangeStart { .. }
                    | Op::DomainPush { .. }
            )
        };
        !self.are_told() || of_use()
    }
}

impl Analysis {
    /// Whether records are missing somewhere.
    pub fn has_gaps(&self) -> bool {
        self.gaps.any
    }

    /// Whether a finding stands that is shown by default.
    pub fn has_found(&self) -> bool {
        let least = detect::confidence::Confidence::Likely;
        self.findings.judged_so_far(|race: &Race| race.confidence >= least && !race.latent)
    }

    /// A gap: before what lives is told, and (`resumed`) after it.
    #[cold]
    pub(super) fn gap(&mut self, resumed: bool, record: &Record<'_>) {
        if resumed {
            if let Some(counted) = self.gaps.counted.take() {
                self.coverage = *counted;
            }
            self.submissions.early_free = EarlyFreeWatch::default();
        } else {
            self.pending.end();
            self.release();
            self.gaps.any = true;
            self.gaps.doubtful = false;
            self.gaps.graphs_wait = false;
            self.gaps.waits.clear();
            self.gaps.counted = Some(Box::new(self.coverage.clone()));
            self.memory.end_all();
            self.stacks.define(&record.op);
            self.graphs = Graphs::default();
            self.watches = HostWatches::default();
            self.touches = HostTouches::default();
            self.latest.clear();
            self.submissions.early_free = EarlyFreeWatch::default();
            self.submissions.regions = Regions::default();
            self.submissions.staged_copy = None;
            self.options.hints = false;
            self.streams.forget_events();
            self.paused = false;
        }
        self.races.clear();
        self.ordering.apply(&record.op, record.origin.thread);
    }
}
