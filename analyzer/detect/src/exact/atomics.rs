//! Atomic accesses in measured bytes.
//!
//! Owns the correction of what a measurement does not tell of them.
//!
//! *Loads and stores.* NVIDIA's API reports them like any other, and so it
//! does the load in front of a compare-and-swap loop. The code knows which they are (`kernels`,
//! `ranges/graph/cas_loops.rs`), and so do predictions. When the plain loads of a kernel are all
//! bounded, bytes that were read outside of these bounds were read by an atomic load, because no
//! other load is left; likewise for stores. Bytes that a plain load may reach too stay read. Where
//! plain loads may reach any byte, those that the code loads atomically count as loaded so: a flag
//! or a table that the kernel shares with others is not read plainly beside that.
//!
//! *Scopes.* An update counts as measured whatever its scope is. One with the scope of a block or a
//! cluster is predicted as a read and a write, because it protects nothing from other kernels. When
//! the updates of wider scope are all bounded, bytes that were updated outside of these bounds were
//! updated with the narrow scope, and count as read and written. Bytes that both may reach stay
//! atomic.

use super::compare::{PredictedBytes, reach};
use super::measured::{end, kind};
use crate::exact::byte_set::ByteSet;
use crate::launches::effects::{Effect, Evaluated, Knowledge};
use crate::memory::{AccessKind, Allocations};
use trace::{ExactRun, ImageId, exact_kind};

/// Marks the loads and stores that must be atomic ones, and the updates that must have a narrow
/// scope.
pub fn settle(known: &Evaluated, image: ImageId, memory: &mut Allocations, runs: &mut Vec<ExactRun>) {
    // Each kind stands by itself: an address out of memory is an effect of its kind.
    let is_missing = known.indirect && known.effects.iter().all(|e| !e.is_unplaced());
    if known.knowledge == Knowledge::Unknown || is_missing {
        return;
    }
    let loads = (AccessKind::Read, AccessKind::AtomicRead, exact_kind::ATOMIC_READ);
    let stores = (AccessKind::Write, AccessKind::AtomicWrite, exact_kind::ATOMIC_WRITE);
    let reads = AccessKind::reads as fn(AccessKind) -> bool;
    for ((plain, atomic, as_atomic), does) in [(loads, reads), (stores, AccessKind::writes)] {
        let is_plain = |run: &ExactRun| kind(run) == plain && run.kind & exact_kind::BOUND == 0;
        let some = known.effects.iter().any(|e| e.kind.is_atomic() && does(e.kind));
        if !some || !runs.iter().any(is_plain) {
            continue;
        }
        // Bytes of plain accesses, or, where these may be anywhere, all but those of atomic ones.
        let bounds = bounds(known, plain, image, memory).or_else(|| {
            let own = bounds(known, atomic, image, memory)?;
            Some(ByteSet::of(vec![(0, u64::MAX)]).minus(&own))
        });
        let Some(bounds) = bounds else { continue };
        for run in runs.iter_mut().filter(|run| is_plain(run)) {
            let piece = |n: u32| run.start.saturating_add(run.stride.saturating_mul(u64::from(n)));
            // Most runs lie wholly beside the plain accesses.
            let beside = !bounds.meets(run.start, end(run));
            if beside || (0..run.count).all(|n| !bounds.meets(piece(n), piece(n).saturating_add(run.width))) {
                run.kind = run.kind & !exact_kind::MASK | as_atomic;
            }
        }
    }
    narrow(known, image, memory, runs);
}

/// Makes reads and writes of the updates that must have a narrow scope.
fn narrow(known: &Evaluated, image: ImageId, memory: &mut Allocations, runs: &mut Vec<ExactRun>) {
    let is_update = |run: &ExactRun| kind(run) == AccessKind::Atomic;
    let writes = |e: &Effect| e.kind == AccessKind::Write;
    if !known.effects.iter().any(writes) || !runs.iter().any(is_update) {
        return;
    }
    let Some(wide) = bounds(known, AccessKind::Atomic, image, memory) else { return };
    let written = bounds(known, AccessKind::Write, image, memory);
    let mut stores = Vec::new();
    for run in runs.iter_mut().filter(|run| is_update(run)) {
        let all = run.start..end(run);
        let may_be_narrow = written.as_ref().is_none_or(|written| written.meets(all.start, all.end));
        if may_be_narrow && !wide.meets(all.start, all.end) {
            let with = |kind| run.kind & !exact_kind::MASK | kind;
            stores.push(ExactRun { kind: with(exact_kind::WRITE), ..*run });
            run.kind = with(exact_kind::READ);
        }
    }
    runs.extend(stores);
}

/// The bytes that accesses of a kind may touch; `None` when some of them are not known.
fn bounds(known: &Evaluated, of: AccessKind, image: ImageId, memory: &mut Allocations) -> Option<ByteSet> {
    let mut all = ByteSet::default();
    for effect in known.effects.iter().filter(|e| e.kind == of) {
        match reach(effect, image, memory) {
            PredictedBytes::Nothing => {}
            PredictedBytes::ByteSet(set, _) | PredictedBytes::Somewhere(Some(set)) => all = all.union(&set),
            PredictedBytes::Somewhere(None) => return None,
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::measured;
    use crate::launches::effects::{EffectBase, EffectExtent};
    use crate::memory::Allocation;

    const READ: AccessKind = AccessKind::Read;
    const ATOMIC: AccessKind = AccessKind::Atomic;
    const LOADED: AccessKind = AccessKind::AtomicRead;

    fn range(kind: AccessKind, lo: u64, hi: u64) -> Effect {
        let bytes = EffectExtent::Bounded { lo, hi, width: hi - lo, dims: Vec::new(), exact: false };
        Effect::new(EffectBase::Param(0, 0x1000), kind, bytes)
    }

    /// The kinds of these runs of reads, after settling.
    fn kinds(effects: Vec<Effect>, reads: &[(u64, u64)]) -> Vec<AccessKind> {
        let mut memory = Allocations::default();
        memory.alloc(Allocation::variable(0x1000, 0x1000));
        let known = Evaluated { effects, knowledge: Knowledge::Exact, ..measured::effects(&[]) };
        let run = |r: &(u64, u64)| ExactRun { start: r.0, stride: 0, width: r.1, count: 1, kind: exact_kind::READ };
        let mut runs: Vec<ExactRun> = reads.iter().map(run).collect();
        settle(&known, ImageId::NONE, &mut memory, &mut runs);
        runs.iter().map(kind).collect()
    }

    #[test]
    fn what_no_plain_load_reaches_was_read_by_a_swap() {
        let sum = || range(ATOMIC, 0x1000, 0x1100);
        assert_eq!(kinds(vec![sum()], &[(0x1000, 0x100)]), [LOADED]);
        let input = range(READ, 0x1800, 0x1900);
        assert_eq!(kinds(vec![sum(), input], &[(0x1000, 0x100), (0x1800, 0x100)]), [LOADED, READ]);
    }

    /// The kinds of one update of 256 bytes from 0x1000, after settling, in order.
    fn updated(effects: Vec<Effect>) -> Vec<AccessKind> {
        let mut memory = Allocations::default();
        memory.alloc(Allocation::variable(0x1000, 0x1000));
        let known = Evaluated { effects, knowledge: Knowledge::Exact, ..measured::effects(&[]) };
        let update = ExactRun { start: 0x1000, stride: 8, width: 4, count: 32, kind: exact_kind::ATOMIC };
        let mut runs = vec![update];
        settle(&known, ImageId::NONE, &mut memory, &mut runs);
        assert!(runs.iter().all(|run| (run.start, run.stride, run.count) == (0x1000, 8, 32)));
        runs.iter().map(kind).collect()
    }

    #[test]
    fn what_no_wide_update_reaches_has_a_narrow_scope() {
        let block = || [range(READ, 0x1000, 0x1100), range(AccessKind::Write, 0x1000, 0x1100)];
        let beside = |others: &[Effect]| updated([&block()[..], others].concat());
        assert_eq!(beside(&[]), [READ, AccessKind::Write]);
        assert_eq!(beside(&[range(ATOMIC, 0x1100, 0x1200)]), [READ, AccessKind::Write]);
        // Any of these may have been the update.
        for wide in [range(ATOMIC, 0x1000, 0x1004), range(ATOMIC, 0x10f8, 0x1200)] {
            assert_eq!(beside(&[wide]), [ATOMIC]);
        }
        let open = |base| Effect::new(base, ATOMIC, EffectExtent::Unknown);
        assert_eq!(beside(&[open(EffectBase::Param(0, 0x1000))]), [ATOMIC]);
        assert_eq!(beside(&[open(EffectBase::Unknown)]), [ATOMIC]);
        // Nothing is predicted that could be a narrow update.
        assert_eq!(updated(vec![range(READ, 0x1000, 0x1100)]), [ATOMIC]);
        assert_eq!(updated(vec![range(AccessKind::Write, 0x1800, 0x1900)]), [ATOMIC]);
        let anywhere = Effect::new(EffectBase::Unknown, AccessKind::Write, EffectExtent::Unknown);
        assert_eq!(updated(vec![anywhere]), [READ, AccessKind::Write]);
    }

    /// Addresses out of memory and calls that are not followed are effects of their kinds: they
    /// matter for these kinds only.
    #[test]
    fn an_address_out_of_memory_matters_for_accesses_of_its_kind() {
        let block = [range(READ, 0x1000, 0x1100), range(AccessKind::Write, 0x1000, 0x1100)];
        for kind in [READ, AccessKind::Write, LOADED, AccessKind::AtomicWrite, ATOMIC] {
            for indirect in [false, true] {
                let anywhere = Effect::new(EffectBase::Unknown, kind, EffectExtent::Unknown);
                let effects = [&block[..], &[anywhere]].concat();
                let known = Evaluated { effects, indirect, knowledge: Knowledge::KindsOnly, ..measured::effects(&[]) };
                let mut memory = Allocations::default();
                memory.alloc(Allocation::variable(0x1000, 0x1000));
                let update = ExactRun { start: 0x1000, stride: 8, width: 4, count: 32, kind: exact_kind::ATOMIC };
                let mut runs = vec![update];
                settle(&known, ImageId::NONE, &mut memory, &mut runs);
                let settled: Vec<_> = runs.iter().map(super::kind).collect();
                match kind {
                    AccessKind::Atomic => assert_eq!(settled, [ATOMIC]),
                    _ => assert_eq!(settled, [READ, AccessKind::Write], "{kind:?}"),
                }
            }
        }
        // They are not among the effects at all.
        let known = Evaluated { effects: block.to_vec(), indirect: true, ..measured::effects(&[]) };
        let update = ExactRun { start: 0x1000, stride: 8, width: 4, count: 32, kind: exact_kind::ATOMIC };
        let mut runs = vec![update];
        settle(&known, ImageId::NONE, &mut Allocations::default(), &mut runs);
        assert_eq!(runs, [update]);
    }

    /// A call through a pointer, say, may load from anywhere.
    #[test]
    fn where_plain_loads_may_be_anywhere_the_words_loaded_atomically_are() {
        let anywhere = || Effect::new(EffectBase::Unknown, READ, EffectExtent::Unknown);
        let (flag, beside) = ((0x1800, 4), (0x1804, 4));
        assert_eq!(kinds(vec![range(LOADED, 0x1800, 0x1804), anywhere()], &[flag, beside]), [LOADED, READ]);
        assert_eq!(kinds(vec![range(LOADED, 0x1800, 0x1804)], &[flag, beside]), [LOADED, LOADED]);
        assert_eq!(kinds(vec![anywhere()], &[flag]), [READ]);
        // An update is no load: its word may be read plainly in front of it.
        assert_eq!(kinds(vec![range(ATOMIC, 0x1800, 0x1804), anywhere()], &[flag]), [READ]);
    }

    #[test]
    fn what_a_plain_load_may_reach_stays_read() {
        let sum = || range(ATOMIC, 0x1000, 0x1100);
        assert_eq!(kinds(vec![sum(), range(READ, 0x10ff, 0x1200)], &[(0x1000, 0x100)]), [READ]);
        let open = |base| Effect::new(base, READ, EffectExtent::Unknown);
        assert_eq!(kinds(vec![sum(), open(EffectBase::Param(0, 0x1000))], &[(0x1000, 0x100)]), [READ]);
        assert_eq!(kinds(vec![sum(), open(EffectBase::Unknown)], &[(0x1000, 0x100)]), [READ]);
        assert_eq!(kinds(vec![range(AccessKind::Write, 0x1000, 0x1100)], &[(0x1000, 0x100)]), [READ]);
    }
}
