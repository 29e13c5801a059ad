//! What a report advises, and what it says of waits that are there: each kind in all its forms,
//! with the twin that must not get it.

use crate::support::*;
use report::format::text;
use report::words::FindingKind;
use trace::*;

const N: u64 = 1 << 21;

fn write() -> [Does; 1] {
    [writes(0, Shape::Exact(0, N))]
}

/// The interfaces that a finding's lines are in.
fn interfaces(p: &mut Program) -> Vec<&'static str> {
    let outcome = p.outcome();
    let of_finding: Vec<_> = outcome.findings[0].synchronisation.mend.iter().map(|mend| mend.api.name()).collect();
    let of_cause: Vec<_> = outcome.causes[0].mend.iter().map(|mend| mend.api.name()).collect();
    assert_eq!(of_finding, of_cause);
    of_finding
}

#[test]
fn pytorch_is_advised_only_where_it_is_loaded() {
    // Python's own line, then below CuPy, JAX, cuda.core, Triton and Numba.
    let packages = ["", "CuPy", "JAX", "cuda.core", "PyTorch", "Numba"];
    for (at, package) in packages.into_iter().enumerate() {
        for loaded in [false, true] {
            let mut p = Program::new();
            p.python();
            if loaded {
                p.torch();
            }
            p.malloc(X, N);
            p.line(1000 * (at as u32 + 1) + 20).go(A, X, &write());
            p.line(1000 * (at as u32 + 1) + 30).go(B, X, &write());
            let said = interfaces(&mut p);
            let expected = match (package, loaded) {
                ("", false) => vec!["CUDA runtime"],
                ("", true) => vec!["PyTorch", "CUDA runtime"],
                (package, _) => vec![package, "CUDA runtime"],
            };
            assert_eq!(said, expected, "{package} {loaded}");
        }
    }
}

/// A block of PyTorch's allocator is allocated on `owner`, used on `user`, freed, and handed out
/// again; then the new block is used on `next`.
fn reused(owner: StreamId, user: StreamId, next: StreamId) -> Program {
    let mut p = Program::new();
    p.python();
    let take = |p: &mut Program| {
        let (kind, pool) = (MemoryKind::Block, PoolId(0));
        let op = Op::Alloc { ptr: X, size: N, kind, context: CONTEXT, stream: owner, pool, flags: 0 };
        p.does("c10::cuda::CUDACachingAllocator", op);
    };
    p.malloc(X, 8 * N);
    p.line(1010);
    take(&mut p);
    if user != owner {
        p.order(owner, user);
    }
    p.line(1020).go(user, X, &write());
    let op = Op::Free { ptr: X, kind: FreeKind::Block, stream: StreamId(0) };
    p.line(1025).does("c10::cuda::CUDACachingAllocator", op);
    take(&mut p);
    p.line(1030).go(next, X, &write());
    p
}

#[test]
fn record_stream_is_advised_only_for_uses_on_other_streams_than_the_block_s() {
    for owner in [A, LEGACY] {
        for user in [A, B, LEGACY] {
            for next in [A, B, LEGACY, BLOCKING] {
                let mut p = reused(owner, user, next);
                let outcome = p.outcome();
                let ordered = user == next || [(LEGACY, BLOCKING), (BLOCKING, LEGACY)].contains(&(user, next));
                let case = format!("{owner:?} {user:?} {next:?}");
                if ordered {
                    assert!(outcome.findings.iter().all(|f| f.kind != FindingKind::Race), "{case}: {outcome:#?}");
                    continue;
                }
                let race =
                    outcome.findings.iter().find(|f| f.kind == FindingKind::Race).unwrap_or_else(|| panic!("{case}"));
                let lines = race.synchronisation.torch();
                let name = |stream: StreamId| match stream {
                    LEGACY => "torch.cuda.default_stream()".to_string(),
                    other => format!("stream_{}", other.0),
                };
                let cause = outcome.causes.iter().find(|cause| cause.fingerprint == race.cause).expect("a cause");
                if user == owner {
                    let wait = format!("{}.wait_stream({})  # before", name(next), name(user));
                    assert!(lines[0].starts_with(&wait), "{case}: {lines:?}");
                    assert!(cause.mend[0].lines[0].starts_with(&wait), "{case}: {cause:?}");
                    assert_eq!(cause.kind.name(), "missing-wait", "{case}");
                } else {
                    let keep = format!("tensor.record_stream({})  # before", name(user));
                    assert!(lines[0].starts_with(&keep), "{case}: {lines:?}");
                    assert_eq!(cause.kind.name(), "missing-record_stream", "{case}");
                }
            }
        }
    }
}

/// How the host waits for a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wait {
    Stream,
    Event,
    Query,
    StreamQuery,
}

/// The host waits for `stream` at line 41; events are recorded at line 40, `before` the copy that
/// the wait is about or behind it.
fn waits(p: &mut Program, how: Wait, stream: StreamId) {
    let (event, context) = (EventId(7), ContextId(0));
    match how {
        Wait::Stream | Wait::Event => {
            let sync = SyncId(p.id());
            let (name, begin) = match how {
                Wait::Stream => {
                    let event = EventId(0);
                    ("cudaStreamSynchronize", Op::SyncBegin { sync, scope: SyncScope::Stream, stream, event, context })
                }
                _ => {
                    let stream = StreamId::NONE;
                    ("cudaEventSynchronize", Op::SyncBegin { sync, scope: SyncScope::Event, stream, event, context })
                }
            };
            p.line(41).does(name, begin);
            p.line(41).does(name, Op::SyncEnd { sync });
        }
        Wait::Query => p.line(41).does("cudaEventQuery", Op::EventReached { event, record: 1 }),
        Wait::StreamQuery => p.line(41).does("cudaStreamQuery", Op::StreamIdle { stream, upto: 1 }),
    }
}

/// A copy to the host on stream A at line 30 that the host reads at line 50, after a wait for
/// another stream, for the right one too early, or for the right one.
fn read_by_the_host(how: Wait, stream: StreamId, early: bool, thread: u32) -> Program {
    let mut p = Program::new();
    p.malloc(X, 2 * N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    let event = EventId(7);
    let has_event = matches!(how, Wait::Event | Wait::Query);
    if has_event {
        p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 0, handle: 0 });
    }
    p.set(A, X, 64);
    p.set(B, X + N, 64);
    if has_event && early {
        p.line(29).record(event, stream);
    }
    p.line(30).copy(A, PINNED, X, N, D2H);
    p.does(
        "cudaMemcpyAsync",
        Op::HostWatch {
            watch: 1,
            stream: A,
            exec: GraphExecId::NONE,
            node: 0,
            region: Region::linear(PINNED, N),
            writes: true,
        },
    );
    if has_event && !early {
        p.line(40).record(event, stream);
    }
    p.thread(thread);
    waits(&mut p, how, stream);
    p.thread(1).line(50);
    p.does("", Op::HostAccess { watch: 1, start: PINNED, end: PINNED + 8, writes: false, in_the_act: true });
    p
}

#[test]
fn a_wait_of_the_host_for_another_stream_is_named() {
    for (how, said) in [
        (Wait::Stream, "The host waited for stream 2 at app.cu:41, not for stream 1."),
        (
            Wait::Event,
            "The host waited for stream 2 at app.cu:41, for an event recorded at app.cu:40, not for stream 1.",
        ),
        (
            Wait::Query,
            "The host asked about stream 2 at app.cu:41, for an event recorded at app.cu:40, not about stream 1.",
        ),
        (Wait::StreamQuery, "The host asked about stream 2 at app.cu:41, not about stream 1."),
    ] {
        let f = read_by_the_host(how, B, false, 1).finds("read-after-write certain");
        assert!(f.synchronisation.facts.iter().any(|fact| fact == said), "{how:?}: {:?}", f.synchronisation);
        // By another host thread: it tells this one nothing.
        let f = read_by_the_host(how, B, false, 2).finds("read-after-write certain");
        assert!(!f.synchronisation.facts.iter().any(|fact| fact.starts_with("The host")), "{:?}", f.synchronisation);
    }
}

#[test]
fn a_wait_of_the_host_for_an_event_that_was_recorded_too_early_is_named() {
    for (how, verb) in [(Wait::Event, "waited for"), (Wait::Query, "asked about")] {
        let f = read_by_the_host(how, A, true, 1).finds("read-after-write certain");
        let said = format!(
            "The host {verb} stream 1 at app.cu:41, for an event recorded at app.cu:29, which was before the previous access."
        );
        assert!(f.synchronisation.facts.contains(&said), "{how:?}: {:?}", f.synchronisation);
    }
}

#[test]
fn without_a_wait_of_the_host_nothing_is_said_of_one() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.line(20).go(A, X, &write());
    p.line(30).go(B, X, &write());
    let f = p.finds("write-after-write certain");
    assert!(f.synchronisation.facts.iter().all(|fact| !fact.starts_with("The host")));
}

/// Five findings of one cause, the third and the last of which occur twice.
fn many() -> Program {
    let mut p = Program::new();
    p.malloc(X, 8 * N);
    let kernels: Vec<KernelId> = (0..5).map(|n| p.kernel(&format!("fill_{n}"), &write())).collect();
    let reader = p.kernel("read", &[reads(0, Shape::Exact(0, N))]);
    for (n, kernel) in kernels.iter().enumerate() {
        p.line(20 + n as u32).launch(A, *kernel, &[X + n as u64 * N]);
    }
    for n in [0, 1, 2, 2, 3, 4, 4] {
        p.line(30 + n as u32).launch(B, reader, &[X + n * N]);
    }
    p
}

#[test]
fn a_cause_shows_its_largest_findings_and_the_others_in_one_line_each() {
    let report = many().report();
    assert_eq!((report.causes.len(), report.findings.len()), (1, 5));
    let printed = |number: Option<u64>| {
        let text = text::Text::new(text::Style::default(), 50);
        let text = number.map_or(text::Text::new(text::Style::default(), 50), |number| text.per_cause(number));
        String::from_utf8(report::format::feed(&report, &mut { text })).expect("UTF-8")
    };
    let full = |text: &str| text.matches("streamsan: DATA RACE").count();
    let lines = |text: &str| text.matches(", after kernel fill_").count();
    let text = printed(None);
    assert_eq!((full(&text), lines(&text)), (3, 2), "{text}");
    assert!(text.contains("streamsan: 2 more findings of this cause"), "{text}");
    // The largest ones are in full, and the first of those that are equal.
    for (line, is_full) in [(30, true), (31, false), (32, true), (33, false), (34, true)] {
        assert_eq!(
            text.contains(&format!("  app.cu:{line}: read-after-write (certain): kernel read")),
            !is_full,
            "{text}"
        );
    }
    for (number, expected) in [(0, (5, 0)), (1, (1, 4)), (4, (4, 1)), (5, (5, 0)), (9, (5, 0))] {
        let text = printed(Some(number));
        assert_eq!((full(&text), lines(&text)), expected, "{number}: {text}");
    }
}

/// A graph of `nodes` kernels, all captured at one line on streams A and B in turn, of which none
/// waits for another unless `chained`.
fn captured_in_a_loop(nodes: u32, chained: bool) -> Program {
    let mut p = Program::new();
    p.malloc(X, N);
    let kernels: Vec<KernelId> = (0..nodes).map(|n| p.kernel(&format!("step_{n}"), &write())).collect();
    let before = |n: u32| if chained && n > 0 { vec![n - 1] } else { vec![] };
    let list: Vec<_> = kernels.iter().enumerate().map(|(n, kernel)| (50, *kernel, X, before(n as u32))).collect();
    let streams: Vec<StreamId> = (0..nodes).map(|n| if n % 2 == 0 { A } else { B }).collect();
    p.line(40).graph(GraphExecId(1), &list, &streams);
    p.line(60).does("cudaGraphLaunch", Op::GraphLaunch { stream: BLOCKING, exec: GraphExecId(1) });
    p
}

#[test]
fn nodes_that_were_captured_at_one_line_are_told_apart() {
    let outcome = captured_in_a_loop(2, false).outcome();
    let [f] = &outcome.findings[..] else { panic!("{outcome:#?}") };
    let s = &f.synchronisation;
    assert_eq!(s.missing, "No path of dependencies leads from node 0 (step_0) to node 1 (step_1).");
    let lines = s.cuda();
    assert!(
        lines[0].ends_with("// after the previous access, node 0 (step_0), app.cu:50, inside the capture"),
        "{lines:?}"
    );
    assert!(lines[1].ends_with("// before this access, node 1 (step_1), app.cu:50, inside the capture"), "{lines:?}");
    let missing = &outcome.causes[0].missing;
    assert!(missing.contains(", as node 1 (step_1) wait for what is captured at app.cu:50"), "{missing}");
    for nodes in [2, 3, 4] {
        captured_in_a_loop(nodes, true).silent();
        let found = captured_in_a_loop(nodes, false).outcome();
        let texts: std::collections::BTreeSet<&str> =
            found.findings.iter().map(|f| f.synchronisation.missing.as_str()).collect();
        assert_eq!(texts.len(), found.findings.len(), "each pair is named by itself: {texts:?}");
    }
}

#[test]
fn an_access_that_reads_and_writes_says_both() {
    let both = |first: &[Does], then: &[Does]| {
        let mut p = Program::new();
        p.malloc(X, N);
        p.line(20).go(A, X, first);
        p.line(30).go(B, X, then);
        let report = p.report();
        let [f] = &report.findings[..] else { panic!("{report:#?}") };
        assert!(!f.previous.does_both, "of an earlier op that has written the bytes its reads are not kept");
        (f.access.does_both, text::report(&report, text::Style::default(), 9))
    };
    let (read, write) = ([reads(0, Shape::Exact(0, N))], [writes(0, Shape::Exact(0, N))]);
    let atomic = [atomics(0, Shape::Exact(0, N))];
    let update = [read.clone(), write.clone()].concat();
    for (first, then, expected) in [
        (&update[..], &update[..], true),
        (&write[..], &update[..], true),
        (&read, &update, false),
        (&update, &write, false),
        (&write, &write, false),
        (&write, &read, false),
        (&read, &write, false),
        (&atomic, &write, false),
    ] {
        let (access, text) = both(first, then);
        assert_eq!(access, expected, "{text}");
        assert_eq!(text.contains(" reads and writes all "), access, "{text}");
    }
    // Bytes that only one of the two touches are not both.
    let apart = [reads(0, Shape::Exact(0, 512)), writes(0, Shape::Exact(1024, 2048))];
    assert!(!both(&[writes(0, Shape::Exact(0, N))], &apart).0);
}
