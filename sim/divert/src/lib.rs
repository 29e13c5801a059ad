//! The library that puts the simulator's CUDA runtime in place of NVIDIA's, wherever a program has
//! one: `libstreamsan_divert.so`, which is preloaded.
//!
//! A program that was linked with `libcudart_static` holds NVIDIA's runtime itself. Nothing that is
//! preloaded comes before that code: calls to it pass through no table. So its public functions get
//! a jump to the function of the same name in the simulator's runtime. The same serves a shared
//! runtime of NVIDIA's that a program finds past `LD_LIBRARY_PATH` (by `DT_RPATH` or a full path,
//! as Python packages do). It has to happen before constructors run, because compiled programs
//! register their kernels in one.
//!
//! In the order of use: `moments` gets to run in time, for the executable, its libraries and what
//! `dlopen` loads. `objects` reads what the dynamic linker and files say. `runtime` and `version`
//! find the functions. `jumps` writes to the program's code, `stubs` is what it jumps to, and
//! `loading` opens the simulator's runtime at the first call. `system` has the system calls, `arch`
//! what depends on the processor.
//!
//! Nothing of NVIDIA's is imitated here: its public functions are replaced by others, and its
//! private ones are not looked at, except to tell where its code begins and ends.
//!
//! The library uses no other, not even the C library, for it runs before that is ready. It must not
//! panic, so it asks for bytes with `get`. A program without CUDA pays for a look at the names that
//! its files import.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(freestanding), allow(dead_code, reason = "its users are in the library that build.rs compiles"))]

mod arch;
mod jumps;
mod loading;
mod moments;
mod objects;
mod runtime;
mod stubs;
mod system;
mod version;

#[cfg(freestanding)]
mod alone;

/// The library's bytes, for who puts it beside the simulator.
#[cfg(not(freestanding))]
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libstreamsan_divert.so"));
