//! Limits of the system that a run meets: file sizes, descriptors, full disks, closed pipes, and a
//! launcher that is killed. The program ends as it ends without us, and what could not be checked
//! is never green.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tests::run::{Ended, command, end, end_of, preloaded, streamsan};
use tests::{build, fake};

fn linked(source: &str) -> PathBuf {
    build::c_program(source, &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

/// The same command, with a limit for it and all that it starts.
fn limited(mut command: Command, resource: u32, most: u64) -> Command {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: setrlimit is async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            if libc::setrlimit(resource, &limit) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        })
    };
    command
}

fn run(options: &[&str], program: &Path) -> Command {
    let mut command = streamsan(["run"]);
    command.args(options).arg("--").arg(program);
    command
}

const UNTRUE: &str = "no CUDA work was seen";

/// A run that is green has checked its work; one that has not says so, and ends with 70.
#[track_caller]
fn is_honest(ended: &Ended, what: &str) {
    assert_eq!(ended.signal(), None, "{what}: {}", ended.err);
    match ended.code() {
        Some(0) => {
            assert!(ended.err.contains("COVERAGE: 0 launches") && !ended.err.contains(UNTRUE), "{what}: {}", ended.err)
        }
        Some(70) => assert!(ended.err.contains("ERROR: not") && !ended.err.contains(UNTRUE), "{what}: {}", ended.err),
        other => panic!("{what}: ended with {other:?}: {}", ended.err),
    }
}

#[test]
fn a_limit_of_file_sizes_ends_no_program() {
    const KIB: u64 = 1 << 10;
    let program = linked("limited.c");
    let mut green = Vec::new();
    for kib in [0, 1, 64, 100, 128, 129, 192, 500, 5_000, 40_000, 3 << 20, 2 << 30] {
        let limit = |command| end(&mut limited(command, libc::RLIMIT_FSIZE, kib * KIB));
        let bare = limit(command(&program));
        let launched = limit(run(&[], &program));
        assert_eq!(launched.out, bare.out, "{kib} KiB: {}", launched.err);
        is_honest(&launched, &format!("{kib} KiB"));
        green.extend((launched.code() == Some(0)).then_some(kib));
        let alone = limit(preloaded(&program, ""));
        assert_eq!((alone.status, &alone.out), (bare.status, &bare.out), "{kib} KiB: {}", alone.err);
        let simulated = limit(run(&["--sim"], &program));
        assert_eq!(simulated.signal(), None, "{kib} KiB: {}", simulated.err);
        assert!(simulated.code() == Some(0) || simulated.err.contains("ERROR: not"), "{kib} KiB: {}", simulated.err);
        assert_eq!(simulated.code() == Some(0), simulated.out == "cuda 0\n", "{kib} KiB: {}", simulated.err);
        assert_eq!(simulated.code() == Some(0), kib >= 3 << 20, "{kib} KiB: {}", simulated.err);
    }
    assert_eq!(green, [128, 129, 192, 500, 5_000, 40_000, 3 << 20, 2 << 30], "a ring takes 128 KiB");
}

#[test]
fn a_message_that_can_not_be_written_ends_no_program() {
    let program = linked("limited.c");
    let folder = build::scratch("limits-message");
    for (options, limit) in
        [("require-cuda", 100 << 10), ("stacks=maybe", 100 << 10), ("analyzer=/nonexistent", 1 << 40)]
    {
        // Standard error is a file that has the largest size already.
        let path = folder.join("stderr");
        std::fs::write(&path, vec![b'x'; 100 << 10]).expect("writable");
        let full = OpenOptions::new().append(true).open(&path).expect("writable");
        let mut filling = limited(preloaded(&program, options), libc::RLIMIT_FSIZE, limit);
        let ended = filling.stderr(full).stdout(Stdio::piped()).output().expect("runs");
        assert_eq!((ended.status.code(), &*ended.stdout), (Some(0), &b"cuda 0\n"[..]), "{options}");
        // Standard error is a pipe that nobody reads.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut closed = limited(preloaded(&program, options), libc::RLIMIT_FSIZE, 100 << 10);
        let ended = closed.stderr(writer).stdout(Stdio::piped()).output().expect("runs");
        assert_eq!((ended.status.code(), &*ended.stdout), (Some(0), &b"cuda 0\n"[..]), "{options}");
    }
}

#[test]
fn a_trace_that_can_not_be_written_is_never_recorded() {
    let program = linked("limited.c");
    let folder = build::scratch("limits-trace");
    let trace = folder.join("t.trace");
    let record = |to: &Path, more: &[&str]| {
        let mut command = streamsan(["record", "-o"]);
        command.arg(to).args(more).arg("--").arg(&program).arg("200000");
        command
    };
    let whole = end(&mut record(&trace, &[]));
    assert_eq!((whole.code(), whole.out.as_str()), (Some(0), "cuda 0\n"), "{}", whole.err);
    let size = std::fs::metadata(&trace).expect("a trace").len();
    let fails = |ended: Ended, what: &str| {
        assert_eq!((ended.code(), ended.out.as_str()), (Some(70), "cuda 0\n"), "{what}: {}", ended.err);
        assert!(ended.err.contains("can not be written"), "{what}: {}", ended.err);
        assert!(!ended.err.contains("recorded; check it"), "{what}: {}", ended.err);
    };
    // The ring must fit; what the trace has more than that is cut.
    for most in [size / 2, size * 3 / 4, size - 1] {
        if most >= 128 << 10 {
            let ended = end(&mut limited(record(&trace, &[]), libc::RLIMIT_FSIZE, most));
            // The packed size differs from run to run by some bytes.
            if most == size - 1 && ended.code() == Some(0) {
                let checked = end(streamsan(["check"]).arg(&trace));
                assert_eq!(checked.code(), Some(0), "recorded is whole: {}", checked.err);
            } else {
                fails(ended, &format!("{most} of {size} bytes"));
            }
        }
    }
    fails(end(&mut record(Path::new("/dev/full"), &[])), "a full disk");
    let mut checked = streamsan(["run", "-o", "/dev/full", "--"]);
    let ended = end(checked.arg(&program));
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
}

#[test]
fn few_descriptors_are_never_green_unchecked() {
    let program = linked("limited.c");
    let (mut green, mut red) = (0, 0);
    for most in [5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 32] {
        let ended = end(&mut limited(run(&[], &program), libc::RLIMIT_NOFILE, most));
        if matches!(ended.code(), Some(126 | 127)) || !ended.out.contains("cuda") {
            // Too few to start anything, which is said.
            assert!(!ended.err.is_empty() && ended.code() != Some(0), "{most}: {}", ended.err);
            continue;
        }
        assert_eq!(ended.out, "cuda 0\n", "{most}: {}", ended.err);
        is_honest(&ended, &format!("{most} descriptors"));
        *(if ended.code() == Some(0) { &mut green } else { &mut red }) += 1;
    }
    assert!(green > 0, "{red} runs were red");
}

#[test]
fn a_killed_launcher_is_told_and_its_folder_goes_with_the_next_run() {
    let folder = build::scratch("limits-killed");
    let program = linked("limited.c");
    let there = || std::fs::read_dir(&folder).expect("there").flatten().count();
    // The program waits in between until the launcher is dead, before or after its first call.
    for (moment, script) in [("before", "echo ready; read x; $0 10"), ("after", "$0 10; echo ready; read x; $0 10")] {
        for round in 0..6 {
            let mut command = streamsan(["run", "--", "sh", "-c", script]);
            command.arg(&program).env("TMPDIR", &folder).env_remove("XDG_RUNTIME_DIR").process_group(0);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().expect("starts");
            // However slow this machine is, the shell has been started.
            let (mut said, mut byte) = (Vec::new(), [0]);
            while !said.ends_with(b"ready\n") {
                child.stdout.as_mut().expect("piped").read_exact(&mut byte).expect("ready");
                said.extend(byte);
            }
            std::thread::sleep(std::time::Duration::from_millis(3 * round));
            // SAFETY: our own child, which has not been waited for.
            assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGKILL) }, 0);
            std::thread::sleep(std::time::Duration::from_millis(5));
            child.stdin.take().expect("piped").write_all(b"\n").expect("the shell reads");
            let ended = end_of(child);
            assert!(ended.out.ends_with("cuda 0\n"), "{moment}: {}", ended.out);
            assert_eq!(ended.ours().len(), 1, "{moment} {round}: one line: {}", ended.err);
            assert_eq!(there(), 1, "a folder is left behind, and the one before is not");
        }
    }
    let mut next = run(&[], &program);
    assert_eq!(end(next.env("TMPDIR", &folder).env_remove("XDG_RUNTIME_DIR")).code(), Some(0));
    assert_eq!(there(), 0);
}

#[test]
fn a_launcher_that_is_killed_while_the_program_runs_is_told_at_its_end() {
    // The program acknowledges launches, ends by itself and has never to wait for room.
    let program = linked("limited.c");
    let rounds = if std::env::var_os("STREAMSAN_HARDENING").is_some_and(|v| v == "full") { 100 } else { 10 };
    for round in 0..rounds {
        let script = "echo ready; $0 3000; $0 3000; $0 3000; read x; $0 3000";
        let mut command = streamsan(["run", "--", "sh", "-c", script]);
        command.arg(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("starts");
        let mut ready = [0; 6];
        child.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("ready");
        std::thread::sleep(std::time::Duration::from_millis(7 * round));
        // SAFETY: our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGKILL) }, 0);
        drop(child.stdin.take());
        let ended = end_of(child);
        let dead = ended.ours().len();
        let ran = ended.out.matches("cuda 0").count();
        assert_eq!(ran, 4, "{}", ended.err);
        // Each process that ended after the launcher's death says so, once.
        assert!((1..=4).contains(&dead), "round {round}: {}", ended.err);
    }
}

#[test]
fn plain_preloading_ends_with_70_where_no_analyzer_checked_the_run() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = build::scratch("limits-analyzer");
    let program = linked("limited.c");
    let [gone, circle, closed, dies] = ["gone", "circle", "closed", "dies"].map(|name| folder.join(name));
    symlink(&circle, &circle).expect("a link to itself");
    std::fs::write(&closed, "no program").expect("written");
    std::fs::write(&dies, "#!/bin/sh\nexit 0\n").expect("written");
    std::fs::set_permissions(&dies, PermissionsExt::from_mode(0o755)).expect("ours");
    // The one line names the reason in these words.
    let analyzers = [
        (&gone, "gone does not exist"),
        (&circle, "circle can not be read: "),
        (&closed, "closed: Permission denied"),
        (&folder, ": Permission denied"),
        (&dies, "the analyzer has died"),
    ];
    let ends = |program: &mut Command, code: i32, why: &str| {
        let ended = end(program);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "cuda 0\n"), "{why}: {}", ended.err);
        assert_eq!((ended.ours().len(), ended.err.contains(why)), (1, true), "{why}: {}", ended.err);
    };
    for (analyzer, why) in analyzers {
        let with = |code: &str| preloaded(&program, &format!("{code}analyzer={}", analyzer.display()));
        ends(&mut with("error-exitcode=66:"), 70, why);
        // Nobody asked for exit codes; an analyzer that dies takes seconds to be missed.
        if analyzer != &dies {
            ends(&mut with("error-exitcode=5:"), 70, why);
            ends(&mut with(""), 0, why);
            ends(&mut with("error-exitcode=0:"), 0, why);
        }
    }
    // A process that uses no CUDA is none that was not checked, and a child of one neither.
    let ended = end(&mut preloaded("/bin/sh", &format!("error-exitcode=66:analyzer={}", gone.display())));
    assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""));
    let mut shell = preloaded("/bin/sh", &format!("error-exitcode=66:analyzer={}", gone.display()));
    let ended = end(shell.args(["-c", "\"$0\"; echo $?"]).arg(&program));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "cuda 0\n70\n"), "{}", ended.err);
}

#[test]
fn plain_preloading_without_cuda_names_what_was_asked_in_vain() {
    let without = |options: &str| end(&mut preloaded("/bin/true", options));
    let silent = |options: &str| {
        let ended = without(options);
        assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""), "{options}");
    };
    for options in ["", "stacks=0", "json=x:error-exitcode=66", "no-require-cuda", "require-cuda:off"] {
        silent(options);
    }
    let ended = without("jsn=x:stacks=maybe:require-cuda");
    assert_eq!(ended.code(), Some(0));
    for said in ["unknown option 'jsn'", "option 'stacks' takes yes or no", "require-cuda: this process made no use"] {
        assert_eq!(ended.err.matches(said).count(), 1, "{said}: {}", ended.err);
    }
    assert_eq!(without("require-cuda:error-exitcode=66").code(), Some(4));
    // With CUDA it is the analyzer that says so, once.
    let ended = end(&mut preloaded(linked("limited.c"), "jsn=x:require-cuda:error-exitcode=66"));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "cuda 0\n"), "{}", ended.err);
    assert_eq!(ended.err.matches("unknown option 'jsn'").count(), 1, "{}", ended.err);
    assert!(!ended.err.contains("made no use"), "{}", ended.err);
    // Under the command the run is judged as a whole: its helpers say nothing.
    let ended = end(streamsan(["run", "--require-cuda", "--", "sh", "-c", "/bin/true; $0"]).arg(linked("limited.c")));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(!ended.err.contains("made no use"), "{}", ended.err);
}
