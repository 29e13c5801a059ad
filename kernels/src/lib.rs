//! Placeholder until its owner fills it.
pub mod arch;
pub mod image;
pub mod ir;
pub mod lower_sass;
pub mod ptx;
pub mod ranges;
pub mod sass;
