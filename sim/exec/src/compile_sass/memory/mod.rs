//! Families of what machine code does to memory: loads and stores, atomic operations, textures and
//! surfaces.

mod atomic;
mod load_store;
mod texture;
