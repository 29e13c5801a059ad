//! The simulated GPU: a `libcuda.so.1` that runs unmodified CUDA programs on the CPU.

pub mod config;
pub mod interp;
pub mod memory;
pub mod sched;
