//! Loops that shift a number until nothing is left of it: the counter beside it is bounded, as
//! tightly as the first number tells. A loop that only looks like one is not.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{CodeImage, Extent, LaunchArgs};

/// A kernel that stores at `o + 4 * i`, where `i` counts the turns of a loop about `x`. That begins
/// as the parameter `n`. `%p1` ends the loop.
fn kernel(before: &str, after: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64
.visible .entry k(.param .u64 o, .param .u32 n, .param .u64 by) {{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<7>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n]; ld.param.u64 %d4, [by];
  mov.u32 %r2, 0;
LOOP:
  {before}
  mul.wide.u32 %d2, %r2, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r2;
  add.u32 %r2, %r2, 1;
  {after}
DONE: ret;
}}"
    )
}

/// One past the last byte that the store may touch, by forms alone; `None`: it is not known.
fn end(before: &str, after: &str, n: u32) -> Option<i64> {
    let code = kernel(before, after);
    let image = CodeImage::from_code(CodeRef::Ptx(code.into()), Arch::new(80)).expect("image");
    let params = [&0x7f00_0000_0000_u64.to_le_bytes()[..], &n.to_le_bytes(), &[0; 4], &[0; 8]].concat();
    let mut found = Vec::new();
    let summary = image.summary("k").expect("summary");
    summary.evaluate_by_forms(&LaunchArgs::new([1, 1, 1], [1, 1, 1], &params), &mut found);
    let stores: Vec<_> = found.iter().filter(|a| a.kind == kernels::AccessKind::Write).collect();
    let [store] = stores[..] else { panic!("{found:?}") };
    match store.extent {
        Extent::Bounded { hi, .. } => Some(hi),
        Extent::Unknown { .. } => None,
    }
}

/// How often the loop runs: as C would.
fn turns(n: u32, step: u32, tested_first: bool, least: u32) -> i64 {
    let (mut x, mut turns) = (n, 0);
    loop {
        if tested_first && x < least {
            return turns;
        }
        turns += 1;
        x >>= step;
        if !tested_first && x < least {
            return turns;
        }
    }
}

const FIRST: [u32; 9] = [0, 1, 2, 3, 255, 256, 1000, 0x8000_0000, u32::MAX];

#[test]
fn shifted_numbers_bound_their_loops() {
    for n in FIRST {
        for step in [1, 2, 5] {
            let shift = format!("shr.u32 %r1, %r1, {step};");
            // Tested at the end, in each way that compilers write it.
            for test in ["setp.ne.u32 %p1, %r1, 0;", "setp.gt.u32 %p1, %r1, 0;", "setp.ge.u32 %p1, %r1, 1;"] {
                let bound = end("", &format!("{shift} {test} @%p1 bra LOOP;"), n).expect("a bound");
                let exact = 4 * turns(n, step, false, 1);
                assert_eq!(bound, exact, "{n} by {step}: {test}");
            }
            // Tested in front, and of the number before it is shifted.
            if n > 0 {
                let front = end("setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;", &format!("{shift} bra LOOP;"), n);
                let exact = 4 * turns(n, step, true, 1);
                assert!(front.is_some_and(|end| exact <= end && end <= exact + 4), "{n} by {step}: {front:?}");
            }
            let old = format!("mov.u32 %r3, %r1; {shift} setp.gt.u32 %p1, %r3, {}; @%p1 bra LOOP;", (1 << step) - 1);
            let bound = end("", &old, n).expect("a bound");
            assert_eq!(bound, 4 * turns(n, step, false, 1), "{n} by {step}, the number before");
        }
    }
}

#[test]
fn signed_numbers_bound_their_loops_where_the_test_is_signed() {
    for n in FIRST {
        let exact = if (n as i32) < 0 { 4 } else { 4 * turns(n, 1, false, 1) };
        let bound = end("", "shr.s32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0; @%p1 bra LOOP;", n).expect("a bound");
        assert!((exact..=4 * 33).contains(&bound), "{n}: {bound}");
        // Of a negative number a signed shift leaves -1 for ever.
        let bound = end("", "shr.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra LOOP;", n);
        assert!(bound.is_none_or(|end| n as i32 >= 0 && end >= exact), "{n}: {bound:?}");
    }
}

#[test]
fn loops_that_may_run_on_stay_unbounded() {
    let data = "add.u64 %d5, %d4, %d2; ld.global.u32 %r5, [%d5]; ";
    let loops = [
        // Shifted by data, which may be nothing; the other way; on one of two ways only.
        format!("{data} shr.u32 %r1, %r1, %r5; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;"),
        "shl.b32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;".to_owned(),
        format!(
            "{data} setp.eq.u32 %p2, %r5, 0; @%p2 bra SKIP; shr.u32 %r1, %r1, 1; \
             SKIP: setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;"
        ),
        // Shifted, and set again; another number is tested; it ends where the number is large.
        format!("{data} shr.u32 %r1, %r1, 1; or.b32 %r1, %r1, %r5; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;"),
        format!("{data} shr.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra LOOP;"),
        "shr.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 8; @%p1 bra LOOP;".to_owned(),
        // Two ways back, one without the test.
        format!(
            "{data} shr.u32 %r1, %r1, 1; setp.eq.u32 %p2, %r5, 7; @%p2 bra LOOP; \
             setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;"
        ),
    ];
    for after in loops {
        assert_eq!(end("", &after, 1000), None, "{after}");
    }
}
