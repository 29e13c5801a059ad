//! `--forbid` from end to end: each rule on a program that breaks it and on its twin, live, under
//! plain `LD_PRELOAD` and from a trace. Runs against the fake driver.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::run::{end, preloaded, streamsan};
use tests::{build, fake};

/// Rules, what the program is told, and how often it breaks them.
const RULES: [(&str, &str, u64); 5] = [
    ("default-stream", "cuMemsetD8Async is on the legacy default stream.", 3),
    ("default-stream=forbidden", "cuMemsetD8Async is on the legacy default stream, submitted by ", 3),
    ("sync", "cuStreamSynchronize makes the host wait, again after its first time.", 2),
    ("sync=^step$", "cuStreamSynchronize makes the host wait, in step.", 3),
    ("unnamed-stream", "cuMemsetD8Async is on stream ", 1),
];

fn program() -> PathBuf {
    build::c_program("forbidden.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).expect("written")).expect("JSON")
}

#[test]
fn each_rule_is_told_and_its_twin_is_silent() {
    let (program, file) = (program(), build::scratch("forbid").join("report.json"));
    for (rule, text, count) in RULES {
        let run =
            |how: &str| end(streamsan(["run", "--forbid", rule, "--json"]).arg(&file).arg("--").arg(&program).arg(how));
        let ended = run("broken");
        assert_eq!(ended.code(), Some(66), "{rule}: {}", ended.err);
        assert!(ended.err.contains(&format!("\n{text}")), "{rule}: {}", ended.err);
        let report = json(&file);
        let found = report["findings"].as_array().expect("findings");
        assert_eq!((found.len(), &found[0]["count"], &found[0]["rule"]), (1, &count.into(), &rule.into()));
        for how in ["kept", "nvtx"] {
            let ended = run(how);
            assert_eq!(ended.code(), Some(0), "{rule}, {how}: {}", ended.err);
            assert!(!ended.err.contains("entered no such NVTX range"), "{rule}, {how}: {}", ended.err);
        }
    }
}

#[test]
fn a_preloaded_program_is_held_to_the_rules() {
    for (rule, text, _) in RULES {
        let run = |how: &str| {
            let mut command = preloaded(program(), &format!("error-exitcode=66:forbid={rule}"));
            end(command.arg(how).env("LD_LIBRARY_PATH", fake::folder()))
        };
        let ended = run("broken");
        assert_eq!(ended.code(), Some(66), "{rule}: {}", ended.err);
        assert!(ended.err.contains(text), "{rule}: {}", ended.err);
        let ended = run("kept");
        assert_eq!(ended.code(), Some(0), "{rule}: {}", ended.err);
    }
}

/// However a range of NVTX gets its name: the real header, our injection.
#[test]
fn a_wait_in_a_range_of_nvtx_is_told_and_one_behind_it_is_not() {
    let headers = build::toolkit().expect("the toolkit").join("include");
    let include = format!("-I{}", headers.display());
    let driver = fake::folder();
    let program =
        build::c_program("nvtx_ranges.c", &[&include, "-L", &driver.to_string_lossy(), "-lcuda", "-ldl", "-lpthread"]);
    let plain = ["ascii", "wide", "attributes", "start", "start_wide", "start_attributes"];
    // (NCCL's ranges end with a payload.)
    let with_payload = ["domain_payload", "start_domain_payload"];
    let in_domains = ["registered", "registered_wide", "domain", "domain_wide", "start_domain"];
    let in_domains = in_domains.into_iter().chain(with_payload);
    let all = plain.map(|way| (way, "step")).into_iter().chain(in_domains.map(|way| (way, "step@of the test")));
    for (way, shown) in all {
        let run = |words: &[&str]| end(streamsan(["run", "--forbid", "sync=^step$", "--"]).arg(&program).args(words));
        let ended = run(&[way]);
        assert_eq!(ended.code(), Some(66), "{way}: {}", ended.err);
        let ranges = ended.err.lines().find(|line| line.starts_with("cuStreamSynchronize makes the host wait, in all"));
        assert!(ranges.is_some_and(|line| line.contains(&format!(" > {shown}"))), "{way}: {}", ended.err);
        let ended = run(&[way, "outside"]);
        assert_eq!(ended.code(), Some(0), "{way}: {}", ended.err);
        assert!(!ended.err.contains("entered no such NVTX range"), "{way}: {}", ended.err);
    }
    for (rule, code) in [("sync=step@of the test", 66), ("sync=step@other", 0)] {
        let ended = end(streamsan(["run", "--forbid", rule, "--"]).arg(&program).arg("domain"));
        assert_eq!(ended.code(), Some(code), "{rule}: {}", ended.err);
        assert_eq!(ended.err.contains("entered no such NVTX range"), code == 0, "{rule}: {}", ended.err);
    }
}

#[test]
fn a_module_that_does_not_call_is_no_reason() {
    let ended = end(streamsan(["run", "--forbid", "default-stream=libcuda.so"]).arg("--").arg(program()));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = end(streamsan(["run", "--no-stacks", "--forbid", "default-stream=libx"]).arg("--").arg(program()));
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
    assert!(ended.err.contains("ERROR: not judged: 3 operations on the default stream"), "{}", ended.err);
}

#[test]
fn a_trace_is_held_to_the_rules() {
    let folder = build::scratch("forbid-trace");
    let trace = folder.join("broken.trace");
    let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(program()));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    for (rule, text, _) in RULES {
        let ended = end(streamsan(["check", "--forbid", rule]).arg(&trace));
        assert_eq!(ended.code(), Some(66), "{rule}: {}", ended.err);
        assert!(ended.err.contains(text), "{rule}: {}", ended.err);
    }
    let ended =
        end(streamsan(["check"]).arg(&trace).env("STREAMSAN_OPTIONS", "forbid=sync=^step$:forbid=default-stream"));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(
        ended.err.contains("2 findings (2 certain, 0 likely), 6 occurrences, 1 process, 2 forbidden"),
        "{}",
        ended.err
    );
    for (wrong, says) in [("syncs", "syncs"), ("sync=", "sync=")] {
        let ended = end(streamsan(["check", "--forbid", wrong]).arg(&trace));
        assert_eq!(ended.code(), Some(2), "{}", ended.err);
        assert!(ended.err.contains(says), "{}", ended.err);
    }
}

#[test]
fn a_colon_between_quotes_is_part_of_a_value() {
    let racy = build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let run = |options: &str| end(streamsan(["run", "--"]).arg(&racy).env("STREAMSAN_OPTIONS", options));
    let ended = run("without='racy.c:1':quiet=no");
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let said = "WHAT IF: without racy.c:1: nothing that synchronises is called so";
    assert!(ended.err.contains(said), "{}", ended.err);
    let ended = run("without=racy.c:1");
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
}

#[test]
fn a_time_line_calls_a_stream_as_the_program_does() {
    let folder = build::scratch("timeline-names");
    let (trace, file) = (folder.join("t.trace"), folder.join("t.json"));
    let tracks = |how: &str| -> Vec<String> {
        let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(program()).arg(how));
        assert_eq!(ended.code(), Some(0), "{how}: {}", ended.err);
        let ended = end(streamsan(["timeline", "-o"]).arg(&file).arg(&trace));
        assert_eq!(ended.code(), Some(0), "{how}: {}", ended.err);
        let drawn = json(&file);
        let events = drawn["traceEvents"].as_array().expect("events").iter();
        let named = events.filter(|event| event["name"] == "thread_name");
        named.map(|event| event["args"]["name"].as_str().expect("a name").to_owned()).collect()
    };
    let is_called = |name: &&String| name.starts_with("stream ") && name.contains(" \"work\" (");
    let (named, unnamed) = (tracks("nvtx"), tracks("broken"));
    assert_eq!(named.iter().filter(is_called).count(), 1, "{named:?}");
    assert_eq!(unnamed.iter().filter(is_called).count(), 0, "{unnamed:?}");
    assert!(unnamed.iter().any(|name| name.starts_with("stream ")), "{unnamed:?}");
}
