//! Families of what machine code does to memory: loads and stores, atomic operations, textures and
//! surfaces.

pub(super) mod atomic;
pub(super) mod load_store;
pub(super) mod texture;
