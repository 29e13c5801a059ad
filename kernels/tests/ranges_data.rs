//! Loops that end when data say so, values that data choose, and conditions that are put together
//! on two ways: which reason is given, and which bounds hold.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs, Reason};

/// Parameters: two pointers and two numbers. `%r1` is the thread's number in the grid, `%r4` the
/// first word behind `q`.
const HEAD: &str = ".version 8.8\n.target sm_80\n.address_size 64\n\
    .visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .u32 m)\n{\n\
    .reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n\
    ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nld.param.u32 %r8, [n];\nld.param.u32 %r9, [m];\n\
    mov.u32 %r5, %tid.x;\nmov.u32 %r6, %ctaid.x;\nmov.u32 %r7, %ntid.x;\nmad.lo.u32 %r1, %r6, %r7, %r5;\n\
    ld.global.u32 %r4, [%rd2];\nmov.u32 %r2, %r1;\n";
/// Stores to word `%r2` behind `p`.
const STORE: &str = "mul.wide.u32 %rd3, %r2, 4;\nadd.s64 %rd4, %rd1, %rd3;\nst.global.u32 [%rd4], %r1;\n";

/// The extent of the stores through `p` of 1,024 blocks of 128 threads, which are too many to be
/// followed one by one.
fn stored(code: &str, n: u32, m: u32) -> Vec<Extent> {
    let text = format!("{HEAD}{}\nret;\n}}\n", code.replace("STORE", STORE));
    let image =
        CodeImage::from_code(CodeRef::Ptx(text.into()), Arch::new(80)).unwrap_or_else(|e| panic!("{e}\n{code}"));
    let pointers = [0x7f00_0000_0000_u64, 0x7f80_0000_0000].map(u64::to_le_bytes).concat();
    let params = [pointers, [n, m].map(u32::to_le_bytes).concat()].concat();
    let mut found = Vec::new();
    let summary = image.summary("k").expect("summarised");
    summary.evaluate(&LaunchArgs::new([1024, 1, 1], [128, 1, 1], &params), &mut found);
    let writes = found.into_iter().filter(|a| a.kind == AccessKind::Write);
    writes.filter(|a| matches!(a.base, Base::Word { offset: 0, .. })).map(|a| a.extent).collect()
}

fn reasons(extents: &[Extent]) -> Vec<Reason> {
    let reason = |extent: &Extent| if let Extent::Unknown { reason } = extent { Some(*reason) } else { None };
    extents.iter().filter_map(reason).collect()
}

/// A loop over words that ends at `%r3`.
fn counted(end: &str) -> String {
    format!("{end}\nLOOP:\nSTORE\nadd.u32 %r2, %r2, 131072;\nsetp.lt.u32 %p1, %r2, %r3;\n@%p1 bra LOOP;")
}

#[test]
fn a_loop_that_ends_at_a_loaded_number_is_data_and_one_that_ends_at_a_parameter_is_bounded() {
    assert_eq!(reasons(&stored(&counted("mov.u32 %r3, %r4;"), 9, 0)), [Reason::Loaded]);
    let ends = stored(&counted("mov.u32 %r3, %r8;"), 500_000, 0);
    assert!(matches!(ends[..], [Extent::Bounded { lo: 0, hi: 2_000_000, .. }]), "{ends:?}");
}

#[test]
fn a_loop_that_the_analysis_fails_at_is_not_called_data() {
    // It ends at a parameter, by steps that are no progression.
    let code = "LOOP:\nSTORE\nmul.lo.u32 %r2, %r2, %r2;\nsetp.lt.u32 %p1, %r2, %r8;\n@%p1 bra LOOP;";
    let found = stored(code, 9, 0);
    assert!(!reasons(&found).iter().any(|reason| reason.is_data()), "{found:?}");
    assert!(!reasons(&found).is_empty(), "{found:?}");
    // One of its two ends is data, the other one is not.
    let code = "LOOP:\nSTORE\nsetp.eq.u32 %p2, %r2, %r4;\n@%p2 bra END;\nmul.lo.u32 %r2, %r2, %r2;\n\
        setp.lt.u32 %p1, %r2, %r8;\n@%p1 bra LOOP;\nEND:";
    let found = stored(code, 9, 0);
    assert!(!reasons(&found).iter().any(|reason| reason.is_data()), "{found:?}");
}

#[test]
fn a_search_goes_where_data_send_it() {
    // Halves an interval by what is loaded from its middle.
    let search = |choice: &str| {
        format!(
            "mov.u32 %r10, 0;\nmov.u32 %r11, %r8;\nLOOP:\nadd.u32 %r12, %r10, %r11;\nshr.u32 %r2, %r12, 1;\nSTORE\n\
            mul.wide.u32 %rd5, %r2, 4;\nadd.s64 %rd6, %rd2, %rd5;\nld.global.u32 %r13, [%rd6];\n\
            setp.lt.u32 %p2, {choice}, %r9;\nadd.u32 %r14, %r2, 1;\nselp.u32 %r10, %r14, %r10, %p2;\n\
            selp.u32 %r11, %r11, %r2, %p2;\nsetp.lt.u32 %p1, %r10, %r11;\n@%p1 bra LOOP;"
        )
    };
    let found = stored(&search("%r13"), 1000, 5);
    assert_eq!(reasons(&found), [Reason::Loaded], "{found:?}");
    let found = stored(&search("%r2"), 1000, 5);
    assert!(!reasons(&found).iter().any(|reason| reason.is_data()), "{found:?}");
}

/// A loop that goes on by a condition of either way, one of which data choose.
fn joined(other: &str) -> String {
    format!(
        "LOOP:\nSTORE\nadd.u32 %r2, %r2, 131072;\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra OTHER;\n\
        setp.lt.u32 %p1, %r2, %r8;\nbra.uni JOIN;\nOTHER:\n{other}\nJOIN:\n@%p1 bra LOOP;"
    )
}

#[test]
fn a_condition_that_is_the_same_on_both_ways_bounds_a_loop() {
    let same = stored(&joined("setp.lt.u32 %p1, %r2, %r8;"), 500_000, 700_000);
    assert!(matches!(same[..], [Extent::Bounded { lo: 0, hi: 2_000_000, .. }]), "{same:?}");
    // Another number on one of the ways: nothing below that may be concluded.
    let other = stored(&joined("setp.lt.u32 %p1, %r2, %r9;"), 500_000, 700_000);
    let reaches =
        |e: &Extent| matches!(e, Extent::Unknown { .. }) || matches!(e, Extent::Bounded { hi, .. } if *hi >= 2_800_000);
    assert!(other.iter().any(reaches), "{other:?}");
}
