//! The text of reports: every printed line against the expected files beside this one. `BLESS=1`
//! rewrites them.

use crate::support::*;
use report::format::{Reporter, code_quality, feed, github, json, markdown, text};
use report::model::Report;
use std::path::PathBuf;
use trace::codec::List;
use trace::*;

const N: u64 = 4 << 20;

fn expect(name: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, actual).expect("the expected file can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == actual, "{name} differs (BLESS=1 rewrites it). Now it is:\n{actual}");
}

fn print(report: &Report) -> String {
    text::report(report, text::Style::default(), 50)
}

fn plain_race() -> Program {
    let mut p = Program::new();
    p.line(40).malloc(X, N);
    let fill = p.kernel("fill", &[writes(0, Shape::Exact(0, N))]);
    let scale = p.kernel("scale", &[reads(0, Shape::Exact(0, N)), writes(0, Shape::Exact(0, N))]);
    p.line(52).launch(A, fill, &[X]);
    p.line(53).launch(B, scale, &[X]);
    p
}

#[test]
fn two_kernels() {
    expect("two_kernels.txt", &print(&plain_race().report()));
}

#[test]
fn event_recorded_too_early_in_python() {
    let mut p = Program::new();
    p.python();
    p.torch();
    p.line(1040).malloc(X, N);
    p.order(LEGACY, B);
    p.line(1052).set(LEGACY, X, N);
    p.line(1053).copy(B, X + (1 << 30), X + 4096, 512, D2D);
    expect("early_event.txt", &print(&p.report()));
}

#[test]
fn memory_reused_while_in_use() {
    let mut p = Program::new();
    p.python();
    p.malloc(X, 1 << 21);
    p.line(1020).alloc(X + 512, N / 4, MemoryKind::Block);
    let k = p.kernel(
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
        &[writes(0, Shape::Bound(0, 900))],
    );
    let r = p.kernel("reader", &[reads(0, Shape::Unknown)]);
    p.line(1021).launch(A, r, &[X + 512]);
    p.line(1022).free(X + 512, FreeKind::Block, StreamId(0));
    p.line(1030).alloc(X + 512, 1000, MemoryKind::Block);
    p.line(1031).launch(LEGACY, k, &[X + 512]);
    expect("reused_block.txt", &print(&p.report()));
}

/// An allocator asks whether a block's event is complete before it hands the block out again. The
/// answer about an event that was never recorded is yes, and the report says so.
#[test]
fn a_query_that_answers_for_nothing_is_named() {
    let (mut said, mut silent) = (Vec::new(), Vec::new());
    for recorded in [false, true] {
        for early in [false, true] {
            let mut p = Program::new();
            let event = EventId(p.id());
            p.line(10).malloc(X, N);
            p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 2, handle: 0 });
            if recorded && early {
                p.record(event, A);
            }
            p.line(20).set(A, X, N);
            if recorded && !early {
                p.record(event, A);
            }
            p.line(30).does("cudaEventQuery", Op::EventReached { event, record: u64::from(recorded) });
            p.line(40).set(B, X, N);
            let report = print(&p.report());
            match (recorded, early) {
                (true, false) => silent.push(report),
                _ => said.push((recorded, report)),
            }
        }
    }
    assert!(silent.iter().all(|report| report.contains("SUMMARY: 0 findings")), "{silent:?}");
    for (recorded, report) in said {
        assert!(report.contains("SUMMARY: 1 finding"), "{report}");
        let named = report.contains("A query at app.cu:30 asked for an event that had never been recorded");
        assert_eq!(named, !recorded, "{report}");
    }
}

#[test]
fn free_in_stream_order() {
    let mut p = Program::new();
    p.line(30).malloc_async(X, N, A);
    p.order(A, B);
    p.line(34).go(B, X, &[reads(0, Shape::Strided { lo: 0, width: 4, stride: 8, count: 1000 })]);
    p.line(35).free(X, FreeKind::Async, A);
    expect("free_async.txt", &print(&p.report()));
}

/// A graph with two nodes that do this to one buffer, the second depending on the first or not.
fn graph(p: &mut Program, exec: GraphExecId, edge: bool) {
    p.malloc(X, N);
    let produce = p.kernel("produce", &[writes(0, Shape::Exact(0, N))]);
    let call = p.call("cudaGraphAddKernelNode");
    let consume = p.kernel("consume", &[reads(0, Shape::Exact(0, N))]);
    p.line(60).does("cudaGraphInstantiate", Op::GraphExec { exec, nodes: 2, flags: 0, handle: 1 });
    for (index, kernel) in [(0, produce), (1, consume)] {
        let params = X.to_le_bytes();
        let op = launch(StreamId(0), kernel, &params);
        let mut body = [0; 256];
        let mut to = Encoder::new(&mut body);
        op.encode(&mut to);
        let len = to.finish().unwrap();
        let edges = [Dependency { from: 0, port: 0 }];
        let dependencies = List::new(if index == 1 && edge { &edges[..] } else { &[] });
        let stack = StackId(70 + index);
        let (tag, body) = (op.tag(), &body[..len]);
        p.does(
            "cudaGraphAddKernelNode",
            Op::GraphNode { exec, index, stack, call, enabled: true, dependencies, tag, body },
        );
    }
}

#[test]
fn nodes_of_one_graph() {
    let exec = GraphExecId(1);
    let mut p = Program::new();
    graph(&mut p, exec, true);
    p.line(80).does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec });
    p.line(81).does("cudaGraphLaunch", Op::GraphLaunch { stream: B, exec });
    p.silent();
    p.line(82).go(BLOCKING, X, &[reads(0, Shape::Exact(0, 4))]);
    p.finds("read-after-write certain");

    let mut p = Program::new();
    graph(&mut p, exec, false);
    p.silent();
    p.line(80).does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec });
    p.line(80).does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec });
    let f = p.finds("read-after-write certain");
    assert_eq!((f.previous.node, f.access.node, f.count), (Some(0), Some(1), 2));
    expect("graph_nodes.txt", &print(&p.report()));
}

#[test]
fn disabled_and_changed_nodes_do_what_they_do_now() {
    let exec = GraphExecId(1);
    let mut p = Program::new();
    graph(&mut p, exec, false);
    p.does(
        "cudaGraphNodeSetEnabled",
        Op::GraphNode {
            exec,
            index: 0,
            stack: StackId(1),
            call: CallId(1),
            enabled: false,
            dependencies: List::new(&[]),
            tag: 98,
            body: &[],
        },
    );
    p.does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec });
    p.silent();
}

#[test]
fn clean_run_with_blind_spots() {
    let mut p = Program::new();
    p.malloc(X, N);
    let unknown = p.define("mystery");
    p.launch(A, unknown, &[X]);
    p.set(A, X, 16);
    let note = |kind, text: &'static str, count| Op::Note { kind, text: text.into(), count };
    p.raw(note(NoteKind::NotModelled, "cuMemcpyBatchAsync", 3));
    p.raw(note(NoteKind::Unobserved, "a call inside a signal handler", 1));
    p.raw(note(NoteKind::Disabled, "out of memory", 1));
    p.analysis.damaged();
    expect("clean.txt", &print(&p.report()));
}

#[test]
fn empty_run_says_that_nothing_was_checked() {
    let report = Report::default();
    let text = print(&report);
    assert!(text.contains("no CUDA work was seen"), "{text}");
    assert!(
        text.ends_with("streamsan: SUMMARY: 0 findings (0 certain, 0 likely), 0 occurrences, 0 processes\n"),
        "{text}"
    );
}

#[test]
fn the_same_finding_in_two_processes_is_one() {
    let outcomes = vec![plain_race().outcome(), plain_race().outcome()];
    let report = Report::merge(outcomes, false);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].count, 2);
    assert!(
        report::format::closing::summary(&report)
            .ends_with("1 finding (1 certain, 0 likely), 2 occurrences, 2 processes, 1 cause")
    );
}

#[test]
fn limits() {
    let report = plain_race().report();
    let none = text::report(&report, text::Style::default(), 0);
    assert!(none.contains("NOTE: 1 finding not printed (see --max-findings)"), "{none}");
    assert!(none.contains("SUMMARY: 1 finding"));
}

#[test]
fn colours_only_where_wanted() {
    use settings::Color;
    let plain = print(&plain_race().report());
    assert!(!plain.contains('\x1b'));
    let style = text::Style { color: true, links: false, processes: false, no_machine_lines: false };
    let coloured = text::report(&plain_race().report(), style, 50);
    assert!(coloured.contains("\x1b[1;31m"));
    assert!(text::wants_color(Color::Auto, true, None, Some("xterm")));
    assert!(text::wants_color(Color::Auto, true, Some(""), Some("xterm")));
    assert!(!text::wants_color(Color::Auto, true, Some(""), None));
    assert!(!text::wants_color(Color::Auto, true, Some("1"), None));
    assert!(!text::wants_color(Color::Auto, true, None, Some("dumb")));
    assert!(!text::wants_color(Color::Auto, false, None, None));
    assert!(text::wants_color(Color::Always, false, Some("1"), Some("dumb")));
}

#[test]
fn places_are_links_on_terminals_with_colours() {
    assert!(text::wants_links(true, true, Some("xterm-256color")));
    assert!(!text::wants_links(false, true, Some("xterm")), "NO_COLOR, --color never");
    assert!(!text::wants_links(true, false, Some("xterm")), "--color always into a file");
    assert!(!text::wants_links(true, true, Some("dumb")) && !text::wants_links(true, true, None));
    let report = plain_race().report();
    let style = text::Style { color: true, links: true, processes: false, no_machine_lines: true };
    let (linked, coloured) =
        (text::report(&report, style, 50), text::report(&report, text::Style { links: false, ..style }, 50));
    // Each link has an end, and without the links nothing else differs.
    let opened = linked.matches("\x1b]8;;file://").count();
    assert!(opened > 0 && linked.matches("\x1b]8;;\x1b\\").count() == opened, "{linked:?}");
    let mut text = String::new();
    for (at, part) in linked.split("\x1b]8;;").enumerate() {
        let (address, shown) = if at == 0 { ("", part) } else { part.split_once("\x1b\\").expect("an end") };
        let path = address.strip_prefix("file://").map(|rest| &rest[rest.find('/').expect("a host")..]);
        assert!(path.is_none_or(|path| path.starts_with("/home/me/") && !path.contains(':')), "{address}");
        text.push_str(shown);
    }
    assert_eq!(text, coloured);
    assert!(!coloured.contains("\x1b]8"));
}

#[test]
fn files_for_ci_systems() {
    let workspace = || github::Workspace::new("/home/me").shown_at("https://forge.example/me/app/blob/c0ffee/");
    let written =
        |report: &Report, reporter: &mut dyn Reporter| String::from_utf8(feed(report, reporter)).expect("UTF-8");
    let mut racy = plain_race().report();
    racy.fail_on = settings::FailOn::Likely;
    expect("two_kernels.md", &written(&racy, &mut markdown::Markdown::new(workspace(), 50)));
    expect("two_kernels.code-quality.json", &written(&racy, &mut code_quality::CodeQuality::new(workspace())));
    // Findings beyond the limit are counted, not lost.
    let none = written(&racy, &mut markdown::Markdown::new(workspace(), 0));
    assert!(!none.contains("| finding |") && none.contains("1 other finding is not listed"), "{none}");
    // Nothing to complain of, and nothing that was checked, are two things.
    let mut clean = Program::new();
    clean.line(40).malloc(X, N);
    let fill = clean.kernel("fill", &[writes(0, Shape::Exact(0, N))]);
    clean.line(52).launch(A, fill, &[X]);
    let clean = clean.report();
    assert_eq!(written(&clean, &mut code_quality::CodeQuality::new(workspace())), "[]\n");
    assert!(!written(&clean, &mut markdown::Markdown::new(workspace(), 50)).contains("nothing was checked."));
    let nothing = Report::default();
    assert!(written(&nothing, &mut markdown::Markdown::new(workspace(), 50)).contains("nothing was checked."));
    let mut lost = clean;
    lost.coverage.unchecked.push("process 7 could not be observed".into());
    let issues: serde_json::Value =
        serde_json::from_str(&written(&lost, &mut code_quality::CodeQuality::new(workspace()))).expect("JSON");
    assert_eq!((&issues[0]["check_name"], &issues[0]["severity"]), (&"not-checked".into(), &"blocker".into()));
    let summary = written(&lost, &mut markdown::Markdown::new(workspace(), 50));
    assert!(summary.contains("**Error:** "), "{summary}");
}

#[test]
fn json_keeps_its_contract() {
    let value = json::report(&plain_race().report());
    expect("two_kernels.json", &format!("{:#}\n", value));
    assert_eq!(value["summary"]["findings"], 1);
    let f = &value["findings"][0];
    for (field, is) in [("hazard", "read-after-write"), ("confidence", "certain")] {
        assert_eq!(f[field], is);
    }
    assert_eq!(f["host"], false);
    assert_eq!(f["count"], 1);
    for side in ["access", "previous", "allocation"] {
        assert!(f[side]["stack"].as_array().is_some_and(|s| !s.is_empty()), "{side}");
    }
    assert_eq!(value["coverage"]["launches"]["total"], 2);
}

#[test]
fn fingerprints_do_not_depend_on_addresses_ids_or_directories() {
    let print = |p: &mut Program| p.findings()[0].fingerprint.clone();
    let one = print(&mut plain_race());
    let mut p = Program::new();
    p.id();
    p.line(40).malloc(X + (1 << 32), N);
    let scale = p.kernel("scale", &[reads(0, Shape::Exact(0, N)), writes(0, Shape::Exact(0, N))]);
    let fill = p.kernel("fill", &[writes(0, Shape::Exact(0, N))]);
    p.line(52).launch(BLOCKING, fill, &[X + (1 << 32)]);
    p.line(53).launch(A, scale, &[X + (1 << 32)]);
    assert_eq!(one, print(&mut p));
}

#[test]
fn long_kernel_names_are_cut_in_the_headline_only() {
    let name = "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::CUDAFunctor_add<float> > >(int, at::native::Foo)";
    assert_eq!(text::short_kernel(name), "at::native::elementwise_kernel<...>");
    assert_eq!(text::short_kernel("void fill(float*, int)"), "fill(float*, int)");
    assert_eq!(text::short_kernel("(anonymous namespace)::k(int)"), "(anonymous namespace)::k(int)");
    let parameters = "(Accessor<long, (unsigned long)1, int>, Accessor<int, (unsigned long)2, int>, int const*, bool)";
    for (name, short) in [
        ("(anonymous namespace)::find_kernel", "(anonymous namespace)::find_kernel"),
        ("void (anonymous namespace)::insert_kernel<float, int>", "(anonymous namespace)::insert_kernel<...>"),
        ("void ns::(anonymous namespace)::copy_kernel<int>", "ns::(anonymous namespace)::copy_kernel<...>"),
        ("void ns::functor<(int)4>::operator()", "ns::functor<...>::operator()"),
    ] {
        assert_eq!(text::short_kernel(&format!("{name}{parameters}")), short);
    }
}

/// A report with each line that makes a green run doubtful, and those lines.
fn doubtful() -> (Report, Vec<&'static str>) {
    let mut p = Program::new();
    p.malloc(X, N);
    p.set(A, X, 16);
    let mut report = p.report();
    let c = &mut report.coverage;
    c.reasons.insert("no code".into(), 2);
    c.unobserved.insert("a call inside a hook".into(), 1);
    c.not_modelled.insert("cuFooAsync".into(), 3);
    c.rules_unmet.insert("sync=step".into(), 9);
    (c.damaged, c.paused) = (4, 5);
    let suppressions = &mut report.judgement.suppressions;
    suppressions.push(Default::default());
    (suppressions[0].text, suppressions[0].place) = ("race:nobody".into(), "supp:1".into());
    let lines = [
        "unknown launches: no code: 2",
        "not observed: a call inside a hook: 1",
        "cuFooAsync: 3",
        "--forbid sync=step: the program entered no such NVTX range",
        "4 records could not be read",
        "5 operations were not checked",
        "race:nobody (supp:1) suppressed nothing",
    ];
    (report, lines.into())
}

#[test]
fn what_makes_a_green_run_doubtful_stands_in_every_format_once() {
    use report::format::{self, csan, short};
    let (report, lines) = doubtful();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let quiet = |quiet| text(format::feed(&report, &mut text::Text::new(text::Style::default(), 50).quiet(quiet)));
    let written = [
        ("text", quiet(false)),
        ("text, quiet", quiet(true)),
        ("short", text(format::feed(&report, &mut short::Short::new(false)))),
        ("short, quiet", text(format::feed(&report, &mut short::Short::new(true)))),
        ("csan", text(format::feed(&report, &mut csan::Csan::default()))),
    ];
    for (name, written) in &written {
        for line in &lines {
            assert_eq!(written.matches(line).count(), 1, "{name}: '{line}' in:\n{written}");
        }
    }
    // A run without any of them is as short as before.
    let clean = Report::default();
    for is_quiet in [false, true] {
        let silent = text(format::feed(&clean, &mut short::Short::new(is_quiet)));
        assert_eq!(silent.is_empty(), is_quiet, "{silent}");
    }
    let silent = text(format::feed(&clean, &mut text::Text::new(text::Style::default(), 50).quiet(true)));
    assert_eq!(silent, "", "with --quiet, a run without CUDA has nothing to say");
}

#[test]
fn a_run_whose_findings_are_all_known_tells_no_cause() {
    use report::model::GateStatus;
    let mut p = Program::new();
    p.malloc(X, 4 * N);
    for n in 0..3 {
        p.line(20 + n).go(A, X + u64::from(n) * 4096, &[writes(0, Shape::Exact(0, 4096))]);
    }
    for n in 0..3 {
        p.line(30 + n).go(B, X + u64::from(n) * 4096, &[reads(0, Shape::Exact(0, 4096))]);
    }
    let mut report = p.report();
    assert!(print(&report).contains("streamsan: CAUSE: missing-wait (3 findings"), "{}", print(&report));
    for known in 1..=report.findings.len() {
        report.findings[..known].iter_mut().for_each(|f| f.standing = GateStatus::Known);
        let printed = print(&report);
        let left = report.findings.len() - known;
        assert!(!printed.contains("shows only when"), "{printed}");
        assert_eq!(printed.contains("CAUSE: missing-wait (2 findings"), left == 2, "{printed}");
        assert_eq!(printed.contains("order"), left > 0, "{printed}");
    }
}
