//! The tables behind CUDA's handles.

pub mod kernel;
pub mod tables;
