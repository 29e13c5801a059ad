//! Small launches are followed thread by thread. What depends on parameters and indices alone must
//! be exact then, whatever its pattern; what depends on data must stay a bound; what holds for one
//! pointer must not be kept for another.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs, Summary};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Stores: below the diagonal; of windows that are cut off at both ends; where a loaded word is not
/// zero; as often as a loaded word says, to one place and to as many; through one of two pointers;
/// through those of a table, by an index and by data; behind a sum of two words; at an address that
/// is put together of changed halves.
const PTX: &str = r#"
.version 8.0
.target sm_80
.address_size 64
.visible .entry triangle(.param .u64 o, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;
  setp.gt.u32 %p1, %r2, %r3; @%p1 bra DONE;
  mad.lo.s32 %r5, %r3, %r1, %r2;
  mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r5;
DONE: ret;
}
.visible .entry windows(.param .u64 o, .param .u32 n, .param .u32 step, .param .u32 wide) {
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [step]; ld.param.u32 %r3, [wide];
  mov.u32 %r4, %tid.x; mul.lo.s32 %r5, %r4, %r2; sub.s32 %r5, %r5, 3;
  add.s32 %r6, %r5, %r3; min.s32 %r6, %r6, %r1; max.s32 %r7, %r5, 0;
  setp.ge.s32 %p1, %r7, %r6; @%p1 bra DONE;
NEXT: mul.lo.s32 %r8, %r7, %r7; mul.wide.s32 %d3, %r8, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r8;
  add.s32 %r7, %r7, 1; setp.lt.s32 %p2, %r7, %r6; @%p2 bra NEXT;
DONE: ret;
}
.visible .entry chosen(.param .u64 o, .param .u64 by) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<7>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [by];
  mov.u32 %r2, %tid.x; mul.wide.u32 %d3, %r2, 4; add.s64 %d5, %d2, %d3; ld.global.u32 %r3, [%d5];
  setp.eq.u32 %p1, %r3, 0; @%p1 bra DONE;
  mul.lo.u32 %r4, %r2, %r2; mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r2;
DONE: ret;
}
.visible .entry repeated(.param .u64 o, .param .u64 by) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<7>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [by];
  mov.u32 %r2, %tid.x; mul.wide.u32 %d3, %r2, 4; add.s64 %d5, %d2, %d3; ld.global.u32 %r3, [%d5];
  mul.lo.u32 %r4, %r2, %r2; mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3;
NEXT: st.global.u32 [%d4], %r2;
  sub.u32 %r3, %r3, 1; setp.gt.s32 %p1, %r3, 0; @%p1 bra NEXT;
  ret;
}
.visible .entry growing(.param .u64 o, .param .u64 by) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<7>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [by];
  mov.u32 %r2, %tid.x; mul.wide.u32 %d3, %r2, 4; add.s64 %d5, %d2, %d3; ld.global.u32 %r3, [%d5];
  mul.lo.u32 %r4, %r2, %r2; mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3;
NEXT: st.global.u32 [%d4], %r2; add.s64 %d4, %d4, 4;
  sub.u32 %r3, %r3, 1; setp.gt.s32 %p1, %r3, 0; @%p1 bra NEXT;
  ret;
}
.visible .entry either(.param .u64 o, .param .u64 other) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<7>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [other];
  setp.ne.u64 %p1, %d2, 0; selp.b64 %d3, %d2, %d1, %p1;
  mov.u32 %r2, %tid.x; mul.lo.u32 %r4, %r2, %r2; mul.wide.u32 %d4, %r4, 4; add.s64 %d5, %d3, %d4;
  st.global.u32 [%d5], %r2;
  ret;
}
.visible .entry tables(.param .align 8 .b8 t[32]) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<9>;
  mov.u64 %d1, t; mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 3; mul.wide.u32 %d2, %r3, 8; add.s64 %d3, %d1, %d2;
  ld.param.u64 %d4, [%d3];
  mul.lo.u32 %r4, %r2, %r2; mul.wide.u32 %d5, %r4, 4; add.s64 %d6, %d4, %d5; st.global.u32 [%d6], %r2;
  ld.param.u64 %d7, [t+8]; st.global.u32 [%d7], %r2;
  ret;
}
.visible .entry tables_by_data(.param .align 8 .b8 t[32], .param .u64 by) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<9>;
  ld.param.u64 %d8, [by]; ld.global.u32 %r3, [%d8];
  mov.u64 %d1, t; mov.u32 %r2, %tid.x; and.b32 %r3, %r3, 3; mul.wide.u32 %d2, %r3, 8; add.s64 %d3, %d1, %d2;
  ld.param.u64 %d4, [%d3];
  mul.lo.u32 %r4, %r2, %r2; mul.wide.u32 %d5, %r4, 4; add.s64 %d6, %d4, %d5; st.global.u32 [%d6], %r2;
  ld.param.u64 %d7, [t+8]; add.s64 %d6, %d7, %d5; st.global.u32 [%d6], %r2;
  ret;
}
.visible .entry further(.param .u64 o, .param .u64 at) {
  .reg .b32 %r<8>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [at]; mov.u32 %r2, %tid.x;
  mul.lo.u32 %r4, %r2, %r2; mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d2; add.s64 %d5, %d4, %d3;
  st.global.u32 [%d5], %r2;
  ret;
}
.visible .entry apart(.param .u64 o, .param .u32 n) {
  .reg .b32 %r<9>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.b64 {%r3, %r4}, %d1;
  mul.lo.u32 %r5, %r2, %r2; shl.b32 %r5, %r5, 2; xor.b32 %r6, %r3, %r5; xor.b32 %r7, %r4, %r1;
  mov.b64 %d2, {%r6, %r7}; st.global.u32 [%d2], %r2;
  ret;
}
"#;

const BASE: u64 = 0x7f01_0000_0000;

fn summary(name: &str) -> Arc<Summary> {
    let image = CodeImage::from_code(CodeRef::Ptx(PTX.into()), Arch::new(80)).expect("PTX");
    image.summary(name).expect("a kernel")
}

fn params(pointers: &[u64], numbers: &[u32]) -> Vec<u8> {
    let bytes = pointers.iter().flat_map(|p| p.to_le_bytes());
    bytes.chain(numbers.iter().flat_map(|n| n.to_le_bytes())).collect()
}

/// The words that are written behind a pointer, whether all of them surely are, and whether that is
/// all that is written.
fn written(s: &Summary, blocks: u32, threads: u32, params: &[u8], word: u16) -> (BTreeSet<i64>, bool, bool) {
    let launch = LaunchArgs::new([blocks, 1, 1], [threads, 1, 1], params);
    let mut found = Vec::new();
    s.evaluate(&launch, &mut found);
    let mut afresh = Vec::new();
    s.evaluate_uncached(&launch, &mut afresh);
    assert_eq!(found, afresh, "what is kept is what an evaluation says");
    let (mut words, mut exact, mut known) = (BTreeSet::new(), true, true);
    for a in found.iter().filter(|a| a.kind == AccessKind::Write) {
        match (&a.base, &a.extent) {
            (Base::Word { offset, .. }, Extent::Bounded { lo, dims, width, exact: all, .. }) if *offset == word => {
                let mut starts = vec![*lo];
                for d in dims {
                    let steps = |s: &i64| (0..d.count).map(|k| *s + (d.stride * k) as i64).collect::<Vec<_>>();
                    starts = starts.iter().flat_map(steps).collect();
                }
                exact &= all;
                words.extend(starts.iter().flat_map(|s| (*s..*s + i64::from(*width)).filter(|at| at % 4 == 0)));
            }
            _ => known = false,
        }
    }
    (words, exact, known)
}

fn words(of: impl IntoIterator<Item = i64>) -> BTreeSet<i64> {
    of.into_iter().map(|w| 4 * w).collect()
}

fn squares(n: i64) -> BTreeSet<i64> {
    words((0..n).map(|k| k * k))
}

#[test]
fn what_indices_decide_is_exact_whatever_its_pattern() {
    for n in [1u32, 7, 32, 40] {
        let s = summary("triangle");
        let expected = words((0..i64::from(n)).flat_map(|y| (0..=y).map(move |x| y * i64::from(n) + x)));
        assert_eq!(written(&s, n, n, &params(&[BASE], &[n]), 0), (expected, true, true), "triangle of {n}");
    }
    for (n, step, wide) in [(20, 2, 5), (9, 1, 3), (3, 5, 9), (30, 4, 2)] {
        let s = summary("windows");
        let window = |k: i64| (k * step - 3).max(0)..(k * step - 3 + wide).min(n);
        let expected = words((0..12).flat_map(window).map(|k| k * k));
        let numbers = [n as u32, step as u32, wide as u32];
        let found = written(&s, 1, 12, &params(&[BASE], &numbers), 0);
        assert_eq!(found, (expected, true, true), "windows {n} {step} {wide}");
    }
}

#[test]
fn what_data_decide_stays_a_bound() {
    let both = params(&[BASE, 2 * BASE], &[]);
    // Each thread may store, at a place that is known: one bound.
    let (found, exact, known) = written(&summary("chosen"), 1, 20, &both, 0);
    assert!(!exact && known && found.is_superset(&squares(20)), "claimed what data decide");
    assert_eq!(written(&summary("chosen"), 1, 2, &both, 0), (squares(2), false, true));
    // Once at least, and always there.
    assert_eq!(written(&summary("repeated"), 1, 20, &both, 0), (squares(20), true, true));
    // How far is not known.
    let (_, exact, known) = written(&summary("growing"), 1, 20, &both, 0);
    assert!(!exact || !known, "claimed what data decide");
}

/// How long a table is, is guessed from what else is read of it: here that is too short.
#[test]
fn pointers_of_a_table_are_not_missed() {
    let pointers = [BASE, 2 * BASE, 3 * BASE, 4 * BASE];
    let s = summary("tables");
    for k in 0..4 {
        let mut expected = words((0..20).filter(|t| t % 4 == k).map(|t| t * t));
        if k == 1 {
            expected.insert(0);
        }
        let (found, exact, _) = written(&s, 1, 20, &params(&pointers, &[]), 8 * k as u16);
        assert_eq!((found, exact), (expected, true), "pointer {k}");
    }
    // Any of them may be the one that data choose.
    let s = summary("tables_by_data");
    let by_data = params(&[BASE, 2 * BASE, 3 * BASE, 4 * BASE, 5 * BASE], &[]);
    for word in [0, 16, 24] {
        let mut found = Vec::new();
        s.evaluate(&LaunchArgs::new([1; 3], [20, 1, 1], &by_data), &mut found);
        let mut writes = found.iter().filter(|a| a.kind == AccessKind::Write);
        let may = writes.any(|a| match (&a.base, &a.extent) {
            (Base::Word { offset, .. }, extent) if *offset == word => {
                !matches!(extent, Extent::Bounded { exact: true, .. })
            }
            (Base::Unknown, _) => true,
            _ => false,
        });
        assert!(may, "pointer at {word} is missed: {found:?}");
    }
}

#[test]
fn a_test_of_a_pointer_is_asked_again() {
    let s = summary("either");
    let first = params(&[BASE, 0], &[]);
    let second = params(&[BASE, 2 * BASE], &[]);
    for _ in 0..3 {
        assert_eq!(written(&s, 1, 20, &first, 0), (squares(20), true, true));
        assert_eq!(written(&s, 1, 20, &second, 8), (squares(20), true, true));
    }
    // Another address that is not null makes no difference.
    assert_eq!(written(&s, 1, 20, &params(&[3 * BASE, 5 * BASE], &[]), 8), (squares(20), true, true));
}

/// Which of two words is the pointer makes no difference to the sum; the other one is an input.
#[test]
fn a_sum_of_two_words_counts_from_the_pointer() {
    let s = summary("further");
    // Iterators of matrix products step back: numbers above every pointer.
    for at in [0u64, 400, 8, 400, -400i64 as u64, -0x3000i64 as u64, 3 << 20] {
        let expected: BTreeSet<i64> = squares(20).into_iter().map(|byte| byte + at as i64).collect();
        assert_eq!(written(&s, 1, 20, &params(&[BASE, at], &[]), 0), (expected.clone(), true, true), "{at}");
        assert_eq!(written(&s, 1, 20, &params(&[at, BASE], &[]), 8), (expected, true, true), "{at}, the other way");
    }
}

/// Where both words may be pointers, the sum is no part of either's allocation, and still known.
#[test]
fn a_sum_of_two_words_that_look_like_pointers_is_an_address_by_itself() {
    let s = summary("further");
    for (o, at) in [(BASE, 2 * BASE), (2 * BASE, BASE), (BASE, 9 << 30), (9 << 20, 7 << 20)] {
        let expected: BTreeSet<u64> = (0..20).map(|t| o + at + 4 * t * t).collect();
        assert_eq!(places_of(&s, &params(&[o, at], &[])), expected, "{o:#x} + {at:#x}");
    }
}

/// The addresses of 20 threads' words, all of which must be exact.
fn places_of(s: &Summary, arguments: &[u8]) -> BTreeSet<u64> {
    let launch = LaunchArgs::new([1; 3], [20, 1, 1], arguments);
    let (mut found, mut afresh) = (Vec::new(), Vec::new());
    s.evaluate(&launch, &mut found);
    s.evaluate_uncached(&launch, &mut afresh);
    assert_eq!(found, afresh);
    let mut places = BTreeSet::new();
    for a in found.iter().filter(|a| a.kind == AccessKind::Write) {
        // Of several words none says where the others are.
        let value = match a.base {
            Base::Absolute { value } => value,
            Base::Word { value, .. } if !a.several => value,
            _ => panic!("{a:?}"),
        };
        let Extent::Bounded { lo, dims, width, exact: true, .. } = &a.extent else { panic!("{a:?}") };
        let mut starts = vec![value.wrapping_add_signed(*lo)];
        for d in dims {
            starts = starts.iter().flat_map(|s| (0..d.count).map(move |k| s + d.stride * k)).collect();
        }
        places.extend(starts.iter().flat_map(|s| (*s..*s + u64::from(*width)).step_by(4)));
    }
    places
}

/// The address holds for the pointer that it was made of, and for no other.
#[test]
fn an_address_of_changed_halves_is_that_of_its_pointer() {
    let s = summary("apart");
    for (pointer, n) in [(BASE, 0u32), (BASE, 1), (BASE + 64, 0), (BASE, 0)] {
        let place = |t: u64| (pointer ^ (4 * t * t)) ^ u64::from(n) << 32;
        let expected: BTreeSet<u64> = (0..20).map(place).collect();
        let places = places_of(&s, &params(&[pointer], &[n]));
        assert_eq!(places, expected, "{pointer:#x} {n}");
    }
}

#[test]
fn large_launches_are_not_followed() {
    let s = summary("triangle");
    let (words, exact, known) = written(&s, 1024, 1024, &params(&[BASE], &[1024]), 0);
    assert!(known && !exact && words.len() >= 1024 * 1025 / 2, "{} words", words.len());
}
