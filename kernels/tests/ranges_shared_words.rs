//! A number that one thread hands to its block through shared memory bounds what it guards. Where
//! the word may hold something else, it bounds nothing.

use crate::support::cuda;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};

const BASE: u64 = 0x7f01_0000_0000;

/// First and last (exclusive) byte written through the first parameter by two blocks of 128
/// threads; `None`: the bytes are not known.
fn written(code: &CodeImage, kernel: &str, n: i32, m: i32) -> Option<(i64, i64)> {
    let pointers = [BASE, 2 * BASE].map(u64::to_le_bytes).concat();
    let params = [pointers, [n, m].map(i32::to_le_bytes).concat()].concat();
    let summary = code.summary(kernel).expect("summary");
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([2, 1, 1], [128, 1, 1], &params), &mut found);
    let writes = found.iter().filter(|a| a.kind == AccessKind::Write);
    let ends = writes.filter(|a| matches!(a.base, Base::Word { offset: 0, .. })).map(|a| match a.extent {
        Extent::Bounded { lo, hi, .. } => Some((lo, hi)),
        Extent::Unknown { .. } => None,
    });
    ends.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)))).expect("a write")
}

#[test]
fn a_number_that_the_block_was_handed_bounds_its_stores() {
    cuda::deep(|| {
        for arch in ["sm_75", "sm_80", "sm_89"] {
            let code = cuda::image("shared_words.cu", arch, "-cubin");
            for n in [1, 100, 128, 129, 200, 256] {
                let end = i64::from(4 * n);
                assert_eq!(written(&code, "s_handed", n, 0), Some((0, end)), "{arch} {n}");
                // Of two numbers, either may be there at either store.
                for m in [-1, 150] {
                    let found = written(&code, "s_again", n, m).expect("a bound");
                    assert!(
                        found.0 == 0 && (end.max(i64::from(4 * m))..=1024).contains(&found.1),
                        "{arch} {n} {m}: {found:?}"
                    );
                }
            }
            let either = written(&code, "s_either", 100, 150).expect("a bound");
            assert!(either.0 <= 0 && (600..=1024).contains(&either.1), "{arch}: {either:?}");
        }
    });
}

#[test]
fn a_word_that_may_hold_something_else_bounds_nothing() {
    cuda::deep(|| {
        for arch in ["sm_75", "sm_80", "sm_89", "sm_90"] {
            let code = cuda::image("shared_words.cu", arch, "-cubin");
            // What the threads of the two blocks may touch at most, and with these numbers do.
            for kernel in ["s_by_thread", "s_loaded", "s_overwritten", "s_counted", "s_in_turns"] {
                let found = written(&code, kernel, 1, 300);
                assert!(found.is_none_or(|ends| ends.0 <= 0 && ends.1 >= 1024), "{arch} {kernel}: {found:?}");
            }
        }
    });
}
