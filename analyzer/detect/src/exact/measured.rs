//! From the measured bytes of a launch to effects.
//!
//! Owns what measurement replaces and what it does not: accesses that NVIDIA's API does not report
//! keep their prediction.

use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated, Knowledge};
use crate::memory::{AccessKind, Allocations, Dim, Pieces};
use kernels::{Early, Reason};
use trace::{ExactRun, exact_kind};

/// The direction of a run.
pub(crate) fn kind(run: &ExactRun) -> AccessKind {
    match run.kind & exact_kind::MASK {
        exact_kind::READ => AccessKind::Read,
        exact_kind::ATOMIC => AccessKind::Atomic,
        exact_kind::ATOMIC_READ => AccessKind::AtomicRead,
        exact_kind::ATOMIC_WRITE => AccessKind::AtomicWrite,
        _ => AccessKind::Write,
    }
}

/// One past the last byte of a run.
pub(crate) fn end(run: &ExactRun) -> u64 {
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
    let (single, irregular) = split(runs);
    let effects = single.into_iter().map(effect).chain(irregular).collect();
    let (indirect, exact) = (false, runs.iter().all(|run| run.kind & exact_kind::BOUND == 0));
    Evaluated { effects, knowledge: Knowledge::Exact, indirect, exact, gap: None, indirect_gap: None }
}

/// Names the instruction and the parameter of measured effects, where the code has one for such
/// bytes: the first prediction of that kind that begins there or reaches so far.
pub fn attribute(measured: &mut Evaluated, predicted: &Evaluated, memory: &Allocations) {
    for effect in &mut measured.effects {
        let EffectBase::Absolute(at) = effect.base else { continue };
        let home = memory.locate(at).map(|place| (place.home, place.allocation));
        let near = |value: u64| home.is_some() && memory.locate(value).map(|p| (p.home, p.allocation)) == home;
        let leads_here = |known: &&Effect| match (&known.base, &known.bytes) {
            (
                EffectBase::Param(_, value) | EffectBase::Maybe(_, value) | EffectBase::Tensor(_, value),
                EffectExtent::Bounded { lo, hi, .. },
            ) => near(*value) && *lo <= at && at < *hi,
            (EffectBase::Param(_, value) | EffectBase::Maybe(_, value), _) => near(*value),
            _ => false,
        };
        let kind = effect.kind;
        if let Some(known) = predicted.effects.iter().filter(|known| known.kind == kind).find(leads_here) {
            (effect.base, effect.at) = (known.base.clone(), known.at);
            continue;
        }
        // Through a texture, a variable or a loaded address.
        let is_word = |base: &EffectBase| matches!(base, EffectBase::Param(..) | EffectBase::Maybe(..));
        let mut others =
            predicted.effects.iter().filter(|known| known.kind == kind && !is_word(&known.base)).peekable();
        // Who asked whom in a warp, the bytes do not say.
        let latest = others.peek().is_some().then(|| {
            others.try_fold(Early::Surely, |latest, known| {
                let early = if known.early == Early::Asked { Early::Perhaps } else { known.early };
                early.is().then_some(latest.max(early))
            })
        });
        effect.early = latest.flatten().unwrap_or_default();
    }
}

/// Of a kernel that begins before it waits, what the code says of the bytes before the wait, as
/// far as the measurement, which does not tell them apart, has bytes between them.
pub fn before_wait(predicted: &Evaluated, measured: &Evaluated) -> Evaluated {
    let span = |bytes: &EffectExtent| match bytes {
        EffectExtent::Bounded { lo, hi, .. } | EffectExtent::Among { lo, hi } => Some((*lo, *hi)),
        EffectExtent::Pieces { origin, pieces, .. } => {
            let last = pieces.spans().last().map_or(0, |span| span.1);
            Some((*origin, origin.saturating_add(last)))
        }
        EffectExtent::Unknown | EffectExtent::Scattered => None,
    };
    let is_touched = |early: &Effect| {
        // Code and measurement may differ in what they call atomic.
        let of = measured.effects.iter().filter(|effect| effect.kind.writes() == early.kind.writes());
        of.map(|effect| (span(&early.bytes), span(&effect.bytes))).any(|spans| match spans {
            (Some(early), Some(effect)) => early.0 < effect.1 && effect.0 < early.1,
            _ => true,
        })
    };
    let is_word = |base: &EffectBase| matches!(base, EffectBase::Param(..) | EffectBase::Maybe(..));
    let early = predicted.effects.iter().filter(|effect| effect.early.is() && is_word(&effect.base));
    let effects = early.filter(|effect| is_touched(effect)).cloned().collect();
    Evaluated { effects, knowledge: Knowledge::Exact, indirect: false, exact: false, gap: None, indirect_gap: None }
}

/// Maximum number of runs of one kind that are effects by themselves. More are irregular, and one
/// effect lists their pieces.
const MAX_SINGLE: usize = 32;

/// Pieces of a run from which it stays a pattern.
const PATTERN: u32 = 1024;

/// Maximum number of pieces that one effect lists: 16 MiB.
const MAX_PIECES: u64 = 1 << 20;

/// Separates the runs that are effects by themselves from those that are irregular.
fn split(runs: &[ExactRun]) -> (Vec<&ExactRun>, Vec<Effect>) {
    let (mut single, mut irregular) = (Vec::new(), Vec::new());
    let mut kinds: Vec<u32> = Vec::new();
    for run in runs {
        if !kinds.contains(&run.kind) {
            kinds.push(run.kind);
        }
    }
    for of in kinds {
        let all: Vec<&ExactRun> = runs.iter().filter(|r| r.kind == of && r.width > 0 && r.count > 0).collect();
        if all.len() <= MAX_SINGLE {
            single.extend(all);
            continue;
        }
        let (mut spans, mut room) = (Vec::new(), MAX_PIECES);
        for run in all {
            let count = u64::from(run.count);
            if run.count >= PATTERN || count > room {
                single.push(run);
                continue;
            }
            room -= count;
            let from = |n: u64| run.start.saturating_add(run.stride.saturating_mul(n));
            spans.extend((0..count).map(|n| (from(n), from(n).saturating_add(run.width))));
        }
        let Some(origin) = spans.iter().map(|s| s.0).min() else { continue };
        let exact = of & exact_kind::BOUND == 0;
        let bytes = EffectExtent::Pieces { origin, pieces: Pieces::of(spans, origin), exact };
        let run = ExactRun { kind: of, ..ExactRun::default() };
        irregular.push(Effect::new(EffectBase::Absolute(origin), kind(&run), bytes));
    }
    (single, irregular)
}

/// Whether no measurement has such an access: copies by a tensor map; and on a device textures,
/// surfaces and reads of constant memory, which NVIDIA's API does not report.
pub(crate) fn is_unseen(effect: &Effect, simulated: bool) -> bool {
    // The tensor of a map that the kernel makes.
    let of_pointer = matches!(effect.base, EffectBase::Param(..) | EffectBase::Maybe(..) | EffectBase::Global(_));
    let is_made = effect.by_map || effect.why == Some(Reason::Descriptor) && (of_pointer || effect.is_through_table());
    if is_made || simulated {
        return is_made || matches!(effect.base, EffectBase::Tensor(..) | EffectBase::MapInMemory(_));
    }
    effect.constant
        || matches!(
            effect.base,
            EffectBase::Handle(..)
                | EffectBase::SomeHandle(_)
                | EffectBase::Object
                | EffectBase::Tensor(..)
                | EffectBase::MapInMemory(_)
        )
}

/// Whether some of these effects are on bytes that the code does not tell exactly.
pub fn is_inexact(effects: &Evaluated) -> bool {
    effects.effects.iter().any(|effect| !matches!(effect.bytes, EffectExtent::Bounded { exact: true, .. }))
}

/// Whether a prediction contains any access that the API of a device would report.
pub fn claims(predicted: &Evaluated) -> bool {
    predicted.knowledge == Knowledge::Unknown || predicted.effects.iter().any(|e| !is_unseen(e, false))
}

/// The part of a prediction that stays beside a measurement. `nowhere`: whether the address of a
/// variable is unknown, so that its measured bytes would not be recognised.
pub fn unseen(predicted: &Evaluated, simulated: bool, nowhere: impl Fn(&str) -> bool) -> Evaluated {
    let lost = |base: &EffectBase| matches!(base, EffectBase::Global(name) if nowhere(name));
    let keep = |e: &&Effect| is_unseen(e, simulated) || lost(&e.base);
    let effects = predicted.effects.iter().filter(keep).cloned().collect();
    Evaluated { effects, knowledge: Knowledge::Exact, indirect: false, exact: false, gap: None, indirect_gap: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launches::effects::MapInMemory;
    use kernels::Tiles;

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
    fn many_runs_are_one_effect_that_lists_their_pieces() {
        let run = |n: u64, count, kind| ExactRun { start: 1000 + n * n * 16, stride: 8, width: 4, count, kind };
        let mut runs: Vec<ExactRun> = (0..100).map(|n| run(n, 1 + (n % 2) as u32, exact_kind::WRITE)).collect();
        runs.extend((0..MAX_SINGLE as u64).map(|n| run(n, 1, exact_kind::READ)));
        runs.push(run(2000, PATTERN, exact_kind::WRITE));
        let known = effects(&runs);
        assert_eq!(known.effects.len(), MAX_SINGLE + 2, "few reads, one pattern, and the list");
        let Some(EffectExtent::Pieces { origin, pieces, exact: true }) = known.effects.last().map(|e| &e.bytes) else {
            panic!("the list comes last");
        };
        let want: Vec<(u64, u64)> = (0..100_u64)
            .flat_map(|n| (0..1 + n % 2).map(move |piece| 1000 + n * n * 16 + piece * 8))
            .map(|at| (at - 1000, at - 996))
            .collect();
        assert_eq!((*origin, pieces.spans()), (1000, &want[..]));
        let mut bound = runs.clone();
        bound.iter_mut().for_each(|run| run.kind |= exact_kind::BOUND);
        let last = effects(&bound).effects.pop().map(|e| e.bytes);
        assert!(matches!(last, Some(EffectExtent::Pieces { exact: false, .. })));
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
        let map = MapInMemory {
            base: EffectBase::Param(16, 4096),
            at: 0,
            tiles: Tiles { at: 0, axes: Vec::new(), exact: false },
            arch: 90,
        };
        let map = EffectBase::MapInMemory(Box::new(map));
        let all = vec![
            of(EffectBase::Param(0, 64)),
            of(EffectBase::Tensor(8, 64)),
            of(map.clone()),
            of(EffectBase::Handle(8, 3)),
            of(EffectBase::Unknown),
            of(EffectBase::Global("here".into())),
            of(EffectBase::Global("lost".into())),
            Effect { constant: true, ..of(EffectBase::Global("constant".into())) },
            Effect { by_map: true, ..of(EffectBase::Param(24, 128)) },
        ];
        let known = Evaluated { effects: all, ..effects(&[]) };
        let kept: Vec<EffectBase> =
            unseen(&known, false, |name| name == "lost").effects.into_iter().map(|e| e.base).collect();
        let variables = ["lost", "constant"].map(|name| EffectBase::Global(name.into()));
        let objects = vec![EffectBase::Tensor(8, 64), map.clone(), EffectBase::Handle(8, 3)];
        let made = EffectBase::Param(24, 128);
        assert_eq!(kept, [objects, variables.into(), vec![made.clone()]].concat());
        let kept: Vec<EffectBase> = unseen(&known, true, |_| false).effects.into_iter().map(|e| e.base).collect();
        assert_eq!(kept, [EffectBase::Tensor(8, 64), map, made], "the simulator tells the others");
    }
}
