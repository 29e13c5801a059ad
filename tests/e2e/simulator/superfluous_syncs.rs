//! Hints about fences and barriers inside kernels without which nothing is unordered: each line of
//! `superfluous_syncs.cu` says what it is.

use std::collections::BTreeSet;

use serde_json::Value;
use tests::{build, run};

const SOURCE: &str = "sim/superfluous_syncs.cu";

/// The lines of the source that say so.
fn lines(mark: &str) -> BTreeSet<u64> {
    let source = std::fs::read_to_string(build::programs().join(SOURCE)).expect("the source");
    let of = |(at, line): (usize, &str)| line.contains(&format!("// {mark}:")).then_some(at as u64 + 1);
    source.lines().enumerate().filter_map(of).collect()
}

/// The report of a run, as this code and with these options.
fn report(name: &str, code: &str, options: &[&str]) -> Option<(Value, String)> {
    let flags = ["-w", "-lineinfo", "-arch=compute_90a", "-code=compute_90a,sm_90a"];
    let program = build::cuda_program_if_possible(SOURCE, "static", &flags)?;
    let json = build::scratch(&format!("superfluous-syncs-{name}-{code}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--inside", "--json"]);
    command.arg(&json).args(options).arg("--").arg(&program);
    command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("arch=90:code={code}"));
    let ended = run::end(&mut command);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "cudaSuccess\n"), "{code}: {}", ended.err);
    let text = std::fs::read_to_string(&json).expect("a report");
    Some((serde_json::from_str(&text).expect("JSON"), ended.err))
}

/// The lines that hints name.
fn hinted(report: &Value) -> BTreeSet<u64> {
    let hints = report["hints"].as_array().expect("a list");
    let hints = hints.iter().filter(|hint| hint["kind"] == "superfluous-in-kernel");
    // Of what is inlined from a header the last frame is the kernel's.
    let line = |hint: &Value| hint["stack"].as_array().and_then(|stack| stack.last()?["line"].as_u64());
    hints.map(|hint| line(hint).expect("a line")).collect()
}

fn is_told_from_what_is_needed(code: &str) {
    let Some((report, err)) = report("hints", code, &["--hints"]) else { return };
    // In machine code fences are not named, and compilers leave barriers of warps out.
    let of_ptx: BTreeSet<u64> = lines("superfluous, in PTX");
    let of_both = lines("superfluous");
    let all: BTreeSet<u64> = if code == "ptx" { of_both.union(&of_ptx).copied().collect() } else { of_both };
    assert_eq!(hinted(&report), all, "{err}");
    assert!(lines("needed").len() > 8 && of_ptx.len() == 3 && all.len() > 3);
    assert!(report["findings"].as_array().expect("findings").is_empty(), "{err}");
    // Four warps, once in each of four turns.
    let buffers = report["hints"].as_array().expect("a list").iter().find(|hint| {
        let line = hint["stack"][0]["source"].as_str().unwrap_or_default();
        line.contains("the next turn writes the other buffer")
    });
    let text = buffers.expect("its hint")["text"].as_str().expect("a text");
    assert!(text.contains("barrier of a block") && text.contains(" 16 times"), "{text}");
}

#[test]
fn superfluous_synchronisation_is_told_from_what_is_needed_in_ptx() {
    is_told_from_what_is_needed("ptx");
}

#[test]
fn superfluous_synchronisation_is_told_from_what_is_needed_in_machine_code() {
    is_told_from_what_is_needed("sass");
}

#[test]
fn nothing_is_tried_unasked() {
    let Some((report, err)) = report("unasked", "ptx", &[]) else { return };
    assert!(report["hints"].as_array().is_none_or(Vec::is_empty), "{err}");
}
