//! Starts the program under test with the shim preloaded, and receives the rings of its processes.
//!
//! Owns everything that happens outside the program: its environment, the simulated GPU in front of it,
//! the socket on which its processes report. What the ops mean is left to [`crate::ingest`].

pub mod executable;
pub mod process;
pub mod server;
pub mod simulator;
pub mod soname;
