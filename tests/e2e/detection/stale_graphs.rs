//! Graphs that name memory which was freed before a launch, and their mended twins.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::{build, run};

/// The report of one case.
fn report(program: &Path, case: &str) -> (Value, run::Ended) {
    let json = build::scratch("stale-graphs").join(format!("{case}.json"));
    let mut command = run::streamsan(["run", "--sim", "--pedantic", "--json"]);
    let ended = run::end(command.arg(&json).arg("--").arg(program).arg(case).env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{case}: {e}\n{}{}", ended.out, ended.err));
    (serde_json::from_str(&text).expect("JSON"), ended)
}

fn compiled() -> Option<PathBuf> {
    build::cuda_program_if_possible("sim/stale_graphs.cu", "static", &["-w"])
}

/// A run of one case with more options, and its exit code.
fn with(program: &Path, options: &[&str], case: &str, code: i32) -> String {
    let mut command = run::streamsan(["run", "--sim"]);
    let ended = run::end(command.args(options).arg("--").arg(program).arg(case).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.code(), Some(code), "{options:?}: {}", ended.err);
    ended.err
}

#[test]
fn a_launch_of_a_graph_that_names_freed_memory_is_found() {
    let Some(program) = compiled() else { return };
    let list = run::end(&mut run::command(&program)).out;
    let (mut found, mut races, mut clean) = (0, 0, 0);
    for line in list.lines() {
        let (case, expect) = line.split_once(' ').expect("a case");
        let (report, ended) = report(&program, case);
        assert_eq!(ended.out, "done\n", "{case}: {}", ended.err);
        let findings = report["findings"].as_array().expect("findings");
        let grades: Vec<&str> = findings.iter().filter_map(|f| f["confidence"].as_str()).collect();
        let want = match expect {
            "none" => vec![],
            "race" => vec!["certain"],
            grade => vec![grade],
        };
        assert_eq!(grades, want, "{case}: {findings:#?}\n{}", ended.err);
        if let ([finding], "race") = (&findings[..], expect) {
            races += 1;
            assert_eq!((&finding["kind"], &finding["access"]["operation"]), (&"race".into(), &"free".into()), "{case}");
        } else if let [finding] = &findings[..] {
            found += 1;
            assert_eq!((&finding["kind"], ended.code()), (&"stale-graph-memory".into(), Some(66)), "{case}");
            let has = |stack: &Value| stack.as_array().is_some_and(|frames| !frames.is_empty());
            for stack in [
                &finding["access"]["stack"],
                &finding["access"]["launched"],
                &finding["previous"]["stack"],
                &finding["allocation"]["stack"],
                &finding["stale"]["instantiated"],
            ] {
                assert!(has(stack), "{case}: {finding:#}");
            }
        } else {
            clean += 1;
            assert_eq!(ended.code(), Some(0), "{case}: {}", ended.err);
        }
    }
    assert_eq!((found, races, clean), (15, 1, 22), "{list}");
}

/// Graphs of public projects (candle, PyTorch, SGLang) that outlived memory.
#[test]
fn graphs_of_public_projects_that_name_freed_memory_are_found() {
    let program = build::cuda_program_if_possible("sim/public_graphs.cu", "static", &["-w"]);
    let Some(program) = program else { return };
    let list = run::end(&mut run::command(&program)).out;
    for line in list.lines() {
        let (case, expect) = line.split_once(' ').expect("a case");
        let (report, ended) = report(&program, case);
        assert_eq!(ended.out, "done\n", "{case}: {}", ended.err);
        let findings = report["findings"].as_array().expect("findings");
        let found: Vec<_> = findings.iter().map(|f| (f["kind"].as_str(), f["confidence"].as_str())).collect();
        let want: Vec<_> = expect.split_whitespace().map(|grade| (Some("stale-graph-memory"), Some(grade))).collect();
        assert_eq!(found, want, "{case}: {findings:#?}\n{}", ended.err);
        assert_eq!(ended.code(), Some(if want.is_empty() { 0 } else { 66 }), "{case}: {}", ended.err);
    }
    assert_eq!(list.lines().filter(|line| line.ends_with("certain")).count(), 4, "{list}");
    assert_eq!(list.lines().count(), 10, "{list}");
}

#[test]
fn every_format_has_the_finding() {
    let Some(program) = compiled() else { return };
    let folder = build::scratch("stale-graphs-formats");
    let files = ["sarif", "html", "junit", "code-quality", "markdown"];
    let options: Vec<String> = files.iter().map(|name| format!("--{name}={}", folder.join(name).display())).collect();
    with(&program, &options.iter().map(String::as_str).collect::<Vec<_>>(), "fill", 66);
    for name in files {
        let text = std::fs::read_to_string(folder.join(name)).expect("written");
        assert!(text.contains("stale-graph-memory"), "{name}: {text}");
    }
    let sarif: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("sarif")).expect("read")).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    let rule = result["ruleIndex"].as_u64().expect("a rule") as usize;
    let rule = &sarif["runs"][0]["tool"]["driver"]["rules"][rule];
    assert_eq!((&rule["id"], &result["ruleId"]), (&"stale-graph-memory".into(), &"stale-graph-memory".into()));
    for format in ["short", "github", "csan"] {
        let said = with(&program, &[&format!("--format={format}")], "fill", 66);
        assert!(said.contains("stale_graphs.cu"), "{format}: {said}");
    }
}

#[test]
fn suppressions_baselines_and_recordings_hold_it() {
    let Some(program) = compiled() else { return };
    let folder = build::scratch("stale-graphs-gate");
    let [suppressions, baseline] = ["suppressions", "baseline.json"].map(|name| folder.join(name));
    std::fs::write(&suppressions, "kernel:scale\n").expect("a file");
    let said = with(&program, &["--suppressions", &suppressions.display().to_string()], "added", 0);
    assert!(said.contains("1 suppressed"), "{said}");
    with(&program, &["--write-baseline", &baseline.display().to_string()], "fill", 66);
    let said = with(&program, &["--baseline", &baseline.display().to_string()], "fill", 0);
    assert!(said.contains("1 known"), "{said}");
    let trace = folder.join("trace");
    let mut record = run::streamsan(["record", "--sim", "-o"]);
    let ended = run::end(record.arg(&trace).arg("--").arg(&program).arg("fill").env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = run::end(run::streamsan(["check"]).arg(&trace));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("STALE GRAPH MEMORY (certain)"), "{}", ended.err);
}

/// Copies from memory that is gone are a finding, and no hint about pageable memory beside it; from
/// memory that was only unregistered they are that.
#[test]
fn freed_memory_is_not_taken_for_pageable() {
    let Some(program) = compiled() else { return };
    for (case, code, is_hint) in
        [("pinned-source", 66, false), ("array-source", 66, false), ("unregistered-source", 0, true)]
    {
        let said = with(&program, &["--hints"], case, code);
        assert_eq!(said.contains("copies from or to pageable memory"), is_hint, "{case}: {said}");
    }
}
