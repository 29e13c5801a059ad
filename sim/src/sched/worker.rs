//! The threads that execute operations. They sleep while there is nothing to do: an idle device
//! costs nothing.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Core, OpId, Scheduler, Work, now};
use crate::config::Schedule;
use crate::own_threads;
use crate::sched::host_wait::CALLS;
use crate::sched::late_host::LOOK_EVERY;

/// After this long, host code in a one-at-a-time schedule is taken to be waiting for another host
/// thread, and gets company.
pub(super) const STUCK: Duration = Duration::from_millis(500);
/// The same for device work, which is taken to be spinning for other work: in processor time of the
/// process without a block having ended, so that a busy machine changes no schedule.
const SPINNING: Duration = Duration::from_millis(1000);
/// And this long, whatever it does.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// How often conditions on memory are looked at while nothing else happens.
const PARKED_EVERY: Duration = Duration::from_millis(1);

/// An operation that runs.
pub(super) struct Running {
    id: OpId,
    host: bool,
    since: Instant,
    processor: u64,
}

/// Nanoseconds that the process's threads have run.
pub(super) fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the local.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Scheduler {
    /// Whether all that runs seems to wait for something that does not.
    pub(super) fn is_stuck(&self, core: &Core) -> bool {
        let progress = self.progress.load(Ordering::Relaxed);
        let waits = |running: &Running| match running.host {
            true => running.since.elapsed() >= STUCK,
            false => {
                let spun = processor_time().saturating_sub(progress.max(running.processor));
                spun >= SPINNING.as_nanos() as u64 || running.since.elapsed() >= PATIENCE
            }
        };
        !core.running.is_empty() && core.running.iter().all(waits)
    }

    /// Starts a thread that executes operations. The first one is asked for some times: without it
    /// nothing runs, and a limit of processes may be reached for a moment only.
    pub(super) fn spawn_worker(&'static self) -> bool {
        const TRIES: usize = 20;
        for _ in 0..TRIES {
            if own_threads::spawn(8 << 20, move || self.work()) {
                return true;
            }
            if super::is_lost() || self.lock().workers > 1 {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn work(&'static self) {
        let mut core = self.lock();
        loop {
            core.poll_parked();
            core.release_due();
            let Some((id, work)) = self.take(&mut core) else {
                core = self.sleep(core);
                continue;
            };
            let host = matches!(work, Work::Host(_));
            core.running.push(Running { id, host, since: Instant::now(), processor: processor_time() });
            // Others may run beside this one in the eager schedule. And somebody has to look at the
            // conditions meanwhile: what runs may wait for what is behind one.
            if !core.ready.is_empty() || !core.parked.is_empty() || !core.late.is_empty() {
                self.settle(core);
            } else {
                drop(core);
            }
            match work {
                Work::Run(run) | Work::Host(run) => {
                    // A panic in an operation must not take the scheduler with it.
                    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                        crate::status::complain("an operation failed inside the simulator");
                    }
                }
                Work::Point(_) | Work::Until(_) | Work::Expand(_) => {}
            }
            core = self.lock();
            core.running.retain(|running| running.id != id);
            core.finish(id);
            core.poll_parked();
            if core.watchers > 0 {
                self.settled.notify_all();
            }
            if !core.ready.is_empty() && core.idle > 0 {
                self.wake.notify_all();
            }
        }
    }

    fn sleep<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let limit = core.sleep_limit();
        core.idle += 1;
        let mut core = match limit {
            None => self.wake.wait(core).unwrap_or_else(|poisoned| poisoned.into_inner()),
            Some(limit) => {
                let waited = self.wake.wait_timeout(core, limit);
                waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
            }
        };
        core.idle -= 1;
        core
    }
}

impl Scheduler {
    /// Takes the next operation that may run now.
    fn take(&self, core: &mut Core) -> Option<(OpId, Work)> {
        let (key, id) = core.ready.iter().next().copied()?;
        if core.config.schedule != Schedule::Eager {
            let busy = !core.running.is_empty() && !self.is_stuck(core);
            if busy || !core.may_run() {
                return None;
            }
        }
        core.ready.remove(&(key, id));
        let work = core.ops.get_mut(&id)?.work.take()?;
        Some((id, work))
    }
}

impl Core {
    /// Whether held work may go on, in a schedule that holds work.
    fn may_run(&mut self) -> bool {
        if self.waits > 0 || self.config.schedule == Schedule::InOrder {
            return true;
        }
        if self.tokens > 0 {
            self.tokens -= 1;
            return true;
        }
        if self.released {
            return true;
        }
        self.held_since.get_or_insert_with(Instant::now);
        self.released = self.held_left().is_zero();
        self.released
    }

    /// How much longer ready work is held: counted from when it began to be, and from the last call
    /// of the program.
    fn held_left(&self) -> Duration {
        let hold = Duration::from_millis(self.config.hold_ms);
        if CALLS.0.load(Ordering::Relaxed) > 0 {
            return hold;
        }
        let called = Duration::from_nanos(now().saturating_sub(CALLS.1.load(Ordering::Relaxed)));
        self.held_since.map_or(hold, |since| hold.saturating_sub(since.elapsed().min(called)))
    }

    /// How long to sleep at most; `None` is until woken.
    fn sleep_limit(&mut self) -> Option<Duration> {
        if self.ready.is_empty() {
            self.released = false;
            self.held_since = None;
            self.tokens = 0;
        }
        let held = match self.held_since {
            Some(_) => self.held_left(),
            None => STUCK,
        };
        let held = (!self.ready.is_empty()).then_some(held.max(Duration::from_millis(1)));
        let parked = (!self.parked.is_empty()).then_some(PARKED_EVERY);
        let late = (!self.late.is_empty()).then_some(LOOK_EVERY);
        [held, parked, late].into_iter().flatten().min()
    }
}
