//! Memory: which allocation an address belongs to, and which accesses to it are remembered.
//!
//! Owns allocations, the bytes of an access, and the access maps. Does not know CUDA's rules of
//! order: it asks the caller whether one access is ordered before another (the trait
//! [`access_map::Clocks`]).
//!
//! The files in the order of use: `extent` is the bytes of one access, which `pieces` lists where
//! they follow no pattern, `lock` the lock that is held meanwhile, `region` the region of the
//! program that it is made in, and `access` the access itself;
//! `interval_map` is the container below the tables; `access_map/` remembers the accesses of one
//! allocation; `allocation` describes one allocation and `roots` holds those that are live, each
//! with its access map; `generations` says whether an address still lies where it lay; `contents`
//! holds the words of pointer tables; `strays` counts the writes to places that are not known;
//! `escapes` follows work that a capture missed; `tensor_maps` knows the tensor maps that the
//! driver made; `allocations/` puts all of these together for the
//! rest of the crate. `prefetch` is the processor hint for callers that know what they need next.
//!
//! `access_map` and `interval_map` know nothing of allocations. `roots` and `generations` change
//! only through `allocations`.

pub(crate) mod access;
pub mod access_map;
mod allocation;
pub mod allocations;
mod contents;
mod escapes;
pub(crate) mod extent;
pub(crate) mod generations;
pub(crate) mod interval_map;
pub(crate) mod lock;
mod pieces;
pub(crate) mod prefetch;
mod region;
mod roots;
mod strays;
pub(crate) mod tensor_maps;

pub use crate::memory::generations::Generation;
pub use crate::memory::interval_map::At;
pub use access::{Access, AccessKind, AtomicReach, Cause, Exclusion, Overlap, Site, Touch, conflict};
pub use access_map::AccessMap;
pub use allocation::{Allocation, AllocationId, Object};
pub use allocations::Allocations;
pub use escapes::{Escapes, Missed};
pub use extent::{Dim, Extent, Meet, Precision};
pub use lock::{Lock, Relays};
pub use pieces::Pieces;
pub use region::{Region, SeenRegions};
pub use roots::Slot;
pub use strays::Strays;
pub use tensor_maps::TensorMaps;
