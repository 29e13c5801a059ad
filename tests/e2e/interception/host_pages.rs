//! `--host-accesses` protects pages that the program uses for other things: their protection and
//! mapping, stacks, locks of the C library, and what calls hand to Linux stay as they are.
//!
//! Runs `tests/programs/sim/host_pages.cu` and `host_calls.cu` on the simulated GPU, observed and
//! not.

use std::path::PathBuf;

use tests::build;
use tests::run::{Ended, end, streamsan};

const KINDS: [&str; 3] = ["pinned", "managed", "registered"];

fn program() -> Option<PathBuf> {
    build::cuda_program_if_possible("sim/host_pages.cu", "shared", &[])
}

fn run(program: &PathBuf, options: &[&str], words: &[&str]) -> Ended {
    let mut command = streamsan(["run", "--sim"]);
    end(command.args(options).arg("--").arg(program).args(words).env_remove("LD_LIBRARY_PATH"))
}

/// What the forms of a group do works as without StreamSan, nothing is reported, and what the
/// host reads too early after each form still is.
#[track_caller]
fn unharmed(group: &str, forms: u32, unwatched: bool) {
    let Some(program) = program() else { return };
    for kind in KINDS {
        let bare = run(&program, &["--off"], &[group, kind]);
        assert_eq!(bare.code(), Some(0), "{group} {kind}: {}{}", bare.out, bare.err);
        let watched = run(&program, &["--host-accesses"], &[group, kind]);
        assert_eq!((watched.code(), &watched.out), (Some(0), &bare.out), "{group} {kind}: {}", watched.err);
        let note = "where stacks, locks or protections of the program lie";
        assert_eq!(watched.err.contains(note), unwatched, "{group} {kind}: {}", watched.err);
        let racy = run(&program, &["--host-accesses"], &[group, kind, "racy"]);
        assert_eq!((racy.code(), &racy.out), (Some(66), &bare.out), "{group} {kind}: {}", racy.err);
        let all = format!(", {forms} occurrences, ");
        assert!(racy.err.contains(": the host ") && racy.err.contains(&all), "{group} {kind}: {}", racy.err);
    }
}

#[test]
fn protections_and_mappings_of_the_program_stay() {
    unharmed("mappings", 6, true);
}

#[test]
fn stacks_may_lie_in_memory_that_kernels_use() {
    unharmed("stacks", 4, true);
}

#[test]
fn locks_and_streams_of_the_c_library_may_lie_there() {
    unharmed("locks", 4, true);
}

#[test]
fn structures_paths_and_lists_there_reach_linux() {
    unharmed("calls", 5, false);
}

#[test]
fn rarer_calls_reach_linux_as_well() {
    let Some(program) = build::cuda_program_if_possible("sim/host_calls.cu", "shared", &["-w", "-lrt"]) else { return };
    for kind in KINDS {
        let bare = run(&program, &["--off"], &[kind]);
        let (calls, work) = (bare.out.lines().count(), bare.out.matches(": works\n").count());
        let what = format!("{kind}: {:?} {calls} {work} {}{}", bare.code(), bare.out, bare.err);
        assert!(bare.code() == Some(0) && calls > 100 && work > 70, "{what}");
        let watched = run(&program, &["--host-accesses"], &[kind]);
        assert_eq!((watched.code(), &watched.out), (Some(0), &bare.out), "{kind}: {}", watched.err);
        let racy = run(&program, &["--host-accesses"], &[kind, "racy"]);
        assert_eq!((racy.code(), &racy.out), (Some(66), &bare.out), "{kind}: {}", racy.err);
        assert!(racy.err.contains(": the host "), "{kind}: {}", racy.err);
    }
}
