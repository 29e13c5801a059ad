//! What a measured launch did to order its accesses for others.
//!
//! Owns what follows from it. Code and launch say which locks are held during an access, which
//! flags tell of it, and whether the kernel may tell the host ([`super::locks`], `kernels`). They
//! do not say which of its fences a launch executes: a parameter may choose one, or a word in
//! memory. The simulated GPU does ([`trace::exact_order`]): it names the bytes of which some access
//! was not acquired, not released, or told to nobody. Such an access is under no lock, or handed
//! over by no flag, and a message of its own launch does not excuse a touch of the host.

use super::compare::{PredictedBytes, reach};
use super::locks::part_of;
use super::measured::{end, kind};
use crate::exact::byte_set::{self, ByteSet};
use crate::launches::effects::{Effect, Evaluated, HeldLock};
use crate::memory::{AccessKind, Allocations, Dim};
use kernels::LockRole;
use trace::{ExactRun, ImageId, exact_kind, exact_order};

/// Bytes of which some access was not ordered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MeasuredOrder {
    not_acquired: ByteSet,
    not_released: ByteSet,
    not_told: ByteSet,
}

/// Adds the bytes of a run that are surely in it.
fn add(run: &ExactRun, to: &mut Vec<(u64, u64)>) {
    let first = to.len();
    let dims = [Dim { stride: run.stride, count: u64::from(run.count) }];
    let dims = if run.count > 1 { &dims[..] } else { &[] };
    if run.kind & exact_kind::BOUND != 0 || !byte_set::pieces(run.start, end(run), run.width, dims, to) {
        to.truncate(first);
    }
}

impl MeasuredOrder {
    /// What these runs say.
    pub(super) fn of(runs: &[ExactRun]) -> Self {
        let of = |kind: u32| {
            let mut spans = Vec::new();
            runs.iter().filter(|run| run.kind & exact_kind::MASK == kind).for_each(|run| add(run, &mut spans));
            ByteSet::of(spans)
        };
        let [not_acquired, not_released, not_told] =
            [exact_order::NOT_ACQUIRED, exact_order::NOT_RELEASED, exact_order::NOT_TOLD].map(of);
        Self { not_acquired, not_released, not_told }
    }

    /// Whether a launch that touched exactly these bytes has told the host of none of its stores.
    pub fn tells_nobody(&self, runs: &[ExactRun]) -> bool {
        let mut spans = Vec::new();
        for run in runs.iter().filter(|run| kind(run).writes()) {
            let before = spans.len();
            add(run, &mut spans);
            if spans.len() == before {
                return false;
            }
        }
        ByteSet::of(spans).minus(&self.not_told).is_empty()
    }

    /// Takes from measured effects what their launch did not order them by. `signals`: its kernel
    /// can tell the host of them.
    pub fn apply(&self, signals: bool, image: ImageId, memory: &mut Allocations, measured: &mut Vec<Effect>) {
        let nothing = ByteSet::default();
        let not_told = if signals { &self.not_told } else { &nothing };
        for effect in std::mem::take(measured) {
            let role = effect.lock.as_ref().map(|lock| lock.1).filter(|role| *role != LockRole::Claims);
            let (acquires, releases) = match role {
                None => (&nothing, &nothing),
                Some(LockRole::Gives) => (&nothing, &self.not_released),
                Some(LockRole::Awaits) => (&self.not_acquired, &nothing),
                Some(_) => (&self.not_acquired, &self.not_released),
            };
            let sets = [acquires, releases, not_told];
            let open =
                matches!(effect.kind, AccessKind::Read | AccessKind::Write) && sets.iter().any(|set| !set.is_empty());
            let PredictedBytes::ByteSet(bytes, true) = (match open {
                true => reach(&effect, image, memory),
                false => PredictedBytes::Nothing,
            }) else {
                measured.push(effect);
                continue;
            };
            let mut parts = vec![(bytes, [false; 3])];
            for (k, set) in sets.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
                for (bytes, lacks) in std::mem::take(&mut parts) {
                    let without = bytes.minus(set);
                    let with = bytes.minus(&without);
                    let mut all = lacks;
                    all[k] = true;
                    parts.extend([(without, lacks), (with, all)].into_iter().filter(|part| !part.0.is_empty()));
                }
            }
            let whole = parts.len() == 1;
            for (bytes, [acquire, release, told]) in parts {
                let part = if whole { Some(effect.clone()) } else { part_of(&effect, &bytes) };
                let Some(mut part) = part else { continue };
                part.lock = part.lock.and_then(|lock| without(lock, acquire, release));
                part.untold = told;
                measured.push(part);
            }
        }
    }
}

/// What is left of a lock or a flag without the acquire, or without the release.
fn without(HeldLock(words, role): HeldLock, acquire: bool, release: bool) -> Option<HeldLock> {
    let left = match (role, acquire, release) {
        (LockRole::Claims, ..) | (_, false, false) => role,
        (LockRole::Passes, true, false) => LockRole::Gives,
        (LockRole::Passes, false, true) => LockRole::Awaits,
        (LockRole::Gives, _, false) | (LockRole::Awaits, false, _) => role,
        _ => return None,
    };
    Some(HeldLock(words, left))
}

/// Whether something rests on the order that a launch of these accesses makes. `signals`: its
/// kernel can tell the host of them.
pub fn matters(predicted: &Evaluated, signals: bool) -> bool {
    let is_order = |lock: &HeldLock| lock.1 != LockRole::Claims;
    let ordered = |e: &Effect| e.lock.iter().chain(&e.if_fenced).any(is_order);
    signals || predicted.effects.iter().any(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::measured;
    use crate::launches::effects::{EffectBase, EffectExtent};

    const NOT_ACQUIRED: u32 = exact_order::NOT_ACQUIRED;
    const NOT_RELEASED: u32 = exact_order::NOT_RELEASED;
    const NOT_TOLD: u32 = exact_order::NOT_TOLD;

    fn run(start: u64, width: u64, kind: u32) -> ExactRun {
        ExactRun { start, stride: 0, width, count: 1, kind }
    }

    /// What is left of the lock of 16 bytes in this role, and whether they count as untold, at each
    /// of four words.
    fn left(role: LockRole, kind: u32, order: &[ExactRun], signals: bool) -> Vec<(Option<LockRole>, bool)> {
        let mut effects = measured::effects(&[run(0x1000, 16, kind)]).effects;
        let word = EffectExtent::Bounded { lo: 0, hi: 4, width: 4, dims: Vec::new(), exact: true };
        effects[0].lock = Some(HeldLock(vec![(EffectBase::Absolute(0), word)], role));
        MeasuredOrder::of(order).apply(signals, ImageId::NONE, &mut Allocations::default(), &mut effects);
        let at = |k: u64| {
            let holds = |effect: &&Effect| match reach(effect, ImageId::NONE, &Allocations::default()) {
                PredictedBytes::ByteSet(set, true) => set.meets(0x1000 + 4 * k, 0x1004 + 4 * k),
                _ => panic!("exact bytes"),
            };
            let mut found = effects.iter().filter(holds);
            let effect = found.next().expect("a part");
            assert!(found.next().is_none(), "each byte once");
            (effect.lock.as_ref().map(|lock| lock.1), effect.untold)
        };
        (0..4).map(at).collect()
    }

    #[test]
    fn each_role_needs_its_side_of_the_order() {
        use LockRole::{Awaits, Claims, Gives, Passes, Section};
        let order = [run(0x1004, 4, NOT_ACQUIRED), run(0x1008, 8, NOT_RELEASED), run(0x100c, 4, NOT_ACQUIRED)];
        let of = |role| left(role, exact_kind::WRITE, &order, true).into_iter().map(|left| left.0).collect::<Vec<_>>();
        assert_eq!(of(Section), [Some(Section), None, None, None]);
        assert_eq!(of(Gives), [Some(Gives), Some(Gives), None, None]);
        assert_eq!(of(Awaits), [Some(Awaits), None, Some(Awaits), None]);
        assert_eq!(of(Passes), [Some(Passes), Some(Gives), Some(Awaits), None]);
        assert_eq!(of(Claims), [Some(Claims); 4]);
        // Atomic accesses are ordered by nothing else.
        assert_eq!(left(Section, exact_kind::ATOMIC, &order, true), [(Some(Section), false); 4]);
    }

    #[test]
    fn the_host_is_told_of_what_is_not_marked() {
        let order = [ExactRun { count: 2, stride: 8, ..run(0x1000, 4, NOT_TOLD) }];
        let untold = |signals| left(LockRole::Claims, exact_kind::READ, &order, signals);
        let claims = Some(LockRole::Claims);
        assert_eq!(untold(true), [(claims, true), (claims, false), (claims, true), (claims, false)]);
        assert_eq!(untold(false), [(claims, false); 4]);
        // A bound may hold bytes that are ordered.
        let bound = [run(0x1000, 16, NOT_TOLD | exact_kind::BOUND)];
        assert_eq!(left(LockRole::Claims, exact_kind::READ, &bound, true), [(claims, false); 4]);
    }

    #[test]
    fn a_launch_tells_nobody_if_it_tells_of_no_store() {
        let tells_nobody = |runs: &[ExactRun], order: &[ExactRun]| MeasuredOrder::of(order).tells_nobody(runs);
        let (data, flag) = (run(0x1000, 16, exact_kind::WRITE), run(0x2000, 4, exact_kind::ATOMIC_WRITE));
        let not = |run: ExactRun| ExactRun { kind: NOT_TOLD, ..run };
        assert!(tells_nobody(&[data, flag], &[not(data), not(flag)]));
        assert!(!tells_nobody(&[data, flag], &[not(data)]));
        assert!(!tells_nobody(&[data, flag], &[not(flag)]));
        // Loads tell nothing.
        assert!(tells_nobody(&[run(0x1000, 16, exact_kind::READ)], &[]));
        let some = ExactRun { kind: exact_kind::WRITE | exact_kind::BOUND, ..data };
        assert!(!tells_nobody(&[some], &[not(data)]));
    }
}
