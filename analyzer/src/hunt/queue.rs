//! All programs of a hunt, some of them at a time.
//!
//! Owns the order, the threads, and what an interruption does: programs that run are ended, the
//! others are not begun, and what has been found stays.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Under;
use super::one::{self, HuntState, Ran};
use super::progress::HuntProgress;
use super::second;
use super::target::Target;
use crate::launcher::descendants;
use crate::launcher::inherited::is_ignored;
use report::model::Report;
use report::program::Checked;

/// What a signal handler can reach.
static SHARED: HuntState = HuntState { running: Mutex::new(Vec::new()), stop: std::sync::atomic::AtomicI32::new(0) };

/// Runs the programs, `jobs` at a time. `judge` is the gate's decision on a report. Second: the
/// signal that has ended the hunt.
pub(crate) fn run(
    targets: &[Target],
    under: &Under,
    jobs: usize,
    progress: &HuntProgress,
    judge: &(dyn Fn(&Report) -> Report + Sync),
) -> (Vec<Ran>, Option<i32>) {
    descendants::adopt();
    listen();
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Ran>>> = Mutex::new(targets.iter().map(|_| None).collect());
    let stopped = || SHARED.stop.load(Ordering::Relaxed);
    let enough = AtomicBool::new(false);
    let work = || {
        while stopped() == 0 && !enough.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(target) = targets.get(index) else { return };
            progress.begin(&target.name);
            let mut ran = one::run(target, index + 1, under, &SHARED, &|| progress.tick());
            let mut judged = judge(&ran.report);
            let doubt = second::in_doubt(&judged);
            if stopped() == 0 && doubt.findings > 0 {
                one::again(target, &mut ran, &doubt, under, &SHARED, &|| progress.tick());
                judged = judge(&ran.report);
            }
            ran.program.findings = judged.failing();
            progress.end(&ran.program);
            enough.fetch_or(under.fail_fast && ran.program.findings > 0, Ordering::Relaxed);
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[index] = Some(ran);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, targets.len().max(1)) {
            // Findings may be deep.
            let thread = std::thread::Builder::new().stack_size(ingest::STACK);
            if thread.spawn_scoped(scope, work).is_err() {
                // One thread is enough, and this is one.
                work();
            }
        }
    });
    progress.clear();
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let why = if stopped() == 0 { "behind a finding (--fail-fast)" } else { "interrupted" };
    let missing = |target: &Target| one::not_run(target, Checked::NotRun, why);
    let ran = targets.iter().zip(done).map(|(target, ran)| ran.unwrap_or_else(|| missing(target))).collect();
    (ran, Some(stopped()).filter(|signal| *signal != 0))
}

extern "C" fn stop(signal: libc::c_int) {
    SHARED.stop.store(signal, Ordering::Relaxed);
    system::interrupt::hear(signal);
}

/// The first signal ends the hunt in order, a later one at once. One that the process was told to
/// ignore stays so (`nohup`).
fn listen() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)) {
        // SAFETY: all-zero is a valid sigaction to be filled; the handler is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = stop as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
