//! What has not completed: requests, persistent requests, one-sided calls.
//!
//! Owns the tables from MPI's handles to timelines of the trace. Only requests that touch CUDA's
//! memory are in them. A library may answer one handle for several requests that were complete at
//! once (MPICH's and Open MPI's do): a handle has a queue.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use mpi_interface::Transfer;

use super::link::Timeline;
pub use super::link::{begin, during_call, end};
use super::names::CallNumber;

/// One request.
struct Pending {
    call: CallNumber,
    /// Its timeline, while it is active.
    active: Option<Timeline>,
    /// Of a persistent request: what each start touches.
    again: Option<Vec<Transfer>>,
    /// Of a partitioned request, instead.
    parts: Option<Parts>,
}

/// The partitions of a persistent request.
struct Parts {
    /// What each touches.
    touches: Vec<Vec<Transfer>>,
    /// The timelines of those that are under way.
    active: HashMap<usize, Timeline>,
    /// Whether they are received: all begin with the request then. Otherwise each begins when it is
    /// said to be ready.
    received: bool,
}

/// A one-sided call: its window, the rank of its target, its timeline.
type OneSided = (usize, i32, Timeline);

static REQUESTS: LazyLock<Mutex<HashMap<usize, VecDeque<Pending>>>> = LazyLock::new(Mutex::default);
static ONE_SIDED: Mutex<Vec<OneSided>> = Mutex::new(Vec::new());
/// Requests in the table: most waits find nothing to do by this.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any request is known.
#[inline]
pub fn any() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

/// The handle of what has begun is known.
pub fn add(handle: usize, call: CallNumber, request: Timeline) {
    insert(handle, Pending { call, active: Some(request), again: None, parts: None });
}

/// A persistent request was made.
pub fn add_persistent(handle: usize, call: CallNumber, transfers: Vec<Transfer>) {
    insert(handle, Pending { call, active: None, again: Some(transfers), parts: None });
}

/// A partitioned request was made.
pub fn add_partitioned(handle: usize, call: CallNumber, touches: Vec<Vec<Transfer>>, received: bool) {
    let parts = Parts { touches, active: HashMap::new(), received };
    insert(handle, Pending { call, active: None, again: Some(Vec::new()), parts: Some(parts) });
}

/// Runs with the partitions of a request, and the function that made it.
fn with_parts<T>(handle: usize, run: impl FnOnce(CallNumber, &mut Parts) -> T) -> Option<T> {
    let mut requests = lock(&REQUESTS);
    let pending = requests.get_mut(&handle)?.front_mut()?;
    let call = pending.call;
    pending.parts.as_mut().map(|parts| run(call, parts))
}

/// A partition begins.
fn begin_partition(handle: usize, partition: usize) {
    let found = with_parts(handle, |call, parts| {
        let touches = parts.touches.get(partition)?.clone();
        (!touches.is_empty() && !parts.active.contains_key(&partition)).then_some((call, touches))
    });
    if let Some((call, touches)) = found.flatten()
        && let Some(request) = begin(call, &touches)
    {
        with_parts(handle, |_, parts| parts.active.insert(partition, request));
    }
}

/// The program gives a partition away to be sent.
pub fn partition_ready(handle: usize, partition: Option<usize>) {
    if let Some(partition) = partition {
        begin_partition(handle, partition);
    }
}

/// The host has seen a partition arrive.
pub fn partition_arrived(handle: usize, partition: Option<usize>, call: CallNumber) {
    let active = with_parts(handle, |_, parts| partition.and_then(|which| parts.active.remove(&which)));
    if let Some(request) = active.flatten() {
        end(call, request);
    }
}

fn insert(handle: usize, pending: Pending) {
    lock(&REQUESTS).entry(handle).or_default().push_back(pending);
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// A persistent request is about to be started.
pub fn start(handle: usize) {
    if let Some(parts) = with_parts(handle, |_, parts| if parts.received { parts.touches.len() } else { 0 }) {
        (0..parts).for_each(|partition| begin_partition(handle, partition));
        return;
    }
    let found = lock(&REQUESTS).get(&handle).and_then(|queue| {
        let pending = queue.front()?;
        Some((pending.call, pending.again.clone()?))
    });
    let Some((call, transfers)) = found else { return };
    let request = begin(call, &transfers);
    if let Some(pending) = lock(&REQUESTS).get_mut(&handle).and_then(VecDeque::front_mut) {
        pending.active = request;
    }
}

/// The host has seen the request of this handle complete, in this call. `freed`: MPI has set the
/// handle to null, unless it is a persistent one.
pub fn complete(handle: usize, call: CallNumber, freed: bool) {
    let active: Vec<Timeline> = {
        let mut requests = lock(&REQUESTS);
        let Some(queue) = requests.get_mut(&handle) else { return };
        let Some(pending) = queue.front_mut() else { return };
        let parts = pending.parts.as_mut().map(|parts| std::mem::take(&mut parts.active)).unwrap_or_default();
        let active = pending.active.take().into_iter().chain(parts.into_values()).collect();
        if pending.again.is_none() && freed {
            queue.pop_front();
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
        if queue.is_empty() {
            requests.remove(&handle);
        }
        active
    };
    active.into_iter().for_each(|request| end(call, request));
}

/// The program has given a request away: an active one goes on, and no wait will tell of its end.
pub fn forget(handle: usize) {
    let mut requests = lock(&REQUESTS);
    let Some(queue) = requests.get_mut(&handle) else { return };
    if queue.pop_front().is_some() {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
    if queue.is_empty() {
        requests.remove(&handle);
    }
}

/// A one-sided call has begun.
pub fn add_one_sided(window: usize, target: i32, request: Timeline) {
    lock(&ONE_SIDED).push((window, target, request));
}

/// One-sided calls on a window are complete: those to this target, or all.
pub fn complete_one_sided(window: usize, target: Option<i32>, call: CallNumber) {
    let done: Vec<OneSided> =
        lock(&ONE_SIDED).extract_if(.., |(win, rank, _)| *win == window && target.is_none_or(|t| t == *rank)).collect();
    done.into_iter().for_each(|(_, _, request)| end(call, request));
}
