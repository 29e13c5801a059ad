//! A program inherits under StreamSan the same as without: signals that are ignored or blocked,
//! standard descriptors that are closed, and the environment in its order. Signals that a process
//! or a terminal sends to the launcher reach the program once.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tests::run::{command, end, streamsan};
use tests::{build, fake, product};

fn program() -> PathBuf {
    build::c_program("inherited.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

fn bits(signals: &[i32]) -> u64 {
    signals.iter().map(|signal| 1 << (signal - 1)).sum()
}

/// Sets of signals that are ignored or blocked: each that the launcher or Rust's runtime touches,
/// alone and together.
fn sets() -> Vec<u64> {
    let alone =
        [libc::SIGCHLD, libc::SIGPIPE, libc::SIGHUP, libc::SIGXFSZ, libc::SIGTERM].map(|signal| bits(&[signal]));
    let several = [&[][..], &[libc::SIGINT, libc::SIGQUIT], &[libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH, 40]];
    alone.into_iter().chain(several.map(bits)).collect()
}

/// A command that runs another one with this state.
fn start(closed: u32, ignored: u64, blocked: u64) -> Command {
    let mut command = command(program());
    command.arg("start").args([format!("{closed:x}"), format!("{ignored:x}"), format!("{blocked:x}")]);
    command
}

/// The state that the program has written, without the variables that StreamSan sets.
fn shown(file: &Path) -> Vec<String> {
    const OURS: [&str; 5] =
        ["LD_PRELOAD=", "LD_LIBRARY_PATH=", "STREAMSAN_", "NVTX_INJECTION64_PATH=", "ASAN_OPTIONS="];
    let text = std::fs::read(file).expect("the program has written its state");
    let lines = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect::<Vec<_>>();
    let is_ours =
        |line: &str| line.strip_prefix("env ").is_some_and(|line| OURS.iter().any(|own| line.starts_with(own)));
    lines.into_iter().filter(|line| !is_ours(line)).collect()
}

#[test]
fn the_program_inherits_what_the_launcher_was_started_with() {
    let folder = build::scratch("inherited");
    let (bare, launched) = (folder.join("bare"), folder.join("launched"));
    let sets = sets();
    for (index, ignored) in sets.iter().enumerate() {
        let (closed, blocked) = (index as u32, sets[(index + 3) % sets.len()]);
        let ended = end(start(closed, *ignored, blocked).arg(program()).arg("show").arg(&bare));
        assert_eq!(ended.code(), Some(0), "bare: {}", ended.err);
        for way in [&["run"][..], &["run", "--sim"], &["record", "-o", "inherited.trace"]] {
            let what = format!("closed {closed:x}, ignored {ignored:x}, blocked {blocked:x}, {way:?}");
            let _ = std::fs::remove_file(&launched);
            let mut command = start(closed, *ignored, blocked);
            command.arg(product::streamsan()).args(way).arg("--").arg(program()).arg("show").arg(&launched);
            let ended = end(command.current_dir(&folder));
            assert_eq!(ended.code(), Some(0), "{what}: {}", ended.err);
            assert_eq!(shown(&launched), shown(&bare), "{what}");
        }
    }
}

#[test]
fn a_hunt_ends_with_children_that_nobody_waits_for() {
    let folder = build::scratch("inherited-hunt");
    std::fs::copy(program(), folder.join("one")).expect("copy");
    for ignored in [0, bits(&[libc::SIGCHLD])] {
        let mut command = start(0, ignored, 0);
        command.arg(product::streamsan()).args(["hunt", "--sim", "--timeout", "20"]).arg(&folder);
        let ended = end(&mut command);
        assert!(!ended.hung && ended.err.contains("1 program"), "{ignored:x}: {}", ended.err);
    }
}

/// Starts the counting program below the launcher, reads its first line, and returns what it
/// prints after `act`, which gets the launcher's number.
fn counted(command: &mut Command, act: impl FnOnce(i32)) -> String {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("streamsan");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    act(child.id() as i32);
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert!(child.wait().expect("wait").success());
    rest
}

fn counting(options: &[&str]) -> Command {
    let mut command = streamsan(["run"]);
    command.args(options).arg("--").arg(program()).arg("count");
    command
}

#[test]
fn a_signal_to_the_launcher_reaches_the_program_once() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: our child, which is not waited for yet.
        let out = counted(&mut counting(&[]), |launcher| unsafe {
            libc::kill(launcher, signal);
        });
        assert_eq!(out, format!("signal {signal}: 1\n"));
    }
}

/// Signals the group of the launcher, which sees it only when the program has had its own: two
/// signals of one number that are pending together are one.
fn signal_group(launcher: i32, signal: i32) {
    // SAFETY: our child, which leads its group and is not waited for yet.
    unsafe {
        libc::kill(launcher, libc::SIGSTOP);
        libc::kill(-launcher, signal);
        std::thread::sleep(Duration::from_millis(30));
        libc::kill(launcher, libc::SIGCONT);
    }
}

#[test]
fn a_signal_to_the_process_group_reaches_the_program_once() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
        let mut command = counting(&[]);
        let out = counted(command.process_group(0), |launcher| signal_group(launcher, signal));
        assert_eq!(out, format!("signal {signal}: 1\n"));
    }
    // Alternately, and the same twice: what the group got before decides nothing.
    let mut command = streamsan(["run", "--"]);
    command.arg(program()).args(["count", "6"]).process_group(0);
    let out = counted(&mut command, |launcher| {
        for to_group in [true, false, true, true, false, false] {
            if to_group {
                signal_group(launcher, libc::SIGUSR1);
            } else {
                // SAFETY: as above.
                unsafe { libc::kill(launcher, libc::SIGUSR1) };
            }
            std::thread::sleep(Duration::from_millis(150));
        }
    });
    assert_eq!(out, format!("signal {}: 6\n", libc::SIGUSR1));
}

/// It signals the foreground group, which a program with a time limit is not in.
#[test]
fn a_key_of_the_terminal_reaches_the_program_once() {
    let keys = [(b"\x03", libc::SIGINT), (b"\x1c", libc::SIGQUIT)];
    let ways = [&[][..], &["--time-limit", "20"]];
    for ((key, signal), options) in keys.into_iter().flat_map(|key| ways.map(|options| (key, options))) {
        let (mut ours, mut theirs) = (-1, -1);
        let none = std::ptr::null_mut();
        // SAFETY: room for two descriptors, which are then owned here.
        let (ours, theirs) = unsafe {
            assert_eq!(libc::openpty(&mut ours, &mut theirs, none, none.cast(), none.cast()), 0);
            (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
        };
        let mut command = counting(options);
        let terminal = theirs.as_raw_fd();
        // SAFETY: async-signal-safe calls.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                if libc::ioctl(terminal, libc::TIOCSCTTY, 0) == 0 {
                    Ok(())
                } else {
                    Err(std::io::Error::last_os_error())
                }
            });
        }
        let mut keyboard = std::fs::File::from(ours);
        let out = counted(&mut command, |_| keyboard.write_all(key).expect("a key"));
        assert_eq!(out, format!("signal {signal}: 1\n"));
    }
}
