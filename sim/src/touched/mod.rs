//! Which bytes launches touch, and which of their threads race, for a tool that asked the driver
//! for them ([`cuda_sys::SimMeasureTable`]).
//!
//! Owns the one observer of a process, the question about each launch, and the bits that a running
//! launch sets. Does not know what a launch is: `objects` begins them, and the interpreter reports
//! what their warps touch. Without an observer a launch costs one load.
//!
//! - `observer`: who is told, and the life of a launch that is measured.
//! - `order`: which accesses nothing orders for other kernels and for the host.
//! - `pages`: the bits.
//! - `grids`: the grids of a launch that is searched for races.
//! - `inside`: what is told of the races.

pub(crate) mod grids;
pub(crate) mod inside;
mod observer;
mod order;
mod pages;

pub(crate) use observer::graph_begins;
#[cfg(feature = "driver")]
pub(crate) use observer::observe;
pub(crate) use observer::{GraphTouched, LaunchTouched, Wish, is_observed};
