//! Values that are carried round a cycle with two ways in, as hand-scheduled matrix products carry
//! the number of their tile: from one copy of the loop over tiles into the other. The value is one
//! of those that are made; where one of these is data, the reason is data. A counter has no bound
//! there, and what a choice made earlier is not what it makes now. Launches of few threads are
//! followed on such cycles as elsewhere.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, CodeImage, Extent, KernelAccess, LaunchArgs, Reason};
use std::collections::BTreeSet;

/// Stores to a tile before it is made again (`MADE`), and behind that, where the second way in
/// leads.
const PTX: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry tiles(.param .u64 o, .param .u32 n) {
  .reg .b32 %r<16>; .reg .b64 %d<4>; .reg .pred %p<4>;
  .shared .align 4 .b32 word;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;
  setp.lt.u32 %p1, %r2, %r1;
  FIRST
  setp.ge.u32 %p2, %r1, 5;
  @%p2 bra second;
first:
  mul.wide.u32 %d2, %r4, 4; add.s64 %d2, %d1, %d2;
  st.global.u32 [%d2], %r2;
  MADE
  add.u32 %r1, %r1, 3;
  setp.gt.u32 %p3, %r1, 100;
  @%p3 bra done;
second:
  mul.wide.u32 %d3, %r4, 4; add.s64 %d3, %d1, %d3;
  st.global.u32 [%d3+4096], %r2;
  add.u32 %r1, %r1, 5;
  setp.lt.u32 %p3, %r1, 90;
  @%p3 bra first;
done:
  ret;
}
";

/// Blocks of 32 threads that are too many to be followed.
const MANY: u32 = 8193;

/// What the stores of the kernel reach, from many blocks: the ends of all, or the reason why they
/// have none.
fn reached(first: &str, made: &str) -> Result<(i64, i64), Reason> {
    stores(first, made, MANY).iter().try_fold((i64::MAX, i64::MIN), |all, a| match &a.extent {
        Extent::Bounded { lo, hi, .. } => Ok((all.0.min(*lo), all.1.max(*hi))),
        Extent::Unknown { reason } => Err(*reason),
    })
}

/// The stores of the kernel in so many blocks of 32 threads.
fn stores(first: &str, made: &str, blocks: u32) -> Vec<KernelAccess> {
    let ptx = PTX.replace("FIRST", first).replace("MADE", made);
    let image = CodeImage::from_code(CodeRef::Ptx(ptx.into()), Arch::new(80)).expect("PTX");
    let s = image.summary("tiles").expect("a kernel");
    let params = [&0x7f01_0000_0000_u64.to_le_bytes()[..], &7u32.to_le_bytes(), &[0; 4]].concat();
    let mut found = Vec::new();
    s.evaluate(&LaunchArgs::new([blocks, 1, 1], [32, 1, 1], &params), &mut found);
    found.retain(|a| a.kind == AccessKind::Write);
    assert!(!found.is_empty(), "no store");
    found
}

/// The first bytes of the words that the kernel stores to, as its instructions say, from what the
/// number of the tile is at first and when it is made again.
fn stored(blocks: u32, first: fn(u32, u32) -> u32, made: fn(u32, u32, u32) -> u32) -> BTreeSet<i64> {
    let mut places = BTreeSet::new();
    for (block, thread) in (0..blocks).flat_map(|block| (0..32).map(move |thread| (block, thread))) {
        let (mut left, mut tile) = (7, first(thread, block));
        let mut enters_second = left >= 5;
        loop {
            if !std::mem::take(&mut enters_second) {
                places.insert(i64::from(tile) * 4);
                tile = made(tile, thread, block);
                left += 3;
                if left > 100 {
                    break;
                }
            }
            places.insert(4096 + i64::from(tile) * 4);
            left += 5;
            if left >= 90 {
                break;
            }
        }
    }
    places
}

/// The same as the analysis tells it, where it claims to know it exactly.
fn told(first: &str, made: &str, blocks: u32) -> Option<BTreeSet<i64>> {
    let mut places = BTreeSet::new();
    for a in stores(first, made, blocks) {
        let Extent::Bounded { lo, dims, width, exact: true, .. } = &a.extent else { return None };
        let mut all: Vec<i64> = (*lo..*lo + i64::from(*width)).step_by(4).collect();
        for d in dims {
            let steps = (0..d.count as i64).map(|k| k * d.stride as i64);
            all = steps.flat_map(|step| all.iter().map(move |at| at + step)).collect();
        }
        places.extend(all);
    }
    Some(places)
}

#[test]
fn few_threads_are_followed_on_a_cycle_with_two_ways_in() {
    type Case = (&'static str, &'static str, fn(u32, u32) -> u32, fn(u32, u32, u32) -> u32);
    let cases: [Case; 4] = [
        ("mov.u32 %r4, %r3;", "add.u32 %r4, %r4, 1;", |_, block| block, |tile, _, _| tile + 1),
        ("mov.u32 %r4, 1;", "xor.b32 %r4, %r4, 6;", |_, _| 1, |tile, _, _| tile ^ 6),
        ("mov.u32 %r4, %r2;", "mov.u32 %r4, %r3;", |thread, _| thread, |_, _, block| block),
        (
            "mul.lo.u32 %r4, %r3, %r3;",
            "add.u32 %r4, %r4, %r2;",
            |_, block| block * block,
            |tile, thread, _| tile + thread,
        ),
    ];
    for (first, made, at_first, again) in cases {
        assert_eq!(told(first, made, 4), Some(stored(4, at_first, again)), "{first} {made}");
        assert_eq!(told(first, made, MANY), None, "{first} {made}");
    }
    // Not where the way, or the number, is data.
    assert_eq!(told("mov.u32 %r4, 1;", "ld.global.u32 %r4, [%d1];", 4), None);
    assert_eq!(told("mov.u32 %r4, 1;", "ld.global.u32 %r1, [%d1]; add.u32 %r4, %r4, 1;", 4), None);
    // Here the way is data, and all ways lead to the same words.
    assert_eq!(told("mov.u32 %r4, 1;", "ld.global.u32 %r1, [%d1];", 4), Some(BTreeSet::from([4, 4100])));
}

#[test]
fn a_value_that_is_passed_on_is_one_of_those_that_are_made() {
    assert_eq!(reached("mov.u32 %r4, 3;", "mov.u32 %r4, 7;"), Ok((12, 4096 + 7 * 4 + 4)));
    // Made again, and still the block's own.
    let own = "shl.b32 %r4, %r3, 3;";
    let end = 4096 + 8 * i64::from(MANY - 1) * 4 + 4;
    assert_eq!(reached(own, "shl.b32 %r4, %r3, 3;"), Ok((0, end)));
    assert_eq!(reached(own, "shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r4;"), Ok((0, end)));
}

#[test]
fn where_one_of_them_is_data_the_reason_is_data() {
    assert_eq!(reached("mov.u32 %r4, %r3;", "ld.shared.u32 %r4, [word];"), Err(Reason::Shared));
    assert_eq!(reached("mov.u32 %r4, %r3;", "ld.global.u32 %r4, [%d1];"), Err(Reason::Loaded));
}

#[test]
fn what_is_made_of_itself_has_no_bound() {
    assert_eq!(reached("mov.u32 %r4, %r3;", "add.u32 %r4, %r4, 1;"), Err(Reason::Irreducible));
    assert_eq!(reached("mov.u32 %r4, 1;", "xor.b32 %r4, %r4, 6;"), Err(Reason::Irreducible));
    assert_eq!(reached("mov.u32 %r4, 1;", "add.u32 %r5, %r4, %r1; and.b32 %r4, %r5, 7;"), Err(Reason::Irreducible));
}

#[test]
fn what_was_chosen_earlier_is_not_what_is_chosen_now() {
    // Both are known, and differ in time.
    assert_eq!(reached("mov.u32 %r4, 1;", "selp.b32 %r4, %r2, %r3, %p1;"), Err(Reason::Irreducible));
    assert_eq!(reached("mov.u32 %r4, %r2;", "mov.u32 %r4, %r3;"), Err(Reason::Irreducible));
}
