//! What an executed instruction may leave out must not be claimed (asynchronous copies with a
//! predicate or a size). An address must be found behind conditions that use up the budget, and
//! behind steps that lead back.
//!
//! Found on the GPU: copies ahead in the pipelines of cuBLAS and cuDNN were claimed as certain,
//! although the last turns do not make them.

use crate::support::cuda;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};

const BASE: u64 = 0x7f01_0000_0000;

/// First and last (exclusive) byte, and whether all of them are touched; `None`: unknown.
type Bytes = Option<(i64, i64, bool)>;

struct Code {
    image: CodeImage,
    what: String,
}

impl Code {
    /// The accesses of one kind through a parameter that is a pointer.
    fn bytes(&self, kernel: &str, grid: [u32; 3], params: &[u8], word: u16, kind: AccessKind) -> Vec<Bytes> {
        let summary = self.image.summary(kernel).expect("summary");
        let mut found = Vec::new();
        summary.evaluate(&LaunchArgs::new(grid, [32, 1, 1], params), &mut found);
        let of = |e: &Extent| match e {
            Extent::Bounded { lo, hi, exact, .. } => Some((*lo, *hi, *exact)),
            Extent::Unknown { .. } => None,
        };
        let through = |b: &Base| matches!(b, Base::Word { offset, .. } if *offset == word);
        found.iter().filter(|a| a.kind == kind && through(&a.base)).map(|a| of(&a.extent)).collect()
    }
}

fn pack(pointers: &[u64], numbers: &[i32]) -> Vec<u8> {
    let bytes = pointers.iter().flat_map(|p| p.to_le_bytes());
    bytes.chain(numbers.iter().flat_map(|n| n.to_le_bytes())).collect()
}

#[test]
fn what_may_not_happen() {
    cuda::deep(check);
}

fn check() {
    for (arch, form) in [("sm_80", "-cubin"), ("sm_90", "-cubin"), ("sm_120", "-cubin"), ("sm_80", "-ptx")] {
        let c = Code { image: cuda::image("perhaps.cu", arch, form), what: format!("{arch} {form}") };
        guarded_copies(&c);
        staged_copies(&c);
        simple_addresses(&c);
    }
}

fn guarded_copies(c: &Code) {
    let what = &c.what;
    for kernel in ["k_ignored", "k_sized"] {
        for (n, hi) in [(100, 400), (128, 512), (1000, 512)] {
            let params = pack(&[BASE, 2 * BASE], &[n]);
            let reads = c.bytes(kernel, [4, 1, 1], &params, 0, AccessKind::Read);
            for r in &reads {
                let (lo, to, exact) = r.unwrap_or_else(|| panic!("{what} {kernel}: no range: {reads:?}"));
                // An upper bound may be larger; what is claimed may not.
                assert!(lo == 0 && to <= 512 && to >= hi, "{what} {kernel} {n}: {reads:?}");
                assert!(!exact || to == hi, "{what} {kernel} {n}: claimed too much: {reads:?}");
            }
            assert_eq!(reads.len(), 1, "{what} {kernel}: {reads:?}");
        }
        let none = c.bytes(kernel, [4, 1, 1], &pack(&[BASE, 2 * BASE], &[0]), 0, AccessKind::Read);
        assert!(none.iter().flatten().all(|r| !r.2), "{what} {kernel}: nothing is read: {none:?}");
    }
    let params = pack(&[BASE, 3 * BASE, 2 * BASE], &[]);
    let reads = c.bytes("k_by_data", [4, 1, 1], &params, 0, AccessKind::Read);
    assert_eq!(reads, [Some((0, 512, false))], "{what}: data decides");
    let masks = c.bytes("k_by_data", [4, 1, 1], &params, 8, AccessKind::Read);
    assert_eq!(masks, [Some((0, 512, true))], "{what}: the mask itself is read");
}

fn staged_copies(c: &Code) {
    for turns in [1, 2, 3, 8] {
        let params = pack(&[BASE, 2 * BASE], &[turns, 32]);
        // Stages 1 to turns - 1 are read; stage `turns` is not. (The compiler unrolls: several
        // copies of the instruction.)
        let end = 128 * i64::from(turns);
        let mut reads = Vec::new();
        for r in c.bytes("k_staged", [1, 1, 1], &params, 0, AccessKind::Read) {
            let Some((lo, hi, exact)) = r else { panic!("{} {turns} turns: no range", c.what) };
            assert!(!exact || (lo >= 128 && hi <= end), "{} {turns} turns: claimed too much: {r:?}", c.what);
            reads.push(lo..hi);
        }
        let missing = (128..end).find(|b| !reads.iter().any(|r| r.contains(b)));
        assert_eq!(missing, None, "{} {turns} turns: {reads:?}", c.what);
    }
}

fn simple_addresses(c: &Code) {
    for band in [0, 3i32] {
        let params = pack(&[BASE], &[320, 50 * (band + 1), 50 * band]);
        let writes = c.bytes("k_heavy", [10, 50, 1], &params, 0, AccessKind::Write);
        let (lo, hi) = (16_000 * i64::from(band), 16_000 * i64::from(band + 1));
        assert!(!writes.is_empty(), "{}: the stores are gone", c.what);
        for w in writes {
            let (l, h, _) = w.unwrap_or_else(|| panic!("{}: band {band} has no range", c.what));
            assert!(lo <= l && h <= hi, "{}: band {band}: {l}..{h}", c.what);
        }
    }
    let steps = |ahead: i64, back: i64| {
        let params: Vec<u8> =
            [BASE as i64, ahead, back, 2 * BASE as i64].iter().flat_map(|p| p.to_le_bytes()).collect();
        c.bytes("k_steps", [1, 1, 1], &params, 0, AccessKind::Read)
    };
    for (ahead, back) in [(4096, -512), (-1024, 256), (-4096, -96), (0, 1 << 33)] {
        let mut found = steps(ahead, back);
        found.sort_unstable();
        let mut expected: Vec<Bytes> =
            [ahead, ahead + 2 * back].iter().map(|at| Some((*at, *at + 128, true))).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{}: steps {ahead} and {back}", c.what);
    }
}
