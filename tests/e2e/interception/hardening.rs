//! What breaks preloaded libraries: the program must end as it ends without us, and what was
//! checked must be told rightly.
//!
//! Runs `tests/programs/hard.c` against the fake driver; the outcomes are summed up in
//! `docs/internals/hardening.md`. `STREAMSAN_HARDENING=full` takes the large sizes (a million
//! allocations, a thousand forks).

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::run::{self, Ended, command, end, preloaded, streamsan};
use tests::{build, fake, product};

fn hard() -> PathBuf {
    build::c_program("hard.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda", "-ldl", "-lpthread"])
}

fn full() -> bool {
    std::env::var_os("STREAMSAN_HARDENING").is_some_and(|v| v == "full")
}

fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// Runs `hard.c` bare, under the launcher, under plain preloading, and with every option that hooks
/// more: all must end alike. Answers how it ended under the launcher, and preloaded.
fn everywhere(args: &[&str]) -> (Ended, Ended) {
    let program = hard();
    let bare = end(command(&program).args(args));
    let same = |title: &str, checked: &Ended| {
        assert!(!checked.hung, "{args:?} {title}: hangs");
        assert_eq!((checked.status, &checked.out), (bare.status, &bare.out), "{args:?} {title}: {}", checked.err);
        assert!(!checked.err.contains("internal fault"), "{args:?} {title}: {}", checked.err);
    };
    let launched = end(streamsan(["run", "--"]).arg(&program).args(args));
    if launched.err.contains("ERROR: not checked: ") {
        // The program ran as bare; the run is not green.
        assert_eq!((launched.code(), &launched.out), (Some(70), &bare.out), "{args:?}: {}", launched.err);
    } else {
        same("launched", &launched);
    }
    let alone = end(preloaded(&program, "").args(args));
    same("preloaded", &alone);
    let mut more = streamsan(["run", "--host-accesses", "--host-order", "threads", "--"]);
    let more = end(more.arg(&program).args(args));
    if more.code() != Some(70) || !more.err.contains("ERROR: not checked: ") {
        same("with more hooks", &more);
    }
    (launched, alone)
}

#[track_caller]
fn launches(ended: &Ended, count: u32) {
    let wanted = format!("COVERAGE: {count} launches");
    assert!(ended.err.contains(&wanted), "not '{wanted}':\n{}", ended.err);
}

#[test]
fn a_second_driver_in_a_namespace_of_its_own_is_left_alone_and_named() {
    let (ended, _) = everywhere(&["dlmopen"]);
    launches(&ended, 15);
    assert!(ended.err.contains("not observed: functions looked up in a second driver"), "{}", ended.err);
}

#[test]
fn without_descriptors_it_says_so_and_steps_aside() {
    let (ended, alone) = everywhere(&["descriptors"]);
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
    for err in [&ended.err, &alone.err] {
        assert!(err.contains("can not check this process") && err.contains("Too many open files"), "{err}");
    }
    // Preloaded alone, it ends with the code of such a run where exit codes were asked for.
    let asked = end(preloaded(hard(), "error-exitcode=66").arg("descriptors"));
    assert_eq!((asked.code(), asked.out), (Some(70), ended.out), "{}", asked.err);
}

#[test]
fn in_an_empty_root_it_goes_on_or_steps_aside() {
    if !is_root() {
        return;
    }
    let (ended, alone) = everywhere(&["chroot", "0"]);
    launches(&ended, 10);
    assert!(alone.err.contains("can not check this process"), "{}", alone.err);
    let (ended, alone) = everywhere(&["chroot", "1"]);
    launches(&ended, 10);
    launches(&alone, 10);
}

#[test]
fn sandboxes_take_nothing_from_the_program() {
    let (ended, alone) = everywhere(&["memfd"]);
    launches(&ended, 10);
    launches(&alone, 10);
    for before in ["0", "1"] {
        let (ended, _) = everywhere(&["sandbox", before]);
        launches(&ended, if before == "1" { 13 } else { 10 });
    }
    let (ended, _) = everywhere(&["sandbox-first"]);
    assert!(ended.err.contains("can not check this process"), "{}", ended.err);
}

#[test]
fn a_sandbox_that_ends_who_makes_unknown_calls_meets_none_of_ours() {
    let (ended, alone) = everywhere(&["strict", "0"]);
    launches(&ended, 13);
    launches(&alone, 13);
    // One that uses no CUDA.
    everywhere(&["strict", "2"]);
    // More than a small ring has room for: the program is held back meanwhile.
    let mut command = streamsan(["run", "--ring-mib", "1", "--"]);
    let ended = end(command.arg(hard()).args(["strict", "1"]));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "in\ndone\n"), "{}", ended.err);
    launches(&ended, 100_003);
}

/// A shell command in a mount namespace of its own, where /dev/shm and /tmp have 64 KiB.
fn with_full_file_systems(script: &str, program: &Path) -> Option<Ended> {
    if !is_root() || !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return None;
    }
    // A checkout in one of these folders is still needed.
    let mount = "set -e; trap 'exit 77' EXIT; mount --bind \"$3\" /mnt
        for f in /dev/shm /tmp /var/tmp; do mount -t tmpfs -o size=64k none $f; done
        [ -d \"$3\" ] || { mkdir -p \"$3\"; mount --bind /mnt \"$3\"; }
        trap - EXIT";
    let mut shell = command("unshare");
    shell.args(["-m", "sh", "-c", &format!("{mount}; {script}"), "sh"]).arg(program).arg(product::shim());
    shell.arg(product::root());
    Some(end(&mut shell)).filter(|ended| ended.status.code() != Some(77))
}

#[test]
fn full_file_systems_and_no_memfd_are_told_and_not_died_of() {
    let script = "LD_PRELOAD=$2 exec \"$1\" memfd";
    let Some(ended) = with_full_file_systems(script, &hard()) else { return };
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    assert!(ended.err.contains("can not check this process: no shared memory"), "{}", ended.err);
}

#[test]
fn a_stack_overflow_is_the_programs_own() {
    let (ended, alone) = everywhere(&["overflow", "0"]);
    assert_eq!(ended.signal(), Some(libc::SIGSEGV));
    launches(&ended, 10);
    launches(&alone, 10);
    let (ended, _) = everywhere(&["overflow", "1"]);
    assert_eq!(ended.code(), Some(7));
}

#[test]
fn a_timer_that_interrupts_hooks_loses_no_call_untold() {
    let program = hard();
    let ended = end(streamsan(["run", "--"]).arg(&program).arg("alarms"));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    let number = |before: &str| -> u64 {
        let text = ended.err.split(before).nth(1).unwrap_or_default();
        text.trim_start().split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    let (made, seen, told) = (number("launches "), number("COVERAGE: "), number("(by a signal handler): "));
    assert!(made > 500 && made == seen + told, "{made} made, {seen} seen, {told} told");
}

#[test]
fn destructors_of_threads_and_exit_handlers_are_observed() {
    let (ended, alone) = everywhere(&["destructors"]);
    // Twenty threads with two launches and four in a destructor each; four in an exit handler, four
    // in a destructor of the program.
    launches(&ended, 128);
    launches(&alone, 128);
}

#[test]
fn many_threads_streams_allocations_and_look_ups() {
    let (ended, _) = everywhere(&["threads", "256"]);
    launches(&ended, 25_600);
    let (ended, _) = everywhere(&["streams", "4096"]);
    launches(&ended, 3 * 4096);
    let (ended, _) = everywhere(&["allocations", if full() { "1000000" } else { "100000" }]);
    launches(&ended, 10);
    let (ended, _) = everywhere(&["dlstorm", "500"]);
    launches(&ended, 489);
}

#[test]
fn many_forks_one_report_each_for_those_that_use_cuda() {
    let count: u32 = if full() { 1000 } else { 200 };
    let (ended, _) = everywhere(&["forks", &count.to_string()]);
    launches(&ended, count + 2 * count.div_ceil(50));
    assert!(ended.err.contains(&format!("{} processes", 1 + count.div_ceil(50))), "{}", ended.err);
}

#[test]
fn programs_that_nothing_can_be_preloaded_into_are_named() {
    let folder = build::scratch("closed");
    let program = folder.join("closed");
    let source = folder.join("closed.c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"done\"); return 3; }\n").expect("writable");
    let gcc =
        |extra: &[&str]| Command::new("gcc").arg(&source).arg("-o").arg(&program).args(extra).status().expect("gcc");
    if gcc(&["-static"]).success() {
        let ended = end(streamsan(["run", "--"]).arg(&program));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(3), "done\n"), "{}", ended.err);
        assert!(ended.err.contains("was not checked: it is linked statically"), "{}", ended.err);
    }
    assert!(gcc(&[]).success());
    let ended = end(streamsan(["run", "--"]).arg(&program));
    assert_eq!(ended.code(), Some(3));
    assert!(!ended.err.contains("was not checked"), "{}", ended.err);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("ours");
    let ended = end(streamsan(["run", "--"]).arg(&program));
    assert_eq!(ended.code(), Some(3));
    assert!(ended.err.contains("was not checked: it is set-user-ID"), "{}", ended.err);
}

#[test]
fn an_empty_environment_is_an_unchecked_run() {
    let mut shell = streamsan(["run", "--", "env", "-i"]);
    shell.arg(format!("LD_LIBRARY_PATH={}", fake::folder().display())).arg(hard()).arg("plain");
    let ended = end(&mut shell);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    assert!(ended.err.contains("no CUDA work was seen"), "{}", ended.err);
}

#[test]
fn address_sanitizer_works_in_the_same_process() {
    let library = format!("-L{}", fake::folder().display());
    let source = build::programs().join("hard.c");
    let header = format!("-I{}", build::programs().join("fake").display());
    let program = build::scratch("asan").join("hard");
    let made = Command::new("gcc")
        .args(["-g", "-fsanitize=address", &header, "-o"])
        .arg(&program)
        .arg(&source)
        .args([&library, "-lcuda", "-ldl", "-lpthread"])
        .output()
        .expect("gcc");
    if !made.status.success() {
        return;
    }
    for args in [&["plain"][..], &["threads", "16"], &["alarms"], &["forks", "60"], &["destructors"]] {
        // Leaks are another matter: the fake driver has some, and what our tables know of is none.
        let leaks = ("ASAN_OPTIONS", "detect_leaks=0");
        let bare = end(command(&program).args(args).env(leaks.0, leaks.1));
        let mut checked = streamsan(["run", "--host-accesses", "--"]);
        let checked = end(checked.arg(&program).args(args).env(leaks.0, leaks.1));
        assert_eq!(
            (checked.status, &checked.out),
            (bare.status, &bare.out),
            "{args:?}: bare: {} checked: {}",
            bare.err,
            checked.err
        );
        assert!(
            checked.err.contains("COVERAGE") && !checked.err.contains("AddressSanitizer"),
            "{args:?}: {}",
            checked.err
        );
    }
}

#[test]
fn valgrind_has_nothing_to_say_but_of_the_probes_that_its_file_names() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return;
    }
    let rules = format!("--suppressions={}", product::root().join("docs/reference/valgrind.supp").display());
    let mut valgrind = preloaded("valgrind", "");
    valgrind.args(["-q", "--error-exitcode=9", &rules]).arg(hard()).arg("plain").process_group(0);
    let ended = run::end(&mut valgrind);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    assert!(ended.err.contains("COVERAGE: 10 launches"), "{}", ended.err);
}
