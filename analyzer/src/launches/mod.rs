//! From a kernel launch to the bytes that it touches.

pub(crate) mod coalesce;
pub mod effects;
pub(crate) mod image_reader;
pub mod kernel_code;
pub mod param_mask;
