//! Graphs: the structure, the nodes, executable graphs.
//!
//! `exec` and `nodes` share the functions in `nodes` that turn C's parameters into tasks; `nodes`
//! takes lists of nodes from `structure`.

pub(crate) mod exec;
pub(crate) mod nodes;
pub(crate) mod structure;
