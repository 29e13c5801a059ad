//! Values that a kernel stores before it is done, and streams that wait for them.
//!
//! Owns the races with what is behind such a wait. A wait for a value that no stream writes is
//! *open*: what is behind it counts as ordered behind everything, because which work ends the wait
//! is not known. Where only one launch can have stored the word, and the simulated GPU has measured
//! what that launch releases, the rest of it is known not to be ordered: results that it stores
//! behind the value, or that another block stores.
//!
//! A pair is judged once the host has seen the op behind the wait finish: until then a later launch
//! may store the word, and be what the stream has waited for. It is `likely` at most, because what
//! writes to device memory beside CUDA (a network card, a mapping for the host) is not seen. A
//! launch that loads or updates words atomically may wait for the stream in turn, and access the
//! bytes behind that: it is left out. So are words that the host or other processes can write,
//! nodes of graphs and launches that were not measured.

use super::state::ProcessState;
use detect::confidence::Confidence;
use detect::memory::allocations::{sole_writer, untold_pairs};
use detect::race::Race;
use smallvec::SmallVec;
use std::collections::VecDeque;
use trace::{Epoch, Op};

/// Launches, and pairs, remembered at most.
const MOST: usize = 256;

/// A pair that is judged later.
#[derive(Debug)]
struct Pending {
    race: Race,
    words: SmallVec<[(u64, u8); 2]>,
    /// How far each timeline was at the op behind the wait.
    times: Vec<u64>,
}

/// What is remembered of one process.
#[derive(Debug, Default)]
pub(crate) struct EarlyValues {
    /// Measured launches with accesses that they tell nobody of.
    untold: VecDeque<Epoch>,
    pending: Vec<Pending>,
    /// What the host had learned when it was asked last.
    changes: u64,
}

impl EarlyValues {
    /// A launch tells nobody of some of its accesses.
    pub(crate) fn note(&mut self, launch: Epoch) {
        if self.untold.len() >= MOST {
            self.untold.pop_front();
        }
        self.untold.push_back(launch);
    }

    /// Whether there is nothing to look for.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.untold.is_empty()
    }
}

/// The op applied last: which of its accesses are behind a wait that orders less than the launch
/// which ends it.
#[cold]
pub(crate) fn look(state: &mut ProcessState, op: &Op<'_>, epoch: Epoch) {
    settle(state, false);
    if matches!(op, Op::WaitValue { .. }) || state.early_values.pending.len() >= MOST {
        return;
    }
    let words: SmallVec<[(u64, u8); 2]> = state.ordering.awaited_words(epoch.timeline).collect();
    let Some(&first) = words.first() else { return };
    let ordering = &state.ordering;
    let writer = |word| sole_writer(&state.memory, word, |epoch| ordering.host_saw(epoch));
    let Some(launch) = writer(first).filter(|launch| state.early_values.untold.contains(launch)) else { return };
    // Behind two waits it comes after both words, whoever stores the other one.
    if words.iter().any(|word| writer(*word) != Some(launch)) {
        return;
    }
    if ordering.view(epoch, None).clock().covers_without_waits(launch) {
        return;
    }
    let times = ordering.times();
    for (previous, access) in untold_pairs(&state.memory, launch, epoch) {
        if let Some(mut race) = Race::judge(&previous, &access, false) {
            race.confidence = race.confidence.min(Confidence::Likely);
            state.early_values.pending.push(Pending { race, words: words.clone(), times: times.clone() });
        }
    }
}

/// Judges the pairs whose wait is over. `all`: the program has ended.
pub(crate) fn settle(state: &mut ProcessState, all: bool) {
    let changes = state.ordering.host_changes();
    if state.early_values.pending.is_empty() || (!all && state.early_values.changes == changes) {
        return;
    }
    state.early_values.changes = changes;
    let pending = std::mem::take(&mut state.early_values.pending);
    let (over, open): (Vec<_>, Vec<_>) =
        pending.into_iter().partition(|pair| all || state.ordering.host_saw(pair.race.access.epoch));
    state.early_values.pending = open;
    for Pending { race, words, times } in over {
        let was_enqueued = |epoch: Epoch| times.get(epoch.timeline.0 as usize).is_some_and(|upto| epoch.time <= *upto);
        let is_still_sole = |word| {
            let others = |epoch: Epoch| was_enqueued(epoch) && epoch != race.previous.epoch;
            sole_writer(&state.memory, word, others) == Some(race.previous.epoch)
        };
        if words.iter().all(|word| is_still_sole(*word)) {
            state.races.push(race);
        }
    }
}
