//! What programs do to their own process while the driver and the shim are in it: memory that is
//! locked, descriptors that are closed and used for the program's own files, a main thread that
//! ends before the others.
//!
//! Runs `tests/programs/unharmed.c` on the simulated GPU, observed and not.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tests::run::{Ended, end, end_of, preloaded, streamsan};
use tests::{build, product};

fn program() -> PathBuf {
    build::c_program("unharmed.c", &[])
}

/// The ways to run a program on the simulated GPU.
const SIMULATED: [&[&str]; 2] = [&["--sim"], &["--sim", "--off"]];

fn run(options: &[&str], args: &[&str]) -> Command {
    let mut command = streamsan(["run"]);
    command.args(options).arg("--").arg(program()).args(args);
    command
}

#[track_caller]
fn worked(ended: &Ended, what: &str) {
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "worked\n"), "{what}: {}", ended.err);
}

/// The program instrumented for host accesses; its code asks in line where it can.
fn instrumented() -> PathBuf {
    let source = build::programs().join("unharmed.c");
    let include = build::programs().join("fake");
    let asked = build::asked_inline();
    let asks = if product::is_aarch64() { String::new() } else { format!("-Xassembler '{}'", asked.display()) };
    let script = format!(
        "gcc -O1 -g -fsanitize=thread -pthread {asks} -I'{}' -c '{}' -o '{{out}}'.o; \
         gcc '{{out}}'.o -o '{{out}}' -pthread -L'{}' -lstreamsan_host -ldl",
        include.display(),
        source.display(),
        product::bin().display(),
    );
    let inputs = [source.as_path(), &build::programs().join("common.h"), &include.join("cuda_mini.h"), &asked];
    build::cached("unharmed-instrumented", Path::new("sh"), &["-ec".into(), script], &inputs).expect("gcc")
}

#[track_caller]
fn locks(options: &[&str], program: &Path, flags: i32, when: &str) {
    let mut command = streamsan(["run", "--sim"]);
    command.args(options).arg("--").arg(program).args(["lock", &flags.to_string(), when]);
    let ended = end(&mut command);
    // Without the right to lock so much, the program ends at once.
    if ended.out != "not allowed\n" {
        worked(&ended, &format!("{options:?}, flags {flags}, when {when}"));
    }
}

const CURRENT_AND_FUTURE: i32 = libc::MCL_CURRENT | libc::MCL_FUTURE;

#[test]
fn locked_memory_takes_only_what_the_program_has_allocated() {
    for flags in [libc::MCL_CURRENT, libc::MCL_FUTURE, CURRENT_AND_FUTURE] {
        for when in ["0", "1", "2"] {
            locks(&[], &program(), flags, when);
        }
    }
    for (flags, when) in [(libc::MCL_FUTURE, "0"), (CURRENT_AND_FUTURE, "2")] {
        locks(&["--host-accesses"], &instrumented(), flags, when);
    }
}

#[test]
fn a_program_may_close_all_descriptors_and_use_their_numbers() {
    let folder = build::scratch("unharmed-closed");
    for options in SIMULATED {
        for how in ["0", "1", "2"] {
            let ended = end(&mut run(options, &["close", how, &folder.to_string_lossy()]));
            worked(&ended, &format!("{options:?}, how {how}"));
        }
    }
}

#[test]
fn memory_whose_descriptor_is_closed_is_not_shared_and_no_other_file_is() {
    let folder = build::scratch("unharmed-shared");
    for how in ["0", "1", "2"] {
        let ended = end(&mut run(&["--sim"], &["share", how, &folder.to_string_lossy()]));
        let refused = if how == "2" { "shared: 304\n" } else { "opened: 1\n" };
        assert_eq!(ended.out, format!("{refused}worked\n"), "how {how}: {}", ended.err);
        assert_eq!(ended.code(), Some(70), "how {how}: {}", ended.err);
        assert!(ended.err.contains("has closed the descriptor"), "how {how}: {}", ended.err);
    }
}

#[test]
fn a_signal_ends_a_process_whose_main_thread_has_ended() {
    for options in SIMULATED {
        for who in ["m", "o", "b"] {
            for signal in [libc::SIGTERM, libc::SIGINT] {
                let mut command = run(options, &["main-exit", who]);
                let mut child =
                    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn().expect("streamsan");
                let mut line = String::new();
                let mut out = BufReader::new(child.stdout.take().expect("piped"));
                out.read_line(&mut line).expect("a line");
                assert_eq!(line, "worked\n", "{options:?} {who}");
                // SAFETY: our child, which is not waited for yet.
                unsafe { libc::kill(child.id() as i32, signal) };
                let ended = end_of(child);
                assert_eq!(ended.signal(), Some(signal), "{options:?} {who}: {}", ended.err);
            }
        }
    }
}

/// Runs the program with this file as its descriptor 2, and answers how it ended; the file must
/// hold what the program has written, and nothing else.
#[track_caller]
fn file_is_the_programs(mut command: Command, file: &Path, how: &str, late: &str) -> Ended {
    let _ = std::fs::remove_file(file);
    command.args(["stderr", how]).arg(file).arg(late);
    let ended = end(&mut command);
    let text = std::fs::read(file).expect("the program has made it");
    let what = format!("{how} {late} {command:?}: {}", ended.err);
    assert_eq!(String::from_utf8_lossy(&text), "DATA", "{what}");
    assert!(ended.signal().is_none() && !ended.out.is_empty(), "{what}");
    ended
}

#[test]
fn no_message_goes_into_a_file_that_the_program_opens_as_descriptor_2() {
    let folder = build::scratch("unharmed-stderr");
    let file = folder.join("data");
    for how in ["x", "n", "c", "i"] {
        for late in ["0", "1"] {
            for options in [&["--sim"][..], &["--off", "--sim"], &["--host-accesses", "--sim"], &[]] {
                // Without the shim, a driver that is loaded late can not know.
                if (options.contains(&"--off") && late == "1") || (options.is_empty() && how == "i") {
                    continue;
                }
                let ended = file_is_the_programs(run(options, &[]), &file, how, late);
                if how == "n" && !options.contains(&"--off") {
                    assert_eq!(ended.code(), Some(70), "{options:?} {late}: {}", ended.err);
                }
            }
            if how != "i" {
                for options in ["", "stacks=maybe", "analyzer=/nonexistent"] {
                    file_is_the_programs(preloaded(program(), options), &file, how, late);
                }
            }
        }
    }
}
