//! Kernels.

pub(crate) mod launches;
pub(crate) mod libraries;
pub(crate) mod registration;
