//! Points where the analysis of code stops while the cores belong to the program that is observed.
//!
//! Owns for how long they do, and the stop: a thread that comes to a safepoint holds no lock, and
//! may sleep there. Does not decide when the program needs its cores; who analyses a process does.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How soon a thread that sleeps at a safepoint finds that it may go on.
const NAP: Duration = Duration::from_millis(5);

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Until when the analysis is held back, in nanoseconds from [`BEGAN`] on; zero: it is not.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// How often it was.
static HOLDS: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    u64::try_from(BEGAN.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Holds the analysis back for this time.
pub fn hold_back(time: Duration) {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    UNTIL.store(now().saturating_add(time).max(1), Ordering::Relaxed);
    HOLDS.fetch_add(1, Ordering::Relaxed);
}

/// Lets it go on.
pub fn go_on() {
    UNTIL.store(0, Ordering::Relaxed);
}

/// Whether it is held back.
#[must_use]
pub fn is_held_back() -> bool {
    let until = UNTIL.load(Ordering::Relaxed);
    until != 0 && now() < until
}

/// Sleeps while the analysis is held back.
#[inline]
pub fn safepoint() {
    if UNTIL.load(Ordering::Relaxed) != 0 {
        sleep();
    }
}

#[cold]
fn sleep() {
    while is_held_back() {
        std::thread::sleep(NAP);
    }
}

/// How often the analysis was held back so far.
pub(crate) fn holds() -> u64 {
    HOLDS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_sleeps_at_a_safepoint_until_the_time_is_over_or_it_may_go_on() {
        let (began, time) = (Instant::now(), Duration::from_millis(20));
        hold_back(time);
        assert!(is_held_back());
        safepoint();
        assert!(began.elapsed() >= time && !is_held_back());
        let before = holds();
        hold_back(Duration::from_secs(600));
        std::thread::scope(|scope| {
            let stopped = scope.spawn(safepoint);
            go_on();
            stopped.join().expect("it ends");
        });
        assert!(began.elapsed() < Duration::from_secs(600) && !is_held_back() && holds() > before);
    }
}
