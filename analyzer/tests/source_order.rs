//! When batched copies read their sources: each access order, each kind of source, each kind of
//! writer before and after, with and without a wait of the host between.

use crate::support::{A, B, PINNED, Program, Shape, X, writes};
use trace::{EventId, MemoryKind, Op, Region, SourceOrder, Space};

const N: u64 = 4096;
/// Where the copies go to, and where what they read comes from.
const TO: u64 = X + (1 << 30);
const FROM: u64 = X + (2 << 30);
const ORDERS: [SourceOrder; 3] = [SourceOrder::Stream, SourceOrder::DuringCall, SourceOrder::Any];

/// Who writes the source.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Writer {
    Copy,
    Fill,
    Kernel,
}

/// What lies between the write and the call, or between the call and the write.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Between {
    Nothing,
    HostWait,
}

fn program(kind: MemoryKind) -> (Program, u64) {
    let mut p = Program::new();
    let source = if kind == MemoryKind::Device { X } else { PINNED };
    p.malloc(TO, N);
    p.malloc(FROM, N);
    p.alloc(source, N, kind);
    (p, source)
}

fn write(p: &mut Program, writer: Writer, stream: trace::StreamId, source: u64) {
    match writer {
        Writer::Copy => p.copy(stream, source, FROM, N, (Space::Unified, Space::Unified)),
        Writer::Fill => p.set(stream, source, N),
        Writer::Kernel => p.go(stream, source, &[writes(0, Shape::Exact(0, N))]),
    }
}

fn batched(p: &mut Program, source: u64, order: SourceOrder) {
    let (dst, src) = (Region::linear(TO, N), Region::linear(source, N));
    let (dst_space, src_space) = (Space::Unified, Space::Unified);
    let op = match order {
        SourceOrder::Stream => Op::Copy { stream: A, dst, src, dst_space, src_space, asynchronous: true, batch: 7 },
        source => Op::AttributedCopy { stream: A, dst, src, dst_space, src_space, batch: 7, source },
    };
    p.does("cudaMemcpyBatchAsync", op);
}

fn cases() -> impl Iterator<Item = (SourceOrder, MemoryKind, Writer, Between)> {
    let kinds = [MemoryKind::PinnedHost, MemoryKind::Device, MemoryKind::Managed, MemoryKind::RegisteredHost];
    ORDERS.into_iter().flat_map(move |order| {
        kinds.into_iter().flat_map(move |kind| {
            [Writer::Copy, Writer::Fill, Writer::Kernel].into_iter().flat_map(move |writer| {
                [Between::Nothing, Between::HostWait].into_iter().map(move |between| (order, kind, writer, between))
            })
        })
    })
}

#[test]
fn a_source_races_with_what_its_order_does_not_wait_for() {
    let (mut racy, mut silent) = (0, 0);
    for case @ (order, kind, writer, between) in cases() {
        for other_stream in [false, true] {
            let (mut p, source) = program(kind);
            write(&mut p, writer, if other_stream { B } else { A }, source);
            if other_stream {
                // The stream of the copy waits, which the read of the source need not.
                p.order(B, A);
            }
            if between == Between::HostWait {
                p.sync(A);
            }
            batched(&mut p, source, order);
            if order != SourceOrder::Stream && between == Between::Nothing {
                racy += 1;
                let found = p.finds("read-after-write certain");
                assert!(!found.synchronisation.missing.is_empty(), "{case:?}");
            } else {
                silent += 1;
                p.silent();
            }
        }
    }
    assert_eq!((racy, silent), (48, 96));
}

#[test]
fn a_source_is_free_when_its_order_says_so() {
    let (mut racy, mut silent) = (0, 0);
    for (order, kind, writer, between) in cases() {
        let (mut p, source) = program(kind);
        batched(&mut p, source, order);
        if between == Between::HostWait {
            p.sync(A);
        }
        write(&mut p, writer, B, source);
        // With `DuringApiCall` the source has been read when the call returns.
        if order != SourceOrder::DuringCall && between == Between::Nothing {
            racy += 1;
            p.finds("write-after-read certain");
        } else {
            silent += 1;
            p.silent();
        }
    }
    assert_eq!((racy, silent), (24, 48));
}

/// The target is written in stream order, whatever the order of the source.
#[test]
fn the_target_follows_the_stream() {
    for order in ORDERS {
        for waits in [false, true] {
            let (mut p, source) = program(MemoryKind::PinnedHost);
            write(&mut p, Writer::Fill, A, TO);
            batched(&mut p, source, order);
            p.silent();
            let event = EventId(9);
            p.record(event, A);
            if waits {
                p.wait(B, event);
            }
            write(&mut p, Writer::Fill, B, TO);
            if waits { p.silent() } else { drop(p.finds("write-after-write certain")) }
        }
    }
}
