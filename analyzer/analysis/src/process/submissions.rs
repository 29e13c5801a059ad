//! The side effects of every submission, whether or not the bytes of the op are looked up.
//!
//! Owns those side effects: counters, early frees, stream history, launches in flight, NVTX
//! regions. A kernel launch makes all of its own in [`Submissions::launch`]. The slow path and the
//! fast path ([`crate::pass`]) both go through it, so that neither can forget a counter. Does not
//! decide which bytes an op touches or what races with it.

use super::op_context::OpContext;
use detect::coverage::Coverage;
use detect::early_free::EarlyFreeWatch;
use detect::faults::Faults;
use detect::history::History;
use detect::memory::Overlap;
use detect::state::handovers::HandOvers;
use detect::state::regions::Regions;
use trace::{Epoch, KernelId, Op, Origin, StreamId, ThreadId};

/// The parts of the analysis that observe every op of a process.
#[derive(Default)]
pub(crate) struct Submissions {
    /// Blocks that were freed to a pool while they were in use.
    pub(crate) early_free: EarlyFreeWatch,
    /// The latest ops of each stream.
    pub(crate) history: History,
    /// Launches that the host has not seen finish.
    pub(crate) faults: Faults,
    /// The NVTX regions that each thread is in.
    pub(crate) regions: Regions,
    /// Work that threads of Python hand to others.
    pub(crate) handovers: HandOvers,
    /// The thread and the destination of the last op, when that was a copy from pageable memory.
    pub(crate) staged_copy: Option<(ThreadId, u64)>,
}

impl Submissions {
    /// A kernel is launched. `torch`: the trace covers PyTorch's allocator. `paused`: the program
    /// has switched checking off.
    #[inline(always)]
    pub(crate) fn launch(
        &mut self,
        coverage: &mut Coverage,
        (stream, kernel): (StreamId, KernelId),
        origin: &Origin,
        epoch: Epoch,
        (torch, paused): (bool, bool),
    ) {
        coverage.ops += 1;
        if torch {
            self.early_free.launched(origin.thread, stream);
            self.handovers.observe(origin, epoch);
        }
        self.history.launch(stream, kernel, origin, epoch);
        if !paused {
            self.faults.launched(stream, kernel, origin.stack, epoch);
            self.staged_copy = None;
        }
    }

    /// Any other op is submitted.
    pub(crate) fn observe(&mut self, coverage: &mut Coverage, op: &Op<'_>, origin: &Origin, epoch: Epoch, torch: bool) {
        coverage.ops += 1;
        if torch {
            self.early_free.observe(op, origin.thread, epoch);
            self.handovers.observe(origin, epoch);
        }
        self.history.observe(op, origin, epoch);
    }

    /// The context of an op that is not a graph node.
    #[inline(always)]
    pub(crate) fn context(&self, origin: &Origin, epoch: Epoch) -> OpContext {
        let region = self.regions.current(origin.thread);
        let (graph, is_conditional, overlap, overlap_in_doubt) = (None, false, Overlap::No, false);
        OpContext { origin: *origin, epoch, graph, is_conditional, overlap, overlap_in_doubt, region }
    }
}
