//! Tests of the rule for two extents: symmetric, and never surer than either side.

use super::*;
use crate::memory::Dim;

fn of(a: Extent, b: Extent) -> Option<Confidence> {
    let forward = Confidence::of(&a, &b);
    assert_eq!(forward, Confidence::of(&b, &a), "confidence must not depend on who came first");
    forward
}

#[test]
fn exact_ranges_are_certain_or_nothing() {
    assert_eq!(of(Extent::exact(0, 101), Extent::exact(100, 200)), Some(Confidence::Certain));
    assert_eq!(of(Extent::exact(0, 100), Extent::exact(100, 200)), None);
}

#[test]
fn unknown_extents_are_likely_at_one_start_and_possible_elsewhere() {
    let at = |p| Extent::unknown(p, 0, 1000);
    assert_eq!(of(at(8), at(8)), Some(Confidence::Likely));
    assert_eq!(of(at(8), at(16)), Some(Confidence::Possible));
    assert_eq!(of(at(8), Extent::exact(0, 9)), Some(Confidence::Likely));
    assert_eq!(of(at(8), Extent::exact(9, 20)), Some(Confidence::Possible));
}

#[test]
fn bounds_that_overlap_are_never_certain_and_silent_when_apart() {
    let bound = |a, b| Extent::bound(a, b, a);
    assert_eq!(of(bound(0, 10), bound(10, 20)), None);
    assert_eq!(of(bound(0, 11), bound(10, 20)), Some(Confidence::Likely));
    assert_eq!(of(bound(0, 10), Extent::exact(0, 10)), Some(Confidence::Likely));
    assert_eq!(of(bound(5, 10), Extent::exact(0, 5)), None);
    assert_eq!(of(bound(0, 10), Extent::unknown(20, 20, 21)), Some(Confidence::Possible));
}

#[test]
fn interleaved_patterns_are_silent() {
    let every_other = |p| Extent::pattern(p, 4, &[Dim { stride: 8, count: 100 }], p, Precision::Exact);
    assert_eq!(of(every_other(0), every_other(4)), None);
    assert_eq!(of(every_other(0), every_other(2)), Some(Confidence::Certain));
}

#[test]
fn kernels_of_one_stream_that_may_not_overlap_are_likely_at_most() {
    use crate::memory::{AllocationId, Exclusion, Site};
    use trace::{Epoch, StreamId, TimelineId};
    let made = |kind, time, stream, overlap, overlap_in_doubt| Access {
        epoch: Epoch { timeline: TimelineId(1), time },
        kind,
        extent: Extent::exact(0, 100),
        allocation: AllocationId(0),
        site: Site { stream: StreamId(stream), overlap, overlap_in_doubt, ..Site::unknown(Cause::Kernel) },
        exclusion: Exclusion::NONE,
    };
    let of = |stream, overlap, in_doubt| {
        let previous = made(AccessKind::Write, 1, 1, Overlap::No, false);
        Confidence::of_pair(&previous, &made(AccessKind::Read, 2, stream, overlap, in_doubt)).map(|found| found.0)
    };
    for overlap in [Overlap::BeforeWait, Overlap::NeverWaits] {
        assert_eq!(of(1, overlap, true), Some(Confidence::Likely));
        assert_eq!(of(1, overlap, false), Some(Confidence::Certain));
        assert_eq!(of(2, overlap, true), Some(Confidence::Certain), "nothing orders two streams");
    }
    assert_eq!(of(1, Overlap::No, true), Some(Confidence::Certain), "not by overlapping");
}
