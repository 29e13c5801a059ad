//! Whether a value that a fill or a copy left in memory is still there.
//!
//! Owns that question. What was left where, and which waits it matters to, is the crate `order`'s.
//! The answer errs towards "no": then a wait is judged as if the value were not known.

use super::Allocations;
use crate::memory::access::{Access, Cause};
use crate::memory::allocations::Home;
use crate::memory::extent::{Extent, Meet};
use order::FoundValues;
use trace::{Epoch, MemoryKind};

/// Memory that the host cannot write to. A store of the host to other memory need not be seen.
pub(super) const OF_DEVICES: [MemoryKind; 4] =
    [MemoryKind::Device, MemoryKind::Pool, MemoryKind::Mapped, MemoryKind::ModuleGlobal];

/// Whether what the op of this epoch left at an address can only have been overwritten by
/// writes of known values. `moment`: when it was made ([`crate::memory::Strays::now`]).
pub(crate) fn holds_left(memory: &Allocations, found: &FoundValues, epoch: Epoch, moment: u64) -> bool {
    let Some(place) = memory.locate(found.address) else { return false };
    let Home::Root(start) = place.home else { return false };
    let Some(root) = memory.roots.get(start).filter(|root| !root.shared) else { return false };
    let kind = memory.infos.get(&root.id).and_then(|info| info.kind);
    if !kind.is_some_and(|kind| OF_DEVICES.contains(&kind))
        || memory.strays.any_since(moment, [place.allocation, root.id])
    {
        return false;
    }
    let of_bytes = |access: &Access| matches!(access.site.cause, Cause::Copy | Cause::Set) && access.site.node == 0;
    // What stands in the map in place of the fill, and what has not been ordered after it.
    let is_known = |access: &Access| match access.site.cause {
        Cause::Value => found.known.contains(&access.epoch),
        Cause::Alloc => true,
        _ => of_bytes(access) && found.known.contains(&access.epoch),
    };
    (place.address..place.address.saturating_add(found.width.into())).all(|at| {
        let byte = Extent::exact(at, at.saturating_add(1));
        let (mut is_there, mut others) = (false, false);
        root.map.each_at(at, &mut |access| {
            if access.kind.writes() && access.extent.meet(&byte) != Meet::No {
                is_there |= access.epoch == epoch && of_bytes(access);
                others |= !is_known(access);
            }
        });
        is_there && !others
    })
}
