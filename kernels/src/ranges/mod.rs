//! Byte ranges of a kernel's memory accesses.
pub mod node;
mod build;
mod division;
mod pair;
mod ssa;
