//! Python stacks captured in a real interpreter (the `python3` of the machine, or the ones in
//! `STREAMSAN_TEST_PYTHONS`, separated by colons).

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use crate::stack_support::{Capture, compile, parse, probe, run, scratch};

const ENTRY: u32 = 1 << 31;

fn pythons() -> Vec<String> {
    match std::env::var("STREAMSAN_TEST_PYTHONS") {
        Ok(list) => list.split(':').map(str::to_string).collect(),
        Err(_) => vec!["python3".to_string()],
    }
}

/// Runs a scenario under every interpreter.
fn each(scenario: &str, check: impl Fn(Vec<Capture>, Vec<String>)) {
    for python in pythons() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stack_programs/frames.py");
        let mut command = Command::new(&python);
        command.arg(script).arg(probe().join("libstack_probe.so")).arg(scenario);
        let (captures, lines) = parse(&run(&mut command));
        check(captures, lines);
    }
}

/// Plain names: qualified ones exist from 3.11 on only, and comprehensions have no frame from 3.12
/// on.
fn names(capture: &Capture) -> Vec<String> {
    let plain = |name: &str| name.rsplit('.').next().unwrap_or(name).to_string();
    capture.python_names().into_iter().map(plain).filter(|name| name != "<listcomp>").collect()
}

const NESTED: [&str; 5] = ["inner", "forward", "produce", "<lambda>", "through_c"];

#[test]
fn an_interpreter_is_found() {
    each("detect", |_, lines| assert_eq!(lines, ["1"]));
}

#[test]
fn nested_calls_with_and_without_the_gil() {
    for scenario in ["nested", "held"] {
        each(scenario, |captures, _| {
            assert_eq!(captures.len(), 2, "one for each item");
            for capture in &captures {
                let names = names(capture);
                assert_eq!(names[..5], NESTED);
                assert_eq!(names[5..], ["<module>"]);
                let (file, _, first_line) = &capture.codes[&(capture.python[0].0, capture.python[0].1)];
                assert!(file.ends_with("stack_programs/frames.py"));
                assert_eq!(*first_line, 11);
            }
        });
    }
}

#[test]
fn runs_of_the_loop_are_marked() {
    each("nested", |captures, _| {
        let capture = &captures[0];
        let marks: Vec<_> = capture.python.iter().map(|(_, _, offset)| offset & ENTRY != 0).collect();
        assert_eq!(marks.last(), Some(&true), "the outermost frame begins a run");
        let loops = capture.names().iter().filter(|name| name.starts_with("_PyEval_EvalFrameDefault")).count();
        // Where the interpreter carries symbols, there is one native frame of the loop for every
        // run.
        assert!(loops == 0 || loops == marks.iter().filter(|mark| **mark).count(), "{loops} for {marks:?}");
        let lambda = names(capture).iter().position(|name| name == "<lambda>").expect("called from C");
        let lambda = lambda + usize::from(marks.len() > names(capture).len());
        assert!(marks[lambda], "what C code called begins a run: {marks:?}");
    });
}

/// Under Python a native stack ends at the first frame of the interpreter; elsewhere nothing
/// changes.
#[test]
fn native_stacks_end_at_the_interpreter() {
    each("nested", |captures, _| {
        for capture in &captures {
            let module = |address: &u64| capture.modules.iter().rposition(|m| m.0 < *address && *address <= m.1);
            let (last, inner) = capture.cut.split_last().expect("frames");
            // The first frame is of the probe itself, where the two captures differ.
            assert_eq!(capture.cut[1..], capture.frames[1..capture.cut.len()], "the inner part of the whole stack");
            assert!(capture.frames.len() > capture.cut.len() + 5, "{:?}", capture.names());
            assert!(inner.iter().all(|address| module(address) != module(last)), "it was not there before");
            // Where the program's `main` is, or the library that it is in.
            let outer = capture.frames.iter().filter(|address| module(address) == module(last)).count();
            assert!(outer > 5, "the rest is nearly all of that module: {:?}", capture.names());
        }
    });
}

#[test]
fn on_other_threads() {
    each("thread", |captures, _| {
        let names = names(&captures[0]);
        assert_eq!(names[..5], NESTED);
        assert_eq!(names[5..], ["run", "_bootstrap_inner", "_bootstrap"]);
    });
}

#[test]
fn properties_and_callbacks_from_native_code() {
    each("property", |captures, _| assert_eq!(names(&captures[0]), ["inner", "value", "<module>"]));
    each("callback", |captures, _| {
        assert_eq!(names(&captures[0]), ["inner", "<lambda>", "inner", "<module>"]);
    });
}

#[test]
fn deep_stacks_are_cut_at_the_outer_end() {
    each("deep", |captures, _| {
        assert_eq!(captures[0].python.len(), 64);
        assert!(names(&captures[0]).iter().all(|name| name == "recursive"));
    });
}

#[test]
fn while_other_threads_run_python() {
    each("busy", |captures, _| {
        assert_eq!(captures.len(), 200);
        for capture in &captures {
            assert_eq!(names(capture), ["inner", "<module>"]);
        }
    });
}

#[test]
fn code_objects_in_the_place_of_others_are_told_apart() {
    each("reused", |captures, _| {
        assert_eq!(captures.len(), 60);
        let mut keys = HashSet::new();
        for (i, capture) in captures.iter().enumerate() {
            assert_eq!(names(capture), [format!("made{i}"), "<module>".into(), "<module>".into()]);
            keys.insert((capture.python[0].0, capture.python[0].1));
        }
        assert_eq!(keys.len(), 60, "every one has a key of its own");
    });
}

/// The probe compares each walk that is known with one that is not.
#[test]
fn walks_that_are_known_are_what_a_walk_finds() {
    for (scenario, least) in [("again", 5_000), ("many", 10)] {
        each(scenario, |_, lines| {
            let known: usize = lines[0].parse().expect("a number");
            assert!(known > least, "{known} of {scenario}");
        });
    }
}

#[test]
fn nothing_while_the_interpreter_ends() {
    each("finalizing", |captures, _| {
        assert_eq!(captures.len(), 1);
        for capture in captures {
            assert!(capture.python.is_empty(), "{:?}", names(&capture));
            assert!(!capture.frames.is_empty());
        }
    });
}

#[test]
fn nothing_in_a_program_without_python() {
    let program = compile("walks.cc", &scratch("python").join("walks"), &["-O1", "-std=c++17"]);
    let (captures, lines) = parse(&run(Command::new(program).arg("no-python")));
    assert_eq!(lines, ["0"]);
    assert!(captures[0].python.is_empty() && !captures[0].frames.is_empty());
}
