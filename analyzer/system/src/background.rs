//! Threads that work only where a core is idle.
//!
//! Owns how many there may be, and their priority. Does not know what they do.

use std::num::NonZero;

/// More threads than this would hold more stacks and results than they save time.
const MOST: usize = 8;
/// How far their priority is below that of their process. Much further down, a thread that is
/// interrupted while it holds a lock may not come to give it back for minutes where all cores are
/// busy.
const BELOW: libc::c_int = 5;
/// How many such threads may work: the cores that this process may use but one, which is the
/// caller's. `STREAMSAN_AHEAD` sets another number, for tests.
pub fn threads() -> usize {
    let given = std::env::var("STREAMSAN_AHEAD").ok().and_then(|word| word.parse().ok());
    given.unwrap_or_else(|| std::thread::available_parallelism().map_or(0, |cores| NonZero::get(cores) - 1)).min(MOST)
}

/// From now on this thread comes behind others. A system that refuses leaves it as it is.
pub fn enter() {
    // SAFETY: the calls take numbers, and a structure that outlives them. Zero is this thread.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, libc::getpriority(libc::PRIO_PROCESS, 0) + BELOW);
        // (A process that is to run when nothing else does stays so.)
        if libc::sched_getscheduler(0) == libc::SCHED_OTHER {
            let parameters = libc::sched_param { sched_priority: 0 };
            libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_that_enters_has_a_lower_priority_and_others_keep_theirs() {
        // SAFETY: the calls take numbers; zero is the calling thread.
        let own = || unsafe { (libc::getpriority(libc::PRIO_PROCESS, 0), libc::sched_getscheduler(0)) };
        let before = own();
        let lower = (before.0 + super::BELOW).min(19);
        let entered = std::thread::spawn(move || {
            super::enter();
            own()
        });
        let expected = (lower, if before.1 == libc::SCHED_OTHER { libc::SCHED_BATCH } else { before.1 });
        assert_eq!(entered.join().expect("it ends"), expected);
        assert_eq!(own(), before);
    }
}
