//! Values in memory as synchronisation variables: what streams wrote (`cuStreamWriteValue`) and
//! what streams wait for.
//!
//! Owns the writes seen at each address and the waits that none of them can have released. A write
//! releases, a wait acquires; which write a wait sees is the question:
//!
//! - Candidates are writes whose value satisfies the comparison and that were not overwritten by a
//!   write that is ordered before the wait. Whichever released it, the wait is after what *all*
//!   candidates have in common.
//! - A fill, or a copy of known bytes, is a candidate too: the value may be there before anybody
//!   writes it. If something unseen may have overwritten it, it is taken out of the candidates
//!   ([`SyncVars::doubt`]), as if its value were not known.
//! - Without a candidate, the wait is released by something enqueued later (legal: the stream
//!   blocks until then) or by something unseen (a kernel, a store of the host). Until a write comes
//!   that satisfies it, or the host sees the stream get past it, what is behind it is in the future
//!   of everything else: it is not judged, see [`crate::ClockRef::is_behind_open_wait`].

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;
use trace::{Epoch, Region, TimelineId};

use crate::clock::{Clock, Entry, FloorRef, NO_LINEAGE, OpenWait, TimelineSnapshot};
use crate::condition::{AwaitedWord, Condition};
use crate::id_map::IdMap;
use crate::state::left_values::{LeftAt, LeftBytes, LeftValue, LeftValues};

/// Writes remembered at each address.
const WRITES: usize = 64;

#[derive(Debug)]
struct Write {
    /// `None`: bytes came by a copy or a set, and what they are is not known.
    value: Option<u64>,
    /// For bytes that a fill or a copy left: how many of the value's are known. 0: it was written
    /// as a value.
    left: u8,
    by: TimelineSnapshot,
    /// Whether it makes earlier memory visible.
    releases: bool,
    /// Whether it changed the upper half only of the eight bytes here: a wait for four finds there
    /// what it would have found before.
    upper: bool,
    /// Writes known to come after it, one of each timeline.
    overwritten: SmallVec<[Entry; 2]>,
    /// The same of the upper half: these count for a wait for eight bytes.
    upper_overwritten: SmallVec<[Entry; 2]>,
}

#[derive(Debug, Default)]
struct SyncVar {
    writes: VecDeque<Write>,
    open: Vec<(Condition, Arc<OpenWait>)>,
}

impl Write {
    fn new(value: Option<u64>, releases: bool, by: TimelineSnapshot) -> Self {
        let (overwritten, upper_overwritten) = (SmallVec::new(), SmallVec::new());
        Self { value, left: 0, by, releases, upper: false, overwritten, upper_overwritten }
    }

    /// Whether a wait with this condition may have found its value.
    fn satisfies(&self, condition: Condition) -> bool {
        (self.left == 0 || condition.width <= self.left) && self.value.is_some_and(|v| condition.holds(v))
    }

    /// Another one comes after it. The first one of each timeline comes before the others of it.
    fn overwritten_by(&mut self, by: Entry, upper: bool) {
        let known = if upper { &mut self.upper_overwritten } else { &mut self.overwritten };
        if !known.iter().any(|known| known.slot == by.slot) {
            known.push(by);
        }
    }

    /// Whether a wait for so many bytes, in this state of its timeline, finds another value.
    fn is_overwritten(&self, width: u8, before: &TimelineSnapshot, floor: FloorRef<'_>) -> bool {
        let upper = if width == 8 { &self.upper_overwritten[..] } else { &[] };
        self.overwritten.iter().chain(upper).any(|&by| covers(before, by, floor))
    }

    fn epoch(&self) -> Epoch {
        Epoch { timeline: TimelineId(self.by.own.slot), time: self.by.own.time }
    }
}

impl SyncVar {
    /// A variable that is used for the first time: what was left there before is known.
    fn of(address: u64, left: &LeftValues) -> Self {
        let (mut var, mut numbers) = (Self::default(), Vec::new());
        for LeftAt { value: LeftValue { value, known }, by, number, after } in left.at(address) {
            for (earlier, _) in var.writes.iter_mut().zip(&numbers).filter(|(_, number)| after.contains(number)) {
                earlier.overwritten_by(by.own, false);
            }
            var.writes.push_back(Write { left: known, ..Write::new(Some(value), true, by.clone()) });
            numbers.push(number);
        }
        var
    }

    /// Adds a write, which may overwrite others.
    fn put(&mut self, write: Write, floor: FloorRef<'_>) {
        for earlier in &mut self.writes {
            if covers(&write.by, earlier.by.own, floor) {
                earlier.overwritten_by(write.by.own, write.upper);
            }
        }
        let past = |e: &Entry| floor.times.get(e.slot as usize).is_some_and(|&t| e.time <= t);
        self.writes.retain(|w| !w.overwritten.iter().any(past));
        if self.writes.len() >= WRITES {
            self.writes.pop_front();
        }
        self.writes.push_back(write);
    }
}

/// What a stream may find at an address that it waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundValues {
    /// The address.
    pub address: u64,
    /// Bytes that are compared: 4 or 8.
    pub width: u8,
    /// The fills and copies whose value would end the wait.
    pub left: Vec<Epoch>,
    /// All that is known to have written there, these included.
    pub known: Vec<Epoch>,
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
    left: LeftValues,
}

impl SyncVars {
    /// Whether no address is in use.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// A write. Answers whether it released a wait.
    pub(crate) fn write(
        &mut self,
        address: u64,
        value: Option<u64>,
        releases: bool,
        by: TimelineSnapshot,
        floor: FloorRef<'_>,
    ) -> bool {
        let var = self.vars.entry(address).or_insert_with(|| SyncVar::of(address, &self.left));
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
        var.put(Write::new(value, releases, by), floor);
        released
    }

    /// A write of a value of 4 or 8 bytes. Answers whether it released a wait. A word that shares
    /// bytes with it has changed, too.
    pub(crate) fn write_value(
        &mut self,
        (address, width): (u64, u8),
        value: u64,
        releases: bool,
        by: TimelineSnapshot,
        floor: FloorRef<'_>,
    ) -> bool {
        let beside = match width {
            8 => Some(address.wrapping_add(4)),
            _ => address.checked_sub(4).filter(|beside| beside.is_multiple_of(8)),
        };
        if let Some(beside) = beside
            && (self.vars.contains_key(&beside) || self.left.at(beside).next().is_some())
        {
            let var = self.vars.entry(beside).or_insert_with(|| SyncVar::of(beside, &self.left));
            var.put(Write { upper: width != 8, ..Write::new(None, false, by.clone()) }, floor);
        }
        self.write(address, Some(value), releases, by, floor)
    }

    /// The bytes that a fill or a copy left, which [`SyncVars::overwrite`] was told of.
    pub(crate) fn leave(&mut self, region: Region, bytes: LeftBytes<'_>, by: TimelineSnapshot, floor: FloorRef<'_>) {
        for (&address, var) in &mut self.vars {
            let by_it = |w: &&mut Write| w.value.is_none() && w.by.own == by.own;
            if let Some(LeftValue { value, known }) = bytes.at(&region, address)
                && let Some(write) = var.writes.iter_mut().rev().find(by_it)
            {
                (write.value, write.left, write.releases) = (Some(value), known, true);
            }
        }
        self.left.put(region, bytes, by, floor);
    }

    /// What a wait may find that nobody wrote as a value. `None`: nothing of the kind.
    pub(crate) fn found(&mut self, address: u64, condition: Condition) -> Option<FoundValues> {
        let var = self.vars.entry(address).or_insert_with(|| SyncVar::of(address, &self.left));
        let ends = |w: &&Write| w.left != 0 && w.satisfies(condition);
        let left: Vec<Epoch> = var.writes.iter().filter(ends).map(Write::epoch).collect();
        let known = || var.writes.iter().filter(|w| w.value.is_some()).map(Write::epoch).collect();
        (!left.is_empty()).then(|| FoundValues { address, width: condition.width, left, known: known() })
    }

    /// Something unseen may have overwritten what a fill or a copy left.
    pub(crate) fn doubt(&mut self, address: u64, epoch: Epoch) {
        let Some(var) = self.vars.get_mut(&address) else { return };
        for write in var.writes.iter_mut().filter(|w| w.left != 0 && w.epoch() == epoch) {
            write.value = None;
        }
    }

    /// A wait by a stream (timeline `own`, whose clock is given).
    pub(crate) fn wait(
        &mut self,
        address: u64,
        condition: Condition,
        time: u64,
        clock: &Clock,
        own: u32,
        floor: FloorRef<'_>,
    ) -> WaitOutcome {
        let var = self.vars.entry(address).or_insert_with(|| SyncVar::of(address, &self.left));
        let before = TimelineSnapshot { own: Entry { slot: own, time }, clock: clock.clone(), exact: true };
        let mut candidates = var
            .writes
            .iter()
            .filter(|w| w.satisfies(condition))
            .filter(|w| !w.is_overwritten(condition.width, &before, floor));
        let Some(first) = candidates.next() else {
            let wait = Arc::new(OpenWait::new(AwaitedWord { address, condition }));
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
    pub(crate) fn overwrite(&mut self, start: u64, end: u64, by: &TimelineSnapshot, floor: FloorRef<'_>) {
        let hit: SmallVec<[u64; 4]> = self.vars.keys().copied().filter(|a| (start..end).contains(a)).collect();
        for address in hit {
            self.write(address, None, false, by.clone(), floor);
        }
    }

    /// The memory is gone.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.vars.retain(|a, _| !(start..end).contains(a));
        self.left.forget(start, end);
    }
}

/// Whether a state of a timeline is after an epoch.
pub(crate) fn covers(state: &TimelineSnapshot, e: Entry, floor: FloorRef<'_>) -> bool {
    floor.times.get(e.slot as usize).is_some_and(|&t| e.time <= t)
        || if e.slot == state.own.slot { e.time <= state.own.time } else { state.clock.get(e.slot) >= e.time }
}
