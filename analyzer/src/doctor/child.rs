//! The probe as another process, bare or under StreamSan, and questions to the file system.
//!
//! Owns how long a probe may take, and what is read of its output.

use std::ffi::{CString, OsStr};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A driver that takes longer to start hangs. Without persistence mode a start takes seconds for
/// each GPU.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a probe printed, and how it ended.
pub(super) struct ProbeRun {
    out: String,
    err: String,
    /// `None`: it was stopped, or never ran.
    status: Option<ExitStatus>,
}

/// Runs the probe without StreamSan.
pub(super) fn bare() -> ProbeRun {
    run(&[])
}

/// Runs the probe under StreamSan with these options.
pub(super) fn checked(options: &[&str]) -> ProbeRun {
    run(&[&["run", "--config", "off", "--require-cuda", "--quiet"], options].concat())
}

fn run(before: &[&str]) -> ProbeRun {
    let started = std::env::current_exe().and_then(|program| {
        let mut command = Command::new(&program);
        if !before.is_empty() {
            command.args(before).arg("--").arg(&program);
        }
        command.args(["doctor", "--probe"]).env_remove("STREAMSAN_OPTIONS").env_remove("STREAMSAN_SIM");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    });
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return ProbeRun { out: String::new(), err: error.to_string(), status: None },
    };
    // Both hold less than a pipe does, so that the probe does not wait for a reader.
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    let text = |pipe: Option<(RawFd, &mut dyn Read)>| {
        let mut bytes = Vec::new();
        if let (Some((fd, pipe)), Some(_)) = (pipe, status) {
            // A grandchild that the driver left may hold the pipe open: what is there is enough.
            // SAFETY: an open descriptor of this process.
            unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
            let _ = pipe.take(1 << 16).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let out = text(child.stdout.as_mut().map(|pipe| (pipe.as_raw_fd(), pipe as &mut dyn Read)));
    let err = text(child.stderr.as_mut().map(|pipe| (pipe.as_raw_fd(), pipe as &mut dyn Read)));
    ProbeRun { out, err, status }
}

impl ProbeRun {
    /// What stands behind a word, on each of its lines.
    pub(super) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.out.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
    }

    /// The same on the first of them.
    pub(super) fn word<'a>(&'a self, word: &'a str) -> Option<&'a str> {
        self.words(word).next()
    }

    /// Whether there is such a line.
    pub(super) fn has(&self, word: &str) -> bool {
        self.word(word).is_some()
    }

    /// Whether it ended with exit code 0.
    pub(super) fn is_clean(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The first line that StreamSan printed.
    pub(super) fn said(&self) -> Option<String> {
        let line = self.err.lines().find(|line| !line.trim().is_empty())?;
        Some(line.trim_start_matches("streamsan: ").to_owned())
    }

    /// How it ended, in words.
    pub(super) fn end(&self) -> String {
        match self.status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => format!("exit code {code}"),
            Some((_, Some(signal))) => format!("signal {signal}"),
            Some(_) => "an unknown end".to_owned(),
            None if self.err.is_empty() => format!("stopped after {} s", PATIENCE.as_secs()),
            None => self.err.clone(),
        }
    }
}

fn c_name(path: &OsStr) -> io::Result<CString> {
    CString::new(path.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Bytes that this user may still write in the file system of a folder.
pub(super) fn free_space(folder: &Path) -> io::Result<u64> {
    let name = c_name(folder.as_os_str())?;
    // SAFETY: all zeros is a valid value of the structure, which the call fills.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends with a zero, and both outlive the call.
    match unsafe { libc::statvfs(name.as_ptr(), &raw mut answer) } {
        0 => Ok(answer.f_bavail.saturating_mul(answer.f_frsize)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether files can be made in a folder, or the folder can be made: asked of the nearest folder
/// above that exists.
pub(super) fn is_writable(folder: &Path) -> bool {
    let Some(there) = folder.ancestors().find(|folder| folder.exists()) else { return false };
    let Ok(name) = c_name(there.as_os_str()) else { return false };
    // SAFETY: the name ends with a zero.
    there.is_dir() && unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) } == 0
}
