//! Bulk copies: the bytes that an operand counts.
//!
//! Found by `cargo xtask oracle`: machine code counts units of 16 bytes, where PTX counts bytes, so
//! that predicted copies had a sixteenth of their size.

use crate::support::cuda;
use kernels::{AccessKind, Base, Extent, LaunchArgs};

#[test]
fn sizes_of_bulk_copies_are_bytes_in_ptx_and_units_of_16_in_machine_code() {
    cuda::deep(check);
}

fn check() {
    for (arch, form) in [("sm_90", "-cubin"), ("sm_100", "-cubin"), ("sm_120", "-cubin"), ("sm_90", "-ptx")] {
        let image = cuda::image("bulk.cu", arch, form);
        let params: Vec<u8> = [0x1_0000_u64, 0x2_0000, 0x3_0000, 1024].iter().flat_map(|p| p.to_le_bytes()).collect();
        let summary = image.summary("k_bulk").expect("summary");
        let mut found = Vec::new();
        summary.evaluate(&LaunchArgs::new([3, 1, 1], [1, 1, 1], &params[..28]), &mut found);
        let mut seen: Vec<_> = found
            .iter()
            .filter_map(|a| match (&a.base, &a.extent) {
                (Base::Word { offset, .. }, Extent::Bounded { lo, hi, .. }) => Some((*offset, a.kind, *lo, *hi)),
                _ => None,
            })
            .collect();
        seen.sort_by_key(|a| a.0);
        let wanted =
            [(0, AccessKind::Read, 0, 3 * 4096), (8, AccessKind::Write, 0, 1024), (16, AccessKind::Atomic, 0, 1024)];
        assert_eq!(seen, wanted, "{arch} {form}: {found:?}");
    }
}
