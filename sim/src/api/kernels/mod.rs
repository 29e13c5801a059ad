//! Kernels: the code that programs load, and its launches.
//!
//! `modules` hands out functions, `launches` starts them after `occupancy` has checked that they
//! fit. `linker` makes the PTX text that `modules` loads.

pub(crate) mod launches;
pub(crate) mod linker;
pub(crate) mod modules;
pub(crate) mod occupancy;
