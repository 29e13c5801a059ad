//! Races between grids that kernels launch (`--inside`): launcher and launched, and grids of
//! different streams, with their lines; their mended twins, and programs that must stay silent.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use tests::{build, run};

const SOURCE: &str = "sim/launched.cu";
const CASES: [&str; 4] = ["unmet", "after", "siblings", "streams"];

fn compiled(source: &str) -> Option<PathBuf> {
    build::cuda_program_if_possible(source, "static", &["-rdc=true", "-w", "-lineinfo"])
}

/// The line whose comment names this side of a case; from 1.
fn line(case: &str, side: &str) -> u64 {
    let source = std::fs::read_to_string(build::programs().join(SOURCE)).expect("the source");
    let is_it = |line: &str| line.contains(&format!("// {case}: {side}")) || line.contains(&format!("// {case}: both"));
    source.lines().position(is_it).unwrap_or_else(|| panic!("no {side} line of {case}")) as u64 + 1
}

/// How a program ended, and its report.
fn checked(program: &PathBuf, code: &str, words: &[&str]) -> (run::Ended, Value) {
    let json = build::scratch(&format!("inside-launches-{code}-{}", words.join("-"))).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--inside", "--pedantic", "--fail-on=possible"]);
    command.arg("--json").arg(&json).arg("--").arg(program).args(words);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    let text = std::fs::read(&json).unwrap_or_else(|e| panic!("{}: {e}\n{}", json.display(), ended.err));
    (ended, serde_json::from_slice(&text).expect("JSON"))
}

fn races_are_found(code: &str) {
    let Some(program) = compiled(SOURCE) else { return };
    for case in CASES {
        let (ended, report) = checked(&program, code, &["racy", case]);
        assert_eq!(ended.code(), Some(66), "{case}: {}", ended.err);
        let findings = report["findings"].as_array().expect("findings");
        let [f] = &findings[..] else { panic!("{case}: {} findings\n{}", findings.len(), ended.err) };
        let lines = |side: &str| {
            let stack = f[side]["stack"].as_array().expect("a stack");
            stack.iter().filter_map(|frame| frame["line"].as_u64()).collect::<Vec<_>>()
        };
        let found: BTreeSet<u64> = ["access", "previous"].iter().flat_map(|side| lines(side)).collect();
        let expected = BTreeSet::from([line(case, "one"), line(case, "other")]);
        assert_eq!(found, expected, "{case}: {}", ended.err);
        let inside = &f["in_kernel"];
        assert_eq!((&inside["grade"], &inside["two_grids"]), (&"certain".into(), &true.into()), "{case}: {f:#}");
        assert!(ended.err.contains("one of another grid of that launch"), "{case}: {}", ended.err);
        // The blocks and threads are those of the grids.
        for side in ["access", "previous"] {
            let text = inside[side].to_string();
            assert!(!text.contains("429496"), "{case}: {text}");
        }
    }
}

#[test]
fn races_of_launcher_and_launched_are_found_in_ptx() {
    races_are_found("ptx");
}

#[test]
fn races_of_launcher_and_launched_are_found_in_machine_code() {
    races_are_found("sass");
}

#[test]
fn launches_in_order_are_silent() {
    let Some(program) = compiled(SOURCE) else { return };
    for code in ["ptx", "sass"] {
        for case in CASES {
            let (ended, report) = checked(&program, code, &["mended", case]);
            assert_eq!(ended.code(), Some(0), "{case} {code}: {}", ended.err);
            assert_eq!(report["findings"], Value::Array(Vec::new()), "{case} {code}: {}", ended.err);
            assert!(report["coverage"]["inside"]["launches"].as_u64() >= Some(1), "{case} {code}: {}", ended.err);
        }
    }
}

/// Programs of other tests: sorts, trees, streams with events, tails that launch themselves again.
#[test]
fn programs_that_launch_kernels_are_silent() {
    let Some(program) = compiled("exact/device_launch.cu") else { return };
    let cases = ["recursion", "quicksort", "quadtree", "streams", "again", "memory", "errors", "limits", "template"];
    for case in cases {
        let (ended, report) = checked(&program, "ptx", &[case, "clean"]);
        let inside = |f: &&Value| !f["in_kernel"].is_null();
        let found: Vec<&Value> = report["findings"].as_array().expect("findings").iter().filter(inside).collect();
        assert!(found.is_empty(), "{case}: {}", ended.err);
        assert_eq!(ended.code(), Some(0), "{case}: {}", ended.err);
        assert!(report["coverage"]["inside"]["launches"].as_u64() >= Some(1), "{case}: {}", ended.err);
    }
}

/// Two grids add to one place, of which one is detached: the sum is right in the simulator's order
/// only. What is in the tail stream is behind both.
#[test]
fn a_detached_grid_races_with_what_its_launcher_launches_behind_it() {
    let Some(program) = compiled("exact/device_launch.cu") else { return };
    let (ended, report) = checked(&program, "ptx", &["tail", "clean"]);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let findings = report["findings"].as_array().expect("findings");
    let kernels: BTreeSet<&str> = findings.iter().filter_map(|f| f["access"]["kernel"].as_str()).collect();
    assert_eq!(kernels, BTreeSet::from(["add(int*, int, int)"]), "{}", ended.err);
    assert!(findings.iter().all(|f| f["in_kernel"]["two_grids"] == true), "{}", ended.err);
}
