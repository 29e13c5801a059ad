//! The atomics that both ends of the ring share: the machine's, or loom's where `--cfg loom` asks
//! for every interleaving (`cargo xtask loom`).

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
