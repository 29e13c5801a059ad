//! Graphs: the structure, and nodes of any kind. `structure` also instantiates and launches.

pub(crate) mod nodes;
pub(crate) mod structure;
