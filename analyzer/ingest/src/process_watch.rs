//! Whether a process is still alive, without being its parent and without a descriptor inside it.
//!
//! Owns that question, and what the process takes of the processors.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A process that is watched.
pub struct ProcessWatch {
    pid: i32,
    /// Since Linux 5.3. Before, the process is looked up by its number.
    fd: Option<OwnedFd>,
}

impl ProcessWatch {
    /// Begins to watch a process by its number in this process's namespace.
    pub fn new(pid: i32) -> Self {
        // SAFETY: pidfd_open takes a number and flags.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        // SAFETY: a non-negative result is a descriptor that is owned here.
        let fd = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) });
        Self { pid, fd }
    }

    /// Whether the process has ended (all its threads; it may still be waited for by its parent).
    pub fn has_ended(&self) -> bool {
        if self.pid <= 0 {
            return false;
        }
        match &self.fd {
            Some(fd) => {
                let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one valid pollfd.
                unsafe { libc::poll(&mut poll, 1, 0) > 0 }
            }
            None => {
                // SAFETY: signal 0 only asks.
                let r = unsafe { libc::kill(self.pid, 0) };
                r != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
            }
        }
    }

    /// What the process takes of the processors. `None`: the system does not say.
    pub(crate) fn processors(&self) -> Option<Processors> {
        let mut clock = 0;
        // SAFETY: the result is writable.
        let failed = self.pid <= 0 || unsafe { libc::clock_getcpuclockid(self.pid, &raw mut clock) } != 0;
        (!failed).then_some(Processors { pid: self.pid, clock })
    }
}

/// What a process takes of the processors.
#[derive(Clone, Copy)]
pub(crate) struct Processors {
    pid: i32,
    clock: libc::clockid_t,
}

impl Processors {
    /// Those of the analyzer.
    pub(crate) fn of_this_process() -> Self {
        Self { pid: std::process::id() as i32, clock: libc::CLOCK_PROCESS_CPUTIME_ID }
    }

    /// The time that all threads of the process have used. `None`: it is gone.
    pub(crate) fn time(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the result is writable.
        let failed = unsafe { libc::clock_gettime(self.clock, &raw mut time) } != 0;
        (!failed).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    /// How long its threads that live have waited for a processor so far, all together
    /// (`/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst of Linux). `None`:
    /// the system does not say. Takes some microseconds for each thread.
    pub(crate) fn waited(self) -> Option<Duration> {
        let mut all = None;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?.flatten() {
            let text = std::fs::read_to_string(thread.path().join("schedstat"));
            let waited = text.ok().and_then(|text| text.split(' ').nth(1)?.parse().ok());
            all = waited.map(|waited| all.unwrap_or_default() + Duration::from_nanos(waited)).or(all);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_process_is_seen_to_have_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("spawn");
        let watch = ProcessWatch::new(child.id() as i32);
        assert!(!watch.has_ended());
        child.kill().expect("kill");
        // Its parent has not waited for it yet: a zombie has ended all the same.
        for _ in 0..1000 {
            if watch.has_ended() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(watch.has_ended());
        child.wait().expect("wait");
        assert_eq!(watch.processors().and_then(Processors::time), None);
    }

    #[test]
    fn processors_are_those_of_the_process() {
        let own = ProcessWatch::new(std::process::id() as i32).processors().expect("the system says");
        let before = own.time().expect("the process lives");
        assert!(std::iter::repeat_with(|| own.time()).any(|now| now > Some(before)));
        let sleeps = std::process::Command::new("sleep").arg("60").spawn();
        let mut child = sleeps.expect("spawn");
        let other = ProcessWatch::new(child.id() as i32).processors().expect("the system says");
        assert!(other.waited().is_some_and(|waited| waited < Duration::from_secs(60)));
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert_eq!(other.waited(), None);
    }
}
