//! Flags in memory by which processes may order each other: who waits for one, and which values
//! streams write and wait for.
//!
//! Owns two things. *Kernels that wait*: which accesses of a process come after such a kernel, or
//! after its look at the flag. Who sets the flag, and with which value, is not known from the code,
//! so what only such a kernel could order is possible only. *Signal pads* of PyTorch's symmetric
//! memory are the exception: of measured launches the words are known, one process sets a word and
//! the one whose memory it is waits for it and clears it, so the signals of a word and the waits
//! for it alternate, and the n-th wait is for the n-th signal. A kernel of PyTorch's that signals
//! at its start and at its end counts once, as its partner does. *Values of streams*
//! (`cuStreamWriteValue`, `cuStreamWaitValue`): a wait comes after the writes whose value ends it.
//! Where several may have, it counts as behind all of them: that may hide a race and invents none.
//! Where one process counts a word up, the first of them is enough to end the wait, and it comes
//! after that one only.

use std::collections::VecDeque;

use order::{AwaitedWord, ClockSnapshot};
use rustc_hash::FxHashMap;
use trace::{Epoch, TimelineId};

use super::visibility::{Edge, Finished};
use detect::memory::{Access, Lock};

/// Kernels that wait, remembered of each timeline.
const MOST_KERNELS: usize = 16;

/// Writes, and open waits, remembered of each word.
const MOST_VALUES: usize = 64;

/// Signals of one word without a wait, or waits without a signal.
const MOST_SIGNALS: usize = 1 << 14;

#[derive(Debug)]
struct KernelWait {
    epoch: Epoch,
    /// It may wait in ways that are not followed, so anything of its launch may be behind that.
    anywhere: bool,
    /// When a host had seen it finish.
    over: u64,
    /// Of a kernel that waits for signals in pads: for how many whose sender is not known yet.
    /// `None`: it waits for others, too.
    unsent: Option<usize>,
}

/// The kernels of one process that wait for flags.
#[derive(Debug, Default)]
pub(crate) struct KernelWaits(FxHashMap<TimelineId, VecDeque<KernelWait>>);

impl KernelWaits {
    pub(crate) fn note(&mut self, epoch: Epoch, anywhere: bool) {
        let of = self.0.entry(epoch.timeline).or_default();
        if of.len() >= MOST_KERNELS {
            of.pop_front();
        }
        of.push_back(KernelWait { epoch, anywhere, over: u64::MAX, unsent: None });
    }

    fn at(&mut self, epoch: Epoch) -> Option<&mut KernelWait> {
        self.0.get_mut(&epoch.timeline)?.iter_mut().rev().find(|wait| wait.epoch == epoch)
    }

    /// All that a kernel waits for are so many signals in pads.
    pub(crate) fn waits_for_signals(&mut self, epoch: Epoch, count: usize) {
        if let Some(wait) = self.at(epoch) {
            wait.unsent = Some(count);
        }
    }

    /// The sender of one of them is known.
    pub(crate) fn sent(&mut self, epoch: Epoch) {
        if let Some(unsent) = self.at(epoch).and_then(|wait| wait.unsent.as_mut()) {
            *unsent = unsent.saturating_sub(1);
        }
    }

    /// The host of the process has seen finish what this clock covers.
    pub(crate) fn seen(&mut self, clock: &ClockSnapshot, time: u64) {
        let open = self.0.values_mut().flatten().filter(|wait| wait.over == u64::MAX);
        open.filter(|wait| clock.clock().covers(wait.epoch)).for_each(|wait| wait.over = time);
    }

    /// Until when the flags may have been set that an access of the process is behind; 0: it is
    /// behind none. `epoch`: the process's own. `clock`: that of the access, if it is known.
    pub(crate) fn open_until(&self, access: &Access, epoch: Epoch, clock: Option<&ClockSnapshot>) -> u64 {
        let behind = |wait: &&KernelWait| {
            // What all the senders are behind is in order, and nothing else is.
            if wait.unsent == Some(0) {
                return false;
            }
            if wait.epoch == epoch {
                // What of a graph's launch comes after which of its kernels is not told here.
                let awaits = access.exclusion.lock.is_some_and(Lock::awaits);
                return wait.anywhere || awaits || access.site.node != 0;
            }
            let own = wait.epoch.timeline == epoch.timeline && wait.epoch.time < epoch.time;
            own || clock.is_some_and(|clock| clock.clock().covers(wait.epoch))
        };
        self.0.values().flatten().filter(behind).map(|wait| wait.over).max().unwrap_or(0)
    }
}

/// The signals of one word of a pad, and the waits for them, that have no partner yet.
#[derive(Debug, Default)]
pub(crate) struct PadWord {
    signals: VecDeque<Finished>,
    waits: VecDeque<(u32, Epoch)>,
}

impl PadWord {
    /// A kernel of a process sets the word.
    pub(crate) fn signal(&mut self, by: Finished) -> Option<Edge> {
        self.signals.push_back(by);
        self.meet()
    }

    /// A kernel of the process whose pad it is waits for the word.
    pub(crate) fn wait(&mut self, by: u32, epoch: Epoch) -> Option<Edge> {
        self.waits.push_back((by, epoch));
        self.meet()
    }

    /// Whether a signal is there for the next wait.
    pub(crate) fn has_signal(&self) -> bool {
        !self.signals.is_empty()
    }

    /// Whether there are too many without a partner to go on counting.
    pub(crate) fn is_full(&self) -> bool {
        self.signals.len().max(self.waits.len()) >= MOST_SIGNALS
    }

    fn meet(&mut self) -> Option<Edge> {
        if self.signals.is_empty() || self.waits.is_empty() {
            return None;
        }
        let (from, (to, epoch)) = (self.signals.pop_front()?, self.waits.pop_front()?);
        Some(Edge { from, to, epoch })
    }
}

/// A wait for a value that a later write may have ended.
#[derive(Debug)]
struct OpenWait {
    by: u32,
    epoch: Epoch,
    word: AwaitedWord,
    /// It may have been ended before: by a process that counts the word up, and has come so far.
    counted: Option<(u32, u64)>,
}

#[derive(Debug)]
struct Written {
    width: u8,
    value: u64,
    by: Finished,
}

/// The values of one word that streams write and wait for.
#[derive(Debug, Default)]
pub(crate) struct WordValues {
    written: VecDeque<Written>,
    open: VecDeque<OpenWait>,
    /// How many values streams have written.
    writes: u64,
}

impl WordValues {
    /// A stream writes a value behind what has finished there: which waits it ends.
    pub(crate) fn write(&mut self, by: Finished, (width, value): (u8, u64)) -> Vec<Edge> {
        let ends = |wait: &OpenWait| wait.word.width() == width && wait.word.is_met_by(value);
        let (ended, open): (VecDeque<OpenWait>, VecDeque<OpenWait>) =
            std::mem::take(&mut self.open).into_iter().partition(ends);
        self.open = open;
        let counts_on = |wait: &OpenWait| wait.counted.is_some_and(|(of, upto)| of == by.process && upto < value);
        let behind = ended.into_iter().filter(|wait| !counts_on(wait));
        let edges = behind.map(|OpenWait { by: to, epoch, .. }| Edge { from: by.clone(), to, epoch }).collect();
        self.writes += 1;
        push(&mut self.written, Written { width, value, by });
        edges
    }

    /// Whether one write is enough to end this wait, as far as streams go: no other was ever made,
    /// or one process counts the word up.
    pub(crate) fn is_answered_by_one(&self, word: AwaitedWord) -> bool {
        let is_all = self.writes == self.written.len() as u64;
        is_all && self.counted(&self.ending(word)).is_some()
    }

    /// Whether a value has been written that ends this wait.
    pub(crate) fn is_answered(&self, word: AwaitedWord) -> bool {
        !self.ending(word).is_empty()
    }

    /// The writes whose value ends a wait.
    fn ending(&self, word: AwaitedWord) -> Vec<&Written> {
        self.written.iter().filter(|w| w.width == word.width() && word.is_met_by(w.value)).collect()
    }

    /// A stream of a process waits: behind which writes it comes.
    pub(crate) fn wait(&mut self, by: u32, word: AwaitedWord, epoch: Epoch) -> Vec<Edge> {
        let mut ending = self.ending(word);
        let counted = self.counted(&ending);
        if counted.is_some() {
            ending.truncate(1);
        }
        let edges = ending.iter().map(|w| Edge { from: w.by.clone(), to: by, epoch }).collect();
        // A value of an earlier round may still be there, and a later one come to be waited for.
        push(&mut self.open, OpenWait { by, epoch, word, counted });
        edges
    }

    /// The process that has counted the word up by these writes, which end a wait, and how far. The
    /// first of them is enough. `None`: several processes have written it, or other values came in
    /// between.
    fn counted(&self, ending: &[&Written]) -> Option<(u32, u64)> {
        let (first, last) = (ending.first()?, ending.last()?);
        let since = self.written.iter().skip_while(|w| !std::ptr::eq(*w, *first)).count();
        let is_step = |pair: &[&Written]| pair[0].by.process == pair[1].by.process && pair[0].value < pair[1].value;
        (since == ending.len() && ending.windows(2).all(is_step)).then_some((last.by.process, last.value))
    }
}

fn push<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() >= MOST_VALUES {
        all.pop_front();
    }
    all.push_back(one);
}
