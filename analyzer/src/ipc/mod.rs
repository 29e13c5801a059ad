//! Races between the processes of one run, on memory that they share.
//!
//! Owns the channel on which each process under analysis tells what the others must know, and the
//! rule by which processes are put in order. Who touched which byte is told by each process's own
//! [`crate::Analysis`], in its own terms.
//!
//! # Which memory
//!
//! Memory that one process exports (`cuIpcGetMemHandle`, `cuMemPoolExportPointer`) and another
//! opens by the very bytes of that handle. Memory that goes through file descriptors
//! (`cuMemExportToShareableHandle`) can not be told apart from other such memory, and is not
//! compared.
//!
//! # Which order
//!
//! An access `a` of process P comes before an access `b` of process Q in two ways:
//!
//! - *By the host.* Some host thread, of whichever process, had seen `a` finish when `b` was
//!   submitted. Messages between processes (pipes, sockets, MPI) are not seen, so any of them may
//!   have carried the news: what one host knows, all know at once. This is how host threads of one
//!   process are treated too. The moments of both are compared by `CLOCK_MONOTONIC`, which the shim
//!   takes inside its hooks: whatever the message was, it left after the first moment and came
//!   before the second.
//! - *By an event* of several processes: P recorded it after `a`, and `b` comes after a wait of Q
//!   for it, also by way of a third process. A wait stands for the latest record that any process
//!   had made before it.
//!
//! So a pair is reported where no event orders the two, and where the later one was submitted while
//! no host could know that the earlier one was over. Neither a message nor luck can have ordered
//! such a pair.
//!
//! One thing could: kernels that talk to kernels of the other process through flags in the memory
//! that they share (all-reduce of a serving engine). Such kernels contain fences of system scope.
//! From the launch of one in a process that shares memory on, races with that process are
//! `possible` only, and the report says why.
//!
//! # Time
//!
//! Each process is analysed by a thread of its own, at its own pace. What they tell is kept until
//! all of them have got past its moment; a process that is idle has got as far as its ring was last
//! found empty. Recorded traces are put in order when all are read.

pub(crate) mod exchange;
pub(crate) mod export;
pub(crate) mod participant;
pub(crate) mod visibility;

pub use crate::ipc::exchange::PeerProcess;
pub use crate::ipc::participant::Member;

use crate::ipc::exchange::Exchange;
use crate::report::model::Outcome;
use std::sync::{Arc, Mutex, MutexGuard};

/// The processes of one run.
#[derive(Clone)]
pub struct Across(Arc<Mutex<Exchange>>);

impl Across {
    /// A run. `live`: its processes are analysed while they run; otherwise everything is compared
    /// at the end.
    pub fn new(live: bool) -> Self {
        Self(Arc::new(Mutex::new(Exchange::new(live))))
    }

    /// A process joins.
    pub fn join(&self) -> Member {
        let id = lock(&self.0).join();
        Member::new(id, self.0.clone())
    }

    /// All processes have ended: adds what was found between them to the outcome of whichever came
    /// later.
    pub fn finish(&self, outcomes: &mut [Outcome]) {
        lock(&self.0).finish(outcomes);
    }
}

fn lock(table: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    table.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
