//! From the measured bytes of a launch to effects.
//!
//! Owns what measurement replaces and what it does not: accesses that NVIDIA's API does not report
//! keep their prediction.

use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated, Knowledge};
use crate::memory::{AccessKind, Dim};
use trace::{ExactRun, exact_kind};

/// The direction of a run.
pub fn kind(run: &ExactRun) -> AccessKind {
    match run.kind & exact_kind::MASK {
        exact_kind::READ => AccessKind::Read,
        exact_kind::ATOMIC => AccessKind::Atomic,
        exact_kind::ATOMIC_READ => AccessKind::AtomicRead,
        exact_kind::ATOMIC_WRITE => AccessKind::AtomicWrite,
        _ => AccessKind::Write,
    }
}

/// One past the last byte of a run.
pub fn end(run: &ExactRun) -> u64 {
    let steps = u64::from(run.count.max(1) - 1);
    run.start.saturating_add(run.stride.saturating_mul(steps)).saturating_add(run.width)
}

/// Turns measured reads into upper bounds.
pub fn bound_reads(runs: &mut [ExactRun]) {
    runs.iter_mut().filter(|run| kind(run) == AccessKind::Read).for_each(|run| run.kind |= exact_kind::BOUND);
}

/// The effects of a launch that touched exactly these bytes.
pub fn effects(runs: &[ExactRun]) -> Evaluated {
    let effect = |run: &ExactRun| {
        let (lo, hi) = (run.start, end(run));
        let bytes = if run.kind & exact_kind::BOUND != 0 {
            EffectExtent::Among { lo, hi }
        } else {
            let dims =
                if run.count > 1 { vec![Dim { stride: run.stride, count: u64::from(run.count) }] } else { Vec::new() };
            EffectExtent::Bounded { lo, hi, width: run.width, dims, exact: true }
        };
        Effect::new(EffectBase::Absolute(lo), kind(run), bytes)
    };
    let effects = runs.iter().filter(|run| run.width > 0 && run.count > 0).map(effect).collect();
    let (indirect, exact) = (false, runs.iter().all(|run| run.kind & exact_kind::BOUND == 0));
    Evaluated { effects, knowledge: Knowledge::Exact, indirect, exact, gap: None, indirect_gap: None }
}

/// Whether the API never reports such an access: textures, surfaces, copies by a tensor map, and
/// reads of constant memory.
pub fn is_unseen(effect: &Effect) -> bool {
    effect.constant
        || matches!(
            effect.base,
            EffectBase::Handle(..) | EffectBase::SomeHandle(_) | EffectBase::Object | EffectBase::Tensor(..)
        )
}

/// Whether a prediction contains any access that the API would report.
pub fn claims(predicted: &Evaluated) -> bool {
    predicted.knowledge == Knowledge::Unknown || predicted.effects.iter().any(|e| !is_unseen(e))
}

/// The part of a prediction that stays beside a measurement. `nowhere`: whether the address of a
/// variable is unknown, so that its measured bytes would not be recognised.
pub fn unseen(predicted: &Evaluated, nowhere: impl Fn(&str) -> bool) -> Evaluated {
    let lost = |base: &EffectBase| matches!(base, EffectBase::Global(name) if nowhere(name));
    let keep = |e: &&Effect| is_unseen(e) || lost(&e.base);
    let effects = predicted.effects.iter().filter(keep).cloned().collect();
    Evaluated { effects, knowledge: Knowledge::Exact, indirect: false, exact: false, gap: None, indirect_gap: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_effects() {
        let runs = [
            ExactRun { start: 100, stride: 8, width: 4, count: 3, kind: exact_kind::WRITE },
            ExactRun { start: 200, stride: 0, width: 16, count: 1, kind: exact_kind::ATOMIC | exact_kind::BOUND },
            ExactRun { start: 300, stride: 0, width: 0, count: 1, kind: exact_kind::READ },
        ];
        let known = effects(&runs);
        assert_eq!(known.effects.len(), 2, "nothing is touched by the last");
        assert_eq!(known.effects[0].kind, AccessKind::Write);
        let dims = vec![Dim { stride: 8, count: 3 }];
        assert_eq!(known.effects[0].bytes, EffectExtent::Bounded { lo: 100, hi: 120, width: 4, dims, exact: true });
        assert_eq!(known.effects[1].bytes, EffectExtent::Among { lo: 200, hi: 216 });
        assert_eq!((known.effects[1].kind, known.exact), (AccessKind::Atomic, false));
    }

    #[test]
    fn only_reads_become_bounds() {
        let run = |kind| ExactRun { start: 100, stride: 8, width: 4, count: 3, kind };
        let mut runs = [exact_kind::READ, exact_kind::WRITE, exact_kind::ATOMIC].map(run);
        bound_reads(&mut runs);
        assert_eq!(runs.map(|r| r.kind), [exact_kind::BOUND, exact_kind::WRITE, exact_kind::ATOMIC]);
        assert_eq!(effects(&runs).effects[0].bytes, EffectExtent::Among { lo: 100, hi: 120 });
    }

    #[test]
    fn what_is_not_reported_keeps_its_prediction() {
        let of = |base| Effect::new(base, AccessKind::Read, EffectExtent::Unknown);
        let all = vec![
            of(EffectBase::Param(0, 64)),
            of(EffectBase::Tensor(8, 64)),
            of(EffectBase::Handle(8, 3)),
            of(EffectBase::Unknown),
            of(EffectBase::Global("here".into())),
            of(EffectBase::Global("lost".into())),
            Effect { constant: true, ..of(EffectBase::Global("constant".into())) },
        ];
        let known = Evaluated { effects: all, ..effects(&[]) };
        let kept: Vec<EffectBase> = unseen(&known, |name| name == "lost").effects.into_iter().map(|e| e.base).collect();
        let variables = ["lost", "constant"].map(|name| EffectBase::Global(name.into()));
        assert_eq!(kept, [vec![EffectBase::Tensor(8, 64), EffectBase::Handle(8, 3)], variables.into()].concat());
    }
}
