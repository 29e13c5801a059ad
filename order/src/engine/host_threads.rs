//! Host threads that have timelines of their own: how an op takes in what its thread knows, and how
//! knowledge passes between threads.
//!
//! What each thread knows is in [`crate::state::host_threads`].

use trace::{Epoch, Op, ThreadId};

use crate::engine::Engine;
use crate::start_clock::{ClockRef, ClockSource, OpStart};
use crate::state::host::{Covered, Guarantee};

impl Engine {
    /// An op by a thread that has a timeline of its own: the thread becomes known, its time goes
    /// on.
    #[cold]
    pub(crate) fn enter_thread(&mut self, op: &Op<'_>, thread: ThreadId) {
        self.thread = thread;
        if op.is_definition() {
            return;
        }
        let Some(mut threads) = self.threads.take() else { return };
        if threads.get(thread).is_none() {
            let slot = self.streams.host_slot();
            let time = self.streams.slots[slot as usize].time;
            let start = match *op {
                Op::HostEdge { object, acquire: true, start: true } => Some(object),
                _ => None,
            };
            threads.begin(thread, slot, time, start, self.host.floor_ref());
        }
        if let Some(t) = threads.get_mut(thread) {
            t.time += 1;
            self.streams.slots[t.slot as usize].time = t.time;
        }
        self.threads = Some(threads);
    }

    /// The op in hand is one of the host: it starts at what its thread knows.
    pub(crate) fn start_on_thread(&mut self) {
        let Some(t) = self.threads.as_ref().and_then(|threads| threads.get(self.thread)) else { return };
        let start = OpStart { own: t.slot, own_upto: t.time - 1, source: ClockSource::Snapshot, ..self.last };
        self.start_snapshot = Some(ClockRef::of_clock(&self.host, &self.streams, start, &t.clock).snapshot());
        self.last = start;
    }

    /// A stream that begins an op takes in what the thread knows that enqueues it.
    #[cold]
    pub(crate) fn take_from_thread(&mut self, slot: u32) {
        if let Some(now) = self.threads.as_ref().and_then(|threads| threads.snapshot(self.thread)) {
            self.join(slot, &now);
        }
    }

    /// `HostEdge`: knowledge passes from thread to thread.
    pub(crate) fn host_edge(&mut self, object: u64, acquire: bool, start: bool) -> Epoch {
        let thread = self.thread;
        if let Some(mut threads) = self.threads.take() {
            match (acquire, threads.released(object)) {
                // A start was taken in when the thread was first seen.
                (true, Some(_)) if start => {}
                (true, Some(left)) => threads.acquire(thread, &left, &mut Vec::new(), self.host.floor_ref()),
                (true, None) => {}
                (false, _) => threads.release(thread, object, self.host.floor_ref()),
            }
            self.threads = Some(threads);
            if acquire {
                self.raise_common(thread);
            }
        }
        self.host_op()
    }

    /// What all threads know belongs on the floor.
    pub(crate) fn raise_common(&mut self, thread: ThreadId) {
        let Some(threads) = &self.threads else { return };
        let mut many = threads.common(thread);
        many.retain(|e| self.host.floor.get(e.slot) < e.time);
        if !many.is_empty() {
            self.host.acquire(thread, &Covered { many: many.clone(), ..Covered::default() }, Guarantee::ALWAYS);
            let floor = self.host.weakest().times.clone();
            for e in &many {
                self.streams.settle(e.slot, &floor);
            }
        }
    }
}
