//! The messages of one process that have not been compared, and those of them that are held back.
//!
//! Owns what waits for what. A stream may be far behind its host: what is behind a meeting, a wait
//! for a value or a kernel that waits for signals comes after what other processes have not told
//! yet, so it is held back until they have, and all else of the process goes on. News of it (a host
//! has seen other work end, a stream has recorded an event) may be what the other process needs
//! first. A host that has seen the end of what is held back proves that the wait is over: whoever
//! ended it is not known then. Does not know whether a wait is over ([`super::signals`]).

use order::{AwaitedWord, ClockSnapshot};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::Arc;
use trace::Epoch;

use super::exchange::Message;
use super::meetings;
use super::signals::{Signals, Word};
use detect::memory::AllocationId;

/// A message of a process.
pub(super) struct Sent {
    pub(super) time: u64,
    pub(super) message: Message,
    /// It came after later ones had been compared.
    pub(super) is_late: bool,
    /// It waits no longer, though nobody is known to have ended its wait.
    pub(super) is_given_up: bool,
}

/// What a wait is for.
pub(super) enum Awaited {
    /// The next arrival of this name.
    Meeting(Arc<[u8]>),
    /// Signals in these words of pads.
    Signals(Vec<Word>),
    /// The ends of the kernels that this one has got signals of.
    Ends(Epoch),
    /// A value in a word of shared memory: the object, and the place there.
    Value(usize, u64, AwaitedWord),
}

/// A wait that is not over.
pub(super) struct Block {
    op: Epoch,
    pub(super) on: Awaited,
}

impl Block {
    pub(super) fn new(op: Epoch, on: Awaited) -> Self {
        Self { op, on }
    }

    fn is_before(&self, op: Epoch) -> bool {
        self.op.timeline == op.timeline && self.op.time <= op.time
    }

    fn is_covered(&self, clock: &ClockSnapshot) -> bool {
        clock.clock().covers(self.op)
    }
}

/// See the file.
#[derive(Default)]
pub(super) struct MessageQueue {
    sent: VecDeque<Sent>,
    /// Older than what is sent, in order.
    held: VecDeque<Sent>,
    blocks: Vec<Block>,
    /// Memory that accesses among the held messages are to, kernels whose signals are among them,
    /// and the meetings that are awaited.
    roots: FxHashSet<AllocationId>,
    kernels: FxHashSet<Epoch>,
    meetings: FxHashSet<Arc<[u8]>>,
}

impl MessageQueue {
    pub(super) fn push(&mut self, time: u64, message: Message, is_late: bool) {
        self.sent.push_back(Sent { time, message, is_late, is_given_up: false });
    }

    /// The next message to look at.
    pub(super) fn first(&self) -> Option<&Sent> {
        self.sent.front()
    }

    pub(super) fn pop(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// When the oldest message was sent that has not been compared.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.held.front().or(self.sent.front()).map(|sent| sent.time)
    }

    /// When the oldest was sent that is held back.
    pub(super) fn oldest_held(&self) -> Option<u64> {
        self.held.front().map(|sent| sent.time)
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Holds the next message back. `block`: it is a wait that is not over.
    pub(super) fn hold(&mut self, block: Option<Block>) {
        let Some(sent) = self.sent.pop_front() else { return };
        match &sent.message {
            Message::Access { root, .. } => drop(self.roots.insert(*root)),
            Message::Signals(signals) => drop(self.kernels.insert(signals.kernel())),
            Message::Wait { key, .. } if meetings::is_of(key) => drop(self.meetings.insert(key.clone())),
            _ => {}
        }
        self.blocks.extend(block);
        self.held.push_back(sent);
    }

    /// Whether the next message is behind a wait that is not over.
    pub(super) fn is_behind(&self) -> bool {
        let Some(Sent { message, .. }) = self.sent.front() else { return false };
        if self.held.is_empty() {
            return false;
        }
        let before = |op: Epoch| self.blocks.iter().any(|block| block.is_before(op));
        let covered = |clock: &ClockSnapshot| self.blocks.iter().any(|block| block.is_covered(clock));
        match message {
            Message::Access { access, clock, .. } => before(access.epoch) || clock.as_ref().is_some_and(covered),
            Message::Record { clock, .. } | Message::WritesValue { clock, .. } => covered(clock),
            Message::Wait { key, epoch } => before(*epoch) || self.meetings.contains(key),
            Message::KernelWaits { epoch, .. } | Message::WaitsForValue { epoch, .. } => before(*epoch),
            Message::Signals(signals) => {
                let kernel = signals.kernel();
                let is_behind = matches!(signals, Signals::Sets { clock, .. } if covered(clock));
                is_behind || before(kernel) || self.kernels.contains(&kernel)
            }
            Message::Gone { root } => self.roots.contains(root),
            Message::End => true,
            Message::Memory { .. } | Message::HostWaited { .. } | Message::Host { .. } | Message::SignalsUnknown => {
                false
            }
        }
    }

    /// The host has seen end what this clock covers, which the next message tells: waits among that
    /// are over. Returns whether there are some.
    pub(super) fn gives_up_seen(&mut self) -> bool {
        let Some(Sent { message: Message::Host { clock }, .. }) = self.sent.front() else { return false };
        let clock = clock.clone();
        self.give_up(|block| block.is_covered(&clock))
    }

    /// A host has waited for an event, from this time on: where a record of that is held back, it
    /// is behind nothing any longer. Returns whether there was one.
    pub(super) fn gives_up_recorded(&mut self, event: &[u8], began: u64) -> bool {
        let is_of = |message: &Message| matches!(message, Message::Record { key, .. } if **key == *event);
        let of = |sent: &Sent| sent.time <= began && is_of(&sent.message);
        self.held.iter().any(of) && self.give_up(|_| true)
    }

    /// Nobody ends the first of the waits any more.
    pub(super) fn gives_up_first(&mut self) {
        let first = self.blocks.first().map(|block| block.op);
        self.give_up(|block| Some(block.op) == first);
    }

    fn give_up(&mut self, which: impl Fn(&Block) -> bool) -> bool {
        let ops: Vec<Epoch> = self.blocks.iter().filter(|block| which(block)).map(|block| block.op).collect();
        for sent in &mut self.held {
            let op = match &sent.message {
                Message::Wait { key, epoch } if meetings::is_of(key) => *epoch,
                Message::WaitsForValue { epoch, .. } => *epoch,
                Message::Signals(signals @ (Signals::Awaits { .. } | Signals::AwaitsEnds { .. })) => signals.kernel(),
                _ => continue,
            };
            sent.is_given_up |= ops.contains(&op);
        }
        if !ops.is_empty() {
            self.look_again();
        }
        !ops.is_empty()
    }

    /// Some wait is over: what is held back is looked at again.
    pub(super) fn look_again(&mut self) {
        self.held.append(&mut self.sent);
        std::mem::swap(&mut self.held, &mut self.sent);
        self.blocks.clear();
        self.roots.clear();
        self.kernels.clear();
        self.meetings.clear();
    }
}
