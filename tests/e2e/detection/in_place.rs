//! `--sim --host-accesses`: loads and stores of the host to memory that kernels, copies and fills
//! use in place, in a program that nobody rebuilt.

use std::path::PathBuf;

use serde_json::Value;
use tests::{build, product, run};

/// Racy as they are, silent with `fixed`.
const PAIRS: [&str; 25] = [
    "host_reads",
    "host_writes",
    "host_writes_input",
    "last_element",
    "middle",
    "in_struct",
    "managed_variable",
    "mapped",
    "pinned",
    "registered",
    "fill",
    "copy_out",
    "copy_in",
    "in_graph",
    "wrong_stream",
    "early_event",
    "host_function",
    "library_copy",
    "library_set",
    "system_call",
    "another_thread",
    "beside_first",
    "odd_members",
    "second_round",
    "atomic_counter",
];

/// Silent however they are run.
const SILENT: [&str; 9] = [
    "two_readers",
    "other_half",
    "another_allocation",
    "prefetched",
    "attached",
    "doorbell",
    "polled",
    "freed_and_made_anew",
    "forked",
];

fn program(source: &str) -> Option<PathBuf> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return None;
    }
    let file = product::root().join("tests/programs/sim").join(source);
    Some(build::cuda_program(&file, "shared", &[]).unwrap_or_else(|e| panic!("{e}")))
}

fn case(program: &PathBuf, options: &[&str], words: &[&str]) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim"]);
    run::end(command.args(options).arg("--").arg(program).args(words).env_remove("LD_LIBRARY_PATH"))
}

fn judge(program: &PathBuf, words: &[&str], racy: bool) -> Option<String> {
    let ended = case(program, &["--host-accesses"], words);
    let expected = if racy { 66 } else { 0 };
    let right = ended.code() == Some(expected) && ended.out == "done\n";
    let host = !racy || ended.err.contains(": the host ") && ended.err.contains("in_place.cu:");
    (!right || !host).then(|| format!("{words:?} ended with {:?}:\n{}\n{}", ended.code(), ended.out, ended.err))
}

#[test]
fn what_the_host_touches_while_work_is_pending_is_found() {
    let Some(program) = program("in_place.cu") else { return };
    let wrong: Vec<_> = PAIRS.iter().filter_map(|name| judge(&program, &[name], true)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_ordered_or_beside_it_is_not() {
    let Some(program) = program("in_place.cu") else { return };
    let mut wrong: Vec<_> = PAIRS.iter().filter_map(|name| judge(&program, &[name, "fixed"], false)).collect();
    wrong.extend(SILENT.iter().filter_map(|name| judge(&program, &[name], false)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What rings a bell in memory is a protocol that only the programmer knows.
#[test]
fn a_doorbell_is_possible_at_most() {
    let Some(program) = program("in_place.cu") else { return };
    let ended = case(&program, &["--host-accesses", "--pedantic", "--fail-on", "likely"], &["doorbell"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("DATA RACE") && ended.err.contains("(possible)"), "{}", ended.err);
}

#[test]
fn what_nothing_watches_is_said() {
    let Some(program) = program("in_place.cu") else { return };
    let json = build::scratch("in-place").join("report.json");
    for (name, options, managed, pinned) in [
        ("host_reads", &[][..], 1, 0),
        ("mapped", &[], 0, 1),
        ("mapped", &["--host-accesses"], 0, 0),
        ("host_writes", &["--host-accesses"], 0, 0),
    ] {
        let path = json.to_string_lossy().into_owned();
        let ended = case(&program, &[options, &["--json", &path]].concat(), &[name, "fixed"]);
        assert_eq!(ended.code(), Some(0), "{name}: {}", ended.err);
        assert_eq!(
            ended.err.contains("--sim --host-accesses sees them"),
            managed + pinned > 0,
            "{name}: {}",
            ended.err
        );
        let text = std::fs::read_to_string(&json).expect("a report");
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let unwatched = &report["coverage"]["host_unwatched"];
        assert_eq!((&unwatched["managed"], &unwatched["pinned"]), (&managed.into(), &pinned.into()), "{name}");
    }
}

/// A copy from pageable memory may not be over when it returns.
#[test]
fn a_copy_from_pageable_memory_is_likely_and_can_be_accepted() {
    let Some(program) = program("pageable_copy.cu") else { return };
    let ended = case(&program, &[], &[]);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("read-after-write (likely)") && ended.err.contains("rule C3"), "{}", ended.err);
    assert_eq!(case(&program, &["--no-pageable-copies"], &[]).code(), Some(0));
    assert_eq!(case(&program, &[], &["fixed"]).code(), Some(0));
    assert_eq!(case(&program, &[], &["pinned"]).code(), Some(0), "from pinned memory the host waits");
    let ended = case(&program, &["--no-pageable-copies"], &["asynchronous"]);
    assert_eq!(ended.code(), Some(66), "an asynchronous copy is not accepted: {}", ended.err);
}
