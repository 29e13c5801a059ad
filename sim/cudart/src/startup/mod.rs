//! Start-up: devices and their properties, errors, versions, entry points. The files do not know
//! each other.

pub(crate) mod devices;
pub(crate) mod execution_contexts;
pub(crate) mod properties;
