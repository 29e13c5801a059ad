//! Launches that may begin before the kernel before them has ended (programmatic dependent launch).
//!
//! Owns when such a launch begins. The rules were measured: `tests/gpu/programs/programmatic.cu`
//! (H200, driver 580), held against this file by `order/tests/programmatic.rs`.
//!
//! - A launch with the attribute begins when every block of the kernel before it has triggered
//!   (`griddepcontrol.launch_dependents`, in any of its threads) or ended. PTX ISA: a kernel must
//!   wait if its prerequisite triggers.
//! - If that kernel waits before it triggers, all that came before it has ended by then. If it
//!   triggers at once, the next launch may begin as early as it did. If it never triggers, it has
//!   ended itself; without a wait of its own it may have ended before its own predecessors.
//! - A wait (`griddepcontrol.wait`) waits for all earlier work of the stream, also for kernels
//!   that the one directly before it has not waited for: kernels complete in their order. So does
//!   every launch without the attribute, and every other op.
//! - Records of events between the two kernels change nothing. Nor do waits for events that are
//!   over; here they count as waits for the kernel too, which errs towards order.

use trace::{Epoch, KernelId, StreamId, ThreadId};

use crate::engine::Engine;
use crate::start_clock::{Began, ClockRef, OpStart};

/// When a kernel lets the next launch begin that may overlap it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Opens {
    /// When it has ended: it never triggers.
    Never,
    /// When all that comes before it has ended: it waits before it triggers.
    AfterWait,
    /// As soon as it runs, or that is not known.
    #[default]
    AtOnce,
}

/// A launch that may overlap the kernel before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overlap {
    /// When that kernel lets it begin.
    pub before: Opens,
    /// Whether its own kernel waits: its accesses then count as made behind the wait, and those
    /// made earlier are ordered by [`Engine::early_launch`].
    pub waits: bool,
}

/// The kernel that a stream launched last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastKernel {
    pub(crate) kernel: KernelId,
    /// Its time.
    time: u64,
    /// What had finished when it began.
    began: Began,
    /// Whether all before it has finished when it ends its own code.
    waits: bool,
}

impl Default for LastKernel {
    fn default() -> Self {
        Self::ordinary(KernelId::NONE, 0)
    }
}

impl LastKernel {
    /// One that began behind all that came before.
    #[inline(always)]
    pub(crate) fn ordinary(kernel: KernelId, time: u64) -> Self {
        Self { kernel, time, began: Began::after(time.wrapping_sub(1)), waits: true }
    }

    /// What has finished when the next launch begins that may overlap it.
    fn opened(&self, opens: Opens) -> Began {
        match opens {
            Opens::AtOnce => self.began,
            Opens::AfterWait if self.waits => Began::after(self.time - 1),
            Opens::AfterWait => self.began,
            Opens::Never if self.waits => Began::after(self.time),
            Opens::Never => self.began.and(self.time),
        }
    }
}

impl Engine {
    /// Applies a launch whose attributes say that it may overlap its predecessor, by a kernel of
    /// which is known whether it waits. (Of any other [`Engine::apply`] takes it that it never does.)
    pub fn apply_overlapping_launch(
        &mut self,
        stream: StreamId,
        kernel: KernelId,
        thread: ThreadId,
        overlap: Overlap,
    ) -> Epoch {
        self.enter_launch(stream, thread);
        self.launch(stream, kernel, Some(overlap))
    }

    /// The kernel that the next launch of a stream may overlap, if there is one.
    pub fn kernel_before(&self, stream: StreamId) -> Option<KernelId> {
        let s = &self.streams.slots[self.streams.find(stream)? as usize];
        s.kernel_start.map(|_| s.kernel.kernel)
    }

    /// The clock of what a launch does before it waits for its predecessors, if it may overlap them.
    /// `epoch`: that of the launch, which was the op applied last.
    pub fn early_launch(&self, epoch: Epoch) -> Option<ClockRef<'_>> {
        let (_, began) = self.early_launch.filter(|(of, _)| *of == epoch)?;
        let start = OpStart { own_upto: began.upto, also: began.also, ..self.last };
        Some(ClockRef::of_start(&self.host, &self.streams, start))
    }

    #[cold]
    pub(crate) fn overlapping_launch(&mut self, slot: u32, kernel: KernelId, overlap: Overlap) -> Epoch {
        let s = &self.streams.slots[slot as usize];
        let all = Began::after(s.time);
        // The programmatic dependency is on a kernel directly before; anything in between is waited
        // for as usual.
        let began = if s.kernel_start.is_some() { s.kernel.opened(overlap.before) } else { all };
        let start = if overlap.waits { all } else { began };
        let epoch = self.advance(slot, start.upto);
        self.last.also = start.also;
        self.early_launch = (overlap.waits && began != all).then_some((epoch, began));
        let s = &mut self.streams.slots[slot as usize];
        s.kernel_start = Some(start.upto);
        s.kernel = LastKernel { kernel, time: epoch.time, began, waits: overlap.waits };
        epoch
    }
}
