//! Graphs.

pub(crate) mod nodes;
pub(crate) mod structure;
