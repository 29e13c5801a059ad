//! Families of what machine code does to memory: loads and stores, atomic operations, barrier
//! objects with bulk and tensor copies, asynchronous stores to other blocks, textures and surfaces;
//! and which loads of shared memory poll a flag.

pub(super) mod atomic;
pub(super) mod load_store;
pub(super) mod pipelines;
pub(super) mod remote;
pub(super) mod shared_flags;
pub(super) mod texture;
