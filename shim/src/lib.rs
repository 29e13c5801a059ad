//! Placeholder until its owner fills it.
pub mod stack;
