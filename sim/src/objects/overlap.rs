//! Kernels that begin before those in front of them have ended (programmatic dependent launch).
//!
//! Owns which launches overlap, and the threads on which they run. In the schedules that hold work,
//! a dependent kernel begins when all blocks of the kernel in front of it have triggered or ended,
//! on a thread of its own. That kernel goes on when the dependent one has done what it can before
//! its wait: so results show what it did too early. When its turn in the order of operations has
//! come, its waits end. Code that does not say what it does (stand-ins for libraries) never begins
//! early. `interp::Overlap` is the interpreter's part: triggers and waits of threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cuda_sys::CUresult;

use crate::config::{self, Schedule};
use crate::interp;
use crate::objects::context::Context;
use crate::objects::kernel_exec;
use crate::objects::task::KernelLaunch;
use crate::own_threads;
use crate::sched::policy;
use crate::touched::LaunchTouched;

/// The first compute capability (times ten) whose kernels overlap.
const FIRST: u32 = 90;

/// Kernels that have begun early and not ended, at most: each has a thread.
const MOST: usize = 16;

/// How long a kernel stands still for those that begin early: one of them may spin for it.
const PATIENCE: Duration = Duration::from_secs(2);

static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// How far a launch has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has not begun.
    Waits,
    /// It runs.
    Runs,
    /// All its threads that are left wait for the kernels in front of it.
    Rests,
    /// It has ended.
    Ended(Result<(), CUresult>),
}

/// What runs when a launch begins.
struct Job {
    kernel: KernelLaunch,
    measured: Option<Arc<LaunchTouched>>,
}

/// A launch that others may overlap.
pub(crate) struct LaunchOverlap {
    job: Mutex<Option<Job>>,
    stage: Mutex<Stage>,
    changed: Condvar,
    /// What was in front of it has ended.
    passes: AtomicBool,
    /// Launches that may begin when this one has triggered.
    dependents: Mutex<Vec<Arc<LaunchOverlap>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether kernels overlap on this device.
pub(crate) fn is_simulated() -> bool {
    let config = config::get_or_default();
    config.arch >= FIRST && matches!(config.schedule, Schedule::Random | Schedule::LateFirst)
}

impl LaunchOverlap {
    /// Of a launch that has not begun.
    pub(crate) fn new(kernel: KernelLaunch, measured: Option<Arc<LaunchTouched>>) -> Arc<LaunchOverlap> {
        Arc::new(LaunchOverlap {
            job: Mutex::new(Some(Job { kernel, measured })),
            stage: Mutex::new(Stage::Waits),
            changed: Condvar::new(),
            passes: AtomicBool::new(false),
            dependents: Mutex::default(),
        })
    }

    /// Lets a launch begin when this one has triggered, if the schedule wants that and its code is
    /// known.
    pub(crate) fn overlapped_by(&self, next: &Arc<LaunchOverlap>) {
        let is_known = lock(&next.job).as_ref().is_some_and(|job| kernel_exec::can_begin_early(&job.kernel));
        if is_known && policy::overlaps(&config::get_or_default()) {
            lock(&self.dependents).push(next.clone());
        }
    }

    /// The launch's turn has come: all in front of it has ended.
    pub(crate) fn run(&self, ctx: &Context) {
        self.passes.store(true, Ordering::Release);
        let mut stage = lock(&self.stage);
        let ran = if *stage == Stage::Waits {
            *stage = Stage::Runs;
            drop(stage);
            // Work behind a failed kernel is dropped, as on a device.
            let job = lock(&self.job).take().filter(|_| ctx.check().is_ok());
            let ran = job.map_or(Ok(()), |job| self.execute(job));
            self.change(Stage::Ended(ran));
            ran
        } else {
            self.changed.notify_all();
            loop {
                if let Stage::Ended(ran) = *stage {
                    break ran;
                }
                stage = self.changed.wait(stage).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
        };
        lock(&self.dependents).clear();
        if let (Err(error), Ok(())) = (ran, ctx.check()) {
            ctx.fail(error);
        }
    }

    fn execute(&self, job: Job) -> Result<(), CUresult> {
        let overlap = is_simulated().then_some(self);
        kernel_exec::run(&job.kernel.function, &job.kernel.launch, job.measured.as_deref(), overlap)
    }

    fn change(&self, to: Stage) {
        let mut stage = lock(&self.stage);
        if !matches!(*stage, Stage::Ended(_)) {
            *stage = to;
        }
        self.changed.notify_all();
    }

    /// Begins on a thread of its own. False: it has begun, or there is no thread.
    fn begin_early(self: &Arc<LaunchOverlap>) -> bool {
        let mut stage = lock(&self.stage);
        if *stage != Stage::Waits {
            return false;
        }
        if BEGUN.fetch_add(1, Ordering::AcqRel) >= MOST {
            BEGUN.fetch_sub(1, Ordering::AcqRel);
            return false;
        }
        let me = self.clone();
        let started = own_threads::spawn(8 << 20, move || {
            let job = lock(&me.job).take();
            let run = || job.map_or(Ok(()), |job| me.execute(job));
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|_| {
                crate::status::complain("an operation failed inside the simulator");
                Ok(())
            });
            BEGUN.fetch_sub(1, Ordering::AcqRel);
            me.change(Stage::Ended(ran));
        });
        if started {
            *stage = Stage::Runs;
        } else {
            BEGUN.fetch_sub(1, Ordering::AcqRel);
        }
        started
    }

    /// Waits until it has done what it can before the kernels in front of it have ended.
    fn until_rests(&self) {
        let until = Instant::now() + PATIENCE;
        let mut stage = lock(&self.stage);
        while *stage == Stage::Runs {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(stage, left);
            stage = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }
}

impl interp::Overlap for LaunchOverlap {
    fn has_dependents(&self) -> bool {
        !lock(&self.dependents).is_empty()
    }

    fn opens(&self) {
        let dependents = std::mem::take(&mut *lock(&self.dependents));
        for next in dependents {
            if next.begin_early() {
                next.until_rests();
            }
        }
    }

    fn may_pass(&self) -> bool {
        self.passes.load(Ordering::Acquire)
    }

    fn rests(&self) {
        self.change(Stage::Rests);
    }

    fn sleep(&self) {
        let mut stage = lock(&self.stage);
        while !self.passes.load(Ordering::Acquire) {
            stage = self.changed.wait(stage).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}
