//! Barriers that cooperative groups keep in memory of the system's: that of a grid, in the
//! workspace of a cooperative launch, and those of tiles of several warps, in the shared memory
//! that is kept of each block. Their threads poll a word. Owns when a warp polls in vain; whether
//! anybody is left who could end that is the grid's matter.
//!
//! Only threads of the launch write that memory. So where nobody has changed it for long, and all
//! threads that are left poll it or wait at barriers, they do so for ever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often memory of the system's was changed.
#[derive(Debug, Default)]
pub(crate) struct Changes(AtomicU64);

impl Changes {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long nothing may change.
const PATIENCE: Duration = Duration::from_secs(2);

/// Polls that make a round. Each lane that polls does so in every round; one that has read its
/// word once and gone on does not.
const ROUND: u32 = 1 << 12;

/// Rounds behind which nobody is left of those who have read their word once.
const ROUNDS: u32 = 4;

/// Polls of a warp.
#[derive(Debug, Clone, Default)]
pub(crate) struct Polls {
    /// Lanes of the round, and of the last whole one.
    these: u32,
    lanes: u32,
    count: u32,
    rounds: u32,
    changes: u64,
    /// When the first round was over.
    since: Option<Instant>,
    /// Where in the code the last one was.
    pub(crate) pc: u32,
    /// There was one in this turn.
    pub(crate) now: bool,
}

impl Polls {
    /// Lanes look whether a barrier is over.
    pub(crate) fn add(&mut self, lanes: u32, pc: u32, changes: u64) {
        if self.changes != changes {
            *self = Polls { changes, ..Polls::default() };
        }
        (self.pc, self.now) = (pc, true);
        self.these |= lanes;
        self.count += 1;
        if self.count == ROUND {
            (self.lanes, self.these, self.count) = (self.these, 0, 0);
            self.rounds = self.rounds.saturating_add(1);
            // The time is read once only.
            self.since = self.since.or_else(|| Some(Instant::now()));
        }
    }

    /// The lanes that poll.
    pub(crate) fn lanes(&self) -> u32 {
        if self.now { self.lanes } else { 0 }
    }

    /// The lanes that have polled since so many changes, and in vain.
    pub(crate) fn lanes_since(&self, changes: u64) -> u32 {
        if self.changes == changes { self.lanes() } else { 0 }
    }

    /// Nothing has changed for long, and all groups of lanes have had their turns.
    pub(crate) fn is_long(&self) -> bool {
        self.now && self.rounds >= ROUNDS && self.since.is_some_and(|since| since.elapsed() >= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_gone_on_polls_no_more() {
        let mut polls = Polls::default();
        polls.add(0b01, 7, 3);
        for _ in 0..4 * ROUND {
            polls.add(0b10, 8, 3);
        }
        assert_eq!((polls.lanes_since(3), polls.lanes_since(4)), (0b10, 0));
        assert_eq!((polls.lanes(), polls.pc, polls.is_long()), (0b10, 8, false));
        polls.since = polls.since.and_then(|since| since.checked_sub(PATIENCE));
        assert!(polls.is_long());
        polls.now = false;
        assert_eq!((polls.lanes(), polls.is_long()), (0, false), "it computes");
        polls.add(0b10, 8, 4);
        assert_eq!((polls.lanes(), polls.is_long()), (0, false), "somebody has come");
    }
}
