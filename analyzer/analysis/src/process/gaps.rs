//! Segments that are missing: what is forgotten at a gap, and what is told again after it.
//!
//! Owns what is kept between the two ops that say so ([`trace::Op::Gap`]). What a gap means for the
//! order is the engine's: all that came before is over.
//!
//! Nothing is invented: no finding names what came before a gap together with what came after, and
//! what can be judged only by what came before is not judged any more. Those are hints (whether an
//! event was ever recorded), memory and events that processes share (the other process may have
//! synchronised in the gap), and host functions that were enqueued before. Streams that wait for
//! values in memory may be behind a wait that nothing has released ([`order`]), and order that is
//! taken for granted would release it: after such a wait nothing is judged until the host has
//! waited for all work.

use detect::coverage::Coverage;
use trace::{Op, SyncId, SyncScope, tag};

/// What is missing of a trace.
#[derive(Default)]
pub(crate) struct Gaps {
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

    /// A gap begins: what lives is told next. `counted`: the coverage so far.
    pub(super) fn begin(&mut self, counted: &Coverage) {
        *self = Self { any: true, counted: Some(Box::new(counted.clone())), ..Self::default() };
    }

    /// It has been told. Returns the coverage before.
    pub(super) fn end(&mut self) -> Option<Coverage> {
        self.counted.take().map(|counted| *counted)
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
