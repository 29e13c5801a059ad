//! A device without threads: the system gave not one. Whoever waits must not wait for ever.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Core, Scheduler, Work};

/// The system gave not one thread: nothing runs any more.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether the device is lost, because the system gave no thread for it.
pub(crate) fn is_lost() -> bool {
    LOST.load(Ordering::Acquire)
}

impl Scheduler {
    /// Nobody is there to run anything: whoever waits is let go, and every call fails from now on.
    #[cold]
    pub(super) fn lose(&self, mut core: MutexGuard<'_, Core>) {
        if !LOST.swap(true, Ordering::AcqRel) {
            crate::status::complain(
                "the system gives no thread to the simulated GPU (limits of processes or memory?): no work runs on it",
            );
        }
        core.abandon();
        self.settled.notify_all();
    }
}

impl Core {
    /// Ends all operations without running them. None runs meanwhile.
    fn abandon(&mut self) {
        // What they would do is dropped unasked: a loop of a graph might never come to its end.
        for op in self.ops.values_mut() {
            op.work = Some(Work::Point(None));
        }
        while let Some(id) = self.parked.pop().or_else(|| self.ready.pop_first().map(|(_, id)| id)) {
            self.finish(id);
        }
    }
}
