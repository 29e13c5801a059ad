//! Runs programs bare and under the product, with a limit of time, and keeps everything they said.

use std::ffi::OsStr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::recorded::Trace;
use crate::{fake, product};

/// How long any program of the tests may take before it counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command that must succeed, and returns what it prints. The error is what it complains of.
pub fn must<S: AsRef<OsStr>>(program: &Path, args: impl IntoIterator<Item = S>) -> Result<String, String> {
    let made = Command::new(program).args(args).output().map_err(|error| format!("{}: {error}", program.display()))?;
    if made.status.success() {
        return Ok(String::from_utf8_lossy(&made.stdout).into_owned());
    }
    Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&made.stderr)))
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// The raw status.
    pub status: ExitStatus,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Whether it had to be killed.
    pub hung: bool,
}

impl Ended {
    /// The exit code; `None` after a signal.
    pub fn code(&self) -> Option<i32> {
        assert!(!self.hung, "the program hung; it said:\n{}\n{}", self.out, self.err);
        self.status.code()
    }

    /// The signal it died of.
    pub fn signal(&self) -> Option<i32> {
        assert!(!self.hung, "the program hung; it said:\n{}\n{}", self.out, self.err);
        self.status.signal()
    }

    /// The lines on standard error that StreamSan wrote.
    pub fn ours(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("streamsan: ")).collect()
    }
}

/// A command in an environment without any of our variables, with the fake driver to be found.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let ours =
        ["LD_PRELOAD", "STREAMSAN_OPTIONS", "STREAMSAN_SOCKET", "STREAMSAN_SOCKET_KEY", "STREAMSAN_DRIVER", "NO_COLOR"];
    // Runs without CUDA work fail where these are set.
    let integration = ["CI", "TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION"];
    for name in ours.into_iter().chain(integration) {
        command.env_remove(name);
    }
    command.env("LD_LIBRARY_PATH", fake::folder());
    // Kernels are analysed again, by this build, and nothing is left in the developer's home.
    command.env("STREAMSAN_CACHE", "off");
    command.stdin(Stdio::null());
    command
}

/// `streamsan` with arguments.
pub fn streamsan<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = command(product::streamsan());
    command.args(args);
    command
}

/// A program with the shim preloaded and nothing else.
pub fn preloaded(program: impl AsRef<OsStr>, options: &str) -> Command {
    let mut command = command(program);
    command.env("LD_PRELOAD", product::shim());
    if !options.is_empty() {
        command.env("STREAMSAN_OPTIONS", options);
    }
    command
}

/// Runs a command to its end.
pub fn end(command: &mut Command) -> Ended {
    end_within(command, PATIENCE)
}

/// As [`end`], with another limit of time.
pub fn end_within(command: &mut Command, patience: Duration) -> Ended {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    end_of_within(child.unwrap_or_else(|e| panic!("{command:?}: {e}")), patience)
}

/// Waits for a child that runs already; kills its process group when it takes too long.
pub fn end_of(child: std::process::Child) -> Ended {
    end_of_within(child, PATIENCE)
}

fn end_of_within(mut child: std::process::Child, patience: Duration) -> Ended {
    // Emulated programs take ten times as long.
    let patience = if product::is_aarch64() && cfg!(not(target_arch = "aarch64")) { patience * 10 } else { patience };
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = read(child.stdout.take().map(|p| Box::new(p) as _));
    let err = read(child.stderr.take().map(|p| Box::new(p) as _));
    let began = Instant::now();
    let mut hung = false;
    let status = loop {
        match child.try_wait().expect("wait") {
            Some(status) => break status,
            None if began.elapsed() > patience => {
                hung = true;
                // SAFETY: the child is not waited for yet, so the number is its own; it leads its
                // process group.
                unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
                break child.wait().expect("wait");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    Ended { status, out: out.join().expect("reader"), err: err.join().expect("reader"), hung }
}

/// Seconds of processor time of all children that have ended, and of theirs.
pub fn processor_seconds() -> f64 {
    // SAFETY: all fields are numbers.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: room for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut used) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(used.ru_utime) + seconds(used.ru_stime)
}

/// Records a program: how it ended, and the trace.
pub fn record(folder: &Path, program: &Path, args: &[&str]) -> (Ended, Trace) {
    record_with(folder, program, args, |_| {})
}

/// As [`record`], with changes to the command before it starts.
pub fn record_with(folder: &Path, program: &Path, args: &[&str], change: impl FnOnce(&mut Command)) -> (Ended, Trace) {
    let file: PathBuf = folder.join("run.trace");
    let mut command = streamsan(["record", "-o"]);
    command.arg(&file).arg("--").arg(program).args(args);
    change(&mut command);
    let ended = end(&mut command);
    (ended, Trace::read(&file))
}
