//! Whether a kernel can tell the host anything unseen.
//!
//! Owns the rules by which a message of a kernel is known for one: where it writes to memory of the
//! host, and whether the host's loads from there are all seen. Does not know which kernels send
//! messages, nor what the host has looked at.

use super::Allocations;
use crate::memory::access::{Access, AccessKind, Cause};
use crate::memory::extent::{Extent, Meet, Precision};
use crate::memory::roots::Root;
use trace::{Epoch, MemoryKind};

/// Bytes up to which a plain store may be a flag. Larger ones are what flags stand for.
const FLAG: u64 = 16;

/// The first and the last page of registered memory are not held where the program has other data
/// on them. Pages of other processors may have 64 KiB.
const PAGE: u64 = if cfg!(target_arch = "x86_64") { 1 << 12 } else { 1 << 16 };

/// Kinds of memory in which the host may find a flag. A variable may be managed.
const FLAGS: [MemoryKind; 4] =
    [MemoryKind::PinnedHost, MemoryKind::RegisteredHost, MemoryKind::Managed, MemoryKind::ModuleGlobal];

/// Whether an access may be a message to the host: a kernel's atomic store, or a store of so few
/// bytes, or one whose bytes are not known. An atomic store that does not reach the host is none.
pub fn may_be_flag(access: &Access) -> bool {
    !access.exclusion.narrow && is_flag(access)
}

/// The same for anyone on the device, too.
fn is_flag(access: &Access) -> bool {
    let extent = &access.extent;
    let few = extent.end.saturating_sub(extent.start) <= FLAG;
    let known = extent.precision == Precision::Exact;
    access.site.cause == Cause::Kernel && access.kind.writes() && (access.kind.is_atomic() || few || !known)
}

/// The work of kernels whose flags the host may find in these bytes.
pub fn flags_in(memory: &Allocations, start: u64, end: u64) -> impl Iterator<Item = Epoch> {
    let moved = memory.locate(start).map_or(0, |place| place.address.wrapping_sub(start));
    let bytes = |by: u64| Extent::exact(start.wrapping_add(by), end.saturating_add(by));
    let looked = [bytes(0), bytes(moved)];
    let is_found = move |access: &Access| {
        let known = access.extent.precision != Precision::Unknown;
        may_be_flag(access) && (!known || looked.iter().any(|bytes| bytes.meet(&access.extent) != Meet::No))
    };
    memory.accesses_in(&FLAGS).filter(is_found).map(|access| access.epoch)
}

/// Whether this work of a kernel can tell the host nothing that the host does not load from
/// memory that is held. It cannot while
///
/// - it writes to memory of the host where nothing looks for loads;
/// - it updates such memory by atomics, or loads from it by such: it may answer the host;
/// - another op reads what it writes elsewhere by atomics: that one may tell the host.
pub fn speaks_openly(memory: &Allocations, epoch: Epoch) -> bool {
    memory.roots.iter().all(|(start, root)| {
        let kind = memory.infos.get(&root.id).and_then(|info| info.kind);
        let mut own = root.map.iter().filter(|access| access.epoch == epoch);
        match kind.filter(|kind| FLAGS.contains(kind)) {
            Some(MemoryKind::ModuleGlobal) if !root.held => !own.any(|access| is_flag(&access)),
            Some(kind) => own.all(|access| match access.kind {
                AccessKind::Atomic | AccessKind::AtomicRead => false,
                _ => !access.kind.writes() || is_held(start, root, kind, &access.extent),
            }),
            None => {
                let tells = own.any(|access| access.kind.writes() && access.kind.is_atomic());
                !tells || !root.map.iter().any(|other| other.epoch != epoch && other.kind.reads())
            }
        }
    })
}

/// Whether all loads of the host from these bytes of a root are seen.
fn is_held(start: u64, root: &Root, kind: MemoryKind, extent: &Extent) -> bool {
    if kind != MemoryKind::RegisteredHost {
        return root.held;
    }
    let (first, last) = (start.next_multiple_of(PAGE), root.end & !(PAGE - 1));
    root.held && extent.precision != Precision::Unknown && first <= extent.start && extent.end <= last
}
