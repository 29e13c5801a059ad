//! Threads that have a number in common are calculated as one, numbers that only move are not made
//! again, and what is made alike is one value. Launches that this makes affordable must be told to
//! the byte; where the threads of a class differ after all, each has its own bytes.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};
use std::collections::BTreeSet;

/// Stores: to rows that a loop's counter tells, the same for all threads or (`apart` is one)
/// another one for each second thread; at the square of the cluster's number; at the distance of
/// two words that are loaded one after the other from one place, and of one word from itself.
const PTX: &str = r#"
.version 8.8
.target sm_90
.address_size 64
.visible .entry rows(.param .u64 o, .param .u32 n, .param .u32 apart) {
  .reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [apart];
  mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x;
  mad.lo.u32 %r4, %r4, %r5, %r3; mul.lo.u32 %r5, %r5, %r6;
  and.b32 %r3, %r3, %r2; add.u32 %r3, %r3, 1; mov.u32 %r7, 0;
NEXT: mul.lo.u32 %r8, %r7, %r7; mul.lo.u32 %r8, %r8, %r3; and.b32 %r8, %r8, 31;
  mad.lo.u32 %r9, %r8, %r5, %r4; mul.wide.s32 %d3, %r9, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r7;
  add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, %r1; @%p1 bra NEXT;
  ret;
}
.visible .entry clusters(.param .u64 o) {
  .reg .b32 %r<5>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; mov.u32 %r2, %tid.x; mov.u32 %r3, %clusterid.x;
  mul.lo.u32 %r4, %r3, %r3; mad.lo.u32 %r4, %r4, 256, %r2;
  mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r2;
  ret;
}
.visible .entry loads(.param .u64 o, .param .u64 by, .param .u32 again) {
  .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [o]; ld.param.u64 %d2, [by]; ld.param.u32 %r1, [again];
  ld.global.u64 %d3, [%d2]; mov.b64 %d4, %d3;
  setp.ne.u32 %p1, %r1, 0; @%p1 ld.global.u64 %d4, [%d2];
  sub.s64 %d5, %d3, %d4; add.s64 %d6, %d1, %d5;
  mov.u32 %r2, %tid.x; mul.wide.u32 %d7, %r2, 4; add.s64 %d8, %d6, %d7;
  @%p1 st.global.u32 [%d8], %r2; @!%p1 st.global.u32 [%d8], %r2;
  ret;
}
"#;

const BASE: u64 = 0x7f01_0000_0000;

/// The words written behind the first pointer, and whether all of them surely are.
fn written(name: &str, blocks: u32, threads: u32, pointers: &[u64], numbers: &[u32]) -> (BTreeSet<i64>, bool) {
    let image = CodeImage::from_code(CodeRef::Ptx(PTX.into()), Arch::new(90)).expect("PTX");
    let bytes = pointers.iter().flat_map(|p| p.to_le_bytes());
    let params: Vec<u8> = bytes.chain(numbers.iter().flat_map(|n| n.to_le_bytes())).collect();
    let mut found = Vec::new();
    let summary = image.summary(name).expect("a kernel");
    summary.evaluate(&LaunchArgs::new([blocks, 1, 1], [threads, 1, 1], &params), &mut found);
    let (mut words, mut exact) = (BTreeSet::new(), true);
    for a in found.iter().filter(|a| a.kind == AccessKind::Write) {
        match (&a.base, &a.extent) {
            (Base::Word { offset: 0, .. }, Extent::Bounded { lo, dims, width, exact: all, .. }) => {
                let mut starts = vec![*lo];
                for d in dims {
                    starts = starts.iter().flat_map(|s| (0..d.count).map(|k| *s + (d.stride * k) as i64)).collect();
                }
                exact &= all;
                words.extend(starts.iter().flat_map(|s| (*s..*s + i64::from(*width)).step_by(4)).map(|byte| byte / 4));
            }
            _ => exact = false,
        }
    }
    (words, exact)
}

fn rows(threads: i64, n: i64, apart: i64) -> BTreeSet<i64> {
    let row = |t: i64, i: i64| (i * i * (1 + (t & apart))) & 31;
    (0..threads).flat_map(|t| (0..n).map(move |i| row(t, i) * threads + t)).collect()
}

#[test]
fn what_all_threads_have_alike_costs_little() {
    // More than 10 million numbers if each thread had its own: eight for each iteration.
    assert!(written("rows", 256, 64, &[BASE], &[100, 0]) == (rows(16384, 100, 0), true));
    // Blocks that are no power of two, and a last group of threads that is cut off.
    assert!(written("rows", 7, 96, &[BASE], &[40, 0]) == (rows(672, 40, 0), true));
}

#[test]
fn threads_that_differ_have_their_own_bytes() {
    for (blocks, threads) in [(1, 64), (3, 96), (5, 128)] {
        let expected = rows(i64::from(blocks * threads), 40, 1);
        assert!(written("rows", blocks, threads, &[BASE], &[40, 1]) == (expected, true), "{blocks} of {threads}");
    }
}

/// The number of a cluster changes with the blocks, as that of a block does.
#[test]
fn each_block_has_its_cluster() {
    let expected: BTreeSet<i64> = (0..6).flat_map(|b| (0..256).map(move |t| b * b * 256 + t)).collect();
    assert!(written("clusters", 6, 256, &[BASE], &[]) == (expected, true));
}

/// The second load may find another word: nothing is known then of the distance of both.
#[test]
fn two_loads_from_one_place_are_two_values() {
    assert_eq!(written("loads", 1, 20, &[BASE, 2 * BASE], &[0]), ((0..20).collect(), true));
    let (_, exact) = written("loads", 1, 20, &[BASE, 2 * BASE], &[1]);
    assert!(!exact, "claimed what the second load decides");
}
