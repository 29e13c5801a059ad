//! Atomic loads and stores in measured bytes.
//!
//! Owns their correction to atomic accesses. NVIDIA's API reports them like any other, and so it
//! does the load in front of a compare-and-swap loop. The code knows which they are (`kernels`,
//! `ranges/graph/cas_loops.rs`), and so do predictions. When the plain loads of a kernel are all
//! bounded, bytes that were read outside of these bounds were read by an atomic load, because no
//! other load is left; likewise for stores. Bytes that a plain load may reach too stay read.

use super::compare::{PredictedBytes, reach};
use super::measured::{end, kind};
use crate::exact::byte_set::ByteSet;
use crate::launches::effects::{Evaluated, Knowledge};
use crate::memory::{AccessKind, Allocations};
use trace::{ExactRun, ImageId, exact_kind};

/// Marks the loads and stores that must be atomic ones.
pub fn settle(known: &Evaluated, image: ImageId, memory: &mut Allocations, runs: &mut [ExactRun]) {
    if known.knowledge == Knowledge::Unknown || known.indirect {
        return;
    }
    let loads = (AccessKind::Read, exact_kind::ATOMIC_READ, AccessKind::reads as fn(AccessKind) -> bool);
    let stores = (AccessKind::Write, exact_kind::ATOMIC_WRITE, AccessKind::writes as fn(AccessKind) -> bool);
    for (plain, atomic, does) in [loads, stores] {
        let is_plain = |run: &ExactRun| kind(run) == plain && run.kind & exact_kind::BOUND == 0;
        let some = known.effects.iter().any(|e| e.kind.is_atomic() && does(e.kind));
        if !some || !runs.iter().any(is_plain) {
            continue;
        }
        let Some(bounds) = bounds(known, plain, image, memory) else { continue };
        for run in runs.iter_mut().filter(|run| is_plain(run)) {
            let piece = |n: u32| run.start.saturating_add(run.stride.saturating_mul(u64::from(n)));
            // Most runs lie wholly beside the plain accesses.
            let beside = !bounds.meets(run.start, end(run));
            if beside || (0..run.count).all(|n| !bounds.meets(piece(n), piece(n).saturating_add(run.width))) {
                run.kind = run.kind & !exact_kind::MASK | atomic;
            }
        }
    }
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
    use crate::launches::effects::{Effect, EffectBase, EffectExtent};
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
