//! Results that are kept between launches: results of equal launches, and programs for launches
//! that differ in their numbers.
//!
//! Owns the policy, and which results outlive the process ([`crate::Cache`]): a second run of the
//! same program finds all its launches evaluated, their locks found, and the evidence of which
//! kernels' bytes move with their pointers. A recording costs as much as several evaluations,
//! and most kernels are launched in one or two shapes, so the third shape is the first to be
//! recorded. Recordings go on as long as they are worth it: each launch that is replayed pays for
//! one.
//!
//! A kernel whose launches all differ, and cannot be replayed, may not cost more than
//! [`MOST_SPENT`]: from then on new launches get a brief evaluation, where what needs more steps is
//! a bound ([`crate::Reason::Budget`]). A count of steps decides and no clock, so all runs do the
//! same. What was brief does not outlive the process.

use super::kept_evaluations::KeptEvaluations;
use super::relocated::Relocations;
use super::replay::{RecordedEvaluation, ReplayProgram, Way};
use crate::Extent;
use crate::effects::LaunchArgs;
use crate::ranges::domain::tape::LaunchInput;
use crate::ranges::extent::reached::EvaluatedAccesses;
use crate::ranges::memo::kept_locks::{self, KeptLocks};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Recorded programs that are kept per kernel.
const MAX_PROGRAMS: usize = 8;
/// No more recordings are made when there were this many more than launches that were replayed.
const MAX_AHEAD: u32 = 24;

/// Bounds and steps of their search that the evaluations of one kernel may take, before they become
/// brief: about 2 s of one core (docs/measurements/analyzer-throughput.md).
const MOST_SPENT: u64 = 4_000_000;

/// Grid, block, cluster, dynamic shared memory, bytes of parameters.
pub(super) type LaunchShape = ([u32; 3], [u32; 3], [u32; 3], u32, usize);

pub(super) fn shape(l: &LaunchArgs<'_>) -> LaunchShape {
    (l.grid, l.block, l.cluster, l.shared, l.params.len())
}

/// An evaluated launch: valid for every launch that agrees in shape and in the numbers that
/// mattered.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CachedEvaluation {
    pub(super) shape: LaunchShape,
    pub(super) inputs: Vec<(LaunchInput, u64)>,
    pub(crate) result: EvaluatedAccesses<Extent>,
    /// The locks of these launches, once they were found.
    #[serde(with = "kept_locks::once")]
    pub(crate) locks: OnceLock<KeptLocks>,
    /// The same of those that are held if a launch executes the fences which they need.
    #[serde(with = "kept_locks::once")]
    pub(crate) if_fenced: OnceLock<KeptLocks>,
    #[serde(skip)]
    is_brief: bool,
}

impl CachedEvaluation {
    /// One whose locks were not looked for.
    pub(super) fn new(
        shape: LaunchShape,
        inputs: Vec<(LaunchInput, u64)>,
        result: EvaluatedAccesses<Extent>,
    ) -> CachedEvaluation {
        CachedEvaluation { shape, inputs, result, locks: OnceLock::new(), if_fenced: OnceLock::new(), is_brief: false }
    }

    /// The parameter bytes that mattered.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = Range<usize>> {
        self.inputs.iter().filter_map(|(input, _)| input.bytes())
    }
}

/// What is kept of one kernel.
#[derive(Clone, Debug, Default)]
struct State {
    kept: KeptEvaluations,
    /// Each with a launch of the shape it holds for, but for the grid. The latest are last.
    programs: Vec<(LaunchShape, Arc<ReplayProgram>)>,
    /// Recordings less the launches that were replayed.
    ahead: u32,
    /// Something was evaluated that is not on disk.
    fresh: bool,
    /// Launches that differ in pointers only.
    relocations: Relocations,
    /// What evaluations have cost so far.
    spent: u64,
}

/// The evaluations of one kernel.
#[derive(Debug, Default)]
pub(crate) struct EvaluationCache {
    state: Mutex<State>,
}

/// A result that says more than the one before, and the inputs that it rests on besides.
pub(crate) type Refined = (EvaluatedAccesses<Extent>, Vec<LaunchInput>);

/// Appends, and forgets the first when there are so many.
pub(super) fn push<T>(list: &mut Vec<T>, most: usize, new: T) {
    if list.len() >= most {
        list.remove(0);
    }
    list.push(new);
}

impl EvaluationCache {
    /// How many launches were recorded, less those that recordings were played for.
    #[cfg(test)]
    pub(crate) fn ahead(&self) -> u32 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ahead
    }

    /// All evaluations of this kernel are brief from now on.
    #[cfg(test)]
    pub(crate) fn spend_all(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).spent = MOST_SPENT + 1;
    }

    /// How many evaluations are kept.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).kept.iter().count()
    }

    /// How many launches got the bytes of others that differ in pointers only, as a bound.
    pub(crate) fn relocated(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).relocations.taken()
    }

    /// Whether a result for this launch is kept.
    pub(crate) fn has(&self, launch: &LaunchArgs<'_>) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).kept.get(&shape(launch), launch).is_some()
    }

    /// Keeps what another one keeps, and nothing else.
    pub(crate) fn keep_as(&self, other: &EvaluationCache) {
        let state = other.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// The result for a launch, from what is kept if possible. `words`: the offsets of those that
    /// addresses derive from. `evaluate`: with a recording for other launches, or without.
    pub(crate) fn get_or_evaluate(
        &self,
        launch: &LaunchArgs<'_>,
        words: &[u16],
        recordable: impl FnOnce() -> bool,
        evaluate: impl FnOnce(Way) -> RecordedEvaluation,
        refine: impl FnOnce(&EvaluatedAccesses<Extent>) -> Option<Refined>,
    ) -> Arc<CachedEvaluation> {
        let wanted = shape(launch);
        let kept = |mut inputs: Vec<LaunchInput>, found, refined: Option<Refined>| {
            let result = match refined {
                Some((result, more)) => {
                    inputs.extend(more);
                    result
                }
                None => found,
            };
            let inputs = inputs.into_iter().map(|i| (i, i.read(launch))).collect();
            CachedEvaluation::new(wanted, inputs, result)
        };
        let like = |s: &LaunchShape| (s.1, s.2, s.3, s.4) == (wanted.1, wanted.2, wanted.3, wanted.4);
        let lock = || self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let way = {
            let mut store = lock();
            if let Some(kept) = store.kept.get(&wanted, launch) {
                return kept.clone();
            }
            let programs = store.programs.iter().enumerate().rev().filter(|p| like(&p.1.0));
            let played = programs.filter_map(|(n, p)| Some((n, p.1.play(launch)?))).next();
            if let Some((n, result)) = played {
                let inputs = store.programs[n].1.inputs().collect();
                store.programs[n..].rotate_left(1);
                store.ahead = store.ahead.saturating_sub(1);
                drop(store);
                let refined = refine(&result);
                let new = Arc::new(kept(inputs, result, refined));
                lock().kept.push(new.clone());
                return new;
            }
            if let Some((result, inputs, locks)) = store.relocations.take(&wanted, launch) {
                drop(store);
                // The launch cache keeps it: here it would take the place of what was found.
                let [locks, if_fenced] = locks.map(|locks| locks.map_or_else(OnceLock::new, OnceLock::from));
                return Arc::new(CachedEvaluation { locks, if_fenced, ..kept(inputs, result, None) });
            }
            match recordable() && store.ahead < MAX_AHEAD && store.kept.count(like) > 1 {
                _ if store.spent > MOST_SPENT => Way::Brief,
                true => Way::Recorded,
                false => Way::Plain,
            }
        };
        let taken = evaluate(way);
        if way == Way::Brief {
            let new = Arc::new(CachedEvaluation { is_brief: true, ..kept(taken.inputs, taken.result, None) });
            lock().kept.push(new.clone());
            return new;
        }
        let refined = refine(&taken.result);
        let new = Arc::new(kept(taken.inputs, taken.result, refined));
        let mut store = lock();
        store.spent += taken.spent;
        store.fresh = true;
        store.relocations.note(wanted, words, launch, &new);
        store.kept.push(new.clone());
        match taken.program {
            Some(p) => {
                store.ahead += 1;
                push(&mut store.programs, MAX_PROGRAMS, (wanted, p));
            }
            // Too long, and so will the next be.
            None if way == Way::Recorded => store.ahead = MAX_AHEAD,
            None => {}
        }
        new
    }

    /// All results, written down; `None` when they were read like this, and none came since.
    pub(crate) fn pack(&self) -> Option<Vec<u8>> {
        let mut store = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut store.fresh) {
            return None;
        }
        let kept: Vec<_> = store.kept.iter().filter(|kept| !kept.is_brief).collect();
        postcard::to_allocvec(&(kept, &store.relocations)).ok()
    }

    /// Takes what [`Analysis::packed`] gave. False: it is something else, and nothing was
    /// taken.
    pub(crate) fn unpack(&mut self, bytes: &[u8]) -> bool {
        let Ok(((kept, relocations), [])) = postcard::take_from_bytes::<(Vec<_>, Relocations)>(bytes) else {
            return false;
        };
        let store = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        kept.into_iter().for_each(|kept| store.kept.push(kept));
        store.relocations = relocations;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CodeImage, Extent, KernelAccess};
    use device_code::arch::Arch;
    use device_code::image::CodeRef;

    /// A copy with a guard and an offset; with a loop over the grid; one with rows of a pitch; all
    /// elements but the last; a branch on the size.
    const PTX: &str = r#"
.version 8.0
.target sm_80
.address_size 64
.visible .entry guarded(.param .u64 o, .param .u64 a, .param .u32 n, .param .u32 off) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<2>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [a]; ld.param.u32 %r1, [n]; ld.param.u32 %r7, [off];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE;
  mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d2, %d3; ld.global.f32 %f1, [%d4];
  add.s32 %r6, %r5, %r7; mul.wide.s32 %d5, %r6, 4; add.s64 %d6, %d1, %d5; st.global.f32 [%d6], %f1;
DONE: ret;
}
.visible .entry strided(.param .u64 o, .param .u64 a, .param .u32 n) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .f32 %f<2>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [a]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE;
  mov.u32 %r6, %nctaid.x; mul.lo.s32 %r7, %r6, %r3;
NEXT: mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d2, %d3; ld.global.f32 %f1, [%d4];
  add.s64 %d5, %d1, %d3; st.global.f32 [%d5], %f1;
  add.s32 %r5, %r5, %r7; setp.lt.s32 %p2, %r5, %r1; @%p2 bra NEXT;
DONE: ret;
}
.visible .entry pitched(.param .u64 o, .param .u32 pitch) {
  .reg .b32 %r<8>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [pitch];
  mov.u32 %r2, %ctaid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r1, %r4;
  mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r5;
  ret;
}
.visible .entry last(.param .u64 o, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  add.s32 %r6, %r1, -1; setp.eq.s32 %p1, %r5, %r6; @%p1 bra DONE;
  mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r5;
DONE: ret;
}
.visible .entry large(.param .u64 o, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n];
  setp.lt.u32 %p1, %r1, 700; @%p1 bra DONE;
  mov.u32 %r4, %tid.x; mul.wide.s32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r4;
DONE: ret;
}
.visible .entry aligned(.param .u64 o, .param .u64 a, .param .u64 step) {
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .f32 %f<2>; .reg .b64 %d<12>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [a]; ld.param.u64 %d3, [step];
  setp.eq.s64 %p1, %d2, 0; @%p1 bra DONE;
  mov.u32 %r4, %tid.x; mul.wide.s32 %d4, %r4, 4; add.s64 %d5, %d1, %d4; add.s64 %d6, %d5, %d3;
  or.b64 %d7, %d1, %d2; and.b64 %d8, %d7, 15; setp.ne.s64 %p2, %d8, 0; @%p2 bra ODD;
  add.s64 %d9, %d2, %d4; ld.global.f32 %f1, [%d9]; st.global.f32 [%d6], %f1; bra DONE;
ODD: st.global.u32 [%d6], %r4;
DONE: ret;
}
.visible .entry fixed() {
  .reg .b32 %r<2>; .reg .b64 %d<2>;
  mov.u64 %d1, 139637976727552; mov.u32 %r1, 1; st.global.u32 [%d1], %r1; ret;
}
"#;

    fn image() -> CodeImage {
        CodeImage::from_code(CodeRef::Ptx(PTX.into()), Arch::new(80)).expect("PTX")
    }

    /// A launch of one of the kernels: pointers, then 4-byte words.
    fn params(pointers: u64, words: &[u32]) -> Vec<u8> {
        let mut b: Vec<u8> = (0..pointers).flat_map(|p| (0x7f00_0000_0000 + (p << 33)).to_le_bytes()).collect();
        words.iter().for_each(|w| b.extend(w.to_le_bytes()));
        b
    }

    fn evaluate(s: &crate::Summary, grid: u32, params: &[u8]) -> Vec<KernelAccess> {
        let mut out = Vec::new();
        s.evaluate(&LaunchArgs::new([grid, 1, 1], [128, 1, 1], params), &mut out);
        out
    }

    /// Sizes in no order: around the blocks' ends, small, and many of one octave.
    fn sizes() -> impl Iterator<Item = u32> {
        let around = [127, 128, 129, 255, 256, 257, 1023, 1024, 1025].into_iter();
        (0..200u32).map(|k| 512 + k * 389 % 512).chain(around).chain(0..40).chain((0..60).map(|k| 512 + k * 97 % 512))
    }

    /// Every launch of one summary, which keeps programs, gets what a new summary says; returns how
    /// many recordings are ahead at the end.
    fn same_as_fresh(name: &str, launch: impl Fn(u32) -> (u32, Vec<u8>)) -> u32 {
        let image = image();
        let kept = image.summary(name).expect("summary");
        for n in sizes() {
            let (grid, params) = launch(n);
            let fresh = image_of(name);
            assert_eq!(evaluate(&kept, grid, &params), evaluate(&fresh, grid, &params), "{name}, n {n}, grid {grid}");
        }
        kept.analysis().cache().ahead()
    }

    fn image_of(name: &str) -> Arc<crate::Summary> {
        image().summary(name).expect("summary")
    }

    #[test]
    fn a_kernel_that_has_cost_too_much_is_evaluated_briefly_and_nothing_of_that_is_written_down() {
        let summary = image_of("guarded");
        let params = params(2, &[300, 3]);
        let launch = |grid| LaunchArgs::new([grid, 1, 1], [128, 1, 1], &params);
        let (full, cache) = (evaluate(&summary, 3, &params), summary.analysis().cache());
        assert!(cache.pack().is_some());
        cache.spend_all();
        // What is kept is kept, and an address like this needs no budget.
        assert_eq!(evaluate(&summary, 3, &params), full);
        assert_eq!(evaluate(&summary, 4, &params).len(), full.len());
        assert_eq!(cache.kept(), 2);
        assert!(cache.has(&launch(4)) && cache.pack().is_none());
        let mut other = EvaluationCache::default();
        assert!(other.unpack(&{
            cache.state.lock().unwrap().fresh = true;
            cache.pack().expect("something new")
        }));
        assert!(other.has(&launch(3)) && !other.has(&launch(4)));
    }

    #[test]
    fn launches_that_differ_in_sizes_need_no_evaluation() {
        let grid = |n: u32| n.div_ceil(128).max(1);
        assert!(same_as_fresh("guarded", |n| (grid(n), params(2, &[n, 3]))) < 5);
        assert!(same_as_fresh("guarded", |n| (20, params(2, &[n, 3]))) < 5);
        assert!(same_as_fresh("guarded", |n| (4, params(2, &[500, n]))) < 5);
        assert!(same_as_fresh("guarded", |n| (grid(n), params(2, &[n, n / 2]))) < 5);
        assert!(same_as_fresh("strided", |n| (2, params(2, &[n]))) < 5);
    }

    #[test]
    fn what_sizes_decide_is_seen() {
        // A stride that varies, a step of a loop that varies, a branch on the size itself.
        assert!(same_as_fresh("pitched", |n| (4, params(1, &[n]))) < 5);
        assert!(same_as_fresh("strided", |n| (n % 5 + 1, params(2, &[n]))) < 5);
        assert!(same_as_fresh("last", |n| (n.div_ceil(128).max(1), params(1, &[n]))) < 5);
        assert!(same_as_fresh("large", |n| (1, params(1, &[n]))) < 5);
        // Nothing of the launch matters.
        assert!(same_as_fresh("fixed", |n| (n % 7 + 1, Vec::new())) < 5);
    }

    #[test]
    fn pointers_that_are_tested_for_null_and_alignment_need_no_evaluation_each() {
        let kept = image_of("aligned");
        let mut evaluated = Vec::new();
        for (pair, odd) in (0..40_u64).map(|n| (n * 37 % 41, n / 20)) {
            let pointers = [0x7f00_0000_0000 + (pair << 21) + 4 * odd, 0x7e00_0000_0000 + (pair << 33)];
            // (Without the second pointer nothing is touched.)
            for second in [pointers[1], 0] {
                let words = [pointers[0], second, 0x4000];
                let params: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let found = evaluate(&kept, 2, &params);
                assert_eq!(found, evaluate(&image_of("aligned"), 2, &params), "{words:x?}");
                let accesses = if second == 0 { 0 } else { 2 - odd as usize };
                assert_eq!(found.len(), accesses, "{found:?}");
                assert!(found.iter().all(|a| matches!(a.extent, Extent::Bounded { exact: true, .. })), "{found:?}");
            }
            evaluated.push(kept.analysis().cache().kept());
        }
        assert_eq!([0, 19, 39].map(|n| evaluated[n]), [2, 2, 3], "aligned, null, odd");
    }

    #[test]
    fn bytes_beyond_the_guard_are_not_claimed() {
        let image = image();
        let s = image.summary("guarded").expect("summary");
        for n in sizes().filter(|n| *n > 0) {
            for a in evaluate(&s, 8, &params(2, &[n, 0])) {
                let Extent::Bounded { lo, hi, .. } = a.extent else { panic!("n {n}: {a:?}") };
                assert_eq!((lo, hi), (0, 4 * i64::from(n.min(1024))), "n {n}");
            }
        }
    }
}
