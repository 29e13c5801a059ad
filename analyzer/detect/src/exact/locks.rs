//! Which measured accesses were made under a lock.
//!
//! Owns the correction. A measurement does not say which instruction touched a byte. Where all
//! accesses that the code may make to these bytes in this direction are made under a lock
//! (`kernels`, `ranges/locks.rs`), so was the one that was measured: under one of their locks.

use super::compare::{PredictedBytes, reach};
use crate::exact::byte_set::{self, ByteSet};
use crate::launches::effects::{Effect, EffectExtent, Evaluated, HeldLock, Knowledge};
use crate::memory::Allocations;
use trace::ImageId;

/// Marks the measured effects that must have been made under a lock.
pub fn mark(known: &Evaluated, image: ImageId, memory: &mut Allocations, measured: &mut [Effect]) {
    if known.knowledge == Knowledge::Unknown || known.effects.iter().all(|e| e.lock.is_none()) {
        return;
    }
    for effect in measured {
        let EffectExtent::Bounded { lo, hi, width, ref dims, .. } = effect.bytes else { continue };
        let mut spans = Vec::new();
        byte_set::pieces(lo, hi, width, dims, &mut spans);
        let bytes = ByteSet::of(spans);
        let (mut words, mut open) = (Vec::new(), false);
        for predicted in known.effects.iter().filter(|p| p.kind == effect.kind) {
            let meets = match reach(predicted, image, memory) {
                PredictedBytes::Nothing => false,
                PredictedBytes::ByteSet(set, _) | PredictedBytes::Somewhere(Some(set)) => {
                    bytes.minus(&set).len() < bytes.len()
                }
                PredictedBytes::Somewhere(None) => true,
            };
            if meets {
                open |= predicted.lock.is_none();
                words.extend(predicted.lock.iter().flat_map(|lock| lock.0.iter().cloned()));
            }
        }
        effect.lock = (!words.is_empty() && !open).then_some(HeldLock(words));
    }
}
