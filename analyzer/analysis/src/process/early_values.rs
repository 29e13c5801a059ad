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
//! launch that loads words with an order may wait for the stream in turn, and access the bytes
//! behind that: so nothing that comes after the op may have written such a word. What is enqueued
//! later counts as after it, and a pair is judged when the host has seen that launch end, too: by
//! then all that it can have waited for is known. A launch that updates words is left out. So are
//! words that the host or other processes can write, nodes of graphs and launches that were not
//! measured.

use super::state::ProcessState;
use detect::confidence::Confidence;
use detect::launches::effects::Effect;
use detect::memory::allocations::{sole_writer, untold_pairs, writers};
use detect::memory::{AccessKind, Cause};
use detect::race::Race;
use smallvec::SmallVec;
use std::collections::VecDeque;
use trace::{Epoch, Op};

/// Launches, and pairs, remembered at most.
const MOST: usize = 256;

/// Words that one launch loads with an order, at most: a launch with more is left out.
const MOST_HEARD: usize = 8;

/// Their bytes.
type Heard = SmallVec<[(u64, u8); 2]>;

/// The words that a launch loads with an order. `None`: they are not known, or are too many, or it
/// updates words.
pub(crate) fn heard(effects: &[Effect]) -> Option<Heard> {
    let mut words = Heard::new();
    for effect in effects {
        match effect.kind {
            AccessKind::Atomic => return None,
            AccessKind::AtomicRead => {
                let (from, end) = effect.bounds()?;
                let width = u8::try_from(end.checked_sub(from)?).ok()?;
                words.push((from, width));
            }
            _ => {}
        }
    }
    (words.len() <= MOST_HEARD).then_some(words)
}

/// A pair that is judged later.
#[derive(Debug)]
struct Pending {
    race: Race,
    words: SmallVec<[(u64, u8); 2]>,
    /// What the launch may have waited for.
    heard: Heard,
    /// How far each timeline was at the op behind the wait.
    times: Vec<u64>,
}

/// What is remembered of one process.
#[derive(Debug, Default)]
pub(crate) struct EarlyValues {
    /// Measured launches with accesses that they tell nobody of.
    untold: VecDeque<(Epoch, Heard)>,
    pending: Vec<Pending>,
    /// What the host had learned when it was asked last.
    changes: u64,
}

impl EarlyValues {
    /// A launch tells nobody of some of its accesses. `heard`: the words that it loads with an
    /// order.
    pub(crate) fn note(&mut self, launch: Epoch, heard: Heard) {
        if self.untold.len() >= MOST {
            self.untold.pop_front();
        }
        self.untold.push_back((launch, heard));
    }

    fn heard_by(&self, launch: Epoch) -> Option<&Heard> {
        self.untold.iter().find(|(known, _)| *known == launch).map(|(_, heard)| heard)
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
    let Some(launch) = writer(first) else { return };
    let Some(heard) = state.early_values.heard_by(launch) else { return };
    // Behind two waits it comes after both words, whoever stores the other one.
    if words.iter().any(|word| writer(*word) != Some(launch)) {
        return;
    }
    if ordering.view(epoch, None).clock().covers_without_waits(launch) {
        return;
    }
    // What has written such a word so far was not behind this op, unless it waits for memory, too.
    let is_past = |(by, cause)| {
        by == launch
            || ordering.host_saw(by)
            || (cause != Cause::Kernel && ordering.awaited_words(by.timeline).next().is_none())
    };
    let are_past = |word: &(u64, u8)| writers(&state.memory, *word).is_some_and(|all| all.into_iter().all(is_past));
    if !heard.iter().all(are_past) {
        return;
    }
    let heard = heard.clone();
    let times = ordering.times();
    for (previous, access) in untold_pairs(&state.memory, launch, epoch) {
        if let Some(mut race) = Race::judge(&previous, &access, false) {
            race.confidence = race.confidence.min(Confidence::Likely);
            let (words, heard, times) = (words.clone(), heard.clone(), times.clone());
            state.early_values.pending.push(Pending { race, words, heard, times });
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
    let (over, open): (Vec<_>, Vec<_>) = pending.into_iter().partition(|pair| {
        let saw = |epoch| state.ordering.host_saw(epoch);
        all || (saw(pair.race.access.epoch) && (pair.heard.is_empty() || saw(pair.race.previous.epoch)))
    });
    state.early_values.pending = open;
    for Pending { race, words, heard, times } in over {
        let was_enqueued = |epoch: Epoch| times.get(epoch.timeline.0 as usize).is_some_and(|upto| epoch.time <= *upto);
        let is_still_sole = |word| {
            let others = |epoch: Epoch| was_enqueued(epoch) && epoch != race.previous.epoch;
            sole_writer(&state.memory, word, others) == Some(race.previous.epoch)
        };
        let is_early = |(by, _)| by == race.previous.epoch || was_enqueued(by);
        let has_not_heard =
            |word: &(u64, u8)| writers(&state.memory, *word).is_some_and(|all| all.into_iter().all(is_early));
        if words.iter().all(|word| is_still_sole(*word)) && heard.iter().all(has_not_heard) {
            state.races.push(race);
        }
    }
}
