//! Native stacks captured in real programs: the right functions in the right order, and never a
//! crash.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::stack_support::{Capture, compile, parse, run, scratch};

/// The program, without frame pointers.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        compile("walks.cc", &scratch("native").join("walks"), &["-O2", "-fomit-frame-pointer", "-std=c++17"])
    })
}

fn captures(scenario: &str) -> Vec<Capture> {
    parse(&run(Command::new(program()).arg(scenario))).0
}

fn one(scenario: &str) -> Capture {
    let mut all = captures(scenario);
    assert_eq!(all.len(), 1, "{scenario}");
    all.remove(0)
}

#[test]
fn recursion() {
    let all = one("recursion").names();
    assert_eq!(all[..6], ["at_leaf", "at_recursion", "at_recursion", "at_recursion", "at_recursion", "main"]);
    assert!(all[6..].iter().any(|name| name.starts_with("__libc_start")), "down to the start: {all:?}");
    assert!(all.len() <= 9, "and no further: {all:?}");
}

#[test]
fn deep_stacks_are_cut_at_the_outer_end() {
    let names = one("deep").names();
    assert_eq!(names.len(), 96);
    assert_eq!(names[0], "at_leaf");
    assert!(names[1..].iter().all(|name| name == "at_recursion"));
}

#[test]
fn odd_frames() {
    let names = one("odd-frames").own_names();
    assert_eq!(names[..3], ["at_leaf", "at_dynamic", "at_aligned"]);
    assert_eq!(names.last().map(String::as_str), Some("main"));
}

#[test]
fn a_thread_with_a_small_stack() {
    let names = one("thread").names();
    assert_eq!(names[..5], ["at_leaf", "at_recursion", "at_recursion", "at_recursion", "at_thread"]);
    assert!(names.len() > 5 && names.len() <= 7, "the thread's start and nothing else: {names:?}");
}

#[test]
fn through_signal_frames() {
    let names = one("signal").own_names();
    assert_eq!(names, ["at_leaf", "at_handler", "at_raiser", "main"]);
    let names = one("fault").own_names();
    assert_eq!(names, ["at_leaf", "at_fault", "main"]);
}

#[test]
fn from_an_alternate_stack_to_the_thread_s_own() {
    let all = captures("alternate-stack");
    assert_eq!(all[0].own_names(), ["at_leaf", "at_recursion", "main"]);
    assert_eq!(all[1].own_names(), ["at_leaf", "at_handler", "at_raiser", "main"]);
    assert_eq!(one("alternate-fault").own_names(), ["at_leaf", "at_fault", "main"]);
}

#[test]
fn in_a_forked_child() {
    let mut all: Vec<_> = captures("fork").iter().map(Capture::own_names).collect();
    all.sort_by_key(Vec::len);
    assert_eq!(all[0], ["at_leaf", "at_recursion", "at_recursion", "main"]);
    assert_eq!(all[1], ["at_leaf", "at_recursion", "at_recursion", "at_recursion", "main"]);
}

#[test]
fn on_coroutines() {
    for scenario in ["coroutine-heap", "coroutine-edge"] {
        let all = captures(scenario);
        assert_eq!(all[0].own_names(), ["at_leaf", "at_recursion", "at_recursion", "at_coroutine"], "{scenario}");
        assert_eq!(all[1].own_names(), ["at_leaf", "at_recursion", "main"], "back home in {scenario}");
    }
    let all = captures("coroutine-gone");
    assert_eq!(all.len(), 100);
    for pair in all.chunks_exact(2) {
        assert_eq!(pair[0].own_names(), ["at_leaf", "at_recursion", "at_recursion", "at_coroutine"]);
        assert_eq!(pair[1].own_names(), ["at_leaf", "at_recursion", "main"]);
    }
}

#[test]
fn generated_code() {
    // With a frame pointer: on to the caller. Without anything: the address itself, then the end.
    let names = one("jit-frame").names();
    assert_eq!(names[..4], ["at_leaf", "?", "at_jit", "main"]);
    let names = one("jit-bare").names();
    assert_eq!(names[..2], ["at_leaf", "?"]);
    assert!(!names[2..].iter().any(|name| name.starts_with("at_")) || names[2] == "at_jit", "{names:?}");
}

#[test]
fn before_and_after_main_and_at_thread_exit() {
    assert_eq!(one("before-main").own_names(), ["at_leaf", "at_start"]);
    assert_eq!(one("after-main").own_names(), ["at_leaf", "at_end"]);
    let names = one("thread-exit").names();
    assert_eq!(names[..2], ["at_leaf", "Ender::~Ender"]);
    assert!(names.len() > 2);
}

#[test]
fn threads_leave_nothing_behind() {
    let text = run(Command::new(program()).arg("threads"));
    let numbers: Vec<i64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [grown, least] = numbers[..] else { panic!("{text}") };
    assert!(grown < 256, "{grown} KiB for 3600 threads");
    assert!(least >= 2, "every thread has frames");
}

/// The probe compares each walk that is known with one that is not.
#[test]
fn walks_that_are_known_are_what_a_walk_finds() {
    for (scenario, least) in [("again", 10_000), ("many-stacks", 10_000)] {
        let known: usize = run(Command::new(program()).arg(scenario)).trim().parse().expect("a number");
        assert!(known > least, "{known} of {scenario}");
    }
}

fn plugins() -> [PathBuf; 2] {
    let directory = scratch("plugins");
    ["alpha", "omega"].map(|name| {
        let helper = format!("-DHELPER=at_{name}");
        let pad = if name == "alpha" { "-DPAD=24" } else { "-DPAD=200" };
        let out = directory.join(format!("lib{name}-{:?}.so", std::thread::current().id()));
        compile("plugin.c", &out, &["-O2", "-fPIC", "-shared", "-fomit-frame-pointer", &helper, pad])
    })
}

#[test]
fn libraries_that_take_each_other_s_place() {
    let (all, lines) = parse(&run(Command::new(program()).arg("plugin").args(plugins())));
    for (capture, helper) in all.iter().zip(["at_alpha", "at_omega", "at_alpha", "at_omega"]) {
        assert_eq!(capture.own_names(), ["at_leaf", helper, "at_plugin", "main"], "{lines:?}");
    }
    assert_eq!(all.len(), 4);
}

#[test]
fn walking_while_libraries_come_and_go() {
    let text = run(Command::new(program()).arg("many").args(plugins()));
    assert_eq!(text, "1\n1\n1\n1\n");
}

#[test]
fn a_library_by_a_relative_name_has_an_absolute_path() {
    let [first, second] = plugins();
    let directory = first.parent().expect("directory");
    let relative = |path: &PathBuf| format!("./{}", path.file_name().expect("name").to_string_lossy());
    let mut command = Command::new(program());
    command.current_dir(directory).arg("plugin").args([relative(&first), relative(&second)]);
    let (all, _) = parse(&run(&mut command));
    assert!(all[0].modules.iter().all(|module| module.3.starts_with('/')), "{:?}", all[0].modules);
    assert_eq!(all[0].own_names(), ["at_leaf", "at_alpha", "at_plugin", "main"]);
}

#[test]
fn frame_pointers_or_not_optimised_or_not() {
    for (name, flags) in [
        ("o0", &["-O0", "-std=c++17"][..]),
        ("fp", &["-O2", "-fno-omit-frame-pointer", "-std=c++17"]),
        ("o3", &["-O3", "-march=native", "-std=c++17"]),
        ("static-pie-no", &["-O1", "-no-pie", "-std=c++17"]),
    ] {
        let program = compile("walks.cc", &scratch("native").join(name), flags);
        let (all, _) = parse(&run(Command::new(&program).arg("odd-frames")));
        let names = all[0].own_names();
        assert_eq!(names[..3], ["at_leaf", "at_dynamic", "at_aligned"], "{name}");
        let (all, _) = parse(&run(Command::new(&program).arg("signal")));
        assert_eq!(all[0].own_names(), ["at_leaf", "at_handler", "at_raiser", "main"], "{name}");
    }
}
