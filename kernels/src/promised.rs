//! A value that several threads may need: whoever comes first makes it.
//!
//! Owns the waiting. Who finds the value being made waits for it, but only while its maker gets
//! processor time: the maker may run at a low priority on a machine where all cores are busy, and
//! then it is faster to make the value a second time. Both must make the same value, so which of
//! the two is taken does not show.

use crate::safepoint;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a maker is watched before it is judged.
const SLICE: Duration = Duration::from_millis(10);
/// The part of that time for which a maker has to have a processor, in percent. (The system counts
/// by ticks of 1 to 10 ms.)
const LEAST: u128 = 60;

/// When a maker was last found without a processor.
static STARVED: Mutex<Option<Instant>> = Mutex::new(None);

/// Whether a thread was kept from its work within this time: all cores are busy, and who works
/// ahead on a low priority is in the way.
#[must_use]
pub fn starved_within(time: Duration) -> bool {
    STARVED.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|when| when.elapsed() < time)
}

/// Watches whether the calling thread gets processor time.
#[derive(Debug)]
pub struct Watched {
    began: Instant,
    progress: Option<Arc<Progress>>,
    before: Option<u64>,
    /// How often the analysis was held back before.
    holds: u64,
}

impl Watched {
    /// Watches the calling thread from now on.
    #[must_use]
    pub fn own() -> Watched {
        Self::of(Progress::own())
    }

    fn of(progress: Option<Arc<Progress>>) -> Watched {
        let before = progress.as_ref().and_then(|progress| progress.nanoseconds());
        Watched { began: Instant::now(), progress, before, holds: safepoint::holds() }
    }

    /// Whether it was kept from its work for longer than a moment, other than at a safepoint. All
    /// who ask [`starved_within`] hear of it.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        let waited = self.began.elapsed();
        let now = self.progress.as_ref().and_then(|progress| progress.nanoseconds());
        let got = now.zip(self.before).map_or(0, |(now, before)| now.saturating_sub(before));
        let was_held = safepoint::is_held_back() || safepoint::holds() != self.holds;
        let is_starved = waited >= SLICE && !was_held && u128::from(got) * 100 < waited.as_nanos() * LEAST;
        if is_starved {
            *STARVED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        is_starved
    }
}

#[derive(Debug)]
enum State<T> {
    Open,
    Making(Option<Arc<Progress>>),
    Is(T),
}

/// A value that is made once, or by two threads at a time.
#[derive(Debug)]
pub struct Promised<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Default for Promised<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State::Open), changed: Condvar::new() }
    }
}

impl<T: Clone> Promised<T> {
    /// The value, which `make` makes if no other thread has, or if the one that does is kept from
    /// it. All callers get the value that was there first.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> T {
        let mut state = self.lock();
        loop {
            let progress = match &*state {
                State::Is(value) => return value.clone(),
                State::Open => break,
                State::Making(progress) => progress.clone(),
            };
            let watched = Watched::of(progress);
            state = self.changed.wait_timeout(state, SLICE).unwrap_or_else(PoisonError::into_inner).0;
            if matches!(*state, State::Making(_)) && watched.is_starved() {
                break;
            }
        }
        *state = State::Making(Progress::own());
        drop(state);
        let reopen = Reopen(self);
        let made = make();
        std::mem::forget(reopen);
        let mut state = self.lock();
        if let State::Is(first) = &*state {
            return first.clone();
        }
        *state = State::Is(made.clone());
        drop(state);
        self.changed.notify_all();
        made
    }

    /// Whether the value is there.
    pub(crate) fn is_made(&self) -> bool {
        matches!(*self.lock(), State::Is(_))
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets another thread try when the maker panics.
struct Reopen<'a, T: Clone>(&'a Promised<T>);

impl<T: Clone> Drop for Reopen<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(*state, State::Making(_)) {
            *state = State::Open;
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

/// The processor time of a thread, as the system tells it to other threads.
#[derive(Debug)]
struct Progress(File);

impl Progress {
    /// That of the calling thread.
    fn own() -> Option<Arc<Progress>> {
        thread_local! {
            static OWN: Option<Arc<Progress>> = File::open("/proc/thread-self/schedstat").ok().map(|f| Arc::new(Progress(f)));
        }
        OWN.try_with(Clone::clone).ok().flatten()
    }

    fn nanoseconds(&self) -> Option<u64> {
        let mut text = [0; 64];
        let read = self.0.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..read]).ok()?.split_ascii_whitespace().next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::channel;

    /// Works until it has used so much processor time.
    fn work(nanoseconds: u64) {
        let own = Progress::own().expect("the system tells");
        let upto = own.nanoseconds().expect("a number") + nanoseconds;
        while own.nanoseconds().expect("a number") < upto {
            std::hint::black_box((0..1000_u64).sum::<u64>());
        }
    }

    #[test]
    fn one_that_works_is_waited_for() {
        let (value, made, (begins, begun)) = (Promised::default(), AtomicU32::new(0), channel());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                value.get_or_make(|| {
                    begins.send(()).expect("heard");
                    work(60_000_000);
                    made.fetch_add(1, Ordering::Relaxed)
                })
            });
            begun.recv().expect("begun");
            // On a machine that is very busy the value may be made twice: the same one.
            assert_eq!(value.get_or_make(|| made.fetch_add(1, Ordering::Relaxed)), 0);
        });
        assert_eq!(value.get_or_make(|| unreachable!("it is made")), 0);
    }

    #[test]
    fn one_that_gets_no_time_is_not_waited_for_and_takes_the_value_of_the_other() {
        let (value, (begins, begun), (ends, end)) = (Promised::default(), channel(), channel());
        std::thread::scope(|scope| {
            let (value, ends_when) = (&value, end);
            let sleeper = scope.spawn(move || {
                value.get_or_make(|| {
                    begins.send(()).expect("heard");
                    ends_when.recv().expect("told");
                    1
                })
            });
            begun.recv().expect("begun");
            assert_eq!(value.get_or_make(|| 2), 2);
            ends.send(()).expect("waits");
            assert_eq!(sleeper.join().expect("ends"), 2);
        });
    }

    #[test]
    fn after_a_panic_another_may_try() {
        let value: Promised<u32> = Promised::default();
        assert!(catch_unwind(AssertUnwindSafe(|| value.get_or_make(|| panic!("no")))).is_err());
        assert_eq!(value.get_or_make(|| 3), 3);
    }
}
