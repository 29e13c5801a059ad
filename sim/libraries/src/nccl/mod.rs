//! NCCL between simulated devices: of one process, and of processes on one machine.
//!
//! The ranks of a communicator share a file without a name, which others open under `/proc`. A
//! collective is two launches on the rank's stream. The first copies what the rank contributes into
//! the file, and counts up. The second runs when all ranks have counted, and writes the result. A
//! stream waits for counters as it waits for any value in memory, so no thread is held up, and
//! every schedule works.
//!
//! - `shared`: the file
//! - `communicator`: communicators, and what a call becomes
//! - `split`: communicators out of others
//! - `transfer`: the launches
//! - `functions`: the functions of NCCL

mod communicator;
mod functions;
mod shared;
mod split;
mod transfer;
