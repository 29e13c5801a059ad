//! The host's own loads and stores, as the shim observed them.
//!
//! Owns the way from a `HostWatch` and a `HostAccess` op to a race. Does not decide whether
//! something else explains a changed byte: that is [`detect::host_watch`]. Accesses that
//! were seen themselves, and are compared with all work, are in [`super::host_touch`].

use crate::process::state::ProcessState;
use detect::confidence::{Confidence, Weakness};
use detect::host_watch;
use detect::host_watch::HostWatch;
use detect::memory::allocations::Home;
use detect::memory::{Access, AccessKind, AllocationId, Cause, Exclusion, Extent, Meet, Site};
use detect::race::Race;
use order::Awaits;
use trace::{Epoch, HostFuncId, Op, Origin, StackId, StreamId};

/// The shim begins to watch bytes that work of this thread reads or writes.
pub(super) fn watch(state: &mut ProcessState, op: &Op<'_>, origin: &Origin) {
    let Op::HostWatch { watch, stream, exec, node, ref region, writes } = *op else { return };
    let Some(launch) = state.latest.get(&origin.thread).copied() else { return };
    let in_graph = node.checked_sub(1);
    let epoch = in_graph.map_or(launch, |index| state.ordering.node_epoch(exec, index, launch));
    let (home, allocation, address) = match state.memory.locate(region.start) {
        Some(place) => (place.home, place.allocation, place.address),
        // Memory that CUDA does not know is kept in mind only where the source is read later.
        None if !writes => (Home::Pageable, AllocationId::NONE, region.start),
        None => return,
    };
    let site = state.submissions.context(origin, epoch).site(Cause::Copy, stream);
    let made = in_graph.and_then(|index| state.graphs.find(exec, index)).map(|n| (n.stack, n.call));
    let (stack, call) = made.unwrap_or((site.stack, site.call));
    let work = Access {
        epoch,
        kind: if writes { AccessKind::Write } else { AccessKind::Read },
        extent: host_watch::extent(region).moved(address.wrapping_sub(region.start)),
        allocation,
        site: Site { stack, call, node, launched: if node > 0 { origin.stack } else { StackId::NONE }, ..site },
        exclusion: Exclusion::NONE,
    };
    let is_read =
        |e: &Access| e.epoch == epoch && e.kind == AccessKind::Read && e.extent.meet(&work.extent) != Meet::No;
    if home == Home::Pageable && !state.memory.accesses(home).any(|e| is_read(&e)) {
        return;
    }
    let begun = HostWatch { work, home, known: state.ordering.known(), void: false, awaits: None };
    let void = begun.is_overwritten(&state.memory);
    let behind_function = state.ordering.awaits_host_function(epoch, HostFuncId::NONE) != Awaits::No
        || state.watches.awaits_graph(epoch, &state.ordering);
    let awaits = match behind_function {
        true => Some(Weakness::HostFunction),
        false => state.ordering.is_blocked(stream).then_some(Weakness::OpenWait),
    };
    state.watches.begin(watch, HostWatch { void, awaits, ..begun });
}

/// The host touched watched bytes.
pub(super) fn host_access(state: &mut ProcessState, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
    let Op::HostAccess { watch, start, end, writes, in_the_act } = *op else { return };
    let Some(watch) = state.watches.judge(watch, in_the_act, &state.memory) else { return };
    // The host's own instructions have said it, more exactly.
    if !in_the_act && state.touches.is_reported(&watch.work) {
        return;
    }
    // The shim has asked its own order. An added wait may have changed the answer.
    if state.is_order_edited && state.ordering.host_saw(watch.work.epoch) {
        return;
    }
    let cause = if in_the_act { Cause::Host } else { Cause::HostBetween };
    let access = Access {
        epoch,
        kind: if writes { AccessKind::Write } else { AccessKind::Read },
        extent: if in_the_act { Extent::exact(start, end) } else { Extent::bound(start, end, start) },
        allocation: watch.work.allocation,
        site: state.submissions.context(origin, epoch).site(cause, StreamId::NONE),
        exclusion: Exclusion::NONE,
    };
    // Certain even where it is not known which bytes were written: some of them were.
    let Some(race) = Race::judge(&watch.work, &access, false) else { return };
    let mut race = Race { confidence: Confidence::Certain, ..race };
    // Of a change it is not known when it was: as early as the watch began, maybe.
    let awaits = watch.awaits.filter(|weakness| {
        !in_the_act || *weakness == Weakness::OpenWait || state.watches.awaits_graph(watch.work.epoch, &state.ordering)
    });
    let judged = match (awaits, in_the_act) {
        (Some(weakness), _) => {
            race.demote(weakness);
            Some(race)
        }
        (None, true) => {
            state.touches.behind_function(&state.ordering, state.options.judging.host_threads, race, HostFuncId::NONE)
        }
        (None, false) => Some(race),
    };
    state.races.extend(judged);
}
