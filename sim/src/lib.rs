//! The simulated GPU: a `libcuda.so.1` that runs unmodified CUDA programs on the CPU.
//!
//! From the outside in: `api` (the C functions), the objects they are about (`context`, `stream`,
//! `event`, `capture`, `graph`, `module`, `array`, `texture`), `task` (what a call asks the device
//! to do), `sched` (when it happens), `memory` (to which bytes), `interp` (kernels). What can be
//! chosen is in `config`.
//!
//! It is a GPU driver and nothing else: it detects no races. What CUDA leaves unordered may really
//! happen in any order.
//!
//! The feature `driver` (on by default) exports the C functions; without it the crate is a library
//! with an interpreter.
#![recursion_limit = "512"]

pub(crate) mod access_log;
mod api;
pub mod config;
mod handles;
#[allow(missing_docs)]
pub mod interp;
pub(crate) mod loader;
mod memory;
pub(crate) mod objects;
mod sched;
mod status;
