//! Memory that the host can load from and store to, and whether anything looks for that.
//!
//! Owns the count of such allocations that devices use while nothing looks: a blind spot that the
//! report names. Does not look for accesses of the host itself.

use super::{Allocations, Home};
use crate::memory::access::{Access, Cause};
use crate::memory::roots::HostSide;
use trace::MemoryKind;

/// Allocations that devices used while nothing looked for the host's accesses, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwatched {
    /// Managed memory.
    pub managed: u64,
    /// Pinned and registered memory that kernels or fills use in place.
    pub pinned: u64,
    /// Live roots for which that may still come up.
    live: u64,
}

impl Allocations {
    /// A root begins, of this kind.
    pub(super) fn host_side(&mut self, kind: Option<MemoryKind>) -> HostSide {
        match kind {
            Some(MemoryKind::Managed | MemoryKind::PinnedHost | MemoryKind::RegisteredHost) => {
                self.unwatched.live += 1;
                HostSide::Unwatched
            }
            _ => HostSide::Settled,
        }
    }

    /// From now on the host's accesses to the memory at this address are looked for.
    pub fn watched(&mut self, ptr: u64) {
        let Some(root) = self.roots.get_mut(ptr) else { return };
        root.held = true;
        if root.host_side == HostSide::Unwatched {
            root.host_side = HostSide::Settled;
            self.unwatched.live -= 1;
        }
    }

    /// An access of a device: counts its memory when the host may use that unseen. What copies do
    /// with pinned memory is watched in another way (by its content).
    #[inline]
    pub(crate) fn used(&mut self, home: Home, access: &Access) {
        if self.unwatched.live > 0 && matches!(access.site.cause, Cause::Kernel | Cause::Copy | Cause::Set) {
            self.used_unwatched(home, access.site.cause);
        }
    }

    #[cold]
    fn used_unwatched(&mut self, home: Home, cause: Cause) {
        let Home::Root(start) = home else { return };
        let Some(root) = self.roots.get_mut(start).filter(|root| root.host_side == HostSide::Unwatched) else { return };
        let managed = self.infos.get(&root.id).is_some_and(|info| info.kind == Some(MemoryKind::Managed));
        if cause == Cause::Copy && !managed {
            return;
        }
        root.host_side = HostSide::Settled;
        self.unwatched.live -= 1;
        *(if managed { &mut self.unwatched.managed } else { &mut self.unwatched.pinned }) += 1;
    }

    /// What came up so far.
    pub fn unwatched(&self) -> Unwatched {
        self.unwatched
    }

    /// A root has ended.
    pub(super) fn host_side_ended(&mut self, side: HostSide) {
        self.unwatched.live -= u64::from(side == HostSide::Unwatched);
    }
}
