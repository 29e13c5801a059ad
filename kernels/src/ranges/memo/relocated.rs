//! Launches that differ from earlier ones in pointers only.
//!
//! Owns the evidence that a kernel's bytes move with its pointers, and the bound that follows from
//! it. An address that machine code puts together of two 32-bit words is a number to an
//! evaluation, so its result holds for these pointers only, and a recording of it holds for them
//! only as well. cuDNN's LSTM launches such a matrix product of cuBLAS with hundreds of pointers:
//! 802 evaluations of 30 ms were nearly all of the time that the analysis of 36 steps took.
//!
//! # What is taken, and when
//!
//! Launches are *alike* if they have the same shape and the same numbers, if their pointers agree
//! in their last 8 bits, and if the same of them are equal. After [`ENOUGH`] evaluations of alike
//! launches that found the same bytes relative to their pointers, the next one gets these bytes as
//! an upper bound. That is no proof: a kernel may test any bit of an address. So the bound is never
//! exact, such launches are counted ([`Relocations::taken`]), and at each doubling of their number
//! one of them is evaluated after all. One difference ends it for good. Their locks are those of
//! the first launch, moved in the same way. The evidence is kept with the evaluations, which later
//! runs of the program find instead of making them.

use super::evaluation_cache::{CachedEvaluation, LaunchShape, push};
use crate::effects::{Extent, LaunchArgs};
use crate::ranges::domain::tape::LaunchInput;
use crate::ranges::extent::reached::{EvaluatedAccesses, ReachedBytes, SymbolicBase};
use crate::ranges::memo::kept_locks::KeptLocks;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Evaluations that have to agree.
pub(crate) const ENOUGH: u64 = 8;
/// Sets of alike launches that are followed per kernel. cuBLAS launches one kernel in a dozen
/// shapes.
const MAX_SETS: usize = 16;
/// What pointers have to agree in. Allocations of CUDA's and of PyTorch's are aligned to 256 or 512
/// bytes.
const ALIGNMENT: u64 = 256;

/// A pointer of a launch: the offset of its word, and its value.
type Pointer = (u16, u64);

/// The evaluations of alike launches.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Alike {
    shape: LaunchShape,
    numbers: Vec<(LaunchInput, u64)>,
    pointers: Vec<Pointer>,
    /// What the first of them found.
    first: Arc<CachedEvaluation>,
    /// How many found that.
    agree: u64,
    /// How many took it.
    taken: u64,
    /// One found something else.
    differ: bool,
}

/// All of one kernel. The latest are last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Relocations {
    sets: Vec<Alike>,
    /// In this process.
    #[serde(skip)]
    taken: u64,
}

/// What is taken for a launch: the bytes, the inputs that decided about it, its locks, and those
/// that it holds if it executes their fences.
pub(crate) type Taken = (EvaluatedAccesses<Extent>, Vec<LaunchInput>, [Option<KeptLocks>; 2]);

/// The word among these that an input is read from.
fn word_of(input: LaunchInput, words: &[u16]) -> Option<u16> {
    let LaunchInput::Bytes(at, bytes) = input else { return None };
    words.iter().copied().find(|word| *word <= at && at + u16::from(bytes) <= word.saturating_add(8))
}

/// Whether a word holds an address: small numbers and null are numbers.
fn is_address(value: u64) -> bool {
    value >> 32 != 0 && value >> 56 == 0
}

fn value(word: u16, launch: &LaunchArgs<'_>) -> u64 {
    LaunchInput::Bytes(word, 8).read(launch)
}

impl Alike {
    /// `words`: those that addresses derive from.
    fn new(shape: LaunchShape, words: &[u16], launch: &LaunchArgs<'_>, first: &Arc<CachedEvaluation>) -> Option<Alike> {
        let (mut numbers, mut pointers) = (Vec::new(), Vec::new());
        for &(input, number) in &first.inputs {
            match word_of(input, words).map(|word| (word, value(word, launch))) {
                Some(pointer) if is_address(pointer.1) => pointers.push(pointer),
                _ => numbers.push((input, number)),
            }
        }
        pointers.sort_unstable();
        pointers.dedup();
        let first = first.clone();
        // Without pointers among the inputs the launch differs in numbers.
        (!pointers.is_empty()).then_some(Alike { shape, numbers, pointers, first, agree: 1, taken: 0, differ: false })
    }

    /// The pointers of a launch that is alike.
    fn pointers_of(&self, shape: &LaunchShape, launch: &LaunchArgs<'_>) -> Option<Vec<Pointer>> {
        if self.shape != *shape || self.numbers.iter().any(|(input, number)| input.read(launch) != *number) {
            return None;
        }
        let found: Vec<Pointer> = self.pointers.iter().map(|(word, _)| (*word, value(*word, launch))).collect();
        let agree = |((_, old), (_, new)): (&Pointer, &Pointer)| is_address(*new) && old % ALIGNMENT == new % ALIGNMENT;
        let places = || (0..found.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        let same = |pointers: &[Pointer], (one, other): (usize, usize)| pointers[one].1 == pointers[other].1;
        let like = self.pointers.iter().zip(&found).all(agree)
            && places().all(|pair| same(&self.pointers, pair) == same(&found, pair));
        like.then_some(found)
    }

    /// Bytes of the first launch, moved to other pointers. `None`: they do not say how.
    fn moved(&self, r: &ReachedBytes<Extent>, to: &[Pointer]) -> Option<ReachedBytes<Extent>> {
        let mut extent = r.extent.clone();
        if let (SymbolicBase::Absolute, Extent::Bounded { lo, hi, .. }) = (r.base, &mut extent) {
            // They count from the pointer that lies nearest.
            let (address, from) = (lo.cast_unsigned(), &self.pointers);
            let nearest = (0..to.len()).filter(|k| from[*k].1 <= address).max_by_key(|k| from[*k].1)?;
            let by = to[nearest].1.wrapping_sub(from[nearest].1).cast_signed();
            (*lo, *hi) = (lo.checked_add(by)?, hi.checked_add(by)?);
        }
        Some(ReachedBytes { extent, ..r.clone() })
    }

    /// What the first launch found, moved to other pointers.
    fn found_at(&self, to: &[Pointer]) -> Option<EvaluatedAccesses<Extent>> {
        self.first.result.iter().map(|(kind, r, at)| Some((*kind, self.moved(r, to)?, *at))).collect()
    }
}

/// The same bytes as an upper bound.
fn bounded(found: EvaluatedAccesses<Extent>) -> EvaluatedAccesses<Extent> {
    let bound = |(kind, mut r, at): (_, ReachedBytes<Extent>, _)| {
        if let Extent::Bounded { exact, .. } = &mut r.extent {
            *exact = false;
        }
        (kind, r, at)
    };
    found.into_iter().map(bound).collect()
}

impl Relocations {
    /// How many launches took what others found.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// What a launch takes from those that are alike; `None`: it has to be evaluated.
    pub(crate) fn take(&mut self, shape: &LaunchShape, launch: &LaunchArgs<'_>) -> Option<Taken> {
        let mut trusted = self.sets.iter_mut().filter(|alike| !alike.differ && alike.agree >= ENOUGH);
        let (alike, to) = trusted.find_map(|alike| alike.pointers_of(shape, launch).map(|to| (alike, to)))?;
        alike.taken += 1;
        if (ENOUGH + alike.taken).is_power_of_two() {
            return None;
        }
        let moved = bounded(alike.found_at(&to)?);
        let inputs = alike.first.inputs.iter().map(|(input, _)| *input).collect();
        let first = &alike.first;
        let locks = [&first.locks, &first.if_fenced]
            .map(|locks| locks.get().and_then(|locks| locks.moved(|r| alike.moved(r, &to))));
        self.taken += 1;
        Some((moved, inputs, locks))
    }

    /// A launch was evaluated. `words`: those that addresses derive from.
    pub(crate) fn note(
        &mut self,
        shape: LaunchShape,
        words: &[u16],
        launch: &LaunchArgs<'_>,
        found: &Arc<CachedEvaluation>,
    ) {
        let alike = self.sets.iter_mut().find_map(|alike| alike.pointers_of(&shape, launch).map(|to| (alike, to)));
        if let Some((alike, to)) = alike {
            let same = alike.found_at(&to).is_some_and(|moved| moved == found.result);
            alike.agree += u64::from(same);
            alike.differ |= !same;
        } else if let Some(alike) = Alike::new(shape, words, launch, found) {
            push(&mut self.sets, MAX_SETS, alike);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use crate::effects::AccessKind;
    use crate::ranges::domain::byte_set::ByteSet;
    use crate::ranges::domain::int::Int;
    use crate::ranges::domain::tape::input;
    use crate::ranges::memo::evaluation_cache::EvaluationCache;
    use crate::ranges::memo::replay::record;

    /// Enough for evaluations that agree, and some checks of the launches behind them.
    const LAUNCHES: u64 = 120;

    /// What an evaluation does with a launch of two pointers and a number.
    #[derive(Clone, Copy, Debug)]
    struct Kernel {
        /// The first pointer is put together: its bytes are addresses.
        absolute: bool,
        /// It is read in halves.
        halves: bool,
        /// A bit of it decides about its bytes.
        tested: bool,
        kind: AccessKind,
    }

    fn kernels(tested: bool) -> impl Iterator<Item = Kernel> {
        (0..8).map(move |n| {
            let kind = if n & 4 == 0 { AccessKind::Read } else { AccessKind::Write };
            Kernel { absolute: n & 1 == 0, halves: n & 2 == 0, tested, kind }
        })
    }

    impl Kernel {
        /// Nothing of what it reads may differ, as in a recording that is too long.
        fn evaluate(self, launch: &LaunchArgs<'_>) -> EvaluatedAccesses<ByteSet> {
            let read = |at, bytes| input(LaunchInput::Bytes(at, bytes), launch).pin();
            let a = if self.halves { read(0, 4) + (read(4, 4) << 32) } else { read(0, 8) };
            let (_, n) = (read(8, 8), read(16, 4));
            let moved = if self.tested && a & 0x10_0000 != 0 { 1024 } else { 0 };
            let bytes = |lo: i128| {
                let (lo, hi) = (Int::new(lo), Int::new(lo + 4 * n));
                ByteSet::Bounded { lo, hi, dims: Default::default(), width: hi - lo, exact: true }
            };
            let (base, lo) = if self.absolute { (SymbolicBase::Absolute, a) } else { (SymbolicBase::Word(0), 0) };
            vec![
                (self.kind, ReachedBytes::new(base, false, bytes(lo + moved)), 0x10),
                (AccessKind::Write, ReachedBytes::new(SymbolicBase::Word(8), false, bytes(0)), 0x20),
            ]
        }

        fn found(self, launch: &LaunchArgs<'_>) -> EvaluatedAccesses<Extent> {
            self.evaluate(launch).iter().map(|(kind, r, at)| (*kind, r.finished(Int::now), *at)).collect()
        }
    }

    /// Pointers to 1 MiB blocks, in no order.
    fn block(number: u64) -> u64 {
        0x7f00_0000_0000 + ((number * 37 % 509) << 20)
    }

    /// Launches a kernel once; whether it took the bytes of others. They are what an evaluation
    /// finds, or that as a bound.
    fn launch(cache: &EvaluationCache, kernel: Kernel, [a, b]: [u64; 2], n: u32) -> bool {
        let params: Vec<u8> = [a, b].iter().flat_map(|p| p.to_le_bytes()).chain(n.to_le_bytes()).collect();
        let launch = LaunchArgs::new([1, 1, 1], [128, 1, 1], &params);
        let before = cache.relocated();
        let got =
            cache.get_or_evaluate(&launch, &[0, 8], || false, |how| record(how, || kernel.evaluate(&launch)), |_| None);
        let took = cache.relocated() > before;
        let expected = kernel.found(&launch);
        let expected = if took { bounded(expected) } else { expected };
        assert_eq!(got.result, expected, "{kernel:?} {a:#x} {b:#x} {n}");
        // Each byte that decides is named, so that the launch is not taken for another.
        assert!((0..20).all(|at| got.bytes().any(|bytes| bytes.contains(&at))), "{kernel:?}");
        took
    }

    /// How many of many launches took the bytes of others.
    fn taken(kernel: Kernel, of: impl Fn(u64) -> ([u64; 2], u32)) -> u64 {
        let cache = EvaluationCache::default();
        (0..LAUNCHES).for_each(|n| {
            let (pointers, number) = of(n);
            launch(&cache, kernel, pointers, number);
        });
        cache.relocated()
    }

    #[test]
    fn bytes_that_move_with_pointers_are_a_bound_for_other_pointers() {
        for kernel in kernels(false) {
            let taken = taken(kernel, |n| ([block(n), block(n + 300)], 100));
            // Eight are evaluated, and one at each doubling.
            assert!((100..LAUNCHES - ENOUGH).contains(&taken), "{kernel:?}: {taken}");
        }
    }

    #[test]
    fn bytes_that_depend_on_an_address_otherwise_are_found_for_each_launch() {
        for kernel in kernels(true) {
            // Every other block has the bit.
            assert_eq!(taken(kernel, |n| ([block(n), block(n + 300)], 100)), 0, "{kernel:?}");
        }
    }

    #[test]
    fn one_difference_ends_it() {
        for kernel in kernels(true) {
            let cache = EvaluationCache::default();
            let pointers = |n: u64, bit: u64| [0x7f00_0000_0000 + (n << 21) + bit, 0x7e00_0000_0000];
            let without = (0..20).filter(|n| launch(&cache, kernel, pointers(*n, 0), 100)).count();
            assert!(without > 8, "{kernel:?}");
            // Those with the bit are alike by their numbers. The next one that is evaluated tells.
            let params = |n: u64| -> Vec<u8> {
                let words = pointers(n, 0x10_0000);
                words.iter().flat_map(|p| p.to_le_bytes()).chain(100_u32.to_le_bytes()).collect()
            };
            for n in 0..40 {
                let params = params(n);
                let with = LaunchArgs::new([1, 1, 1], [128, 1, 1], &params);
                cache.get_or_evaluate(&with, &[0, 8], || false, |how| record(how, || kernel.evaluate(&with)), |_| None);
            }
            let taken = cache.relocated();
            assert!((40..80).all(|n| !launch(&cache, kernel, pointers(n, 0x10_0000), 100)), "{kernel:?}");
            assert_eq!(cache.relocated(), taken);
        }
    }

    #[test]
    fn launches_that_differ_in_more_are_evaluated() {
        for kernel in kernels(false) {
            let others = [
                taken(kernel, |n| ([block(n), block(n + 300)], 1 + n as u32)),
                taken(kernel, |n| ([block(n) + n % 16 * 16, block(n + 300)], 100)),
                // Small numbers and null are no addresses.
                taken(kernel, |n| ([block(n), n << 8], 100)),
            ];
            assert_eq!(others, [0; 3], "{kernel:?}");
            let cache = EvaluationCache::default();
            (0..20).for_each(|n| {
                launch(&cache, kernel, [block(n), block(n + 300)], 100);
            });
            assert!(!launch(&cache, kernel, [block(50); 2], 100), "one pointer for both");
            assert!(!launch(&cache, kernel, [block(50), 0], 100), "none");
            assert!(launch(&cache, kernel, [block(50), block(51)], 100));
        }
    }
    #[test]
    fn a_later_process_has_the_evidence_and_the_locks() {
        for kernel in kernels(false) {
            let cache = EvaluationCache::default();
            let first = |cache: &EvaluationCache, n| launch(cache, kernel, [block(n), block(n + 300)], 100);
            (0..20).for_each(|n| {
                first(&cache, n);
            });
            let params: Vec<u8> =
                [block(0), block(300)].iter().flat_map(|p| p.to_le_bytes()).chain([100, 0, 0, 0]).collect();
            let shape = LaunchArgs::new([1, 1, 1], [128, 1, 1], &params);
            let kept = |cache: &EvaluationCache| {
                cache.get_or_evaluate(&shape, &[0, 8], || false, |_| unreachable!("it was evaluated"), |_| None)
            };
            let word = ReachedBytes::new(SymbolicBase::Word(8), false, Extent::Unknown { reason: Reason::Loaded });
            let words = [(3, [word].into_iter().collect())].into_iter().collect();
            let locks = KeptLocks { words, asked: true, made: vec![true, false], equal: vec![false] };
            kept(&cache).locks.set(locks.clone()).expect("not looked for");
            let mut later = EvaluationCache::default();
            assert!(later.unpack(&cache.pack().expect("it has evaluated")));
            assert_eq!(cache.pack(), None, "nothing came since");
            assert!(!first(&later, 0), "the first is found as it was evaluated");
            assert_eq!((kept(&later).locks.get(), kept(&later).if_fenced.get()), (Some(&locks), None));
            let taken = (20..30).filter(|n| first(&later, *n)).count();
            assert!(taken > 8, "{kernel:?}: {taken} of 10");
            assert!(!later.unpack(&[1, 2, 3]), "damaged");
        }
    }
}
