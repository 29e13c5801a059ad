//! Tables of pointers: which words of a table are named as used, and which bytes behind them. No
//! word is named when some entries may be left out.

use crate::support::cuda;
use kernels::{AccessKind, Base, CodeImage, Extent, KernelAccess, LaunchArgs};

const TABLE: u64 = 0x7f00_ffff_f000;
const OTHER: u64 = 0x7e00_ffff_f000;

fn image(arch: &str, kind: &str) -> CodeImage {
    cuda::image("tables.cu", arch, kind)
}

/// All accesses of a launch with grid (4, 3, 2), 100 threads a block, and n = 350.
fn launch(image: &CodeImage, name: &str, pointers: usize) -> Vec<KernelAccess> {
    let mut params: Vec<u8> = [TABLE, OTHER][..pointers].iter().flat_map(|p| p.to_le_bytes()).collect();
    params.extend(350_i32.to_le_bytes());
    let mut out = Vec::new();
    image.summary(name).unwrap().evaluate(&LaunchArgs::new([4, 3, 2], [100, 1, 1], &params), &mut out);
    out
}

/// Accesses through tables: kind, first word, stride and count of the words, first and last byte,
/// exact.
type Through = (AccessKind, i64, u64, u64, i64, i64, bool);

fn through(accesses: &[KernelAccess]) -> Vec<Through> {
    let mut all: Vec<Through> = accesses
        .iter()
        .filter_map(|a| {
            let (Base::Table { offset: 0, value: TABLE, lo, stride, count }, Extent::Bounded { lo: l, hi, exact, .. }) =
                (a.base, &a.extent)
            else {
                return None;
            };
            Some((a.kind, lo, stride, count, *l, *hi, *exact))
        })
        .collect();
    all.sort_unstable();
    all
}

fn unknown(accesses: &[KernelAccess]) -> bool {
    accesses.iter().any(|a| a.base == Base::Unknown)
}

fn check(arch: &str, kind: &str) {
    use AccessKind::{Read, Write};
    let image = image(arch, kind);
    let at = |name, pointers| launch(&image, name, pointers);
    assert_eq!(through(&at("rows", 1)), [(Write, 0, 8, 3, 0, 1400, true)], "{arch} rows");
    let read = at("rows_read", 2);
    let words: u64 = through(&read).iter().map(|t| t.3).sum();
    assert_eq!(words, 5, "{arch} rows_read: {read:?}");
    assert!(through(&read).iter().all(|t| (t.0, t.4, t.5) == (Read, 0, 1400)), "{arch} rows_read: {read:?}");
    assert_eq!(through(&at("batch", 1)), [(Write, 0, 16, 2, 0, 2796, true)], "{arch} batch");
    let one = through(&at("one", 1));
    assert_eq!(one.iter().map(|t| (t.0, t.3, t.4, t.5)).collect::<Vec<_>>(), [(Read, 1, 0, 1400), (Write, 1, 0, 1400)]);
    for (name, pointers) in [("by_index", 2), ("some", 2), ("nested", 1), ("not_null", 1), ("last_used", 2)] {
        let accesses = at(name, pointers);
        // (That of `nested` that reads the inner table is followed.)
        let followed = through(&accesses).iter().any(|t| t.0 == Write);
        assert!(!followed && unknown(&accesses), "{arch} {name}: {accesses:?}");
    }
    let diagonal = through(&at("diagonal", 1));
    assert!(diagonal.iter().all(|t| !t.6), "{arch} diagonal: {diagonal:?}");
    // Directions by parameter are those of the table, never those of what it points to.
    for name in ["rows", "batch"] {
        let summary = image.summary(name).unwrap();
        let words: Vec<_> = summary.words().iter().map(|w| (w.offset, w.reads, w.writes)).collect();
        assert_eq!(words, [(0, true, false)], "{arch} {name}");
        assert!(summary.indirect().writes);
    }
}

#[test]
fn machine_code() {
    for arch in ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"] {
        check(arch, "-cubin");
    }
}

#[test]
fn ptx() {
    check("sm_80", "-ptx");
}
