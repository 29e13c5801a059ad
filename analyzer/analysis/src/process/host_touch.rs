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
//! whatever came before them is over. While one is not known to be over, races are `possible`.
//!
//! # Host functions in stream order
//!
//! What one touches is ordered as the function is. It runs later than it was enqueued, so its
//! touches are compared with work that was enqueued before it, and with work that is enqueued after
//! they were seen. A race with what comes in between is missed. A function that is a node of a
//! graph is ordered as the node is.
//!
//! # Work behind a host function
//!
//! Work that is behind a host function which has not returned has not begun. The function may wait
//! for the very thread that touches the bytes of that work (a producer that the stream wakes), so
//! the pair is `possible`. Where threads have timelines of their own it is judged when the functions
//! before the work return: the thread of one of them knows of the touch, or none does. The thread of
//! any other function may know of the touch, and that orders nothing.

use order::Awaits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use trace::{Epoch, GraphExecId, HostFuncId, KernelId, Op, Origin, Space, StreamId, TimelineId};

use super::Analysis;
use detect::confidence::{Confidence, Weakness};
use detect::host_watch;
use detect::memory::{Access, AccessKind, Cause};
use detect::race::Race;
use detect::state::happens_before::Ordering;

/// Maximum number of ops remembered as reported. Beyond that, one may be reported twice: by its
/// bytes and by the access itself.
const MOST: usize = 4096;

/// What is remembered of the host's touches.
#[derive(Debug, Default)]
pub(super) struct HostTouches {
    /// Up to which epoch of each timeline the host may have been told that work is over.
    heard: FxHashMap<TimelineId, u64>,
    /// Work (and its node) of which a racing touch was reported already.
    reported: FxHashSet<(Epoch, u32)>,
    /// Host functions that are pending or running: how far each timeline was when they were
    /// enqueued.
    functions: FxHashMap<HostFuncId, VecDeque<Vec<u64>>>,
    /// The nodes of executable graphs that host functions are.
    nodes: FxHashMap<HostFuncId, (GraphExecId, u32)>,
    /// Races with work behind host functions, and those of the functions that have not returned.
    deferred: Vec<(Race, Vec<HostFuncId>)>,
}

/// A race of the host with work behind a host function, as far as it is known: see the head of this
/// file.
pub(super) fn possible_behind_function(race: Race) -> Race {
    Race { confidence: Confidence::Possible, weakness: Some(Weakness::HostFunction), ..race }
}

impl HostTouches {
    fn hear(&mut self, from: Epoch) {
        let known = self.heard.entry(from.timeline).or_default();
        *known = (*known).max(from.time);
    }

    fn heard_of(&self, epoch: Epoch) -> bool {
        self.heard.get(&epoch.timeline).is_some_and(|time| *time >= epoch.time)
    }

    /// A host function is put into a stream. `times`: how far each timeline is.
    pub(crate) fn function_enqueued(&mut self, func: HostFuncId, times: Vec<u64>) {
        if self.functions.len() < MOST {
            self.functions.insert(func, VecDeque::from([times]));
        }
    }

    /// A graph is launched with this node. Launches of one executable run one after the other.
    pub(crate) fn function_launched(&mut self, func: HostFuncId, node: (GraphExecId, u32), times: Vec<u64>) {
        self.nodes.insert(func, node);
        let runs = self.functions.entry(func).or_default();
        runs.push_back(times);
        if runs.len() > MOST {
            runs.pop_front();
        }
    }

    /// It is over. Returns the races that its thread knows nothing about.
    pub(crate) fn function_ended(&mut self, func: HostFuncId, ordering: &Ordering) -> Vec<Race> {
        if let Some(runs) = self.functions.get_mut(&func) {
            runs.pop_front();
            if runs.is_empty() {
                self.functions.remove(&func);
            }
        }
        let concerns = |(_, before): &mut (Race, Vec<HostFuncId>)| before.contains(&func);
        let judged: Vec<_> = self.deferred.extract_if(.., concerns).collect();
        let mut races = Vec::new();
        for (race, mut before) in judged {
            before.retain(|other| *other != func);
            if ordering.host_knows(race.access.epoch) {
                continue;
            }
            match before.is_empty() {
                true => races.push(race),
                false => self.deferred.push((race, before)),
            }
        }
        races
    }

    /// Judges a race of the host with work that a host function may keep from beginning. `func`:
    /// the function that touched the bytes. `None`: it is judged later.
    pub(crate) fn behind_function(
        &mut self,
        ordering: &Ordering,
        host_threads: bool,
        race: Race,
        func: HostFuncId,
    ) -> Option<Race> {
        let awaits = ordering.awaits_host_function(race.previous.epoch, func);
        match awaits {
            Awaits::No => Some(race),
            Awaits::Yes if host_threads && func.is_none() && self.deferred.len() < MOST => {
                let before = ordering.host_functions_before(race.previous.epoch);
                self.deferred.push((race, before));
                None
            }
            Awaits::Yes | Awaits::Maybe => Some(possible_behind_function(race)),
        }
    }

    /// Whether an op was enqueued before a host function. What was enqueued later may come after
    /// the function: its order is not known any more when the function runs.
    fn was_before(&self, func: HostFuncId, epoch: Epoch) -> bool {
        let times = self.functions.get(&func).and_then(VecDeque::front);
        times.and_then(|times| times.get(epoch.timeline.0 as usize)).is_some_and(|time| epoch.time <= *time)
    }

    /// Notes that the host was caught touching bytes of this work.
    pub(crate) fn report(&mut self, work: &Access) {
        if self.reported.len() >= MOST {
            self.reported.clear();
        }
        self.reported.insert((work.epoch, work.site.node));
    }

    /// Whether it was.
    pub(crate) fn is_reported(&self, work: &Access) -> bool {
        self.reported.contains(&(work.epoch, work.site.node))
    }
}

/// Whether memory may carry a message from the earlier side of a race to a host that looks for one.
fn may_tell(race: &Race) -> bool {
    race.previous.kind.writes() && matches!(race.previous.site.cause, Cause::Kernel | Cause::Value)
}

impl Analysis {
    /// A host thread touched memory that devices can reach.
    pub(super) fn host_touch(&mut self, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
        let Op::HostTouch { ref region, writes, atomic, polled, func } = *op else { return };
        // A function that was enqueued before a gap: nothing is known of its place.
        let unplaced = self.gaps.any() && !func.is_none() && !self.touches.functions.contains_key(&func);
        if self.paused || unplaced {
            return;
        }
        self.coverage.host_touches += 1;
        let kind = match (writes, atomic) {
            (true, true) => AccessKind::Atomic,
            (true, false) => AccessKind::Write,
            (false, true) => AccessKind::AtomicRead,
            (false, false) => AccessKind::Read,
        };
        // What the host enqueues later comes after it, so only a thread with a timeline of its own
        // and a host function in stream order can race with later work.
        let keep = self.options.host_threads || func != HostFuncId::NONE;
        let context = self.submissions.context(origin, epoch);
        let site = context.site(Cause::Host, StreamId::NONE);
        let node = self.touches.nodes.get(&func).copied();
        match node {
            None => self.at(context, site, None).region(region, kind, Space::Unified, keep),
            // Of a graph that is destroyed while it runs, the order inside is gone.
            Some((exec, index)) => {
                let Some(graph) = self.graphs.take(exec) else { return };
                self.at(context, site, Some((&graph, index))).region(region, kind, Space::Unified, keep);
                // Nodes behind the function come after it.
                let is_later = |e: &Access| e.epoch == epoch && e.site.node > 0 && graph.before(index, e.site.node - 1);
                self.races.retain(|race| !is_later(&race.previous));
                self.graphs.put(exec, graph);
            }
        }
        if !func.is_none() {
            let touches = &self.touches;
            self.races.retain(|race| touches.was_before(func, race.previous.epoch));
        }
        if self.races.is_empty() {
            return;
        }
        if self.ordering.host_functions_pending() {
            let races = std::mem::take(&mut self.races);
            let (touches, threads) = (&mut self.touches, self.options.host_threads);
            let judged = races.into_iter().filter_map(|r| touches.behind_function(&self.ordering, threads, r, func));
            self.races.extend(judged);
        }
        let signals = self.signals();
        let listens = polled || (atomic && !writes);
        for race in &mut self.races {
            let work = &race.previous;
            if race.weakness == Some(Weakness::HostFunction) || self.watches.awaits_graph(work.epoch, &self.ordering) {
                *race = possible_behind_function(race.clone());
                continue;
            }
            let may_follow = |e: Epoch| e.timeline != work.epoch.timeline || e.time >= work.epoch.time;
            // A node is not told by the functions of its own graph.
            let own = node.map(|_| epoch);
            let told =
                signals.iter().any(|e| may_follow(*e)) || self.watches.graph_follows(work.epoch, own, &self.ordering);
            if listens && may_tell(race) {
                self.touches.hear(race.previous.epoch);
            }
            if told || self.touches.heard_of(race.previous.epoch) {
                race.confidence = Confidence::Possible;
            } else {
                self.touches.report(&race.previous);
            }
        }
    }

    /// Work that the host has not seen finish and that may tell it something through memory which
    /// both use: kernels with a fence of system scope, and values that streams write.
    fn signals(&mut self) -> Vec<Epoch> {
        let mut signals = Vec::new();
        let mut kernels: Vec<(KernelId, StreamId, Epoch)> = Vec::new();
        for access in self.memory.accesses_in(&host_watch::SHARED) {
            match access.site.cause {
                _ if self.ordering.host_saw(access.epoch) => {}
                Cause::Value => signals.push(access.epoch),
                Cause::Kernel => {
                    let known = (access.site.kernel, access.site.stream, access.epoch);
                    if kernels.last() != Some(&known) {
                        kernels.push(known);
                    }
                }
                _ => {}
            }
        }
        for (kernel, stream, epoch) in kernels {
            let arch = self.arch(stream);
            if self.code.signals(kernel, self.names.kernel(kernel), arch) {
                signals.push(epoch);
            }
        }
        signals
    }
}
