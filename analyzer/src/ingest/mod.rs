//! A run: the processes that send their ops, live through rings or from trace files.
//!
//! Owns the way of the records to an [`crate::Analysis`] each; what they mean is decided there.

/// Stack of the threads that analyse: the analysis of a kernel's code follows its dependencies by
/// recursion, which 2 MiB do not hold for large kernels of cuDNN and XLA. Only what is used takes
/// memory.
pub const STACK: usize = 512 << 20;

pub mod attach;
pub mod live;
pub mod prefetch;
pub mod process_watch;
pub mod progress;
pub mod recorded;
pub(crate) mod trailer;
