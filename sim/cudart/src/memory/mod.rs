//! Memory.

pub(crate) mod allocations;
pub(crate) mod arrays_textures;
pub(crate) mod copies;
pub(crate) mod pools;
pub(crate) mod symbols;
