//! Atomic stores that do not reach the host, by kernels that have others.
//!
//! Owns which they are. An access of a launch may be that of several instructions, and a
//! measurement does not say which instruction stored a word, nor with which scope. The code does
//! (`kernels`, `ir/system_fences.rs`): where all its stores with the scope of the system are
//! bounded, words that are stored atomically beside these bounds are stored with a narrower scope.
//! Words that both may store count as stored for the host.

use super::compare::{PredictedBytes, reach};
use super::locks::part_of;
use crate::exact::byte_set::{self, ByteSet};
use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated, Knowledge};
use crate::memory::Allocations;
use kernels::Reason;
use trace::ImageId;

fn is_atomic_store(effect: &Effect) -> bool {
    effect.kind.writes() && effect.kind.is_atomic()
}

/// Whether a launch stores by no instruction but those of its own code, all of which are known.
pub(crate) fn knows_stores(known: &Evaluated) -> bool {
    let is_missing = known.indirect && known.effects.iter().all(|e| !e.is_unplaced());
    let is_open = |e: &Effect| matches!(e.why, Some(Reason::Call | Reason::Passed | Reason::Instruction));
    known.knowledge != Knowledge::Unknown && !is_missing && !known.effects.iter().any(is_open)
}

/// Marks the measured stores that the host takes for plain ones, in a kernel that has others.
pub fn mark(known: &Evaluated, image: ImageId, memory: &Allocations, measured: &mut Vec<Effect>) {
    if !knows_stores(known) || !known.effects.iter().any(|e| e.narrow) {
        return;
    }
    let mut wide = ByteSet::default();
    for effect in known.effects.iter().filter(|e| is_atomic_store(e) && !e.narrow) {
        match reach(effect, image, memory) {
            PredictedBytes::Nothing => {}
            PredictedBytes::ByteSet(set, _) | PredictedBytes::Somewhere(Some(set)) => wide = wide.union(&set),
            PredictedBytes::Somewhere(None) => return,
        }
    }
    for effect in std::mem::take(measured) {
        match is_atomic_store(&effect).then(|| reach(&effect, image, memory)) {
            Some(PredictedBytes::ByteSet(bytes, exact)) => divide(effect, (&bytes, exact), &wide, measured),
            _ => measured.push(effect),
        }
    }
}

/// Adds an atomic store, and marks what of it lies beside those for the host.
fn divide(effect: Effect, (bytes, exact): (&ByteSet, bool), wide: &ByteSet, to: &mut Vec<Effect>) {
    let narrow = bytes.minus(wide);
    let both = bytes.minus(&narrow);
    match (narrow.is_empty(), both.is_empty()) {
        (false, true) => to.push(Effect { narrow: true, ..effect }),
        (false, false) if exact => {
            let part = |(bytes, narrow)| part_of(&effect, bytes).map(|part| Effect { narrow, ..part });
            to.extend([(&narrow, true), (&both, false)].into_iter().filter_map(part));
        }
        // Of a bound, each run by itself is one, too.
        (false, false) if is_small_bound(&effect) && narrow.spans().len() + both.spans().len() <= RUNS => {
            let runs = |bytes: &ByteSet, narrow: bool| {
                let run = |(lo, hi): &(u64, u64)| EffectExtent::Bounded {
                    lo: *lo,
                    hi: *hi,
                    width: hi - lo,
                    dims: Vec::new(),
                    exact: false,
                };
                let part = |bytes| Effect { bytes, narrow, ..effect.clone() };
                bytes.spans().iter().map(run).map(part).collect::<Vec<_>>()
            };
            let (narrow, both) = (runs(&narrow, true), runs(&both, false));
            to.extend(narrow.into_iter().chain(both));
        }
        _ => to.push(effect),
    }
}

/// Runs into which a bound is divided at most.
const RUNS: usize = 64;

/// Whether it is a bound with few enough runs to be looked at one by one.
fn is_small_bound(effect: &Effect) -> bool {
    let EffectExtent::Bounded { ref dims, exact: false, .. } = effect.bytes else { return false };
    dims.iter().try_fold(1_u64, |runs, dim| runs.checked_mul(dim.count)).is_some_and(|runs| runs <= RUNS as u64)
}

/// What the bytes of a predicted effect count from: the same address space, or a variable.
type Counted<'a> = Option<&'a str>;

/// The bytes of a predicted effect, and whether all of them are touched; `None`: not bounded.
fn bytes_of(effect: &Effect) -> Option<(Counted<'_>, ByteSet, bool)> {
    let from = match &effect.base {
        EffectBase::Param(..) | EffectBase::Maybe(..) | EffectBase::Absolute(_) => None,
        EffectBase::Global(name) => Some(&**name),
        _ => return None,
    };
    let EffectExtent::Bounded { lo, hi, width, ref dims, exact } = effect.bytes else { return None };
    let mut spans = Vec::new();
    let fine = lo < hi && byte_set::pieces(lo, hi, width, dims, &mut spans);
    Some((from, ByteSet::of(spans), exact && fine))
}

/// The same for predicted effects. `wide`: what the stores with the scope of the system may touch.
pub(crate) fn mark_predicted(wide: &[Effect], effects: &mut Vec<Effect>) {
    let Some(wide) = wide.iter().map(bytes_of).collect::<Option<Vec<_>>>() else { return };
    for effect in std::mem::take(effects) {
        // A pointer may point into a variable.
        let own = bytes_of(&effect).filter(|own| is_atomic_store(&effect) && wide.iter().all(|other| other.0 == own.0));
        match own.map(|(_, bytes, exact)| (bytes, exact)) {
            Some((bytes, exact)) => {
                let all = wide.iter().fold(ByteSet::default(), |all, other| all.union(&other.1));
                divide(effect, (&bytes, exact), &all, effects);
            }
            None => effects.push(effect),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::measured;
    use crate::memory::{AccessKind, Allocation};
    use trace::{ExactRun, exact_kind};

    fn store(lo: u64, hi: u64, narrow: bool) -> Effect {
        let bytes = EffectExtent::Bounded { lo, hi, width: hi - lo, dims: Vec::new(), exact: false };
        Effect { narrow, ..Effect::new(EffectBase::Param(0, 0x1000), AccessKind::AtomicWrite, bytes) }
    }

    /// Whether each of four measured words is narrow.
    fn narrow(effects: Vec<Effect>, kind: u32) -> Vec<bool> {
        let mut memory = Allocations::default();
        memory.alloc(Allocation::variable(0x1000, 0x1000));
        let known = Evaluated { effects, knowledge: Knowledge::Exact, ..measured::effects(&[]) };
        let run = ExactRun { start: 0x1000, stride: 0, width: 16, count: 1, kind };
        let mut found = measured::effects(&[run]).effects;
        mark(&known, ImageId::NONE, &memory, &mut found);
        let at = |k: u64| {
            let holds = |effect: &&Effect| match reach(effect, ImageId::NONE, &memory) {
                PredictedBytes::ByteSet(set, true) => set.meets(0x1000 + 4 * k, 0x1004 + 4 * k),
                _ => panic!("exact bytes"),
            };
            let mut holding = found.iter().filter(holds);
            let effect = holding.next().expect("a part");
            assert!(holding.next().is_none(), "each byte once");
            effect.narrow
        };
        (0..4).map(at).collect()
    }

    #[test]
    fn a_predicted_access_of_several_instructions_is_divided() {
        use crate::memory::Dim;
        let exact = |lo: u64, count: u64| {
            let dims = if count > 1 { vec![Dim { stride: 64, count }] } else { Vec::new() };
            let bytes = EffectExtent::Bounded { lo, hi: lo + 64 * (count - 1) + 4, width: 4, dims, exact: true };
            Effect::new(EffectBase::Param(0, 0x1000), AccessKind::AtomicWrite, bytes)
        };
        let marked = |wide: Vec<Effect>, effect: Effect| {
            let mut effects = vec![effect];
            mark_predicted(&wide, &mut effects);
            let of = |e: &Effect| (bytes_of(e).map(|bytes| bytes.1.spans().to_vec()), e.narrow);
            effects.iter().map(of).collect::<Vec<_>>()
        };
        let word = |at: u64| Some(vec![(at, at + 4)]);
        assert_eq!(marked(vec![exact(0x1040, 1)], exact(0x1000, 2)), [(word(0x1000), true), (word(0x1040), false)]);
        assert_eq!(marked(vec![exact(0x1040, 1)], exact(0x1000, 1)), [(word(0x1000), true)]);
        assert_eq!(marked(vec![exact(0x1000, 1)], exact(0x1000, 1)), [(word(0x1000), false)]);
        // A launch that makes none of them.
        assert_eq!(marked(Vec::new(), exact(0x1000, 1)), [(word(0x1000), true)]);
        let elsewhere = |base| Effect::new(base, AccessKind::AtomicWrite, EffectExtent::Unknown);
        for base in [EffectBase::Unknown, EffectBase::Param(8, 0x2000), EffectBase::Global("flag".into())] {
            assert_eq!(marked(vec![elsewhere(base)], exact(0x1000, 1)), [(word(0x1000), false)]);
        }
        let variable = Effect { base: EffectBase::Global("flag".into()), ..exact(0, 1) };
        assert_eq!(marked(vec![variable], exact(0x1000, 1)), [(word(0x1000), false)]);
        // A bound is divided into bounds, and a plain store is none of these.
        let EffectExtent::Bounded { lo, hi, width, dims, .. } = exact(0x1000, 2).bytes else { unreachable!() };
        let bound = Effect { bytes: EffectExtent::Bounded { lo, hi, width, dims, exact: false }, ..exact(0x1000, 2) };
        assert_eq!(marked(vec![exact(0x1040, 1)], bound), [(word(0x1000), true), (word(0x1040), false)]);
        let plain = Effect { kind: AccessKind::Write, ..exact(0x1000, 1) };
        assert_eq!(marked(vec![exact(0x1040, 1)], plain), [(word(0x1000), false)]);
    }

    #[test]
    fn words_beside_those_for_the_host_are_narrow() {
        let of = |effects| narrow(effects, exact_kind::ATOMIC_WRITE);
        let word = |k: u64, narrow| store(0x1000 + 4 * k, 0x1004 + 4 * k, narrow);
        let first = || store(0x1000, 0x1008, true);
        assert_eq!(of(vec![first(), word(3, false)]), [true, true, true, false]);
        assert_eq!(of(vec![first(), store(0x1800, 0x1804, false)]), [true; 4]);
        // Both may store the word.
        assert_eq!(of(vec![first(), word(1, false)]), [true, false, true, true]);
        assert_eq!(of(vec![first(), store(0x1000, 0x1010, false)]), [false; 4]);
        let anywhere = Effect::new(EffectBase::Unknown, AccessKind::AtomicWrite, EffectExtent::Unknown);
        assert_eq!(of(vec![first(), anywhere]), [false; 4]);
        // No store of a narrow scope, and plain stores.
        assert_eq!(of(vec![word(0, false)]), [false; 4]);
        assert_eq!(narrow(vec![first(), word(3, false)], exact_kind::WRITE), [false; 4]);
    }
}
