//! Copies by tensor maps that a kernel makes itself: what tensor they are of is told by where the
//! map got its address.
//!
//! The kernels are machine code and PTX.

use crate::support::cuda;
use kernels::{AccessKind, Base, Extent, KernelAccess, LaunchArgs};

/// The 8-byte parameters are pointers apart from each other.
fn pointer(index: usize) -> u64 {
    0x7f00_0000_0000 + ((index as u64) << 32)
}

/// What a launch of three blocks is said to touch, and where the parameters lie.
fn evaluated(form: &str, kernel: &str) -> (Vec<KernelAccess>, Vec<u16>) {
    let summary = cuda::image("made_maps.cu", "sm_90a", form).summary(kernel).expect("summary");
    let mut params = Vec::new();
    for (k, p) in summary.params().iter().enumerate() {
        params.resize(usize::from(p.offset), 0);
        match p.size {
            8 => params.extend(pointer(k).to_le_bytes()),
            size => params.resize(params.len() + usize::from(size), 0),
        }
    }
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([3, 1, 1], [32, 1, 1], &params), &mut found);
    (found, summary.params().iter().map(|p| p.offset).collect())
}

/// The parameters that copies by maps which the kernel makes are said to reach, by direction, and
/// whether the addresses are those of a table.
fn made(form: &str, kernel: &str) -> Vec<(AccessKind, usize, bool)> {
    let (found, places) = evaluated(form, kernel);
    let is_map = |a: &&KernelAccess| a.tiles.is_none() && matches!(a.extent, Extent::Unknown { .. });
    let of = |a: &KernelAccess| {
        let (offset, is_table) = match a.base {
            Base::Word { offset, .. } => (offset, false),
            Base::Table { offset, .. } => (offset, true),
            base => panic!("{form} {kernel}: {base:?}"),
        };
        assert!(!a.several, "{form} {kernel}: {a:?}");
        (a.kind, places.iter().position(|p| *p == offset).expect("a parameter"), is_table)
    };
    let mut all: Vec<_> = found.iter().filter(is_map).map(of).collect();
    all.sort_unstable();
    all
}

/// Whether copies by maps in memory are named as such.
fn by_maps_in_memory(form: &str, kernel: &str) -> usize {
    let in_memory = |a: &&KernelAccess| a.tiles.is_some() && !matches!(a.base, Base::TensorMap { .. });
    evaluated(form, kernel).0.iter().filter(in_memory).count()
}

#[test]
fn the_tensor_of_a_map_that_is_made_is_known() {
    cuda::deep(|| {
        use AccessKind::{Read, Write};
        for form in ["-cubin", "-ptx"] {
            assert_eq!(made(form, "one"), [(Write, 1, false)], "{form}");
            assert_eq!(made(form, "two"), [(Read, 1, false), (Write, 2, false)], "{form}");
            assert_eq!(made(form, "table"), [(Write, 1, true)], "{form}");
            for kernel in ["one", "two", "table"] {
                // That there may be more remains.
                assert!(by_maps_in_memory(form, kernel) > 0, "{form} {kernel}");
            }
        }
        // (In machine code it is a store like any other.)
        assert_eq!(made("-ptx", "in_place"), [(Write, 0, false)]);
    });
}

#[test]
fn other_maps_have_other_tensors() {
    cuda::deep(|| {
        for form in ["-cubin", "-ptx"] {
            for (kernel, in_memory) in [("other", true), ("beside", true), ("parameter", false), ("copied", true)] {
                assert_eq!(made(form, kernel), [], "{form} {kernel}");
                assert_eq!(by_maps_in_memory(form, kernel) > 0, in_memory, "{form} {kernel}");
            }
        }
    });
}
