//! The runtime API for the simulated GPU: `libcudart.so.12` and `.13`.
//!
//! A thin layer, as NVIDIA's is: it keeps what programs registered at start-up, the current device
//! and the last error of each thread, and turns every call into calls of the driver, which it finds
//! by `dlopen("libcuda.so.1")` and `cuGetProcAddress`. So a preloaded tool sees exactly the driver
//! calls that it would see on a real machine. Unlike NVIDIA's it asks the driver for no private
//! tables.
//!
//! One library serves both versions: the file is built as `.13`, and the copy named `.12` differs
//! in that name only, which `version` looks at where the two versions differ.
#![allow(non_snake_case, non_upper_case_globals, reason = "C names")]
#![allow(missing_docs, reason = "nothing here is Rust API: CUDA's documentation describes the functions")]
#![recursion_limit = "512"]

#[macro_use]
mod macros;

pub(crate) mod driver_link;
pub(crate) mod graphs;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod startup;
pub(crate) mod streams_events;
pub(crate) mod thread_state;
pub(crate) mod unsupported;
mod version;
