//! Start-up.

pub(crate) mod devices;
pub(crate) mod properties;
