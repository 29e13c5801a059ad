//! What is remembered of the host's own loads and stores, and of host functions.
//!
//! Owns [`HostTouches`]: what the host may have been told through memory, the host functions that
//! are pending, and races with work behind them. How a touch becomes a race is in [`crate::ops`],
//! file `host_touch`.

use detect::confidence::Weakness;
use detect::memory::Access;
use detect::race::Race;
use detect::state::happens_before::Ordering;
use order::Awaits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use trace::{Epoch, GraphExecId, HostFuncId, TimelineId};

/// Maximum number of ops remembered as reported. Beyond that, one may be reported twice: by its
/// bytes and by the access itself.
const MOST: usize = 4096;

/// What is remembered of the host's touches.
#[derive(Debug, Default)]
pub(crate) struct HostTouches {
    /// Up to which epoch of each timeline the host may have been told that work is over.
    heard: FxHashMap<TimelineId, u64>,
    /// Kernels whose messages the host may have received: it looked at bytes that they write.
    looked_at: FxHashSet<Epoch>,
    /// Launches (and their nodes) that tell nobody anything, though their kernels can.
    mute: FxHashSet<(Epoch, u32)>,
    /// Nothing says any more what the host looks at.
    is_blind: bool,
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

/// A race of the host with work behind a host function, as far as it is known: see
/// [`crate::ops`], file `host_touch`.
pub(crate) fn possible_behind_function(mut race: Race) -> Race {
    race.demote(Weakness::HostFunction);
    race
}

impl HostTouches {
    /// The host may have been told that this work is over.
    pub(crate) fn hear(&mut self, from: Epoch) {
        let known = self.heard.entry(from.timeline).or_default();
        *known = (*known).max(from.time);
    }

    /// Whether it may. What a launch leaves untold, later ones tell of.
    pub(crate) fn heard_of(&self, work: &Access) -> bool {
        let later = u64::from(work.exclusion.untold && work.site.node == 0);
        self.heard.get(&work.epoch.timeline).is_some_and(|time| *time >= work.epoch.time + later)
    }

    /// The host looked at bytes in which this work may leave a message.
    pub(crate) fn look_at(&mut self, from: Epoch) {
        self.is_blind |= self.looked_at.len() >= MOST;
        if !self.is_blind {
            self.looked_at.insert(from);
        }
    }

    /// This launch tells nobody anything, though its kernel can.
    pub(crate) fn tells_nobody(&mut self, launch: Epoch, node: u32) {
        if self.mute.len() >= MOST {
            self.mute.clear();
        }
        self.mute.insert((launch, node));
    }

    /// Whether that is known of it.
    pub(crate) fn is_mute(&self, launch: Epoch, node: u32) -> bool {
        self.mute.contains(&(launch, node))
    }

    /// From now on the host may look at anything unseen.
    pub(crate) fn lose_sight(&mut self) {
        self.is_blind = true;
    }

    /// Whether the host may have received a message of this work.
    pub(crate) fn has_looked_at(&self, from: Epoch) -> bool {
        self.is_blind || self.looked_at.contains(&from)
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
            Awaits::Yes => {
                let before = ordering.host_functions_before(race.previous.epoch);
                self.behind_functions(host_threads && func.is_none(), race, before)
            }
            Awaits::Maybe => Some(possible_behind_function(race)),
        }
    }

    /// The same, where the functions that have not returned are known. `later`: what their threads
    /// know decides it.
    pub(crate) fn behind_functions(&mut self, later: bool, race: Race, before: Vec<HostFuncId>) -> Option<Race> {
        if !later || before.contains(&HostFuncId::NONE) || self.deferred.len() >= MOST {
            return Some(possible_behind_function(race));
        }
        self.deferred.push((race, before));
        None
    }

    /// Whether an op was enqueued before a host function. What was enqueued later may come after
    /// the function.
    pub(crate) fn was_before(&self, func: HostFuncId, epoch: Epoch) -> bool {
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

    /// Whether a host function is pending or running.
    pub(crate) fn knows_function(&self, func: HostFuncId) -> bool {
        self.functions.contains_key(&func)
    }

    /// The node of a graph that a host function is.
    pub(crate) fn node(&self, func: HostFuncId) -> Option<(GraphExecId, u32)> {
        self.nodes.get(&func).copied()
    }
}
