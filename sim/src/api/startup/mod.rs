//! Start-up: entry points, devices, contexts, and the names of statuses.
//!
//! Each file stands alone, but `proc_address` has `foreign_runtime` say who called, when it was
//! NVIDIA's own runtime. `devices` also holds the limits of a multiprocessor, which `kernels`
//! needs.

pub(crate) mod contexts;
pub(crate) mod devices;
pub(crate) mod error_strings;
pub(crate) mod foreign_runtime;
pub(crate) mod green_contexts;
pub(crate) mod logs;
pub(crate) mod proc_address;
