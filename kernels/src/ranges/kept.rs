//! Results that are kept between launches: of equal launches, and templates for those that differ in sizes.
//!
//! Owns the policy only.

use super::extent::Reached;
use super::template::{Template, Vary};
use super::{Analysis, Shape, shape, word32};
use crate::access::LaunchArgs;
use crate::ir::AccessKind;
use std::sync::{Arc, PoisonError};

/// Launch shapes whose result is kept per kernel, and templates.
const KEPT: usize = 8;
/// Launches for which a new template is held against an evaluation.
const PROBATION: u32 = 2;
/// Templates that were not worth it, after which no other is tried.
const MAX_FAILURES: u32 = 3;
/// Words that a template lets vary.
const MAX_WORDS: usize = 6;

/// An evaluated launch: valid for every launch that agrees in shape and in the words that mattered.
#[derive(Debug)]
pub(super) struct Kept {
    pub shape: Shape,
    pub words: Vec<(usize, u32)>,
    pub result: Vec<(AccessKind, Reached, u32)>,
}

/// What was found out so far.
#[derive(Debug, Default)]
pub(super) struct Store {
    kept: Vec<Arc<Kept>>,
    /// With the launches that each is still to be checked for.
    templates: Vec<(Arc<Template>, u32)>,
    failures: u32,
    vary: Vary,
}

impl Store {
    fn keep(&mut self, k: Arc<Kept>) {
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        self.kept.push(k);
    }
}

impl Analysis {
    /// Templates that have passed their checks.
    #[cfg(test)]
    fn templates_in_use(&self) -> usize {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.templates.iter().filter(|t| t.1 == 0).count()
    }

    /// The result for a launch, from what is kept if possible.
    pub(super) fn result(&self, launch: &LaunchArgs<'_>) -> Arc<Kept> {
        let wanted = shape(launch);
        let lock = || self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |k: &&Arc<Kept>| k.shape == wanted && k.words.iter().all(|(o, v)| word32(launch.params, *o) == *v);
        let template = {
            let store = lock();
            if let Some(k) = store.kept.iter().find(fits) {
                return k.clone();
            }
            store.templates.iter().find(|t| t.0.fits(launch)).cloned()
        };
        let Some((template, checks)) = template else {
            let fresh = Arc::new(self.fresh(launch));
            self.learn(launch, &fresh);
            lock().keep(fresh.clone());
            return fresh;
        };
        let (reached, used) = template.reached(self, launch);
        let words = used.iter().map(|o| (o, word32(launch.params, o))).collect();
        let quick = Arc::new(Kept { shape: wanted, words, result: self.put_together(reached.into_iter()) });
        if checks > 0 {
            let fresh = Arc::new(self.fresh(launch));
            let mut store = lock();
            let same = fresh.result == quick.result;
            if same {
                store.templates.iter_mut().filter(|t| Arc::ptr_eq(&t.0, &template)).for_each(|t| t.1 = checks - 1);
            } else {
                store.templates.retain(|t| !Arc::ptr_eq(&t.0, &template));
                store.failures += 1;
            }
            store.keep(fresh.clone());
            return fresh;
        }
        lock().keep(quick.clone());
        quick
    }

    /// Makes a template when a launch differs from one before in sizes.
    fn learn(&self, launch: &LaunchArgs<'_>, fresh: &Kept) {
        let vary = {
            let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            if store.failures >= MAX_FAILURES {
                return;
            }
            let s = fresh.shape;
            let like = |k: &&Arc<Kept>| (k.shape.1, k.shape.2, k.shape.3, k.shape.4) == (s.1, s.2, s.3, s.4);
            let Some(before) = store.kept.iter().rev().find(like).cloned() else { return };
            let mut vary = store.vary.clone();
            for (o, v) in &before.words {
                if word32(launch.params, *o) != *v && !vary.words.contains(o) {
                    vary.words.push(*o);
                }
            }
            for d in 0..3 {
                vary.grid[d] |= before.shape.0[d] != s.0[d];
            }
            if vary.words.len() > MAX_WORDS {
                store.failures += 1;
                return;
            }
            store.vary = vary.clone();
            vary
        };
        let template = Template::new(self, launch, &vary);
        let template = template.filter(|t| self.put_together(t.reached(self, launch).0.into_iter()) == fresh.result);
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        match template {
            Some(t) => {
                if store.templates.len() >= KEPT {
                    store.templates.remove(0);
                }
                store.templates.push((Arc::new(t), PROBATION));
            }
            None => store.failures += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::image::CodeRef;
    use crate::{CodeImage, Extent, KernelAccess};

    /// A copy with a guard and an offset; with a loop over the grid; one with rows of a pitch; all elements but the last; a branch on the
    /// size.
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

    /// Every launch of one summary, which makes templates, gets what a new summary says; returns the templates in use at the end.
    fn same_as_fresh(name: &str, launch: impl Fn(u32) -> (u32, Vec<u8>)) -> usize {
        let image = image();
        let kept = image.summary(name).expect("summary");
        for n in sizes() {
            let (grid, params) = launch(n);
            let fresh = image_of(name);
            assert_eq!(evaluate(&kept, grid, &params), evaluate(&fresh, grid, &params), "{name}, n {n}, grid {grid}");
        }
        kept.analysis().templates_in_use()
    }

    fn image_of(name: &str) -> Arc<crate::Summary> {
        image().summary(name).expect("summary")
    }

    #[test]
    fn launches_that_differ_in_sizes_need_no_evaluation() {
        let grid = |n: u32| n.div_ceil(128).max(1);
        assert!(same_as_fresh("guarded", |n| (grid(n), params(2, &[n, 3]))) > 0);
        assert!(same_as_fresh("guarded", |n| (20, params(2, &[n, 3]))) > 0);
        assert!(same_as_fresh("guarded", |n| (4, params(2, &[500, n]))) > 0);
        assert!(same_as_fresh("guarded", |n| (grid(n), params(2, &[n, n / 2]))) > 0);
        assert!(same_as_fresh("strided", |n| (2, params(2, &[n]))) > 0);
    }

    #[test]
    fn what_sizes_decide_is_evaluated() {
        // A stride that varies, a step of a loop that varies, a branch on the size itself.
        assert_eq!(same_as_fresh("pitched", |n| (4, params(1, &[n]))), 0);
        same_as_fresh("strided", |n| (n % 5 + 1, params(2, &[n])));
        same_as_fresh("last", |n| (n.div_ceil(128).max(1), params(1, &[n])));
        same_as_fresh("large", |n| (1, params(1, &[n])));
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
