//! Copies whose types are parameters: the ways through their switches that a launch does not take,
//! among them those to assertions, do not make the other ways unsure.
//!
//! The kernels are machine code and PTX.

use crate::support::cuda;
use kernels::{AccessKind, Extent, LaunchArgs};

const FROM: u64 = 0x7f00_0000_0000;
const TO: u64 = 0x7f10_0000_0000;
const KEPT: u64 = 0x7f20_0000_0000;
/// Of the types: those of `load`, and one that it does not know.
const SIZES: [u32; 6] = [1, 2, 4, 4, 8, 16];

/// The runs of bytes of a direction that a launch over `n` elements surely touches, and whether it
/// may touch others.
fn touched(form: &str, kernel: &str, n: u32, [from, to]: [usize; 2], kind: AccessKind) -> (Vec<(i64, i64)>, bool) {
    let summary = cuda::image("typed.cu", "sm_90", form).summary(kernel).expect("summary");
    let types = [from as u32, to as u32, SIZES[from], SIZES[to]];
    let values: [Vec<u8>; 5] = [
        TO.to_le_bytes().to_vec(),
        FROM.to_le_bytes().to_vec(),
        n.to_le_bytes().to_vec(),
        types.iter().flat_map(|n| n.to_le_bytes()).collect(),
        KEPT.to_le_bytes().to_vec(),
    ];
    let mut params = Vec::new();
    for (p, value) in summary.params().iter().zip(values) {
        params.resize(usize::from(p.offset), 0);
        params.extend(value);
    }
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([n.div_ceil(512), 1, 1], [128, 1, 1], &params), &mut found);
    let (mut surely, mut others) = (Vec::new(), false);
    for a in found.iter().filter(|a| a.kind == kind) {
        let Extent::Bounded { lo, dims, width, exact: true, .. } = &a.extent else {
            others = true;
            continue;
        };
        let along = |all: Vec<i64>, stride: u64, count: u64| -> Vec<i64> {
            all.iter().flat_map(|at| (0..count).map(move |k| at + (k * stride) as i64)).collect()
        };
        let places = dims.iter().fold(vec![*lo], |all, d| along(all, d.stride, d.count));
        surely.extend(places.iter().map(|at| (*at, *at + i64::from(*width))));
    }
    surely.sort_unstable();
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for (from, to) in surely {
        match runs.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => runs.push((from, to)),
        }
    }
    (runs, others)
}

#[test]
fn copies_between_types_of_the_launch_are_exact() {
    cuda::deep(|| {
        // More threads than are followed one by one: what is found is said of forms. (Of a block
        // that is not full they bound the last row.)
        for (n, types) in [(1 << 20, [0, 3]), ((1 << 20) + 512, [3, 1]), ((1 << 20) + 1024, [2, 4])] {
            for form in ["-cubin", "-ptx"] {
                for (kind, size) in [(AccessKind::Read, SIZES[types[0]]), (AccessKind::Write, SIZES[types[1]])] {
                    let (runs, others) = touched(form, "typed", n, types, kind);
                    let first = &runs[..runs.len().min(3)];
                    assert_eq!(
                        (first, runs.len(), others),
                        (&[(0, i64::from(n * size))][..], 1, false),
                        "{form} {n} {types:?} {kind:?}"
                    );
                }
            }
        }
    });
}

#[test]
fn what_lies_behind_an_assertion_that_fails_is_not_said_to_be_stored() {
    cuda::deep(|| {
        for form in ["-cubin", "-ptx"] {
            assert!(touched(form, "typed", 5000, [5, 3], AccessKind::Write).0.is_empty(), "{form}");
            assert!(touched(form, "told", 5000, [3, 3], AccessKind::Write).0.is_empty(), "{form}");
            assert_eq!(touched(form, "turns", 5000, [3, 3], AccessKind::Write), (Vec::new(), true), "{form}");
        }
    });
}
