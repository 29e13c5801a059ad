//! Functions of libraries, and the program's own annotations.

#[cfg(not(test))]
pub mod annotations;
pub mod host_threads;
#[cfg(not(test))]
pub mod nccl;
#[cfg_attr(test, expect(non_snake_case, reason = "NVTX's name"))]
pub mod nvtx_memory;
#[cfg(not(test))]
pub mod torch;
