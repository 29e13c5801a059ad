//! The word of a barrier object (`mbarrier`), which programs treat as opaque, and who polls it in
//! vain. Executes nothing.
//!
//! From bit 0: arrivals expected in each phase (20 bits), arrivals still missing (20 bits), bytes
//! still missing (22 bits, signed), and the phase's parity in bit 62.

use std::time::{Duration, Instant};

pub(crate) const COUNT: u64 = (1 << 20) - 1;
pub(crate) const PHASE: u64 = 1 << 62;

/// What an object holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) expected: u64,
    pub(crate) missing: u64,
    pub(crate) bytes: i64,
    pub(crate) phase: u64,
}

impl State {
    pub(crate) fn unpack(word: u64) -> State {
        let bytes = (word << 2) as i64 >> 42;
        State { expected: word & COUNT, missing: word >> 20 & COUNT, bytes, phase: word & PHASE }
    }

    /// Packs it; a phase for which nothing is missing ends. Whether one has.
    pub(crate) fn pack(self) -> (u64, bool) {
        let mut state = self;
        let turns = state.missing == 0 && state.bytes == 0;
        if turns {
            state.missing = state.expected;
            state.phase ^= PHASE;
        }
        (state.pack_open(), turns)
    }

    /// Packs without ending the phase: expecting bytes completes nothing.
    pub(crate) fn pack_open(self) -> u64 {
        self.expected | self.missing << 20 | (self.bytes as u64 & ((1 << 22) - 1)) << 40 | self.phase
    }

    /// What the object at an address of the host holds.
    ///
    /// # Safety
    /// A word is there, and one thread runs all who use it.
    pub(crate) unsafe fn at(at: u64) -> State {
        // SAFETY: the caller's promise.
        State::unpack(unsafe { std::ptr::read(at as *const u64) })
    }

    /// Changes that object. Whether a phase has ended.
    ///
    /// # Safety
    /// As of [`State::at`].
    pub(crate) unsafe fn change(at: u64, change: impl FnOnce(&mut State)) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let mut state = State::at(at);
            change(&mut state);
            let (word, turns) = state.pack();
            std::ptr::write(at as *mut u64, word);
            turns
        }
    }
}

/// Polls in vain of a warp, of one phase after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vain {
    /// The lanes whose last poll was one.
    pub(crate) lanes: u32,
    polls: u32,
    /// What the objects of the cluster had been through then.
    changes: u64,
    since: Option<Instant>,
    /// The word that was polled last, and where in the code.
    pub(crate) at: u64,
    pub(crate) pc: u32,
    /// There was one in this turn.
    pub(crate) now: bool,
}

impl Vain {
    /// Lanes poll the word there in vain. `changes`: how often the objects of the cluster have been
    /// changed so far.
    pub(crate) fn poll(&mut self, lanes: u32, at: u64, pc: u32, changes: u64) {
        if self.changes != changes {
            *self = Vain { changes, ..Vain::default() };
        }
        self.lanes |= lanes;
        self.polls = self.polls.saturating_add(1);
        // The time is read once only.
        if self.polls == 1 << 12 {
            self.since = Some(Instant::now());
        }
        (self.at, self.pc, self.now) = (at, pc, true);
    }

    /// Nothing has changed for so long that nobody is left who could complete the phase, if all
    /// others wait as well.
    pub(crate) fn is_long(&self) -> bool {
        self.now && self.since.is_some_and(|since| since.elapsed() >= PATIENCE)
    }
}

/// How long nothing may happen to the objects of a cluster whose threads all wait for one.
const PATIENCE: Duration = Duration::from_secs(2);
