//! Findings whose bytes are not known well enough to fail a run: upper bounds that reach the rim of
//! what lies behind, and launches from one place that divide memory among themselves.

mod support;

use support::*;

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
