//! The evaluations of one kernel that are kept, by the numbers that they rest on.
//!
//! Owns the table and what is dropped from it. Does not evaluate, and does not know what else is
//! kept of a kernel (`evaluation_cache`).
//!
//! A recurrent network launches one kernel with a hundred numbers of time steps in turn, and has
//! other pointers in each step of its training. So all of these numbers have to be kept, or none is
//! ever met again; and a launch is looked up by its numbers, not compared with all of them.

use super::evaluation_cache::{CachedEvaluation, LaunchShape};
use crate::effects::LaunchArgs;
use crate::ranges::domain::tape::LaunchInput;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Evaluations that are kept whatever their size, and most shapes where there are more. A kernel
/// that is too long to be recorded is evaluated again for each one that was dropped, and cuBLAS
/// launches one kernel in a dozen shapes a step.
const ALWAYS: usize = 64;
/// Evaluations that are kept while they are small.
const MOST: usize = 1024;
/// Accesses of all that are kept beyond [`ALWAYS`].
const MOST_ACCESSES: usize = 1 << 13;

/// The values of inputs.
type Values = SmallVec<[u64; 4]>;

/// Evaluations of one shape that rest on the same inputs, by the values of these.
#[derive(Clone, Debug)]
struct Family {
    shape: LaunchShape,
    inputs: SmallVec<[LaunchInput; 4]>,
    by_values: FxHashMap<Values, Arc<CachedEvaluation>>,
}

impl Family {
    fn is_of(&self, evaluation: &CachedEvaluation) -> bool {
        self.shape == evaluation.shape && self.inputs.iter().eq(evaluation.inputs.iter().map(|(input, _)| input))
    }
}

/// The kept evaluations of one kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptEvaluations {
    families: Vec<Family>,
    /// All of them, the latest last.
    in_order: VecDeque<Arc<CachedEvaluation>>,
    /// The accesses of all of them.
    accesses: usize,
}

impl KeptEvaluations {
    /// The one that holds for a launch of this shape.
    pub(super) fn get(&self, shape: &LaunchShape, launch: &LaunchArgs<'_>) -> Option<&Arc<CachedEvaluation>> {
        self.families.iter().filter(|family| family.shape == *shape).find_map(|family| {
            let values: Values = family.inputs.iter().map(|input| input.read(launch)).collect();
            family.by_values.get(&values)
        })
    }

    /// Adds one. The first are dropped when there are too many.
    pub(super) fn push(&mut self, new: Arc<CachedEvaluation>) {
        let family = self.families.iter().position(|family| family.is_of(&new)).unwrap_or_else(|| {
            let inputs = new.inputs.iter().map(|(input, _)| *input).collect();
            self.families.push(Family { shape: new.shape, inputs, by_values: FxHashMap::default() });
            self.families.len() - 1
        });
        self.accesses += new.result.len();
        // Another thread may have evaluated the same: the later one stands for both.
        self.families[family].by_values.insert(values(&new), new.clone());
        self.in_order.push_back(new);
        // (Families are gone through one by one.)
        let is_large = |kept: &Self| kept.accesses > MOST_ACCESSES || kept.families.len() > ALWAYS;
        while self.in_order.len() > MOST || self.in_order.len() > ALWAYS && is_large(self) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let Some(first) = self.in_order.pop_front() else { return };
        self.accesses -= first.result.len();
        let Some(at) = self.families.iter().position(|family| family.is_of(&first)) else { return };
        let (family, values) = (&mut self.families[at], values(&first));
        if family.by_values.get(&values).is_some_and(|kept| Arc::ptr_eq(kept, &first)) {
            family.by_values.remove(&values);
        }
        if family.by_values.is_empty() {
            self.families.remove(at);
        }
    }

    /// How many there are of shapes like this.
    pub(super) fn count(&self, like: impl Fn(&LaunchShape) -> bool) -> usize {
        self.families.iter().filter(|family| like(&family.shape)).map(|family| family.by_values.len()).sum()
    }

    /// All of them, the latest last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<CachedEvaluation>> {
        self.in_order.iter()
    }
}

fn values(of: &CachedEvaluation) -> Values {
    of.inputs.iter().map(|(_, value)| *value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::AccessKind;
    use crate::ranges::extent::reached::{ReachedBytes, SymbolicBase};
    use crate::{Extent, Reason};

    fn shape(grid: u32) -> LaunchShape {
        ([grid, 1, 1], [32, 1, 1], [1; 3], 0, 8)
    }

    /// An evaluation that rests on `width` bytes of the parameters, which hold `number`.
    fn evaluation(grid: u32, width: u8, number: u64, accesses: usize) -> Arc<CachedEvaluation> {
        let unknown = Extent::Unknown { reason: Reason::Loaded };
        let access = (AccessKind::Read, ReachedBytes::new(SymbolicBase::Unknown, false, unknown), 0);
        let inputs = vec![(LaunchInput::Bytes(0, width), number)];
        let result = vec![access; accesses];
        Arc::new(CachedEvaluation::new(shape(grid), inputs, result))
    }

    fn found(kept: &KeptEvaluations, grid: u32, number: u64) -> Option<u64> {
        let params = number.to_le_bytes();
        let launch = LaunchArgs::new([grid, 1, 1], [32, 1, 1], &params);
        kept.get(&shape(grid), &launch).map(|found| found.inputs[0].1)
    }

    #[test]
    fn a_launch_finds_the_evaluation_of_its_shape_and_numbers_and_no_other() {
        let mut kept = KeptEvaluations::default();
        (0..200).for_each(|number| kept.push(evaluation(1, 4, number, 2)));
        kept.push(evaluation(2, 4, 7, 2));
        kept.push(evaluation(3, 1, 5, 2));
        assert!((0..200).all(|number| found(&kept, 1, number) == Some(number)));
        assert_eq!((found(&kept, 1, 200), found(&kept, 2, 7), found(&kept, 2, 8)), (None, Some(7), None));
        // It rests on one byte: the others may be anything.
        assert_eq!((found(&kept, 3, 0x1_0005), found(&kept, 3, 6)), (Some(5), None));
        assert_eq!((kept.count(|_| true), kept.count(|of| of.0[0] == 1)), (202, 200));
    }

    #[test]
    fn the_first_are_dropped_where_there_are_many_or_large_ones() {
        let mut kept = KeptEvaluations::default();
        (0..3 * MOST as u64).for_each(|number| kept.push(evaluation(1, 8, number, 2)));
        assert_eq!((kept.iter().count(), kept.count(|_| true)), (MOST, MOST));
        assert_eq!((found(&kept, 1, 2 * MOST as u64 - 1), found(&kept, 1, 2 * MOST as u64)), (None, Some(2048)));
        // Large ones: as many as were always kept.
        (0..100).for_each(|number| kept.push(evaluation(2, 8, number, MOST_ACCESSES)));
        assert_eq!((kept.iter().count(), kept.families.len()), (ALWAYS, 1));
        assert_eq!((found(&kept, 2, 35), found(&kept, 2, 36), found(&kept, 1, 3000)), (None, Some(36), None));
    }

    #[test]
    fn of_many_shapes_few_are_kept() {
        let mut kept = KeptEvaluations::default();
        (1..=500).for_each(|grid| kept.push(evaluation(grid, 8, 1, 2)));
        assert_eq!((kept.iter().count(), kept.families.len()), (ALWAYS, ALWAYS));
        assert_eq!((found(&kept, 436, 1), found(&kept, 437, 1), found(&kept, 500, 1)), (None, Some(1), Some(1)));
        // Numbers of few shapes are.
        (0..900).for_each(|number| kept.push(evaluation(500, 8, number, 2)));
        assert!(kept.families.len() <= ALWAYS && kept.iter().count() > 900);
        assert!((0..900).all(|number| found(&kept, 500, number) == Some(number)));
    }

    #[test]
    fn what_is_kept_twice_is_found_until_both_are_dropped() {
        let mut kept = KeptEvaluations::default();
        kept.push(evaluation(1, 8, 3, 2));
        kept.push(evaluation(1, 8, 4, 2));
        kept.push(evaluation(1, 8, 3, 2));
        kept.drop_first();
        assert_eq!((found(&kept, 1, 3), found(&kept, 1, 4)), (Some(3), Some(4)));
        kept.drop_first();
        assert_eq!((found(&kept, 1, 3), found(&kept, 1, 4)), (Some(3), None));
        kept.drop_first();
        assert_eq!((found(&kept, 1, 3), kept.accesses, kept.families.len()), (None, 0, 0));
    }
}
