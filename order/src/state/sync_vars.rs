//! Values in memory as synchronisation variables: what streams wrote (`cuStreamWriteValue`) and
//! what streams wait for.
//!
//! Owns the writes seen at each address and the waits that none of them can have released. A write
//! releases, a wait acquires; which write a wait sees is the question:
//!
//! - Candidates are writes whose value satisfies the comparison and that were not overwritten by a
//!   write that is ordered before the wait. Whichever released it, the wait is after what *all*
//!   candidates have in common.
//! - Without a candidate, the wait is released by something enqueued later (legal: the stream
//!   blocks until then) or by something unseen (a kernel, a store of the host). Until a write comes
//!   that satisfies it, or the host sees the stream get past it, what is behind it is in the future
//!   of everything else: it is not judged, see [`crate::ClockRef::is_behind_open_wait`].

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;
use trace::WaitCompare;

use crate::clock::{Clock, Entry, FloorRef, NO_LINEAGE, OpenWait, TimelineSnapshot};
use crate::id_map::IdMap;

/// Writes remembered at each address.
const WRITES: usize = 64;

/// How a wait compares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// The comparison.
    pub compare: WaitCompare,
    /// What is compared with.
    pub value: u64,
    /// 4 or 8.
    pub width: u8,
}

impl Condition {
    /// Whether a value in memory satisfies it.
    pub fn holds(&self, found: u64) -> bool {
        if self.width == 4 {
            let (found, value) = (found as u32, self.value as u32);
            match self.compare {
                WaitCompare::GreaterEqual => found.wrapping_sub(value) as i32 >= 0,
                WaitCompare::Equal => found == value,
                WaitCompare::And => found & value != 0,
                WaitCompare::Nor => !(found | value) != 0,
            }
        } else {
            match self.compare {
                WaitCompare::GreaterEqual => found.wrapping_sub(self.value) as i64 >= 0,
                WaitCompare::Equal => found == self.value,
                WaitCompare::And => found & self.value != 0,
                WaitCompare::Nor => !(found | self.value) != 0,
            }
        }
    }
}

#[derive(Debug)]
struct Write {
    /// `None`: bytes came by a copy or a set, and what they are is not known.
    value: Option<u64>,
    by: TimelineSnapshot,
    /// Whether it makes earlier memory visible.
    releases: bool,
    /// Writes known to come after it.
    overwritten: SmallVec<[Entry; 2]>,
}

#[derive(Debug, Default)]
struct SyncVar {
    writes: VecDeque<Write>,
    open: Vec<(Condition, Arc<OpenWait>)>,
}

/// What a wait learns.
pub(crate) enum WaitOutcome {
    /// It is ordered after this.
    After(Clock),
    /// Nothing seen releases it.
    Open(Arc<OpenWait>),
}

/// All addresses that were used so.
#[derive(Debug, Default)]
pub(crate) struct SyncVars {
    vars: IdMap<u64, SyncVar>,
}

impl SyncVars {
    /// Whether no address is in use.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// A write. Answers whether it released a wait.
    pub fn write(
        &mut self,
        address: u64,
        value: Option<u64>,
        releases: bool,
        by: TimelineSnapshot,
        floor: FloorRef<'_>,
    ) -> bool {
        let var = self.vars.entry(address).or_default();
        for earlier in &mut var.writes {
            if covers(&by, earlier.by.own, floor) && earlier.overwritten.len() < 2 {
                earlier.overwritten.push(by.own);
            }
        }
        let past = |e: &Entry| floor.times.get(e.slot as usize).is_some_and(|&t| e.time <= t);
        var.writes.retain(|w| !w.overwritten.iter().any(past));
        let mut released = false;
        if let Some(value) = value {
            var.open.retain(|(condition, wait)| {
                // A write that comes after the wait has not released it: something unseen has.
                let holds = condition.holds(value) && !by.clock.is_behind(wait);
                if holds {
                    wait.release(releases.then(|| by.clone()));
                    released = true;
                }
                !holds && !wait.is_released()
            });
        }
        if var.writes.len() >= WRITES {
            var.writes.pop_front();
        }
        var.writes.push_back(Write { value, by, releases, overwritten: SmallVec::new() });
        released
    }

    /// A wait by a stream (timeline `own`, whose clock is given).
    pub fn wait(
        &mut self,
        address: u64,
        condition: Condition,
        time: u64,
        clock: &Clock,
        own: u32,
        floor: FloorRef<'_>,
    ) -> WaitOutcome {
        let var = self.vars.entry(address).or_default();
        let before = TimelineSnapshot { own: Entry { slot: own, time }, clock: clock.clone(), exact: true };
        let mut candidates = var
            .writes
            .iter()
            .filter(|w| w.value.is_some_and(|v| condition.holds(v)))
            .filter(|w| !w.overwritten.iter().any(|&by| covers(&before, by, floor)));
        let Some(first) = candidates.next() else {
            let wait = Arc::new(OpenWait::default());
            var.open.retain(|(_, w)| !w.is_released());
            var.open.push((condition, wait.clone()));
            return WaitOutcome::Open(wait);
        };
        let released = |w: &Write| {
            let mut clock = Clock::default();
            if w.releases {
                clock.raise(w.by.own, NO_LINEAGE, floor);
                clock.join(&w.by.clock, NO_LINEAGE, floor);
            }
            clock
        };
        let mut common = released(first);
        for other in candidates {
            let other = released(other);
            common = common.meet(|slot| other.get(slot), NO_LINEAGE, floor);
        }
        WaitOutcome::After(common)
    }

    /// Bytes changed by a copy or a set: flags in them have been overwritten by who knows what.
    pub fn overwrite(&mut self, start: u64, end: u64, by: &TimelineSnapshot, floor: FloorRef<'_>) {
        let hit: SmallVec<[u64; 4]> = self.vars.keys().copied().filter(|a| (start..end).contains(a)).collect();
        for address in hit {
            self.write(address, None, false, by.clone(), floor);
        }
    }

    /// The memory is gone.
    pub fn forget(&mut self, start: u64, end: u64) {
        self.vars.retain(|a, _| !(start..end).contains(a));
    }
}

/// Whether a state of a timeline is after an epoch.
fn covers(state: &TimelineSnapshot, e: Entry, floor: FloorRef<'_>) -> bool {
    floor.times.get(e.slot as usize).is_some_and(|&t| e.time <= t)
        || if e.slot == state.own.slot { e.time <= state.own.time } else { state.clock.get(e.slot) >= e.time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_as_the_hardware_does() {
        let c = |compare, value, width| Condition { compare, value, width };
        use WaitCompare::{And, Equal, GreaterEqual, Nor};
        assert!(c(GreaterEqual, 0xffff_fff0, 4).holds(3), "the difference wraps");
        assert!(!c(GreaterEqual, 3, 4).holds(0xffff_fff0));
        assert!(c(GreaterEqual, 0xffff_fff0, 8).holds(0xffff_fff0));
        assert!(!c(GreaterEqual, 0xffff_fff0, 8).holds(3));
        assert!(c(Equal, 0x1_0000_0005, 4).holds(5), "the upper half does not count");
        assert!(c(And, 6, 4).holds(2) && !c(And, 6, 4).holds(9));
        assert!(!c(Nor, 0xffff_0000, 4).holds(0x0000_ffff) && c(Nor, 0, 4).holds(1));
    }
}
