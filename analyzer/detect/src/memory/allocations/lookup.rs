//! The look-up of addresses: in which allocation and access map they lie, and whether that still
//! holds.
//!
//! Owns the look-up, and generations of its results. Does not begin or end lifetimes.

use super::Allocations;
use crate::memory::access::Access;
use crate::memory::access_map::AccessMap;
use crate::memory::roots::Root;
use crate::memory::{Allocation, AllocationId, Extent, Generation, Precision, Slot};
use std::ops::Bound;
use trace::{ArrayId, MemoryKind};

/// Which access map bytes belong to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Home {
    /// The root at this address.
    Root(u64),
    /// An opaque array; addresses are offsets.
    Array(ArrayId),
    /// No allocation.
    Pageable,
}

/// The result of a look-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The access map.
    pub home: Home,
    /// The address after aliases were followed.
    pub address: u64,
    /// One past the last address for which this result holds.
    pub(crate) end: u64,
    /// The innermost allocation.
    pub allocation: AllocationId,
    /// First address of the innermost allocation.
    pub(crate) start: u64,
}

impl Allocations {
    /// The address that an alias stands for, and where the alias ends there.
    pub(super) fn followed(&self, address: u64) -> (u64, u64) {
        if !self.aliases.is_empty()
            && let Some((from, (end, target))) = self.aliases.range(..=address).next_back()
            && address < *end
        {
            return (target.saturating_add(address - from), target.saturating_add(end - from));
        }
        (address, u64::MAX)
    }

    /// Where an address lies; `None` when it is in no allocation.
    pub fn locate(&self, address: u64) -> Option<Location> {
        let (address, limit) = self.followed(address);
        let Some((ptr, root)) = self.roots.around(address) else {
            return self.locate_in_arrays(address);
        };
        let mut place =
            Location { home: Home::Root(ptr), address, end: root.end.min(limit), allocation: root.id, start: ptr };
        match self.blocks.get(self.blocks.seek(address)) {
            Some(block) if block.start <= address => {
                (place.allocation, place.start) = (block.value.id, block.start);
                place.end = place.end.min(block.end);
            }
            // Between blocks: the result changes where the next block begins.
            Some(next) => place.end = place.end.min(next.start),
            None => {}
        }
        Some(place)
    }

    /// Where an address in an array lies, as a simulated GPU places them: its offset in the array.
    #[cold]
    fn locate_in_arrays(&self, address: u64) -> Option<Location> {
        let (from, (end, array)) = self.array_places.range(..=address).next_back()?;
        if address < *end { self.locate_array(*array, address - from) } else { None }
    }

    /// The kind of the root that an address lies in.
    pub fn root_kind(&self, address: u64) -> Option<MemoryKind> {
        let (_, root) = self.roots.around(address)?;
        self.infos.get(&root.id)?.kind
    }

    /// First and last address (exclusive) of the innermost allocation of a place.
    pub(crate) fn bounds(&self, place: &Location) -> (u64, u64) {
        let end = self.infos.get(&place.allocation).map_or(place.end, Allocation::end);
        (place.start, end.max(place.address.saturating_add(1)))
    }

    /// One past the last address of the root that a place lies in.
    pub(crate) fn root_end(&self, place: &Location) -> u64 {
        self.roots.around(place.address).map_or(place.end, |(_, root)| root.end)
    }

    /// The first address after this one that an allocation, an alias or an array begins at.
    pub(crate) fn next_known(&self, address: u64) -> u64 {
        let after = (Bound::Excluded(address), Bound::Unbounded);
        let root = self.roots.next_after(address).unwrap_or(u64::MAX);
        let alias = self.aliases.range(after).next().map_or(u64::MAX, |(ptr, _)| *ptr);
        let array = self.array_places.range(after).next().map_or(u64::MAX, |(at, _)| *at);
        root.min(alias).min(array)
    }

    /// Where an offset in an array lies.
    pub(crate) fn locate_array(&self, array: ArrayId, offset: u64) -> Option<Location> {
        let root = self.arrays.get(&array)?;
        let home = Home::Array(array);
        Some(Location {
            home,
            address: offset,
            end: root.end.max(offset.saturating_add(1)),
            allocation: root.id,
            start: 0,
        })
    }

    /// The access map of a place. `None` when the root has ended since.
    pub(crate) fn map(&mut self, home: Home) -> Option<&mut AccessMap> {
        match home {
            Home::Root(ptr) => self.roots.get_mut(ptr).map(|r| &mut r.map),
            Home::Array(array) => self.arrays.get_mut(&array).map(|r| &mut r.map),
            Home::Pageable => Some(&mut self.pageable),
        }
    }

    /// The predicted accesses of measured launches at a place.
    pub(crate) fn supposed(&mut self, home: Home) -> Option<&mut AccessMap> {
        match home {
            Home::Root(ptr) => self.roots.get_mut(ptr).map(|r| &mut r.supposed),
            Home::Array(array) => self.arrays.get_mut(&array).map(|r| &mut r.supposed),
            Home::Pageable => None,
        }
    }

    /// The accesses that are remembered at a place.
    pub fn accesses(&self, home: Home) -> impl Iterator<Item = Access> {
        let map = match home {
            Home::Root(ptr) => self.roots.get(ptr).map(|r| &r.map),
            Home::Array(array) => self.arrays.get(&array).map(|r| &r.map),
            Home::Pageable => Some(&self.pageable),
        };
        map.into_iter().flat_map(AccessMap::iter)
    }

    /// The accesses that are remembered in roots of these kinds.
    pub fn accesses_in(&self, kinds: &[MemoryKind]) -> impl Iterator<Item = Access> {
        let is_one = |root: &&Root| self.infos.get(&root.id).and_then(|i| i.kind).is_some_and(|k| kinds.contains(&k));
        self.roots.values().filter(is_one).flat_map(|r| r.map.iter())
    }

    /// The generation of a place in a root. While [`Allocations::holds`] is true, every address of
    /// that look-up result lies there. It does not cover addresses in no allocation or under an
    /// alias: see [`Allocations::layout`].
    pub(crate) fn generation(&self, place: &Location) -> Option<Generation> {
        let Home::Root(ptr) = place.home else { return None };
        let root = self.roots.get(ptr)?;
        let block = self.blocks.get(self.blocks.seek(place.address)).filter(|block| block.start <= place.address);
        Some(self.stamps.generation(block.map_or(root.number, |block| block.value.number)))
    }

    /// Whether a generation still holds.
    #[inline]
    pub(crate) fn holds(&self, generation: Generation) -> bool {
        self.stamps.holds(generation)
    }

    /// Forgets the pointer tables in these bytes of a root.
    pub(crate) fn overwritten(&mut self, extent: &Extent) {
        let (mut start, mut end) = (extent.start, extent.end);
        if extent.precision == Precision::Unknown
            && let Some(place) = self.locate(extent.anchor)
        {
            (start, end) = self.bounds(&place);
        }
        self.contents.forget(start, end);
    }

    /// Notes an access to a root for what escaped captures.
    #[inline]
    pub(crate) fn escaped(&mut self, access: impl FnOnce() -> Access) {
        if !self.escapes.is_idle() {
            self.escapes.touch(&access(), &self.strays);
        }
    }

    /// The allocation of a generation that holds.
    #[inline]
    pub(crate) fn allocation_of(&self, generation: Generation) -> AllocationId {
        self.stamps.id(generation)
    }

    /// The slot of a root, valid while the root lives.
    pub(crate) fn slot(&self, home: Home) -> Option<Slot> {
        let Home::Root(ptr) = home else { return None };
        self.roots.slot(ptr)
    }

    /// The access map of a root that lives.
    #[inline]
    pub(crate) fn map_at(&mut self, slot: Slot) -> &mut AccessMap {
        &mut self.roots.at_mut(slot).map
    }

    /// The changes that no generation covers: how often a root has come or gone (which decides what
    /// lies in no allocation), and how often aliases, objects or addresses of variables have
    /// changed.
    #[inline]
    pub(crate) fn layout(&self) -> (u64, u64) {
        (self.roots.changes(), self.others)
    }
}
