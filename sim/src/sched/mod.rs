//! The scheduler: operations, the order between them, and waiting for them. It does not know what
//! an operation does.
//!
//! Every piece of device work is an operation with a list of operations that must finish before it:
//! the one before it in its stream, those of the legacy stream's rule, and those of events it waits
//! for. Nothing else orders: two operations without a path between them run in whatever order
//! `policy` picks, and at the same time where workers are free. An operation that has finished is
//! forgotten: an id that is no longer in the table means "done".
//!
//! `policy` picks the next operation, `worker` runs it, `host_wait` is how host threads wait for
//! it, `late_host` holds host functions back, and `lost` is what happens where the system gives no
//! thread. They know each other and this file: all work on its one locked `Core`.

mod host_wait;
mod late_host;
mod lost;
mod operations;
pub(crate) mod policy;
mod worker;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use crate::config::{self, Config, Schedule};
pub(crate) use crate::sched::host_wait::DriverCall;
pub(crate) use crate::sched::lost::is_lost;
use worker::{PATIENCE, Running};

/// One operation, unique in the process. Zero is "none", which counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OpId(pub u64);

/// One stream, unique in the process; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StreamId(pub u64);

/// One context, unique in the process; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ContextId(pub u64);

/// How a stream takes part in the legacy stream's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// The context's default stream: ordered with all blocking streams.
    Legacy,
    /// Ordered with the legacy stream.
    Blocking,
    /// Ordered with nothing.
    NonBlocking,
}

/// Nanoseconds since the first use of the scheduler at which something finished; zero while it has
/// not.
pub(crate) type Stamp = Arc<AtomicU64>;

/// What an operation does when its turn has come.
pub(crate) enum Work {
    /// Nothing but being a point in the order. The stamp gets the time.
    Point(Option<Stamp>),
    /// Device work, on a worker thread.
    Run(Box<dyn FnOnce() + Send>),
    /// Host code on a worker thread. It may wait for other host threads, as a kernel may spin for
    /// another: see `worker`.
    Host(Box<dyn FnOnce() + Send>),
    /// Finishes as soon as the condition holds. Must be cheap: it is asked with the scheduler
    /// locked.
    Until(Box<dyn FnMut() -> bool + Send>),
    /// Decides, when its turn has come, what runs in its place, and again when that is done, until
    /// there is nothing more. Asked with the scheduler locked. The parts may not wait for
    /// operations outside.
    Expand(Box<dyn FnMut() -> Option<Vec<Step>> + Send>),
}

/// A part of a partial order: what it does, the parts before it, and operations outside that it
/// waits for.
pub(crate) type Step = (Work, Vec<usize>, Vec<OpId>);

struct Op {
    work: Option<Work>,
    lane: u64,
    deps: Vec<OpId>,
    missing: usize,
    next: Vec<OpId>,
    waits: Vec<Arc<Wait>>,
    stamp: Option<Stamp>,
}

struct StreamState {
    ctx: ContextId,
    kind: StreamKind,
    tail: OpId,
    dead: bool,
}

struct Wait {
    left: AtomicUsize,
    cv: Condvar,
}

/// Everything that the scheduler knows; one lock.
pub(crate) struct Core {
    config: Config,
    next: u64,
    ops: HashMap<OpId, Op>,
    ready: BTreeSet<(u64, OpId)>,
    parked: Vec<OpId>,
    streams: HashMap<StreamId, StreamState>,
    legacy: HashMap<ContextId, StreamId>,
    workers: usize,
    idle: usize,
    running: Vec<Running>,
    waits: usize,
    tokens: usize,
    held_since: Option<Instant>,
    released: bool,
    /// How often a host thread has asked for unfinished work.
    polls: u64,
    /// Host threads that wait until something has finished ([`Scheduler::advance`],
    /// [`Scheduler::drain`]).
    watchers: usize,
    finished: u64,
    late: late_host::Late,
}

/// The process's scheduler.
pub(crate) struct Scheduler {
    core: Mutex<Core>,
    wake: Condvar,
    /// Notified of every operation that finishes while there are `watchers`.
    settled: Condvar,
    /// The processor time of the process when running work last got on.
    progress: AtomicU64,
}

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

/// The scheduler of this process.
pub(crate) fn get() -> &'static Scheduler {
    static SCHEDULER: OnceLock<Scheduler> = OnceLock::new();
    SCHEDULER.get_or_init(|| Scheduler::new(config::get_or_default()))
}

impl Scheduler {
    /// A scheduler of its own, which must live for ever because its threads do.
    pub(crate) fn new(config: Config) -> Scheduler {
        now();
        let core = Core {
            config,
            next: 1,
            ops: HashMap::new(),
            ready: BTreeSet::new(),
            parked: Vec::new(),
            streams: HashMap::new(),
            legacy: HashMap::new(),
            workers: 0,
            idle: 0,
            running: Vec::new(),
            waits: 0,
            tokens: 0,
            held_since: None,
            released: false,
            polls: 0,
            watchers: 0,
            finished: 0,
            late: late_host::Late::default(),
        };
        Scheduler { core: Mutex::new(core), wake: Condvar::new(), settled: Condvar::new(), progress: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Makes a stream known. A context has at most one legacy stream.
    pub(crate) fn add_stream(&self, ctx: ContextId, kind: StreamKind) -> StreamId {
        let mut core = self.lock();
        let id = StreamId(core.next);
        core.next += 1;
        core.streams.insert(id, StreamState { ctx, kind, tail: OpId(0), dead: false });
        if kind == StreamKind::Legacy {
            core.legacy.insert(ctx, id);
        }
        id
    }

    /// Forgets a stream once its work is done; returns at once.
    pub(crate) fn remove_stream(&self, id: StreamId) {
        let mut core = self.lock();
        if let Some(stream) = core.streams.get_mut(&id) {
            stream.dead = true;
        }
        core.bury();
    }

    /// Puts work at the end of a stream, behind `after` as well.
    pub(crate) fn submit(&'static self, stream: StreamId, work: Work, after: &[OpId]) -> OpId {
        let mut core = self.lock();
        let mut deps = core.stream_deps(stream);
        deps.extend_from_slice(after);
        let id = core.insert(work, stream.0, deps);
        if let Some(state) = core.streams.get_mut(&stream) {
            state.tail = id;
        }
        self.after_submit(core);
        id
    }

    /// A point behind operations of any streams, in no stream itself.
    pub(crate) fn join(&'static self, stamp: Option<Stamp>, after: &[OpId]) -> OpId {
        self.lock().insert(Work::Point(stamp), 0, after.to_vec())
    }

    /// An operation in no stream that is done as soon as the condition holds.
    pub(crate) fn until(&'static self, condition: Box<dyn FnMut() -> bool + Send>) -> OpId {
        let mut core = self.lock();
        let id = core.insert(Work::Until(condition), 0, Vec::new());
        self.settle(core);
        id
    }

    /// Puts a whole partial order at the end of a stream: `parts[i]` runs after the stream's
    /// earlier work, `after`, and those of `parts[..i]` that it names; what the stream does next
    /// runs after all of them. Answers the end and the parts.
    pub(crate) fn submit_dag(&'static self, stream: StreamId, parts: Vec<Step>, after: &[OpId]) -> (OpId, Vec<OpId>) {
        let mut core = self.lock();
        let mut deps = core.stream_deps(stream);
        deps.extend_from_slice(after);
        let begin = core.insert(Work::Point(None), stream.0, deps);
        let mut ids = Vec::with_capacity(parts.len());
        for (work, parents, outside) in parts {
            let mut deps = if parents.is_empty() { vec![begin] } else { parents.iter().map(|&p| ids[p]).collect() };
            deps.extend(outside);
            ids.push(core.insert_part(work, deps));
        }
        let mut all = ids.clone();
        all.push(begin);
        let end = core.insert(Work::Point(None), stream.0, all);
        if let Some(state) = core.streams.get_mut(&stream) {
            state.tail = end;
        }
        self.after_submit(core);
        (end, ids)
    }

    /// The last operation of a stream.
    #[cfg(test)]
    pub(crate) fn tail(&self, stream: StreamId) -> OpId {
        self.lock().streams.get(&stream).map_or(OpId(0), |s| s.tail)
    }

    /// What an operation put into the stream now would have to wait for.
    pub(crate) fn pending_before(&self, stream: StreamId) -> Vec<OpId> {
        self.lock().stream_deps(stream)
    }

    /// The unfinished last operations of all streams of a context, destroyed ones included.
    pub(crate) fn context_tails(&self, ctx: ContextId) -> Vec<OpId> {
        let core = self.lock();
        core.streams.values().filter(|s| s.ctx == ctx).map(|s| s.tail).filter(|t| core.ops.contains_key(t)).collect()
    }

    /// The unfinished last operations of all streams of the process.
    pub(crate) fn all_tails(&self) -> Vec<OpId> {
        let core = self.lock();
        core.streams.values().map(|s| s.tail).filter(|t| core.ops.contains_key(t)).collect()
    }

    /// The only operation that an unfinished one waits for, records of events apart: kernels
    /// overlap across those (measured: `tests/gpu/programs/programmatic.cu`).
    pub(crate) fn waits_for_one(&self, mut op: OpId) -> Option<OpId> {
        let core = self.lock();
        loop {
            let [before] = core.ops.get(&op)?.deps[..] else { return None };
            match core.ops.get(&before)?.work {
                Some(Work::Point(Some(_))) => op = before,
                _ => return Some(before),
            }
        }
    }

    /// Whether an operation has finished.
    pub(crate) fn is_done(&self, op: OpId) -> bool {
        !self.lock().ops.contains_key(&op)
    }

    /// Whether `later` is ordered after `earlier` (done counts as ordered before everything).
    pub(crate) fn is_ordered(&self, earlier: OpId, later: &[OpId]) -> bool {
        let core = self.lock();
        if !core.ops.contains_key(&earlier) {
            return true;
        }
        let mut seen = HashSet::new();
        let mut todo = later.to_vec();
        while let Some(id) = todo.pop() {
            if id == earlier {
                return true;
            }
            // Ids grow with time: nothing older than `earlier` can come after it.
            if id < earlier || !seen.insert(id) {
                continue;
            }
            if let Some(op) = core.ops.get(&id) {
                todo.extend_from_slice(&op.deps);
            }
        }
        false
    }

    /// What follows a submission: in order, each operation is finished before the call returns that
    /// asked for it.
    fn after_submit(&'static self, core: MutexGuard<'_, Core>) {
        let in_order = core.config.schedule == Schedule::InOrder;
        self.settle(core);
        if in_order {
            self.drain(PATIENCE);
        }
    }

    /// Finishes what can finish without a worker, then makes sure that workers are there for the
    /// rest.
    fn settle(&'static self, mut core: MutexGuard<'_, Core>) {
        core.poll_parked();
        let wanted = core.ready.len().min(match core.config.schedule {
            Schedule::Eager => core.config.workers,
            _ => core.config.workers.min(2),
        });
        if wanted > 0 || !core.parked.is_empty() || !core.late.is_empty() {
            let wanted = wanted.max(1);
            if core.idle > 0 {
                self.wake.notify_all();
            }
            let busy = core.workers - core.idle;
            let limit = if core.config.schedule == Schedule::Eager { core.config.workers } else { 16 };
            let missing = (wanted + busy).min(limit).saturating_sub(core.workers);
            for _ in 0..missing {
                core.workers += 1;
                drop(core);
                let started = self.spawn_worker();
                core = self.lock();
                if !started {
                    core.workers -= 1;
                    if core.workers == 0 {
                        self.lose(core);
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
