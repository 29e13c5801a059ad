//! Settled launches: those that need no measuring, because the code has decided every byte of their
//! class (kernel, grid and block) so far.
//!
//! Owns that judgement. Measuring such a launch would find what was predicted: where the two were
//! compared, launch by launch, no prediction that claimed to be exact was wrong. (`--exact-compare`
//! repeats that comparison and measures all launches.) A class is settled by its first launch, if
//! the code decides that one. The first launch that the code does not decide unsettles the class
//! for good: that launch counts as predicted, and those after it are measured again. So does a
//! launch in a body of a conditional node, of which only a measurement tells whether it runs.

use crate::launches::effects::{EffectBase, Evaluated, Knowledge};
use rustc_hash::FxHashMap;
use trace::ring::back_channel::LaunchClass;

/// The judgement on all launches of one process.
#[derive(Default)]
pub struct Settle {
    settled: FxHashMap<LaunchClass, bool>,
    fresh: Vec<(LaunchClass, bool)>,
}

impl Settle {
    /// Notes a launch, and whether there is nothing to measure about it.
    pub fn judge(&mut self, class: LaunchClass, decided: bool) {
        let was = self.settled.get(&class).copied();
        if was.is_none() || was == Some(true) && !decided {
            self.settled.insert(class, decided);
            if decided || was.is_some() {
                self.fresh.push((class, decided));
            }
        }
    }

    /// Whether the code has decided all launches of the class so far, at least one.
    pub fn has(&self, class: LaunchClass) -> bool {
        self.settled.get(&class) == Some(&true)
    }

    /// The next class whose judgement has changed, and whether it is settled now.
    pub fn changed(&mut self) -> Option<(LaunchClass, bool)> {
        self.fresh.pop()
    }
}

/// Whether the code decides each byte that a launch touches.
pub fn is_decided(predicted: &Evaluated) -> bool {
    let lost = |base: &EffectBase| {
        matches!(
            base,
            EffectBase::Unknown
                | EffectBase::PointerTable(_)
                | EffectBase::VariableTable(_)
                | EffectBase::Handle(..)
                | EffectBase::SomeHandle(_)
                | EffectBase::Object
        )
    };
    predicted.knowledge == Knowledge::Exact
        && predicted.exact
        && !predicted.indirect
        && !predicted.effects.iter().any(|e| lost(&e.base))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::measured;

    #[test]
    fn one_launch_settles_a_class_and_one_unsettles_it_for_good() {
        let k = LaunchClass::of(trace::KernelId(3), [1; 3], [32, 1, 1]);
        let mut settle = Settle::default();
        settle.judge(k, true);
        settle.judge(k, true);
        assert_eq!((settle.changed(), settle.changed()), (Some((k, true)), None));
        settle.judge(k, false);
        settle.judge(k, true);
        assert_eq!((settle.changed(), settle.changed()), (Some((k, false)), None));
        let mut settle = Settle::default();
        settle.judge(k, false);
        settle.judge(k, true);
        assert_eq!(settle.changed(), None);
    }

    #[test]
    fn a_launch_of_bounds_or_of_unknown_addresses_is_not_decided() {
        let exact = Evaluated { exact: true, ..measured::effects(&[]) };
        assert!(is_decided(&exact));
        assert!(!is_decided(&Evaluated { exact: false, ..exact.clone() }));
        assert!(!is_decided(&Evaluated { indirect: true, ..exact }));
    }
}
