//! What the rules must know of memory: the kind of every live allocation, and which pool bytes were
//! freed where.
//!
//! Owns the two maps. Blocks that a program's own allocator carves out are not in it: the memory
//! below them decides.

use std::collections::BTreeMap;

use trace::{ContextId, FreeKind, MemoryKind};

use crate::clock::{FloorRef, TimelineSnapshot};

/// One live allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    /// One past its last byte.
    pub(crate) end: u64,
    /// Its kind.
    pub kind: MemoryKind,
    /// The context it was made in.
    pub context: ContextId,
    /// Synchronous operations on it always synchronise.
    pub(crate) sync_memops: bool,
    /// It is a second address of another allocation.
    alias_of: Option<u64>,
}

/// All live allocations, and freed pool memory.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    live: BTreeMap<u64, Allocation>,
    /// Bytes freed in stream order, disjoint, with the free's place in the order.
    freed: BTreeMap<u64, (u64, TimelineSnapshot)>,
    /// Size of `freed` at which covered entries are swept out.
    sweep_at: usize,
}

impl Allocations {
    /// The live allocation around an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Allocation> {
        let (_, range) = self.live.range(..=address).next_back()?;
        (address < range.end).then_some(range)
    }

    /// New memory. What it overlaps is gone: its end was not seen.
    pub(crate) fn insert(&mut self, start: u64, size: u64, kind: MemoryKind, context: ContextId) {
        if kind == MemoryKind::Block || size == 0 {
            return;
        }
        let end = start.saturating_add(size);
        while let Some((&other, range)) = self.live.range(..end).next_back() {
            if range.end <= start {
                break;
            }
            self.live.remove(&other);
        }
        self.live.insert(start, Allocation { end, kind, context, sync_memops: false, alias_of: None });
    }

    /// A second address of known memory; unknown memory is ignored.
    pub(crate) fn alias(&mut self, start: u64, target: u64, size: u64) {
        if let Some(&range) = self.find(target)
            && (self.find(start).is_none() || target >= trace::SUBSTITUTE)
        {
            self.insert(start, size, range.kind, range.context);
            if let Some(new) = self.live.get_mut(&start) {
                new.alias_of = Some(target);
            }
        }
    }

    /// A second address goes away.
    pub(crate) fn unalias(&mut self, start: u64) {
        if self.live.get(&start).is_some_and(|range| range.alias_of.is_some()) {
            self.live.remove(&start);
        }
    }

    /// Memory goes away, its aliases too.
    pub(crate) fn remove(&mut self, start: u64, kind: FreeKind) -> Option<Allocation> {
        if kind == FreeKind::Block {
            return None;
        }
        // The address may be that of other memory by now, which the name of the first does not end.
        let is_substituted = |range: &Allocation| range.alias_of.is_some_and(|target| target >= trace::SUBSTITUTE);
        if kind == FreeKind::Unmap && self.live.get(&start).is_some_and(is_substituted) {
            return None;
        }
        let range = self.live.remove(&start)?;
        if matches!(range.kind, MemoryKind::PinnedHost | MemoryKind::RegisteredHost | MemoryKind::Mapped) {
            self.live.retain(|_, r| !r.alias_of.is_some_and(|t| start <= t && t < range.end));
        }
        Some(range)
    }

    /// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
    pub(crate) fn set_sync_memops(&mut self, address: u64, on: bool) {
        if let Some((_, range)) = self.live.range_mut(..=address).next_back()
            && address < range.end
        {
            range.sync_memops = on;
        }
    }

    /// Bytes went back to their pool in stream order.
    pub(crate) fn freed(&mut self, start: u64, end: u64, by: TimelineSnapshot, floor: FloorRef<'_>) {
        self.take_freed(start, end);
        if self.freed.len() >= self.sweep_at {
            self.freed.retain(|_, (_, s)| floor.times.get(s.own.slot as usize).is_none_or(|&t| t < s.own.time));
            self.sweep_at = 64 + self.freed.len() * 2;
        }
        self.freed.insert(start, (end, by));
    }

    /// Bytes leave the pool again: the frees that they are ordered after.
    pub(crate) fn take_freed(&mut self, start: u64, end: u64) -> Vec<TimelineSnapshot> {
        let mut found = Vec::new();
        while let Some((&s, (e, _))) = self.freed.range(..end).next_back() {
            if *e <= start {
                break;
            }
            let Some((e, snapshot)) = self.freed.remove(&s) else { break };
            if s < start {
                self.freed.insert(s, (start, snapshot.clone()));
            }
            if end < e {
                self.freed.insert(end, (e, snapshot.clone()));
            }
            found.push(snapshot);
            if s < start {
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Entry;

    fn by(time: u64) -> TimelineSnapshot {
        TimelineSnapshot { own: Entry { slot: 1, time }, ..TimelineSnapshot::default() }
    }

    #[test]
    fn reuse_of_a_part_keeps_the_rest() {
        let floor = FloorRef { times: &[], all_before: 0, version: 0, now: 1 };
        let mut m = Allocations::default();
        m.freed(100, 200, by(1), floor);
        m.freed(200, 300, by(2), floor);
        let times = |v: Vec<TimelineSnapshot>| v.iter().map(|s| s.own.time).collect::<Vec<_>>();
        assert_eq!(times(m.take_freed(150, 250)), [2, 1]);
        assert_eq!(times(m.take_freed(150, 250)), [], "these bytes have left the pool");
        assert_eq!(times(m.take_freed(0, 400)), [2, 1], "the ends are still in it");
    }

    #[test]
    fn ranges_end_where_they_end() {
        let mut m = Allocations::default();
        m.insert(100, 50, MemoryKind::Pool, ContextId(1));
        assert!(m.find(99).is_none() && m.find(150).is_none());
        assert_eq!(m.find(149).map(|r| r.kind), Some(MemoryKind::Pool));
        m.insert(140, 100, MemoryKind::PinnedHost, ContextId(1));
        assert!(m.find(100).is_none(), "the old range was overwritten");
        m.alias(1000, 150, 20);
        assert_eq!(m.find(1019).map(|r| r.kind), Some(MemoryKind::PinnedHost));
        m.remove(140, FreeKind::Host);
        assert!(m.find(1000).is_none(), "an alias goes with its memory");
        m.insert(u64::MAX - 1, 100, MemoryKind::Device, ContextId(1));
        m.alias(5, 6, 7);
        assert!(m.find(5).is_none());
    }
}
