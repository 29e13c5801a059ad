//! Traces that were recorded on a real GPU (`tests/recorded`): read back where there is neither GPU
//! nor PyTorch.

use serde_json::Value;
use tests::recorded::Trace;
use tests::{build, product, run};

/// What `streamsan check` says of a recorded trace. Without PyTorch's files nothing is known of the
/// kernels, so what it finds is possible.
fn checked(name: &str) -> (Value, String) {
    let trace = product::root().join("tests/recorded").join(format!("{name}.trace"));
    let json = build::scratch(&format!("trace-{name}")).join("report.json");
    let ended = run::end(run::streamsan(["check", "--fail-on=possible", "--json"]).arg(&json).arg(&trace));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let text = std::fs::read_to_string(&json).expect("written");
    (serde_json::from_str(&text).expect("valid JSON"), ended.err)
}

/// The innermost Python line of a stack, with the file's name alone.
fn python_line(part: &Value) -> String {
    let stack = part["stack"].as_array().expect("a stack");
    let frame = stack.iter().find(|frame| frame["kind"] == "python").expect("a Python frame");
    let file = frame["file"].as_str().expect("a file");
    format!("{}:{}", file.rsplit('/').next().unwrap_or_default(), frame["line"])
}

#[test]
fn pytorchs_documented_example() {
    let (report, text) = checked("doc_mul_out");
    assert_eq!(report["summary"]["findings"], 1, "{report:#}");
    let finding = &report["findings"][0];
    assert_eq!((&finding["hazard"], &finding["host"]), (&"read-after-write".into(), &false.into()));
    assert_eq!(python_line(&finding["access"]), "doc_mul_out.py:12");
    assert_eq!(python_line(&finding["previous"]), "doc_mul_out.py:10");
    assert_eq!(python_line(&finding["allocation"]), "doc_mul_out.py:10");
    assert_eq!(finding["access"]["stream"]["kind"], "non-blocking", "{finding:#}");
    assert!(text.contains("wait_stream"), "the fix in PyTorch's words: {text}");
    // 40,000 floats, rounded up by PyTorch's allocator.
    assert_eq!(finding["allocation"]["size"], 160_256);
    // What could not be known is said.
    assert_eq!(report["coverage"]["launches"]["unknown"], 2);
    assert_eq!(finding["confidence"], "possible");
}

#[test]
fn a_block_that_the_allocator_gave_out_again() {
    let (report, _) = checked("freed_block_reused");
    let findings = report["findings"].as_array().expect("findings");
    let finding =
        findings.iter().find(|f| python_line(&f["access"]).ends_with(":17")).expect("the line of the second use");
    assert_eq!(python_line(&finding["previous"]), "freed_block_reused.py:15");
    assert_eq!(python_line(&finding["allocation"]), "freed_block_reused.py:17");
    assert_eq!(python_line(&finding["previous_allocation"]), "freed_block_reused.py:10", "{finding:#}");
}

#[test]
fn they_are_whole() {
    for name in ["doc_mul_out", "freed_block_reused"] {
        let trace = Trace::read(&product::root().join("tests/recorded").join(format!("{name}.trace")));
        assert_eq!((trace.error.as_deref(), trace.unreadable), (None, 0), "{name}");
        assert!(trace.launches().count() >= 2 && trace.launches().all(|op| op.has_stack), "{name}");
    }
}

/// Peak resident memory of `streamsan check` on a trace, in KiB.
#[expect(clippy::zombie_processes, reason = "wait4 waits, because it tells the memory")]
fn peak(trace: &std::path::Path) -> i64 {
    let child = run::streamsan(["check"]).arg(trace).stderr(std::process::Stdio::null()).spawn().expect("start");
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage to be overwritten.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: waits for a child of ours that nobody else waits for; both out-pointers are valid.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    assert_eq!((waited, status), (child.id() as i32, 0));
    usage.ru_maxrss
}

#[test]
fn memory_does_not_grow_with_the_length_of_a_run() {
    let program = build::c_program("bench/driver_calls.c", &[]);
    let folder = build::scratch("long");
    let [short, long] = ["20000", "400000"].map(|calls| {
        let trace = folder.join(calls);
        let ended = run::end(run::streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&program).arg(calls));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        peak(&trace)
    });
    assert!(long < short + 16 * 1024, "{short} KiB for a short run, {long} KiB for one twenty times as long");
}
