//! From a kernel launch to the bytes that it touches.

pub(crate) mod coalesce;
pub mod effects;
pub(crate) mod image_reader;
pub(crate) mod launch_cache;
pub(crate) mod launch_key;
pub mod param_mask;
pub mod replay;
