//! Checks under assumptions: another default stream, synchronisations that are left out.

use crate::support::*;
use analysis::AnalysisOptions;
use settings::{Assumptions, DefaultStream};
use trace::*;

const WHOLE: Shape = Shape::Exact(0, 1024);
const PER_THREAD: StreamId = StreamId(9);

fn with(default_stream: Option<DefaultStream>, without: &[&str]) -> Program {
    let without = without.iter().map(|word| (*word).to_owned()).collect();
    let assumptions = Assumptions { default_stream, without }.keep();
    Program::with(AnalysisOptions { assumptions, ..AnalysisOptions::default() })
}

/// A writer and a reader on two streams with an event between them.
fn ordered(without: &[&str]) -> Program {
    let mut p = with(None, without);
    p.malloc(X, 1024);
    p.go(A, X, &[writes(0, WHOLE)]);
    p.order(A, B);
    p.go(B, X, &[reads(0, WHOLE)]);
    p
}

#[test]
fn a_wait_is_left_out_by_line_by_function_and_by_kind() {
    for word in ["app.cu:14", "/home/me/app.cu:14", "cudaStreamWaitEvent", "run", "stream-wait"] {
        let mut p = ordered(&[word]);
        p.finds("read-after-write certain");
        assert_eq!(p.report().coverage.assumed, [format!("without {word}: 1 synchronisation left out")]);
    }
}

#[test]
fn what_is_not_named_stays() {
    for word in ["app.cu:15", "cudaStreamSynchronize", "other", "device-sync"] {
        let mut p = ordered(&[word]);
        p.silent();
        let line = format!("without {word}: nothing that synchronises is called so");
        assert_eq!(p.report().coverage.assumed, [line]);
    }
    assert!(ordered(&[]).report().coverage.assumed.is_empty());
}

#[test]
fn a_blocking_copy_stays_a_copy() {
    let run = |without: &[&str]| {
        let mut p = with(None, without);
        p.malloc(X, 1024);
        let (dst, src) = (Region::linear(X, 1024), Region::linear(PINNED, 1024));
        p.alloc(PINNED, 1024, MemoryKind::PinnedHost);
        let op = Op::Copy { stream: A, dst, src, dst_space: H2D.0, src_space: H2D.1, asynchronous: false, batch: 0 };
        p.does("cudaMemcpy", op);
        p.go(B, X, &[reads(0, WHOLE)]);
        p
    };
    run(&[]).silent();
    run(&["blocking-copy"]).finds("read-after-write certain");
}

#[test]
fn queries_of_a_stream_mean_what_they_meant() {
    // The wait takes a time of its stream, which the query counts.
    let run = |without: &[&str]| {
        let mut p = with(None, without);
        p.malloc(X, 4096);
        p.go(A, X, &[writes(0, WHOLE)]);
        p.order(A, B);
        let at = |time| Epoch { timeline: TimelineId(2), time };
        p.at(at(2)).go(B, X + 2048, &[writes(0, WHOLE)]);
        p.at(at(3)).go(B, X + 3072, &[writes(0, WHOLE)]);
        p.at(Epoch::default());
        p.does("cudaStreamQuery", Op::StreamIdle { stream: B, upto: 2 });
        p
    };
    for without in [&[][..], &["stream-wait"]] {
        let mut p = run(without);
        p.go(A, X + 2048, &[writes(0, WHOLE)]);
        p.silent();
        let mut p = run(without);
        p.go(A, X + 3072, &[writes(0, WHOLE)]);
        p.finds("write-after-write certain");
    }
}

/// A kernel on the legacy default stream, then one on a blocking stream that reads its result.
fn default_stream(kind: Option<DefaultStream>) -> Program {
    let mut p = with(kind, &[]);
    p.malloc(X, 1024);
    p.go(LEGACY, X, &[writes(0, WHOLE)]);
    p.go(BLOCKING, X, &[reads(0, WHOLE)]);
    p
}

#[test]
fn blocking_streams_wait_for_a_legacy_stream_only() {
    default_stream(None).silent();
    default_stream(Some(DefaultStream::Legacy)).silent();
    let finding = default_stream(Some(DefaultStream::PerThread)).finds("read-after-write certain");
    assert!(finding.previous.stream.long.contains("default"), "{:?}", finding.previous.stream);
    default_stream(Some(DefaultStream::NonBlocking)).finds("read-after-write certain");
    for kind in [DefaultStream::PerThread, DefaultStream::NonBlocking] {
        let assumed = default_stream(Some(kind)).report().coverage.assumed;
        assert_eq!(assumed, [format!("the default stream is {} (1 operation on it)", kind.word())]);
    }
}

#[test]
fn synchronising_the_default_stream_still_does() {
    for kind in DefaultStream::ALL {
        let mut p = with(Some(kind), &[]);
        p.malloc(X, 1024);
        p.go(LEGACY, X, &[writes(0, WHOLE)]);
        p.sync(LEGACY);
        p.go(A, X, &[reads(0, WHOLE)]);
        p.silent();
    }
}

/// Two threads, each with its per-thread default stream: one writes, the other reads.
fn per_thread(kind: Option<DefaultStream>) -> Program {
    let mut p = with(kind, &[]);
    p.malloc(X, 1024);
    let own =
        |stream| Op::StreamCreate { stream, context: CONTEXT, kind: StreamKind::PerThread, priority: 0, handle: 0 };
    p.does("cuStreamQuery", own(PER_THREAD));
    p.does("cuStreamQuery", own(StreamId(10)));
    p.go(PER_THREAD, X, &[writes(0, WHOLE)]);
    p.go(StreamId(10), X, &[reads(0, WHOLE)]);
    p
}

#[test]
fn per_thread_streams_become_one_legacy_stream() {
    per_thread(None).finds("read-after-write certain");
    per_thread(Some(DefaultStream::PerThread)).finds("read-after-write certain");
    per_thread(Some(DefaultStream::Legacy)).silent();
}
