//! Calls of functions that are known by name (`printf`, `malloc`, `assert`) must not lose the
//! addresses that were computed before them, and their results must not be taken for known.

use crate::support::cuda;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};

const P: u64 = 0x7f01_0000_0000;
const Q: u64 = 0x7f02_0000_0000;

/// First and last (exclusive) byte, and whether all of them are touched; `None`: unknown.
type Bytes = Option<(i64, i64, bool)>;

/// The writes of 3 blocks of 64 threads through the pointer at byte `word`.
fn writes(image: &CodeImage, kernel: &str, n: i32, word: u16) -> Vec<Bytes> {
    let summary = image.summary(kernel).expect("summary");
    let params: Vec<u8> = [P.to_le_bytes(), Q.to_le_bytes()].concat().into_iter().chain(n.to_le_bytes()).collect();
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([3, 1, 1], [64, 1, 1], &params), &mut found);
    let through = |b: &Base| matches!(b, Base::Word { offset, .. } if *offset == word);
    let of = |e: &Extent| match e {
        Extent::Bounded { lo, hi, exact, .. } => Some((*lo, *hi, *exact)),
        Extent::Unknown { .. } => None,
    };
    let writes = found.iter().filter(|a| a.kind == AccessKind::Write && through(&a.base));
    writes.map(|a| of(&a.extent)).collect()
}

#[test]
fn addresses_outlive_calls_and_results_are_not_known() {
    cuda::deep(check);
}

fn check() {
    for (arch, form) in
        [("sm_75", "-cubin"), ("sm_80", "-cubin"), ("sm_90", "-cubin"), ("sm_120", "-cubin"), ("sm_80", "-ptx")]
    {
        let (image, what) = (cuda::image("calls.cu", arch, form), format!("{arch} {form}"));
        let bytes = |kernel: &str, n: i32, word: u16| {
            let all = writes(&image, kernel, n, word);
            assert!(!all.is_empty(), "{what}: {kernel} has no such write");
            // Two copies of the code may do the same.
            assert!(all.iter().all(|one| one == &all[0]), "{what}, {kernel}: {all:?}");
            all[0]
        };
        let upper = |bytes: Bytes| bytes.map(|(lo, hi, _)| (lo, hi));
        assert_eq!(upper(bytes("printing", 100, 0)), Some((0, 400)), "{what}");
        assert_eq!(upper(bytes("printing", 100, 8)), Some((16, 416)), "{what}");
        assert_eq!(upper(bytes("allocating", 100, 0)), Some((0, 400)), "{what}");
        assert_eq!(upper(bytes("allocating", 100, 8)), Some((0, 768)), "{what}");
        assert_eq!(upper(bytes("checking", 100, 0)), Some((0, 768)), "{what}");
        assert_eq!(upper(bytes("checking", 100, 8)), Some((0, 768)), "{what}");
        assert_eq!(bytes("returned", 100, 8), None, "{what}");
    }
}
