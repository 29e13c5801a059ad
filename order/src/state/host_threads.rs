//! Host threads with timelines of their own.
//!
//! Owns what each thread knows, when the engine follows them ([`crate::Options::host_threads`]).
//! Without it all threads share the floor.
//!
//! A thread has a slot like a stream: its ops are epochs on it, and what it has seen finish is a
//! clock over the floor. A stream's op takes in what the thread that enqueues it knows. Knowledge
//! passes between threads along edges: a release (unlocking a mutex, posting a semaphore, arriving
//! at a barrier, creating a thread, ending) leaves a snapshot with its object, and an acquire of
//! the object takes in all that was left with it. The floor rises to what all threads know.
//!
//! A thread whose start was not seen knows what any thread knows by then: less would be a guess.

use trace::ThreadId;

use crate::clock::{Clock, Entry, FloorRef, NO_LINEAGE, TimelineSnapshot};
use crate::id_map::IdMap;

/// One host thread.
#[derive(Debug, Default)]
pub(crate) struct HostThread {
    /// Its timeline.
    pub(crate) slot: u32,
    /// Its time: counts its ops.
    pub(crate) time: u64,
    /// What it knows beyond the floor and its own ops.
    pub(crate) clock: Clock,
}

/// All host threads.
#[derive(Debug, Default)]
pub(crate) struct HostThreads {
    all: IdMap<u32, HostThread>,
    objects: IdMap<u64, TimelineSnapshot>,
}

impl HostThreads {
    /// A thread, if it was seen.
    pub(crate) fn get(&self, thread: ThreadId) -> Option<&HostThread> {
        self.all.get(&thread.0)
    }

    /// As [`HostThreads::get`].
    pub(crate) fn get_mut(&mut self, thread: ThreadId) -> Option<&mut HostThread> {
        self.all.get_mut(&thread.0)
    }

    /// A thread is seen for the first time, on a timeline of its own; `after` an object when its
    /// start was seen.
    pub(crate) fn begin(&mut self, thread: ThreadId, slot: u32, time: u64, start: Option<u64>, floor: FloorRef<'_>) {
        let mut clock = Clock::default();
        match start {
            Some(object) => {
                if let Some(left) = self.objects.get(&object) {
                    clock.raise(left.own, slot, floor);
                    clock.join(&left.clock, slot, floor);
                }
            }
            None => {
                for other in self.all.values() {
                    clock.raise(Entry { slot: other.slot, time: other.time }, slot, floor);
                    clock.join(&other.clock, slot, floor);
                }
            }
        }
        self.all.insert(thread.0, HostThread { slot, time, clock });
    }

    /// What a thread knows now, its own ops included.
    pub(crate) fn snapshot(&self, thread: ThreadId) -> Option<TimelineSnapshot> {
        let t = self.all.get(&thread.0)?;
        Some(TimelineSnapshot { own: Entry { slot: t.slot, time: t.time }, clock: t.clock.clone(), exact: true })
    }

    /// A thread learns.
    pub(crate) fn acquire(
        &mut self,
        thread: ThreadId,
        what: &TimelineSnapshot,
        many: &mut Vec<Entry>,
        floor: FloorRef<'_>,
    ) {
        let Some(t) = self.all.get_mut(&thread.0) else { return };
        if what.own.time > 0 {
            t.clock.raise(what.own, t.slot, floor);
        }
        t.clock.join(&what.clock, t.slot, floor);
        t.clock.raise_many(many, t.slot, floor);
    }

    /// A thread leaves what it knows with an object, beside what others left there.
    pub(crate) fn release(&mut self, thread: ThreadId, object: u64, floor: FloorRef<'_>) {
        let Some(now) = self.snapshot(thread) else { return };
        match self.objects.get_mut(&object) {
            Some(left) => {
                let old = left.own;
                // Of two threads that left something, one is the snapshot's own timeline and the
                // other an entry of its clock. The clock is no thread's: it must not pass for a
                // later one of this thread, which may never learn what others left.
                let mut clock = now.clock.clone();
                clock.join(&left.clock, NO_LINEAGE, floor);
                if old.slot != now.own.slot && old.time > 0 {
                    clock.raise(old, NO_LINEAGE, floor);
                }
                *left = TimelineSnapshot { own: now.own, clock, exact: false };
            }
            None => {
                self.objects.insert(object, TimelineSnapshot { exact: false, ..now });
            }
        }
    }

    /// What was left with an object.
    pub(crate) fn released(&self, object: u64) -> Option<TimelineSnapshot> {
        self.objects.get(&object).cloned()
    }

    /// Entries of a thread's clock that every other thread knows too.
    pub(crate) fn common(&self, thread: ThreadId) -> Vec<Entry> {
        let Some(t) = self.all.get(&thread.0) else { return Vec::new() };
        let everybody = |e: &Entry| {
            self.all.iter().all(|(id, o)| {
                *id == thread.0 || (o.slot == e.slot && o.time >= e.time) || o.clock.get(e.slot) >= e.time
            })
        };
        t.clock.entries().filter(everybody).collect()
    }
}
