//! Placeholder until its owner fills it.
pub mod arch;
pub mod ir;
pub mod ptx;
pub mod ranges;
pub mod sass;
