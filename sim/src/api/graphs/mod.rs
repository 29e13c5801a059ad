//! Graphs.

pub(crate) mod exec;
pub(crate) mod nodes;
pub(crate) mod structure;
