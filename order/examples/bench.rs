//! Nanoseconds an op for some patterns of use.  `cargo run --release -p order --example bench`

use std::hint::black_box;
use std::time::Instant;

use order::{Engine, Policy};
use trace::*;

const T: ThreadId = ThreadId(1);
const CTX: ContextId = ContextId(1);

fn engine(streams: u32, kind: StreamKind) -> Engine {
    let mut e = Engine::new(Policy::Observed);
    e.apply(&Op::ContextCreate { context: CTX, device: 0, handle: 0 }, T);
    let legacy =
        Op::StreamCreate { stream: StreamId(1), context: CTX, kind: StreamKind::Legacy, priority: 0, handle: 0 };
    e.apply(&legacy, T);
    for i in 0..streams {
        e.apply(&Op::StreamCreate { stream: StreamId(i + 2), context: CTX, kind, priority: 0, handle: 0 }, T);
    }
    e
}

fn launch(stream: u32) -> Op<'static> {
    let shape = LaunchShape::new([1; 3], [1; 3]);
    Op::Launch { stream: StreamId(stream), kernel: KernelId(1), shape, params: &[] }
}

fn record(event: u32, stream: u32) -> Op<'static> {
    Op::EventRecord { event: EventId(event), stream: StreamId(stream), mode: EventMode::Plain }
}

fn wait(stream: u32, event: u32) -> Op<'static> {
    Op::StreamWait { stream: StreamId(stream), event: EventId(event), mode: EventMode::Plain }
}

fn sync(e: &mut Engine, scope: SyncScope, stream: u32) {
    let sync = SyncId(1);
    e.apply(&Op::SyncBegin { sync, scope, stream: StreamId(stream), event: EventId(1), context: CTX }, T);
    e.apply(&Op::SyncEnd { sync }, T);
}

/// Runs `body` (which says how many ops it did) for a while, prints the best of five.
fn measure(what: &str, streams: u32, mut body: impl FnMut() -> u64) {
    let mut best = f64::MAX;
    body();
    for _ in 0..5 {
        let (mut ops, start) = (0, Instant::now());
        while start.elapsed().as_millis() < 60 {
            ops += body();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / ops as f64);
    }
    println!("{what:<58} {streams:>5} streams {best:>8.1} ns/op");
}

fn main() {
    for n in [1, 32, 1024, 4096] {
        let mut e = engine(n, StreamKind::NonBlocking);
        measure("launch, always the same stream", n, || {
            for _ in 0..1000 {
                black_box(e.apply(&black_box(launch(2)), T));
            }
            1000
        });
        measure("launch and one question", n, || {
            for _ in 0..1000 {
                let at = e.apply(&black_box(launch(2)), T);
                black_box(e.start_clock().covers(Epoch { time: at.time - 1, ..at }));
            }
            1000
        });
        let mut e = engine(n, StreamKind::NonBlocking);
        measure("launch, round robin", n, || {
            for s in 0..n {
                black_box(e.apply(&black_box(launch(s + 2)), T));
            }
            u64::from(n)
        });
        let mut e = engine(n, StreamKind::NonBlocking);
        measure("record + wait, one pair of streams (per pair)", n, || {
            let (a, b) = (2, 2 + n.min(2) - 1);
            for _ in 0..500 {
                e.apply(&record(1, a), T);
                e.apply(&wait(b, 1), T);
                e.apply(&record(2, b), T);
                e.apply(&wait(a, 2), T);
            }
            1000
        });
        let mut e = engine(n, StreamKind::NonBlocking);
        measure("record + wait, neighbours in a ring (per pair)", n, || {
            for s in 0..n {
                e.apply(&record(s + 1, s + 2), T);
                e.apply(&wait((s + 1) % n + 2, s + 1), T);
            }
            u64::from(n)
        });
        let mut e = engine(n, StreamKind::NonBlocking);
        measure("fork, launch, join over all streams", n, || {
            e.apply(&record(1, 2), T);
            for s in 1..n {
                e.apply(&wait(s + 2, 1), T);
                e.apply(&launch(s + 2), T);
                e.apply(&record(s + 1, s + 2), T);
                e.apply(&wait(2, s + 1), T);
            }
            1 + 4 * u64::from(n - 1)
        });
        let mut e = engine(n, StreamKind::NonBlocking);
        measure("launch on all streams, synchronise the context", n, || {
            for s in 0..n {
                e.apply(&launch(s + 2), T);
            }
            sync(&mut e, SyncScope::Context, 0);
            u64::from(n) + 2
        });
        measure("launch on one stream, synchronise the context", n, || {
            for _ in 0..100 {
                e.apply(&launch(2), T);
                sync(&mut e, SyncScope::Context, 0);
            }
            300
        });
        measure("launch, record, wait, synchronise the stream", n, || {
            let b = 2 + n.min(2) - 1;
            for _ in 0..100 {
                e.apply(&launch(2), T);
                e.apply(&record(1, 2), T);
                e.apply(&wait(b, 1), T);
                sync(&mut e, SyncScope::Stream, b);
            }
            500
        });
        let mut e = engine(n, StreamKind::Blocking);
        measure("blocking streams, a legacy launch a round", n, || {
            for s in 0..n {
                e.apply(&launch(s + 2), T);
            }
            e.apply(&launch(1), T);
            u64::from(n) + 1
        });
        let mut e = engine(n, StreamKind::Blocking);
        measure("blocking streams, a legacy launch after each", n, || {
            for s in 0..n {
                e.apply(&launch(s + 2), T);
                e.apply(&launch(1), T);
            }
            2 * u64::from(n)
        });
        println!();
    }
}
