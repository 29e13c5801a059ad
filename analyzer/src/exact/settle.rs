//! Kernels that need no measuring: those whose code told every byte of every launch so far.
//!
//! Owns that judgement. Measuring such a launch would find what was predicted (where the two were compared, launch by launch, no prediction
//! that claimed to be exact was wrong; `--exact-compare` repeats that comparison and measures all). A kernel is settled by its first launch that
//! the code decides. The first one that the code does not decide unsettles it for good: that launch counts as it was predicted, those after it are
//! measured again.

use crate::code::{Base, Evaluated, Knowledge};
use rustc_hash::FxHashMap;
use trace::KernelId;

/// The judgement on all kernels of one process.
#[derive(Default)]
pub struct Settle {
    settled: FxHashMap<KernelId, bool>,
    fresh: Vec<(KernelId, bool)>,
}

impl Settle {
    /// Takes note of a launch.
    pub fn judge(&mut self, kernel: KernelId, predicted: &Evaluated) {
        let decided = is_decided(predicted);
        let was = self.settled.get(&kernel).copied();
        if was.is_none() || was == Some(true) && !decided {
            self.settled.insert(kernel, decided);
            if decided || was.is_some() {
                self.fresh.push((kernel, decided));
            }
        }
    }

    /// A kernel of which the judgement has changed: whether it is settled now.
    pub fn changed(&mut self) -> Option<(KernelId, bool)> {
        self.fresh.pop()
    }
}

/// Whether the code tells each byte that a launch touches.
fn is_decided(predicted: &Evaluated) -> bool {
    let lost = |base: &Base| matches!(base, Base::Unknown | Base::Table(_) | Base::SomeHandle(_) | Base::Object);
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
    fn one_launch_settles_a_kernel_and_one_unsettles_it_for_good() {
        let exact = Evaluated { exact: true, ..measured::effects(&[]) };
        let bound = Evaluated { exact: false, ..exact.clone() };
        let indirect = Evaluated { indirect: true, ..exact.clone() };
        let k = KernelId(3);
        let mut settle = Settle::default();
        settle.judge(k, &exact);
        settle.judge(k, &exact);
        assert_eq!((settle.changed(), settle.changed()), (Some((k, true)), None));
        settle.judge(k, &bound);
        settle.judge(k, &exact);
        assert_eq!((settle.changed(), settle.changed()), (Some((k, false)), None));
        for doubtful in [bound, indirect] {
            let mut settle = Settle::default();
            settle.judge(k, &doubtful);
            settle.judge(k, &exact);
            assert_eq!(settle.changed(), None);
        }
    }
}
