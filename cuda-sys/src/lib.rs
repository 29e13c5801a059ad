//! The CUDA ABI without a toolkit: types, and the tables of driver and runtime functions.
//!
//! Owns what CUDA's headers fix: names, numbers, layouts, signatures, and for each function when an
//! op is recorded around it and what stream 0 means through each of its symbols. It links nothing,
//! calls nothing, and knows nothing of traces. Everything that exists once per function is
//! generated from [`driver_api!`] and [`runtime_api!`] by callback macros: see
//! [`driver_api`](mod@driver_api) for how rows read and how they are used.

#[macro_use]
pub mod types;
pub mod driver_api;
pub mod effects;
#[macro_use]
pub mod functions;
pub mod runtime_api;
pub mod runtime_functions;
pub mod runtime_types;
mod simulated;

pub use functions::*;
pub use runtime_functions::*;
pub use runtime_types::*;
pub use simulated::{SIM_TABLE, SimTable};
pub use types::*;
