//! Findings whose bytes are not known well enough to fail a run: upper bounds that reach the rim of
//! what lies behind, and launches from one place that divide memory among themselves.

use crate::support::*;

const N: u64 = 4096;

/// The verdict of two launches from two lines, which touch `first` from X on and `second` from
/// `X + at` on.
fn verdict(first: &Shape, second: &Shape, at: u64) -> Vec<String> {
    let mut p = Program::new();
    p.malloc(X, N);
    p.line(10).go(A, X, &[writes(0, first.clone())]);
    p.line(20).go(B, X + at, &[reads(0, second.clone())]);
    p.verdict()
}

#[test]
fn a_bound_that_reaches_the_rim_of_what_lies_behind_fails_no_run() {
    // 1,024 bytes in tiles of 96: eleven tiles are 1,056 bytes.
    for behind in [Shape::Exact(0, 1024), Shape::Bound(0, 1056), Shape::Exact(0, 64)] {
        assert_eq!(verdict(&Shape::Bound(0, 1056), &behind, 1024), ["read-after-write possible"]);
        // The same from the other side: the one behind came first.
        let mut p = Program::new();
        p.malloc(X, N);
        p.line(10).go(A, X + 1024, &[reads(0, behind.clone())]);
        p.line(20).go(B, X, &[writes(0, Shape::Bound(0, 1056))]);
        p.finds("write-after-read possible");
        assert_eq!(p.report().failures().count(), 0);
    }
}

#[test]
fn what_reaches_further_or_is_exact_is_reported() {
    let likely = ["read-after-write likely".to_owned()];
    let certain = ["read-after-write certain".to_owned()];
    // More than an eighth of the bound.
    assert_eq!(verdict(&Shape::Bound(0, 1200), &Shape::Exact(0, 1024), 1024), likely);
    // In the midst of the bound, where no rounding explains it.
    assert_eq!(verdict(&Shape::Bound(0, 1056), &Shape::Exact(0, 8), 1000), likely);
    // Exact bytes are no rounding.
    assert_eq!(verdict(&Shape::Exact(0, 1056), &Shape::Exact(0, 1024), 1024), certain);
    // Both begin at one address.
    assert_eq!(verdict(&Shape::Bound(0, 1056), &Shape::Exact(0, 1024), 0), likely);
}

/// From `by` bytes below the pointer to 16 bytes behind it.
fn back(by: u64) -> Shape {
    Shape::Bound(0_u64.wrapping_sub(by), 16)
}

#[test]
fn a_bound_that_reaches_below_its_pointer_fails_no_run() {
    // cuBLAS scales small matrices of one workspace, 16 bytes each, and rounds addresses down.
    for at in [16, 64] {
        for below in [Shape::Bound(0, 16), Shape::Exact(0, 16), Shape::Exact(0, 4)] {
            assert_eq!(verdict(&below, &back(at), at), ["read-after-write possible"], "{at}");
            let mut p = Program::new();
            p.malloc(X, N);
            p.line(10).go(A, X + at, &[reads(0, back(at))]);
            p.line(20).go(B, X, &[writes(0, below.clone())]);
            p.finds("write-after-read possible");
            assert_eq!(p.report().failures().count(), 0);
        }
    }
}

#[test]
fn what_goes_on_behind_the_pointer_is_reported() {
    let likely = ["read-after-write likely".to_owned()];
    assert_eq!(verdict(&Shape::Bound(0, 32), &back(16), 16), likely);
    assert_eq!(verdict(&Shape::Exact(0, 17), &back(16), 16), likely);
    // The pointers are the same, whatever lies below.
    assert_eq!(verdict(&back(16), &back(16), 0), likely);
    // Exact bytes below a pointer are a halo.
    let halo = Shape::Exact(0_u64.wrapping_sub(4), 16);
    assert_eq!(verdict(&Shape::Exact(0, 16), &halo, 16), ["read-after-write certain"]);
}

#[test]
fn launches_from_one_place_divide_what_is_not_known() {
    let mut p = Program::new();
    p.malloc(X, N);
    let k = p.kernel("share", &[writes(0, Shape::Unknown)]);
    p.line(10).launch(A, k, &[X]);
    p.line(10).launch(B, k, &[X]);
    p.finds("write-after-write possible");
    assert_eq!(p.report().failures().count(), 0);
}

#[test]
fn launches_from_two_places_or_of_two_kernels_are_reported() {
    let mut p = Program::new();
    p.malloc(X, N);
    let k = p.kernel("share", &[writes(0, Shape::Unknown)]);
    p.line(10).launch(A, k, &[X]);
    p.line(20).launch(B, k, &[X]);
    p.finds("write-after-write likely");

    let mut p = Program::new();
    p.malloc(X, N);
    let (fill, read) = (p.kernel("fill", &[writes(0, Shape::Unknown)]), p.kernel("read", &[reads(0, Shape::Unknown)]));
    p.line(10).launch(A, fill, &[X]);
    p.line(10).launch(B, read, &[X]);
    p.finds("read-after-write likely");

    // Known bytes are not divided.
    let mut p = Program::new();
    p.malloc(X, N);
    let k = p.kernel("all", &[writes(0, Shape::Exact(0, N))]);
    p.line(10).launch(A, k, &[X]);
    p.line(10).launch(B, k, &[X]);
    p.finds("write-after-write certain");
}
