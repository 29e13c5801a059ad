//! PyTorch's blocks: freed without `record_stream`, and every correct form; blocks over several
//! mappings.

use crate::support::*;
use report::model::Side;
use trace::{FreeKind, MemoryKind, Op, PoolId, StreamId};

const MB: u64 = 1 << 20;
const N: u64 = 4096;

/// A segment, and a block of it that belongs to stream A and was used there.
fn block() -> Program {
    let mut p = Program::new();
    p.python();
    p.malloc(X, 256 * MB);
    hand_out(&mut p, X, 16 * MB, A);
    p.go(A, X, &[writes(0, Shape::Exact(0, 16 * MB))]);
    p.order(A, B);
    p.go(B, X, &[reads(0, Shape::Exact(0, 16 * MB))]);
    p
}

fn hand_out(p: &mut Program, ptr: u64, size: u64, stream: StreamId) {
    let (kind, pool) = (MemoryKind::Block, PoolId(0));
    let op = Op::Alloc { ptr, size, kind, context: CONTEXT, stream, pool, flags: 0 };
    p.does("c10::cuda::CUDACachingAllocator", op);
}

fn take_back(p: &mut Program, ptr: u64) {
    let op = Op::Free { ptr, kind: FreeKind::Block, stream: StreamId(0) };
    p.does("c10::cuda::CUDACachingAllocator", op);
}

fn kinds(p: &mut Program) -> Vec<String> {
    p.findings().iter().map(|f| format!("{} {} {}", f.kind, f.hazard.name(), f.confidence.name())).collect()
}

#[test]
fn freed_while_another_stream_reads_it() {
    let mut p = block();
    take_back(&mut p, X);
    p.silent();
    hand_out(&mut p, X + 64 * MB, 4 * MB, A);
    assert_eq!(kinds(&mut p), ["freed-without-record_stream write-after-read certain"]);
    let found = p.findings().remove(0);
    assert_eq!(found.allocation.as_ref().map(|m| (m.address, m.size)), Some((X, 16 * MB)));
    assert!(found.synchronisation.torch()[0].starts_with("tensor.record_stream(stream_2)"), "{found:#?}");
    // Once is enough: later allocations say nothing new.
    hand_out(&mut p, X + 80 * MB, 4 * MB, A);
    assert_eq!(p.findings().len(), 1);
}

#[test]
fn recorded_streams_are_silent() {
    let mut p = block();
    // What the allocator does for record_stream: an event on the stream, directly before it takes
    // the block.
    let event = trace::EventId(900);
    p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 2, handle: 0 });
    p.record(event, B);
    take_back(&mut p, X);
    hand_out(&mut p, X + 64 * MB, 4 * MB, A);
    p.silent();
}

#[test]
fn an_event_of_the_program_is_not_that_of_the_allocator() {
    let mut p = block();
    p.record(trace::EventId(901), B);
    p.go(A, X + 128 * MB, &[writes(0, Shape::Exact(0, 4))]);
    take_back(&mut p, X);
    hand_out(&mut p, X + 64 * MB, 4 * MB, A);
    assert_eq!(kinds(&mut p).len(), 1);
}

#[test]
fn waited_for_before_the_free_or_before_the_next_allocation() {
    for late in [false, true] {
        let mut p = block();
        if !late {
            p.order(B, A);
        }
        take_back(&mut p, X);
        if late {
            p.order(B, A);
        }
        hand_out(&mut p, X + 64 * MB, 4 * MB, A);
        p.silent();
    }
}

#[test]
fn the_host_waited() {
    let mut p = block();
    take_back(&mut p, X);
    p.sync(B);
    hand_out(&mut p, X + 64 * MB, 4 * MB, A);
    p.silent();
}

#[test]
fn allocations_that_could_not_have_got_it() {
    let mut p = block();
    take_back(&mut p, X);
    // Another stream's pool, the pool of small blocks, more bytes than there are.
    hand_out(&mut p, X + 64 * MB, 4 * MB, B);
    hand_out(&mut p, X + 80 * MB, 4096, A);
    hand_out(&mut p, X + 96 * MB, 32 * MB, A);
    p.silent();
}

#[test]
fn real_reuse_is_an_ordinary_race() {
    let mut p = block();
    take_back(&mut p, X);
    hand_out(&mut p, X, 16 * MB, A);
    p.silent();
    p.go(A, X, &[writes(0, Shape::Exact(0, 16 * MB))]);
    assert_eq!(kinds(&mut p), ["race write-after-read certain"]);
}

fn begin_capture(p: &mut Program) {
    p.does("cudaStreamBeginCapture", Op::CaptureStart { capture: trace::CaptureId(1), stream: BLOCKING });
}

fn end_capture(p: &mut Program) {
    p.does("cudaStreamEndCapture", Op::CaptureDone { stream: BLOCKING });
}

#[test]
fn nothing_is_judged_while_a_stream_is_captured() {
    let mut p = block();
    begin_capture(&mut p);
    take_back(&mut p, X);
    end_capture(&mut p);
    hand_out(&mut p, X + 64 * MB, 4 * MB, A);
    p.silent();
}

#[test]
fn nor_while_a_stream_without_a_name_is() {
    let mut p = block();
    p.does("cudaStreamBeginCapture", Op::CaptureChanged { capture: trace::CaptureId(1) });
    take_back(&mut p, X);
    p.does("cudaStreamEndCapture", Op::CaptureDone { stream: StreamId::NONE });
    hand_out(&mut p, X + 64 * MB, 4 * MB, A);
    p.silent();
}

#[test]
fn a_block_is_judged_again_when_the_capture_has_ended() {
    let mut p = block();
    begin_capture(&mut p);
    end_capture(&mut p);
    take_back(&mut p, X);
    hand_out(&mut p, X + 64 * MB, 4 * MB, A);
    assert_eq!(kinds(&mut p), ["freed-without-record_stream write-after-read certain"]);
}

/// Of a capture that ends in an error only its start is told; its stream works again.
#[test]
fn and_when_a_capture_has_failed() {
    let mut p = block();
    begin_capture(&mut p);
    p.go(BLOCKING, X + 128 * MB, &[reads(0, Shape::Exact(0, 4))]);
    take_back(&mut p, X);
    hand_out(&mut p, X + 64 * MB, 4 * MB, A);
    assert_eq!(kinds(&mut p), ["freed-without-record_stream write-after-read certain"]);
}

#[test]
fn a_segment_that_goes_takes_its_blocks_along() {
    let mut p = block();
    take_back(&mut p, X);
    p.free(X, FreeKind::Plain, StreamId(0));
    p.malloc(X + 512 * MB, 64 * MB);
    hand_out(&mut p, X + 512 * MB, 4 * MB, A);
    assert!(kinds(&mut p).iter().all(|kind| !kind.starts_with("freed-without")));
}

#[test]
fn launches_in_flight_are_reported_when_the_context_dies() {
    let mut p = Program::new();
    p.malloc(X, MB);
    let kernel = p.kernel("poke", &[writes(0, Shape::Exact(0, 4))]);
    p.line(20).launch(A, kernel, &[X]);
    p.sync(A);
    for _ in 0..3 {
        p.line(30).launch(A, kernel, &[X]);
    }
    p.line(40).does("cuCtxSynchronize", Op::Failed { result: 700, stream: StreamId(0) });
    let faults = p.outcome().faults;
    let [fault] = &faults[..] else { panic!("{faults:#?}") };
    let [running] = &fault.running[..] else { panic!("{fault:#?}") };
    assert_eq!((fault.result, running.total, running.oldest[0].count), (700, 3, 3));
    assert_eq!(running.oldest[0].stack[0].line, Some(30));
    assert_eq!(running.oldest[0].kernel, "poke(float*, int)");
    // When every launch is waited for, the last one is the cause.
    let mut p = Program::new();
    p.malloc(X, MB);
    let kernel = p.kernel("poke", &[writes(0, Shape::Exact(0, 4))]);
    p.line(20).launch(A, kernel, &[X]);
    p.line(21).launch(A, kernel, &[X]);
    p.does("cuLaunchKernel", Op::Failed { result: 710, stream: A });
    let fault = p.outcome().faults.remove(0);
    assert_eq!(fault.culprit.expect("known").stack[0].line, Some(21));
    assert!(fault.running.is_empty());
}

#[test]
fn a_library_s_own_launches_are_its_business() {
    let mut p = Program::new();
    p.malloc(X, MB);
    let kernel = p.kernel("ncclDevKernel", &[writes(0, Shape::Exact(0, 4))]);
    let params: Vec<u8> = X.to_le_bytes().to_vec();
    for stream in [A, B] {
        let flags = trace::launch_flags::INSIDE_LIBRARY;
        p.does("cuLaunchKernel", launch_with(stream, kernel, flags, &params));
    }
    p.silent();
}

#[test]
fn memory_mapped_in_pieces_is_reported_as_one() {
    // PyTorch's expandable segments: a block lies over several mappings. A piece without overlap is
    // not reported.
    let cases = [(false, 3 * N, Some(3 * N)), (false, N + 8, Some(2 * N)), (true, 3 * N, None)];
    for (ordered, second, first) in cases {
        let mut p = Program::new();
        (0..4).for_each(|i| p.alloc(X + i * N, N, MemoryKind::Mapped));
        p.alloc(X, 3 * N, MemoryKind::Block);
        p.line(40).set(A, X, 3 * N);
        if ordered {
            p.order(A, B);
        }
        p.line(50).set(B, X, second);
        match first {
            Some(first) => {
                let f = p.finds("write-after-write certain");
                assert_eq!((f.from, f.to, f.count), (0, second, 1));
                let side = |s: &Side| (s.from, s.to);
                assert_eq!((side(&f.previous), side(&f.access)), ((0, first), (0, second)));
            }
            None => p.silent(),
        }
    }
}

#[test]
fn a_bound_over_several_mappings_meets_what_lies_in_the_later_ones() {
    for (second, verdict) in [(X + 2 * N + 64, Some("write-after-write likely")), (X + 3 * N, None)] {
        let mut p = Program::new();
        (0..4).for_each(|i| p.alloc(X + i * N, N, MemoryKind::Mapped));
        p.alloc(X, 3 * N, MemoryKind::Block);
        p.alloc(X + 3 * N, N, MemoryKind::Block);
        // The bound reaches into the next block, about which it says nothing.
        p.line(40).go(A, X, &[writes(0, Shape::Bound(0, 4 * N))]);
        p.line(50).go(B, second, &[writes(0, Shape::Exact(0, 64))]);
        match verdict {
            Some(verdict) => {
                p.finds(verdict);
            }
            None => p.silent(),
        }
    }
}
