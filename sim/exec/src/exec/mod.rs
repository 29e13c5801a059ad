//! Executes instructions: one small function each, made from closures by the combinators in
//! `per_lane`.
//!
//! The other files each hold one family. `address` finds and checks the memory of every access.
//! `load_store` and `vector_access` know each other: a vector access is a load or store that was
//! checked there. `mbarrier`, `matrix` and `address` find bytes of other blocks through
//! `cluster_memory`.

pub(crate) mod address;
pub mod atomic;
pub(crate) mod call;
pub(crate) mod cluster_memory;
pub mod control;
pub(crate) mod device_runtime;
pub(crate) mod fragment;
pub mod load_store;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub mod per_lane;
pub mod tensor;
pub(crate) mod texture;
pub(crate) mod vector_access;
pub mod warp_sync;
