//! Kernels of PyTorch's symmetric memory that signal to each other: what is taken in which order.
//!
//! Owns when a process has to wait for the messages of others. A kernel may be launched long before
//! the one whose signal it waits for, and yet it comes after that one. So its messages, and those
//! behind it, are held back until the other process has come so far ([`crate::ipc::queue`]): what
//! comes first is compared first. PyTorch's kernels that access memory of peers do so between
//! signals at their start and at their end ([`crate::ipc::flags`] has the words). So of a kernel
//!
//! 1. its signals are told,
//! 2. those that it waits for are awaited,
//! 3. its own accesses are compared,
//! 4. its end is told,
//! 5. the ends of the kernels are awaited whose signals it has got.
//!
//! What two such kernels access themselves counts as ordered. A signal that never comes, because
//! its process is not checked or has failed, holds nothing back in the end (`Exchange::next`): what
//! is behind the kernel that waits for it is possible.

use order::ClockSnapshot;
use rustc_hash::FxHashSet;

use super::exchange::Exchange;
use super::flags::PadWord;
use super::queue::Awaited;
use super::visibility::{Edge, Finished};
use detect::memory::AllocationId;
use trace::Epoch;

/// Words of pads: their memory, and the places there.
pub(crate) type Words = Vec<(AllocationId, u64)>;

/// A step of a kernel that signals.
pub(crate) enum Signals {
    /// It sets the words that are in pads of others, behind what a clock covers.
    Sets { words: Words, epoch: Epoch, clock: ClockSnapshot },
    /// It waits for those that are in the pad of its own process.
    Awaits { words: Words, epoch: Epoch },
    /// Its accesses are told.
    Ends { epoch: Epoch },
    /// It waits for the ends of those that it has got signals of.
    AwaitsEnds { epoch: Epoch },
}

impl Signals {
    /// The kernel.
    pub(super) fn kernel(&self) -> Epoch {
        match *self {
            Signals::Sets { epoch, .. }
            | Signals::Awaits { epoch, .. }
            | Signals::Ends { epoch }
            | Signals::AwaitsEnds { epoch } => epoch,
        }
    }
}

/// A word: the memory object, the place there, and whether that is the process's own.
pub(super) type Word = (usize, u64, bool);

impl Exchange {
    /// What a step of a kernel waits for.
    pub(super) fn awaited_by(&self, member: u32, step: &Signals) -> Option<Awaited> {
        match step {
            Signals::Awaits { words, .. } => {
                let known = self.words(member, words).unwrap_or_default();
                Some(Awaited::Signals(known.into_iter().filter(|(.., is_own)| *is_own).collect()))
            }
            Signals::AwaitsEnds { epoch } => Some(Awaited::Ends(*epoch)),
            Signals::Sets { .. } | Signals::Ends { .. } => None,
        }
    }

    /// Whether others have not told yet what a process waits for.
    pub(super) fn is_awaited(&self, member: u32, on: &Awaited) -> bool {
        match on {
            Awaited::Meeting(key) => self.meetings.is_awaited(key, member),
            Awaited::Signals(words) => {
                let has_signal =
                    |(object, at, _): &Word| self.objects[*object].pads.get(at).is_some_and(PadWord::has_signal);
                !self.signals_missed && !words.iter().all(has_signal)
            }
            Awaited::Value(object, at, word) => {
                !self.objects[*object].values.get(at).is_some_and(|values| values.is_answered(*word))
            }
            Awaited::Ends(kernel) => {
                let is_on = |(process, op): &(u32, Epoch)| self.peers[*process as usize].signalling.contains(op);
                self.peers[member as usize].partners.get(kernel).is_some_and(|partners| partners.iter().any(is_on))
            }
        }
    }

    /// Takes a step of a kernel in.
    pub(super) fn signals(&mut self, member: u32, time: u64, signals: Signals) {
        match signals {
            Signals::Sets { words, epoch, clock } => {
                let Some(words) = self.words(member, &words) else {
                    self.signals_missed = true;
                    return;
                };
                self.peers[member as usize].signalling.insert(epoch);
                let by = Finished { process: member, clock, op: Some(epoch), time };
                for (object, at, _) in words.into_iter().filter(|(.., is_own)| !is_own) {
                    let met = self.pad(object, at).and_then(|word| word.signal(by.clone()));
                    self.met(met);
                }
            }
            Signals::Awaits { words, epoch } => {
                let Some(words) = self.words(member, &words) else { return };
                let own: Vec<Word> = words.into_iter().filter(|(.., is_own)| *is_own).collect();
                self.peers[member as usize].waits.waits_for_signals(epoch, own.len());
                for (object, at, _) in own {
                    let met = self.pad(object, at).and_then(|word| word.wait(member, epoch));
                    self.met(met);
                }
            }
            Signals::Ends { epoch } => drop(self.peers[member as usize].signalling.remove(&epoch)),
            Signals::AwaitsEnds { epoch } => drop(self.peers[member as usize].partners.remove(&epoch)),
        }
    }

    /// The words that a kernel of a process updates. The process's own word in its own pad is left
    /// out: PyTorch keeps a word for each sender at one place in all pads, and some of its kernels
    /// signal to themselves, too. `None`: signals were missed, or nothing is known of the owner of
    /// a pad, and so of who waits.
    fn words(&self, member: u32, words: &Words) -> Option<Vec<Word>> {
        let of = |(root, at): &(AllocationId, u64)| {
            let (object, shift) = *self.peers[member as usize].roots.get(root)?;
            let (owner, _) = self.objects[object].owner?;
            Some((object, at.wrapping_add(shift), owner == member))
        };
        let known = words.iter().map(of).collect::<Option<Vec<Word>>>().filter(|_| !self.signals_missed)?;
        let sent: FxHashSet<u64> = known.iter().filter(|(.., is_own)| !is_own).map(|(_, at, _)| *at).collect();
        Some(known.into_iter().filter(|(_, at, is_own)| !is_own || !sent.contains(at)).collect())
    }

    /// A word of a pad. `None`: its signals can not be counted any longer, nor any others.
    fn pad(&mut self, object: usize, at: u64) -> Option<&mut PadWord> {
        let word = self.objects[object].pads.entry(at).or_default();
        self.signals_missed |= word.is_full();
        (!word.is_full()).then_some(word)
    }

    /// A signal and a wait for it are a pair. Each block of a kernel has a word of its own, and
    /// one of them tells what all do.
    fn met(&mut self, met: Option<Edge>) {
        let Some(edge) = met else { return };
        let peer = &mut self.peers[edge.to as usize];
        peer.waits.sent(edge.epoch);
        let from = edge.from.op.map(|op| (edge.from.process, op));
        let partners = peer.partners.entry(edge.epoch).or_default();
        let is_new = from.is_some_and(|from| !partners.contains(&from));
        partners.extend(from.filter(|_| is_new));
        if is_new {
            self.order.link(edge);
        }
    }
}
