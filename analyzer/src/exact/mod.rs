//! Exact mode on this side: where its parts are found, how launches wait for what they really
//! touched, and the comparison of that with what was predicted.
//!
//! The ranges come from the shim (`Op::Exact`), which gets them from patched kernels.

pub mod byte_set;
pub mod cas_loops;
pub mod compare;
pub mod confirm;
pub mod learned;
pub mod measured;
pub mod oracle;
pub mod pending;
pub mod settle;
pub mod setup;
