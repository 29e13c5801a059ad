//! Pipelines of bulk copies (compute capability 9.0, as PTX) with `--inside`: bugs that public
//! projects had, each found with both lines and what is missing; their mended twins, which are
//! silent and compute the same in every schedule; and a phase that never ends.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tests::{build, run};

const SOURCE: &str = "sim/pipelines.cu";

/// A kernel, and a word of what would order it.
const CASES: [(&str, &str); 6] = [
    ("epilogue", "fence.proxy.async"),
    ("written", "fence.proxy.async"),
    ("elected", "__syncthreads();"),
    ("ring", "mbarrier_arrive"),
    ("unawaited", "mbarrier_try_wait_parity"),
    ("aliased", "cp_async_bulk_wait_group_read"),
];

fn compiled() -> Option<PathBuf> {
    build::cuda_program_if_possible(SOURCE, "static", &["-w", "-lineinfo", "-arch=sm_90"])
}

fn line(kernel: &str, side: &str) -> u64 {
    let source = std::fs::read_to_string(build::programs().join(SOURCE)).expect("the source");
    let marker = format!("// {kernel}: {side}");
    source.lines().position(|line| line.ends_with(&marker)).unwrap_or_else(|| panic!("no {marker}")) as u64 + 1
}

fn command(program: &PathBuf, options: &[&str], words: &[&str]) -> (Command, PathBuf) {
    let json = build::scratch(&format!("pipelines-{}-{}", words.join("-"), options.join(""))).join("report.json");
    let mut command = run::streamsan(["run", "--sim"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(program).args(words);
    command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", "code=ptx");
    (command, json)
}

fn lines(side: &Value) -> Vec<u64> {
    side["stack"].as_array().expect("a stack").iter().filter_map(|frame| frame["line"].as_u64()).collect()
}

/// Products of the host: what each kernel leaves, weighted.
fn right() -> String {
    let d = |at: i64| at * 13 + 5;
    let sum = |value: &dyn Fn(i64) -> i64| (0..128).map(|t| value(t) * (t + 1)).sum::<i64>();
    let ring = |t: i64| if t < 32 { 0 } else { (0..8).map(|k| d(k * 96 + 127 - t) * (k + 1)).sum() };
    let results: [(&str, i64); 6] = [
        ("epilogue", sum(&|t| d(t) * 2)),
        ("written", sum(&|t| d(127 - t) + 1)),
        ("elected", sum(&|t| if t < 32 { 0 } else { d(t & 31) + 3 })),
        ("ring", sum(&ring)),
        ("unawaited", sum(&|t| d(127 - t))),
        ("aliased", sum(&|t| d(t) + 7)),
    ];
    results.iter().map(|(name, sum)| format!("{name}: {sum}\n")).collect()
}

#[test]
fn bugs_of_pipelines_are_found_with_their_lines() {
    let Some(program) = compiled() else { return };
    let (mut streamsan, json) = command(&program, &["--inside"], &["racy"]);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let mut wrong = Vec::new();
    for (name, advice) in CASES {
        let (one, other) = (line(name, "one"), line(name, "other"));
        let of = |f: &&Value| {
            let [a, b] = ["access", "previous"].map(|side| lines(&f[side]));
            a.contains(&one) && b.contains(&other) || a.contains(&other) && b.contains(&one)
        };
        let found: Vec<&Value> = findings.iter().filter(of).collect();
        let [f] = found[..] else {
            wrong.push(format!("{name}: {} findings with lines {one} and {other}", found.len()));
            continue;
        };
        let advised = f["synchronisation"]["cuda"].to_string().contains(advice);
        if f["in_kernel"]["grade"] != "certain" || !advised {
            wrong.push(format!("{name}: {f:#}"));
        }
    }
    if findings.len() != CASES.len() {
        wrong.push(format!("{} findings", findings.len()));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}\n{}", wrong.len(), wrong.join("\n"), ended.err);
}

#[test]
fn mended_pipelines_are_silent_and_right_in_every_schedule() {
    let Some(program) = compiled() else { return };
    let schedules: [&[&str]; 5] =
        [&[], &["--sim-schedule=late-first"], &["--sim-seed=1"], &["--sim-seed=2"], &["--sim-schedule=in-order"]];
    for options in schedules {
        let options = [options, &["--inside", "--pedantic"]].concat();
        let (mut streamsan, _) = command(&program, &options, &["mended"]);
        let ended = run::end(&mut streamsan);
        assert_eq!((ended.code(), ended.out), (Some(0), right()), "{options:?}: {}", ended.err);
        assert!(ended.err.contains("6 launches checked inside"), "{}", ended.err);
    }
}

#[test]
fn missing_waits_show_in_results_that_come_late() {
    let Some(program) = compiled() else { return };
    let out = |options: &[&str]| {
        let (mut streamsan, _) = command(&program, options, &["racy", "unawaited", "aliased"]);
        run::end(&mut streamsan).out
    };
    let right: String = right().lines().skip(4).map(|line| format!("{line}\n")).collect();
    // The store reads at once.
    assert_eq!(out(&["--sim-schedule=in-order"]).lines().last(), right.lines().last());
    let late = out(&["--sim-schedule=late-first"]);
    assert_eq!(late.lines().count(), 2);
    for (late, right) in late.lines().zip(right.lines()) {
        assert_ne!(late, right);
    }
}

#[test]
fn a_barrier_that_expects_too_many_is_named() {
    let Some(program) = compiled() else { return };
    let (mut streamsan, _) = command(&program, &[], &["racy", "counts"]);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.out, "counts: cudaErrorLaunchTimeout\n", "{}", ended.err);
    let said = "never ends its phase: 1 of 129 arrivals are missing in kernel `";
    assert!(ended.err.contains(said), "{}", ended.err);
    let (mut streamsan, _) = command(&program, &["--inside"], &["mended", "counts"]);
    let ended = run::end(&mut streamsan);
    let sum: i64 = (0..128).map(|t| (t * 13 + 5) * (t + 1)).sum();
    assert_eq!((ended.code(), ended.out), (Some(0), format!("counts: {sum}\n")), "{}", ended.err);
}
