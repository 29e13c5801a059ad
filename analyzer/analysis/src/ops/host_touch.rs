//! Loads and stores of the host, seen one by one: by instrumented code, or by held pages.
//!
//! Owns the way from a `HostTouch` op to accesses of the host and their races, and what the host
//! may have been told through memory. Pairs of two host accesses are not looked for: that is
//! ThreadSanitizer's work.
//!
//! # What the host was told
//!
//! A program may learn from memory that a kernel is over, or how far it has come: it reads a flag
//! again and again, or by an atomic load. Such a read races with the kernel's store by its very
//! purpose, and what the host touches afterwards may be ordered by it. Whether it is cannot be seen
//! from the outside, so both are `possible` only. A flag that is set at the first plain look cannot
//! be told from any other racing read.
//!
//! A kernel with a fence of system scope, and a stream that writes a value, may tell the host that
//! whatever came before them is over. While one is not known to be over, races are `possible`, if
//! the host may have received its message ([`super::host_messages`]).
//!
//! The word itself, where a kernel stores or updates it atomically with the scope of the system, is
//! for the host to look at: atomic accesses that reach each other are no race, and nothing tells an
//! atomic access of the host from a plain one. Without a fence such a word tells of nothing else. A
//! word that a kernel stores with a narrower scope is no message, whatever else the kernel stores
//! ([`detect::exact::scopes`]), and an atomic access of the host misses it.
//!
//! The other way round, a kernel may wait for the host: what it does behind an atomic load of a
//! word and an acquire (`kernels`, `ranges/handovers.rs`) comes after what the host does before it
//! sets the word. So a race with such an access is `possible`, too.
//!
//! # Host functions in stream order
//!
//! What one touches is ordered as the function is. It runs later than it was enqueued, so its
//! touches are compared with work that was enqueued before it, with work that is enqueued after
//! they were seen, and of what comes in between with that on streams which do not wait for the
//! function. A race with other work in between is missed. A function that is a node of a graph is
//! ordered as the node is.
//!
//! # Work behind a host function
//!
//! Work that is behind a host function which has not returned has not begun. The function may wait
//! for the very thread that touches the bytes of that work (a producer that the stream wakes), so
//! the pair is `possible`. Where threads have timelines of their own it is judged when the
//! functions before the work return: the thread of one of them knows of the touch, or none does.
//! The thread of any other function may know of the touch, and that orders nothing.

use super::at;
use super::host_messages::{self, senders};
use crate::process::facts::ProcessFacts;
use crate::process::host_touches::possible_behind_function;
use crate::process::state::ProcessState;
use detect::confidence::Weakness;
use detect::memory::allocations::may_be_flag;
use detect::memory::{Access, AccessKind, Cause, Lock};
use detect::race::Race;
use trace::{Epoch, HostFuncId, Op, Origin, Region, Space, StreamId};

/// Whether memory may carry a message from the earlier side of a race to a host that looks for one.
fn may_tell(race: &Race) -> bool {
    race.previous.kind.writes() && matches!(race.previous.site.cause, Cause::Kernel | Cause::Value)
}

/// Whether a kernel stores or updates something atomically, with a scope that does not contain the
/// host.
fn is_narrow(state: &ProcessState, facts: &mut ProcessFacts, work: &Access) -> bool {
    let (kernel, arch) = (work.site.kernel, facts.arch(&state.streams, work.site.stream));
    let is_stored = work.site.cause == Cause::Kernel && work.kind.writes() && work.kind.is_atomic();
    let mut reaches = || facts.code.stores_for_host((kernel, facts.names.kernel(kernel), arch), work.kind);
    is_stored && (work.exclusion.narrow || !reaches())
}

/// Whether one instruction may have stored these bytes atomically.
fn is_one_store(region: &Region) -> bool {
    let size = region.end().saturating_sub(region.start);
    matches!(size, 1 | 2 | 4 | 8) && region.start.is_multiple_of(size)
}

/// Whether these may be several such stores, with gaps between them.
fn is_stores(region: &Region) -> bool {
    is_one_store(&Region::linear(region.start, region.width)) && region.pitch.is_multiple_of(region.width)
}

/// Bytes without a gap from which on words that a kernel stores atomically are taken for results.
/// Kernels with a word for each block have fewer blocks, or leave gaps between the words.
const RESULTS: u64 = 4096;

/// Whether these stores of a kernel may be words by which it says how far it is.
fn may_be_progress(work: &Access) -> bool {
    work.extent.end.saturating_sub(work.extent.start) < RESULTS || !work.extent.is_dense()
}

/// A host thread touched memory that devices can reach.
pub(super) fn host_touch(
    state: &mut ProcessState,
    facts: &mut ProcessFacts,
    op: &Op<'_>,
    origin: &Origin,
    epoch: Epoch,
) {
    let Op::HostTouch { ref region, writes, atomic, polled, func } = *op else { return };
    // A function that was enqueued before a gap: nothing is known of its place.
    let unplaced = state.gaps.any() && !func.is_none() && !state.touches.knows_function(func);
    if state.paused || unplaced {
        return;
    }
    state.coverage.host_touches += 1;
    let kind = match (writes, atomic) {
        (true, true) => AccessKind::Atomic,
        (true, false) => AccessKind::Write,
        (false, true) => AccessKind::AtomicRead,
        (false, false) => AccessKind::Read,
    };
    // What the host enqueues later comes after it, so only a thread with a timeline of its own
    // and a host function in stream order can race with later work.
    let keep = state.options.judging.host_threads || func != HostFuncId::NONE;
    let context = state.submissions.context(origin, epoch);
    let site = context.site(Cause::Host, StreamId::NONE);
    let node = state.touches.node(func);
    // An atomic access of the host misses what a kernel stores with the scope of its device.
    let mut missed = Vec::new();
    if atomic && node.is_none() {
        let plain = if writes { AccessKind::Write } else { AccessKind::Read };
        at(state, context, site, None).region(region, plain, Space::Unified, false);
        missed = std::mem::take(&mut state.races);
        missed.retain(|race| is_narrow(state, facts, &race.previous));
    }
    match node {
        None => at(state, context, site, None).region(region, kind, Space::Unified, keep),
        // Of a graph that is destroyed while it runs, the order inside is gone.
        Some((exec, index)) => {
            let Some(graph) = state.graphs.take(exec) else { return };
            at(state, context, site, Some((&graph, index))).region(region, kind, Space::Unified, keep);
            // Nodes behind the function come after it.
            let ordering = &state.ordering;
            let is_later = |e: &Access| {
                ordering.is_same_launch(e.epoch, epoch) && e.site.node > 0 && graph.before(index, e.site.node - 1)
            };
            state.races.retain(|race| !is_later(&race.previous));
            state.graphs.put(exec, graph);
        }
    }
    state.races.extend(missed);
    if !func.is_none() {
        let (touches, ordering) = (&state.touches, &state.ordering);
        let beside = |epoch| node.is_none() && ordering.runs_beside_function(func, epoch);
        state.races.retain(|race| touches.was_before(func, race.previous.epoch) || beside(race.previous.epoch));
    }
    // Two atomic accesses are no race, and a look all the same.
    if atomic {
        host_messages::look(state, region.start, region.end());
    }
    if state.races.is_empty() {
        return;
    }
    if state.ordering.host_functions_pending() {
        let races = std::mem::take(&mut state.races);
        let (touches, threads) = (&mut state.touches, state.options.judging.host_threads);
        let judged = races.into_iter().filter_map(|r| touches.behind_function(&state.ordering, threads, r, func));
        state.races.extend(judged);
    }
    if state.watches.knows_graphs() {
        let races = std::mem::take(&mut state.races);
        let threads = state.options.judging.host_threads && func.is_none();
        let judged = races.into_iter().filter_map(|race| {
            let is_pending = |other: HostFuncId| other != func && state.touches.knows_function(other);
            let before = state.watches.functions_before(&race.previous, &state.ordering, is_pending);
            if before.is_empty() { Some(race) } else { state.touches.behind_functions(threads, race, before) }
        });
        state.races.extend(judged);
    }
    // A touch of a flag is a look at it, and may be meant.
    for race in state.races.iter().filter(|race| may_be_flag(&race.previous)) {
        state.touches.look_at(race.previous.epoch);
    }
    let senders = senders(state, facts);
    let listens = polled || (atomic && !writes);
    let may_store = writes && !atomic && is_one_store(region);
    // Touches of one place in the program come together: words that were read one after the other
    // look like a piece of memory.
    let may_look = !writes;
    let may_clear = is_stores(region);
    for race in &mut state.races {
        let work = &race.previous;
        if race.weakness == Some(Weakness::HostFunction) || state.watches.awaits_graph(work.epoch, &state.ordering) {
            *race = possible_behind_function(race.clone());
            continue;
        }
        // Two atomic accesses with the scope of the system are no race, and nothing tells an atomic
        // store of the host from a plain one.
        if may_store && work.kind == AccessKind::AtomicRead && work.site.cause == Cause::Kernel {
            let (kernel, arch) = (work.site.kernel, facts.arch(&state.streams, work.site.stream));
            let bytes = work.extent.end.saturating_sub(work.extent.start);
            if facts.code.loads_from_host((kernel, facts.names.kernel(kernel), arch), bytes) {
                race.demote(Weakness::Message);
                continue;
            }
        }
        // What awaits a word may wait for the host, which sets the word behind this access.
        if work.exclusion.lock.is_some_and(Lock::awaits) {
            race.demote(Weakness::Message);
            continue;
        }
        let own = node.map(|(_, index)| (state.ordering.stream_epoch_of(epoch), index));
        let told = senders.iter().any(|sender| sender.may_tell_of(work))
            || state.watches.graph_tells(work, own, &state.ordering);
        let misses = atomic && work.kind.is_atomic();
        let is_look = listens && may_tell(race) && !misses;
        if is_look {
            state.touches.hear(race.previous.epoch);
        }
        let (kernel, arch) = (work.site.kernel, facts.arch(&state.streams, work.site.stream));
        let mut is_progress = || {
            let is_stored = work.site.cause == Cause::Kernel && work.kind.writes() && work.kind.is_atomic();
            // An update that a store of the host comes in between is lost.
            let may_touch = may_look || may_clear && work.kind == AccessKind::AtomicWrite;
            let may_reach = is_stored && !work.exclusion.narrow && may_touch && may_be_progress(work);
            may_reach && facts.code.stores_for_host((kernel, facts.names.kernel(kernel), arch), work.kind)
        };
        if told || is_look || state.touches.heard_of(&race.previous) || is_progress() {
            race.demote(Weakness::Message);
        } else {
            state.touches.report(&race.previous);
        }
    }
}

/// A library or an engine accesses bytes for the host, which may have learned through memory that
/// work is over: a thread that waits for the flags of kernels and hands on what they wrote. What
/// the host has looked at is not asked: its loads are seen with `--host-accesses` only.
pub(super) fn host_transfer(state: &mut ProcessState, facts: &mut ProcessFacts) {
    if state.races.is_empty() {
        return;
    }
    let mut senders = senders(state, facts);
    senders.iter_mut().for_each(|sender| sender.unheard = false);
    for race in &mut state.races {
        if senders.iter().any(|sender| sender.may_tell_of(&race.previous)) {
            race.demote(Weakness::Message);
        }
    }
}
