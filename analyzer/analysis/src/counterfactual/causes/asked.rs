//! Which kind of wait would order a finding, and between which sites.
//!
//! Owns the classification. Does not choose among waits.

use detect::findings::RawFinding;
use detect::race::Race;
use detect::state::op_site::{OpClass, OpSite};
use report::cause::Join;
use trace::{KernelId, MemoryKind, StackId};

/// What a finding asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum AskedWait {
    /// A wait of this kind, of the second site for the first.
    Wait(Join, OpSite, OpSite),
    /// No wait can mend it: copies of one batch, launches that overlap on one stream, host threads.
    Nothing,
}

/// What a finding asks for.
pub(crate) fn of(raw: &RawFinding) -> AskedWait {
    let race = &raw.race;
    let (p, a) = (&race.previous, &race.access);
    let (first, then) = (OpSite::of_access(p), OpSite::of_access(a));
    let freed = |stack| OpSite { stack, kernel: KernelId::NONE, class: OpClass::Free };
    if race.freed_early {
        return match raw.allocation.and_then(|info| info.freed) {
            Some(stack) if stack != StackId::NONE => AskedWait::Wait(Join::KeepAlive, first, freed(stack)),
            _ => AskedWait::Nothing,
        };
    }
    if p.epoch == a.epoch {
        return match p.site.node != a.site.node && p.site.node > 0 && a.site.node > 0 {
            true => AskedWait::Wait(Join::Capture, OpSite::of_node(p), OpSite::of_node(a)),
            false => AskedWait::Nothing,
        };
    }
    let block = |info: &detect::memory::Allocation| info.kind == Some(MemoryKind::Block);
    // The allocator's own order covers uses on the block's stream, where `record_stream` does
    // nothing.
    let reused = raw
        .previous_allocation
        .filter(|old| block(old) && old.stream != p.site.stream && raw.allocation.is_some_and(|new| new.id != old.id));
    if let Some(stack) = reused.and_then(|old| old.freed).filter(|stack| *stack != StackId::NONE) {
        return AskedWait::Wait(Join::KeepAlive, first, freed(stack));
    }
    if p.site.stream.is_none() || p.site.stream == a.site.stream {
        return AskedWait::Nothing;
    }
    let join = if a.site.stream.is_none() { Join::Host } else { Join::Event };
    AskedWait::Wait(join, first, then)
}

/// What distinguishes pairs of sites: both ops, for graph nodes the nodes, and whether a free was
/// too early.
pub(crate) type Pair = (OpSite, OpSite, bool);

/// The pair of a race.
pub(crate) fn pair(race: &Race) -> Pair {
    (OpSite::of_node(&race.previous), OpSite::of_node(&race.access), race.freed_early)
}
