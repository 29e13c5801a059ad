//! From CUDA's handles to the ids of the trace.

pub mod image_bytes;
pub mod variables;
