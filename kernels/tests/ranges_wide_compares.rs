//! 64-bit comparisons that machine code makes word by word: what a launch touches must not be taken
//! for unreachable.
//!
//! Found on the GPU: PyTorch's `GammaBetaBackwardCUDAKernelTemplate` lost its reads, because `m.lo
//! <= y.lo` stood under `y.hi >= m.hi`, and both were read in the same order.

use crate::support::cuda;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};

const BASE: u64 = 0x7f01_0000_0000;

/// The offset of a parameter, how it is accessed, and the bytes.
type Access = (u16, AccessKind, Option<(i64, i64)>);

/// The accesses of a launch: the offset of the parameter they start from, the kind, first and last
/// (exclusive) byte if known.
fn accesses(image: &CodeImage, kernel: &str, grid: [u32; 3], params: &[u64]) -> Vec<Access> {
    let bytes: Vec<u8> = params.iter().flat_map(|p| p.to_le_bytes()).collect();
    let summary = image.summary(kernel).expect("summary");
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new(grid, [32, 1, 1], &bytes), &mut found);
    found
        .iter()
        .filter_map(|a| match a.base {
            Base::Word { offset, .. } => Some((
                offset,
                a.kind,
                match a.extent {
                    Extent::Bounded { lo, hi, .. } => Some((lo, hi)),
                    _ => None,
                },
            )),
            _ => None,
        })
        .collect()
}

#[test]
fn words_compared_with_sides_exchanged() {
    cuda::deep(check);
}

fn check() {
    for arch in ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"] {
        let image = cuda::image("halves.cu", arch, "-cubin");

        // 800 rows of 256: every block reads.
        let rows = accesses(&image, "k_rows64", [8, 1, 1], &[BASE, 2 * BASE, 800, 256]);
        let reads: Vec<_> = rows.iter().filter(|a| a.0 == 0 && a.1 == AccessKind::Read).collect();
        assert!(!reads.is_empty(), "{arch}: the reads are gone: {rows:?}");
        // The compiler may peel the first turn of the loop off.
        let known: Option<Vec<_>> = reads.iter().map(|a| a.2).collect();
        let missing = known
            .is_some_and(|known| known.iter().all(|r| r.0 > 0) || known.iter().all(|r| r.1 < 4 * (768 * 256 + 256)));
        assert!(!missing, "{arch}: bytes are missing: {rows:?}");
        // No row at all: nothing is read.
        let none = accesses(&image, "k_rows64", [8, 1, 1], &[BASE, 2 * BASE, 0, 256]);
        assert!(none.iter().all(|a| a.1 == AccessKind::Write), "{arch}: reads of no rows: {none:?}");

        let guarded = accesses(&image, "k_guard64", [4, 1, 1], &[BASE, 1000, 100]);
        assert!(guarded.iter().any(|a| a.2.is_none_or(|r| r.0 <= 400 && r.1 >= 912)), "{arch}: {guarded:?}");
        let behind = accesses(&image, "k_guard64", [4, 1, 1], &[BASE, 100, 1 << 33]);
        assert!(behind.iter().any(|a| a.2.is_none_or(|r| r.0 <= 0 && r.1 >= 512)), "{arch}: {behind:?}");
    }
}
