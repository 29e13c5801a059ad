//! Memory.

pub(crate) mod allocations;
pub(crate) mod arrays_textures;
pub(crate) mod copies;
pub(crate) mod copy_descriptors;
pub(crate) mod ipc;
pub(crate) mod memsets;
pub(crate) mod pointers;
pub(crate) mod pools;
pub(crate) mod virtual_memory;
