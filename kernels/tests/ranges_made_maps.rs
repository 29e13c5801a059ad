//! Copies by tensor maps that a kernel makes itself: what tensor they are of is told by the words
//! of the map in machine code, and else by where the map got its address.
//!
//! The kernels are machine code and PTX.

use crate::support::cuda;
use kernels::{AccessKind, Base, Extent, KernelAccess, LaunchArgs};

/// The 8-byte parameters are pointers apart from each other.
fn pointer(index: usize) -> u64 {
    0x7f00_0000_0000 + ((index as u64) << 32)
}

/// The map that others are made like: 48 rows of 64 words of 4 bytes, of which copies take 16 rows
/// of 32. (Its address is put in.)
fn like() -> [u8; 128] {
    let mut map = [0; 128];
    for (k, word) in [(2, 0x390_u32), (3, 256 >> 4), (8, 63), (9, 47), (13, 31 << 24), (14, 15)] {
        map[4 * k..4 * k + 4].copy_from_slice(&word.to_le_bytes());
    }
    map
}

/// What a launch of three blocks is said to touch, and where the parameters lie.
fn evaluated(form: &str, kernel: &str) -> (Vec<KernelAccess>, Vec<u16>) {
    evaluated_by(form, kernel, 32)
}

/// The same of blocks of so many threads.
fn evaluated_by(form: &str, kernel: &str, threads: u32) -> (Vec<KernelAccess>, Vec<u16>) {
    let summary = cuda::image("made_maps.cu", "sm_90a", form).summary(kernel).expect("summary");
    let mut params = Vec::new();
    for (k, p) in summary.params().iter().enumerate() {
        params.resize(usize::from(p.offset), 0);
        match p.size {
            8 => params.extend(pointer(k).to_le_bytes()),
            128 => params.extend(like()),
            4 => params.extend(2u32.to_le_bytes()),
            size => params.resize(params.len() + usize::from(size), 0),
        }
    }
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([3, 1, 1], [threads, 1, 1], &params), &mut found);
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
            assert_eq!(made(form, "two"), [(Read, 1, false), (Write, 2, false)], "{form}");
            assert_eq!(made(form, "table"), [(Write, 1, true)], "{form}");
            for kernel in ["two", "table"] {
                // That there may be more remains.
                assert!(by_maps_in_memory(form, kernel) > 0, "{form} {kernel}");
            }
        }
        assert_eq!(made("-ptx", "one"), [(Write, 1, false)]);
        assert!(by_maps_in_memory("-ptx", "one") > 0);
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

/// The bytes that a kernel of machine code is said to copy by the maps that it makes: direction,
/// parameter, and rows of the tensor. Each row is half of one. `None`: a map is not known.
fn rows(kernel: &str, threads: u32) -> Option<Vec<(AccessKind, usize, Vec<u64>)>> {
    let (found, places) = evaluated_by("-cubin", kernel, threads);
    if found.iter().any(|a| a.tiles.is_some()) {
        return None;
    }
    let mut all = Vec::new();
    for a in found.iter().filter(|a| a.kind != AccessKind::Atomic) {
        let Extent::Bounded { lo, dims, width, exact, .. } = &a.extent else { panic!("{kernel}: {a:?}") };
        let Base::Word { offset, .. } = a.base else { panic!("{kernel}: {a:?}") };
        assert!(*exact && !a.several && a.by_map, "{kernel}: {a:?}");
        let starts = dims.iter().fold(vec![*lo as u64], |at, d| {
            at.iter().flat_map(|a| (0..d.count).map(move |k| a + k * d.stride)).collect()
        });
        let mut bytes: Vec<u64> = starts.iter().flat_map(|a| *a..*a + u64::from(*width)).collect();
        bytes.sort_unstable();
        let rows: Vec<u64> = bytes.iter().filter(|b| *b % 256 == 0).map(|b| b / 256).collect();
        let of_rows: Vec<u64> = rows.iter().flat_map(|row| 256 * row..256 * row + 128).collect();
        assert_eq!(bytes, of_rows, "{kernel}: {a:?}");
        all.push((a.kind, places.iter().position(|p| *p == offset).expect("a parameter"), rows));
    }
    all.sort_unstable();
    Some(all)
}

#[test]
fn the_words_of_a_map_that_is_made_tell_the_bytes() {
    cuda::deep(|| {
        use AccessKind::{Read, Write};
        let (first, all): (Vec<u64>, Vec<u64>) = ((0..16).collect(), (0..48).collect());
        assert_eq!(rows("one", 32), Some(vec![(Write, 1, all.clone())]));
        assert_eq!(rows("two_apart", 32), Some(vec![(Read, 1, first.clone()), (Write, 2, first)]));
        // What comes behind a barrier is in no map.
        assert_eq!(rows("used_again", 32), Some(vec![(Write, 1, all)]));
    });
}

#[test]
fn a_map_is_not_known_whose_words_are_not_in_order() {
    cuda::deep(|| {
        for kernel in ["two", "in_turns", "overwritten", "by_data", "written"] {
            assert_eq!(rows(kernel, 32), None, "{kernel}");
        }
        assert_eq!(rows("by_two_warps", 64), None);
        // (One warp of them is a map like any other.)
        assert!(rows("by_two_warps", 32).is_some());
    });
}
