//! The runtime API for the simulated GPU: `libcudart.so.12` and `.13`.
//!
//! A thin layer, as NVIDIA's is. It keeps what programs registered at start-up, and the current
//! device and last error of each thread, and turns every call into calls of the driver. It finds
//! the driver by `dlopen("libcuda.so.1")` and `cuGetProcAddress`. So a preloaded tool sees exactly
//! the driver calls that it would see on a real machine. Unlike NVIDIA's runtime it asks the driver
//! for no private tables of NVIDIA's.
//!
//! One library serves both versions. The file is built as `.13`; the copy named `.12` differs in
//! that name only, which `version` reads where the two versions differ.
//!
//! The functions stand in one folder for each chapter of the API, with the names of the driver's
//! folders in the crate `sim`. Every function uses `macros`, the crate `sim-driver-link`
//! and `thread_state` (device and last error of a thread). Functions that are not simulated stand
//! in `unsupported`.

#![warn(unreachable_pub)]
#![allow(non_snake_case, non_upper_case_globals, reason = "C names")]
#![allow(missing_docs, reason = "nothing here is Rust API: CUDA's documentation describes the functions")]
#![recursion_limit = "512"]

#[macro_use]
mod macros;

mod graphs;
mod kernels;
mod memory;
mod startup;
mod streams_events;
mod thread_state;
mod unsupported;
mod version;
