//! Hints: each one with a program that gets it and a twin that does not.

use crate::support::*;
use analysis::AnalysisOptions;
use report::format::{json, text};
use settings::Judging;
use trace::*;

fn program() -> Program {
    Program::with(AnalysisOptions { judging: Judging { hints: true, ..Default::default() }, ..Default::default() })
}

fn event(p: &mut Program, event: u32) -> EventId {
    p.does("cuEventCreate", Op::EventCreate { event: EventId(event), context: CONTEXT, flags: 0, handle: 0 });
    EventId(event)
}

fn hints(p: &mut Program) -> Vec<(&'static str, u64)> {
    p.outcome().hints.iter().map(|h| (h.kind.name(), h.count)).collect()
}

fn kernel(p: &mut Program, stream: StreamId) {
    p.go(stream, X, &[]);
}

#[test]
fn waiting_for_an_event_never_recorded() {
    let mut p = program();
    let e = event(&mut p, 1);
    p.line(20).wait(A, e);
    p.line(20).wait(A, e);
    assert_eq!(hints(&mut p), [("wait-never-recorded", 2)], "one call site");

    let mut p = program();
    let e = event(&mut p, 1);
    p.record(e, B);
    p.wait(A, e);
    assert_eq!(hints(&mut p), []);
}

#[test]
fn events_of_others_are_left_alone() {
    let mut p = program();
    // Used before its creation was seen; shared with other processes.
    p.does("cuStreamWaitEvent", Op::EventCreate { event: EventId(1), context: CONTEXT, flags: 0, handle: 0 });
    p.does("cuEventCreate", Op::EventCreate { event: EventId(2), context: CONTEXT, flags: 4 | 2, handle: 0 });
    p.wait(A, EventId(1));
    p.wait(A, EventId(2));
    p.record(EventId(2), A);
    assert_eq!(hints(&mut p), []);
}

#[test]
fn an_event_without_a_wait() {
    let mut p = program();
    let e = event(&mut p, 1);
    p.line(20).record(e, A);
    p.line(20).record(e, A);
    p.does("cuEventDestroy", Op::EventDestroy { event: e });
    let e = event(&mut p, 2);
    p.line(30).record(e, A);
    assert_eq!(
        hints(&mut p),
        [("event-never-waited-for", 1), ("event-never-waited-for", 1)],
        "destroyed, and at the end"
    );

    // Any use of it is enough: a wait, a synchronisation, a query (or the time between two events).
    let mut p = program();
    let [a, b, c] = [1, 2, 3].map(|i| event(&mut p, i));
    p.record(a, A);
    p.record(b, A);
    p.record(c, A);
    p.wait(B, a);
    let (sync, scope) = (SyncId(1), SyncScope::Event);
    p.does("cuEventSynchronize", Op::SyncBegin { sync, scope, stream: StreamId(0), event: b, context: ContextId(0) });
    p.does("cuEventSynchronize", Op::SyncEnd { sync });
    p.does("cuEventElapsedTime", Op::EventReached { event: c, record: 1 });
    p.record(a, A);
    assert_eq!(hints(&mut p), [], "loops end with a last record that is not needed");
}

#[test]
fn an_event_recorded_again_while_it_is_needed() {
    let mut p = program();
    let e = event(&mut p, 1);
    p.line(20).record(e, A);
    p.line(21).record(e, B);
    p.wait(BLOCKING, e);
    assert_eq!(hints(&mut p), [("event-recorded-again", 1)]);
    let hint = &program_text(|p| {
        let e = event(p, 1);
        p.line(20).record(e, A);
        p.line(21).record(e, B);
        p.wait(BLOCKING, e);
    });
    assert!(hint.contains("before anything had waited for its record on stream 1"), "{hint}");
    assert!(hint.contains("app.cu:21") && hint.contains("before that at") && hint.contains("app.cu:20"), "{hint}");

    // Waited for in between; on one stream; covered by the new record; never waited for at all.
    let mut p = program();
    let [e, f, g] = [1, 2, 3].map(|i| event(&mut p, i));
    p.record(e, A);
    p.wait(B, e);
    p.record(e, B);
    p.wait(BLOCKING, e);
    p.record(f, A);
    p.record(f, A);
    p.wait(B, f);
    p.record(g, A);
    p.order(A, B);
    p.record(g, B);
    p.wait(BLOCKING, g);
    assert_eq!(hints(&mut p), []);
}

#[test]
fn a_kernel_on_the_legacy_stream_among_non_blocking_ones() {
    let mut p = program();
    kernel(&mut p, A);
    kernel(&mut p, B);
    p.line(30);
    kernel(&mut p, LEGACY);
    assert_eq!(hints(&mut p), [("legacy-stream-kernel", 1)]);

    let mut p = program();
    kernel(&mut p, A);
    kernel(&mut p, A);
    kernel(&mut p, LEGACY);
    kernel(&mut p, BLOCKING);
    assert_eq!(hints(&mut p), [], "blocking streams work with the legacy stream");

    let mut p = program();
    kernel(&mut p, A);
    kernel(&mut p, LEGACY);
    kernel(&mut p, LEGACY);
    assert_eq!(hints(&mut p), [], "a program that mostly lives there (PyTorch) means it");
}

fn program_text(build: impl FnOnce(&mut Program)) -> String {
    let mut p = program();
    build(&mut p);
    text::report(&p.report(), text::Style::default(), 50)
}

#[test]
fn hints_are_listed_apart_and_fail_nothing() {
    let printed = program_text(|p| {
        let e = event(p, 1);
        p.line(20).wait(A, e);
    });
    let hint = "streamsan: HINT: Stream 1 (non-blocking, created at app.cu:2) waits for an event that was never recorded: CUDA takes \
                it for done, the wait does nothing.\n    #0  run(float*, int)";
    assert!(printed.starts_with(hint), "{printed}");
    assert!(printed.contains("SUMMARY: 0 findings"), "{printed}");

    let mut p = program();
    let e = event(&mut p, 1);
    p.wait(A, e);
    let report = p.report();
    assert_eq!(report::gate::ending::of_run(&report, 66, false).code(), 0);
    let value = json::report(&report);
    assert_eq!(value["summary"]["findings"], 0);
    assert_eq!(value["hints"][0]["kind"], "wait-never-recorded");
    assert!(value["hints"][0]["stack"].as_array().is_some_and(|s| !s.is_empty()));

    let mut p = Program::new();
    let e = event(&mut p, 1);
    p.wait(A, e);
    assert!(p.outcome().hints.is_empty(), "off by default");
}

/// A captured upload from a vector, which may be gone at the next launch.
#[test]
fn a_graph_that_copies_from_pageable_memory() {
    let copies = |dst: u64, src: u64, spaces: (Space, Space), launches: bool| {
        let mut p = program();
        p.malloc(X, 4096);
        p.malloc(X + 4096, 4096);
        p.alloc(PINNED, 4096, MemoryKind::PinnedHost);
        let exec = GraphExecId(1);
        p.does("cudaGraphInstantiate", Op::GraphExec { exec, nodes: 1, flags: 0, handle: 0 });
        let op = Op::Copy {
            stream: StreamId::NONE,
            dst: Region::linear(dst, 64),
            src: Region::linear(src, 64),
            dst_space: spaces.0,
            src_space: spaces.1,
            asynchronous: true,
            batch: 0,
        };
        let (mut body, call) = ([0; 256], p.call("cuMemcpyHtoDAsync"));
        let mut to = Encoder::new(&mut body);
        op.encode(&mut to);
        let len = to.finish().expect("fits");
        let (dependencies, tag, body) = (trace::codec::List::new(&[]), op.tag(), &body[..len]);
        let (index, stack, enabled) = (0, StackId(60), true);
        p.raw(Op::GraphNode { exec, index, stack, call, enabled, dependencies, tag, body });
        for _ in 0..2 * u32::from(launches) {
            p.does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec });
        }
        hints(&mut p)
    };
    assert_eq!(copies(X, PAGEABLE, H2D, true), [("graph-pageable-memory", 2)]);
    assert_eq!(copies(PAGEABLE, X, D2H, true), [("graph-pageable-memory", 2)]);
    assert_eq!(copies(X, PAGEABLE, H2D, false), []);
    assert_eq!(copies(X, PINNED, H2D, true), []);
    assert_eq!(copies(PINNED, X, D2H, true), []);
    assert_eq!(copies(X, X + 4096, D2D, true), []);
}

/// One channel of PyTorch's signal pads on two streams.
#[test]
fn a_signal_pad_that_two_streams_use_without_order() {
    let found = |kernel: &str, other: u64, ordered: bool| {
        let mut p = program();
        p.malloc(X, 4096);
        p.does("cudaIpcGetMemHandle", Op::SharedMemory { ptr: X, key: &[7; 64] });
        let kernel = p.kernel(kernel, &[atomics(0, Shape::Exact(0, 4))]);
        p.launch(A, kernel, &[X]);
        if ordered {
            p.order(A, B);
        }
        p.launch(B, kernel, &[X + other]);
        hints(&mut p)
    };
    const BARRIER: &str = "_ZN4c10d16symmetric_memory14barrier_kernelEPPjiiim";
    assert_eq!(found(BARRIER, 0, false), [("signal-pad", 1)]);
    assert_eq!(found(BARRIER, 0, true), []);
    // Another channel, and words that are no signals.
    assert_eq!(found(BARRIER, 8, false), []);
    assert_eq!(found("_Z7countedPj", 0, false), []);
}
