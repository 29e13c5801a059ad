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

mod pool;

use super::access::{Access, AccessKind};
use super::extent::Precision;
use super::spans::{At, Span, Spans};
use pool::{Entries, Entry, Pool};
use smallvec::SmallVec;
use trace::Epoch;

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
    /// A quick yes to the same question about anything that another op at this epoch did. No: ask [`Clocks::ordered`].
    fn finished(&self, earlier: Epoch) -> bool {
        let _ = earlier;
        false
    }
    /// Whether everything enqueued from now on starts after this access.
    fn dead(&self, earlier: &Access) -> bool;
}

/// What an addition makes of an earlier access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// The new access stands for it.
    Drop,
    /// It stays.
    Keep,
    /// It stays, and races; the flag is [`Ordered::Latent`].
    Race(bool),
    /// It is of the same op and stands for the new access.
    Redundant,
}

/// The accesses of one allocation.
#[derive(Clone, Debug)]
pub struct AccessMap {
    segments: Spans<Entries>,
    pool: Pool,
    sweep_at: usize,
    forgotten: u64,
}

impl Default for AccessMap {
    fn default() -> Self {
        Self { segments: Spans::default(), pool: Pool::default(), sweep_at: SWEEP_SEGMENTS, forgotten: 0 }
    }
}

impl AccessMap {
    /// Adds an access after handing every unordered conflicting pair to `race`: the earlier access, and whether the two
    /// are ordered by an unpromised synchronisation. Pairs may be handed out once for every segment they share, and for
    /// accesses with gaps the bytes are still to be compared.
    pub fn add(&mut self, access: &Access, clocks: &impl Clocks, race: &mut impl FnMut(&Access, bool)) {
        self.add_near(access, At::default(), clocks, race);
    }

    /// The same for an access whose bytes were added before: `near` is what that answered. Answers where it is found now.
    pub fn add_near(
        &mut self,
        access: &Access,
        near: At,
        clocks: &impl Clocks,
        race: &mut impl FnMut(&Access, bool),
    ) -> At {
        let (start, end) = (access.extent.start, access.extent.end);
        if start >= end {
            return near;
        }
        let new = New { access, entry: Entry::new(self.pool.hold(access), access), whole: is_whole(access) };
        let mut first = self.segments.seek_near(start, near);
        if self.segments.get(first).is_some_and(|s| s.start < start) {
            let tail = self.cut(first, start);
            first = self.segments.insert(self.segments.next(first), tail);
        }
        // The usual case: the bytes of an earlier access, the very same ones.
        if let Some(span) = self.segments.span_mut(first).filter(|s| s.start == start && s.end == end) {
            self.forgotten += visit(&mut span.value, &mut self.pool, &new, clocks, race);
            self.pool.release(new.entry);
            return first;
        }
        let replaces = new.whole && access.kind == AccessKind::Write;
        let lies = self.scan(first, end, |e| replaces && clocks.finished(e.epoch()));
        if replaces && lies.over {
            self.replace(first, &lies, &new);
        } else {
            if lies.parted {
                let tail = self.cut(lies.stop, end);
                self.segments.insert(self.segments.next(lies.stop), tail);
                // The chunk of the two may have been parted.
                first = self.segments.seek_near(lies.from, first);
            }
            self.visit_all(first, &new, clocks, race);
        }
        if self.segments.len() > self.sweep_at {
            self.sweep(clocks);
        }
        first
    }

    /// What lies at the bytes of an access: from a position up to an address.
    fn scan(&self, first: At, end: u64, is_over: impl Fn(Entry) -> bool) -> Lies {
        let mut lies = Lies { from: end, covered: 0, parted: false, stop: first, over: true };
        loop {
            let spans = self.segments.slice_from(lies.stop);
            if lies.covered == 0 {
                lies.from = spans.first().map_or(end, |s| s.start);
            }
            for (i, span) in spans.iter().enumerate() {
                if span.start >= end {
                    return lies;
                }
                lies.over = lies.over && span.value.iter().all(|e| is_over(*e));
                if span.end > end {
                    lies.parted = true;
                    lies.stop = lies.stop.plus(i);
                    return lies;
                }
                lies.covered += 1;
            }
            if spans.is_empty() {
                return lies;
            }
            lies.stop = lies.stop.next_chunk();
        }
    }

    /// Makes one segment of all that the new access touches, for which it stands; `first`: the first of those there are.
    fn replace(&mut self, first: At, lies: &Lies, new: &New<'_>) {
        let (start, end) = (new.access.extent.start, new.access.extent.end);
        let pool = &mut self.pool;
        if lies.parted {
            self.segments.set_start(lies.stop, end);
        }
        if lies.covered == 0 {
            self.segments.insert(first, Span { start, end, value: SmallVec::from_elem(new.entry, 1) });
            return;
        }
        if let Some(span) = self.segments.span_mut(first) {
            span.end = end;
            span.value.iter().for_each(|e| pool.release(*e));
            if span.value.spilled() {
                span.value = Entries::new();
            }
            span.value.clear();
            span.value.push(new.entry);
        }
        self.segments.set_start(first, start);
        if lies.covered > 1 {
            self.segments.remove_run(self.segments.next(first), lies.covered - 1, |entries| {
                entries.iter().for_each(|e| pool.release(*e));
            });
        }
    }

    /// Compares the new access with every segment that it touches, which lie wholly in it, and makes it an entry of each.
    fn visit_all(&mut self, first: At, new: &New<'_>, clocks: &impl Clocks, race: &mut impl FnMut(&Access, bool)) {
        let (start, end) = (new.access.extent.start, new.access.extent.end);
        let mut gaps: SmallVec<[(u64, u64); 4]> = SmallVec::new();
        let (mut upto, mut uniform, mut seen) = (start, true, 0);
        let mut at = first;
        'walk: while upto < end {
            let spans = self.segments.slice_from_mut(at);
            if spans.is_empty() {
                break;
            }
            for span in spans {
                if span.start >= end {
                    break 'walk;
                }
                if upto < span.start {
                    gaps.push((upto, span.start));
                }
                self.forgotten += visit(&mut span.value, &mut self.pool, new, clocks, race);
                uniform = uniform && is_alone(&span.value, &self.pool, new);
                upto = span.end;
                seen += 1;
            }
            at = at.next_chunk();
        }
        if upto < end {
            gaps.push((upto, end));
        }
        // An access that stands for all that was there leaves one segment, or the borders of long ago would stay for ever.
        if uniform && seen > 1 {
            self.segments.remove_run(self.segments.next(first), seen - 1, |entries| {
                entries.iter().for_each(|e| self.pool.release(*e));
            });
            self.segments.set_start(first, start);
            if let Some((to, _)) = self.segments.get_mut(first) {
                *to = end;
            }
            gaps.clear();
        }
        for (start, end) in gaps {
            self.pool.count(new.entry);
            let at = self.segments.seek(start);
            self.segments.insert(at, Span { start, end, value: SmallVec::from_elem(new.entry, 1) });
        }
        self.pool.release(new.entry);
    }

    /// Hands out the races of an access like [`AccessMap::add`], but does not keep it: it is over already.
    pub fn check(&self, access: &Access, clocks: &impl Clocks, race: &mut impl FnMut(&Access, bool)) {
        let (start, end) = (access.extent.start, access.extent.end);
        if start >= end {
            return;
        }
        let mut at = self.segments.seek(start);
        while let Some(segment) = self.segments.get(at).filter(|s| s.start < end) {
            let entries = segment.value.iter().map(|e| self.pool.get(*e));
            for e in entries.filter(|e| !e.same_op(access) && e.kind.conflicts(access.kind)) {
                let ordered = clocks.ordered(e);
                if ordered != Ordered::Yes {
                    race(e, ordered == Ordered::Latent);
                }
            }
            at = self.segments.next(at);
        }
    }

    /// Drops what can never race again.
    pub fn sweep(&mut self, clocks: &impl Clocks) {
        let pool = &mut self.pool;
        let held = pool.held.iter().zip(&pool.counts);
        let dead: Vec<bool> = held.map(|(access, count)| *count > 0 && clocks.dead(access)).collect();
        self.segments.retain(|entries| {
            entries.retain(|e| {
                let dead = dead[e.number() as usize];
                if dead {
                    pool.release(*e);
                }
                !dead
            });
            !entries.is_empty()
        });
        self.sweep_at = SWEEP_SEGMENTS.max(self.segments.len() * 2);
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        *self = Self { forgotten: self.forgotten, ..Self::default() };
    }

    /// All entries; one that reaches into several segments comes several times.
    pub fn iter(&self) -> impl Iterator<Item = &Access> {
        self.segments.iter().flat_map(|s| s.value.iter().map(|e| self.pool.get(*e)))
    }

    /// Number of entries, for the bounds on memory.
    pub fn entries(&self) -> usize {
        self.segments.iter().map(|s| s.value.len()).sum()
    }

    /// Entries dropped although they could still have raced.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Makes a segment end at `border`, which lies inside it; answers the rest of it, which is still to be inserted.
    fn cut(&mut self, at: At, border: u64) -> Span<Entries> {
        let mut tail = Span { start: border, end: border, value: Entries::new() };
        if let Some((end, entries)) = self.segments.get_mut(at) {
            (tail.end, tail.value) = (*end, entries.clone());
            *end = border;
        }
        tail.value.iter().for_each(|e| self.pool.count(*e));
        tail
    }
}

/// An access that is being added.
struct New<'a> {
    access: &'a Access,
    entry: Entry,
    /// See [`is_whole`].
    whole: bool,
}

/// Whether an access touches every byte from its first to its last.
fn is_whole(access: &Access) -> bool {
    access.extent.precision == Precision::Exact && access.extent.is_dense()
}

/// What lies at the bytes of an access.
struct Lies {
    /// Where the first segment begins.
    from: u64,
    /// Segments that lie wholly in the access.
    covered: usize,
    /// Whether the one after those reaches over its end.
    parted: bool,
    /// That one.
    stop: At,
    /// Whether everything is over.
    over: bool,
}

/// Whether the new access, or the very same of its op, is all that a segment has.
#[inline]
fn is_alone(entries: &Entries, pool: &Pool, new: &New<'_>) -> bool {
    let [only] = entries[..] else { return false };
    only.word == new.entry.word || {
        let other = pool.get(only);
        other.same_op(new.access) && other == new.access
    }
}

/// What becomes of an earlier access that is not over for certain.
#[inline]
fn judge(e: &Access, new: &New<'_>, clocks: &impl Clocks) -> Verdict {
    let access = new.access;
    if e.same_op(access) {
        if e.kind.stands_for(access.kind) && (is_whole(e) || e.extent.same_shape(&access.extent)) {
            return Verdict::Redundant;
        }
    } else {
        let ordered = clocks.ordered(e);
        if ordered != Ordered::Yes {
            return if e.kind.conflicts(access.kind) {
                Verdict::Race(ordered == Ordered::Latent)
            } else {
                Verdict::Keep
            };
        }
    }
    let stands = access.kind.stands_for(e.kind) && (new.whole || access.extent.same_shape(&e.extent));
    if stands { Verdict::Drop } else { Verdict::Keep }
}

/// Compares with the entries of one segment, drops those that the access stands for, and adds it. Answers how many
/// entries had to be forgotten.
fn visit(
    entries: &mut Entries,
    pool: &mut Pool,
    new: &New<'_>,
    clocks: &impl Clocks,
    race: &mut impl FnMut(&Access, bool),
) -> u64 {
    let kind = new.access.kind;
    let (mut redundant, mut kept) = (false, 0);
    let list = &mut entries[..];
    for i in 0..list.len() {
        let e = list[i];
        if clocks.finished(e.epoch()) {
            if kind.stands_for(e.kind()) && (new.whole || new.access.extent.same_shape(&pool.get(e).extent)) {
                pool.release(e);
                continue;
            }
        } else {
            match judge(pool.get(e), new, clocks) {
                Verdict::Drop => {
                    pool.release(e);
                    continue;
                }
                Verdict::Keep => {}
                Verdict::Race(latent) => race(pool.get(e), latent),
                Verdict::Redundant => redundant = true,
            }
        }
        list[kept] = e;
        kept += 1;
    }
    entries.truncate(kept);
    if redundant {
        return 0;
    }
    if entries.len() >= SWEEP_ENTRIES {
        entries.retain(|e| {
            let dead = clocks.dead(pool.get(*e));
            if dead {
                pool.release(*e);
            }
            !dead
        });
    }
    let mut forgotten = 0;
    if entries.len() >= MAX_ENTRIES {
        pool.release(entries.remove(0));
        forgotten = 1;
    }
    pool.count(new.entry);
    entries.push(new.entry);
    forgotten
}
