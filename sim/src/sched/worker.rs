//! The threads that execute operations. They sleep while there is nothing to do: an idle device costs nothing.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use super::{Core, OpId, Scheduler, Work};
use crate::config::Schedule;

/// After this long, an operation of a one-at-a-time schedule is taken to be waiting for another one.
const STUCK: Duration = Duration::from_millis(500);
/// How often conditions on memory are looked at while nothing else happens.
const PARKED_EVERY: Duration = Duration::from_millis(1);

impl Scheduler {
    /// Starts a thread that takes no signals: they belong to the program's own threads.
    pub(super) fn spawn_worker(&'static self) -> bool {
        // SAFETY: plain signal-mask calls on locals; the mask of this thread is restored below.
        let old = unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut old: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            old
        };
        let builder = std::thread::Builder::new().name("sim-gpu".into()).stack_size(8 << 20);
        let started = builder.spawn(move || self.work()).is_ok();
        // SAFETY: restores the mask saved above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
        started
    }

    fn work(&'static self) {
        let mut core = self.lock();
        loop {
            core.poll_parked();
            let Some((id, work)) = core.take() else {
                core = self.sleep(core);
                continue;
            };
            let host = matches!(work, Work::Host(_));
            if !host {
                core.running.push((id, Instant::now()));
            }
            // Others may run beside this one (always in the eager schedule, and beside host code in every other).
            if !core.ready.is_empty() {
                self.settle(core);
            } else {
                drop(core);
            }
            match work {
                Work::Run(run) | Work::Host(run) => {
                    // A panic in an operation must not take the scheduler with it.
                    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                        eprintln!("streamsan-sim: an operation failed inside the simulator");
                    }
                }
                Work::Point(_) | Work::Until(_) => {}
            }
            core = self.lock();
            core.running.retain(|(running, _)| *running != id);
            core.finish(id);
            core.poll_parked();
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

impl Core {
    /// Takes the next operation that may run now.
    fn take(&mut self) -> Option<(OpId, Work)> {
        let host_first = self.ready.iter().next().copied();
        let (key, id) = host_first?;
        if !self.may_run() {
            return None;
        }
        self.ready.remove(&(key, id));
        let work = self.ops.get_mut(&id)?.work.take()?;
        Some((id, work))
    }

    fn may_run(&mut self) -> bool {
        if self.config.schedule == Schedule::Eager {
            return true;
        }
        if self.running.iter().any(|(_, since)| since.elapsed() < STUCK) {
            return false;
        }
        if self.waits > 0 {
            return true;
        }
        if self.tokens > 0 {
            self.tokens -= 1;
            return true;
        }
        if self.released {
            return true;
        }
        let since = *self.held_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= Duration::from_millis(self.config.hold_ms) {
            self.released = true;
            return true;
        }
        false
    }

    /// How long to sleep at most; `None` is until woken.
    fn sleep_limit(&mut self) -> Option<Duration> {
        if self.ready.is_empty() {
            self.released = false;
            self.held_since = None;
            self.tokens = 0;
        }
        let held = match self.held_since {
            Some(since) => Duration::from_millis(self.config.hold_ms).saturating_sub(since.elapsed()),
            None => STUCK,
        };
        let held = (!self.ready.is_empty()).then_some(held.max(Duration::from_millis(1)));
        let parked = (!self.parked.is_empty()).then_some(PARKED_EVERY);
        [held, parked].into_iter().flatten().min()
    }
}
