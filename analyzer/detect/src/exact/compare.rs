//! The comparison of a launch's predicted bytes with the bytes that it really touched.
//!
//! Owns the verdicts. A prediction is *sound* when no byte was touched that it does not allow.
//! Everything else is precision. Does not collect: that is [`super::oracle`].

use super::measured::{end, is_unseen, kind};
use crate::exact::byte_set;
use crate::exact::byte_set::ByteSet;
use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated, Knowledge};
use crate::memory::allocations::Home;
use crate::memory::{AccessKind, Allocations, Dim};
use kernels::Reason;
use trace::{ExactRun, ImageId, exact_kind};

/// The verdict on a prediction, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PredictionVerdict {
    /// Bytes were touched that the prediction excludes.
    Unsound,
    /// Bytes were predicted to be touched, and were not.
    Overclaimed,
    /// Nothing was predicted, because there was no code.
    NoCode,
    /// Some extent was unknown. The rest is right.
    Open,
    /// Some index was data ([`Reason::is_data`]): the whole allocation behind the pointer is the
    /// bound. The rest is right.
    ByData,
    /// All bytes touched lie in the bounds, which include others too.
    Loose,
    /// Exactly the bytes touched.
    Tight,
}

impl PredictionVerdict {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsound => "unsound",
            Self::Overclaimed => "overclaimed",
            Self::NoCode => "no-code",
            Self::Open => "open",
            Self::ByData => "by-data",
            Self::Loose => "loose",
            Self::Tight => "tight",
        }
    }
}

/// The result for one launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// The verdict.
    pub(crate) verdict: PredictionVerdict,
    /// Bytes that were touched although the prediction excludes them, by kind.
    pub(crate) missing: Vec<(AccessKind, ByteSet)>,
    /// Bytes that were predicted exactly and not touched: the instruction's place in the code, and
    /// the bytes.
    pub(crate) claimed: Vec<(u32, AccessKind, ByteSet)>,
    /// Bytes touched.
    pub(crate) touched: u64,
    /// Bytes predicted, without unknown extents.
    pub(crate) predicted: u64,
}

const KINDS: [AccessKind; 5] =
    [AccessKind::Read, AccessKind::Write, AccessKind::Atomic, AccessKind::AtomicRead, AccessKind::AtomicWrite];

struct Predicted<'a> {
    effect: &'a Effect,
    set: ByteSet,
    exact: bool,
}

/// Compares a launch. `memory` is its state at the launch.
pub fn compare(known: &Evaluated, image: ImageId, memory: &mut Allocations, runs: &[ExactRun]) -> Comparison {
    let touched = KINDS.map(|k| touched(runs, k));
    let all = touched.iter().fold(ByteSet::default(), |all, set| all.union(set));
    let bounds = runs.iter().any(|run| run.kind & exact_kind::BOUND != 0);
    let mut predicted: Vec<Predicted<'_>> = Vec::new();
    let mut open: Vec<(AccessKind, Option<ByteSet>)> = Vec::new();
    let mut by_data = true;
    for effect in known.effects.iter().filter(|e| !is_unseen(e, false)) {
        if is_settled(effect, known, memory) {
            continue;
        }
        match reach(effect, image, memory) {
            PredictedBytes::Nothing => {}
            PredictedBytes::ByteSet(set, exact) => predicted.push(Predicted { effect, set, exact }),
            PredictedBytes::Somewhere(within) => {
                let pointer = matches!(effect.base, EffectBase::Param(..) | EffectBase::Maybe(..));
                let data = matches!(effect.bytes, EffectExtent::Scattered) || effect.why.is_some_and(Reason::is_data);
                by_data &= pointer && within.is_some() && data;
                open.push((effect.kind, within));
            }
        }
    }
    let unseen = known.effects.iter().filter(|e| is_unseen(e, false));
    let unreported = unseen.fold(ByteSet::default(), |all, effect| match reach(effect, image, memory) {
        PredictedBytes::ByteSet(set, _) | PredictedBytes::Somewhere(Some(set)) => all.union(&set),
        PredictedBytes::Nothing | PredictedBytes::Somewhere(None) => all.union(&objects(effect, memory)),
    });
    let mut missing = Vec::new();
    for (k, touched) in KINDS.into_iter().zip(&touched) {
        // A simulated GPU reports some accesses that NVIDIA's API does not.
        let mut left = touched.minus(&unreported);
        // Atomic loads, and that in front of a compare-and-swap loop, are measured as reads, and
        // atomic stores as writes.
        let atomic = |of: AccessKind| match k {
            AccessKind::Read => of.is_atomic() && of.reads(),
            AccessKind::Write => of == AccessKind::AtomicWrite,
            _ => false,
        };
        for p in predicted.iter().filter(|p| p.effect.kind.stands_for(k) || atomic(p.effect.kind)) {
            left = left.minus(&p.set);
        }
        for (_, within) in open.iter().filter(|o| o.0.stands_for(k) || atomic(o.0)) {
            left = within.as_ref().map_or_else(ByteSet::default, |within| left.minus(within));
        }
        // Memory in no known allocation (the buffer of printf, the heap on the device) does not
        // count. Nor do arrays: textures and surfaces are not compared.
        let counts = |s: &(u64, u64)| memory.locate(s.0).is_some_and(|place| matches!(place.home, Home::Root(_)));
        let spans = left.spans().iter().copied().filter(counts).collect();
        let left = ByteSet::of(spans);
        if !left.is_empty() {
            missing.push((k, left));
        }
    }
    let claimed: Vec<_> = predicted
        .iter()
        .filter(|p| p.exact && !bounds)
        .map(|p| (p.effect.at, p.effect.kind, p.set.minus(&all)))
        .filter(|c| !c.2.is_empty())
        .collect();
    let union = predicted.iter().fold(ByteSet::default(), |all, p| all.union(&p.set));
    let verdict = if known.knowledge == Knowledge::Unknown {
        PredictionVerdict::NoCode
    } else if !missing.is_empty() {
        PredictionVerdict::Unsound
    } else if !claimed.is_empty() {
        PredictionVerdict::Overclaimed
    } else if !open.is_empty() {
        if by_data { PredictionVerdict::ByData } else { PredictionVerdict::Open }
    } else if union.minus(&all).is_empty() {
        PredictionVerdict::Tight
    } else {
        PredictionVerdict::Loose
    };
    Comparison { verdict, missing, claimed, touched: all.len(), predicted: union.len() }
}

/// The linear memory behind the texture or surface that an effect goes through, or those that it
/// may go through.
fn objects(effect: &Effect, memory: &Allocations) -> ByteSet {
    let handles: Vec<u64> = match &effect.base {
        EffectBase::Handle(_, handle) => vec![*handle],
        EffectBase::SomeHandle(words) => words.iter().map(|word| word.1).collect(),
        _ => Vec::new(),
    };
    let regions = handles.iter().filter_map(|handle| Some(memory.object_of(*handle)?.region));
    ByteSet::of(regions.filter(|region| region.array.is_none()).map(|region| (region.start, region.end())).collect())
}

/// Whether an address out of memory is one that another effect of the same instruction stands for:
/// a parameter plus a loaded number, of which either may be the pointer. The parameter is, because
/// it points into an allocation. (A call that is not followed touches more than what it is given.)
fn is_settled(effect: &Effect, known: &Evaluated, memory: &Allocations) -> bool {
    let pointer = |other: &Effect| {
        (other.at, other.kind) == (effect.at, effect.kind)
            && matches!(other.base, EffectBase::Maybe(_, value) if memory.locate(value).is_some())
    };
    effect.base == EffectBase::Unknown && effect.why != Some(Reason::Call) && known.effects.iter().any(pointer)
}

fn touched(runs: &[ExactRun], k: AccessKind) -> ByteSet {
    let mut spans = Vec::new();
    for run in runs.iter().filter(|run| kind(run) == k) {
        let dims = [Dim { stride: run.stride, count: u64::from(run.count) }];
        byte_set::pieces(run.start, end(run), run.width, if run.count > 1 { &dims } else { &[] }, &mut spans);
    }
    ByteSet::of(spans)
}

pub(super) enum PredictedBytes {
    /// The effect is on memory that does not exist.
    Nothing,
    /// These bytes; exactly, when the flag is set.
    ByteSet(ByteSet, bool),
    /// Somewhere in these bytes, or anywhere.
    Somewhere(Option<ByteSet>),
}

/// Where a predicted effect may be.
pub(super) fn reach(effect: &Effect, image: ImageId, memory: &Allocations) -> PredictedBytes {
    let whole = |memory: &Allocations, at: u64| {
        // From the address as the program uses it: aliases are not followed.
        memory.locate(at).map(|place| {
            let (start, end) = memory.bounds(&place);
            let moved = at.wrapping_sub(place.address);
            ByteSet::of(vec![(start.wrapping_add(moved), end.wrapping_add(moved))])
        })
    };
    let base = match &effect.base {
        EffectBase::Maybe(_, value) if memory.locate(*value).is_none() => return PredictedBytes::Nothing,
        EffectBase::Param(_, value)
        | EffectBase::Maybe(_, value)
        | EffectBase::Tensor(_, value)
        | EffectBase::Absolute(value) => *value,
        // Where it was measured, not where accesses to it are kept.
        EffectBase::Global(name) => match memory.address_of(image, name) {
            Some(address) => address,
            // Its place is unknown, and so what it touches lies in no allocation. How far into the
            // variable it reaches is known all the same.
            _ if matches!(effect.bytes, EffectExtent::Bounded { .. }) => return PredictedBytes::Nothing,
            _ => return PredictedBytes::Somewhere(None),
        },
        _ => return PredictedBytes::Somewhere(None),
    };
    match &effect.bytes {
        EffectExtent::Bounded { lo, hi, width, dims, exact } => {
            let shift = if matches!(effect.base, EffectBase::Global(_)) { base } else { 0 };
            let (lo, hi) = (lo.wrapping_add(shift), hi.wrapping_add(shift));
            if lo >= hi {
                return PredictedBytes::Nothing;
            }
            let mut spans = Vec::new();
            let fine = byte_set::pieces(lo, hi, *width, dims, &mut spans);
            PredictedBytes::ByteSet(ByteSet::of(spans), *exact && fine)
        }
        EffectExtent::Pieces { origin, pieces, exact } => {
            let spans = pieces.spans().iter().map(|s| (s.0 + origin, s.1 + origin)).collect();
            PredictedBytes::ByteSet(ByteSet::of(spans), *exact)
        }
        EffectExtent::Among { lo, hi } => PredictedBytes::ByteSet(ByteSet::of(vec![(*lo, *hi)]), false),
        EffectExtent::Unknown | EffectExtent::Scattered => match whole(memory, base) {
            Some(set) => PredictedBytes::Somewhere(Some(set)),
            None => PredictedBytes::Nothing,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::measured;
    use crate::memory::Allocation;

    fn memory() -> Allocations {
        let mut memory = Allocations::default();
        memory.alloc(Allocation::variable(0x1000, 0x1000));
        memory.alloc(Allocation::variable(0x8000, 0x1000));
        memory
    }

    fn run(start: u64, width: u64, kind: u32) -> ExactRun {
        ExactRun { start, stride: 0, width, count: 1, kind }
    }

    fn known(effects: Vec<Effect>) -> Evaluated {
        let knowledge = Knowledge::Exact;
        Evaluated { effects, knowledge, ..measured::effects(&[]) }
    }

    fn range(base: EffectBase, kind: AccessKind, lo: u64, hi: u64, exact: bool) -> Effect {
        Effect::new(base, kind, EffectExtent::Bounded { lo, hi, width: hi - lo, dims: Vec::new(), exact })
    }

    fn verdict(effects: Vec<Effect>, runs: &[ExactRun]) -> PredictionVerdict {
        compare(&known(effects), ImageId::NONE, &mut memory(), runs).verdict
    }

    #[test]
    fn bytes_outside_the_prediction_are_unsound() {
        let base = EffectBase::Param(0, 0x1000);
        let half = || range(base.clone(), AccessKind::Write, 0x1000, 0x1100, true);
        assert_eq!(verdict(vec![half()], &[run(0x1000, 0x100, 1)]), PredictionVerdict::Tight);
        assert_eq!(verdict(vec![half()], &[run(0x1000, 0x101, 1)]), PredictionVerdict::Unsound);
        assert_eq!(verdict(vec![half()], &[run(0x1000, 0xff, 1)]), PredictionVerdict::Overclaimed);
        let bound = range(base.clone(), AccessKind::Write, 0x1000, 0x1100, false);
        assert_eq!(verdict(vec![bound], &[run(0x1000, 0xff, 1)]), PredictionVerdict::Loose);
        // A store that was predicted as a load.
        let load = range(base.clone(), AccessKind::Read, 0x1000, 0x1100, true);
        assert_eq!(verdict(vec![load], &[run(0x1000, 0x100, 1)]), PredictionVerdict::Unsound);
        let atomic = range(base.clone(), AccessKind::Atomic, 0x1000, 0x1100, true);
        assert_eq!(verdict(vec![atomic], &[run(0x1000, 0x100, 1)]), PredictionVerdict::Unsound);
        assert_eq!(verdict(vec![half()], &[run(0x1000, 0x100, 2)]), PredictionVerdict::Tight);
        // The first load of a compare-and-swap loop.
        let atomic = range(base.clone(), AccessKind::Atomic, 0x1000, 0x1100, true);
        let swaps = [run(0x1000, 0x100, 0), run(0x1000, 0x100, 2)];
        assert_eq!(verdict(vec![atomic], &swaps), PredictionVerdict::Tight);
    }

    #[test]
    fn unknown_extents_reach_as_far_as_their_allocation() {
        let open = || vec![Effect::new(EffectBase::Param(0, 0x1800), AccessKind::Read, EffectExtent::Unknown)];
        assert_eq!(verdict(open(), &[run(0x1000, 0x1000, 0)]), PredictionVerdict::Open);
        assert_eq!(verdict(open(), &[run(0x8000, 4, 0)]), PredictionVerdict::Unsound);
        assert_eq!(verdict(open(), &[run(0x1000, 4, 1)]), PredictionVerdict::Unsound);
        let scattered = Effect::new(EffectBase::Param(0, 0x1800), AccessKind::Read, EffectExtent::Scattered);
        let one = &[run(0x1000, 0x1000, 0)];
        assert_eq!(verdict(vec![scattered.clone()], one), PredictionVerdict::ByData);
        assert_eq!(verdict([vec![scattered.clone()], open()].concat(), one), PredictionVerdict::Open);
        // In the allocation of the pointer alone.
        assert_eq!(verdict(vec![scattered], &[run(0x8000, 8, 0)]), PredictionVerdict::Unsound);
        let anywhere = |kind| vec![Effect::new(EffectBase::Unknown, kind, EffectExtent::Unknown)];
        assert_eq!(
            verdict(anywhere(AccessKind::Write), &[run(0x8000, 4, 1), run(0x1000, 4, 1)]),
            PredictionVerdict::Open
        );
        assert_eq!(
            verdict(anywhere(AccessKind::Read), &[run(0x8000, 4, 1), run(0x1000, 4, 0)]),
            PredictionVerdict::Unsound
        );
    }

    #[test]
    fn bytes_in_no_allocation_do_not_count_as_missing() {
        assert_eq!(verdict(Vec::new(), &[run(0x100_0000, 64, 1)]), PredictionVerdict::Tight);
        assert_eq!(verdict(Vec::new(), &[run(0x1000, 64, 1)]), PredictionVerdict::Unsound);
    }

    #[test]
    fn variables_are_compared_once_their_address_is_known() {
        let image = ImageId(1);
        let stores = |lo, hi| vec![range(EffectBase::Global("v".into()), AccessKind::Write, lo, hi, true)];
        let verdict = |memory: &mut Allocations, effects, runs: &[ExactRun]| {
            compare(&known(effects), image, memory, runs).verdict
        };
        let mut memory = memory();
        // A kernel ran before anything asked for the address.
        memory.global(image, "v");
        assert_eq!(verdict(&mut memory, stores(0, 64), &[run(0x2_0000, 64, 1)]), PredictionVerdict::Tight);
        memory.name_global(image, "v", Allocation::variable(0x2_0000, 0x100));
        assert_eq!(memory.address_of(image, "v"), Some(0x2_0000));
        assert_eq!(verdict(&mut memory, stores(0, 64), &[run(0x2_0000, 64, 1)]), PredictionVerdict::Tight);
        assert_eq!(verdict(&mut memory, stores(0, 64), &[run(0x2_0000, 68, 1)]), PredictionVerdict::Unsound);
        // One whose address is known before.
        memory.name_global(image, "w", Allocation::variable(0x3_0000, 0x100));
        let bytes = vec![range(EffectBase::Global("w".into()), AccessKind::Write, 4, 8, true)];
        assert_eq!(verdict(&mut memory, bytes, &[run(0x3_0004, 4, 1)]), PredictionVerdict::Tight);
    }

    #[test]
    fn the_missing_bytes_are_reported() {
        let effects = vec![range(EffectBase::Param(0, 0x1000), AccessKind::Write, 0x1000, 0x1100, true)];
        let c = compare(&known(effects), ImageId::NONE, &mut memory(), &[run(0x10f0, 0x20, 1)]);
        assert_eq!(c.missing, [(AccessKind::Write, ByteSet::of(vec![(0x1100, 0x1110)]))]);
        assert_eq!(c.claimed[0].2.len(), 0xf0);
        assert_eq!((c.touched, c.predicted), (0x20, 0x100));
    }
}
