//! The simulated GPU: a `libcuda.so.1` that runs unmodified CUDA programs on the CPU.
//!
//! The folders follow a call from the outside in:
//!
//! - `api`: the C functions. They check arguments and hand out results.
//! - `objects`: what the functions act on (contexts, streams, events, captures, graphs, modules),
//!   and `objects::task`: what a call asks the device to do.
//! - `loader`: from the bytes that a program loads to the PTX text in them.
//! - `sched`: when a task runs.
//! - `memory`: which bytes it reads and writes.
//! - `interp`: the kernels, which the crate `sim-exec` interprets. What they execute often the
//!   crate `sim-native` compiles, in a build with the feature `native`.
//!
//! Beside them stand `config` (what the user can choose), `visible_devices`, `handles` (what
//! programs hold instead of objects), `status` and `access_log` (files that a run can leave
//! behind), `appended_file` (how such a file is kept), `touched` (which bytes kernels touch, and
//! which of their threads race, for a tool that asks), `own_threads` (how the simulator's threads
//! start, and who takes signals when no others are left), and `arch` (how the processor calls host
//! functions).
//!
//! The crate is a GPU driver and nothing else: what CUDA leaves unordered may really happen in any
//! order. It detects no races between calls; those inside a kernel `sim-races` finds, where a tool
//! wants them.
//!
//! The feature `driver` (on by default) exports the C functions. Without it the crate is a library
//! with an interpreter.

#![warn(unreachable_pub)]

use std::ffi::{c_char, c_int};

mod access_log;
mod api;
mod appended_file;
mod arch;
pub(crate) mod config;
mod handles;
mod loader;
mod memory;
mod objects;
mod own_threads;
mod sched;
mod status;
mod touched;
mod visible_devices;

pub use sim_exec as interp;

/// Start-up: copies StreamSan's own variables, which the program may remove before its first call.
/// The loader passes the environment, as it does to `main`.
unsafe extern "C" fn start(_count: c_int, _arguments: *const *const c_char, environment: *const *const c_char) {
    // SAFETY: the loader's list ends with a null.
    unsafe { signal_free::environment::remember(environment) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// Makes native code of kernels; None in a build without it.
#[cfg(feature = "native")]
pub const NATIVE: Option<interp::MakeNative> = Some(sim_native::of);
/// Makes native code of kernels; None in a build without it.
#[cfg(not(feature = "native"))]
pub const NATIVE: Option<interp::MakeNative> = None;
