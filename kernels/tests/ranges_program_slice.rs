//! Threads that are followed pass by what does not decide about the accesses that are wanted: a
//! launch with a long loop in front of them is affordable then. What does decide must be followed,
//! or leave a bound.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, CodeImage, Extent, KernelAccess, LaunchArgs, Summary};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Each kernel has a loop of `turns`, and a store at the square of the thread's index: behind the
/// loop; as far behind as the loop has counted; if the loop was not left for good, by its count or
/// by data; in the loop; in an inner one; behind a join of both ways around a loop; on the way
/// around it only.
const PTX: &str = r#"
.version 8.0
.target sm_80
.address_size 64
.visible .entry behind(.param .u64 o, .param .u32 turns) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [turns]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r4, %r2;
NEXT: mad.lo.u32 %r4, %r4, %r4, %r3; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra NEXT;
  mul.lo.u32 %r5, %r2, %r2; mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r4;
  ret;
}
.visible .entry counted(.param .u64 o, .param .u32 turns) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [turns]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r4, 0;
NEXT: xor.b32 %r4, %r4, 4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra NEXT;
  mul.lo.u32 %r5, %r2, %r2; add.u32 %r5, %r5, %r4; mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3;
  st.global.u32 [%d4], %r4;
  ret;
}
.visible .entry left(.param .u64 o, .param .u32 turns, .param .u32 last) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [turns]; ld.param.u32 %r6, [last];
  mov.u32 %r2, %tid.x; mov.u32 %r3, 0;
NEXT: add.u32 %r7, %r3, %r2; setp.eq.u32 %p2, %r7, %r6; @%p2 bra DONE;
  add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra NEXT;
  mul.lo.u32 %r5, %r2, %r2; mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r3;
DONE: ret;
}
.visible .entry left_by_data(.param .u64 o, .param .u32 turns, .param .u64 by) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<7>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [turns]; ld.param.u64 %d5, [by];
  mov.u32 %r2, %tid.x; mov.u32 %r3, 0;
NEXT: ld.global.u32 %r7, [%d5]; setp.eq.u32 %p2, %r7, %r2; @%p2 bra DONE;
  add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra NEXT;
  mul.lo.u32 %r5, %r2, %r2; mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r3;
DONE: ret;
}
.visible .entry within(.param .u64 o, .param .u32 turns) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [turns]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0;
NEXT: mad.lo.u32 %r5, %r2, %r2, %r3; mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r3;
  add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra NEXT;
  ret;
}
.visible .entry beside_inner(.param .u64 o, .param .u32 turns, .param .u32 inner) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [turns]; ld.param.u32 %r6, [inner];
  mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r8, 0;
NEXT: mov.u32 %r7, 0;
INNER: mad.lo.u32 %r8, %r8, %r8, %r7; add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, %r6; @%p2 bra INNER;
  mad.lo.u32 %r5, %r2, %r2, %r3; mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r8;
  add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra NEXT;
  ret;
}
.visible .entry joined(.param .u64 o, .param .u32 turns) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [turns]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r4, 8;
  setp.gt.u32 %p2, %r2, 3; @%p2 bra OUT;
NEXT: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra NEXT;
  mov.u32 %r4, 16;
OUT: mad.lo.u32 %r5, %r2, %r2, %r4; mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r3;
  ret;
}
.visible .entry around(.param .u64 o, .param .u32 turns) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [turns]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0;
  setp.gt.u32 %p2, %r2, 3; @%p2 bra OUT;
NEXT: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra NEXT;
  bra DONE;
OUT: mul.lo.u32 %r5, %r2, %r2; mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r3;
DONE: ret;
}
"#;

/// So many that following them costs more than a launch may.
const LONG: u32 = 2_000_000;
const THREADS: i64 = 64;

fn summary(name: &str) -> Arc<Summary> {
    let image = CodeImage::from_code(CodeRef::Ptx(PTX.into()), Arch::new(80)).expect("PTX");
    image.summary(name).expect("a kernel")
}

type Evaluate = fn(&Summary, &LaunchArgs<'_>, &mut Vec<KernelAccess>);

/// The places that a launch writes, in words, and whether these are all, and surely written.
fn written(name: &str, numbers: &[u32]) -> (BTreeSet<i64>, bool) {
    let (places, known, surely) = evaluated(name, numbers, Summary::evaluate);
    (places, known && surely)
}

/// The same, with both answers apart.
fn evaluated(name: &str, numbers: &[u32], evaluate: Evaluate) -> (BTreeSet<i64>, bool, bool) {
    let mut params = 0x7f00_0000_0000_u64.to_le_bytes().to_vec();
    numbers.iter().for_each(|n| params.extend(n.to_le_bytes()));
    if name == "left_by_data" {
        params.resize(16, 0);
        params.extend(0x7f00_4000_0000_u64.to_le_bytes());
    }
    let launch = LaunchArgs::new([1, 1, 1], [THREADS as u32, 1, 1], &params);
    let (mut found, mut places, mut known, mut surely) = (Vec::new(), BTreeSet::new(), true, true);
    evaluate(&summary(name), &launch, &mut found);
    for access in found.iter().filter(|a| a.kind == AccessKind::Write) {
        let Extent::Bounded { lo, hi, dims, width, exact, .. } = &access.extent else {
            known = false;
            continue;
        };
        surely &= *exact;
        let all = dims.iter().fold(vec![*lo], |all: Vec<i64>, d| {
            all.iter().flat_map(|at| (0..d.count as i64).map(move |k| at + k * d.stride as i64)).collect()
        });
        assert!(all.iter().all(|at| at + i64::from(*width) <= *hi), "{name}: {access:?}");
        places.extend(all.iter().flat_map(|at| (*at..at + i64::from(*width)).map(|at| at / 4)));
    }
    (places, known, surely)
}

fn squares(of: impl IntoIterator<Item = i64>, behind: i64) -> BTreeSet<i64> {
    of.into_iter().map(|n| n * n + behind).collect()
}

#[test]
fn a_long_loop_that_decides_nothing_is_passed_by() {
    assert_eq!(written("behind", &[LONG]), (squares(0..THREADS, 0), true));
    let both: BTreeSet<i64> = (0..3).flat_map(|turn| squares(0..THREADS, turn)).collect();
    assert_eq!(written("beside_inner", &[3, LONG]), (both, true));
    assert_eq!(written("around", &[LONG]), (squares(4..THREADS, 0), true));
    // Both ways meet behind the loop and bring different values: the branch is asked, the loop not.
    let joined = squares(0..4, 16).union(&squares(4..THREADS, 8)).copied().collect();
    assert_eq!(written("joined", &[LONG]), (joined, true));
}

#[test]
fn a_short_loop_that_decides_is_followed() {
    assert_eq!(written("counted", &[4]), (squares(0..THREADS, 0), true));
    assert_eq!(written("counted", &[5]), (squares(0..THREADS, 4), true));
    // Thread n leaves for good in turn 40 - n, if there is such a turn.
    assert_eq!(written("left", &[10, 40]), (squares((0..31).chain(41..THREADS), 0), true));
    let all: BTreeSet<i64> = (0..3).flat_map(|turn| squares(0..THREADS, turn)).collect();
    assert_eq!(written("within", &[3]), (all, true));
}

#[test]
fn what_a_long_loop_decides_is_never_claimed() {
    for (name, numbers) in [("counted", &[LONG][..]), ("left", &[LONG, 40]), ("left_by_data", &[LONG])] {
        let (places, exact) = written(name, numbers);
        assert!(!exact, "{name}: {places:?}");
    }
    assert!(!written("left_by_data", &[3]).1, "data decide");
}

/// A loop that ends where two numbers are equal, or after so many turns: numbers that go away from
/// each other say nothing of its turns.
#[test]
fn a_loop_with_two_ends_may_end_at_either() {
    for turns in [1, 10, 30, 45, 1000, LONG] {
        let stays = |n: &i64| !(0..i64::from(turns)).contains(&(40 - n));
        let truth = squares((0..THREADS).filter(stays), 0);
        let (places, known, _) = evaluated("left", &[turns, 40], Summary::evaluate_by_forms);
        assert!(!known || places.is_superset(&truth), "{turns}: {places:?}");
        if turns <= 1000 {
            assert_eq!(written("left", &[turns, 40]), (truth, true), "{turns}");
        }
    }
}
