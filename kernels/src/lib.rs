//! Placeholder until its owner fills it.
pub mod arch;
pub mod sass;
pub mod ptx;
