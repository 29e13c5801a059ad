//! Which measured accesses were made under a lock.
//!
//! Owns the correction. A measurement does not say which instruction touched a byte. Where all
//! accesses that the code may make to these bytes in this direction are made under a lock
//! (`kernels`, `ranges/locks.rs`), so was the one that was measured: under one of their locks.
//! Where the code says exactly which bytes each lock protects, a measured access is divided along
//! them.

use super::compare::{PredictedBytes, reach};
use crate::exact::byte_set::ByteSet;
use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated, HeldLock, Knowledge};
use crate::memory::{Allocations, Pieces};
use trace::ImageId;

/// The measured bytes that are accessed under one lock, or under none, and whether all of them are.
struct Part<'a> {
    lock: Option<&'a HeldLock>,
    bytes: ByteSet,
    exact: bool,
}

/// Marks the measured effects that must have been made under a lock. `ordered`: the measurement
/// tells which fences were executed, so locks count that need some which the launch may leave out.
pub fn mark(known: &Evaluated, ordered: bool, image: ImageId, memory: &mut Allocations, measured: &mut Vec<Effect>) {
    if known.knowledge == Knowledge::Unknown || known.effects.iter().all(|e| lock_of(e, ordered).is_none()) {
        return;
    }
    for mut effect in std::mem::take(measured) {
        let PredictedBytes::ByteSet(bytes, exact) = reach(&effect, image, memory) else {
            measured.push(effect);
            continue;
        };
        let parts = parts(known, ordered, image, memory, &effect, &bytes);
        let mut words: Vec<_> = Vec::new();
        for word in parts.iter().filter_map(|part| part.lock).flat_map(|lock| &lock.0) {
            if !words.contains(word) {
                words.push(word.clone());
            }
        }
        let open = parts.iter().any(|part| part.lock.is_none());
        let mut roles = parts.iter().filter_map(|part| part.lock).map(|lock| Some(lock.1));
        let first = roles.next().flatten();
        let role = roles.fold(first, |one, other| one?.common(other?)).filter(|_| !open);
        effect.lock = role.map(|role| HeldLock(words, role));
        if parts.len() < 2 || !exact || parts.iter().any(|part| !part.exact) {
            measured.push(effect);
            continue;
        }
        let covered = parts.iter().fold(ByteSet::default(), |all, part| all.union(&part.bytes));
        let divided = parts.iter().map(|part| (part.bytes.clone(), part.lock.cloned()));
        for (bytes, lock) in divided.chain([(bytes.minus(&covered), effect.lock.clone())]) {
            measured.extend(part_of(&effect, &bytes).map(|part| Effect { lock, ..part }));
        }
    }
}

/// The part of an exact effect that touches these bytes of it.
pub(super) fn part_of(effect: &Effect, bytes: &ByteSet) -> Option<Effect> {
    let (origin, exact) = (bytes.spans().first()?.0, true);
    let bytes = match *bytes.spans() {
        [(lo, hi)] => EffectExtent::Bounded { lo, hi, width: hi - lo, dims: Vec::new(), exact },
        _ => EffectExtent::Pieces { origin, pieces: Pieces::of(bytes.spans().to_vec(), origin), exact },
    };
    let base = match &effect.base {
        EffectBase::Absolute(_) => EffectBase::Absolute(origin),
        named => named.clone(),
    };
    Some(Effect { bytes, base, ..effect.clone() })
}

/// The lock of a predicted effect.
fn lock_of(predicted: &Effect, ordered: bool) -> Option<&HeldLock> {
    predicted.lock.as_ref().or(predicted.if_fenced.as_ref().filter(|_| ordered))
}

/// Divides measured bytes by the locks that the code says are held during such accesses to them.
fn parts<'a>(
    known: &'a Evaluated,
    ordered: bool,
    image: ImageId,
    memory: &mut Allocations,
    effect: &Effect,
    bytes: &ByteSet,
) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for predicted in known.effects.iter().filter(|p| p.kind == effect.kind) {
        let (set, exact) = match reach(predicted, image, memory) {
            PredictedBytes::Nothing => continue,
            PredictedBytes::ByteSet(set, exact) => (bytes.minus(&bytes.minus(&set)), exact),
            PredictedBytes::Somewhere(Some(set)) => (bytes.minus(&bytes.minus(&set)), false),
            PredictedBytes::Somewhere(None) => (bytes.clone(), false),
        };
        if set.is_empty() {
            continue;
        }
        let lock = lock_of(predicted, ordered);
        match parts.iter_mut().find(|part| part.lock == lock) {
            Some(part) => (part.bytes, part.exact) = (part.bytes.union(&set), part.exact && exact),
            None => parts.push(Part { lock, bytes: set, exact }),
        }
    }
    parts
}
