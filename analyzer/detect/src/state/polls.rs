//! Kernels that wait for a flag in memory, and what is behind them.
//!
//! Owns which of two accesses of a race is behind a kernel that polls a flag
//! ([`kernels::FlagLoad`]) with an acquire, and may so have waited for the other one: a later
//! kernel of that one's stream, a write of a value or the host may set the flag (PTX ISA, "Memory
//! Consistency Model", "Causality order"; the end of a kernel is before the next one of its
//! stream). Who sets the flag is not looked for: the one that does may be launched last. Order
//! inside the kernel that polls is told by its code (`kernels`, `ranges/handovers.rs`).
//!
//! A kernel that also writes what it polls is left out: barriers of a grid and scans that look back
//! wait for other blocks of their own launch.

use std::collections::VecDeque;

use order::ClockRef;
use rustc_hash::FxHashMap;
use trace::{Epoch, KernelId, TimelineId};

use super::happens_before::Ordering;

/// Polls remembered of each timeline.
const MOST: usize = 16;

/// Pairs of which it is remembered which flag may order them.
const MAX_PAIRS: usize = 256;

/// A kernel that polls a flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Poll {
    /// Its launch.
    pub epoch: Epoch,
    /// The kernel.
    pub kernel: KernelId,
    /// The load, as accesses count.
    pub at: u32,
}

#[derive(Debug)]
struct Noted {
    poll: Poll,
    /// Once the host has seen the launch finish: how far all timelines were. What is enqueued later
    /// is nothing that it waited for.
    over: Option<Vec<u64>>,
}

/// The polls of one process.
#[derive(Debug, Default)]
pub struct Polls {
    noted: FxHashMap<TimelineId, VecDeque<Noted>>,
    /// What the host had learned when it was asked last.
    changes: u64,
    pairs: Vec<([Epoch; 2], Poll)>,
}

impl Polls {
    /// Whether no kernel has polled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// A launch polls.
    pub fn note(&mut self, poll: Poll) {
        let noted = self.noted.entry(poll.epoch.timeline).or_default();
        if noted.len() >= MOST {
            noted.pop_front();
        }
        noted.push_back(Noted { poll, over: None });
    }

    /// The host may have seen launches finish.
    #[cold]
    pub fn settle(&mut self, ordering: &Ordering) {
        let changes = ordering.host_changes();
        if self.changes == changes {
            return;
        }
        self.changes = changes;
        let open = self.noted.values_mut().flatten().filter(|noted| noted.over.is_none());
        for noted in open.filter(|noted| ordering.host_saw(noted.poll.epoch)) {
            noted.over = Some(ordering.times());
        }
    }

    /// The poll that one of two ops may be behind, and that may have waited for the other one.
    /// `clock`: that of the later op, which is the current one.
    pub fn between(&self, previous: Epoch, access: Epoch, clock: &ClockRef<'_>) -> Option<Poll> {
        let all = || self.noted.values().flatten();
        let behind = |poll: &Poll, epoch: Epoch| {
            let own = poll.epoch.timeline == epoch.timeline && epoch.time > poll.epoch.time;
            own || epoch == access && poll.epoch != access && clock.covers(poll.epoch)
        };
        let enqueued_before = |noted: &Noted, epoch: Epoch| {
            let upto = |over: &Vec<u64>| over.get(epoch.timeline.0 as usize).copied().unwrap_or(0);
            noted.over.as_ref().is_none_or(|over| epoch.time <= upto(over))
        };
        let orders = |noted: &&Noted, first: Epoch, second: Epoch| {
            behind(&noted.poll, second)
                && noted.poll.epoch != first
                && !behind(&noted.poll, first)
                && enqueued_before(noted, first)
        };
        let found = all().find(|noted| orders(noted, previous, access) || orders(noted, access, previous));
        found.map(|noted| noted.poll)
    }

    /// A flag may order these two.
    pub fn keep(&mut self, previous: Epoch, access: Epoch, poll: Poll) {
        if self.pairs.len() < MAX_PAIRS {
            self.pairs.push(([previous, access], poll));
        }
    }

    /// The poll that may order two ops.
    pub fn of(&self, previous: Epoch, access: Epoch) -> Option<Poll> {
        self.pairs.iter().find(|(pair, _)| *pair == [previous, access]).map(|(_, poll)| *poll)
    }
}
