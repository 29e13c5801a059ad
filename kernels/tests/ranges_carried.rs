//! Values that a loop carries round without a progression: they stay within a range when every turn
//! leaves them there, and only then.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs, Reason};

/// Parameters: two pointers and two numbers. `%r1` is the thread's number in the grid, `%r6` its
/// block's, `%r4` the first word behind `q`, `%r2` the number that is carried round.
const HEAD: &str = ".version 8.8\n.target sm_80\n.address_size 64\n\
    .visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .u32 m)\n{\n\
    .reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n\
    ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nld.param.u32 %r8, [n];\nld.param.u32 %r9, [m];\n\
    mov.u32 %r5, %tid.x;\nmov.u32 %r6, %ctaid.x;\nmov.u32 %r7, %ntid.x;\nmad.lo.u32 %r1, %r6, %r7, %r5;\n\
    ld.global.u32 %r4, [%rd2];\nmov.u32 %r2, %r9;\n";
/// Stores to word `%r2` behind `p`.
const STORE: &str = "mul.wide.u32 %rd3, %r2, 4;\nadd.s64 %rd4, %rd1, %rd3;\nst.global.u32 [%rd4], %r1;\n";
/// Blocks of the launches, of 128 threads: too many to be followed one by one.
const BLOCKS: u32 = 4096;

/// The extents of the stores through `p` of a loop that data end, which begins with the number `m`
/// and does this in each turn.
fn turns(turn: &str, n: u32, m: u32) -> Vec<Extent> {
    let text = format!(
        "{HEAD}LOOP:\n{}\nld.volatile.global.u32 %r10, [%rd2];\nsetp.ne.u32 %p7, %r10, 0;\n@%p7 bra LOOP;\nret;\n}}\n",
        turn.replace("STORE", STORE)
    );
    let image =
        CodeImage::from_code(CodeRef::Ptx(text.into()), Arch::new(80)).unwrap_or_else(|e| panic!("{e}\n{turn}"));
    let pointers = [0x7f00_0000_0000_u64, 0x7f80_0000_0000].map(u64::to_le_bytes).concat();
    let params = [pointers, [n, m].map(u32::to_le_bytes).concat()].concat();
    let mut found = Vec::new();
    let summary = image.summary("k").expect("summarised");
    summary.evaluate(&LaunchArgs::new([BLOCKS, 1, 1], [128, 1, 1], &params), &mut found);
    let writes = found.into_iter().filter(|a| a.kind == AccessKind::Write);
    writes.filter(|a| matches!(a.base, Base::Word { offset: 0, .. })).map(|a| a.extent).collect()
}

/// First and last (exclusive) byte of the only extent.
fn bounds(extents: &[Extent]) -> Option<(i64, i64)> {
    let [Extent::Bounded { lo, hi, exact: false, .. }] = extents else { return None };
    Some((*lo, *hi))
}

#[test]
fn a_walk_that_wraps_around_stays_below_its_end() {
    let walk = "STORE\nadd.u32 %r3, %r2, 64;\nsetp.lt.u32 %p1, %r3, %r8;\nselp.u32 %r2, %r3, 0, %p1;";
    assert_eq!(bounds(&turns(walk, 1000, 128)), Some((0, 4000)));
    // It begins behind the end.
    assert_eq!(bounds(&turns(walk, 1000, 2000)), Some((0, 8004)));
}

#[test]
fn a_test_of_the_number_before_allows_one_more_step() {
    let walk = "STORE\nadd.u32 %r3, %r2, 64;\nsetp.lt.u32 %p1, %r2, %r8;\nselp.u32 %r2, %r3, 0, %p1;";
    // 128 + 13 * 64 = 960 is below 1,000, and 1,024 comes after it.
    let found = turns(walk, 1000, 128);
    assert!(bounds(&found).is_some_and(|(lo, hi)| lo == 0 && (4100..=4256).contains(&hi)), "{found:?}");
}

#[test]
fn a_walk_whose_end_data_decide_is_not_bounded() {
    let walk = "STORE\nadd.u32 %r3, %r2, 64;\nsetp.lt.u32 %p1, %r4, %r8;\nselp.u32 %r2, %r3, 0, %p1;";
    let found = turns(walk, 1000, 128);
    assert!(matches!(found[..], [Extent::Unknown { reason }] if reason.is_data()), "{found:?}");
    // Nor one whose new start is data.
    let walk = "STORE\nadd.u32 %r3, %r2, 64;\nsetp.lt.u32 %p1, %r3, %r8;\nselp.u32 %r2, %r3, %r4, %p1;";
    let found = turns(walk, 1000, 128);
    assert!(matches!(found[..], [Extent::Unknown { reason: Reason::Loaded }]), "{found:?}");
}

#[test]
fn a_number_that_is_masked_in_each_turn_stays_below_the_mask() {
    let masked = "STORE\nmad.lo.u32 %r3, %r2, 5, 1;\nand.b32 %r2, %r3, 63;";
    assert_eq!(bounds(&turns(masked, 0, 10)), Some((0, 256)));
    // But not in the first turn.
    assert_eq!(bounds(&turns(masked, 0, 100)), Some((0, 404)));
}

#[test]
fn a_range_that_was_tried_in_vain_leaves_nothing_behind() {
    // The walk has no end. In the first turn only threads below 128 take the branch, so that their
    // product is small; later all do.
    let turn = "mov.u32 %r3, %r2;\nsetp.ge.u32 %p1, %r1, %r2;\nadd.u32 %r2, %r2, 64;\n@%p1 bra NEXT;\n\
        mul.lo.u32 %r11, %r1, %r6;\nmul.wide.u32 %rd3, %r11, 4;\nadd.s64 %rd4, %rd1, %rd3;\n\
        st.global.u32 [%rd4], %r1;\nand.b32 %r2, %r11, 4095;\nsetp.lt.u32 %p2, %r11, %r8;\n\
        selp.u32 %r2, %r3, %r2, %p2;\nadd.u32 %r2, %r2, 64;\nNEXT:";
    let found = turns(turn, 1000, 128);
    let last = i64::from(BLOCKS - 1) * i64::from(BLOCKS * 128 - 1);
    let reaches = |e: &Extent| match e {
        Extent::Unknown { .. } => true,
        Extent::Bounded { hi, .. } => *hi > 4 * last,
    };
    assert!(found.iter().any(reaches), "{found:?}");
}
