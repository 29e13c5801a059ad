//! Memory that other processes have too, and the accesses to it that they must learn of.
//!
//! Owns the list of such accesses between two records. `analysis::ipc` collects it.

use super::{Allocations, Home};
use crate::memory::AllocationId;
use crate::memory::access::{Access, Cause};
use trace::MemoryKind;

/// The news about shared memory since the last collection.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) ever: Vec<AllocationId>,
    touched: Vec<(AllocationId, Access)>,
    pub(super) ended: Vec<AllocationId>,
}

impl Allocations {
    /// Marks the root around this address as shared. Returns it, its first address, and whether it
    /// belongs to another process.
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

    /// Whether an address lies in memory that other processes have too.
    pub fn is_shared(&self, address: u64) -> bool {
        let Some(Home::Root(start)) = self.locate(address).map(|place| place.home) else { return false };
        self.roots.get(start).is_some_and(|root| root.shared)
    }

    /// The root around an address, if other processes have it too.
    pub fn shared_root(&self, address: u64) -> Option<AllocationId> {
        let Home::Root(start) = self.locate(address)?.home else { return None };
        self.roots.get(start).filter(|root| root.shared).map(|root| root.id)
    }

    /// Notes an access to this place, if it is shared.
    #[inline]
    pub(crate) fn touched(&mut self, home: Home, access: &Access) {
        if !self.shared.ever.is_empty() {
            self.touched_shared(home, access);
        }
    }

    #[cold]
    fn touched_shared(&mut self, home: Home, access: &Access) {
        let Home::Root(start) = home else { return };
        let Some(root) = self.roots.get(start).filter(|root| root.shared) else { return };
        // Closing another process's memory is no access to it, nor is taking a mapping away: the
        // memory behind it lives as long as any process has it.
        let kind = self.infos.get(&root.id).and_then(|info| info.kind);
        let stays = matches!(kind, Some(MemoryKind::Imported | MemoryKind::Mapped));
        if access.site.cause != Cause::Free || !stays {
            self.shared.touched.push((root.id, access.clone()));
        }
    }

    /// The accesses to shared memory since the last time.
    pub fn take_shared(&mut self) -> Option<Vec<(AllocationId, Access)>> {
        (!self.shared.touched.is_empty()).then(|| std::mem::take(&mut self.shared.touched))
    }

    /// The shared memory that has ended since the last time.
    pub fn take_shared_ends(&mut self) -> Vec<AllocationId> {
        std::mem::take(&mut self.shared.ended)
    }

    /// All memory that was shared.
    pub fn ever_shared(&self) -> impl Iterator<Item = AllocationId> {
        self.shared.ever.iter().copied()
    }
}
