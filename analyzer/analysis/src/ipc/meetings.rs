//! Processes that come together (barriers of NVSHMEM on streams): which of them is behind what.
//!
//! Owns the arrivals of each process at its meetings, by the name that it gives them
//! ([`trace::MEETING_KEY`]). The n-th wait of a process for another is for the n-th arrival of
//! that, which may come later: until then what is behind the wait is held back
//! ([`crate::ipc::queue`]). Where two processes give themselves one name (two programs of one kind
//! in one run), nobody knows who met whom: what is behind such a wait is possible.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::visibility::Finished;

/// Arrivals that are remembered of each name. When a process comes to a meeting, those that it has
/// met there have gone on from the one before the last.
const ARRIVALS: usize = 4;

/// Whether the name is one of a meeting.
pub(super) fn is_of(key: &[u8]) -> bool {
    key.starts_with(trace::MEETING_KEY)
}

#[derive(Debug, Default)]
struct Arrivals {
    /// The process; `None`: none has come yet.
    by: Option<u32>,
    /// Another process has arrived by the same name.
    is_ambiguous: bool,
    /// How many are no longer remembered.
    past: u64,
    latest: VecDeque<Finished>,
    /// How often each process has waited for them.
    waits: FxHashMap<u32, u64>,
}

/// All meetings of a run.
#[derive(Debug, Default)]
pub(crate) struct Meetings(FxHashMap<Arc<[u8]>, Arrivals>);

impl Meetings {
    /// A process arrives.
    pub(super) fn arrives(&mut self, key: Arc<[u8]>, by: Finished) {
        let arrivals = self.0.entry(key).or_default();
        arrivals.is_ambiguous |= arrivals.by.is_some_and(|other| other != by.process);
        arrivals.by = Some(by.process);
        arrivals.latest.push_back(by);
        if arrivals.latest.len() > ARRIVALS {
            arrivals.latest.pop_front();
            arrivals.past += 1;
        }
    }

    /// Whether the one that a process waits for next has not arrived yet.
    pub(super) fn is_awaited(&self, key: &[u8], by: u32) -> bool {
        let Some(of) = self.0.get(key) else { return true };
        let number = of.waits.get(&by).copied().unwrap_or(0);
        !of.is_ambiguous && number >= of.past + of.latest.len() as u64
    }

    /// A process goes on: what it is behind. `None`: that is not known.
    pub(super) fn goes_on(&mut self, key: &Arc<[u8]>, by: u32) -> Option<Finished> {
        let of = self.0.entry(key.clone()).or_default();
        let waits = of.waits.entry(by).or_default();
        let number = *waits;
        *waits += 1;
        let past = of.past;
        if of.is_ambiguous {
            return None;
        }
        of.latest.get(usize::try_from(number.checked_sub(past)?).ok()?).cloned()
    }
}
