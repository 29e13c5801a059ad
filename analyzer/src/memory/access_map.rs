//! Who touched which byte last: an interval map of one allocation, byte-exact.
//!
//! Owns the rule of what is remembered and what may be forgotten. Does not know CUDA's order (it asks [`Clocks`]) nor
//! what a conflict is worth (it hands every unordered conflicting pair to the caller).
//!
//! # Which pairs are checked
//!
//! The allocation is cut into segments at the borders of accesses. A segment holds entries: accesses that reach into it.
//! A new access is compared with every entry of every segment it reaches into, and the pairs that conflict (one of them
//! writes, not both are atomic) and are not ordered are handed out. So a pair is checked if the earlier access is still
//! an entry. An entry `e` is dropped for a new access `n` only when all of this holds:
//!
//! 1. `e` is ordered before `n`;
//! 2. whatever conflicts with `e` conflicts with `n` too: writes stand for everything, reads for reads, atomics for
//!    atomics (an atomic must not replace a plain write: a later atomic does not conflict with it);
//! 3. `n` touches every byte of the segment (it is exact and without gaps), or `n` has the very shape of `e`, so that
//!    whatever is said of the bytes of `e` is said of those of `n`.
//!
//! # Why that loses nothing that matters
//!
//! Let a later access `x` race with the dropped `e` on some byte. If `x` were ordered after `n`, it would be ordered after
//! `e` by (1): so `x` is unordered with `n`. By (2) `x` conflicts with `n`, and by (3) on the same byte. So `x` races with
//! `n`: the byte is still reported, with a more recent partner. This is the argument of `FastTrack` (last write, reads
//! since); as there, what can be lost is a *second* partner for a byte that is reported anyway. Unlike `FastTrack`, all
//! unordered entries stay after a race was found, one a timeline, because an inexact access proves nothing about its
//! bytes and because two accesses with gaps may share a segment without sharing a byte.
//!
//! # What bounds the memory
//!
//! Accesses of one timeline are ordered among themselves, so for equal shapes there is at most one read, one write and
//! one atomic for each timeline in a segment. Entries that the host has seen finish are *dead*: everything enqueued from
//! now on starts after them. They are swept when a segment grows long or the map grows large, so what remains is what is
//! in flight. As a last resort a segment keeps its [`MAX_ENTRIES`] newest entries; what that drops is counted.

use super::access::Access;
use super::extent::Precision;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Entries of a segment from which on dead ones are looked for.
const SWEEP_ENTRIES: usize = 8;

/// Entries a segment keeps at most.
pub const MAX_ENTRIES: usize = 256;

/// Segments of a map from which on dead ones are looked for.
const SWEEP_SEGMENTS: usize = 64;

/// How an earlier access lies to the one that is being added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ordered {
    /// It has finished before.
    Yes,
    /// It has finished before, but only thanks to a synchronisation that CUDA does not promise.
    Latent,
    /// Nothing orders the two.
    No,
}

/// The order of accesses, as seen from the access that is being added.
pub trait Clocks {
    /// Whether this earlier access has finished before the one that is being added starts.
    fn ordered(&self, earlier: &Access) -> Ordered;
    /// Whether everything enqueued from now on starts after this access.
    fn dead(&self, earlier: &Access) -> bool;
}

type Entries = SmallVec<[Access; 1]>;

#[derive(Clone, Debug)]
struct Segment {
    end: u64,
    entries: Entries,
}

/// The accesses of one allocation.
#[derive(Clone, Debug)]
pub struct AccessMap {
    segments: BTreeMap<u64, Segment>,
    sweep_at: usize,
    forgotten: u64,
}

impl Default for AccessMap {
    fn default() -> Self {
        Self { segments: BTreeMap::new(), sweep_at: SWEEP_SEGMENTS, forgotten: 0 }
    }
}

impl AccessMap {
    /// Adds an access after handing every unordered conflicting pair to `race`: the earlier access, and whether the two
    /// are ordered by an unpromised synchronisation. Pairs may be handed out once for every segment they share, and for
    /// accesses with gaps the bytes are still to be compared.
    pub fn add(&mut self, access: &Access, clocks: &impl Clocks, race: &mut impl FnMut(&Access, bool)) {
        let (start, end) = (access.extent.start, access.extent.end);
        if start >= end {
            return;
        }
        // The usual case: the same range as before.
        if let Some(segment) = self.segments.get_mut(&start)
            && segment.end == end
        {
            self.forgotten += visit(&mut segment.entries, access, clocks, race);
            return;
        }
        self.split(start);
        self.split(end);
        let mut gaps: SmallVec<[(u64, u64); 4]> = SmallVec::new();
        let mut seen: SmallVec<[u64; 8]> = SmallVec::new();
        let (mut at, mut uniform) = (start, true);
        for (&from, segment) in self.segments.range_mut(start..end) {
            if at < from {
                gaps.push((at, from));
            }
            self.forgotten += visit(&mut segment.entries, access, clocks, race);
            uniform &= segment.entries[..] == [*access];
            seen.push(from);
            at = segment.end;
        }
        if at < end {
            gaps.push((at, end));
        }
        // An access that stands for all that was there leaves one segment, or the borders of long ago would stay for ever.
        if uniform && seen.len() > 1 {
            for from in seen {
                self.segments.remove(&from);
            }
            gaps.clear();
            gaps.push((start, end));
        }
        for (from, to) in gaps {
            self.segments.insert(from, Segment { end: to, entries: SmallVec::from_elem(*access, 1) });
        }
        if self.segments.len() > self.sweep_at {
            self.sweep(clocks);
        }
    }

    /// Hands out the races of an access like [`AccessMap::add`], but does not keep it: it is over already.
    pub fn check(&self, access: &Access, clocks: &impl Clocks, race: &mut impl FnMut(&Access, bool)) {
        let (start, end) = (access.extent.start, access.extent.end);
        if start >= end {
            return;
        }
        let before = self.segments.range(..start).next_back().filter(|(_, s)| s.end > start);
        for (_, segment) in before.into_iter().chain(self.segments.range(start..end)) {
            for e in segment.entries.iter().filter(|e| !e.same_op(access) && e.kind.conflicts(access.kind)) {
                let ordered = clocks.ordered(e);
                if ordered != Ordered::Yes {
                    race(e, ordered == Ordered::Latent);
                }
            }
        }
    }

    /// Drops what can never race again.
    pub fn sweep(&mut self, clocks: &impl Clocks) {
        self.segments.retain(|_, segment| {
            segment.entries.retain(|e| !clocks.dead(e));
            !segment.entries.is_empty()
        });
        self.sweep_at = SWEEP_SEGMENTS.max(self.segments.len() * 2);
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        *self = Self { forgotten: self.forgotten, ..Self::default() };
    }

    /// All entries; one that reaches into several segments comes several times.
    pub fn iter(&self) -> impl Iterator<Item = &Access> {
        self.segments.values().flat_map(|s| s.entries.iter())
    }

    /// Number of entries, for the bounds on memory.
    pub fn entries(&self) -> usize {
        self.segments.values().map(|s| s.entries.len()).sum()
    }

    /// Entries dropped although they could still have raced.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Makes `at` a border, if it lies inside a segment.
    fn split(&mut self, at: u64) {
        let Some((_, segment)) = self.segments.range_mut((Bound::Unbounded, Bound::Excluded(at))).next_back() else {
            return;
        };
        if segment.end > at {
            let tail = Segment { end: segment.end, entries: segment.entries.clone() };
            segment.end = at;
            self.segments.insert(at, tail);
        }
    }
}

/// Compares with the entries of one segment, drops those that the access stands for, and adds it. Answers how many
/// entries had to be forgotten.
fn visit(entries: &mut Entries, access: &Access, clocks: &impl Clocks, race: &mut impl FnMut(&Access, bool)) -> u64 {
    let whole = access.extent.precision == Precision::Exact && access.extent.is_dense();
    let mut redundant = false;
    entries.retain(|e| {
        if e.same_op(access) {
            let covers = e.extent.precision == Precision::Exact && e.extent.is_dense();
            if e.kind.stands_for(access.kind) && (covers || e.extent.same_shape(&access.extent)) {
                redundant = true;
                return true;
            }
        } else {
            let ordered = clocks.ordered(e);
            if ordered != Ordered::Yes {
                if e.kind.conflicts(access.kind) {
                    race(e, ordered == Ordered::Latent);
                }
                return true;
            }
        }
        !(access.kind.stands_for(e.kind) && (whole || access.extent.same_shape(&e.extent)))
    });
    if redundant {
        return 0;
    }
    if entries.len() >= SWEEP_ENTRIES {
        entries.retain(|e| !clocks.dead(e));
    }
    let mut forgotten = 0;
    if entries.len() >= MAX_ENTRIES {
        entries.remove(0);
        forgotten = 1;
    }
    entries.push(*access);
    forgotten
}
