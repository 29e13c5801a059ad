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
//! `interface` is the boundary to the driver, `observed_order` its part about order. `compile`
//! turns PTX into a `program`, `compile_sass` machine code; `module_variables` and `machine_module`
//! lay out the variables, `launch_constants` what the driver tells machine code, `device_work` what
//! the threads of a grid keep that launch work themselves, `grid_dependence` what grids do about
//! others that they overlap. A launch goes from `grid` to `cluster`,
//! `block` and `warp`, which share its `env`, and from there to the functions in `exec` (and
//! `exec_sass`), one for each instruction. `float` and `printf` are arithmetic and text without
//! state. `operations` is the table of what an instruction can be, and says of each operation what
//! there is to know. `program` and `warp` know each other (an instruction is a function of a warp).
//! `bulk_work` keeps what the asynchronous proxy has to do.
//! `exec` uses all of these and is used by `compile`, `compile_sass`, `exec_sass` and `operations`
//! only.
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
//! # Native code
//!
//! A launch may name a maker of native code ([`MakeNative`]), which the crate `sim-native` is. It
//! compiles what is executed often; warps enter it through the trait `NativeCode`. The crate here
//! needs neither that one nor Cranelift: without a maker, launches are interpreted. What native
//! code has to know of instructions and warps is public for it, and for nobody else.

#![warn(unreachable_pub)]
#![allow(missing_docs, reason = "public for `sim-native` alone")]
#![recursion_limit = "512"]

mod arch;
pub mod block;
mod bulk_work;
mod cluster;
mod compile;
mod compile_sass;
mod device_work;
pub mod env;
pub mod exec;
pub mod exec_sass;
pub mod float;
mod grid;
mod grid_barrier;
mod grid_dependence;
pub mod groups;
pub mod interface;
mod launch_constants;
pub mod machine_module;
pub(crate) mod module_variables;
mod observed_order;
pub mod operations;
mod polls;
mod printf;
pub mod program;
pub mod warp;

pub use crate::compile::layout::{SharedVariable, shared_variables_of, static_shared};
pub use crate::grid_dependence::Overlap;
pub use crate::interface::*;
pub use crate::machine_module::MachineModule;
pub use crate::machine_module::{MachineKernel, MachineVariable};
pub use crate::module_variables::{globals, initial_bytes};
pub use crate::observed_order::{AccessOrder, OrderEvent, Reach};
pub use crate::program::{Kernel, MakeNative, Program};
pub use grid::run;
