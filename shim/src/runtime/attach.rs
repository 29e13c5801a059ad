//! Connects this process to an analyzer: to the one that the launcher named, or to one of its own.
//!
//! Owns making the ring and handing it over (how: [`launcher_link`]). Leaves no descriptor open in
//! the program: the ring stays mapped, its descriptor has gone to the analyzer. Each side notices
//! the other's death without one, the analyzer by a process descriptor, the shim by the heartbeat
//! in the ring. Starting an analyzer is in [`super::spawn`].

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use launcher_link::Subject;
use trace::ring::{LARGEST_PAGE, Producer, Ring, RingError};

use super::options::{self, Options};
use super::{spawn, untold};

/// How this process is connected.
pub struct Attached {
    /// The writing end.
    pub producer: Producer,
    /// Whether the analyzer belongs to this process alone, so that exit waits for its report.
    pub own_analyzer: bool,
}

/// Why this process can not be checked; a fragment that completes "can not check this process: ".
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Shared memory is not to be had.
    #[error("no shared memory: {0}")]
    Ring(#[from] RingError),
    /// The launcher is gone or refuses.
    #[error("the analyzer at {path} does not answer: {error}")]
    Connect {
        /// The socket.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// No analyzer could be started.
    #[error("no analyzer could be started: {0}")]
    Spawn(String),
}

/// Makes the ring and hands it to an analyzer.
pub fn attach(options: &Options) -> Result<Attached, AttachError> {
    // Shared memory is a file to the limit of file sizes.
    let (ring, fd) = signal_free::held(|| make_ring(options.ring_mib << 20))?;
    ring.header().producer_pid.store(std::process::id(), std::sync::atomic::Ordering::Relaxed);
    let own_analyzer = match options::socket() {
        Some(path) => {
            let error = |error| AttachError::Connect { path: path.to_string_lossy().into_owned(), error };
            launcher_link::tell(path, options::key(), Subject::Ring, &[], Some(fd.as_fd())).map_err(error)?;
            false
        }
        None => {
            spawn::analyzer(options, &fd).map_err(AttachError::Spawn)?;
            true
        }
    };
    ring.hide_from_children();
    Ok(Attached { producer: Producer::new(ring), own_analyzer })
}

/// Tells the launcher, if there is one, why this process is not checked. It has no ring to say it
/// in, and perhaps no descriptor to say it through: a link in the launcher's folder needs neither.
/// Where the folder is out of reach, a message says it, and where that is forbidden, the exit code
/// of this process.
pub fn tell_launcher(why: std::fmt::Arguments<'_>) {
    let Some(socket) = options::socket() else { return };
    let (why, key) = (why.to_string(), options::key());
    let told = launcher_link::leave_link(socket, key, "unchecked", std::process::id().into(), why.as_bytes())
        || launcher_link::tell(socket, key, Subject::Unchecked, why.as_bytes(), None).is_ok();
    if !told {
        untold::note();
    }
}

/// A memfd where the system allows it, otherwise an unlinked file in shared memory or the temporary
/// folder: of the size that was asked for, or of as little as still works, where there is room.
/// Where files must be small (`ulimit -f`), the ring is as large as they may be. A file is
/// allocated as a whole, so it has 32 MiB at most.
fn make_ring(bytes: usize) -> Result<(Ring, OwnedFd), RingError> {
    let first = match Ring::create(bytes) {
        Ok(made) => return Ok(made),
        Err(error) => error,
    };
    const LEAST: usize = 1 << 20;
    const LARGEST_FILE: usize = 32 << 20;
    if matches!(&first, RingError::System { error, .. } if error.raw_os_error() == Some(libc::EFBIG)) {
        let smaller = std::iter::successors(Some(bytes / 2), |bytes| Some(bytes / 2));
        let mut smaller = smaller.take_while(|bytes| *bytes >= LARGEST_PAGE);
        return smaller.find_map(|bytes| Ring::create(bytes).ok()).ok_or(first);
    }
    for size in [bytes.min(LARGEST_FILE), bytes.min(LEAST)] {
        for folder in [c"/dev/shm", c"/tmp", c"/var/tmp"] {
            // SAFETY: open takes a C string; O_TMPFILE makes a file that has no name, so no other
            // process can open or guess it.
            let fd = unsafe { libc::open(folder.as_ptr(), libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC, 0o600) };
            if fd < 0 {
                continue;
            }
            // SAFETY: fd was just opened by us.
            if let Ok(made) = Ring::create_on(unsafe { OwnedFd::from_raw_fd(fd) }, size) {
                return Ok(made);
            }
        }
    }
    Err(first)
}
