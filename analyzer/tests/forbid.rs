//! `--forbid`: each rule with a program that breaks it and a twin that keeps it.

use crate::support::*;
use analysis::AnalysisOptions;
use report::format::{code_quality, csan, feed, github, html, json, junit, markdown, parquet, sarif, short, text};
use report::gate::forbidden::Forbidden;
use report::gate::{baseline, suppressions};
use report::model::{Breach, Report};
use trace::*;

fn under(rules: &[&str]) -> Program {
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_string()).collect();
    Program::with(AnalysisOptions { forbidden: Forbidden::keep(&rules), ..Default::default() })
}

/// Kind, confidence and count of all.
fn told(p: &mut Program) -> Vec<String> {
    let say =
        |b: &Breach| format!("{} {} {}", b.kind.name().trim_start_matches("forbidden-"), b.confidence.name(), b.count);
    p.outcome().breaches.iter().map(say).collect()
}

fn blocking_copy(p: &mut Program, line: u32) {
    let (dst, src) = (Region::linear(PAGEABLE, 8), Region::linear(X, 8));
    let (dst_space, src_space) = D2H;
    let op = Op::Copy { stream: LEGACY, dst, src, dst_space, src_space, asynchronous: false, batch: 0 };
    p.line(line).does("cudaMemcpy", op);
}

#[test]
fn all_that_is_on_the_legacy_default_stream() {
    let mut p = under(&["default-stream"]);
    p.malloc(X, 64);
    for _ in 0..2 {
        p.line(20).go(LEGACY, X, &[]);
    }
    p.line(30).sync(LEGACY);
    blocking_copy(&mut p, 40);
    // Each `go` makes a kernel of its own.
    assert_eq!(told(&mut p), ["default-stream certain 1"; 4]);

    let mut p = under(&["default-stream"]);
    p.malloc(X, 64);
    p.go(A, X, &[]);
    p.go(BLOCKING, X, &[]);
    p.sync(A);
    p.order(A, BLOCKING);
    p.alloc(X + 8, 8, MemoryKind::Block);
    assert_eq!(told(&mut p), [""; 0]);

    let mut p = Program::new();
    p.go(LEGACY, X, &[]);
    assert_eq!(told(&mut p), [""; 0], "nobody has forbidden it");
}

#[test]
fn blocks_of_a_pool_are_no_calls_of_cuda() {
    let mut p = under(&["default-stream"]);
    p.malloc(X, 64);
    let (kind, stream) = (MemoryKind::Block, LEGACY);
    p.does("c10", Op::Alloc { ptr: X, size: 8, kind, context: CONTEXT, stream, pool: PoolId(0), flags: 0 });
    p.free(X, FreeKind::Block, LEGACY);
    assert_eq!(told(&mut p), [""; 0]);
}

#[test]
fn a_repeated_launch_is_counted() {
    let mut p = under(&["default-stream"]);
    p.malloc(X, 64);
    let kernel = p.kernel("fixed", &[writes(0, Shape::Exact(0, 8))]);
    p.record_on();
    for _ in 0..100 {
        p.line(20).launch(LEGACY, kernel, &[X]);
    }
    p.play();
    assert_eq!(told(&mut p), ["default-stream certain 100"], "the fast path of launches steps aside");
}

#[test]
fn the_module_is_the_innermost_one() {
    for (module, found) in [("app", 1), ("^app$", 1), ("libother.so", 0), ("/opt", 0)] {
        let mut p = under(&[&format!("default-stream={module}")]);
        p.malloc(X, 64);
        p.go(LEGACY, X, &[]);
        assert_eq!(told(&mut p).len(), found, "{module}");
    }
}

#[test]
fn a_module_that_uses_no_stream_is_named() {
    let line = |module: &str| format!("NOTE: --forbid default-stream={module}: no such module used a stream\n");
    for (module, stream, stack, is_named) in [
        ("app", LEGACY, 5, false),
        ("app", A, 5, false),
        ("ap.", A, 5, true),
        ("libx", LEGACY, 5, true),
        ("libx", A, 0, true),
    ] {
        let mut p = under(&[&format!("default-stream={module}"), "default-stream"]);
        p.malloc(X, 64);
        p.line(stack).set(stream, X, 8);
        let said = text::report(&p.report(), text::Style::default(), 9);
        assert_eq!(said.contains(&line(module)), is_named, "{module}, {stream:?}, {stack}: {said}");
        assert!(!said.contains("--forbid default-stream:"), "{said}");
    }
    // Whose work it is is not known.
    let mut p = under(&["default-stream=libx"]);
    p.line(0).set(LEGACY, X, 8);
    assert_eq!(p.report().coverage.rules_unmet.len(), 0);
}

#[test]
fn without_a_stack_a_module_is_not_judged() {
    let run = |rule: &str, line| {
        let mut p = under(&[rule]);
        p.line(line).set(LEGACY, X, 8);
        let report = p.report();
        (report.breaches.len(), report.coverage.unjudged.len())
    };
    assert_eq!(run("default-stream=app", 0), (0, 1));
    assert_eq!((run("default-stream=app", 5), run("default-stream", 0)), ((1, 0), (1, 0)));
    let mut p = under(&["default-stream=app"]);
    p.line(0).set(LEGACY, X, 8);
    assert_eq!(report::gate::ending::of_run(&p.report(), 66, false).code(), 70);
}

fn range<'a>(name: &'a str) -> Op<'a> {
    Op::RangePush { name: name.into() }
}

/// All that may hold the host, from line 50 on.
fn waits(p: &mut Program) {
    p.line(50).sync(A);
    blocking_copy(p, 51);
    p.line(52).free(X, FreeKind::Plain, StreamId(0));
    p.line(53).malloc(X, 64);
    p.line(54).copy(A, X, PAGEABLE, 8, H2D);
    p.line(55).copy(A, PAGEABLE, X, 8, D2H);
}

const SURE: &str = "sync certain 1";
const MAY: &str = "sync likely 1";

#[test]
fn waits_of_the_host_inside_a_range() {
    let mut p = under(&["sync=^step$"]);
    p.malloc(X, 64);
    waits(&mut p);
    p.does("nvtx", range("step"));
    p.does("nvtx", range("inner"));
    waits(&mut p);
    p.does("nvtx", Op::RangePop {});
    p.does("nvtx", Op::RangePop {});
    waits(&mut p);
    assert_eq!(told(&mut p), [SURE, SURE, SURE, MAY, MAY, SURE]);
    assert_eq!(p.report().coverage.rules_unmet.len(), 0);

    // Work that holds nobody, in the range; and waits in another range, and on another thread.
    let mut p = under(&["sync=^step$"]);
    p.malloc(X, 64);
    p.alloc(PINNED, 64, MemoryKind::PinnedHost);
    p.does("nvtx", range("step"));
    p.go(A, X, &[]);
    p.copy(A, PINNED, X, 8, D2H);
    p.order(A, B);
    p.malloc_async(X + 64, 64, A);
    p.free(X + 64, FreeKind::Async, A);
    let call = p.call("cudaDeviceSynchronize");
    let op = Op::SyncBegin {
        sync: SyncId(9),
        scope: SyncScope::Device,
        stream: StreamId(0),
        event: EventId(0),
        context: ContextId(0),
    };
    let origin = Origin { call, thread: ThreadId(2), stack: StackId(70), epoch: Epoch::default() };
    p.analysis.feed(&Record { origin, op });
    p.does("nvtx", Op::RangePop {});
    p.does("nvtx", range("steps"));
    p.sync(A);
    assert_eq!(told(&mut p), [""; 0]);
}

#[test]
fn waits_of_the_host_inside_a_range_of_the_process() {
    let start = |range, name: &'static str| Op::RangeStart { range, name: name.into(), domain: "".into() };
    let elsewhere = |p: &mut Program, op| {
        let origin =
            Origin { call: p.call("nvtx"), thread: ThreadId(2), stack: StackId::NONE, epoch: Epoch::default() };
        p.analysis.feed(&Record { origin, op });
    };
    let mut p = under(&["sync=^step$"]);
    elsewhere(&mut p, start(1, "all"));
    p.sync(A);
    elsewhere(&mut p, start(2, "step"));
    p.does("nvtx", range("inner"));
    p.line(20).sync(A);
    elsewhere(&mut p, Op::RangeEnd { range: 1 });
    p.line(21).sync(A);
    p.does("nvtx", Op::RangePop {});
    p.line(22).sync(A);
    assert_eq!(told(&mut p), [SURE; 3]);

    // It has ended, or another one is open.
    let mut p = under(&["sync=^step$"]);
    p.does("nvtx", start(1, "step"));
    p.does("nvtx", start(2, "steps"));
    p.does("nvtx", Op::RangePop {});
    p.does("nvtx", Op::RangeEnd { range: 1 });
    p.sync(A);
    assert_eq!(told(&mut p), [""; 0]);
}

#[test]
fn a_rule_may_name_the_domain_of_a_range() {
    for (rule, found) in [("sync=^step$", 1), ("sync=step@io", 1), ("sync=^step@net", 0), ("sync=^io", 0)] {
        let mut p = under(&[rule]);
        p.does("nvtx", Op::DomainPush { name: "step".into(), domain: "io".into() });
        p.does("nvtx", range("other"));
        p.sync(A);
        p.does("nvtx", Op::DomainPop { domain: "io".into() });
        p.sync(A);
        assert_eq!(told(&mut p).len(), found, "{rule}");
        assert_eq!(p.report().coverage.rules_unmet.len(), 1 - found, "{rule}");
    }
}

#[test]
fn a_range_that_is_never_entered_is_named() {
    let mut p = under(&["sync=step", "sync"]);
    p.sync(A);
    let report = p.report();
    let said = text::report(&report, text::Style::default(), 9);
    assert!(said.contains("NOTE: --forbid sync=step: the program entered no such NVTX range\n"), "{said}");
    assert!(!said.contains("--forbid sync:"), "{said}");
}

#[test]
fn waits_of_the_host_after_their_first_time() {
    let mut p = under(&["sync"]);
    p.malloc(X, 64);
    for _ in 0..3 {
        p.line(20).sync(A);
    }
    p.line(30).sync(A);
    assert_eq!(told(&mut p), ["sync certain 2"]);

    let mut p = under(&["sync"]);
    p.malloc(X, 64);
    for line in 0..3 {
        p.line(20).go(A, X, &[]);
        p.line(30 + line).sync(A);
    }
    assert_eq!(told(&mut p), [""; 0], "each place once");
}

#[test]
fn streams_without_a_name() {
    let mut p = under(&["unnamed-stream"]);
    for _ in 0..3 {
        p.set(A, X, 8);
    }
    p.set(BLOCKING, X, 8);
    p.does("cudaStreamDestroy", Op::StreamDestroy { stream: A });
    p.order(B, B);
    p.sync(B);
    p.set(LEGACY, X + 64, 8);
    assert_eq!(told(&mut p), ["unnamed-stream certain 1"; 2], "two streams with work, made at two places");

    let mut p = under(&["unnamed-stream"]);
    p.set(A, X, 8);
    p.does("nvtx", Op::StreamName { stream: A, name: "copies".into() });
    p.does("cudaStreamDestroy", Op::StreamDestroy { stream: A });
    assert_eq!(told(&mut p), [""; 0], "named at any time");
}

#[test]
fn names_are_in_reports() {
    let mut p = Program::new();
    p.malloc(X, 64);
    p.does("nvtx", Op::StreamName { stream: A, name: "copies".into() });
    p.go(A, X, &[writes(0, Shape::Exact(0, 8))]);
    p.go(B, X, &[reads(0, Shape::Exact(0, 8))]);
    let finding = p.finds("read-after-write certain");
    assert_eq!(finding.previous.stream.long, "stream 1 \"copies\" (non-blocking, created at app.cu:2)");
}

#[test]
fn a_program_that_has_switched_checking_off_is_left_alone() {
    let mut p = under(&["sync", "default-stream", "unnamed-stream"]);
    p.malloc(X, 64);
    p.does("streamsan_stop", Op::Checking { on: false });
    for _ in 0..2 {
        p.line(20).sync(LEGACY);
        p.line(30).set(A, X, 8);
    }
    p.does("streamsan_start", Op::Checking { on: true });
    assert_eq!(told(&mut p), [""; 0]);
}

fn broken() -> Report {
    let mut p = under(&["default-stream", "sync=step"]);
    p.malloc(X, 64);
    p.does("nvtx", range("step </script>\u{1b}[1m"));
    p.line(20).set(LEGACY, X, 8);
    p.line(21).malloc(X + 64, 64);
    p.report()
}

#[test]
fn every_format_tells_them() {
    let report = broken();
    let as_text = text::report(&report, text::Style::default(), 9);
    for part in [
        "streamsan: FORBIDDEN: default-stream (certain)\ncudaMemsetAsync is on the legacy default stream.\n",
        "Call: 1 time, forbidden by --forbid default-stream\n  on the legacy default stream, by host thread 77 (app), in step",
        "streamsan: FORBIDDEN: sync (likely)\ncudaMalloc may make the host wait, in step </script>\\u{1b}[1m: CUDA counts",
        "[streamsan forbidden=sync confidence=likely call=cudaMalloc stream=0 count=1 pid=77 fingerprint=",
        "streamsan: SUMMARY: 2 findings (1 certain, 1 likely), 2 occurrences, 1 process, 2 forbidden\n",
    ] {
        assert!(as_text.contains(part), "{part}\n{as_text}");
    }
    let value = json::report(&report);
    assert_eq!(value["summary"]["forbidden"], 2);
    assert_eq!(value["findings"][0]["hazard"], "forbidden-default-stream");
    assert_eq!(value["findings"][1]["rule"], "sync=step");
    assert!(value["findings"][1]["previous"].is_null() && value["findings"][1]["access"]["call"] == "cudaMalloc");
    let workspace = || github::Workspace::new("/home/me");
    let bytes =
        |reporter: &mut dyn report::format::Reporter| String::from_utf8_lossy(&feed(&report, reporter)).into_owned();
    let log: serde_json::Value = serde_json::from_str(&bytes(&mut sarif::Sarif::new(workspace()))).expect("JSON");
    let run = &log["runs"][0];
    for result in run["results"].as_array().expect("results") {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().expect("a rule") as usize];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    assert_eq!(run["results"][0]["ruleId"], "forbidden-default-stream");
    let uri = &run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "app.cu");
    let issues: serde_json::Value =
        serde_json::from_str(&bytes(&mut code_quality::CodeQuality::new(workspace()))).expect("JSON");
    assert_eq!(issues[0]["check_name"], "forbidden-default-stream");
    assert_eq!(issues[0]["location"], serde_json::json!({ "path": "app.cu", "lines": { "begin": 20 } }));
    assert_eq!((&issues[0]["severity"], &issues[1]["severity"]), (&"critical".into(), &"major".into()));
    let table = bytes(&mut markdown::Markdown::new(workspace(), 50));
    assert_eq!(table.lines().filter(|line| line.starts_with("| **forbidden-")).count(), 2, "{table}");
    let tests = bytes(&mut junit::Junit::new(junit::Origin { time: "t".into(), host: "h".into() }));
    assert!(tests.contains("failures=\"2\"") && tests.contains("type=\"forbidden-sync\""), "{tests}");
    let page = bytes(&mut html::Html::default());
    assert!(page.contains("forbidden-sync") && !page.contains("step </script>"));
    let lines = bytes(&mut short::Short::default());
    assert!(lines.starts_with("/home/me/app.cu:20: forbidden-default-stream (certain): cudaMemsetAsync is"), "{lines}");
    assert!(bytes(&mut csan::Csan::default()).contains("forbidden-sync (likely)"));
    let annotations = bytes(&mut github::Annotations::new(workspace()));
    assert!(annotations.contains("::error file=app.cu,line=20,title=StreamSan%3A forbidden-default-stream"));
    assert!(feed(&report, &mut parquet::Parquet::default()).len() > 1000);
}

#[test]
fn the_gate_judges_them() {
    let judged = |options: settings::Options| {
        let mut report = broken();
        report::gate::Gate::open(&options).expect("a gate").judge(&mut report);
        (report.failing(), report::gate::ending::of_run(&report, 66, false).code())
    };
    let file = |name: &str, text: String| {
        let path = std::env::temp_dir().join(format!("streamsan-forbid-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    };
    let options = settings::Options::default;
    assert_eq!(judged(options()), (2, 66));
    let fail_on = Some(settings::FailOn::Certain);
    assert_eq!(judged(settings::Options { fail_on, ..options() }), (1, 66));
    let report = broken();
    let all = file("all.supp", suppressions::generate(&[], &report.breaches));
    assert_eq!(judged(settings::Options { suppressions: vec![all.into()], ..options() }), (0, 0));
    let by_name = file("name.supp", "forbidden:run\n".into());
    assert_eq!(judged(settings::Options { suppressions: vec![by_name.into()], ..options() }), (0, 0));
    let of_races = file("race.supp", "race:*\n".into());
    assert_eq!(judged(settings::Options { suppressions: vec![of_races.into()], ..options() }), (2, 66));
    let known = file("known.json", baseline::write(&[], &report.breaches[..1]));
    assert_eq!(judged(settings::Options { baseline: Some(known.into()), ..options() }), (1, 66));
    let before = file("report.json", json::report(&report).to_string());
    assert_eq!(judged(settings::Options { baseline: Some(before.into()), ..options() }), (0, 0));
}
