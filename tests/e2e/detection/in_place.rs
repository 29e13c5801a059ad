//! `--sim --host-accesses`: loads and stores of the host to memory that kernels, copies and fills
//! use in place, in a program that nobody rebuilt.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tests::{build, product, run};

/// Racy as they are, silent with `fixed`.
const PAIRS: [&str; 26] = [
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
    "pinned_copy",
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

/// Of these, what is touched after another touch of its page. Without single steps (aarch64:
/// `docs/internals/aarch64.md`) the page stays open until the next call, and nothing is found.
const NEED_STEPS: [&str; 2] = ["beside_first", "odd_members"];

/// The races that are found on this product's processor, or those that are not.
fn racy(found: bool) -> impl Iterator<Item = &'static str> {
    let steps = !product::is_aarch64();
    PAIRS.into_iter().filter(move |name| found == (steps || !NEED_STEPS.contains(name)))
}

/// Silent however they are run.
const SILENT: [&str; 11] = [
    "two_readers",
    "other_half",
    "another_allocation",
    "prefetched",
    "attached",
    "doorbell",
    "polled",
    "freed_and_made_anew",
    "forked",
    "blocked_read",
    "many_pages",
];

fn program(source: &str) -> Option<PathBuf> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return None;
    }
    let file = product::root().join("tests/programs/sim").join(source);
    Some(build::cuda_program(&file, "shared", &[]).unwrap_or_else(|e| panic!("{e}")))
}

/// What a real driver is asked is asked of the simulated one.
const AS_REAL: &str = "STREAMSAN_TEST_REAL_DRIVER";

fn case(program: &PathBuf, options: &[&str], words: &[&str]) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim"]);
    end(&mut command, program, options, words)
}

fn end(command: &mut Command, program: &PathBuf, options: &[&str], words: &[&str]) -> run::Ended {
    run::end(command.args(options).arg("--").arg(program).args(words).env_remove("LD_LIBRARY_PATH"))
}

fn judge(program: &PathBuf, words: &[&str], racy: bool) -> Option<String> {
    judge_under(run::streamsan(["run", "--sim"]), program, words, racy)
}

fn judge_under(mut command: Command, program: &PathBuf, words: &[&str], racy: bool) -> Option<String> {
    let ended = end(&mut command, program, &["--host-accesses"], words);
    let expected = if racy { 66 } else { 0 };
    let right = ended.code() == Some(expected) && ended.out == "done\n";
    let host = !racy || ended.err.contains(": the host ") && ended.err.contains("in_place.cu:");
    (!right || !host).then(|| format!("{words:?} ended with {:?}:\n{}\n{}", ended.code(), ended.out, ended.err))
}

#[test]
fn what_the_host_touches_while_work_is_pending_is_found() {
    let Some(program) = program("in_place.cu") else { return };
    let mut wrong: Vec<_> = racy(true).filter_map(|name| judge(&program, &[name], true)).collect();
    wrong.extend(racy(false).filter_map(|name| judge(&program, &[name], false)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_ordered_or_beside_it_is_not() {
    let Some(program) = program("in_place.cu") else { return };
    let mut wrong: Vec<_> = PAIRS.iter().filter_map(|name| judge(&program, &[name, "fixed"], false)).collect();
    wrong.extend(SILENT.iter().filter_map(|name| judge(&program, &[name], false)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The way of a real driver: what its attributes say, and few mappings.
#[test]
fn a_real_drivers_answers_lead_to_the_same() {
    let Some(program) = program("in_place.cu") else { return };
    let real = |words: &[&str], racy| {
        let mut command = run::streamsan(["run", "--sim"]);
        command.env(AS_REAL, "1");
        judge_under(command, &program, words, racy)
    };
    let mut wrong: Vec<_> = PAIRS.iter().filter_map(|name| real(&[name], true)).collect();
    wrong.extend(PAIRS.iter().filter_map(|name| real(&[name, "fixed"], false)));
    wrong.extend(SILENT.iter().filter_map(|name| real(&[name], false)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each page would become a mapping of its own: before there are too many, all is given back.
#[test]
fn too_many_pages_end_the_watch_of_a_real_driver() {
    let Some(program) = program("in_place.cu") else { return };
    let note = "after too many pages";
    let ended = case(&program, &["--host-accesses"], &["many_pages"]);
    assert!(ended.code() == Some(0) && !ended.err.contains(note), "{}", ended.err);
    let mut command = run::streamsan(["run", "--sim"]);
    let ended = end(command.env(AS_REAL, "1"), &program, &["--host-accesses"], &["many_pages"]);
    assert!(ended.code() == Some(0) && ended.out == "done\n" && ended.err.contains(note), "{}", ended.err);
}

/// Pages of 16 and 64 KiB, as kernels for Arm may have. This machine's are smaller, but all that is
/// protected and opened again goes by the size that the shim is told.
#[test]
fn large_pages_are_watched_as_a_whole() {
    if !product::is_aarch64() {
        return;
    }
    let Some(program) = program("in_place.cu") else { return };
    let told = build::c_program("page_size.c", &["-shared"]);
    let case = |size: &str, words: &[&str], racy: bool| {
        let mut command = run::streamsan(["run", "--sim"]);
        command.env("LD_PRELOAD", &told).env("PAGE_SIZE", size);
        let ended = end(&mut command, &program, &["--host-accesses"], words);
        assert!(ended.err.contains("page size: asked"), "{}", ended.err);
        let right = ended.code() == Some(if racy { 66 } else { 0 }) && ended.out == "done\n";
        (!right).then(|| format!("{size} {words:?}: {:?}\n{}\n{}", ended.code(), ended.out, ended.err))
    };
    let mut wrong = Vec::new();
    for size in ["16384", "65536"] {
        for name in ["host_reads", "middle", "pinned_copy"] {
            wrong.extend(case(size, &[name], true));
            wrong.extend(case(size, &[name, "fixed"], false));
        }
        // Other bytes of the same page; memory on the next one.
        wrong.extend(["other_half", "another_allocation"].iter().filter_map(|name| case(size, &[name], false)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Copies alone are watched when the memory that kernels use in place is left out.
#[test]
fn memory_in_place_can_be_left_out() {
    let Some(program) = program("in_place.cu") else { return };
    for (name, copies) in [("host_reads", false), ("mapped", false), ("pinned_copy", true)] {
        let ended = case(&program, &["--host-accesses", "--no-host-in-place"], &[name]);
        assert_eq!(ended.code(), Some(if copies { 66 } else { 0 }), "{name}: {}", ended.err);
    }
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
        assert_eq!(ended.err.contains("(--host-accesses sees them)"), managed + pinned > 0, "{name}: {}", ended.err);
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

/// A launch says what small pinned memory holds: the kernel's other buffers are found through it.
#[test]
fn a_kernel_is_followed_through_pointers_in_pinned_memory() {
    let Some(program) = program("pinned_table.cu") else { return };
    for (name, code) in [("same", 66), ("changed", 66), ("other", 0)] {
        let ended = case(&program, &[], &[name]);
        assert_eq!(ended.code(), Some(code), "{name}: {}", ended.err);
        let fixed = case(&program, &[], &[name, "fixed"]);
        assert_eq!(fixed.code(), Some(0), "{name}: {}", fixed.err);
    }
}
