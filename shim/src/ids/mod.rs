//! From CUDA's handles to the ids of the trace.
//!
//! The driver hands the same handle out again, so each life of a stream, event, context or array
//! has an id of its own. Owns the functions that resolve a handle; each takes the call's
//! [`Cx`](crate::observe::Cx). The thread's cache and the tables of [`crate::handles`] are asked
//! first. A handle whose creation was not seen (it was made before the shim was there, or through
//! an entry point that the shim does not know) is defined when it is first used, after a question
//! to the driver. Real calls are made before a table is locked, never under it.
//!
//! [`contexts`] comes first: streams and events belong to one. [`streams`] and [`events`] look up
//! by way of [`recall`] and end by way of [`destroyed`]; [`streams`] asks [`captures`] whether work
//! enters the stream now. [`kernels`] asks [`variables`] to list the variables of an image at the
//! first launch from it, which reads image headers with [`image_bytes`]. [`arrays_pools`] stands
//! alone.

pub mod arrays_pools;
pub mod captures;
pub mod contexts;
pub mod destroyed;
pub mod events;
pub mod image_bytes;
pub mod kernels;
mod recall;
pub mod streams;
pub mod variables;
