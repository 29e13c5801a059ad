//! Reads of memory that nothing has written (`--initcheck`): each kind of memory, and what must
//! stay silent, in PTX and in machine code; what decides on findings; formats; traces; and what is
//! refused.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tests::{build, run};

const SOURCE: &str = "sim/unwritten.cu";

/// Each reads memory that nothing wrote, and the kind of that memory.
const READS: [(&str, &str); 13] = [
    ("counters", "device memory"),
    ("lock", "device memory"),
    ("vector", "device memory"),
    ("shared", "part"),
    ("dynamic", "dynamic shared memory"),
    ("heap", ""),
    ("halo", "device memory"),
    ("half_fill", "device memory"),
    ("again", "device memory"),
    ("pool", "stream-ordered memory"),
    ("graph", "memory of a graph"),
    ("offset", "device memory"),
    ("rows", "device memory"),
];

fn compiled() -> Option<PathBuf> {
    build::cuda_program_if_possible(SOURCE, "static", &["-w", "-lineinfo"])
}

fn line(case: &str) -> u64 {
    let source = std::fs::read_to_string(build::programs().join(SOURCE)).expect("the source");
    let is_it = |line: &str| line.contains(&format!("// {case}: reads"));
    source.lines().position(is_it).unwrap_or_else(|| panic!("no line of {case}")) as u64 + 1
}

/// A command that runs the program as this code, and where it leaves its report.
fn command(name: &str, program: &PathBuf, code: &str, options: &[&str], words: &[&str]) -> (Command, PathBuf) {
    let json = build::scratch(&format!("unwritten-{name}-{code}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(program).args(words);
    command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}"));
    (command, json)
}

fn report(json: &PathBuf) -> Value {
    let text = std::fs::read_to_string(json).unwrap_or_else(|e| panic!("{}: {e}", json.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().expect("findings")
}

/// The reads of unwritten memory among the findings.
fn unwritten(report: &Value) -> Vec<&Value> {
    findings(report).iter().filter(|f| f["kind"] == "uninitialized-read").collect()
}

fn reads_are_found(code: &str) {
    let Some(program) = compiled() else { return };
    let mut wrong = Vec::new();
    for (case, memory) in READS {
        let (mut streamsan, json) = command(case, &program, code, &["--initcheck"], &["reads", case]);
        let ended = run::end(&mut streamsan);
        let report = report(&json);
        let [f] = unwritten(&report)[..] else {
            wrong.push(format!("{case}: {} findings\n{}", unwritten(&report).len(), ended.err));
            continue;
        };
        let lines: Vec<u64> =
            f["access"]["stack"].as_array().expect("a stack").iter().filter_map(|l| l["line"].as_u64()).collect();
        let of = match f["in_kernel"]["shared"]["name"].as_str() {
            Some(name) => name.rsplit("::").next().unwrap_or_default().to_owned(),
            None => f["allocation"]["kind"].as_str().unwrap_or_default().to_owned(),
        };
        let allocated = memory != "device memory" || !f["allocation"]["stack"].as_array().expect("a stack").is_empty();
        let right = ended.code() == Some(66)
            && lines.contains(&line(case))
            && (f["in_kernel"]["grade"] == "likely" && f["confidence"] == "likely")
            // Machine code has no names of shared arrays.
            && (of == memory || code == "sass" && of.is_empty())
            && allocated
            && ended.err.contains("READ OF UNWRITTEN MEMORY (likely)")
            && !ended.err.contains("Previous access");
        if !right {
            wrong.push(format!("{case}: {of} at {lines:?}: {f:#}\n{}", ended.err));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn reads_are_found_in_ptx() {
    reads_are_found("ptx");
}

#[test]
fn reads_are_found_in_machine_code() {
    reads_are_found("sass");
}

#[test]
fn what_was_written_is_silent() {
    let Some(program) = compiled() else { return };
    for code in ["ptx", "sass"] {
        for schedule in ["eager", "late-first"] {
            let options = ["--initcheck", "--pedantic", "--sim-schedule", schedule];
            let (mut streamsan, json) = command(schedule, &program, code, &options, &["silent"]);
            let ended = run::end(&mut streamsan);
            let report = report(&json);
            assert!(unwritten(&report).is_empty(), "{code}, {schedule}: {}", ended.err);
            assert_eq!(ended.out.lines().count(), 29, "{}", ended.out);
            assert!(report["coverage"]["inside"]["launches"].as_u64() >= Some(60), "{}", ended.err);
        }
    }
}

/// Kernels that race, and others, of which each byte is written.
#[test]
fn racing_kernels_read_what_is_written() {
    let Some(program) = build::cuda_program_if_possible("sim/inside.cu", "static", &["-w", "-lineinfo"]) else {
        return;
    };
    for form in ["mended", "silent"] {
        let (mut streamsan, json) = command(form, &program, "ptx", &["--initcheck", "--pedantic"], &[form]);
        let ended = run::end(&mut streamsan);
        assert!(unwritten(&report(&json)).is_empty(), "{form}: {}", ended.err);
    }
}

#[test]
fn padding_and_copies_are_possible_only() {
    let Some(program) = compiled() else { return };
    for case in ["padding", "tail", "carried"] {
        let (mut streamsan, _) = command(case, &program, "ptx", &["--initcheck"], &["doubtful", case]);
        let ended = run::end(&mut streamsan);
        assert_eq!(ended.code(), Some(0), "{case}: {}", ended.err);
        assert!(ended.err.contains("reads bytes which nothing wrote beside others, or copies them"), "{}", ended.err);
        let options = ["--initcheck", "--pedantic"];
        let (mut streamsan, json) = command(case, &program, "ptx", &options, &["doubtful", case]);
        run::end(&mut streamsan);
        let report = report(&json);
        let [f] = unwritten(&report)[..] else { panic!("{case}: {report:#}") };
        assert_eq!((&f["confidence"], &f["in_kernel"]["grade"]), (&"possible".into(), &"possible".into()), "{case}");
        assert_eq!(f["in_kernel"]["access"]["asynchronous"], case == "carried");
        assert_eq!(
            f["access"]["stack"].as_array().expect("a stack").last().expect("one")["line"],
            line(case),
            "{case}"
        );
    }
}

#[test]
fn suppressions_and_baselines_hold() {
    let Some(program) = compiled() else { return };
    let folder = build::scratch("unwritten-gate");
    let [suppressions, baseline] = ["suppressions", "baseline.json"].map(|name| folder.join(name));
    let words = ["reads", "counters"];
    std::fs::write(&suppressions, "kernel:count_up\n").expect("a file");
    for (option, code, said) in [
        (format!("--suppressions={}", suppressions.display()), 0, "1 suppressed"),
        (format!("--write-baseline={}", baseline.display()), 66, "1 finding"),
        (format!("--baseline={}", baseline.display()), 0, "1 known"),
    ] {
        let (mut streamsan, _) = command("gate", &program, "ptx", &["--initcheck", &option], &words);
        let ended = run::end(&mut streamsan);
        assert_eq!(ended.code(), Some(code), "{option}: {}", ended.err);
        assert!(ended.err.contains(said), "{option}: {}", ended.err);
    }
}

#[test]
fn every_format_has_the_finding() {
    let Some(program) = compiled() else { return };
    let folder = build::scratch("unwritten-formats");
    let files = ["sarif", "html", "junit", "code-quality", "markdown"];
    let options: Vec<String> = files.iter().map(|name| format!("--{name}={}", folder.join(name).display())).collect();
    let options: Vec<&str> = ["--initcheck"].into_iter().chain(options.iter().map(String::as_str)).collect();
    let words = ["reads", "counters"];
    let (mut streamsan, _) = command("formats", &program, "ptx", &options, &words);
    assert_eq!(run::end(&mut streamsan).code(), Some(66));
    for name in files {
        let text = std::fs::read_to_string(folder.join(name)).expect("written");
        assert!(text.contains("uninitialized-read"), "{name}: {text}");
    }
    let sarif: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("sarif")).expect("read")).expect("JSON");
    let run_of = &sarif["runs"][0];
    let result = &run_of["results"][0];
    let rule = &run_of["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().expect("a rule") as usize];
    assert_eq!((&rule["id"], &result["ruleId"]), (&"uninitialized-read".into(), &"uninitialized-read".into()));
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], line("counters"));
    assert!(!result["relatedLocations"].to_string().contains("previous access"), "{result:#}");
    for format in ["short", "github", "csan"] {
        let option = format!("--format={format}");
        let (mut streamsan, _) = command("format", &program, "ptx", &["--initcheck", &option], &words);
        let ended = run::end(&mut streamsan);
        assert_eq!(ended.code(), Some(66), "{format}: {}", ended.err);
        assert!(ended.err.contains("unwritten.cu"), "{format}: {}", ended.err);
    }
    let ended = run::end(&mut run::streamsan(["explain", "uninitialized-read"]));
    assert!(ended.code() == Some(0) && ended.out.starts_with("# uninitialized-read"), "{}{}", ended.out, ended.err);
}

#[test]
fn a_recorded_run_has_the_same_findings() {
    let Some(program) = compiled() else { return };
    let folder = build::scratch("unwritten-recorded");
    let (trace, json) = (folder.join("trace"), folder.join("report.json"));
    let words = ["reads", "counters", "halo", "shared"];
    let mut record = run::streamsan(["record", "--sim", "--initcheck", "-o"]);
    record.arg(&trace).arg("--").arg(&program).args(words).env_remove("LD_LIBRARY_PATH");
    let ended = run::end(&mut record);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = run::end(run::streamsan(["check", "--json"]).arg(&json).arg(&trace));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let recorded = report(&json);
    let (mut streamsan, live) = command("live", &program, "auto", &["--initcheck"], &words);
    run::end(&mut streamsan);
    let fingerprints = |report: &Value| -> Vec<String> {
        let mut all: Vec<String> = unwritten(report).iter().map(|f| f["fingerprint"].to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(fingerprints(&recorded).len(), 3, "{recorded:#}");
    assert_eq!(fingerprints(&recorded), fingerprints(&report(&live)));
}

#[test]
fn without_the_simulated_gpu_it_is_refused() {
    let ended = run::end(&mut run::streamsan(["run", "--initcheck", "--", "true"]));
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    assert_eq!(ended.ours(), ["streamsan: --initcheck needs the simulated GPU: add --sim"], "{}", ended.err);
}

#[test]
fn without_the_option_nothing_is_looked_for() {
    let Some(program) = compiled() else { return };
    for options in [&[][..], &["--inside"]] {
        let (mut streamsan, json) = command("off", &program, "ptx", options, &["reads", "counters", "halo"]);
        let ended = run::end(&mut streamsan);
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        assert!(findings(&report(&json)).is_empty(), "{}", ended.err);
    }
}
