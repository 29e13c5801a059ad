//! Whether a process is still alive, without being its parent and without a descriptor inside it.
//!
//! Owns that question only.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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
    }
}
