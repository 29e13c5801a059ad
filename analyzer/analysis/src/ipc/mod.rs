//! Races between the processes of one run, on memory that they share.
//!
//! Owns the channel on which each process under analysis reports what the others must know, and the
//! rule by which accesses of different processes are ordered. Does not know which bytes an op
//! touches: each process's own [`crate::Analysis`] reports that, in its own ids
//! ([`export`]).
//!
//! The files in the order of use: `participant` is a process's end of the channel, `exchange`
//! collects and compares the messages of all processes, `visibility` is the order between
//! processes, `flags` what waits for flags in memory, `signals` whose messages wait for those of
//! others, `meetings` which processes come together, `queue` what is held back meanwhile,
//! `describe` makes findings of pairs, and `advice` has their words. `collectives` compares in
//! which order the processes enqueue those of several communicators. `participant` and `exchange`
//! know each other: one sends into the other, and a finding asks for the call sites that the
//! participant has named.
//!
//! # Which memory
//!
//! Memory that one process exports (`cuIpcGetMemHandle`) and another opens by the same bytes of
//! that handle. Memory and pools that go through file descriptors (`cuMemExportToShareableHandle`)
//! are known by a mark that the shim puts on the descriptor; a pointer into such a pool
//! (`cuMemPoolExportPointer`) by that mark and the bytes that carry it. An exported allocation ends
//! with its owner's free. Physical memory ([`trace::PHYSICAL_KEY`]) has no such owner: it lives as
//! long as any process has it.
//!
//! # Which order
//!
//! An access `a` of process P comes before an access `b` of process Q in four ways:
//!
//! - *By the host.* Some host thread, of any process, had seen `a` finish when `b` was submitted.
//!   Messages between processes (pipes, sockets, MPI) are not seen, so any of them may have carried
//!   the news: what one host knows, all know at once. Host threads of one process are treated in
//!   the same way. Both moments are compared by `CLOCK_MONOTONIC`, which the shim reads inside its
//!   hooks: whatever the message was, it left after the first moment and arrived before the second.
//! - *By an event* shared by the processes: P recorded it after `a`, and `b` comes after a wait of
//!   Q for it, possibly by way of a third process. A wait stands for the latest record that any
//!   process had made before it.
//! - *By a value* in the shared memory: a stream of Q waits for one (`cuStreamWaitValue`) that a
//!   stream of P writes behind `a`.
//! - *By a meeting* ([`trace::MEETING_KEY`]): a stream of Q goes on behind a barrier of NVSHMEM to
//!   which a stream of P had come behind `a`.
//!
//! So a pair is reported when no event, value nor meeting orders the two, and when the later one
//! was submitted while no host could know that the earlier one had finished. Neither a message nor
//! luck can have ordered such a pair.
//!
//! One thing more could: a kernel of Q that polls a flag in memory, before `b` or at its place in
//! the same kernel (the all-reduce of a serving engine). What is behind such a kernel is `possible`
//! only, and the report says why; so is what is behind a wait for a value that nothing was seen to
//! write. Where a stream has written the value, once, and nothing else has written there, what the
//! write does not come after is `likely`: the host of a process, or a card, may write it unseen. Of
//! kernels with fences of system scope and atomic loads that are not recognised as polls,
//! everything counts as behind one (`flags`).
//!
//! # Time
//!
//! Each process is analysed by a thread of its own, at its own pace. Their messages are kept until
//! all of them have passed the message's time. An idle process has passed the time at which its
//! ring was last found empty. Recorded traces are compared when all of them have been read. What
//! waits for a signal of another process, or in a meeting, and what is behind that, is compared
//! when the signal is known. What hosts see end in between orders only what was submitted later.

pub(crate) mod advice;
mod collectives;
mod describe;
pub(crate) mod exchange;
pub(crate) mod export;
pub(crate) mod flags;
mod meetings;
pub(crate) mod participant;
mod queue;
mod signals;
pub(crate) mod visibility;

pub use crate::ipc::exchange::PeerProcess;
pub use crate::ipc::participant::Member;

use crate::ipc::exchange::Exchange;
use report::model::Outcome;
use std::sync::{Arc, Mutex, MutexGuard};

/// The processes of one run.
#[derive(Clone)]
pub struct Across(Arc<Mutex<Exchange>>);

impl Across {
    /// A run. `live`: its processes are analysed while they run. Otherwise everything is compared
    /// at the end.
    pub fn new(live: bool) -> Self {
        Self(Arc::new(Mutex::new(Exchange::new(live))))
    }

    /// Adds a process.
    pub fn join(&self) -> Member {
        let id = lock(&self.0).join();
        Member::new(id, self.0.clone())
    }

    /// Ends the run: adds each finding between two processes to the outcome of the process with the
    /// later access.
    pub fn finish(&self, outcomes: &mut [Outcome]) {
        lock(&self.0).finish(outcomes);
    }
}

fn lock(exchange: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
