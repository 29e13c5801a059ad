//! The table of live roots (memory from CUDA) by address, each with its access map.
//!
//! Owns an index by address, and slots that stay in place while a root lives, so that a caller that
//! knows the slot finds the root without a search. Does not decide when a root begins or ends.

use super::access_map::AccessMap;
use super::allocation::AllocationId;
use crate::memory::generations::Number;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The slot of a root in the table, valid while the root lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

/// What the host can do with a root, and whether that is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum HostSide {
    /// Nothing, or nothing that is left to say.
    #[default]
    Settled,
    /// Loads and stores, which nobody looks for.
    Unwatched,
}

/// One root.
#[derive(Debug, Default)]
pub(crate) struct Root {
    /// One past its last address.
    pub(crate) end: u64,
    /// Its lifetime.
    pub(crate) id: AllocationId,
    /// Its number in [`super::generations`].
    pub(crate) number: Number,
    /// It was freed in stream order, and its addresses were not allocated again since.
    pub(crate) ghost: bool,
    /// Other processes have it too.
    pub(crate) shared: bool,
    /// What the host can do with it, and whether that is seen.
    pub(crate) host_side: HostSide,
    /// All loads and stores of the host are looked for while work may use it.
    pub(crate) held: bool,
    /// The accesses to it.
    pub(crate) map: AccessMap,
    /// The predicted accesses of measured launches, when findings are being confirmed: see
    /// [`crate::exact::confirm`].
    pub(crate) supposed: AccessMap,
}

impl Root {
    /// A root without accesses.
    pub(crate) fn new(end: u64, id: AllocationId, number: Number) -> Self {
        Self { end, id, number, ..Self::default() }
    }
}

/// All roots; they do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    index: BTreeMap<u64, Slot>,
    slots: Vec<Root>,
    free: Vec<Slot>,
    changes: u64,
    /// The last root found and its first address. `None` when a root has come or gone since.
    last: Cell<Option<(u64, Slot)>>,
}

impl Roots {
    /// Number of roots.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// How often a root has come or gone.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The root that begins at this address.
    pub(crate) fn get(&self, ptr: u64) -> Option<&Root> {
        Some(self.at(*self.index.get(&ptr)?))
    }

    /// The root that begins at this address.
    pub(crate) fn get_mut(&mut self, ptr: u64) -> Option<&mut Root> {
        Some(self.at_mut(*self.index.get(&ptr)?))
    }

    /// The slot of the root that begins at this address.
    pub(crate) fn slot(&self, ptr: u64) -> Option<Slot> {
        self.index.get(&ptr).copied()
    }

    /// The root in a slot.
    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> &Root {
        &self.slots[slot.0 as usize]
    }

    /// The root in a slot.
    #[inline]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Root {
        &mut self.slots[slot.0 as usize]
    }

    /// The root around an address, and its first address.
    #[inline]
    pub(crate) fn around(&self, address: u64) -> Option<(u64, &Root)> {
        if let Some((ptr, slot)) = self.last.get()
            && ptr <= address
            && address < self.at(slot).end
        {
            return Some((ptr, self.at(slot)));
        }
        self.search(address)
    }

    fn search(&self, address: u64) -> Option<(u64, &Root)> {
        let (ptr, slot) = self.index.range(..=address).next_back()?;
        let root = self.at(*slot);
        self.last.set(Some((*ptr, *slot)));
        (address < root.end).then_some((*ptr, root))
    }

    /// The first address after this one at which a root begins.
    pub(crate) fn next_after(&self, address: u64) -> Option<u64> {
        self.index.range((Bound::Excluded(address), Bound::Unbounded)).next().map(|(ptr, _)| *ptr)
    }

    /// The first addresses of the roots that overlap these addresses.
    pub(crate) fn within(&self, start: u64, end: u64) -> Vec<u64> {
        let mut found: Vec<u64> = self.index.range(start..end.max(start)).map(|(ptr, _)| *ptr).collect();
        found.extend(self.around(start).map(|(ptr, _)| ptr).filter(|ptr| *ptr < start));
        found
    }

    /// Inserts a root at an address where none begins.
    pub(crate) fn insert(&mut self, ptr: u64, root: Root) {
        self.changes += 1;
        self.last.set(None);
        let slot = match self.free.pop() {
            Some(slot) => {
                *self.at_mut(slot) = root;
                slot
            }
            None => {
                self.slots.push(root);
                Slot(self.slots.len() as u32 - 1)
            }
        };
        self.index.insert(ptr, slot);
    }

    /// Removes the root that begins at this address.
    pub(crate) fn remove(&mut self, ptr: u64) -> Option<Root> {
        let slot = self.index.remove(&ptr)?;
        self.changes += 1;
        self.last.set(None);
        self.free.push(slot);
        Some(std::mem::take(self.at_mut(slot)))
    }

    /// All roots with their first addresses, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Root)> {
        self.index.iter().map(|(ptr, slot)| (*ptr, self.at(*slot)))
    }

    /// All roots, in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Root> {
        self.iter().map(|(_, root)| root)
    }
}
