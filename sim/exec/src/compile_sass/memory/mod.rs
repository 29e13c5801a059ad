//! Families of what machine code does to memory: loads and stores, atomic operations, barrier
//! objects with bulk and tensor copies, textures and surfaces.

pub(super) mod atomic;
pub(super) mod load_store;
pub(super) mod pipelines;
pub(super) mod texture;
