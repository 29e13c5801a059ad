//! The context in which an op function runs.

pub mod context;
pub mod host_watch;
