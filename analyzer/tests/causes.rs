//! Causes: findings that one wait would order are one cause, and the set of waits is tried.

use crate::support::*;
use report::model::{Outcome, SetCheck};
use trace::*;

const N: u64 = 4096;

fn write() -> [Does; 1] {
    [writes(0, Shape::Exact(0, N))]
}

fn read() -> [Does; 1] {
    [reads(0, Shape::Exact(0, N))]
}

/// Kinds of causes, places, and numbers of findings.
fn causes(outcome: &Outcome) -> Vec<(&str, &str, &str, usize)> {
    let of = |fingerprint: &str| outcome.findings.iter().filter(|f| f.cause == fingerprint).count();
    let list = outcome.causes.iter().map(|c| (c.kind.name(), &*c.after.at, &*c.before.at, of(&c.fingerprint)));
    list.collect()
}

fn check(outcome: &Outcome) -> &SetCheck {
    outcome.mended.as_ref().expect("a trial")
}

/// A set without which something races and with which nothing does.
fn mended(outcome: &Outcome, waits: u64) {
    let c = check(outcome);
    assert_eq!((c.waits, c.remain, c.fresh, c.blocked, &*c.skipped), (waits, 0, 0, 0, ""), "{c:?}");
    assert!(c.smallest, "{c:?}");
}

#[test]
fn findings_that_one_wait_orders_are_one_cause() {
    let mut p = Program::new();
    p.malloc(X, 4 * N);
    for n in 0..3 {
        p.line(20 + n).go(A, X + u64::from(n) * N, &write());
    }
    for n in 0..3 {
        p.line(30 + n).go(B, X + u64::from(n) * N, &read());
    }
    let outcome = p.outcome();
    assert_eq!(outcome.findings.len(), 3);
    assert_eq!(causes(&outcome), [("missing-wait", "app.cu:22", "app.cu:30", 3)]);
    mended(&outcome, 1);
    let [mend] = &outcome.causes[0].mend[..] else { panic!("{:?}", outcome.causes) };
    assert_eq!(mend.lines[0], "cudaEventRecord(event, stream_1);         // after app.cu:22");
    assert_eq!(mend.lines[1], "cudaStreamWaitEvent(stream_2, event, 0);  // before app.cu:30");
}

#[test]
fn work_between_the_two_needs_a_wait_of_its_own() {
    let mut p = Program::new();
    p.malloc(X, 4 * N);
    for n in 0..2 {
        p.line(20 + n).go(A, X + u64::from(n) * N, &write());
        p.line(30 + n).go(B, X + u64::from(n) * N, &read());
    }
    let outcome = p.outcome();
    let places = [("missing-wait", "app.cu:20", "app.cu:30", 1), ("missing-wait", "app.cu:21", "app.cu:31", 1)];
    let mut found = causes(&outcome);
    found.sort_unstable();
    assert_eq!(found, places);
    mended(&outcome, 2);
}

#[test]
fn an_ordered_program_has_no_cause() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.go(A, X, &write());
    p.order(A, B);
    p.go(B, X, &read());
    let outcome = p.outcome();
    assert!(outcome.causes.is_empty() && outcome.mended.is_none(), "{outcome:?}");
}

#[test]
fn an_order_that_is_there_counts() {
    // C waits for B. So a wait of B for A orders C as well.
    let mut p = Program::new();
    p.malloc(X, 4 * N);
    p.line(20).go(A, X, &write());
    p.line(30).go(B, X, &read());
    p.order(B, BLOCKING);
    p.line(40).go(BLOCKING, X, &read());
    let outcome = p.outcome();
    assert_eq!(causes(&outcome), [("missing-wait", "app.cu:20", "app.cu:30", 2)]);
    mended(&outcome, 1);
}

#[test]
fn a_loop_is_mended_where_its_lines_are() {
    let mut p = Program::new();
    p.malloc(X, N);
    let (fill, scale) = (p.kernel("fill", &write()), p.kernel("scale", &read()));
    for _ in 0..5 {
        p.line(20).launch(A, fill, &[X]);
        p.line(30).launch(B, scale, &[X]);
    }
    let outcome = p.outcome();
    let mut found = causes(&outcome);
    found.sort_unstable();
    let forth = ("missing-wait", "app.cu:20", "app.cu:30", 1);
    let back = ("missing-wait", "app.cu:30", "app.cu:20", 1);
    assert_eq!(found, [forth, back]);
    mended(&outcome, 2);
}

#[test]
fn an_event_that_is_recorded_already_is_waited_for() {
    let mut p = Program::new();
    p.malloc(X, N);
    let event = EventId(7);
    p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 0, handle: 0 });
    p.line(20).go(A, X, &write());
    p.line(21).record(event, A);
    p.line(30).go(B, X, &read());
    let outcome = p.outcome();
    mended(&outcome, 1);
    let lines = &outcome.causes[0].mend[0].lines;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with("// before app.cu:30, for the event that is recorded at app.cu:21"), "{lines:?}");
}

#[test]
fn an_event_that_is_recorded_elsewhere_in_between_does_not_serve() {
    let mut p = Program::new();
    p.malloc(X, N);
    let event = EventId(7);
    p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 0, handle: 0 });
    p.line(20).go(A, X, &write());
    p.line(21).record(event, A);
    p.line(22).record(event, BLOCKING);
    p.line(30).go(B, X, &read());
    let outcome = p.outcome();
    mended(&outcome, 1);
    assert_eq!(outcome.causes[0].mend[0].lines.len(), 2, "{:?}", outcome.causes[0].mend);
}

/// A kernel of 4 blocks of 256 threads that writes 4 bytes a thread, and the next chunk at `next`.
fn chunks(next: u64, bytes: u64) -> Outcome {
    let mut p = Program::new();
    p.line(11).malloc(X, 1 << 20);
    let kernel = p.kernel("fill", &[writes(0, Shape::Exact(0, bytes))]);
    let params = X.to_le_bytes();
    let shape = LaunchShape::new([4, 1, 1], [256, 1, 1]);
    let op = Op::Launch { stream: A, kernel, shape, params: &params };
    p.line(20).does("cudaLaunchKernel", op);
    p.line(30).copy(B, X + next, PINNED, 4000, H2D);
    p.outcome()
}

#[test]
fn a_kernel_that_runs_past_its_chunk_is_told_from_a_missing_wait() {
    let outcome = chunks(4000, 4096);
    assert_eq!(causes(&outcome), [("kernel-range", "app.cu:20", "app.cu:30", 1)]);
    let cause = &outcome.causes[0];
    assert!(cause.missing.contains("exceeds the memory that it was meant for by 96 bytes"), "{}", cause.missing);
    assert!(cause.mend[0].lines[0].starts_with("if (i < 1000) ..."), "{:?}", cause.mend);
    let c = check(&outcome);
    assert_eq!((c.waits, c.findings, c.remain), (0, 1, 1), "no wait is offered for it");
}

#[test]
fn a_halo_and_a_whole_block_too_many_are_missing_waits() {
    // 16 bytes of a halo; a neighbour more than a block inside; the same memory.
    for (next, bytes) in [(4096, 4096 + 16), (2048, 4096), (0, 4096)] {
        let outcome = chunks(next, bytes);
        assert_eq!(causes(&outcome), [("missing-wait", "app.cu:20", "app.cu:30", 1)], "{next} {bytes}");
        mended(&outcome, 1);
    }
}

/// A graph of two kernels that write and read the same bytes, captured on these streams in lines 50
/// and 51, with waits that the user wrote down.
fn captured(edge: bool, streams: &[StreamId], with: &str) -> Program {
    let mut p = Program::new();
    p.add_waits(&analysis::counterfactual::edits::written::read("w", with).expect("waits"));
    p.malloc(X, N);
    let (fill, scale) = (p.kernel("fill", &write()), p.kernel("scale", &read()));
    let before = if edge { vec![0] } else { vec![] };
    p.line(40).graph(GraphExecId(1), &[(50, fill, X, vec![]), (51, scale, X, before)], streams);
    p
}

fn launched(mut p: Program) -> Outcome {
    for _ in 0..3 {
        p.line(60).does("cudaGraphLaunch", Op::GraphLaunch { stream: BLOCKING, exec: GraphExecId(1) });
    }
    p.outcome()
}

#[test]
fn nodes_of_a_graph_are_ordered_by_a_wait_between_the_captured_streams() {
    let outcome = launched(captured(true, &[A, B], ""));
    assert!(outcome.findings.is_empty());
    let named = [
        "cuEventRecord(event, stream_1);         // after app.cu:50, inside the capture",
        "cuStreamWaitEvent(stream_2, event, 0);  // before app.cu:51, inside the capture",
    ];
    let unnamed = [
        "cuEventRecord(event, stream_of_first);          // after app.cu:50, inside the capture",
        "cuStreamWaitEvent(stream_of_second, event, 0);  // before app.cu:51, inside the capture",
    ];
    // Captured on two streams; on streams that an older trace does not tell; on one and the same.
    for (streams, lines) in
        [(&[A, B][..], &named[..]), (&[], &unnamed), (&[A, A], &["cuGraphAddDependencies(graph, &from, &to, ...);"])]
    {
        let outcome = launched(captured(false, streams, ""));
        assert_eq!(causes(&outcome), [("missing-graph-edge", "app.cu:50", "app.cu:51", 1)]);
        mended(&outcome, 1);
        assert_eq!(outcome.causes[0].mend[0].lines, lines);
        let own = outcome.findings[0].synchronisation.cuda().join("\n");
        assert_eq!(own.replace("the previous access, ", "").replace("this access, ", ""), lines.join("\n"));
    }
    let missing = launched(captured(false, &[A, B], "")).causes[0].missing.clone();
    let (then, first) = ("captured at app.cu:51 on stream 2", "captured at app.cu:50 on stream 1");
    assert_eq!(missing, format!("In the graph nothing makes what is {then} wait for what is {first}."));
}

#[test]
fn a_wait_between_captured_streams_that_the_user_wrote_down_orders_the_nodes() {
    for text in ["app.cu:50 -> app.cu:51", "fill -> scale"] {
        let outcome = launched(captured(false, &[A, B], text));
        assert!(outcome.findings.is_empty(), "{text}");
        let closing = report::format::closing::coverage(&report::Report::merge(vec![outcome], false));
        assert!(closing.contains(&format!("streamsan: WITH: {text} (w:1): 1 wait added\n")), "{closing}");
    }
    // The other way round, and from inside the capture to a place outside.
    for (text, why) in [
        ("app.cu:51 -> app.cu:50", "the second place always came before the first"),
        ("app.cu:50 -> app.cu:60", "only one of the two places is captured into a graph"),
    ] {
        let outcome = launched(captured(false, &[A, B], text));
        assert_eq!(outcome.findings.len(), 1, "{text}");
        let closing = report::format::closing::coverage(&report::Report::merge(vec![outcome], false));
        assert!(closing.contains(why), "{text}: {closing}");
    }
}

#[test]
fn work_beside_a_graph_waits_for_its_launch() {
    let mut p = captured(true, &[A, B], "");
    p.line(60).does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec: GraphExecId(1) });
    p.line(70).go(B, X, &read());
    let outcome = p.outcome();
    assert_eq!(causes(&outcome), [("missing-wait", "app.cu:60", "app.cu:70", 1)]);
    mended(&outcome, 1);
}

#[test]
fn lines_are_those_of_the_package_that_the_call_sites_use() {
    let to = "before this access, train.py:30";
    for (package, api, lines) in [
        (1000, "PyTorch", vec![format!("stream_2.wait_stream(stream_1)  # {to}")]),
        (
            2000,
            "CuPy",
            vec![
                "event = stream_1.record()   # after the previous access, train.py:20".into(),
                format!("stream_2.wait_event(event)  # {to}"),
            ],
        ),
        (3000, "JAX", vec![format!("jax.block_until_ready(result)  # {to}: JAX has no events of its own")]),
        (4000, "cuda.core", vec![format!("stream_2.wait(stream_1)  # {to}")]),
        (5000, "PyTorch", vec![format!("stream_2.wait_stream(stream_1)  # {to}")]),
        (
            6000,
            "Numba",
            vec![
                "event = cuda.event()    # from numba import cuda".into(),
                "event.record(stream_1)  # after the previous access, train.py:20".into(),
                format!("event.wait(stream_2)    # {to}"),
            ],
        ),
    ] {
        let mut p = Program::new();
        p.python();
        p.torch();
        p.malloc(X, N);
        p.line(package + 20).go(A, X, &write());
        p.line(package + 30).go(B, X, &read());
        let outcome = p.outcome();
        let s = &outcome.findings[0].synchronisation;
        assert_eq!((s.mend.len(), s.mend[0].api.name(), &s.mend[0].lines), (2, api, &lines));
        assert_eq!(s.mend[1].api.name(), "CUDA runtime");
        assert_eq!(s.torch().is_empty(), api != "PyTorch");
        let of_cause = &outcome.causes[0].mend;
        let without = |line: &String| line.replace("the previous access, ", "").replace("this access, ", "");
        assert_eq!(of_cause[0].lines, lines.iter().map(without).collect::<Vec<_>>(), "the cause says the same");
        let text = report::format::text::report(
            &report::Report::merge(vec![outcome], false),
            report::format::text::Style::default(),
            9,
        );
        let (python, cuda) = (text.find(&format!("  In {api}:")), text.find("  This would order them:"));
        assert!(python.is_some() && python < cuda, "{text}");
    }
}

#[test]
fn a_wait_for_a_value_behind_the_record_blocks_nothing() {
    let mut p = Program::new();
    let address = X + (1 << 20);
    p.malloc(X, N);
    p.malloc(address, 64);
    p.line(20).go(A, X, &write());
    let wait = Op::WaitValue { stream: A, address, value: 1, width: 4, compare: WaitCompare::Equal };
    p.line(21).does("cuStreamWaitValue32", wait);
    p.line(22).go(A, X + N / 2, &[writes(0, Shape::Exact(0, 16))]);
    p.line(30).go(B, X, &read());
    let value = Op::WriteValue { stream: B, address, value: 1, width: 4, barrier: true };
    p.line(31).does("cuStreamWriteValue32", value);
    let outcome = p.outcome();
    assert_eq!(causes(&outcome), [("missing-wait", "app.cu:20", "app.cu:30", 1)]);
    mended(&outcome, 1);
}

/// The program of two racing kernels in lines 20 and 30, with waits that the user wrote down.
fn with(text: &str) -> (Outcome, String) {
    let mut p = Program::new();
    p.add_waits(&analysis::counterfactual::edits::written::read("w", text).expect("waits"));
    p.malloc(X, N);
    let (fill, scale) = (p.kernel("fill", &write()), p.kernel("scale", &read()));
    p.line(20).launch(A, fill, &[X]);
    p.line(30).launch(B, scale, &[X]);
    let outcome = p.outcome();
    let closing = report::format::closing::coverage(&report::Report::merge(vec![outcome.clone()], false));
    (outcome, closing)
}

#[test]
fn waits_that_the_user_wrote_down_order_what_they_name() {
    for text in ["app.cu:20 -> app.cu:30", "fill -> scale", "app.cu:20 -> host scale"] {
        let (outcome, closing) = with(text);
        assert!(outcome.findings.is_empty(), "{text}");
        assert!(closing.contains(&format!("streamsan: WITH: {text} (w:1): 1 wait added\n")), "{closing}");
    }
}

#[test]
fn waits_that_order_nothing_say_why() {
    for (text, why) in [
        ("app.cu:30 -> app.cu:20", "the second place always came before the first"),
        ("app.cu:21 -> app.cu:30", "nothing was submitted at the first place"),
        ("app.cu:20 -> app.cu:31", "nothing was submitted at the second place"),
        ("nobody -> nowhere", "nothing was submitted at either place"),
    ] {
        let (outcome, closing) = with(text);
        assert_eq!(outcome.findings.len(), 1, "{text}");
        assert!(closing.contains(why), "{text}: {closing}");
        mended(&outcome, 1);
    }
}

#[test]
fn a_wait_that_would_never_end_is_said_to() {
    // A waits for a value that B writes behind its launch: B must not wait for A there.
    let mut p = Program::new();
    let address = X + (1 << 20);
    p.add_waits(&analysis::counterfactual::edits::written::read("w", "app.cu:22 -> app.cu:30").expect("waits"));
    p.malloc(X, N);
    p.malloc(address, 64);
    let wait = Op::WaitValue { stream: A, address, value: 1, width: 4, compare: WaitCompare::Equal };
    p.line(21).does("cuStreamWaitValue32", wait);
    p.line(22).go(A, X, &write());
    p.line(30).go(B, X + N, &read());
    let value = Op::WriteValue { stream: B, address, value: 1, width: 4, barrier: true };
    p.line(31).does("cuStreamWriteValue32", value);
    let outcome = p.outcome();
    assert_eq!((outcome.with[0].waits, outcome.with[0].blocked), (0, 1));
    let report = report::Report::merge(vec![outcome], false);
    let closing = report::format::closing::coverage(&report);
    assert!(closing.contains("a wait there might never end"), "{closing}");
}
