//! How host threads wait for operations and poll them, and how that lets held ones run.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, MutexGuard};
use std::time::{Duration, Instant};

use super::worker::{PATIENCE, STUCK, processor_time};
use super::{Core, OpId, Scheduler, Wait, late_host, now, policy};
use crate::config::Schedule;

/// Calls of the program that are under way, and when the last one ended: work is not held back less
/// because a call takes long.
pub(super) static CALLS: (AtomicUsize, AtomicU64) = (AtomicUsize::new(0), AtomicU64::new(0));

/// A call of the program into the driver, from here to its end.
pub(crate) struct DriverCall;

impl DriverCall {
    /// The call begins.
    pub(crate) fn begin() -> DriverCall {
        CALLS.0.fetch_add(1, Ordering::Relaxed);
        late_host::note_caller();
        DriverCall
    }
}

impl Drop for DriverCall {
    fn drop(&mut self) {
        CALLS.1.store(now(), Ordering::Relaxed);
        CALLS.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Scheduler {
    /// Whether all have finished. Where work is held until a thread waits, some of the "no"s let
    /// one operation run to its end, or a program that polls would never see an end.
    pub(crate) fn poll(&'static self, ops: &[OpId]) -> bool {
        let mut core = self.lock();
        core.poll_parked();
        let done = ops.iter().all(|op| !core.ops.contains_key(op));
        if !done && core.config.schedule == Schedule::Eager {
            core.release_polled(ops);
            self.settle(core);
        } else if !done {
            core.polls += 1;
            if core.polls.is_multiple_of(policy::polls(&core.config)) {
                self.advance(core);
            }
        }
        done
    }

    /// Lets one operation run and waits for its end, so that how far the device has got depends on
    /// how often the host asked and not on how fast either is.
    fn advance(&self, mut core: MutexGuard<'_, Core>) {
        if core.ready.is_empty() && core.running.is_empty() {
            return;
        }
        core.tokens += 1;
        let before = core.finished;
        drop(self.watch(core, PATIENCE, |core| core.finished != before || self.is_stuck(core)));
    }

    /// Waits until nothing runs and nothing could, or until `limit` has passed; conditions on
    /// memory do not count.
    pub(crate) fn drain(&'static self, limit: Duration) {
        let mut core = self.lock();
        core.waits += 1;
        core.late.drains += 1;
        core.release_all();
        self.settle(core);
        let core = self.lock();
        let idle = |core: &Core| core.ready.is_empty() && core.running.is_empty();
        let mut core = self.watch(core, limit, |core| idle(core) || self.is_stuck(core));
        core.waits -= 1;
        core.late.drains -= 1;
    }

    /// Waits until something is so, or `limit` has passed.
    fn watch<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        limit: Duration,
        done: impl Fn(&Core) -> bool,
    ) -> MutexGuard<'a, Core> {
        let until = Instant::now() + limit;
        core.watchers += 1;
        self.wake.notify_all();
        while !done(&core) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            core = self.settled.wait_timeout(core, left.min(STUCK)).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        core.watchers -= 1;
        core
    }

    /// Running work got on: what takes long and gets on is not stuck.
    pub(crate) fn note_progress(&self) {
        self.progress.store(processor_time(), Ordering::Relaxed);
    }

    /// Blocks the calling host thread until all have finished.
    pub(crate) fn wait(&'static self, ops: &[OpId]) {
        let mut core = self.lock();
        let wait = Arc::new(Wait { left: AtomicUsize::new(0), cv: Condvar::new() });
        let mut left = 0;
        for id in ops.iter().collect::<HashSet<_>>() {
            if let Some(op) = core.ops.get_mut(id) {
                op.waits.push(wait.clone());
                left += 1;
            }
        }
        if left == 0 {
            return;
        }
        wait.left.store(left, Ordering::Relaxed);
        core.waits += 1;
        if core.release_waited() {
            self.settle(core);
            core = self.lock();
        }
        self.wake.notify_all();
        while wait.left.load(Ordering::Relaxed) != 0 {
            core = wait.cv.wait(core).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}
