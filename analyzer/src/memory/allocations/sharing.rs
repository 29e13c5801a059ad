//! Memory that other processes know, and what is told of it.

use super::{Allocations, Home};
use crate::memory::AllocationId;
use crate::memory::access::{Access, Cause};
use trace::MemoryKind;

/// What is told of memory that other processes know.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) ever: Vec<AllocationId>,
    touched: Vec<(AllocationId, Access)>,
    pub(super) ended: Vec<AllocationId>,
}

impl Allocations {
    /// The root around this address is known to other processes from now on. Answers it, its first
    /// address, and whether it is another process's.
    pub fn share(&mut self, address: u64) -> Option<(AllocationId, u64, bool)> {
        let Home::Root(start) = self.locate(address)?.home else { return None };
        let root = self.roots.get_mut(start).filter(|root| !root.ghost)?;
        if !root.shared {
            root.shared = true;
            self.shared.ever.push(root.id);
        }
        let kind = self.infos.get(&root.id).and_then(|info| info.kind);
        Some((root.id, start, kind == Some(MemoryKind::Imported)))
    }

    /// An access was made to this place: other processes that know it will be told.
    #[inline]
    pub fn touched(&mut self, home: Home, access: &Access) {
        if !self.shared.ever.is_empty() {
            self.touched_shared(home, access);
        }
    }

    #[cold]
    fn touched_shared(&mut self, home: Home, access: &Access) {
        let Home::Root(start) = home else { return };
        let Some(root) = self.roots.get(start).filter(|root| root.shared) else { return };
        // To let go of another process's memory is no access to it.
        let kind = self.infos.get(&root.id).and_then(|info| info.kind);
        if access.site.cause != Cause::Free || kind != Some(MemoryKind::Imported) {
            self.shared.touched.push((root.id, *access));
        }
    }

    /// The accesses to shared memory since the last time.
    pub fn take_shared(&mut self) -> Option<Vec<(AllocationId, Access)>> {
        (!self.shared.touched.is_empty()).then(|| std::mem::take(&mut self.shared.touched))
    }

    /// The shared memory that has gone since the last time.
    pub fn take_shared_ends(&mut self) -> Vec<AllocationId> {
        std::mem::take(&mut self.shared.ended)
    }

    /// All memory that was shared.
    pub fn ever_shared(&self) -> impl Iterator<Item = AllocationId> {
        self.shared.ever.iter().copied()
    }
}
