//! The rules of the analysis, each with a twin that must stay silent: which accesses conflict, and
//! what the host waits for. The life of memory is in `memory_lives`.

use crate::support::*;
use settings::Judging;
use trace::*;

const N: u64 = 4096;

fn whole() -> Shape {
    Shape::Exact(0, N)
}

#[test]
fn unordered_streams_race_and_an_event_mends_it() {
    for ordered in [false, true] {
        let mut p = Program::new();
        p.malloc(X, N);
        p.go(A, X, &[writes(0, whole())]);
        if ordered {
            p.order(A, B);
        }
        p.go(B, X, &[reads(0, whole())]);
        if ordered {
            p.silent();
        } else {
            let f = p.finds("read-after-write certain");
            assert_eq!((f.from, f.to, f.count), (0, N, 1));
            assert_eq!(f.previous.kernel.as_deref(), Some("kernel_101(float*, int)"));
            assert_eq!(f.allocation.as_ref().map(|m| m.size), Some(N));
        }
    }
}

#[test]
fn hazards_are_named_by_submission_order() {
    let cases: [(&[Does], &[Does], &str); 8] = [
        (&[writes(0, whole())], &[reads(0, whole())], "read-after-write certain"),
        (&[writes(0, whole())], &[writes(0, whole())], "write-after-write certain"),
        (&[reads(0, whole())], &[writes(0, whole())], "write-after-read certain"),
        (&[writes(0, whole())], &[reads(0, whole()), writes(0, whole())], "read-after-write certain"),
        (&[reads(0, whole()), writes(0, whole())], &[writes(0, whole())], "write-after-write certain"),
        (&[reads(0, whole()), writes(0, whole())], &[reads(0, whole())], "read-after-write certain"),
        (&[atomics(0, whole())], &[reads(0, whole())], "read-after-write certain"),
        (&[reads(0, whole())], &[atomics(0, whole())], "write-after-read certain"),
    ];
    for (first, second, verdict) in cases {
        let mut p = Program::new();
        p.malloc(X, N);
        p.go(A, X, first);
        p.go(B, X, second);
        p.finds(verdict);
    }
}

#[test]
fn reads_and_atomics_among_themselves_are_silent() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.go(A, X, &[reads(0, whole())]);
    p.go(B, X, &[reads(0, whole())]);
    p.silent();
    let mut p = Program::new();
    p.malloc(X, N);
    p.go(A, X, &[atomics(0, whole())]);
    p.go(B, X, &[atomics(0, whole())]);
    p.silent();
}

#[test]
fn an_atomic_does_not_hide_the_write_before_it() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.go(A, X, &[writes(0, whole())]);
    p.go(A, X, &[atomics(0, whole())]);
    p.go(B, X, &[atomics(0, whole())]);
    let f = p.finds("read-after-write certain");
    assert_eq!(f.previous.verb.name(), "writes");
}

#[test]
fn one_byte_decides() {
    for (len, found) in [(N / 2, false), (N / 2 + 1, true)] {
        let mut p = Program::new();
        p.malloc(X, N);
        p.go(A, X, &[writes(0, Shape::Exact(0, len))]);
        p.go(B, X, &[writes(0, Shape::Exact(N / 2, N))]);
        if found {
            let f = p.finds("write-after-write certain");
            assert_eq!((f.from, f.to), (N / 2, N / 2 + 1));
        } else {
            p.silent();
        }
    }
}

#[test]
fn even_and_odd_elements_are_disjoint() {
    for (lo, found) in [(4, false), (3, true)] {
        let mut p = Program::new();
        p.malloc(X, N);
        let every_other = |lo| Shape::Strided { lo, width: 4, stride: 8, count: 500 };
        for _ in 0..3 {
            p.go(A, X, &[reads(0, every_other(0)), writes(0, every_other(0))]);
            p.go(B, X, &[writes(0, every_other(lo))]);
        }
        assert_eq!(p.findings().is_empty(), !found);
    }
}

#[test]
fn columns_of_a_pitched_image_are_disjoint() {
    for (width, found) in [(333, false), (334, true)] {
        let mut p = Program::new();
        p.malloc(X, 512 * 1024);
        p.alloc(PINNED, 1 << 20, MemoryKind::PinnedHost);
        let host = |at| Region::pitched(PINNED + at, width, 512, 1000);
        p.copy_region(A, Region::pitched(X, width, 512, 1024), host(0), H2D, 0);
        let (rest, at) = (1000 - 333, 333);
        p.copy_region(
            B,
            Region::pitched(X + at, rest, 512, 1024),
            Region::pitched(PINNED + at, rest, 512, 1000),
            H2D,
            0,
        );
        if found {
            p.finds("write-after-write certain");
        } else {
            p.silent();
        }
    }
}

#[test]
fn confidence_of_unknown_extents() {
    // (first, second, pointer offset of the second, verdict by default, verdict when pedantic)
    let unknown = || Shape::Unknown;
    type Case<'a> = (Shape, Shape, u64, Option<&'a str>, Option<&'a str>);
    let cases: [Case<'_>; 7] = [
        (unknown(), unknown(), 0, Some("likely"), Some("likely")),
        (unknown(), unknown(), 512, None, Some("possible")),
        (Shape::Exact(0, 513), unknown(), 512, Some("likely"), Some("likely")),
        (Shape::Exact(0, 512), unknown(), 512, None, Some("possible")),
        (Shape::Bound(0, 600), Shape::Exact(0, 600), 512, Some("likely"), Some("likely")),
        (Shape::Bound(0, 512), Shape::Bound(0, 512), 512, None, None),
        (Shape::Bound(0, 512), Shape::Bound(0, 512), 0, Some("likely"), Some("likely")),
    ];
    for (i, (first, second, at, by_default, pedantic)) in cases.into_iter().enumerate() {
        for (on, expected) in [(false, by_default), (true, pedantic)] {
            let mut p = Program::with(analysis::AnalysisOptions {
                judging: Judging { pedantic: on, ..Default::default() },
                ..Default::default()
            });
            p.malloc(X, N);
            p.go(A, X, &[writes(0, first.clone())]);
            p.go(B, X + at, &[writes(0, second.clone())]);
            let found = p.findings();
            assert_eq!(found.first().map(|f| f.confidence.name()), expected, "case {i}, pedantic {on}");
        }
    }
}

#[test]
fn the_host_waits_for_copies_to_pageable_memory() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.malloc(X + N, N);
    p.copy(A, PAGEABLE, X, N, D2H);
    p.copy(B, PAGEABLE, X + N, N, D2H);
    p.silent();
    // Staged: the source is free again when the call returns, though the copy is not done.
    p.copy(A, X, PAGEABLE, N, H2D);
    p.copy(B, PAGEABLE, X + N, N, D2H);
    p.silent();
}

#[test]
fn documented_policy_promises_less() {
    let options = analysis::AnalysisOptions {
        judging: Judging { policy: order::Policy::Documented, ..Default::default() },
        ..Default::default()
    };
    let mut p = Program::with(options);
    p.malloc(X, N);
    p.malloc(X + N, N);
    p.copy(A, PAGEABLE, X, N, D2H);
    p.copy(B, PAGEABLE + 16, X + N, N, D2H);
    let f = p.finds("write-after-write certain");
    assert!(f.allocation.is_none());

    let mut p = Program::with(analysis::AnalysisOptions {
        judging: Judging { latent: true, ..Default::default() },
        ..Default::default()
    });
    p.malloc(X, N);
    p.malloc(X + N, N);
    p.copy(A, PAGEABLE, X, N, D2H);
    p.copy(B, PAGEABLE + 16, X + N, N, D2H);
    assert!(p.finds("write-after-write certain").latent);
    assert_eq!(p.report().failures().count(), 0);
}

#[test]
fn pinned_memory_is_an_allocation() {
    let mut p = Program::new();
    p.malloc(X, 2 * N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.copy(A, PINNED, X, N, D2H);
    p.copy(B, PINNED, X + N, N, D2H);
    let f = p.finds("write-after-write certain");
    assert_eq!(f.allocation.unwrap().kind.name(), "pinned host memory");
}

#[test]
fn aliases_are_one_memory() {
    let mut p = Program::new();
    p.alloc(PINNED, N, MemoryKind::RegisteredHost);
    p.does("cudaHostGetDevicePointer", Op::Alias { ptr: X, target: PINNED, size: N });
    p.go(A, X + 16, &[writes(0, Shape::Exact(0, 16))]);
    p.copy(B, X + (1 << 30), PINNED, 16, H2D);
    p.silent();
    p.copy(B, X + (1 << 30), PINNED, 17, H2D);
    p.finds("read-after-write certain");
}

#[test]
fn arrays_and_textures() {
    let mut p = Program::new();
    let array = ArrayId(5);
    p.does("cudaMallocArray", Op::ArrayCreate { array, handle: 9, size: N });
    p.malloc(X, N);
    let in_array = |start, n| Region { array, ..Region::linear(start, n) };
    let spaces = (Space::Array, Space::Device);
    p.copy_region(A, in_array(0, 100), Region::linear(X, 100), spaces, 0);
    p.copy_region(B, in_array(100, 100), Region::linear(X, 100), spaces, 0);
    p.silent();
    let object = 0x55;
    p.does("cudaCreateTextureObject", Op::ObjectCreate { object, region: Region::linear(X, N), writable: false });
    p.go(A, X, &[writes(0, whole())]);
    p.go(A, object, &[reads(0, Shape::Object)]);
    let before = p.findings().len();
    p.go(B, object, &[reads(0, Shape::Object)]);
    assert_eq!(p.findings().len(), before + 1);
    assert!(p.verdict().contains(&"read-after-write likely".to_string()), "{:?}", p.verdict());
}

/// NVIDIA's Warp destroys arrays whose upload is still pending: the driver waits for it.
#[test]
fn an_array_is_destroyed_when_its_upload_is_over_but_only_then() {
    let mut p = Program::new();
    let array = ArrayId(5);
    p.does("cudaMallocArray", Op::ArrayCreate { array, handle: 9, size: N });
    p.malloc(X, N);
    let spaces = (Space::Array, Space::Device);
    p.copy_region(A, Region { array, ..Region::linear(0, N) }, Region::linear(X, N), spaces, 0);
    p.does("cudaFreeArray", Op::ArrayDestroy { array });
    // The host has seen the copy end, so X may be written again.
    p.go(B, X, &[writes(0, whole())]);
    p.silent();
    p.go(A, X, &[writes(0, whole())]);
    p.finds("write-after-write certain");
}

#[test]
fn an_object_of_an_array_reaches_all_of_it_and_no_more() {
    let mut p = Program::new();
    let array = ArrayId(5);
    p.does("cudaMalloc3DArray", Op::ArrayCreate { array, handle: 9, size: N });
    p.malloc(X, N);
    let whole = Region { array, ..Region::linear(0, u64::MAX >> 1) };
    let object = 0x55;
    p.does("cudaCreateTextureObject", Op::ObjectCreate { object, region: whole, writable: false });
    let last = Region { array, ..Region::linear(N - 4, 4) };
    p.copy_region(A, last, Region::linear(X, 4), (Space::Array, Space::Device), 0);
    p.go(B, object, &[reads(0, Shape::Object)]);
    let found = p.finds("read-after-write possible");
    assert_eq!((found.access.from, found.access.to), (0, N));
}

#[test]
fn members_of_a_batch_are_unordered_among_themselves() {
    for batch in [0, 9] {
        let mut p = Program::new();
        p.malloc(X, N);
        p.malloc(X + N, N);
        for _ in 0..2 {
            p.copy_region(A, Region::linear(X, N), Region::linear(X + N, N), D2D, batch);
        }
        if batch == 0 {
            p.silent();
        } else {
            p.finds("write-after-write certain");
        }
    }
}

#[test]
fn findings_are_counted_by_call_sites() {
    let mut p = Program::new();
    p.malloc(X, N);
    let k = p.kernel("k", &[writes(0, whole())]);
    for _ in 0..5 {
        p.line(20).launch(A, k, &[X]);
        p.line(30).launch(B, k, &[X]);
        p.sync(A);
        p.sync(B);
    }
    let found = p.findings();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].count, 5);
    p.line(20).launch(A, k, &[X]);
    p.line(31).launch(B, k, &[X]);
    let found = p.findings();
    assert_eq!(found.iter().map(|f| f.count).collect::<Vec<_>>(), [5, 1]);
    assert_ne!(found[0].fingerprint, found[1].fingerprint);
}

#[test]
fn one_pair_of_ops_is_one_finding() {
    let mut p = Program::new();
    p.malloc(X, N);
    let inplace = [reads(0, whole()), writes(0, whole()), reads(0, Shape::Unknown)];
    p.go(A, X, &inplace);
    p.go(B, X, &inplace);
    p.finds("read-after-write certain");
}

#[test]
fn memory_does_not_grow_with_the_run() {
    let mut p = Program::new();
    p.malloc(X, 1 << 20);
    let k = p.kernel("k", &[writes(0, Shape::Exact(0, 64)), reads(0, Shape::Unknown)]);
    let mut most = 0;
    for i in 0..5000_u64 {
        p.line(20).launch(A, k, &[X + i * 64 % (1 << 20)]);
        p.line(21).sync(A);
        most = most.max(p.analysis.footprint().2);
    }
    p.silent();
    assert!(most < 400, "{most}");
}

#[test]
fn streams_that_come_and_go_leave_nothing_behind() {
    let mut p = Program::new();
    p.malloc(X, N);
    let k = p.kernel("k", &[reads(0, whole())]);
    for i in 0..2000 {
        let stream = StreamId(1000 + i);
        let kind = StreamKind::NonBlocking;
        p.line(5).does("create", Op::StreamCreate { stream, context: CONTEXT, kind, priority: 0, handle: 0 });
        p.line(6).launch(stream, k, &[X]);
        p.line(7).sync(stream);
        p.line(8).does("destroy", Op::StreamDestroy { stream });
    }
    assert!(p.analysis.footprint().2 < 10, "{:?}", p.analysis.footprint());
}

#[test]
fn a_staged_source_is_free_when_the_call_returns_whoever_allocated_it() {
    // PyTorch reports its host tensors as blocks too; they are pageable memory all the same.
    let mut p = Program::new();
    p.alloc(PAGEABLE, N, MemoryKind::Block);
    p.malloc(X, 2 * N);
    p.copy(A, X, PAGEABLE, N, H2D);
    p.copy(B, PAGEABLE, X + N, N, D2H);
    p.silent();
}

#[test]
fn a_launch_without_parameters_is_counted_as_unknown() {
    let mut p = Program::new();
    let kernel = p.kernel("k", &[writes(0, whole())]);
    p.does("cuLaunchKernel", launch_with(A, kernel, launch_flags::PARAMS_UNKNOWN, &[]));
    let c = p.outcome().coverage;
    assert_eq!((c.launches, c.launches_unknown), (1, 1));
}

#[test]
fn the_memory_below_blocks_is_one_and_access_across_blocks_is_split() {
    let mut p = Program::new();
    p.malloc(X, 4 * N);
    p.alloc(X, N, MemoryKind::Block);
    p.alloc(X + 2 * N, N, MemoryKind::Block);
    p.set(A, X, 3 * N);
    // Between the blocks, inside the second, and behind everything that was written.
    p.set(B, X + 3 * N, N);
    p.silent();
    p.line(40).set(B, X + N, 16);
    p.line(50).set(B, X + 2 * N + 8, 16);
    let found = p.findings();
    assert_eq!(found.iter().map(|f| f.allocation.as_ref().unwrap().size).collect::<Vec<_>>(), [4 * N, N]);
    assert_eq!((found[1].from, found[1].to), (8, 24));
}

#[test]
fn one_large_write_forgets_the_borders_of_many_small_ones() {
    let mut p = Program::new();
    p.malloc(X, N);
    for i in 0..N / 64 {
        p.line(20).set(A, X + i * 64, 64);
    }
    assert_eq!(p.analysis.footprint().2, 64);
    p.set(A, X, N);
    assert_eq!(p.analysis.footprint().2, 1);
    p.set(B, X + 100, 1);
    let f = p.finds("write-after-write certain");
    assert_eq!((f.from, f.to), (100, 101));
}

#[test]
fn variables_differ_by_image_and_name() {
    let mut p = Program::new();
    for (image, at) in [(1, X), (2, X + N)] {
        let image = ImageId(image);
        p.does("cudaGetSymbolAddress", Op::Global { ptr: at, size: 256, image, name: "taps".into() });
        p.does("cudaGetSymbolAddress", Op::Global { ptr: at, size: 256, image, name: "taps".into() });
    }
    p.set(A, X, 256);
    p.set(B, X + N, 256);
    p.silent();
    p.set(B, X, 4);
    p.finds("write-after-write certain");
}

#[test]
fn two_scatters_are_weak_but_hide_nothing_stronger() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.go(A, X, &[writes(0, Shape::Scattered)]);
    p.go(B, X, &[writes(0, Shape::Scattered)]);
    assert_eq!(p.report().failures().count(), 0);
    let mut p = Program::new();
    p.malloc(X, N);
    p.go(A, X, &[writes(0, Shape::Unknown)]);
    p.go(A, X, &[writes(0, Shape::Scattered)]);
    p.go(B, X, &[writes(0, Shape::Scattered)]);
    assert_eq!(p.report().failures().count(), 1);
}
