//! Exact mode on this side: where its parts are found, how launches wait for what they really
//! touched, and the comparison of that with what was predicted.
//!
//! The ranges come from the shim (`Op::Exact`), which gets them from patched kernels.

pub mod compare;
pub mod confirm;
pub mod hold;
pub mod learned;
pub mod measured;
pub mod oracle;
pub mod sets;
pub mod settle;
pub mod setup;
pub mod swaps;
