//! The behaviours that PyTorch publishes for its CUDA Sanitizer (`test/test_cuda_sanitizer.py`, the
//! tests of its event handler) that concern accesses, each as a scenario of its own. Those that
//! concern order alone are in `order/tests/csan.rs`.

use crate::support::*;
use trace::*;

const Y: u64 = X + (1 << 20);

fn memory() -> Program {
    let mut p = Program::new();
    for address in [X, Y] {
        p.malloc(address, 4096);
    }
    p
}

fn all(verb: fn(u32, Shape) -> Does) -> Does {
    verb(0, Shape::Exact(0, 4096))
}

fn write(p: &mut Program, stream: StreamId, address: u64) {
    p.go(stream, address, &[all(writes)]);
}

fn read(p: &mut Program, stream: StreamId, address: u64) {
    p.go(stream, address, &[all(reads)]);
}

/// Empty launch, simple passing: kernels without memory, or with memory of their own, do not race.
#[test]
fn launches_that_share_nothing() {
    let mut p = memory();
    let empty = p.kernel("empty", &[]);
    p.launch(A, empty, &[]);
    p.launch(B, empty, &[]);
    write(&mut p, A, X);
    write(&mut p, B, Y);
    p.silent();
}

/// Simple error, simple sync.
#[test]
fn one_event_decides() {
    for mended in [false, true] {
        let mut p = memory();
        write(&mut p, A, X);
        if mended {
            p.order(A, B);
        }
        write(&mut p, B, X);
        if mended { p.silent() } else { drop(p.finds("write-after-write certain")) }
    }
}

/// Reads check: many may read what one has written, if all have waited for it. The next writer must
/// have waited for the readers.
#[test]
fn readers_do_not_race_with_readers() {
    let mut p = memory();
    write(&mut p, A, X);
    p.order(A, B);
    p.order(A, BLOCKING);
    read(&mut p, A, X);
    read(&mut p, B, X);
    read(&mut p, BLOCKING, X);
    p.silent();
    write(&mut p, A, X);
    let found = p.findings();
    assert_eq!(found.len(), 2, "both readers: {:?}", p.verdict());
    assert!(found.iter().all(|f| f.hazard.name() == "write-after-read"));
}

/// All reads checked, failing and passing: the writer waits for the last reader, and for the first
/// one too or not.
#[test]
fn every_reader_counts_not_only_the_last() {
    for both in [false, true] {
        let mut p = memory();
        read(&mut p, A, X);
        read(&mut p, B, X);
        p.order(B, BLOCKING);
        if both {
            p.order(A, BLOCKING);
        }
        write(&mut p, BLOCKING, X);
        if both { p.silent() } else { assert_eq!(p.finds("write-after-read certain").previous.stream.id, A.0) }
    }
}

/// Multiple errors: one launch races for each of its arguments.
#[test]
fn one_launch_may_race_twice() {
    let mut p = memory();
    write(&mut p, A, X);
    write(&mut p, A, Y);
    let kernel = p.kernel("two", &[0, 8].map(|parameter| writes(parameter, Shape::Exact(0, 4096))));
    p.launch(B, kernel, &[X, Y]);
    assert_eq!(p.verdict(), ["write-after-write certain", "write-after-write certain"]);
}

/// Multiple wait: one record serves many waits, and waiting twice changes nothing.
#[test]
fn one_record_serves_all_who_wait() {
    let mut p = memory();
    write(&mut p, A, X);
    let event = EventId(90);
    p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 0, handle: 0 });
    p.record(event, A);
    for stream in [B, B, BLOCKING] {
        p.wait(stream, event);
    }
    read(&mut p, B, X);
    read(&mut p, BLOCKING, X);
    p.silent();
    write(&mut p, A, Y);
    read(&mut p, B, Y);
    p.finds("read-after-write certain");
}
