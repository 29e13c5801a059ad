//! Executes kernels on the CPU. PTX is compiled once into instructions with register slots
//! ([`Program::compile`]), machine code a kernel at a time ([`Program::compile_machine`] of a
//! [`MachineModule`]); a launch ([`run()`]) executes them a warp at a time, with blocks spread
//! over threads. Owns no device memory and knows nothing of streams: the driver around it answers
//! through [`Device`] and [`Linker`].
//!
//! How the driver uses it:
//!
//! 1. parse the PTX with `device_code::ptx::parse`, allocate device memory for [`globals`], fill it
//!    with [`initial_bytes`];
//! 2. [`Program::compile`] with a [`Linker`] that knows those addresses;
//! 3. [`Program::kernel`] for the parameter layout, then [`run()`] for every launch.
//!
//! # Files
//!
//! `interface` is the boundary to the driver. `compile` turns PTX into a `program`, `compile_sass`
//! machine code; `module_variables` and `machine_module` lay out the variables, `launch_constants`
//! what the driver tells machine code, `device_work` what the threads of a grid keep that launch
//! work themselves. A launch goes from `grid` to `cluster`, `block` and `warp`, which share its
//! `env`, and from there to the functions in `exec` (and `exec_sass`), one for each instruction.
//! `native` compiles what is executed often; warps enter it through what `program` says of native
//! code. `float` and `printf` are arithmetic and text without state. `operations` is the table of
//! what an instruction can be, and says of each operation what there is to know. `program` and
//! `warp` know each other (an instruction is a function of a warp). `exec` uses all of these and
//! is used by `compile`, `compile_sass`, `exec_sass`, `operations` and `native` only.
//!
//! # Addresses
//!
//! Device memory is host memory at the same address. Shared and local memory are host memory too,
//! and the generic address of a shared or local byte is its host address; inside their own state
//! spaces they count from zero. Constants of the module live in device memory, kernel parameters in
//! a copy of the launch's parameter block. Function pointers are numbers above
//! 0x00f0_0000_0000_0000. Machine code sees shared and local memory through windows of 4 GiB there
//! (`machine_module`).
//!
//! Blocks run side by side on several threads, so global memory is accessed with the CPU's atomics;
//! a plain access of 4 or 8 bytes is one relaxed atomic. Within a block, warps take turns on one
//! thread, and so do the blocks of a cluster.
//!
//! # Without native code
//!
//! A build without the feature `native` has no `native` module and does not need Cranelift. Its
//! launches are interpreted.

#![cfg_attr(not(feature = "native"), allow(dead_code, reason = "only native code reads what instructions mean"))]

mod block;
mod cluster;
mod compile;
mod compile_sass;
mod device_work;
mod env;
mod exec;
mod exec_sass;
mod float;
mod grid;
mod grid_barrier;
pub(crate) mod interface;
mod launch_constants;
pub(crate) mod machine_module;
pub(crate) mod module_variables;
#[cfg(feature = "native")]
mod native;
pub(crate) mod operations;
mod printf;
pub(crate) mod program;
mod warp;

pub(crate) use crate::interp::compile::layout::static_shared;
pub use crate::interp::interface::*;
pub use crate::interp::machine_module::MachineModule;
pub(crate) use crate::interp::machine_module::{MachineKernel, MachineVariable};
pub use crate::interp::module_variables::{globals, initial_bytes};
pub use crate::interp::program::{Kernel, Program};
pub use grid::run;
