//! The analyzer of one process under plain `LD_PRELOAD`.
//!
//! Owns this way to start: the shim starts the analyzer with the ring as a descriptor, and it
//! prints the report when the process ends. Reading the ring is [`super::live`].

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::AtomicBool;

use trace::ring::Ring;

use super::live::{Judged, Sink, follow};
use crate::process_watch::ProcessWatch;
use report::model::Outcome;
use settings::exit_code::{Ending, Reason};

/// Follows the process `pid` through the ring on descriptor `fd`, then reports. Returns how this
/// process ends (for which nothing waits).
///
/// `report` prints the findings and returns how many of them fail the run, and what it ends with.
pub fn attach_ring(fd: RawFd, pid: i32, sink: &Sink, report: impl FnOnce(Option<Outcome>) -> Judged) -> Ending {
    // SAFETY: the shim put the ring on this descriptor before it started this process.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let (ring, beat) = match (Ring::open(fd), Ring::open(fd)) {
        (Ok(ring), Ok(beat)) => (ring, beat),
        (Err(error), _) | (_, Err(error)) => {
            system::say!("process {pid} is not checked: {error}");
            return Reason::Failed.into();
        }
    };
    let mut ending = Ending::default();
    follow(ring, beat, 0, &ProcessWatch::new(pid), &AtomicBool::new(false), sink, None, |outcome| {
        let judged = report(outcome);
        ending = judged.ending.clone();
        judged
    });
    ending
}
