//! Owns the execution of instructions: one small function each, made from closures by the
//! combinators in `lanes`.

pub(crate) mod atomic;
pub(crate) mod call;
pub(crate) mod cluster;
pub(crate) mod control;
pub(crate) mod lanes;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub(crate) mod memory;
pub(crate) mod sync;
pub(crate) mod texture;
mod wide;
