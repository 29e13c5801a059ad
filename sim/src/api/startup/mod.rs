//! Start-up: entry points, devices, contexts, and the names of statuses.
//!
//! Each file stands alone. `devices` also holds the limits of a multiprocessor, which `kernels`
//! needs.

pub(crate) mod contexts;
pub(crate) mod devices;
pub(crate) mod error_strings;
pub(crate) mod proc_address;
