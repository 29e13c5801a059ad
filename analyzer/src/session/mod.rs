//! A run: the processes that send their ops, live through rings or from trace files.
//!
//! Owns the way of the records to an [`crate::Analysis`] each; what they mean is decided there.

pub mod attach;
pub mod live;
pub mod recorded;
pub mod server;
pub mod watch;
