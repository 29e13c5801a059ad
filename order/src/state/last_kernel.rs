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

use trace::KernelId;

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
    /// made earlier are ordered by [`crate::Engine::early_launch`].
    pub waits: bool,
}

/// What had finished on a timeline when a kernel on it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Began {
    /// All up to this time.
    pub(crate) upto: u64,
    /// And what lies behind the first of these times, up to the second: kernels that ended without
    /// a wait, though some before them may run.
    pub(crate) also: (u64, u64),
}

impl Began {
    /// All up to a time.
    #[inline(always)]
    pub(crate) fn after(upto: u64) -> Self {
        Self { upto, also: (0, 0) }
    }

    /// And the op at this later time. (Of several that do not follow each other, those in between
    /// count as finished.)
    pub(crate) fn and(self, time: u64) -> Self {
        if self.upto + 1 >= time {
            return Self::after(time);
        }
        let first = if self.also == (0, 0) { time - 1 } else { self.also.0 };
        Self { also: (first, time), ..self }
    }
}

/// The kernel that a stream launched last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastKernel {
    pub(crate) kernel: KernelId,
    /// Its time.
    pub(crate) time: u64,
    /// What had finished when it began.
    pub(crate) began: Began,
    /// Whether all before it has finished when it ends its own code.
    pub(crate) waits: bool,
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
    pub(crate) fn opened(&self, opens: Opens) -> Began {
        match opens {
            Opens::AtOnce => self.began,
            Opens::AfterWait if self.waits => Began::after(self.time - 1),
            Opens::AfterWait => self.began,
            Opens::Never if self.waits => Began::after(self.time),
            Opens::Never => self.began.and(self.time),
        }
    }
}
