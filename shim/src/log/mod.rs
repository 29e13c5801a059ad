//! The log: where an op gets its place in the order, and its way into the ring.
//!
//! Owns the state of one trace and the lock that serialises it. [`start`] makes the [`core`] at the
//! first op of a process. An op then goes through [`shared`], under the lock: to the engine of
//! `order` for its place, to [`stacks`] for the definition of its stack, and to [`ring_writer`].
//! [`endings`] holds the frees whose calls have not returned.
//! [`call_names`], with [`nvshmem_names`], and [`call_counts`] know the functions that ops come
//! from.
//!
//! [`start`] and [`call_counts`] use [`core`], which uses [`shared`], which uses the rest. What an
//! op means is decided above, in `crate::ops`; what follows from it, in `order` and in the
//! analyzer.

pub mod call_counts;
pub mod call_names;
pub mod core;
pub mod endings;
#[macro_use]
pub mod nvshmem_names;
pub mod ring_writer;
pub mod shared;
pub mod stacks;
pub mod start;
