//! The launcher: starts the program under test with the shim preloaded, and receives the rings of
//! its processes.
//!
//! Owns everything outside of the program: its environment, the simulated GPU in front of it, and
//! the socket on which its processes report. Does not interpret their ops: that is
//! [`ingest`].
//!
//! The files in the order of use: `executable` says whether anything can be preloaded into the
//! program, `dynamic_section` which libraries it loads, `sanitized` whether its code is
//! instrumented, `mpi` whether it may use MPI, `exact_setup` finds what exact mode needs,
//! `simulator` and `soname` prepare the libraries it is to load, `loader_paths` names them for the
//! dynamic linker, `run_folder` and `server` open the
//! socket, and `process` starts the program and passes on how it ends. `inherited` gives it the
//! signals, descriptors and environment that this process was started with.
//!
//! `node` brings the ranks of an MPI job on one machine together, each of which has a launcher of
//! its own.
//!
//! `descendants` ends a program, with all that it has started, when its time is over. It and
//! `process` know each other by the type [`process::Finished`].
//!
//! `process` and `simulator` know each other: a [`process::Plan`] names the simulator, and the
//! simulator looks for its libraries beside the running program with [`process::beside`].

pub(crate) mod descendants;
pub(crate) mod dynamic_section;
pub(crate) mod exact_setup;
pub(crate) mod executable;
pub mod inherited;
pub(crate) mod loader_paths;
pub(crate) mod mpi;
pub(crate) mod node;
pub mod process;
pub(crate) mod run_folder;
pub(crate) mod sanitized;
pub(crate) mod server;
pub(crate) mod simulator;
pub(crate) mod soname;
