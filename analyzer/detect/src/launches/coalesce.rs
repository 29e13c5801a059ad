//! Coalescing of upper bounds: the bounds of one launch that join up become one, and those within
//! what is surely touched are dropped.
//!
//! Owns the rule of when bounds may be united, and the union. A kernel that stores a tile with two
//! dozen instructions has two dozen bounds when its address is not known to the byte. (cuBLAS
//! writes the partial sums of a product like this: 27 bounds of one workspace, each eight runs
//! long.) Every later launch on that workspace looks at all of them again, and none may be dropped
//! as long as nothing proves that the bytes were touched.
//!
//! # Why a union says the same
//!
//! Bounds are united when they have one base, one kind and the same repetitions, and when their
//! runs overlap or follow each other without a gap. Repetition by repetition the runs make one run,
//! so the union holds exactly the bytes that one of the bounds held. It claims nothing more and
//! nothing less: an access that shares a byte with one of the bounds shares it with the union.
//!
//! The confidence of a pair ([`crate::confidence::Confidence`]) depends on whether one side
//! begins inside of the other. An interval that reaches into the union and begins before it holds
//! the first byte of the union, as it held that of the first bound. (A pattern with gaps may have
//! held the first byte of a later bound, and of no other: the confidence of such a pair is lower
//! now.) Exact accesses are left alone.
//!
//! A bound whose bytes are all among those of one exact access of the same base and kind says
//! nothing: whatever shares a byte with it shares one with the exact access, which is worth more.
//! (A persistent kernel stores its first tiles surely. Where the others lie is data, and they are
//! bounded by a tensor that the first ones fill.) An access under a lock proves less, so it does
//! not count.

use crate::launches::effects::{Effect, EffectBase, EffectExtent};
use crate::memory::{AccessKind, Dim, Extent, Precision};
use kernels::Early;
use smallvec::SmallVec;

/// Rounds of uniting. A union has fewer repetitions than its parts, so it may join up with bounds
/// that did not fit before.
const ROUNDS: usize = 4;

/// A bound: its first run, and how the run is repeated.
struct Bound {
    /// Number of the first effect with the same base.
    base: usize,
    kind: AccessKind,
    by_map: bool,
    constant: bool,
    voted: bool,
    looked_up: bool,
    narrow: bool,
    early: Early,
    dims: SmallVec<[Dim; 3]>,
    start: u64,
    end: u64,
    /// The effect.
    number: usize,
}

impl Bound {
    fn of(effect: &Effect, base: usize, number: usize) -> Option<Self> {
        let EffectExtent::Bounded { lo, hi, width, ref dims, exact: false } = effect.bytes else { return None };
        let width = if dims.is_empty() { hi.checked_sub(lo)? } else { width };
        let &Effect { kind, by_map, constant, voted, looked_up, narrow, early, .. } = effect;
        let end = lo.checked_add(width)?;
        let (dims_first, start) = (SmallVec::new(), lo);
        let mut bound = Self {
            base,
            kind,
            dims: dims_first,
            start,
            end,
            number,
            early,
            by_map,
            constant,
            voted,
            looked_up,
            narrow,
        };
        bound.spread(dims);
        (bound.start < bound.end).then_some(bound)
    }

    /// Adds repetitions of the run.
    fn spread(&mut self, dims: &[Dim]) {
        let extent = Extent::pattern(self.start, self.end - self.start, dims, self.start, Precision::Bound);
        self.end = self.start.saturating_add(extent.width());
        self.dims = extent.dims().into();
    }

    fn family(&self) -> (usize, AccessKind, ([bool; 5], Early), &[Dim]) {
        let marks = [self.by_map, self.constant, self.voted, self.looked_up, self.narrow];
        (self.base, self.kind, (marks, self.early), &self.dims)
    }

    /// Absorbs the next bound, if its run joins up.
    fn takes(&mut self, next: &Self) -> bool {
        let joins = self.family() == next.family() && next.start <= self.end;
        if joins {
            self.end = self.end.max(next.end);
            self.number = self.number.min(next.number);
        }
        joins
    }

    fn bytes(self) -> EffectExtent {
        let reach = |end: u64, dim: &Dim| end.saturating_add(dim.stride.saturating_mul(dim.count.saturating_sub(1)));
        let hi = self.dims.iter().fold(self.end, reach);
        let (width, dims) = (self.end - self.start, self.dims.into_vec());
        EffectExtent::Bounded { lo: self.start, hi, width, dims, exact: false }
    }
}

/// The first byte of an effect and the byte behind its last, if it surely touches all in between
/// whoever else holds a lock.
fn filled(effect: &Effect) -> Option<(u64, u64)> {
    let EffectExtent::Bounded { lo, hi, width, ref dims, exact: true } = effect.bytes else { return None };
    if effect.lock.is_some() || effect.if_fenced.is_some() || effect.selection.is_some() {
        return None;
    }
    let whole = Extent::pattern(lo, if dims.is_empty() { hi - lo } else { width }, dims, lo, Precision::Exact);
    whole.dims().is_empty().then_some((lo, hi))
}

/// Drops bounds whose bytes are surely touched by the same launch in the same way.
fn drop_covered(effects: &mut Vec<Effect>) {
    let is_bound = |e: &Effect| matches!(e.bytes, EffectExtent::Bounded { exact: false, .. });
    if !effects.iter().any(is_bound) {
        return;
    }
    let all: SmallVec<[(usize, u64, u64); 8]> =
        effects.iter().enumerate().filter_map(|(k, e)| filled(e).map(|(lo, hi)| (k, lo, hi))).collect();
    let is_covered = |e: &Effect| {
        let EffectExtent::Bounded { lo, hi, exact: false, .. } = e.bytes else { return false };
        all.iter().any(|(k, from, to)| {
            let sure = &effects[*k];
            let same = |e: &Effect| (e.kind, e.early, e.by_map, e.constant, e.untold, e.narrow);
            *from <= lo && hi <= *to && same(sure) == same(e) && sure.base == e.base
        })
    };
    let covered: SmallVec<[bool; 16]> = effects.iter().map(is_covered).collect();
    let mut covered = covered.into_iter();
    effects.retain(|_| !covered.next().unwrap_or(false));
}

fn bounds(effects: &[Effect]) -> Vec<Bound> {
    let mut bases: SmallVec<[(&EffectBase, usize); 8]> = SmallVec::new();
    let mut bounds = Vec::new();
    for (number, effect) in effects.iter().enumerate() {
        let base = bases.iter().find(|known| *known.0 == effect.base).map_or(number, |known| known.1);
        if base == number {
            bases.push((&effect.base, number));
        }
        bounds.extend(Bound::of(effect, base, number));
    }
    bounds
}

/// Unites bounds that join up. The union takes the place of the first of them.
pub(crate) fn unite(effects: &mut Vec<Effect>) {
    drop_covered(effects);
    let mut bounds = bounds(effects);
    let mut gone: SmallVec<[usize; 16]> = SmallVec::new();
    for _ in 0..ROUNDS {
        let before = bounds.len();
        bounds.sort_unstable_by(|a, b| (a.family(), a.start, a.number).cmp(&(b.family(), b.start, b.number)));
        bounds.dedup_by(|next, last| {
            let numbers = (last.number, next.number);
            let taken = last.takes(next);
            gone.extend(taken.then_some(numbers.0.max(numbers.1)));
            taken
        });
        if bounds.len() == before {
            break;
        }
        for bound in &mut bounds {
            let dims = std::mem::take(&mut bound.dims);
            bound.spread(&dims);
        }
    }
    if gone.is_empty() {
        return;
    }
    for bound in bounds {
        let number = bound.number;
        effects[number].bytes = bound.bytes();
    }
    gone.sort_unstable();
    let mut number = 0;
    effects.retain(|_| {
        number += 1;
        gone.binary_search(&(number - 1)).is_err()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence::Confidence;
    use crate::launches::effects::HeldLock;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn effect(base: EffectBase, kind: AccessKind, lo: u64, width: u64, dims: &[Dim], exact: bool) -> Effect {
        let hi = dims.iter().fold(lo + width, |hi, d| hi + d.stride * (d.count - 1));
        Effect::new(base, kind, EffectExtent::Bounded { lo, hi, width, dims: dims.to_vec(), exact })
    }

    fn bound(lo: u64, width: u64, dims: &[Dim]) -> Effect {
        effect(EffectBase::Param(8, 0), AccessKind::Write, lo, width, dims, false)
    }

    fn extent(effect: &Effect) -> Extent {
        let EffectExtent::Bounded { lo, hi, width, ref dims, .. } = effect.bytes else { unreachable!() };
        if dims.is_empty() { Extent::bound(lo, hi, lo) } else { Extent::pattern(lo, width, dims, lo, Precision::Bound) }
    }

    fn united(mut effects: Vec<Effect>) -> Vec<Effect> {
        unite(&mut effects);
        effects
    }

    #[test]
    fn bounds_of_partial_sums_become_one() {
        let eight = Dim { stride: 1 << 20, count: 8 };
        let tile = |lo| bound(lo, 4, &[Dim { stride: 4, count: 234_400 }, eight]);
        let effects = united((0..16).map(|i| tile(i * 0x80)).collect());
        assert_eq!(effects, [bound(0, 0x780 + 4 * 234_400, &[eight])]);
        // One hole less in a slice: the repetitions join up too.
        let effects = united((0..16).map(|i| tile(i * 0x2000)).collect());
        assert_eq!(effects, [bound(0, (7 << 20) + 0x1e000 + 4 * 234_400, &[])]);
    }

    #[test]
    fn the_union_stands_where_the_first_stood() {
        let at = |at, lo, width| Effect { at, ..bound(lo, width, &[]) };
        let effects = united(vec![at(3, 500, 10), at(1, 100, 50), at(2, 90, 10), at(4, 150, 5)]);
        assert_eq!(effects, [at(3, 500, 10), at(1, 90, 65)]);
    }

    #[test]
    fn what_does_not_join_up_stays() {
        let two = [Dim { stride: 100, count: 2 }];
        let apart = vec![
            bound(0, 10, &[]),
            bound(11, 10, &[]),
            effect(EffectBase::Param(8, 0), AccessKind::Read, 5, 10, &[], false),
            effect(EffectBase::Maybe(8, 0), AccessKind::Write, 5, 10, &[], false),
            effect(EffectBase::Param(8, 0), AccessKind::Write, 5, 10, &[], true),
            bound(8, 4, &two),
            bound(8, 4, &[Dim { stride: 100, count: 3 }]),
            Effect::new(EffectBase::Param(8, 0), AccessKind::Write, EffectExtent::Unknown),
            bound(u64::MAX - 3, 3, &[]),
        ];
        assert_eq!(united(apart.clone()), apart);
    }

    #[test]
    fn a_bound_within_what_is_surely_touched_says_nothing() {
        let sure = |lo, width, dims: &[Dim]| effect(EffectBase::Param(8, 0), AccessKind::Write, lo, width, dims, true);
        // A tensor that first tiles fill: in one run, and in runs that follow each other.
        assert_eq!(united(vec![bound(0, 64, &[]), sure(0, 64, &[])]), [sure(0, 64, &[])]);
        let rows = sure(0, 16, &[Dim { stride: 16, count: 4 }]);
        assert_eq!(united(vec![rows.clone(), bound(32, 8, &[Dim { stride: 16, count: 2 }])]), [rows]);
        let locked = || Effect { lock: Some(HeldLock(Vec::new(), kernels::LockRole::Section)), ..sure(0, 64, &[]) };
        let kept = [
            // One byte beyond; gaps; another kind; another base; before the wait; under a lock.
            [sure(0, 63, &[]), bound(0, 64, &[])],
            [sure(0, 8, &[Dim { stride: 16, count: 4 }]), bound(0, 56, &[])],
            [sure(0, 64, &[]), effect(EffectBase::Param(8, 0), AccessKind::Read, 0, 64, &[], false)],
            [sure(0, 64, &[]), effect(EffectBase::Param(16, 0), AccessKind::Write, 0, 64, &[], false)],
            [sure(0, 64, &[]), Effect { early: Early::Surely, ..bound(0, 64, &[]) }],
            [locked(), bound(0, 64, &[])],
        ];
        for effects in kept {
            assert_eq!(united(effects.to_vec()), effects);
        }
    }

    fn some_bound() -> impl Strategy<Value = Effect> {
        let dims = prop::collection::vec((1..40_u64, 1..4_u64).prop_map(|(stride, count)| Dim { stride, count }), 0..3);
        (0..60_u64, 1..12_u64, dims, any::<bool>()).prop_map(|(lo, width, dims, writes)| {
            let kind = if writes { AccessKind::Write } else { AccessKind::Read };
            effect(EffectBase::Param(0, 0), kind, 100 + lo, width, &dims, false)
        })
    }

    fn bytes(effects: &[Effect], kind: AccessKind) -> BTreeSet<u64> {
        let bytes = |e: &Effect| {
            let e = extent(e);
            (e.start..e.end).filter(move |at| e.holds(*at)).collect::<Vec<_>>()
        };
        effects.iter().filter(|e| e.kind == kind).flat_map(bytes).collect()
    }

    proptest! {
        #[test]
        fn the_same_bytes_and_the_same_confidence(
            effects in prop::collection::vec(some_bound(), 0..12),
            x in (90..260_u64, 1..60_u64),
        ) {
            let after = united(effects.clone());
            prop_assert!(after.len() <= effects.len());
            let x = Extent::exact(x.0, x.0 + x.1);
            for kind in [AccessKind::Read, AccessKind::Write] {
                prop_assert_eq!(bytes(&effects, kind), bytes(&after, kind));
                let worth = |all: &[Effect]| {
                    all.iter().filter(|e| e.kind == kind).filter_map(|e| Confidence::of(&extent(e), &x)).max()
                };
                // For overlapping runs, `meet` does not distinguish the pattern from its interval.
                if effects.iter().chain(&after).all(|e| !matches!(extent(e).meet(&x), crate::memory::Meet::Maybe)) {
                    prop_assert_eq!(worth(&effects), worth(&after));
                }
            }
        }
    }
}
