//! Memory: allocated, mapped, filled, moved, given up.
//!
//! Each file owns the rows of one kind of call and makes their ops; they do not know each other.
//! Copies are in [`super::copies`].

pub(crate) mod allocations;
mod arrays;
mod memset;
mod prefetch;
mod shared_pools;
mod tensor_maps;
mod virtual_memory;

pub(crate) use allocations::*;
pub(crate) use arrays::*;
pub(crate) use memset::*;
pub(crate) use prefetch::*;
pub(crate) use shared_pools::*;
pub(crate) use tensor_maps::*;
pub(crate) use virtual_memory::*;
