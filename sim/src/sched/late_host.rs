//! Host functions come late in the schedule `eager`: each is held until the program waits for it.
//!
//! A host function may tell other host threads that it has ended, by a promise or a flag. The trace
//! shows when it ended, not what it told, so whatever a thread does behind its end counts as
//! ordered behind it (`order`, `host_func_run`). Whether the end comes before the program's next
//! call would be chance, and a race of the function with what that call enqueues would be found by
//! chance. So a host function is held, and with it the work behind it in its stream, until
//!
//! - a thread waits for work that comes after it, or asks for such work for the third time;
//! - the thread that made the last call sleeps, spins or has ended: it may wait for the function;
//! - the process exits, or the function was held for `hold` milliseconds (`config`).
//!
//! A program that does not communicate with its host functions thus makes all calls up to its next
//! wait first. What holding costs is bounded: see [`BUDGET`].

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::host_wait::CALLS;
use super::{Core, OpId, now, policy};
use crate::config::Schedule;
use crate::own_threads;

/// How often it is seen what the program does meanwhile.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(2);
/// A thread that is found asleep so many times waits for something. (One that looks again and again
/// and sleeps in between is not asleep each time.)
const ASLEEP: u32 = 5;
/// A thread that runs for this long without a call is taken to spin: processor time of the thread,
/// so that a busy machine changes nothing.
const SPINNING: Duration = Duration::from_millis(50);
/// How often a thread must ask for work behind the function. A program that asks once and goes on
/// whatever the answer is has a race too.
const POLLS: u32 = 3;
/// How long functions are held in all: this long, and one part in [`PART`] of the time that the
/// program has run. From then on they run at once, as all other work does. What ended because the
/// program waited counts for one part in [`WAITED`]: until then it did something else.
const BUDGET: Duration = Duration::from_millis(500);
const PART: u32 = 20;
const WAITED: u32 = 4;
/// How long an exiting process waits for functions that were held.
const EXIT: Duration = Duration::from_millis(100);

/// The thread that made the last call of the program.
static CALLER: AtomicI32 = AtomicI32::new(0);
/// The process that has held a function.
static OWNER: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static THREAD: Cell<i32> = const { Cell::new(0) };
}

/// This thread makes a call.
pub(super) fn note_caller() {
    let own = THREAD.try_with(|own| {
        if own.get() == 0 {
            // SAFETY: asks for a number.
            own.set(unsafe { libc::syscall(libc::SYS_gettid) } as i32);
        }
        own.get()
    });
    CALLER.store(own.unwrap_or(0), Ordering::Relaxed);
}

/// What the thread of the last call has done since.
#[derive(Clone, Copy)]
struct Quiet {
    thread: i32,
    /// When the call ended.
    called: u64,
    /// Its processor time when it was looked at first.
    ran: Duration,
    asleep: u32,
}

/// The functions that are held.
#[derive(Default)]
pub(super) struct Late {
    ops: Vec<(OpId, Instant)>,
    polls: u32,
    quiet: Option<Quiet>,
    looked: Option<Instant>,
    spent: Duration,
    /// An operation that a thread waits for, or did, and some that lead to it.
    waited: RefCell<Option<(OpId, HashSet<OpId>)>>,
    /// Threads that wait until nothing is left to run.
    pub(super) drains: usize,
}

impl Late {
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// The processor time of a thread of this process; none when it has ended.
fn processor_time(thread: i32) -> Option<Duration> {
    // The clock of a thread by its number: CPUCLOCK_SCHED of CPUCLOCK_PERTHREAD (Linux,
    // include/linux/posix-timers_types.h).
    let clock = (!thread << 3) | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the local.
    let known = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    known.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

impl Core {
    /// Whether a host function whose turn has come is held. If so it is in the list.
    pub(super) fn hold_host_code(&mut self, id: OpId) -> bool {
        if self.config.schedule != Schedule::Eager || self.late.drains > 0 {
            return false;
        }
        let most = BUDGET + Duration::from_nanos(now()) / PART;
        if self.late.spent >= most || self.is_waited_for(id) {
            return false;
        }
        if self.late.is_empty() {
            (self.late.quiet, self.late.polls) = (None, 0);
        }
        run_at_exit();
        self.late.ops.push((id, Instant::now()));
        true
    }

    /// Whether an operation or one that comes after it is such.
    fn leads(&self, from: OpId, is_such: impl Fn(&Core, OpId) -> bool) -> bool {
        !self.way(from, is_such).is_empty()
    }

    /// The operations on a way from one to the first that is such: that one first. Empty: there is
    /// none.
    fn way(&self, from: OpId, is_such: impl Fn(&Core, OpId) -> bool) -> Vec<OpId> {
        let (mut before, mut todo) = (HashMap::new(), vec![(from, from)]);
        while let Some((id, by)) = todo.pop() {
            if before.contains_key(&id) {
                continue;
            }
            before.insert(id, by);
            if is_such(self, id) {
                let back = |id: &OpId| before.get(id).copied().filter(|by| by != id);
                return std::iter::successors(Some(id), back).collect();
            }
            if let Some(op) = self.ops.get(&id) {
                todo.extend(op.next.iter().map(|next| (*next, id)));
            }
        }
        Vec::new()
    }

    /// Whether a thread waits for an operation or for one that comes after it.
    fn is_waited_for(&self, id: OpId) -> bool {
        let waits = |core: &Core, op: OpId| core.ops.get(&op).is_some_and(|op| !op.waits.is_empty());
        // Functions that queue up behind each other all ask, and have one answer.
        let mut known = self.late.waited.borrow_mut();
        if let Some((target, way)) = &*known
            && way.contains(&id)
            && waits(self, *target)
        {
            return true;
        }
        let way = self.way(id, waits);
        let Some(target) = way.first() else { return false };
        *known = Some((*target, way.iter().copied().collect()));
        true
    }

    /// Holds the functions no longer of which this is so. One part of the time counts.
    fn release(&mut self, part: u32, is_due: impl Fn(&Core, OpId, Instant) -> bool) {
        let all = std::mem::take(&mut self.late.ops);
        let (due, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|(id, since)| is_due(self, *id, *since));
        self.late.ops = left;
        if !due.is_empty() {
            self.late.polls = 0;
        }
        // Those that were held together delayed the program together.
        let longest = due.iter().map(|(_, since)| since.elapsed()).max();
        self.late.spent += longest.unwrap_or_default() / part;
        for (id, _) in due {
            let Some(op) = self.ops.get(&id) else { continue };
            self.ready.insert((policy::key(&self.config, id, op.lane), id));
        }
    }

    /// A thread waits, from now on. Answers whether a function may run therefore.
    pub(super) fn release_waited(&mut self) -> bool {
        let held = self.late.ops.len();
        if held > 0 {
            self.release(WAITED, |core, id, _| core.is_waited_for(id));
        }
        self.late.ops.len() < held
    }

    /// A thread has asked for these, which are not done.
    pub(super) fn release_polled(&mut self, asked: &[OpId]) {
        if self.late.is_empty() || !self.late.ops.iter().any(|(id, _)| self.leads(*id, |_, op| asked.contains(&op))) {
            return;
        }
        self.late.polls += 1;
        if self.late.polls >= POLLS {
            self.release(WAITED, |core, id, _| core.leads(id, |_, op| asked.contains(&op)));
        }
    }

    /// Everything may run.
    pub(super) fn release_all(&mut self) {
        self.release(WAITED, |_, _, _| true);
    }

    /// Time has passed: lets go of what was held for too long, and of everything if the program may
    /// be waiting for it.
    pub(super) fn release_due(&mut self) {
        if self.late.is_empty() || self.late.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY / 2) {
            return;
        }
        self.late.looked = Some(Instant::now());
        let (all, most) = (self.program_waits(), Duration::from_millis(self.config.hold_ms));
        self.release(1, |_, _, since| all || since.elapsed() >= most);
    }

    /// Whether the thread that made the last call may wait for a function.
    fn program_waits(&mut self) -> bool {
        let (thread, called) = (CALLER.load(Ordering::Relaxed), CALLS.1.load(Ordering::Relaxed));
        if CALLS.0.load(Ordering::Relaxed) > 0 {
            self.late.quiet = None;
            return false;
        }
        let Some(ran) = processor_time(thread) else { return true };
        let known = self.late.quiet.filter(|quiet| (quiet.thread, quiet.called) == (thread, called));
        let mut quiet = known.unwrap_or(Quiet { thread, called, ran, asleep: 0 });
        quiet.asleep += u32::from(own_threads::state(thread) == Some('S'));
        self.late.quiet = Some(quiet);
        quiet.asleep >= ASLEEP || ran.saturating_sub(quiet.ran) >= SPINNING
    }
}

/// Has functions run that are still held when this process exits. Registered when the first one is
/// held, which is late: it comes before the destructors of what the program made until then.
fn run_at_exit() {
    if OWNER.swap(std::process::id(), Ordering::Relaxed) == 0 {
        // SAFETY: a function that stays loaded (`-z nodelete`).
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    // A child of a fork has none of the threads that could run them.
    if OWNER.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let scheduler = super::get();
    if !scheduler.lock().late.is_empty() {
        scheduler.drain(EXIT);
    }
}
