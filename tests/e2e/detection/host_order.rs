//! `--host-order threads`: what one host thread waited for is another one's only when something
//! hands it over.

use tests::run::{Ended, end, streamsan};
use tests::{build, fake};

fn run(how: &str, options: &[&str]) -> Ended {
    let program = build::c_program("host_order.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    end(streamsan(options).arg("--").arg(program).arg(how))
}

/// Those of which the second thread need not take part.
const WAYS: [&str; 32] = [
    "mutex",
    "mutex, tried",
    "mutex, timed",
    "mutex, by a clock",
    "condition",
    "condition, timed",
    "condition, by a clock",
    "lock",
    "lock, timed",
    "lock, by a clock",
    "lock, timed write",
    "lock, write by a clock",
    "semaphore",
    "semaphore, timed",
    "semaphore, by a clock",
    "spin lock",
    "once",
    "C11 mutex",
    "C11 mutex, tried",
    "C11 mutex, timed",
    "C11 condition",
    "C11 condition, timed",
    "C11 once",
    "ending",
    "ending, exit",
    "ending, cancelled",
    "ending, destructor",
    "ending, tried",
    "ending, timed",
    "ending, by a clock",
    "C11 ending",
    "C11 ending, exit",
];

#[test]
fn every_way_of_handing_over_is_seen() {
    for how in WAYS.into_iter().chain(["barrier", "making"]) {
        let ended = run(how, &["run", "--host-order", "threads"]);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{how}: {}", ended.err);
    }
}

#[test]
fn a_thread_that_takes_no_part_is_given_nothing() {
    for how in WAYS {
        let program = build::c_program("host_order.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
        let mut command = streamsan(["run", "--host-order", "threads", "--"]);
        let ended = end(command.arg(program).args([how, "unseen"]));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{how}: {}", ended.err);
    }
}

#[test]
fn a_flag_that_no_library_knows_of_hands_nothing_over() {
    let ended = run("flag", &["run", "--host-order", "threads"]);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{}", ended.err);
    assert!(ended.err.contains("read-after-write"), "{}", ended.err);
}

#[test]
fn threads_are_one_by_default() {
    for how in ["flag", "mutex"] {
        assert_eq!(run(how, &["run"]).code(), Some(0), "{how}");
    }
}

/// The edges are in the trace, so it can be checked both ways; a trace without them says so.
#[test]
fn a_trace_keeps_the_edges() {
    let trace = build::scratch("host-order").join("t");
    let path = trace.to_string_lossy().into_owned();
    let check = |options: &[&str]| end(streamsan(options).arg(&path));
    let recorded = run("flag", &["record", "-o", &path, "--host-order", "threads"]);
    assert_eq!(recorded.code(), Some(0), "{}", recorded.err);
    assert_eq!(check(&["check", "--host-order", "threads"]).code(), Some(66));
    assert_eq!(check(&["check"]).code(), Some(0));
    let recorded = run("flag", &["record", "-o", &path]);
    assert_eq!(recorded.code(), Some(0), "{}", recorded.err);
    let ended = check(&["check", "--host-order", "threads"]);
    assert_eq!(ended.code(), Some(0), "without edges nobody knows, so nobody is accused: {}", ended.err);
    assert!(ended.err.contains("not observed: synchronisation of host threads"), "{}", ended.err);
}

/// `streamsan coverage`: what is modelled, and what a trace has of it.
#[test]
fn coverage_lists_functions() {
    let all = end(&mut streamsan(["coverage"]));
    assert_eq!(all.code(), Some(0), "{}", all.err);
    assert!(all.out.contains("Not modelled:") && all.out.contains("\n  cuMulticastBindMem\n"), "{}", all.out);
    let trace = build::scratch("coverage").join("t");
    let path = trace.to_string_lossy().into_owned();
    let recorded = run("mutex", &["record", "-o", &path]);
    assert_eq!(recorded.code(), Some(0), "{}", recorded.err);
    let seen = end(streamsan(["coverage"]).arg(&path));
    assert!(seen.out.contains("cuMemsetD8Async") && seen.out.contains(" 1 op\n"), "{}", seen.out);
    let missing = end(streamsan(["coverage"]).arg("/nowhere"));
    assert_eq!(missing.code(), Some(2), "{}", missing.err);
}
