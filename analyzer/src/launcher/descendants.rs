//! The end of a program that takes too long, with all the processes that it has started.
//!
//! Owns the wait with a limit, and the search for what is left. A process stays a descendant of
//! ours even if it changes its group or session and its parent ends: we adopt orphans.

use std::process::Child;
use std::time::{Duration, Instant};

use crate::launcher::process::Finished;

/// Between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// Becomes the parent of descendants whose own parent ends.
pub(crate) fn adopt() {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Waits for a child that leads a process group. After `limit` the group is asked to end, and
/// killed if it does not.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Finished> {
    let began = Instant::now();
    let group = -(child.id() as i32);
    let mut timed_out = None;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        match timed_out {
            None if began.elapsed() >= limit => {
                timed_out = Some(Instant::now());
                signal(group, libc::SIGTERM);
            }
            Some(at) if at.elapsed() >= GRACE => signal(group, libc::SIGKILL),
            _ => {}
        }
        std::thread::sleep(PAUSE);
    };
    if timed_out.is_some() {
        signal(group, libc::SIGKILL);
        sweep(&[]);
    }
    Ok(Finished { status, timed_out: timed_out.is_some() })
}

/// Kills our children, those that we have adopted among them, except these; then theirs, which
/// become ours.
pub(crate) fn sweep(except: &[u32]) {
    // A program that keeps starting others is not followed for ever.
    for _ in 0..100 {
        let left: Vec<i32> = children().into_iter().filter(|pid| !except.contains(&(*pid as u32))).collect();
        if left.is_empty() {
            return;
        }
        left.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
        std::thread::sleep(PAUSE);
        for pid in left {
            // SAFETY: takes numbers only; the child is ours, and nobody else waits for it.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
        }
    }
}

/// The processes whose parent we are.
fn children() -> Vec<i32> {
    let own = std::process::id();
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything. Behind it: state, parent.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent(*pid) == Some(own)).collect()
}

/// Sends a signal to a process, or to a group (negative).
pub(crate) fn signal(to: i32, signal: i32) {
    // SAFETY: kill takes numbers only.
    unsafe { libc::kill(to, signal) };
}
