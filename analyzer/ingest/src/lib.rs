//! Ingest: the processes of a run and their records, live from rings or from trace files.
//!
//! Owns the way of the records into one [`analysis::Analysis`] a process, and what a recording adds
//! at its end. Does not interpret records: the analysis does.
//!
//! The files in the order of use: `live` reads the ring of a live process into a `backlog`, `heart`
//! tells the process that somebody does, `contention` says whether the analysis takes cores from
//! it, and `process_watch` when it has ended; `attach` does the same for a process that the shim
//! attached under plain `LD_PRELOAD`; `trailer` adds symbols and code at the end of a recording.
//! `recorded` reads trace files, through `prefetch` and with `progress` on a terminal.
//!
//! `segments` is what is recorded into, and finds the files of a recording for `recorded`.
//!
//! `recorded` feeds frames through `prefetch`. `attach` reads its ring through `live`, and `live`
//! builds its analysis with `recorded::analysis`, so that a live run and a recorded one are equal.

#![warn(unreachable_pub)]
#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for maintainers, who build them with private items")]

/// Stack size of the threads that analyse. The analysis of a kernel's code follows its dependencies
/// by recursion, and 2 MiB are not enough for large kernels of cuDNN and XLA. Only the used part
/// takes memory.
pub const STACK: usize = 512 << 20;

pub mod attach;
mod backlog;
mod contention;
mod heart;
pub mod live;
pub mod prefetch;
pub mod process_watch;
pub mod progress;
pub mod recorded;
pub mod segments;
pub(crate) mod trailer;
