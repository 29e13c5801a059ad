//! Persistent kernels that take the numbers of later tiles from memory: the tiles that blocks copy
//! first are known, and bound nothing.
//!
//! The kernels are machine code and PTX.

use crate::support::cuda;
use kernels::{Base, Extent, LaunchArgs};
use std::collections::BTreeSet;

/// Values that a set of coordinates has.
fn values(axis: &Extent) -> Vec<i64> {
    let Extent::Bounded { lo, dims, .. } = axis else { panic!("{axis:?}") };
    let along = |at: Vec<i64>, stride: u64, count: u64| -> Vec<i64> {
        at.iter().flat_map(|a| (0..count).map(move |k| a + (k * stride) as i64)).collect()
    };
    dims.iter().fold(vec![*lo], |at, d| along(at, d.stride, d.count))
}

/// The tiles that a launch of so many blocks is said to copy surely, out of two rows of three, and
/// whether there may be others.
fn tiles(form: &str, kernel: &str, blocks: u32) -> (BTreeSet<(i64, i64)>, bool) {
    let summary = cuda::image("first_tiles.cu", "sm_90a", form).summary(kernel).expect("summary");
    let mut params = Vec::new();
    for (p, value) in
        summary.params().iter().zip([vec![0; 128], vec![0, 0, 0, 0, 1, 0, 0, 0], vec![3, 0, 0, 0], vec![6, 0, 0, 0]])
    {
        params.resize(usize::from(p.offset), 0);
        params.extend(value);
    }
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([blocks, 1, 1], [64, 1, 1], &params), &mut found);
    let (mut surely, mut others) = (BTreeSet::new(), false);
    for a in found.iter().filter(|a| matches!(a.base, Base::TensorMap { .. })) {
        let t = a.tiles.as_deref().expect("tiles");
        others |= !t.exact;
        if let (true, [x, y]) = (t.exact, &t.axes[..]) {
            surely.extend(values(x).iter().flat_map(|x| values(y).into_iter().map(move |y| (x / 32, y / 16))));
        }
    }
    (surely, others)
}

#[test]
fn the_first_tile_of_each_block_is_known() {
    cuda::deep(|| {
        // (In machine code these coordinates go through a loop over the lanes, which is not
        // followed.)
        for blocks in [6, 4] {
            let own: BTreeSet<(i64, i64)> = (0..i64::from(blocks)).map(|k| (k % 3, k / 3)).collect();
            assert_eq!(tiles("-ptx", "own_first", blocks), (own, true), "{blocks}");
        }
    });
}

#[test]
fn a_tile_that_data_pick_is_not_said_to_be_copied() {
    cuda::deep(|| {
        for form in ["-cubin", "-ptx"] {
            for kernel in ["none_first", "perhaps_first"] {
                assert_eq!(tiles(form, kernel, 6), (BTreeSet::new(), true), "{form} {kernel}");
            }
        }
    });
}
