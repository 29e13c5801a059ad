//! The CUDA ABI without a toolkit: types, and the tables of driver and runtime functions.
//!
//! Owns what CUDA's headers fix: names, numbers, layouts, signatures, and for each function when an op is recorded
//! around it and what stream 0 means through each of its symbols. It links nothing, calls nothing, and knows nothing of
//! traces. Everything that exists once per function is generated from [`driver_api!`] by callback
//! macros: see [`driver_api`](mod@driver_api) for how rows read and how they are used.
#![recursion_limit = "256"]

pub mod driver_api;
pub mod functions;
pub mod types;

pub use functions::*;
pub use types::*;
