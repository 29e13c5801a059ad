//! Loops that only wait, on the way to an access: pipelines look at a stage's barrier once, and go
//! to a loop that waits where it is not ready. What is counted on the way round is known whichever
//! way threads take, unless the way that waits changes it.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, CodeImage, Extent, LaunchArgs};
use std::collections::BTreeSet;

/// Goes through `n` stages, and stores behind the square of each thread and the word `BY`.
/// `ENTER`: which threads begin without waiting; `WAITS`: what is done in each round of the loop
/// that waits; `SLOW`: what is done before it.
const PTX: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry stages(.param .u64 o, .param .u32 n) {
  .reg .b32 %r<16>; .reg .b64 %d<4>; .reg .pred %p<8>;
  .shared .align 4 .b32 word;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r5, 0; mov.u32 %r8, 0;
  ENTER
wait:
  WAITS
  ld.volatile.shared.u32 %r6, [word];
  setp.eq.u32 %p1, %r6, 0;
  @%p1 bra wait;
body:
  add.u32 %r5, %r5, 1;
  setp.ge.u32 %p2, %r5, %r1;
  @%p2 bra done;
  ld.volatile.shared.u32 %r7, [word];
  setp.ne.u32 %p3, %r7, 0;
  @%p3 bra body;
  SLOW
  bra wait;
done:
  mad.lo.u32 %r9, %r2, %r2, BY;
  mul.wide.u32 %d2, %r9, 4; add.s64 %d2, %d1, %d2;
  st.global.u32 [%d2], %r2;
  ret;
}
";

/// The words that 64 threads are said to store to in five stages: surely, and perhaps.
fn stored(enter: &str, waits: &str, slow: &str, by: &str) -> (BTreeSet<i64>, BTreeSet<i64>) {
    let ptx = PTX.replace("ENTER", enter).replace("WAITS", waits).replace("SLOW", slow).replace("BY", by);
    let image = CodeImage::from_code(CodeRef::Ptx(ptx.into()), Arch::new(80)).expect("PTX");
    let params = [0x7f00_0000_0000_u64.to_le_bytes(), 5_u64.to_le_bytes()].concat();
    let mut found = Vec::new();
    let summary = image.summary("stages").expect("summary");
    summary.evaluate(&LaunchArgs::new([1, 1, 1], [64, 1, 1], &params[..12]), &mut found);
    let (mut surely, mut perhaps) = (BTreeSet::new(), BTreeSet::new());
    for a in found.iter().filter(|a| a.kind == AccessKind::Write) {
        match &a.extent {
            Extent::Bounded { lo, dims, width, exact, .. } => {
                let along = |at: Vec<i64>, d: &kernels::Dim| -> Vec<i64> {
                    at.iter().flat_map(|at| (0..d.count).map(move |k| at + (k * d.stride) as i64)).collect()
                };
                let words = dims.iter().fold(vec![*lo], along).into_iter();
                let words = words.flat_map(|at| (at..at + i64::from(*width)).step_by(4)).map(|at| at / 4);
                if *exact { &mut surely } else { &mut perhaps }.extend(words);
            }
            Extent::Unknown { .. } => perhaps.extend(0..10_000),
        }
    }
    (surely, perhaps)
}

/// The words behind each thread's square by so much.
fn squares(by: i64) -> BTreeSet<i64> {
    (0..64).map(|t| t * t + by).collect()
}

/// The second half of the threads begins behind the wait, in the second stage.
const TWO_WAYS: &str = "setp.ge.u32 %p4, %r2, 32; selp.u32 %r5, 1, 0, %p4; @%p4 bra body;";

#[test]
fn a_loop_that_only_waits_changes_nothing() {
    for enter in ["", TWO_WAYS] {
        assert_eq!(stored(enter, "", "", "%r5"), (squares(5), BTreeSet::new()), "{enter}");
        // What is assigned to itself, or made of what does not change.
        assert_eq!(stored(enter, "mov.u32 %r8, %r2;", "", "%r5"), (squares(5), BTreeSet::new()), "{enter}");
    }
}

#[test]
fn what_the_way_that_waits_changes_is_not_known() {
    let cases = [
        // Rounds are counted; waits are counted; where it waited last.
        ("add.u32 %r8, %r8, 1;", "", "%r8"),
        ("", "add.u32 %r8, %r8, 1;", "%r8"),
        ("mov.u32 %r8, %r5;", "", "%r8"),
        ("", "mov.u32 %r8, %r5;", "%r8"),
        // A stage is skipped where it was not ready.
        ("", "add.u32 %r5, %r5, 1;", "%r5"),
    ];
    for enter in ["", TWO_WAYS] {
        for (waits, slow, by) in cases {
            let (surely, perhaps) = stored(enter, waits, slow, by);
            assert!(surely.is_empty(), "{enter} {waits} {slow} {by}: {surely:?}");
            // Each of these ways can be gone.
            let all: BTreeSet<i64> = if by == "%r5" { [5, 6].into() } else { [0, 1, 4].into() };
            let possible: BTreeSet<i64> = all.iter().flat_map(|by| squares(*by)).collect();
            assert!(possible.is_subset(&perhaps), "{enter} {waits} {slow} {by}");
        }
    }
}
