//! Whose memory is it, and who touched it last: allocations, the shapes of accesses, and the access
//! map.
//!
//! Knows nothing of CUDA's rules of order: whether one access is ordered before another is asked of
//! the caller.

pub mod access;
pub mod access_map;
mod allocation;
pub mod allocations;
mod contents;
pub mod extent;
pub(crate) mod generations;
pub(crate) mod interval_map;
pub(crate) mod prefetch;
mod roots;

pub use crate::memory::generations::Generation;
pub use crate::memory::interval_map::At;
pub use access::{Access, AccessKind, Cause, Site, Touch};
pub use access_map::AccessMap;
pub use allocation::{Allocation, AllocationId, Object};
pub use allocations::Allocations;
pub use extent::{Dim, Extent, Meet, Precision};
pub use roots::Slot;
