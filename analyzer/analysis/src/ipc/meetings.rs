//! Processes that come together (barriers of NVSHMEM on streams): which of them is behind what.
//!
//! Owns the arrivals of each process at its meetings, by the name that it gives them
//! ([`trace::MEETING_KEY`]). The n-th wait of a process for another is for the n-th arrival of
//! that, which may come later: until then the messages of the process that waits are held back
//! (`Exchange::next`), unless one of them tells others of something that is over. Where two
//! processes give themselves one name (two programs of one kind in one run), nobody knows who met
//! whom: what is behind such a wait is possible.

use std::collections::VecDeque;
use std::sync::Arc;

use order::ClockSnapshot;
use rustc_hash::FxHashMap;

use super::visibility::Finished;

/// Arrivals that are remembered of each name. When a process comes to a meeting, those that it has
/// met there have gone on from the one before the last.
const ARRIVALS: usize = 4;

/// Whether the name is one of a meeting.
pub(super) fn is_of(key: &[u8]) -> bool {
    key.starts_with(trace::MEETING_KEY)
}

#[derive(Debug)]
struct Arrivals {
    by: u32,
    /// Another process has arrived by the same name.
    is_ambiguous: bool,
    /// How many are no longer remembered.
    past: u64,
    clocks: VecDeque<ClockSnapshot>,
}

/// All meetings of a run.
#[derive(Debug, Default)]
pub(crate) struct Meetings {
    arrivals: FxHashMap<Arc<[u8]>, Arrivals>,
    /// How often a process has waited for a name.
    waits: FxHashMap<(Arc<[u8]>, u32), u64>,
}

impl Meetings {
    /// A process arrives, behind what a clock covers.
    pub(super) fn arrives(&mut self, key: Arc<[u8]>, by: u32, clock: ClockSnapshot) {
        let first = || Arrivals { by, is_ambiguous: false, past: 0, clocks: VecDeque::new() };
        let arrivals = self.arrivals.entry(key).or_insert_with(first);
        arrivals.is_ambiguous |= arrivals.by != by;
        arrivals.clocks.push_back(clock);
        if arrivals.clocks.len() > ARRIVALS {
            arrivals.clocks.pop_front();
            arrivals.past += 1;
        }
    }

    /// Whether the one that a process waits for next has not arrived yet.
    pub(super) fn is_awaited(&self, key: &Arc<[u8]>, by: u32) -> bool {
        let number = self.waits.get(&(key.clone(), by)).copied().unwrap_or(0);
        let has_come = |of: &Arrivals| of.is_ambiguous || number < of.past + of.clocks.len() as u64;
        !self.arrivals.get(key).is_some_and(has_come)
    }

    /// A process goes on: what it is behind. `None`: that is not known.
    pub(super) fn goes_on(&mut self, key: &Arc<[u8]>, by: u32) -> Option<Finished> {
        let waits = self.waits.entry((key.clone(), by)).or_default();
        let number = *waits;
        *waits += 1;
        let arrivals = self.arrivals.get(key).filter(|of| !of.is_ambiguous)?;
        let clock = arrivals.clocks.get(usize::try_from(number.checked_sub(arrivals.past)?).ok()?)?;
        Some(Finished { process: arrivals.by, clock: clock.clone(), op: None })
    }
}
