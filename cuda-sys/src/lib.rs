//! The CUDA ABI without a toolkit: types, and the tables of driver and runtime functions.
//!
//! Owns what CUDA's headers fix: names, numbers, layouts, signatures; and for each function when an
//! op is recorded around it, and what stream 0 means through each of its symbols. It links nothing,
//! calls nothing, and knows nothing of traces. Everything that exists once per function is
//! generated from [`driver_api!`] and [`runtime_api!`] by callback macros: see
//! [`driver_api`](mod@driver_api) for how rows read and how they are used.
//!
//! - [`types`], [`runtime_types`]: handles, statuses, enums, structs.
//! - [`driver_api`](mod@driver_api), [`runtime_api`](mod@runtime_api): the two tables.
//! - [`driver_functions`], [`runtime_functions`]: what the tables say about each symbol, as data.
//! - [`model_coverage`]: how much of each function StreamSan models.
//! - `sim_table`, `sim_measure`: private tables of the simulated driver.

#![warn(unreachable_pub)]

#[macro_use]
pub mod types;
pub mod driver_api;
#[macro_use]
pub mod driver_functions;
pub mod model_coverage;
pub mod runtime_api;
pub mod runtime_functions;
pub mod runtime_types;
mod sim_measure;
mod sim_table;

pub use driver_functions::*;
pub use runtime_functions::*;
pub use runtime_types::*;
pub use sim_measure::{
    InsideFrame, InsideRace, InsideReport, InsideSide, LaunchObserver, ObservedLaunch, SIM_MEASURE_TABLE,
    SimMeasureTable, TouchedPage, inside_flags, inside_side_flags, launch_end, launch_wish,
};
pub use sim_table::{NativeKernel, NativeMemory, SIM_TABLE, SimDevice, SimTable, uuid_text};
pub use types::*;
