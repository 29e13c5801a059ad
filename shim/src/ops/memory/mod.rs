//! Allocations.

pub mod allocations;
pub mod arrays;
pub mod memset;
pub mod virtual_memory;
