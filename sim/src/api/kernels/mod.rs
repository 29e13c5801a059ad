//! Kernels.

pub(crate) mod launches;
pub(crate) mod linker;
pub(crate) mod modules;
pub(crate) mod occupancy;
