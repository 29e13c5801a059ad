//! Vector clocks of streams: what they know beyond the host's floor.
//!
//! Owns the representation (a few inline entries over a shared, immutable base) and the lattice
//! operations on it. Knows no rule of CUDA: `engine` and `rules` decide who joins whom.
//!
//! A clock is a set of entries "timeline `slot` is known finished up to `time`". Programs with few
//! streams never leave the inline part: taking a snapshot copies about a hundred bytes and
//! allocates nothing. Beyond [`INLINE`] entries the clock spills into a dense base of chunks behind
//! `Arc`s: snapshots share the base, and bases that grew from each other share the chunks that did
//! not change. A base carries its *lineage*: the timeline whose clock it was and a serial number.
//! Clocks of one timeline only grow, so of two bases of one lineage the later one contains the
//! earlier one, and joining them is choosing; that keeps fork-join over thousands of streams, and
//! default-stream traffic, from merging long vectors at every op.
//!
//! A clock may lie behind an *open wait* ([`OpenWait`]): a wait for a value that no write seen so
//! far can have released. The waits are part of the clock, because everything that joins it lies
//! behind them too.

use std::sync::{Arc, OnceLock};

use crate::condition::AwaitedWord;

/// One component of a clock: everything of timeline `slot` up to and including `time` has finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Entry {
    /// Index of the timeline.
    pub(crate) slot: u32,
    /// Time on it.
    pub(crate) time: u64,
}

/// Entries held without an allocation.
pub(crate) const INLINE: usize = 6;

/// Owner of clocks that are no timeline's: of two such clocks neither need contain the other.
pub(crate) const NO_LINEAGE: u32 = 0;

/// Times in one chunk of a base.
const CHUNK: usize = 64;

/// Times of [`CHUNK`] neighbouring slots.
type Chunk = [u64; CHUNK];

/// The spilled part of a clock: immutable and shared, by slot. Bases that grew from each other
/// share their chunks.
#[derive(Debug, Clone)]
struct Base {
    /// Timeline whose clock this is, or [`NO_LINEAGE`].
    owner: u32,
    /// Later bases of the same owner contain earlier ones. Doubles as the birthday, in host time.
    serial: u64,
    /// Version of the floor when chunks that it covers were dropped last.
    pruned: u64,
    /// The times; an absent chunk knows nothing.
    chunks: Vec<Option<Arc<Chunk>>>,
}

impl Base {
    #[inline]
    fn get(&self, slot: u32) -> u64 {
        let slot = slot as usize;
        match self.chunks.get(slot / CHUNK) {
            Some(Some(chunk)) => chunk[slot % CHUNK],
            _ => 0,
        }
    }

    fn raise(&mut self, e: Entry) {
        let slot = e.slot as usize;
        if self.chunks.len() <= slot / CHUNK {
            self.chunks.resize(slot / CHUNK + 1, None);
        }
        let chunk = self.chunks[slot / CHUNK].get_or_insert_with(|| Arc::new([0; CHUNK]));
        if chunk[slot % CHUNK] < e.time {
            Arc::make_mut(chunk)[slot % CHUNK] = e.time;
        }
    }

    #[unsafe(link_section = "streamsan_hot")]
    fn join(&mut self, other: &Base) {
        if self.chunks.len() < other.chunks.len() {
            self.chunks.resize(other.chunks.len(), None);
        }
        for (ours, theirs) in self.chunks.iter_mut().zip(&other.chunks) {
            let Some(theirs) = theirs else { continue };
            match ours {
                None => *ours = Some(theirs.clone()),
                Some(ours) if Arc::ptr_eq(ours, theirs) => {}
                Some(ours) => {
                    let (mut ahead, mut behind) = (false, false);
                    for (a, b) in ours.iter().zip(theirs.iter()) {
                        ahead |= a > b;
                        behind |= a < b;
                    }
                    if behind && !ahead {
                        *ours = theirs.clone();
                    } else if behind {
                        for (a, b) in Arc::make_mut(ours).iter_mut().zip(theirs.iter()) {
                            *a = (*a).max(*b);
                        }
                    }
                }
            }
        }
    }

    /// Drops the chunks that the floor covers; false when nothing is left.
    fn prune(&mut self, floor: FloorRef<'_>) -> bool {
        if self.pruned != floor.version {
            self.pruned = floor.version;
            for (i, chunk) in self.chunks.iter_mut().enumerate() {
                let known = floor.times.get(i * CHUNK..).unwrap_or(&[]);
                let covered = |c: &Arc<Chunk>| {
                    let in_floor = c.iter().zip(known).all(|(time, known)| time <= known);
                    in_floor && c.iter().skip(known.len()).all(|&time| time == 0)
                };
                chunk.take_if(|c| covered(c));
            }
        }
        self.chunks.iter().any(Option::is_some)
    }

    fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let chunks = self.chunks.iter().enumerate().filter_map(|(i, c)| Some((i, c.as_ref()?)));
        chunks.flat_map(|(i, c)| {
            let entries = c.iter().enumerate();
            entries.map(move |(j, &time)| Entry { slot: (i * CHUNK + j) as u32, time }).filter(|e| e.time > 0)
        })
    }
}

/// The floor, as clocks see it: what every op knows already (dense, indexed by slot), and since
/// when that is all there was.
#[derive(Clone, Copy)]
pub(crate) struct FloorRef<'a> {
    /// Times known finished, by slot.
    pub(crate) times: &'a [u64],
    /// Everything enqueued before this host time is known finished.
    pub(crate) all_before: u64,
    /// Changes with every change of `times`.
    pub(crate) version: u64,
    /// Host time now: serial number for new bases.
    pub(crate) now: u64,
}

impl FloorRef<'_> {
    #[inline]
    fn covers(&self, e: Entry) -> bool {
        self.times.get(e.slot as usize).is_some_and(|&t| e.time <= t)
    }
}

/// A vector clock without the part that the host's floor covers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    base: Option<Arc<Base>>,
    /// Waits for values that lie before this point and that nothing seen has released.
    open_waits: Option<Arc<Vec<Arc<OpenWait>>>>,
    len: u8,
    small: [Entry; INLINE],
}

impl Clock {
    /// Whether nothing is known beyond the floor.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0 && self.base.is_none() && self.open_waits.is_none()
    }

    /// What is held without an allocation.
    #[inline]
    pub(crate) fn inline(&self) -> &[Entry] {
        &self.small[..usize::from(self.len)]
    }

    /// Time known of a timeline, 0 when nothing is.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> u64 {
        for e in self.inline() {
            if e.slot == slot {
                return e.time;
            }
        }
        self.base.as_ref().map_or(0, |b| b.get(slot))
    }

    /// All entries, in no order; a slot may occur twice, the larger time counts.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.inline().iter().copied().chain(self.base.iter().flat_map(|b| b.entries()))
    }

    /// Learns one component. `own` is the timeline whose clock this is: it never holds itself.
    #[inline]
    pub(crate) fn raise(&mut self, e: Entry, own: u32, floor: FloorRef<'_>) {
        if e.slot == own || e.time == 0 || floor.covers(e) {
            return;
        }
        let len = usize::from(self.len);
        for x in &mut self.small[..len] {
            if x.slot == e.slot {
                x.time = x.time.max(e.time);
                return;
            }
        }
        if self.base.as_ref().is_some_and(|b| b.get(e.slot) >= e.time) {
            return;
        }
        if len < INLINE {
            self.small[len] = e;
            self.len += 1;
        } else {
            self.spill([e].into_iter(), None, own, floor);
        }
    }

    /// Learns all that another clock knows.
    #[inline]
    pub(crate) fn join(&mut self, other: &Clock, own: u32, floor: FloorRef<'_>) {
        if let Some(theirs) = &other.base {
            self.join_base(theirs, own, floor);
        }
        for &e in other.inline() {
            self.raise(e, own, floor);
        }
        if let Some(waits) = &other.open_waits {
            self.join_waits(waits, own, floor);
        }
    }

    #[cold]
    fn join_waits(&mut self, waits: &[Arc<OpenWait>], own: u32, floor: FloorRef<'_>) {
        for wait in waits {
            if wait.is_released() {
                self.join_released(wait, own, floor);
            } else {
                self.add_open_wait(wait.clone());
            }
        }
    }

    fn join_released(&mut self, wait: &OpenWait, own: u32, floor: FloorRef<'_>) {
        if let Some(by) = wait.released_by() {
            self.raise(by.own, own, floor);
            self.join(&by.clock, own, floor);
        }
    }

    /// Whether a wait that nothing has released lies before this point.
    #[inline]
    pub(crate) fn has_open_wait(&self) -> bool {
        self.open_waits.is_some()
    }

    /// What the open waits that it lies behind wait for.
    pub(crate) fn awaited_words(&self) -> impl Iterator<Item = AwaitedWord> {
        let waits = self.open_waits.iter().flat_map(|waits| waits.iter());
        waits.filter(|wait| !wait.is_released()).map(|wait| wait.word)
    }

    /// Whether this wait lies before this point, directly or behind what released another.
    pub(crate) fn is_behind(&self, wait: &Arc<OpenWait>) -> bool {
        let before = |other: &Arc<OpenWait>| {
            Arc::ptr_eq(other, wait) || other.released_by().is_some_and(|by| by.clock.is_behind(wait))
        };
        self.open_waits.as_ref().is_some_and(|waits| waits.iter().any(before))
    }

    /// From now on this clock lies behind an open wait.
    pub(crate) fn add_open_wait(&mut self, wait: Arc<OpenWait>) {
        let waits = Arc::make_mut(self.open_waits.get_or_insert_default());
        if !waits.iter().any(|w| Arc::ptr_eq(w, &wait)) {
            waits.push(wait);
        }
    }

    /// Takes in what has been released meanwhile.
    pub(crate) fn refresh(&mut self, own: u32, floor: FloorRef<'_>) {
        if let Some(waits) = self.open_waits.take() {
            self.join_waits(&waits, own, floor);
        }
    }

    /// The holder of this clock has seen it pass: its waits were released, by a write that need not
    /// be known.
    pub(crate) fn release_waits(&self) -> bool {
        let Some(waits) = &self.open_waits else { return false };
        for wait in waits.iter() {
            wait.release(None);
        }
        true
    }

    fn join_base(&mut self, theirs: &Arc<Base>, own: u32, floor: FloorRef<'_>) {
        if theirs.serial < floor.all_before {
            return;
        }
        match &self.base {
            Some(ours) if Arc::ptr_eq(ours, theirs) => {}
            Some(ours) if ours.serial >= floor.all_before => {
                if ours.owner == theirs.owner && ours.owner != NO_LINEAGE {
                    if ours.serial < theirs.serial {
                        self.adopt(theirs);
                    }
                } else {
                    self.spill(std::iter::empty(), Some(theirs), own, floor);
                }
            }
            _ => self.adopt(theirs),
        }
    }

    /// Takes another base. Inline entries stay later than the base's: lookups stop at the first
    /// they find.
    fn adopt(&mut self, base: &Arc<Base>) {
        let mut kept = 0;
        for i in 0..usize::from(self.len) {
            let e = self.small[i];
            if base.get(e.slot) < e.time {
                self.small[kept] = e;
                kept += 1;
            }
        }
        self.len = kept as u8;
        self.base = Some(base.clone());
    }

    /// Learns many components at once, and leaves the list empty.
    pub(crate) fn raise_many(&mut self, entries: &mut Vec<Entry>, own: u32, floor: FloorRef<'_>) {
        if entries.len() <= INLINE - usize::from(self.len) {
            for e in entries.drain(..) {
                self.raise(e, own, floor);
            }
        } else {
            self.spill(entries.drain(..), None, own, floor);
        }
    }

    /// Moves everything into a new base: the old one, another one, what was inline, and `more`.
    #[cold]
    fn spill(&mut self, more: impl Iterator<Item = Entry>, other: Option<&Arc<Base>>, own: u32, floor: FloorRef<'_>) {
        let mut base = match self.base.take().filter(|b| b.serial >= floor.all_before) {
            // Not shared: it can grow in place.
            Some(old) => Arc::try_unwrap(old).unwrap_or_else(|old| (*old).clone()),
            None => Base { owner: own, serial: 0, pruned: floor.version, chunks: Vec::new() },
        };
        (base.owner, base.serial) = (own, floor.now);
        if let Some(other) = other {
            base.join(other);
        }
        let small = self.small;
        for e in small[..usize::from(self.len)].iter().copied().chain(more) {
            if e.slot != own && !floor.covers(e) {
                base.raise(e);
            }
        }
        self.len = 0;
        self.base = base.prune(floor).then(|| Arc::new(base));
    }

    /// Keeps only what both clocks know: the components that hold whichever of two things happened.
    pub(crate) fn meet(&self, other: impl Fn(u32) -> u64, own: u32, floor: FloorRef<'_>) -> Clock {
        let mut common: Vec<Entry> = self
            .entries()
            .map(|e| Entry { slot: e.slot, time: e.time.min(other(e.slot)) })
            .filter(|e| e.time > 0)
            .collect();
        let mut clock = Clock::default();
        clock.raise_many(&mut common, own, floor);
        clock
    }
}

/// The state of a timeline at one moment: its own epoch and what it knew of others.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimelineSnapshot {
    /// Own epoch.
    pub(crate) own: Entry,
    /// What it knew of others.
    pub(crate) clock: Clock,
    /// Whether `clock` is exactly what the timeline knew at `own` (so that what covers `own`
    /// covers `clock`).
    pub(crate) exact: bool,
}

/// A wait that nothing seen so far can have released.
#[derive(Debug)]
pub(crate) struct OpenWait {
    /// What it waits for.
    pub(crate) word: AwaitedWord,
    released: OnceLock<Option<TimelineSnapshot>>,
}

impl OpenWait {
    /// A wait for such a value.
    pub(crate) fn new(word: AwaitedWord) -> Self {
        Self { word, released: OnceLock::new() }
    }

    /// Whether it has been released.
    pub(crate) fn is_released(&self) -> bool {
        self.released.get().is_some()
    }

    /// By what, when that is known.
    pub(crate) fn released_by(&self) -> Option<&TimelineSnapshot> {
        self.released.get()?.as_ref()
    }

    /// Releases it. The first one counts.
    pub(crate) fn release(&self, by: Option<TimelineSnapshot>) {
        let _ = self.released.set(by);
    }
}

#[cfg(test)]
mod tests;
