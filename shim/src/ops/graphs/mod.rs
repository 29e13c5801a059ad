//! Graphs.

pub mod added_nodes;
pub mod capture;
pub mod execs;
pub mod flatten;
pub mod origins;
