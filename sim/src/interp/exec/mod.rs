//! Owns the execution of instructions: one small function each, made from closures by the
//! combinators in `lanes`.

pub(crate) mod atomic;
pub(crate) mod call;
pub(crate) mod cluster_memory;
pub(crate) mod control;
pub(crate) mod load_store;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub(crate) mod per_lane;
pub(crate) mod texture;
pub(crate) mod vector_access;
pub(crate) mod warp_sync;
